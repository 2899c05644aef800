"""A drafted rule, and the reasons why a line is none."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.measures.rule_kinds import Polarity, RuleKind

Spec = dict[str, Any]


@dataclass(frozen=True)
class Draft:
    """A rule that a line says.

    Args:
        measure: the spec of the measure that decides it.
        when: the turns that it applies to, as a suite has them; {} for all.
        probes: questions to which it applies; () if it does to any.
        follows, breaks: replies or turns that do and do not keep it, as a suite has them.
        proposed_by: the name of the model that proposed it; "" if a form did.
    """

    kind: RuleKind
    polarity: Polarity
    measure: Spec
    when: Mapping[str, str] = field(default_factory=dict)
    probes: tuple[str, ...] = ()
    follows: tuple[str | dict[str, Any], ...] = ()
    breaks: tuple[str | dict[str, Any], ...] = ()
    proposed_by: str = ""


@dataclass(frozen=True)
class Undrafted:
    """Why a line is no rule of the suite."""

    reason: str


NOT_AN_INSTRUCTION = Undrafted("not an instruction")
NO_MEASURE = Undrafted("no measure reads this, or not from these words")
NEEDS_A_JUDGE = Undrafted("needs a judge")
A_PREFERENCE = Undrafted("a preference, which allows exceptions")
CONDITIONAL = Undrafted("it holds only under a condition, which `when:` cannot express")
ON_OCCASION = Undrafted("it is for an occasion; write it by hand, with `when:` and its own probes")
AN_EXCEPTION = Undrafted("it names an exception, which no measure reads")
