"""The rules of a suite that a hook can judge: quickly, and without a model.

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
from holdfast.measures.measure_specs import Measure, build_checked
from holdfast.measures.registry import CODE
from holdfast.measures.turns import Unless, When
from holdfast.version import __version__

if TYPE_CHECKING:
    from holdfast.drift.cases import Case, Rule


@dataclass(frozen=True)
class HookRule:
    """A rule, and the measure that tells whether a turn breaks it.

    Args:
        id: unique among the rules of its suite.
        text: the words with which the model is reminded of the rule.
        unless: the words of the user that lift the rule for a turn.
    """

    id: str
    text: str
    when: When
    measure: Measure
    unless: Unless


@dataclass(frozen=True)
class HookRules:
    """The rules of a suite with one case.

    Args:
        fingerprint: the SHA-256 of the suite's file; rules that have changed are judged anew.
    """

    rules: tuple[HookRule, ...]
    fingerprint: str

    @property
    def need_earlier_calls(self) -> bool:
        """Whether a rule needs the tool calls of earlier turns, or their last text."""
        return any(rule.measure.reads_earlier for rule in self.rules)


def load_hook_rules(spec: str, allow_code: bool = False, check: bool = False) -> HookRules:
    """Loads the rules of a suite.

    Args:
        spec: the suite: the name of one of ours, or a YAML file.
        check: whether the measures are tested on their examples, which takes too long for a hook.

    Raises:
        UsageError: the suite cannot be read, has several cases, or has a rule that a hook cannot
            judge.
    """
    return HookRules(_load(spec, allow_code, check), _fingerprint(spec))


def cached_hook_rules(spec: str, folder: Path, allow_code: bool = False) -> HookRules:
    """Loads the rules of a suite, from the cache if an earlier call loaded the same file.

    The measures are not tested on their examples, as `holdfast remind --install` has done so.

    Args:
        spec: the suite: the name of one of ours, or a YAML file.
        folder: the folder of the cache. Rules with the user's Python functions are not cached.

    Raises:
        UsageError: the suite cannot be read, has several cases, or has a rule that a hook cannot
            judge.
    """
    fingerprint = _fingerprint(spec)
    file = folder / f"rules-{__version__}-{fingerprint[:32]}.json"
    rules = _read_cache(file)
    if not rules:
        rules = _load(spec, allow_code, check=False)
        if not any(rule.measure.name == CODE for rule in rules):
            _write_cache(file, rules)
    return HookRules(rules, fingerprint)


def _fingerprint(spec: str) -> str:
    file = Path(spec)
    content = file.read_bytes() if file.is_file() else spec.encode()
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True)
class _CachedRule:
    """The JSON of a rule in the cache."""

    id: str
    text: str
    when: dict[str, str]
    measure: str
    arguments: dict[str, Any]
    unless: dict[str, str]

    @classmethod
    def of(cls, rule: HookRule) -> Self:
        measure = rule.measure
        return cls(
            id=rule.id,
            text=rule.text,
            when=dict(vars(rule.when)),
            measure=measure.name,
            arguments=dict(measure.arguments),
            unless=dict(vars(rule.unless)),
        )

    def build(self) -> HookRule:
        measure = build_checked(self.measure, self.arguments)
        return HookRule(self.id, self.text, When(**self.when), measure, Unless(**self.unless))


def _read_cache(file: Path) -> tuple[HookRule, ...]:
    """The rules in a file of the cache; () if the file is missing or damaged."""
    try:
        return tuple(_CachedRule(**fields).build() for fields in json.loads(file.read_bytes()))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return ()


def _write_cache(file: Path, rules: tuple[HookRule, ...]) -> None:
    content = json.dumps([vars(_CachedRule.of(rule)) for rule in rules])
    with contextlib.suppress(OSError):  # the next call reads the suite again
        write_private(file, content)


def _load(spec: str, allow_code: bool, check: bool) -> tuple[HookRule, ...]:
    from holdfast.drift.suites import load_suite
    from holdfast.logs.loaded_files import refuse_rules_file

    refuse_rules_file(spec)
    suite = load_suite(spec, allow_code=allow_code, probed=False, check=check)
    if len(suite.cases) > 1:
        raise UsageError(
            f"The suite {spec} has {len(suite.cases)} cases, but a session has one set of rules;"
            " give a suite with one case.",
            option="suite",
            value=spec,
        )
    (case,) = suite.cases
    return tuple(_hook_rules(spec, case))


def _hook_rules(spec: str, case: Case) -> Iterator[HookRule]:
    from holdfast.drift.rule_texts import sentence_of_rule

    for rule in case.rules:
        name = rule.id or case.id
        if obstacle := _obstacle(rule):
            raise UsageError(
                f"A hook cannot judge the rule {name!r} of {spec}, as {obstacle}; leave it to"
                " `holdfast logs` and `holdfast check`.",
                option="suite",
                value=name,
            )
        text = rule.text or sentence_of_rule(case, rule) or rule.id or case.system_prompt
        yield HookRule(name, " ".join(text.split()), rule.when, rule.measure, rule.unless)


def _obstacle(rule: Rule) -> str:
    """Why a hook cannot judge a rule, as a clause; "" if it can."""
    if rule.measure.judged:
        return "it needs a judge, and a hook does not ask a model"
    if rule.is_only_for_probes:
        return "it is for the answers to its probes, and has no `when` that names its turns"
    if rule.measure.loads:
        return f"its measure {rule.measure.name!r} takes longer to load than a hook may take"
    return ""
