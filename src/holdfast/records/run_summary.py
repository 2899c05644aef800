"""The model of `summary.json`, the results of a run in one small file for other programs.

docs/records.md describes the file; `holdfast.analysis.summary` writes it. Fields that are excluded
are for the report, and not in the file.
"""

import json
import math
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import ConfigDict, Field, SkipValidation

from holdfast.records.check_records import Check
from holdfast.records.identity import DefaultPrompt
from holdfast.records.mean_estimate import (
    SummaryDifference,
    SummaryEstimate,
    SummaryEstimateFrom,
    SummaryNumber,
)
from holdfast.records.model import List, Number, Optional, RecordModel

NAME = "summary.json"
SCHEMA = 2

Json = dict[str, Any]
# a round by the conversation's number, which is a text in JSON
ByConversation = dict[Annotated[int, Field(strict=False)], int]


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

    name: str  # of a measure, of a case, of a rule of a case, or "all"
    n: Number
    prompted: SummaryEstimate
    unprompted: SummaryEstimate
    difference: SummaryDifference
    verdict: str
    case: str = Field(default="", exclude=True)  # "" in rows of several cases
    rule: str | None = Field(default=None, exclude=True)  # None if the case has only one


class Baseline(RecordModel):
    """The effect of the system prompts, as far as a baseline shows it.

    Attributes:
        measures: a row for each measure, the least discriminating first.
        cases: a row for each case, in the same order; if cases have several rules, for each rule.
        by_rule: whether cases have several rules.
        default: the system prompt that the template inserts; None if it inserts none.
    """

    all: BaselineScores
    measures: List[BaselineScores]
    cases: List[BaselineScores]
    by_rule: bool = Field(default=False, exclude=True)
    default: DefaultPrompt | None = Field(default=None, exclude=True)

    def verdict_on(self, case: str | None, rule: str) -> str:
        """Returns the verdict on a rule under a prompt, or under every prompt if `case` is None; ""
        if the rule was not measured, or its prompts have different verdicts.
        """
        verdicts = {
            row.verdict for row in self.cases if row.rule == rule and case in (None, row.case)
        }
        return verdicts.pop() if len(verdicts) == 1 else ""


class WithoutCollapsed(RecordModel):
    """The results of the conversations that did not break down."""

    conversations: Number
    stability_by_round: List[SummaryEstimate]
    change: SummaryDifference
    against: AgainstFirstMethod | None


class Collapse(RecordModel):
    """How many of the turns that models wrote are broken; shares from 0 to 1."""

    turns: Number
    cut: SummaryNumber | None
    own: SummaryNumber | None  # repeated from an earlier turn of the same speaker
    other: SummaryNumber | None  # repeated from an earlier turn of the other speaker
    loops: SummaryNumber | None  # repeated from earlier in the turn itself
    broken: SummaryNumber | None  # repeated in any of these ways
    collapsed_from_round: ByConversation
    without_collapsed: WithoutCollapsed | None = None  # None if no conversation collapsed
    conversations: Number = Field(default=0, exclude=True)

    def share(self, name: str) -> float:
        """Returns the share of turns under `name`, such as "cut"."""
        value: float | None = getattr(self, name)
        return value or 0.0

    def count(self, name: str) -> int:
        """Returns how many turns are under `name`."""
        return round(self.share(name) * self.turns)


class Truncation(RecordModel):
    """Conversations in which a server's count of prompt tokens stopped growing with the dialog.

    Attributes:
        verdict: "prompt lost", "prompt kept" or "cannot tell".
        from_round: the first round with a longer chat than the one before, but no more tokens.
        most_prompt_tokens: the most that the server counted in these conversations.
        canary_before: the share of canaries known before those rounds; n is 0 if none were asked.
        canary_after: the share known from those rounds on.
        conversations: how many the series has.
    """

    verdict: str
    from_round: ByConversation
    most_prompt_tokens: int | None
    canary_before: SummaryEstimate
    canary_after: SummaryEstimate
    conversations: Number = Field(default=0, exclude=True)


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
    baseline: Baseline | None
    collapse: Collapse
    truncation: Truncation | None
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

    @property
    def perplexity(self) -> float | None:
        """The perplexity of the replies under the model without methods; None if not measured."""
        if self.reply_nats is None or self.reply_nats.mean is None:
            return None
        return math.exp(self.reply_nats.mean)


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
    check: Optional[Check] = None

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
