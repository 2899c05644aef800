"""The parts of a suite: system prompts, their rules, and the probes of each rule.

For example, a suite with one case of one rule:

    Suite("mine", (Case("bot", "rules", "Answer in one sentence.", ("What is tea?",),
                        "one_sentence"),))
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Self

from holdfast.errors import UnknownName, UsageError
from holdfast.files import asset
from holdfast.measures import as_measure
from holdfast.measures.measure_specs import inner_specs, read_spec
from holdfast.measures.rule_kinds import Polarity, RuleKind
from holdfast.measures.turns import EVERY_TURN, NEVER_LIFTED, AssistantTurn, Unless, When

CATEGORIES = ("pattern", "multiple_choice", "persona", "memorization", "language")
NO_CATEGORY = "rules"  # the category of a case whose file gives none
# Measures of a reply's content rather than its form. The reply to a probe has that content; another
# reply has no occasion for it.
_CONTENT_MEASURES = {
    "contains",
    "mentions_number",
    "mentions_any_number",
    "number_near",
    "exact_phrase",
    "choice",
    "regex",
    "python",
    "judge",
    "ifeval_keywords_existence",
    "released_contains",
    "released_number_near",
    "released_words_present",
}


@dataclass(frozen=True)
class LabelledTurn:
    """A turn of a log, labelled by whether it follows a rule.

    Attributes:
        follows: the label.
        turn: what the assistant said and did.
        user: the message that the turn answers; "" if unknown.
    """

    follows: bool
    turn: AssistantTurn
    user: str = ""

    @property
    def excerpt(self) -> str:
        """The beginning of the assistant's text, or of its calls if it has no text."""
        calls = (f"{call.name} {dict(call.arguments)}" for call in self.turn.calls)
        return " ".join((self.turn.text or "; ".join(calls)).split())[:60]


@dataclass(frozen=True)
class Rule:
    """One thing that a system prompt asks for, and how to tell whether it is still followed.

    Attributes:
        id: unique within its case; None for the only rule of a case, which needs no id.
        probes: questions whose replies show whether the rule is followed (p_B in Li et al. 2024,
            section 3.1); () for a rule that only scores logs.
        measure: scores the reply to a probe (f_B); a `Measure`, or anything `as_measure` takes: a
            function from the reply's text to a number, or a spec such as "one_sentence".
        follows: replies that follow the rule; the measure must score them high.
        breaks: replies that break the rule; the measure must score them low.
        labelled_turns: turns with tool calls, labelled by whether they follow the rule.
        when: the turns of a log that the rule applies to; replies to probes are always scored.
        kind: what the rule is about (`rule_kinds.KINDS`), to group results by; None if not known.
        polarity: how the rule binds (`rule_kinds.POLARITIES`), likewise.
        text: the rule in one sentence, to remind the model with; "" if the suite has none.
        recalled: a measure that scores whether the reply to "what are your rules?" states this
            rule; None if the rule is not looked for in that reply.
        unless: words of the user that lift the rule for a turn; a breach there is `outweighed`.

    Raises:
        UsageError: the measure is missing or malformed.
    """

    id: str | None
    probes: tuple[str, ...]
    measure: Any
    follows: tuple[str, ...] = ()
    breaks: tuple[str, ...] = ()
    when: When = EVERY_TURN
    kind: RuleKind | None = None
    polarity: Polarity | None = None
    text: str = ""
    recalled: Any = None
    labelled_turns: tuple[LabelledTurn, ...] = ()
    unless: Unless = NEVER_LIFTED

    def __post_init__(self) -> None:
        object.__setattr__(self, "probes", _as_texts(self.probes, f"The rule {self.id!r}"))
        _make_tuples(self, "follows", "breaks", "labelled_turns")
        object.__setattr__(self, "measure", as_measure(self.measure))
        if self.recalled is not None:
            object.__setattr__(self, "recalled", as_measure(self.recalled))

    @property
    def labelled(self) -> tuple[LabelledTurn, ...]:
        """All labelled examples: the replies under `follows` and `breaks`, then the turns."""
        follows = (LabelledTurn(True, AssistantTurn(reply)) for reply in self.follows)
        breaks = (LabelledTurn(False, AssistantTurn(reply)) for reply in self.breaks)
        return (*follows, *breaks, *self.labelled_turns)

    def shown_to_judge(self, *, follows: bool) -> list[str]:
        """The texts of the examples that follow the rule, or break it, as a judge reads them."""
        labelled = (item for item in self.labelled if item.follows is follows)
        return [item.turn.text_with_calls() for item in labelled]

    @property
    def is_only_for_probes(self) -> bool:
        """Whether only the replies to its probes can show that the rule is broken.

        The measure of such a rule looks for content that other replies have no occasion for: a
        reply that does not give the name Luna does not break "Your name is Luna". A rule that says
        which turns it applies to is not one of these.
        """
        return bool(self.probes) and self.when == EVERY_TURN and is_about_content(self.measure.spec)

    @property
    def is_shown_by_turns(self) -> bool:
        """Whether a turn that it applies to suffices to score it, without a judge or a probe."""
        return not self.measure.judged and not self.is_only_for_probes

    @property
    def is_shown_by_replies(self) -> bool:
        """Whether the text of any reply that it applies to suffices to score it."""
        return self.is_shown_by_turns and not self.measure.of_turn


def is_about_content(spec: Any) -> bool:
    """Whether a measure, or one inside it, looks at a reply's content rather than its form."""
    name, arguments = read_spec(spec)
    return name in _CONTENT_MEASURES or any(map(is_about_content, inner_specs(arguments)))


@dataclass(frozen=True, init=False)
class Case:
    """A system prompt, and the rules in it.

    Attributes:
        id: unique within its suite.
        category: one of `CATEGORIES` in the suites `starter` and `core`, any text elsewhere.
        system_prompt: the instruction under test (s_B in Li et al. 2024, section 3.1).
        rules: at least one; a single one needs no id.
    """

    id: str
    category: str
    system_prompt: str
    rules: tuple[Rule, ...]

    def __init__(
        self,
        id: str,
        category: str,
        system_prompt: str,
        probes: Sequence[str] = (),
        measure: Any = None,
        follows: Sequence[str] = (),
        breaks: Sequence[str] = (),
        rules: Iterable[Rule] = (),
    ) -> None:
        """Builds a case from `rules`, or from the fields of a single rule, which has no id.

        Raises:
            UsageError: both or neither are given, a measure is missing, or two rules share an id.
        """
        rules = tuple(rules)
        if bool(rules) == (measure is not None):
            fields = "both rules and a measure" if rules else "neither a measure nor rules"
            raise UsageError(
                f"The case {id!r} has {fields}; give probes and a measure, or rules that have"
                " theirs."
            )
        if rules and (probes or follows or breaks):
            raise UsageError(
                f"The case {id!r} has probes or examples beside its rules; give these to its rules."
            )
        if not rules:
            probes = _as_texts(probes, f"The case {id!r}")
            rules = (Rule(None, probes, measure, tuple(follows), tuple(breaks)),)
        _check_ids([rule.id for rule in rules], id)
        set_field = partial(object.__setattr__, self)
        set_field("id", id)
        set_field("category", category)
        set_field("system_prompt", system_prompt)
        set_field("rules", rules)

    @property
    def rules_asked_together(self) -> tuple[tuple[Rule, ...], ...]:
        """The rules grouped by their probes: each rule of a group scores the same reply."""
        groups: dict[tuple[str, ...], list[Rule]] = {}
        for rule in self.rules:
            groups.setdefault(rule.probes, []).append(rule)
        return tuple(map(tuple, groups.values()))


@dataclass(frozen=True)
class Persona:
    """A user model with its own system prompt (s_A), which is not measured."""

    id: str
    system_prompt: str


@dataclass(frozen=True)
class Suite:
    """A set of cases and the starters (a_1) that open their conversations.

    Attributes:
        name: shown in tables and records.
        cases: at least one, each with its own id; the draws of a run depend on their order.
        starters: the first messages; () takes those that suit any system prompt.
        notes: sentences about the suite for readers of the results.
        personas: prompts for the user model, in place of another case of the suite.

    Raises:
        UsageError: there is no case, or two have the same id.
    """

    name: str
    cases: tuple[Case, ...]
    starters: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    personas: tuple[Persona, ...] = ()

    def __post_init__(self) -> None:
        _make_tuples(self, "cases", "notes", "personas")
        ids = [case.id for case in self.cases]
        if not ids:
            raise UsageError(f"The suite {self.name!r} has no case; give at least one.")
        if repeated := [name for name in ids if ids.count(name) > 1]:
            raise UsageError(
                f"The suite {self.name!r} has two cases with the id {repeated[0]!r}; give every"
                " case its own.",
                option="id",
                value=repeated[0],
            )
        starters = _as_texts(self.starters, f"The suite {self.name!r}", "starters")
        object.__setattr__(self, "starters", starters or generic_starters())

    def only(self, ids: Sequence[str]) -> Self:
        """The suite with only these cases, in this order.

        Raises:
            UnknownName: the suite has no case with one of these ids.
        """
        by_id = {case.id: case for case in self.cases}
        for name in ids:
            if name not in by_id:
                raise UnknownName("prompt", name, by_id, owner=f"The suite {self.name}")
        return replace(self, cases=tuple(by_id[name] for name in dict.fromkeys(ids)))

    def case_with_prompt(self, system_prompt: str) -> Case | None:
        """The case with this system prompt; None if there is none."""
        prompts = {case.system_prompt.strip(): case for case in self.cases}
        return prompts.get(system_prompt.strip())

    @property
    def fingerprint(self) -> str:
        """SHA-256, in hexadecimal, of everything in the suite that can change a result."""
        cases = [_fingerprinted(case) for case in self.cases]
        content: dict[str, Any] = {"starters": self.starters, "cases": cases}
        if any(len(group) > 1 for case in self.cases for group in case.rules_asked_together):
            content["replies"] = "shared"  # in earlier versions, each rule had its own reply
        if self.personas:
            content["personas"] = [[persona.id, persona.system_prompt] for persona in self.personas]
        canonical = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def personas_of(texts: Sequence[str]) -> tuple[Persona, ...]:
    """Builds personas with these system prompts, numbered from 1."""
    return tuple(Persona(f"persona-{number}", text) for number, text in enumerate(texts, start=1))


@cache
def generic_starters() -> tuple[str, ...]:
    """The starters of a suite that has none of its own; they suit any system prompt."""
    text = asset("suites/starters.txt")
    return tuple(line.strip() for line in text.splitlines() if line.strip())


def _check_ids(ids: Sequence[str | None], case: str) -> None:
    """Refuses rules without an id, or with the same id, unless there is only one rule."""
    if list(ids) == [None]:
        return
    for name in ids:
        if not name or ids.count(name) > 1:
            why = "which another rule has too" if name else "which is empty"
            raise UsageError(
                f"The case {case!r} has a rule with the id {name!r}, {why}; give every rule its"
                " own."
            )


def _as_texts(texts: Any, owner: str, name: str = "probes") -> tuple[str, ...]:
    """The texts of a field; refuses a single text, which would be asked letter by letter."""
    if isinstance(texts, str):
        raise UsageError(f"{owner} has {texts!r} as its {name}; give a tuple of texts.")
    return tuple(texts)


def _make_tuples(owner: object, *names: str) -> None:
    """Makes tuples of the fields of a frozen object that may have been given as lists."""
    for name in names:
        object.__setattr__(owner, name, tuple(getattr(owner, name)))


def _fingerprinted(case: Case) -> list[Any]:
    """Everything in a case that can change a result, for the fingerprint of its suite."""
    first = case.rules[0]
    # a rule without an id has the same content as before cases could have several rules
    content: list[Any] = [first.probes, first.measure.spec]
    if first.id is not None:
        content = [[[rule.id, rule.probes, rule.measure.spec] for rule in case.rules]]
    texts = [
        [rule.text, None if rule.recalled is None else rule.recalled.spec]
        for rule in case.rules
        if rule.text or rule.recalled is not None
    ]
    return [case.id, case.category, case.system_prompt, *content, *texts]
