"""Probes whose replies are no evidence, so that they have no score, and why."""

from collections import Counter
from collections.abc import Iterable

from holdfast.records import Conversation, LogDialog, Unanswered, Unscored

WITHOUT_SCORE = {  # why a reply is no evidence, in words
    "empty": "were empty",
    "cut": "were cut at the token limit",
    "refusal": "were refused",
    "tool_calls": "called a tool without a text",
}
Dialog = Conversation | LogDialog


def unscored_by_reason(records: Iterable[Dialog], kind: str = "") -> Counter[str]:
    """How many probes have no score, by why; all kinds of probes, or only those of one."""
    probes = (probe for record in records for probe in record.unscored)
    return Counter(probe.why for probe in probes if kind in ("", probe.kind))


def without_score(record: Dialog) -> list[Unscored | Unanswered]:
    """The probes of a conversation without a score: those of no use, and those not answered."""
    return [*record.unscored, *record.unanswered]


def is_unmeasured(records: Iterable[Dialog]) -> bool:
    """Whether replies were made, and none of them says whether the agent keeps its prompt."""
    listed = list(records)
    scored = any(probe.kind == "stability" for record in listed for probe in record.probes)
    return not scored and bool(unscored_by_reason(listed, "stability"))
