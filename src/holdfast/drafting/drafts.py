"""A drafted rule, and the reasons why a line does not become one.

For example:

    "Never edit `vendor/`."  -> Draft("file", "prohibition", measure("file_not_touched", ...))
    "Write clean code."      -> NEEDS_A_JUDGE, an Undrafted
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.measures.rule_kinds import Polarity, RuleKind


@dataclass(frozen=True)
class MeasureSpec:
    """A measure and its arguments."""

    name: str
    arguments: Mapping[str, Any]

    @property
    def entry(self) -> dict[str, Any]:
        """The measure as a suite writes it: {"name": "at_most_words", "count": 40}."""
        values = {
            argument: value.entry if isinstance(value, MeasureSpec) else value
            for argument, value in self.arguments.items()
        }
        return {"name": self.name, **values}


def measure(name: str, /, **arguments: Any) -> MeasureSpec:
    """A measure by its name, with its arguments."""
    return MeasureSpec(name, arguments)


@dataclass(frozen=True)
class Draft:
    """A rule that a line states.

    Args:
        measure: the measure that decides whether the rule is kept.
        when: the turns that the rule applies to, as a suite writes them; {} for all.
        probes: the questions that the rule applies to; () for any question.
        follows: replies or turns that keep the rule, as a suite writes them.
        breaks: replies or turns that break it.
        proposed_by: the name of the model that proposed the rule; "" if a reader found it.
        unless: the words of the user that lift the rule for a turn, as a suite writes them; {} if
            none do.
        untested: the parts of the line that neither this rule nor another one of it tests.
    """

    kind: RuleKind
    polarity: Polarity
    measure: MeasureSpec
    when: Mapping[str, str] = field(default_factory=dict)
    probes: tuple[str, ...] = ()
    follows: tuple[str | dict[str, Any], ...] = ()
    breaks: tuple[str | dict[str, Any], ...] = ()
    proposed_by: str = ""
    unless: Mapping[str, str] = field(default_factory=dict)
    untested: tuple[str, ...] = ()


@dataclass(frozen=True)
class Undrafted:
    """Why a line becomes no rule of the suite."""

    reason: str


NOT_AN_INSTRUCTION = Undrafted("not an instruction")
NO_MEASURE = Undrafted(
    "no measure was found for it; if one of `holdfast measures` can check it, write the rule"
    " yourself"
)
NEEDS_A_JUDGE = Undrafted("needs a judge")
A_PREFERENCE = Undrafted("a preference, which allows exceptions")
CONDITIONAL = Undrafted(
    "it holds only under a condition; write it yourself, if `when:` or a measure such as"
    " `changes_together` can express it"
)
ON_OCCASION = Undrafted(
    "it applies only on certain occasions; write it yourself, with `when:` and its own probes"
)
AN_EXCEPTION = Undrafted("it names an exception, which no measure can allow for")
