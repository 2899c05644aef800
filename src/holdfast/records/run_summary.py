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
    against: dict[str, Judged] | None


class MethodSummary(RecordModel):
    """The results of a drift run under one method."""

    method: str
    outcome: str  # the value of an `analysis.outcome.Outcome`
    conversations: Number
    unscored: dict[str, int]
    by_round: dict[str, List[Estimated]]
    over_all_rounds: dict[str, Estimated]
    change: dict[str, Judged]
    against: Json | None
    categories: dict[str, dict[str, List[Estimated]]]
    prompts: List[Json]
    rules: List[RuleSummary]
    accuracy: dict[str, List[Estimated]] | None
    baseline: Json | None
    collapse: Json
    truncation: Json | None
    summarised: List[Json]


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
