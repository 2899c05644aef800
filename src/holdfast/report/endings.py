"""What a run could not ask or measure, counted and said: dialogs that ended early, replies without
content, probes not answered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.models.requests import NO_CONTENT

_ENDED = {
    "context": "filled the model's context",
    "filter": "met a content filter",
    "failure": "had a request that failed",
}
_EMPTY = {"refusal": "refused", "tool_calls": "called a tool", "empty": "were empty"}


def endings(records: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """A heading and a sentence for each of these that occurred; none in a run that went well."""
    rows = (_ended(records), _without_content(records), _unanswered(records))
    return [row for row in rows if row]


def _ended(records: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    ended = [record for record in records if "ended" in record]
    if not ended:
        return None
    reasons = _reasons(record["ended"] for record in ended)
    said = (
        f"{len(ended):,} of {len(records):,} ({reasons}), and {len(records) - len(ended):,} are"
        " whole; later rounds are means over the dialogs that reached them"
    )
    return "dialogs that ended early", said + _example(ended)


def _example(ended: Sequence[Mapping[str, Any]]) -> str:
    """The first reason that says more than its kind."""
    for record in ended:
        if reason := record["ended"].get("reason"):
            number, place = record["conversation"], record["ended"]["round"]
            return f"; the first, conversation {number} in round {place}: {reason}".rstrip(".")
    return ""


def _without_content(records: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    # the first turn is the starter, which is given
    replies = [reply for r in records for reply in (*r["turns"][1:], *r["probes"])]
    counts = Counter(reply.get("stop_reason") for reply in replies)
    found = {why: counts[why] for why in NO_CONTENT if counts[why]}
    if not found:
        return None
    parts = ", ".join(f"{count:,} {_EMPTY[why]}" for why, count in found.items())
    total = sum(found.values())
    return (
        "replies without content",
        f"{total:,} of {len(replies):,} ({parts}); probes are scored as empty",
    )


def _unanswered(records: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    missing = [probe for record in records for probe in record.get("unanswered", ())]
    if not missing:
        return None
    return "probes not answered", f"{len(missing):,} ({_reasons(missing)}); left out of the means"


def _reasons(items: Iterable[Mapping[str, Any]]) -> str:
    counts = Counter(item["why"] for item in items)
    return ", ".join(f"{count:,} {_ENDED.get(why, why)}" for why, count in counts.most_common())
