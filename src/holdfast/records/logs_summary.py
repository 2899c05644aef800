"""The results of `holdfast logs` in `summary.json`: how well each rule is kept, and why rules are
broken.

Fields that are excluded are for the report, and not in the file.
"""

from typing import NamedTuple

from pydantic import Field, SkipValidation

from holdfast.records.mean_estimate import SummaryEstimate, SummaryEstimateFrom, SummaryNumber
from holdfast.records.model import List, Number, Optional, RecordModel


class FirstBroken(RecordModel):
    """When dialogs first break a rule (Kaplan and Meier 1958); a dialog that ends without breaking
    it is censored.
    """

    dialogs: Number
    broken: Number  # dialogs that break the rule
    median_turn: int | None  # the first turn after which at most half are unbroken
    turns: List[int]  # at which some dialog first breaks the rule
    unbroken: List[SummaryNumber]  # the share of dialogs that are unbroken after each of them
    low: List[SummaryNumber]  # the 95% interval up to `high`, on the log(-log) scale
    high: List[SummaryNumber]
    # whether some dialogs ended unbroken before the median
    estimated: bool = Field(default=False, exclude=True)


class AgainstEarlierLogs(RecordModel):
    """A rule compared with earlier logs."""

    before: SummaryEstimate
    difference: SummaryEstimate  # now minus before
    certain: int  # -1 or +1 if it is certainly lower or higher, else 0


class CauseCounts(RecordModel):
    """How many breaches have each cause (docs/logs.md, "Why")."""

    never_sent: Number
    removed: Number
    outweighed: Number
    present: Number
    unknown: Number
    present_recalled: Optional[int] = None  # with --model: a model states the rule when asked
    present_not_recalled: Optional[int] = None


class KeptInSummaries(RecordModel):
    """The effects of compactions on a rule."""

    rule: str
    compactions: Number  # how many there were with the rule in the context before
    in_summary: Number  # how many of them left a text that states the rule
    in_context: Number  # after how many of them the rule was still in the context


class CompactionEffect(RecordModel):
    """Adherence before and after the compactions of dialogs."""

    dialogs: Number  # those that have any
    compactions: Number
    before: SummaryEstimate  # over dialogs, between the previous compaction and this one
    after: SummaryEstimate  # between this compaction and the next
    change: SummaryEstimate
    kept: List[KeptInSummaries]


class ContextSummaries(RecordModel):
    """Why rules were broken, and how their adherence over dialogs depends on the context.

    A list is empty if the folder is of an earlier version that did not record the context.
    """

    why: CauseCounts
    by_tokens_since: List[SummaryEstimateFrom]  # since the rule was last said in the context
    by_calls: List[SummaryEstimateFrom]  # tool calls so far
    by_compactions: List[SummaryEstimateFrom]  # compactions so far
    by_kind: dict[str, SummaryEstimate]
    by_polarity: dict[str, SummaryEstimate]
    compactions: CompactionEffect | None  # None if no dialog has any


class BrokenTurn(NamedTuple):
    """A turn that broke a rule."""

    dialog: int  # the row in the run's records
    turn: int  # its number
    score: float


class LoggedRule(RecordModel):
    """How well one rule is kept in logs, or the rules of a category.

    Attributes:
        applied: the number of scores. A rule without any, because the turns it applies to were cut
            off, is undecided.
        turns: the number of turns under the rule's prompts, whether or not it applied.
        adherence: the mean over dialogs, each counted as the mean of its turns.
        bounds: bounds of the true mean; all tests together have the check's error.
        change: from the first to the last turn the rule applied to, over dialogs with at least two;
            in a category, the mean over the rules with at least two.
        by_turn, by_tokens: the means in the bins of `analysis.adherence`; bins without a turn are
            left out.
        verdict: pass, fail or undecided; None without a bar or earlier logs.
        for_probes: whether the rule is made for the answers to probes and has no `when`. Its scores
            in a log then show nothing, and it is undecided.
        against: the comparison with earlier logs; None if there are none, or if they cannot be
            compared.
        why: the causes of the turns that broke it.
        broken: the turns that broke it, worst first.
        uncompared: why the rule cannot be compared with the earlier logs; "" if it can, or if there
            are none.
    """

    rule: str
    applied: Number
    turns: Number
    adherence: SummaryEstimate
    bounds: List[SummaryNumber]
    change: SummaryEstimate
    by_turn: List[SummaryEstimateFrom]
    by_tokens: List[SummaryEstimateFrom]
    first_broken: FirstBroken
    broken_turns: Number
    verdict: str | None
    for_probes: bool
    against: AgainstEarlierLogs | None
    why: Optional[CauseCounts] = None
    broken: SkipValidation[tuple[BrokenTurn, ...]] = Field(default=(), exclude=True)
    uncompared: str = Field(default="", exclude=True)

    @property
    def is_judged(self) -> bool:
        """Whether the rule was judged on any turn."""
        return self.applied > 0


class LogsResult(RecordModel):
    """The results of `holdfast logs`."""

    min_adherence: float | None  # the bar; None without one
    error: float  # bound on the probability that any verdict is wrong
    rules: List[LoggedRule]
    unmatched: Number  # dialogs under none of the suite's prompts
    problems: List[str]  # sentences on what was not read, or was left out
    context: Optional[ContextSummaries] = None
