"""Counts of all that a run could not ask or measure: dialogs that ended early, replies without
content, probes not answered; and what of its dialogs was left out or replayed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.drift.dialogs import GIVEN
from holdfast.models.requests import NO_CONTENT


@dataclass(frozen=True)
class Endings:
    """Counts of all that a run could not ask or measure.

    Attributes:
        dialogs: how many were held.
        ended: how many of them ended early, by why.
        example: the first of these whose record says more than why: its conversation, round and
            reason; None where none does.
        replies: how many were asked for.
        without_content: how many of them have none, by why.
        unanswered: how many probes were not answered, by why.
        left_out: in how many dialogs the oldest rounds were left out, for the model's context.
        left_out_from: the earliest round of a reply that did not see all before it; None where
            there is none.
        summaries: how many were made of what was left out.
        replayed: how many dialogs were replayed, by where their system prompt is from.
    """

    dialogs: int
    ended: Counter[str]
    example: tuple[int, int, str] | None
    replies: int
    without_content: Counter[str]
    unanswered: Counter[str]
    left_out: int
    left_out_from: int | None
    summaries: int
    replayed: Counter[str]


def count_endings(records: Sequence[Mapping[str, Any]]) -> Endings:
    """Counts all that the records of a drift run lack."""
    replies: Counter[str | None] = Counter()
    unanswered: Counter[str] = Counter()
    for record in records:
        # the first turn is the starter, which is given
        replied = (*record["turns"][1:], *record["probes"])
        reasons = [reply.get("stop_reason") for reply in replied]
        replies.update(reason for reason in reasons if reason not in GIVEN)
        unanswered.update(probe["why"] for probe in record.get("unanswered", ()))
    ended = [record for record in records if "ended" in record]
    narrowed = [first for record in records if (first := _left_out_from(record)) is not None]
    return Endings(
        dialogs=len(records),
        ended=Counter(record["ended"]["why"] for record in ended),
        example=next(filter(None, map(_example, ended)), None),
        replies=replies.total(),
        without_content=Counter({why: replies[why] for why in NO_CONTENT if replies[why]}),
        unanswered=unanswered,
        left_out=len(narrowed),
        left_out_from=min(narrowed, default=None),
        summaries=sum(len(record.get("summaries", ())) for record in records),
        replayed=Counter(r["replayed"]["system_prompt"] for r in records if "replayed" in r),
    )


def _left_out_from(record: Mapping[str, Any]) -> int | None:
    """The first round of a dialog's reply that did not see all before it."""
    replies = (*record["turns"], *record["probes"])
    return min((reply["round"] for reply in replies if reply.get("left_out")), default=None)


def _example(record: Mapping[str, Any]) -> tuple[int, int, str] | None:
    end = record["ended"]
    reason = end.get("reason")
    return (record["conversation"], end["round"], reason) if reason else None
