"""`holdfast compare --json`: differences between runs for other programs (docs/comparing.md)."""

from typing import Literal

from pydantic import ConfigDict, Field

from holdfast.records.mean_estimate import SummaryDifference, SummaryEstimate
from holdfast.records.model import List, Number, RecordModel

SCHEMA = 1

RuleGrouping = Literal["all", "kind", "rule", "adoption"]


class RunContrast(RecordModel):
    """A fact that is not the same in all runs.

    Attributes:
        name: "settings.rounds", as manifests name it, or "prompt of CASE".
        cause: the possible cause of a difference in scores, such as "model"; None if the fact
            changes only rounding.
        values: in the order of the runs; "–" where a run does not have it.
    """

    name: str
    cause: str | None
    values: List[str]


class RuleGroupComparison(RecordModel):
    """A group of rules in one run and in the first, over the rounds that both have.

    Attributes:
        grouping, group: such as "kind" and "closing"; the group of all rules is "".
        before, now: the means in the first run and in this one.
        over_rounds: now minus before.
        last_round: the same in the last of the rounds.
    """

    grouping: RuleGrouping
    group: str
    before: SummaryEstimate
    now: SummaryEstimate
    over_rounds: SummaryDifference
    last_round: SummaryDifference


class MethodComparison(RecordModel):
    """One run compared with the first, under one method.

    Attributes:
        pairs: how many pairs of conversations began alike; 0 if the runs are two samples.
        prompts: how many prompts of the agent are compared.
        rounds: those that are compared, from 1.
        rows: all rules, kinds, rules and adoption, in this order.
        conversations, conversations_before: how many are compared of this run and of the first.
    """

    run: str
    against: str
    method: str
    against_method: str
    pairs: Number
    prompts: Number
    rounds: List[int]
    rows: List[RuleGroupComparison]
    conversations: Number = Field(default=0, exclude=True)
    conversations_before: Number = Field(default=0, exclude=True)

    @property
    def has_same_method(self) -> bool:
        """Whether both runs have the same method."""
        return self.method == self.against_method

    @property
    def overall(self) -> RuleGroupComparison:
        """The row of all rules together."""
        return self.rows[0]

    def of(self, grouping: RuleGrouping) -> list[RuleGroupComparison]:
        """Returns the rows of one grouping."""
        return [row for row in self.rows if row.grouping == grouping]


class ComparisonSummary(RecordModel):
    """Runs compared with the first of them."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    version: int = Field(default=SCHEMA, alias="schema")
    title: str
    runs: List[str]  # short names
    folders: List[str]
    differs: List[RunContrast]
    limits: List[str]  # what is not compared, or needs care
    methods: List[MethodComparison]
