"""The rules of a suite that a hook can judge: at once, and without a model.

Reading a suite takes as long as everything else that a hook does, so its rules are kept in the
user's cache until the file changes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from holdfast.coding_agents.session_state import write_private
from holdfast.errors import UsageError
from holdfast.measures.measure_specs import Measure, registered
from holdfast.measures.registry import CODE
from holdfast.measures.turns import When
from holdfast.version import __version__

if TYPE_CHECKING:
    from holdfast.drift.cases import Case, Rule


@dataclass(frozen=True)
class HookRule:
    """A rule, and how to tell whether a turn breaks it.

    Args:
        id: unique among the rules of its suite.
        text: as the model is reminded of it.
    """

    id: str
    text: str
    when: When
    measure: Measure


@dataclass(frozen=True)
class HookRules:
    """The rules of a suite with one case.

    Args:
        fingerprint: of the suite's file; rules that were changed are judged anew.
    """

    rules: tuple[HookRule, ...]
    fingerprint: str

    @property
    def need_earlier_calls(self) -> bool:
        """Whether one of them needs the tool calls of earlier turns, or the text before."""
        return any(rule.measure.reads_earlier for rule in self.rules)


def load_hook_rules(
    spec: str, allow_code: bool = False, check: bool = False, cache: Path | None = None
) -> HookRules:
    """Loads the rules of a suite.

    Args:
        spec: as for `load_suite`.
        check: whether the measures are tested on their examples, which takes too long for a hook.
        cache: the folder where the rules are kept for the next call.

    Raises:
        UsageError: the suite cannot be read, has several cases, or has a rule that a hook cannot
            judge.
    """
    file = Path(spec)
    content = file.read_bytes() if file.is_file() else spec.encode()
    fingerprint = hashlib.sha256(content).hexdigest()
    kept = None if cache is None else cache / f"rules-{__version__}-{fingerprint[:32]}.json"
    if kept is not None and (rules := _read_kept(kept)):
        return HookRules(rules, fingerprint)
    rules = _load(spec, allow_code, check)
    if kept is not None and not any(rule.measure.name == CODE for rule in rules):
        with contextlib.suppress(OSError):  # the next call reads the suite again
            _keep(kept, rules)
    return HookRules(rules, fingerprint)


@dataclass(frozen=True)
class _KeptRule:
    """A rule as the cache has it, in JSON."""

    id: str
    text: str
    when: dict[str, str]
    measure: str
    arguments: dict[str, Any]

    @classmethod
    def of(cls, rule: HookRule) -> Self:
        measure = rule.measure
        when = dict(vars(rule.when))
        return cls(rule.id, rule.text, when, measure.name, dict(measure.arguments))

    def read(self) -> HookRule:
        measure = registered(self.measure, self.arguments)
        return HookRule(self.id, self.text, When(**self.when), measure)


def _read_kept(file: Path) -> tuple[HookRule, ...]:
    """The rules that were kept; () if there are none, or none that can be read."""
    try:
        return tuple(_KeptRule(**rule).read() for rule in json.loads(file.read_bytes()))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return ()


def _keep(file: Path, rules: tuple[HookRule, ...]) -> None:
    write_private(file, json.dumps([vars(_KeptRule.of(rule)) for rule in rules]))


def _load(spec: str, allow_code: bool, check: bool) -> tuple[HookRule, ...]:
    from holdfast.drift.suites import load_suite

    suite = load_suite(spec, allow_code=allow_code, probed=False, check=check)
    if len(suite.cases) > 1:
        raise UsageError(
            f"The suite {spec} has {len(suite.cases)} cases, and a session has one set of rules;"
            " give a suite with one case.",
            option="suite",
            value=spec,
        )
    (case,) = suite.cases
    return tuple(_rules(spec, case))


def _rules(spec: str, case: Case) -> Iterator[HookRule]:
    from holdfast.drift.rule_texts import sentence_of

    for rule in case.rules:
        if obstacle := _obstacle(rule):
            raise UsageError(
                f"The rule {rule.id or case.id!r} of {spec} {obstacle}; leave it to `holdfast logs`"
                " and `holdfast check`.",
                option="suite",
                value=rule.id or case.id,
            )
        text = rule.text or sentence_of(case, rule) or rule.id or case.system_prompt
        yield HookRule(rule.id or case.id, " ".join(text.split()), rule.when, rule.measure)


def _obstacle(rule: Rule) -> str:
    """Why a hook cannot judge a rule; "" if it can."""
    if rule.measure.judged:
        return "needs a judge, and a hook asks no model"
    if rule.is_only_for_probes:
        return "is for the answers to its probes, and does not say with `when` for which turns"
    if rule.measure.loads:
        return f"has the measure {rule.measure.name!r}, which loads for longer than a hook may take"
    return ""
