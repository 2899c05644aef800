"""The model of `summary.json`, the results of a run in one small file for other programs.

docs/records.md describes the file; `holdfast.analysis.summary` writes it. The results of drift and
of logs have modules of their own.
"""

import json
import math
from pathlib import Path
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from holdfast.records.check_records import Check
from holdfast.records.drift_summary import MethodSummary
from holdfast.records.logs_summary import LogsResult
from holdfast.records.mean_estimate import SummaryDifference, SummaryEstimate, SummaryNumber
from holdfast.records.model import List, Number, Optional, RecordModel

NAME = "summary.json"
SCHEMA = 2

JsonObject = dict[str, Any]


class TaskResult(RecordModel):
    """The results of `holdfast tasks` on one task under one prompt or method."""

    task: str
    variant: str
    samples: Number
    scores: dict[str, SummaryEstimate]  # by metric
    fluency: SummaryNumber | None
    excluded: bool  # whether comparisons leave it out, as its replies are not fluent


class ProfiledHead(RecordModel):
    """The effect of steering one head alone."""

    layer: Number
    head: Number
    score: SummaryNumber  # with this head steered alone
    gain: SummaryDifference  # over the model without steering, on the same samples
    samples: Number = Field(default=0, exclude=True)  # how many the head was scored on


class ProfileSummary(RecordModel):
    """The results of `holdfast profile`."""

    unsteered: SummaryNumber
    ranking: List[ProfiledHead]  # best first


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


Results = (
    List[MethodSummary]
    | List[TaskResult]
    | List[CalibratedSetting]
    | List[CapabilityResult]
    | ProfileSummary
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
    identity: JsonObject
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

    def to_json(self) -> JsonObject:
        return self.model_dump(by_alias=True)


def read_summary(folder: Path) -> Summary | None:
    """Reads the summary in a folder; None if it is missing or cannot be read."""
    try:
        return Summary.model_validate(json.loads((folder / NAME).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return None
