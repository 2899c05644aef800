"""Probes whose replies are no evidence, so that they have no score, and why."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

WITHOUT_SCORE = {  # why a reply is no evidence, in words
    "empty": "were empty",
    "cut": "were cut at the token limit",
    "refusal": "were refused",
    "tool_calls": "called a tool without a text",
}
Record = Mapping[str, Any]


def unscored_of(record: Record) -> list[dict[str, Any]]:
    """The probes of a conversation that were answered and have no score."""
    return list(record.get("unscored", ()))


def unscored_by_reason(records: Iterable[Record], kind: str = "") -> Counter[str]:
    """How many probes have no score, by why; all kinds of probes, or only those of one."""
    probes = (probe for record in records for probe in unscored_of(record))
    return Counter(probe["why"] for probe in probes if kind in ("", probe["kind"]))


def without_score(record: Record) -> list[dict[str, Any]]:
    """The probes of a conversation without a score: those of no use, and those not answered."""
    return [*unscored_of(record), *record.get("unanswered", ())]


def is_unmeasured(records: Iterable[Record]) -> bool:
    """Whether replies were made, and none of them says whether the agent keeps its prompt."""
    listed = list(records)
    scored = any(probe["kind"] == "stability" for record in listed for probe in record["probes"])
    return not scored and bool(unscored_by_reason(listed, "stability"))
