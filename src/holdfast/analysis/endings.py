"""What a run could not ask or measure, counted: dialogs that ended early, replies without content,
probes not answered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.models.requests import NO_CONTENT


@dataclass(frozen=True)
class Endings:
    """What a run could not ask or measure.

    Attributes:
        dialogs: how many were held.
        ended: how many of them ended early, by why.
        example: the first of these whose record says more than why: its conversation, round and
            reason; None where none does.
        replies: how many were asked for.
        without_content: how many of them have none, by why.
        unanswered: how many probes were not answered, by why.
    """

    dialogs: int
    ended: Counter[str]
    example: tuple[int, int, str] | None
    replies: int
    without_content: Counter[str]
    unanswered: Counter[str]


def count_endings(records: Sequence[Mapping[str, Any]]) -> Endings:
    """What the records of a drift run could not ask or measure."""
    replies: Counter[str | None] = Counter()
    unanswered: Counter[str] = Counter()
    for record in records:
        # the first turn is the starter, which is given
        asked = (*record["turns"][1:], *record["probes"])
        replies.update(reply.get("stop_reason") for reply in asked)
        unanswered.update(probe["why"] for probe in record.get("unanswered", ()))
    ended = [record for record in records if "ended" in record]
    return Endings(
        dialogs=len(records),
        ended=Counter(record["ended"]["why"] for record in ended),
        example=next(filter(None, map(_example, ended)), None),
        replies=replies.total(),
        without_content=Counter({why: replies[why] for why in NO_CONTENT if replies[why]}),
        unanswered=unanswered,
    )


def _example(record: Mapping[str, Any]) -> tuple[int, int, str] | None:
    end = record["ended"]
    reason = end.get("reason")
    return (record["conversation"], end["round"], reason) if reason else None
