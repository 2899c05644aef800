"""The records of `holdfast check`: its terms, and the verdicts on prompts and rules, as
`summary.json` has them.

Verdicts are "pass", "fail" or "undecided". Fields that are excluded are for the report, and not in
the file.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import ConfigDict, Field, PlainSerializer

from holdfast.errors import ParameterOutOfRange, option
from holdfast.records.conversation import Conversation
from holdfast.records.mean_estimate import SummaryNumber, round_number
from holdfast.records.model import List, Number, RecordModel
from holdfast.validation import ranges

# With a larger share of lost replies, no prompt passes without a bar, and an undecided verdict is
# put down to the server.
MAX_LOST_SHARE = 0.1


def _named(name: str) -> Any:
    """Gives a field this name in the file."""
    return Field(validation_alias=name, serialization_alias=name)


@dataclass(frozen=True)
class Terms:
    """The terms under which prompts are checked.

    Args:
        min_stability: the bar, above 0 and below 1; None to only compare prompts with an earlier
            run.
        error: upper bound on the probability that any prompt gets a wrong verdict.
        budget: the most conversations per prompt.
        all_rules: decide every rule, not only whether a prompt fails: conversations continue after
            the first failing rule, and each rule gets its share of the prompt's error.
        smoke: look only for clear failures, with few conversations; a prompt that is undecided
            then counts as one without a clear failure.
    """

    min_stability: float | None = 0.9
    error: float = 0.05
    budget: int = 200
    all_rules: bool = False
    smoke: bool = False

    def __post_init__(self) -> None:
        if self.min_stability is not None:
            _require_share("min_stability", self.min_stability)
        _require_share("error", self.error)
        ranges.whole_number("check", "budget", self.budget, 1)

    def error_each(self, prompts: int, *, compared: bool) -> float:
        """Returns the probability with which each test may be wrong.

        A prompt that has a bar and is compared with an earlier run takes two tests.
        """
        tests = 2 if compared and self.min_stability is not None else 1
        return self.error / prompts / tests


def _require_share(name: str, value: float) -> None:
    """Refuses a term that is no share; guesses what a percentage was meant to be."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_number and 0 < value < 1:
        return
    text = f"{value:g}" if is_number else repr(value)
    refusal = f"check takes {option(name)} as a share above 0 and below 1, not {text}"
    if name == "min_stability" and value in (1, 100):
        raise ParameterOutOfRange(
            f"{refusal}: no number of conversations shows that a rule is always kept; give 0.99 or"
            " less."
        )
    # an error of 5 is probably meant as a percentage; a bar of 5 is not
    share = ranges.share_meant(value, min_percentage=1 if name == "error" else 10)
    hint = "." if share is None else f"; did you mean {share:g}?"
    raise ParameterOutOfRange(f"{refusal}{hint}")


class CheckedCell(RecordModel):
    """A rule in one round of a check, with bounds of its true mean that are valid at any time."""

    rule: str | None  # None if it is the prompt's only one
    round: Number
    mean: SummaryNumber | None  # None if nothing was measured
    low: SummaryNumber
    high: SummaryNumber


class RuleAgainstEarlierRun(RecordModel):
    """A rule compared with an earlier run, in the round in which its mean fell most.

    Attributes:
        rule: None if it is the prompt's only one.
        fell: whether its mean score is certainly lower in some round.
        before: the mean of the earlier run in that round, over the pairs that have both scores.
        now: that of the current run.
    """

    rule: str | None
    fell: bool
    round: Number
    before: float
    now: float


class PromptAgainstEarlierRun(RecordModel):
    """A prompt compared with an earlier run.

    Attributes:
        pairs: how many conversations of both runs were compared, in their order.
        expected: how many pairs the earlier run and the budget allow.
        alike: how many pairs have the same number, user model's prompt and starter.
        fell: whether some rule certainly fell, even if it is not certain which.
        rules: the rules with scores in both runs; certain falls come first, then the largest.
        not_compared: the rules without a pair of scores.
    """

    pairs: Number
    expected: Number
    alike: Number
    fell: bool
    rules: List[RuleAgainstEarlierRun]
    not_compared: List[str] = ()

    @property
    def complete(self) -> bool:
        """Whether all pairs are compared."""
        return self.pairs >= self.expected


def _comparison_json(comparison: PromptAgainstEarlierRun | None) -> dict[str, Any] | None:
    """Returns a comparison as summaries have it: rounded, while `check.json` has all digits."""
    if comparison is None:
        return None
    fields = comparison.to_json()
    for rule in fields["rules"]:
        rule |= {"before": round_number(rule["before"]), "now": round_number(rule["now"])}
    return fields


class RuleCheck(RecordModel):
    """The verdict on one rule of a prompt.

    Attributes:
        verdict: "pass" if every round certainly holds; "fail" if some round certainly does not,
            whatever the other rules do, or if the rule has certainly fallen.
        decided_by: the cell that decides the verdict; if none does, the one with the lowest mean;
            None if nothing was measured.
        fails_bar: whether it fails because of the bar, and not only because it has fallen.
        comparison: with an earlier run; None if the rule was not compared.
    """

    rule: str
    verdict: str
    decided_by: CheckedCell | None
    fails_bar: bool = Field(default=False, exclude=True)
    comparison: RuleAgainstEarlierRun | None = Field(default=None, exclude=True)


class PromptCheck(RecordModel):
    """The verdict on one prompt, and a description of all its conversations.

    Attributes:
        verdict: pass, fail or undecided. Without a bar, a prompt passes if it has not certainly
            fallen, all its rules have scores, and few replies were lost.
        decided_after: how many conversations the verdict rests on; may be fewer than all.
        described: how many there are in all, on which the cells are based.
        unanswered: scores that are missing, for whatever reason.
        lost: scores that are missing because the server gave no reply.
        first_failure: the first certain failure, of a rule that certainly fails if there is one;
            None if the bar is not failed.
        lowest: the cell with the lowest mean; None if nothing was measured.
        comparison: None without an earlier run that has the prompt.
        rules: empty if the prompt has only one rule.
        cells: round by round; their intervals only ever shrink.
        records: all conversations that were run, in order. Not in the file, as `error` is not.
        error: bound on the probability that an end of a cell's interval is ever wrong.
    """

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    id: str
    verdict: str
    decided_after: Annotated[Number, _named("conversations")]
    described: Number
    unanswered: Number
    lost: Number = 0
    first_failure: Annotated[CheckedCell | None, _named("let_go")]
    lowest: CheckedCell | None
    comparison: Annotated[
        PromptAgainstEarlierRun | None, PlainSerializer(_comparison_json), _named("fall")
    ]
    rules: List[RuleCheck]
    cells: List[CheckedCell]
    records: List[Conversation] = Field(default=(), exclude=True)
    error: float = Field(default=0, exclude=True)

    @property
    def unavailable(self) -> bool:
        """Whether it is undecided, and the server left many of its probes without a reply."""
        expected = self.described * len(self.cells)
        return self.verdict == "undecided" and too_many_lost(int(self.lost), expected)

    def low_from_start(self, terms: Terms) -> bool:
        """Whether the failing rule's mean is already below the bar in round 1."""
        if self.first_failure is None or terms.min_stability is None:
            return False
        first = next(cell for cell in self.cells if cell.rule == self.first_failure.rule)
        return first.mean is not None and first.mean < terms.min_stability

    def undecided_rules(self, terms: Terms) -> list[str]:
        """The undecided rules if every rule is to be decided, otherwise []."""
        undecided = [rule.rule for rule in self.rules if rule.verdict == "undecided"]
        return undecided if terms.all_rules else []


class CheckedMethod(RecordModel):
    """The method of a check and its terms, which `summary.json` and `check.json` have."""

    method: str
    min_stability: float | None
    error: float
    budget: Number
    all_rules: bool = False  # missing in files of version 0.2
    smoke: bool = False  # missing in files of version 0.3

    @property
    def terms(self) -> Terms:
        """The terms of the check.

        Raises:
            ParameterOutOfRange: a term has a value that no check can have.
        """
        return Terms(self.min_stability, self.error, self.budget, self.all_rules, self.smoke)


class Check(CheckedMethod):
    """A check: its method, its terms, and its verdicts in suite order."""

    prompts: List[PromptCheck]

    @classmethod
    def of(cls, method: str, terms: Terms, prompts: Iterable[PromptCheck]) -> "Check":
        """Returns the check of prompts under some terms."""
        return cls(method=method, **asdict(terms), prompts=tuple(prompts))


def too_many_lost(lost: int, expected: int) -> bool:
    """Whether the server gave too few replies for a verdict."""
    return lost > MAX_LOST_SHARE * expected
