"""The model of `summary.json`, the results of a run in one small file for other programs.

docs/records.md describes the file; `holdfast.analysis.summary` writes it. A name ends in `Summary`
if `holdfast.analysis` has a type of the same thing with its records and matrices: of a
`PromptCheck` there, `PromptCheckSummary` has what the file says. Fields that are excluded are for
the report, and not in the file.
"""

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field, PlainSerializer

from holdfast.records.mean_estimate import (
    SummaryDifference,
    SummaryEstimate,
    SummaryEstimateFrom,
    SummaryNumber,
    round_number,
)
from holdfast.records.model import List, Number, Optional, RecordModel

NAME = "summary.json"
SCHEMA = 2

Json = dict[str, Any]


class MethodDifferences(RecordModel):
    """The differences from another method, on the same pairs of prompts and the same draws."""

    last_round: SummaryDifference
    over_all_rounds: SummaryDifference


class AgainstFirstMethod(RecordModel):
    """A method compared with the first method, on the conversations that both have."""

    method: str  # the first method
    pairs: Number  # of conversations
    stability: Optional[MethodDifferences] = None
    adoption: Optional[MethodDifferences] = None


class RuleSummary(RecordModel):
    """The results on one rule under one method."""

    rule: str
    n: Number
    stability_by_round: List[SummaryEstimate]
    first_broken_by_round: List[int]
    kept_throughout: int
    kept_in_any_round: int
    never_followed: bool
    change: SummaryDifference
    lower_from_round: int | None
    lower_in_rounds: List[int]
    against: MethodDifferences | None


class PromptSummary(RecordModel):
    """The results on one system prompt under one method."""

    id: str
    category: str | None
    n: Number  # conversations in which the agent had it
    stability_by_round: List[SummaryNumber | None]  # None where it was not measured
    stability: SummaryNumber | None  # over all rounds
    # from the first round that was measured to the last, on what was judged in both
    change: SummaryNumber | None = None
    adopted_last_round: SummaryNumber | None  # over the conversations whose user had it
    n_adopted: Number  # how many conversations these are
    text: str = Field(default="", exclude=True)
    judge: str = Field(default="", exclude=True)  # the model that scores it; "" if none does

    @property
    def first(self) -> float:
        """The mean of the first round that was measured."""
        return next(mean for mean in self.stability_by_round if mean is not None)

    @property
    def last(self) -> float:
        """The mean of the last round that was measured."""
        return next(mean for mean in reversed(self.stability_by_round) if mean is not None)


class BaselineScores(RecordModel):
    """Scores in round 1 with and without the system prompt, on the same questions."""

    name: str  # of a measure, of a case, or "all"
    n: Number
    prompted: SummaryEstimate
    unprompted: SummaryEstimate
    difference: SummaryDifference
    verdict: str


class BaselineSummary(RecordModel):
    """The effect of the system prompts, as far as a baseline shows it."""

    all: BaselineScores
    measures: List[BaselineScores]
    cases: List[BaselineScores]


class WithoutCollapsed(RecordModel):
    """The results of the conversations that did not break down."""

    conversations: Number
    stability_by_round: List[SummaryEstimate]
    change: SummaryDifference
    against: AgainstFirstMethod | None


class CollapseSummary(RecordModel):
    """How many of the turns that models wrote are broken; shares from 0 to 1."""

    turns: Number
    cut: SummaryNumber | None
    own: SummaryNumber | None  # repeated from an earlier turn of the same speaker
    other: SummaryNumber | None  # repeated from an earlier turn of the other speaker
    loops: SummaryNumber | None  # repeated from earlier in the turn itself
    broken: SummaryNumber | None  # repeated in any of these ways
    collapsed_from_round: dict[str, int]  # by the conversation's number
    without_collapsed: WithoutCollapsed | None


class TruncationSummary(RecordModel):
    """The rounds from which a server read less than it was sent."""

    verdict: str
    from_round: dict[str, int]  # by the conversation's number
    most_prompt_tokens: int | None
    canary_before: SummaryEstimate
    canary_after: SummaryEstimate


class ScoresAroundSummary(RecordModel):
    """The scores of a rule before and after the first summary of older rounds, over the
    conversations that have both.
    """

    rule: str | None  # None for all rules together
    before: SummaryEstimate
    after: SummaryEstimate
    difference: SummaryDifference


class MethodSummary(RecordModel):
    """The results of a drift run under one method."""

    method: str
    outcome: str  # the value of an `analysis.outcome.Outcome`
    conversations: Number
    unscored: dict[str, int]
    by_round: dict[str, List[SummaryEstimate]]
    over_all_rounds: dict[str, SummaryEstimate]
    change: dict[str, SummaryDifference]
    against: AgainstFirstMethod | None
    categories: dict[str, dict[str, List[SummaryEstimate]]]
    prompts: List[PromptSummary]
    rules: List[RuleSummary]
    accuracy: dict[str, List[SummaryEstimate]] | None
    baseline: BaselineSummary | None
    collapse: CollapseSummary
    truncation: TruncationSummary | None
    summarised: List[ScoresAroundSummary]


class TaskResult(RecordModel):
    """The results of `holdfast tasks` on one task under one prompt or method."""

    task: str
    variant: str
    samples: Number
    scores: dict[str, SummaryEstimate]  # by metric
    fluency: SummaryNumber | None
    excluded: bool  # whether comparisons leave it out, as its replies are not fluent


class RankedHead(RecordModel):
    """A head in a profile."""

    layer: Number
    head: Number
    score: SummaryNumber  # with this head steered alone
    gain: SummaryDifference  # over the model without steering


class ProfileResult(RecordModel):
    """The results of `holdfast profile`."""

    unsteered: SummaryNumber
    ranking: List[RankedHead]  # best first


class CapabilityResult(RecordModel):
    """The points scored under one method in the capability half of a calibration."""

    method: str
    score: SummaryEstimate


class CalibratedSetting(RecordModel):
    """The gain and the cost of one setting in a calibration."""

    method: str
    front: bool  # whether no other setting is better in both stability and capability
    stability: SummaryEstimate
    gain: SummaryDifference  # in stability over no method
    capability: SummaryEstimate
    chance: float | None  # points scored by guessing
    points_lost: SummaryDifference  # of capability, against no method
    broken: SummaryEstimate | None  # the share of broken replies
    broken_more: SummaryDifference  # percentage points beyond those of no method
    # minus the log-probability per token of replies under the model without methods
    reply_nats: SummaryEstimate | None
    tokens_forwarded: Number


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


def _comparison_json(comparison: PromptAgainstEarlierRun | None) -> Json | None:
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
        verdict: "pass" if every round certainly holds; "fail" if the prompt fails and a round of
            this rule certainly does not hold, or if the rule has certainly fallen.
        decided_by: the cell that decides the verdict; if none does, the one with the lowest mean;
            None if nothing was measured.
        comparison: with an earlier run; None if the rule was not compared.
    """

    rule: str
    verdict: str
    decided_by: CheckedCell | None
    comparison: RuleAgainstEarlierRun | None = Field(default=None, exclude=True)


class PromptCheckSummary(RecordModel):
    """The verdict of `holdfast check` on one prompt."""

    id: str
    verdict: str  # pass, fail or undecided
    conversations: Number  # how many the verdict rests on
    described: Number  # how many there are in all, on which the cells are based
    unanswered: Number  # scores that are missing, for whatever reason
    lost: Number = 0  # scores that are missing because the server gave no reply
    let_go: CheckedCell | None  # the first cell that certainly fails
    lowest: CheckedCell | None  # the cell with the lowest mean
    fall: Annotated[PromptAgainstEarlierRun | None, PlainSerializer(_comparison_json)]
    rules: List[RuleCheck]
    cells: List[CheckedCell]


class CheckSummary(RecordModel):
    """The terms and the verdicts of `holdfast check`."""

    method: str
    min_stability: float | None
    error: float
    budget: Number
    all_rules: bool
    smoke: bool = False
    prompts: List[PromptCheckSummary]


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


class LoggedRule(RecordModel):
    """How well one rule is kept in logs."""

    rule: str
    applied: Number  # turns that it applied to
    turns: Number  # all turns under its prompts
    adherence: SummaryEstimate  # over dialogs
    bounds: List[SummaryNumber]  # of the true mean; all tests together have the check's error
    change: SummaryEstimate  # from the first to the last turn that it applied to
    by_turn: List[SummaryEstimateFrom]
    by_tokens: List[SummaryEstimateFrom]
    first_broken: FirstBroken
    broken_turns: Number
    verdict: str | None  # pass, fail or undecided; None without a bar or earlier logs
    for_probes: bool  # whether the rule is made for the answers to probes; a log shows nothing then
    against: AgainstEarlierLogs | None
    why: Optional[CauseCounts] = None  # of the turns that broke it


class LogsResult(RecordModel):
    """The results of `holdfast logs`."""

    min_adherence: float | None
    error: float
    rules: List[LoggedRule]
    unmatched: Number  # dialogs under none of the suite's prompts
    problems: List[str]  # sentences on what was not read, or was left out
    context: Optional[ContextSummaries] = None


Results = (
    List[MethodSummary]
    | List[TaskResult]
    | List[CalibratedSetting]
    | List[CapabilityResult]
    | ProfileResult
    | LogsResult
    | Any  # of traces and geometries
)


class Summary(RecordModel):
    """The results of a run.

    Attributes:
        version: of the file; it changes when a field changes its meaning or is removed.
        records: how many records the results were derived from.
        results: for a drift run, one entry per method, the unsteered one first; for `tasks`,
            `profile`, `calibrate` and `logs`, their own models; for `trace` and `geometry`, JSON.
        check: the verdicts of `holdfast check`; None for other commands.
    """

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    version: int = Field(default=SCHEMA, alias="schema")
    command: str
    identity: Json
    records: Number
    results: Annotated[Results, Field(union_mode="left_to_right")]
    check: Optional[CheckSummary] = None

    @property
    def methods(self) -> tuple[MethodSummary, ...]:
        """The results of a drift run by method; () for other commands."""
        results = self.results if isinstance(self.results, tuple) else ()
        return tuple(item for item in results if isinstance(item, MethodSummary))

    @property
    def outcome(self) -> str | None:
        """The outcome that the title of a drift run states; None for other commands."""
        return self.methods[0].outcome if self.methods else None

    def to_json(self) -> Json:
        return self.model_dump(by_alias=True)


def read_summary(folder: Path) -> Summary | None:
    """Reads the summary in a folder; None if it is missing or cannot be read."""
    try:
        return Summary.model_validate(json.loads((folder / NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None
