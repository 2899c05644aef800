"""`summary.json`: the results of a run in one small file for other programs; docs/records.md
describes it. `holdfast.analysis.summary` makes it.
"""

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from holdfast.records.model import List, Number, Optional, RecordModel

NAME = "summary.json"
SCHEMA = 2

Json = dict[str, Any]


class Estimated(RecordModel):
    """A mean with the ends of its 95% interval; None where it cannot be computed."""

    n: Number
    mean: float | None
    low: float | None
    high: float | None
    sd: float | None


class OtherPrompts(RecordModel):
    """The interval for other prompts than those of the run."""

    prompts: Number
    low: float | None
    high: float | None


class Judged(Estimated):
    """An estimate of a difference, with its verdict: "higher", "lower" or "cannot tell"."""

    verdict: str
    why: str | None
    other_prompts: Optional[OtherPrompts] = None


class Compared(RecordModel):
    """The differences from another method on the same pairs and draws."""

    last_round: Judged
    over_all_rounds: Judged


class Against(RecordModel):
    """A method compared with the first one, in what was measured under both."""

    method: str  # the first one
    pairs: Number  # of conversations
    stability: Optional[Compared] = None
    adoption: Optional[Compared] = None


class RuleSummary(RecordModel):
    """The results on one rule under one method."""

    rule: str
    n: Number
    stability_by_round: List[Estimated]
    first_broken_by_round: List[int]
    kept_throughout: int
    kept_in_any_round: int
    never_followed: bool
    change: Judged
    lower_from_round: int | None
    lower_in_rounds: List[int]
    against: Compared | None


class PromptSummary(RecordModel):
    """The results on one system prompt under one method."""

    id: str
    category: str | None
    n: Number
    stability_by_round: List[float | None]
    stability: float | None
    adopted_last_round: float | None
    n_adopted: Number


class BaselineScores(RecordModel):
    """Scores in round 1 with and without the system prompt, on the same questions."""

    name: str  # of a measure, of a case, or "all"
    n: Number
    prompted: Estimated
    unprompted: Estimated
    difference: Judged
    verdict: str


class BaselineSummary(RecordModel):
    """What the system prompts change, as far as a baseline shows it."""

    all: BaselineScores
    measures: List[BaselineScores]
    cases: List[BaselineScores]


class WithoutCollapsed(RecordModel):
    """The results of the conversations that did not break down."""

    conversations: Number
    stability_by_round: List[Estimated]
    change: Judged
    against: Against | None


class CollapseSummary(RecordModel):
    """How many of the turns that models wrote are broken; shares from 0 to 1."""

    turns: Number
    cut: float | None
    own: float | None  # repeated from an earlier turn of the same speaker
    other: float | None  # repeated from an earlier turn of the other speaker
    loops: float | None  # repeated from earlier in the turn itself
    broken: float | None  # any of these
    collapsed_from_round: dict[str, int]  # by the conversation's number
    without_collapsed: WithoutCollapsed | None


class TruncationSummary(RecordModel):
    """The rounds from which a server read less than it was sent."""

    verdict: str
    from_round: dict[str, int]  # by the conversation's number
    most_prompt_tokens: int | None
    canary_before: Estimated
    canary_after: Estimated


class SurvivalSummary(RecordModel):
    """A rule before and after the first summary of older rounds."""

    rule: str | None  # None for all rules together
    before: Estimated
    after: Estimated
    difference: Judged


class MethodSummary(RecordModel):
    """The results of a drift run under one method."""

    method: str
    outcome: str  # the value of an `analysis.outcome.Outcome`
    conversations: Number
    unscored: dict[str, int]
    by_round: dict[str, List[Estimated]]
    over_all_rounds: dict[str, Estimated]
    change: dict[str, Judged]
    against: Against | None
    categories: dict[str, dict[str, List[Estimated]]]
    prompts: List[PromptSummary]
    rules: List[RuleSummary]
    accuracy: dict[str, List[Estimated]] | None
    baseline: BaselineSummary | None
    collapse: CollapseSummary
    truncation: TruncationSummary | None
    summarised: List[SurvivalSummary]


class Summary(RecordModel):
    """The results of a run.

    Attributes:
        version: of the file; it changes when a field changes its meaning or goes away.
        records: how many records it was derived from.
        results: of a drift run, its methods, the unsteered one first; of another command, JSON.
        check: the verdicts of `holdfast check`.
    """

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    version: int = Field(default=SCHEMA, alias="schema")
    command: str
    identity: Json
    records: Number
    results: Annotated[List[MethodSummary] | Any, Field(union_mode="left_to_right")]
    check: Optional[Json] = None

    @property
    def methods(self) -> tuple[MethodSummary, ...]:
        """The results of a drift run by method; empty for other commands."""
        results = self.results if isinstance(self.results, tuple) else ()
        return tuple(item for item in results if isinstance(item, MethodSummary))

    @property
    def outcome(self) -> str | None:
        """The outcome that the title of a drift run states; None for other commands."""
        return self.methods[0].outcome if self.methods else None

    def to_json(self) -> Json:
        return self.model_dump(by_alias=True)


def read_summary(folder: Path) -> Summary | None:
    """The summary in a folder; None if there is none that can be read."""
    try:
        return Summary.model_validate(json.loads((folder / NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None
