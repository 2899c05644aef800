"""Which rules of a suite replies are scored by, and why the others are left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from holdfast.drift.cases import Case, Rule
from holdfast.plurals import count_of


class NotScored(Enum):
    """Why no reply is scored by a rule; the values are used in metrics."""

    JUDGE = "needs_judge"
    NO_WHEN = "no_when"  # the rule is made for the answers to its probes

    @classmethod
    def of(cls, rule: Rule) -> NotScored | None:
        """Returns the reason for a rule; None if replies are scored by it."""
        if rule.is_shown_by_turns:
            return None
        return cls.JUDGE if rule.measure.judged else cls.NO_WHEN


_EXPLANATIONS = {
    NotScored.JUDGE: "Rules that need a judge are not scored",
    NotScored.NO_WHEN: (
        "Rules without `when:` are not scored (with `when: {user: '.'}`, a rule is scored in every"
        " turn)"
    ),
}


@dataclass(frozen=True)
class SuiteRule:
    """A rule of a suite.

    Attributes:
        rule: its id; "" for the only rule of a case.
        not_scored: why no reply is scored by it; None if replies are.
    """

    case: str
    rule: str
    text: str
    not_scored: NotScored | None

    @property
    def name(self) -> str:
        """`CASE/RULE`, or only the case for its only rule."""
        return f"{self.case}/{self.rule}" if self.rule else self.case


def rules_of_case(case: Case) -> list[SuiteRule]:
    """Returns the rules of a case."""
    return [SuiteRule(case.id, rule.id or "", rule.text, NotScored.of(rule)) for rule in case.rules]


def which_are_scored(rules: Sequence[SuiteRule]) -> str:
    """Says in sentences how many rules are scored, which are not, and why."""
    count = sum(rule.not_scored is None for rule in rules)
    verb = "is" if count == 1 else "are"
    sentences = [f"{count} of {count_of(len(rules), 'rule')} {verb} scored."]
    for reason in NotScored:
        if names := [rule.name for rule in rules if rule.not_scored is reason]:
            sentences.append(f"{_EXPLANATIONS[reason]}: {', '.join(names)}.")
    return " ".join(sentences)
