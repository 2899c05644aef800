"""Refuses methods that cannot work in the dialogs of a run, before anything is asked.

`check-and-retry` is refused, for example, if only a judge can say whether a rule is broken.
"""

from collections.abc import Callable, Iterable, Sequence

from holdfast.drift.cases import Case
from holdfast.drift.prompt_rules import CaseRules, with_rules
from holdfast.drift.settings import Settings
from holdfast.errors import UsageError
from holdfast.measures.patterns import matches
from holdfast.methods import Method, compile_methods
from holdfast.methods.protocols import NeedsRules
from holdfast.models.checked_replies import check_retries


def check_in_dialogs(
    check: Callable[[Sequence[Method]], None],
    methods: Sequence[Method],
    cases: Sequence[Case],
    settings: Settings,
) -> None:
    """Refuses methods that cannot be applied in dialogs under these prompts.

    Args:
        check: refuses methods that the agent's model cannot apply, as `ChatModel.check` does.

    Raises:
        ModelError: the model cannot apply a method.
        UsageError: a method does not suit the prompts or the settings (`check_with_rules`).
    """
    check_with_rules(methods, cases, settings)
    check(compile_methods(methods).without_retries.methods)


def check_with_rules(methods: Sequence[Method], cases: Sequence[Case], settings: Settings) -> None:
    """Refuses methods that do not suit these prompts or settings, whatever the model is.

    Raises:
        UsageError: a method checks replies, but no rule can be checked in a reply, or a probe does
            not match its rule's `when`; a method chooses rules of a kind that no rule has; or the
            settings leave out the messages that a method works on.
    """
    check_retries(compile_methods(methods))
    for method in methods:
        if isinstance(method, NeedsRules):
            method.check_context(settings.window, settings.context == "summarise")
    for case in cases:
        with_rules(CaseRules(case), methods)
    if not any(CaseRules(case).are_checkable for case in cases):
        _refuse_checks_of_replies(methods)
    for case in cases:
        _refuse_unchecked_probes(methods, case)


def _refuse_unchecked_probes(methods: Iterable[Method], case: Case) -> None:
    """Refuses methods that check replies if a rule's `when` does not match its own probe.

    The rule would then be measured in replies that the method never checks.
    """
    checking = [
        method.name for method in methods if isinstance(method, NeedsRules) and method.reads_replies
    ]
    if not checking:
        return
    for rule in case.rules:
        for probe in rule.probes:
            occasion = rule.when.user
            if rule.is_shown_by_replies and occasion and not matches(occasion, probe, "i"):
                raise UsageError(
                    f"The rule {rule.id!r} of {case.id!r} has the probe {probe!r}, but"
                    f" {checking[0]} would not check the reply, as the rule's 'when' does not match"
                    f" this message: {occasion!r}; extend 'when', or change the probe.",
                    option="method",
                    value=probe,
                )


def _refuse_checks_of_replies(methods: Iterable[Method]) -> None:
    """Refuses methods that check replies, as no rule of the suite can be checked in them."""
    for method in methods:
        if isinstance(method, NeedsRules) and method.reads_replies:
            raise UsageError(
                f"{method.name} acts when a reply breaks a rule, but no rule of this suite can be"
                " checked in every reply: each needs a judge, tool calls or the reply to a probe;"
                " use repetition, or a reminder without when=broken.",
                option="method",
                value=method.name,
            )
