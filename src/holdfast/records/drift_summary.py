"""The results of `holdfast drift` in `summary.json`: a `MethodSummary` for each method.

Fields that are excluded are for the report, and not in the file.
"""

from typing import Annotated

from pydantic import Field

from holdfast.records.identity import DefaultPrompt
from holdfast.records.mean_estimate import SummaryDifference, SummaryEstimate, SummaryNumber
from holdfast.records.model import List, Number, Optional, RecordModel

# a round by the conversation's number, which is a text in JSON
RoundByConversation = dict[Annotated[int, Field(strict=False)], int]


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
        """Returns the verdict on a rule under a prompt, or under every prompt if `case` is None.

        "" if the rule was not measured, or its prompts have different verdicts.
        """
        verdicts = {
            row.verdict for row in self.cases if row.rule == rule and case in (None, row.case)
        }
        return verdicts.pop() if len(verdicts) == 1 else ""


class WithoutCollapsed(RecordModel):
    """The results of the conversations that did not collapse."""

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
    collapsed_from_round: RoundByConversation
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
    from_round: RoundByConversation
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
