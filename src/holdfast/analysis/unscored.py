"""Counts the probes that have no score, because their replies are no evidence."""

from collections import Counter
from collections.abc import Iterable

from holdfast.records import DialogRecord

WITHOUT_SCORE = {  # why replies are no evidence, in words
    "empty": "were empty",
    "cut": "were cut at the token limit",
    "refusal": "were refused",
    "tool_calls": "called a tool without a text",
}


def unscored_by_reason(records: Iterable[DialogRecord], kind: str = "") -> Counter[str]:
    """Counts the probes without a score by the reason; of one kind, or of all if `kind` is ""."""
    probes = (probe for record in records for probe in record.unscored)
    return Counter(probe.why for probe in probes if kind in ("", probe.kind))


def is_unmeasured(records: Iterable[DialogRecord]) -> bool:
    """Whether there are replies to stability probes, but none of them could be scored."""
    dialogs = list(records)
    has_score = any(probe.kind == "stability" for record in dialogs for probe in record.probes)
    return not has_score and bool(unscored_by_reason(dialogs, "stability"))
