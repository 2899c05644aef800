"""Gaps of a run, in sentences: rounds left out, dialogs that ended early, missing replies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from holdfast.analysis.endings import Endings

_ENDED = {
    "context": "filled the model's context",
    "filter": "met a content filter",
    "failure": "had a request that failed",
    "judge": "had a judge that said neither yes nor no",
}
_EMPTY = {"refusal": "refused", "tool_calls": "called a tool", "empty": "were empty"}


def ending_lines(endings: Endings) -> list[tuple[str, str]]:
    """A heading and a sentence for each that occurred; none of a run that went well."""
    lines = []
    if endings.replayed:
        lines.append(("dialogs replayed", _replayed(endings)))
    if endings.left_out:
        lines.append(("rounds left out", _left_out(endings)))
    if endings.ended:
        lines.append(("dialogs that ended early", _ended(endings)))
    if count := endings.without_content.total():
        why = _listed(endings.without_content.items(), _EMPTY)
        text = f"{count:,} of {endings.replies:,} ({why}); probes are scored as empty"
        lines.append(("replies without content", text))
    if count := endings.unanswered.total():
        why = _listed(endings.unanswered.most_common(), _ENDED)
        lines.append(("probes not answered", f"{count:,} ({why}); left out of the means"))
    return lines


def _replayed(endings: Endings) -> str:
    words = {
        "own": "with the agent’s system prompt as they have it",
        "in place of another": "with it in place of another",
        "added": "with it added",
    }
    how = _listed(endings.replayed.most_common(), words)
    return f"{endings.replayed.total():,} ({how}); later rounds are means over the longer dialogs"


def _left_out(endings: Endings) -> str:
    text = (
        f"in {endings.left_out:,} of {endings.dialogs:,} dialogs replies saw the latest rounds"
        f" alone, from round {endings.left_out_from} on at the earliest; the system prompt stays"
    )
    if endings.summaries:
        text += f", and {endings.summaries:,} summaries stand for the older rounds"
    return text


def failure_lines(failures: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """A heading and a sentence where a run has what was asked and not answered."""
    if not failures:
        return []
    why = _listed(Counter(failure["why"] for failure in failures).most_common(), _ENDED)
    count, reason = len(failures), failures[0]["reason"].rstrip(".")
    text = (
        f"{count:,} ({why}); left out of the means, and asked again when the command is repeated;"
        f" the first: {reason}"
    )
    return [("not answered", text)]


def _ended(endings: Endings) -> str:
    count = endings.ended.total()
    text = (
        f"{count:,} of {endings.dialogs:,} ({_listed(endings.ended.most_common(), _ENDED)}), and"
        f" {endings.dialogs - count:,} are whole; later rounds are means over the dialogs that"
        " reached them"
    )
    if endings.example is None:
        return text
    conversation, number, reason = endings.example
    first = f"; the first, conversation {conversation} in round {number}: {reason}"
    return text + first.rstrip(".")


def early_end(ended: Mapping[str, Any]) -> str:
    """'The dialog ended in round 3, as it met a content filter: the reason.'"""
    why = _ENDED.get(ended["why"], ended["why"])
    reason = f": {ended['reason']}" if ended.get("reason") else ""
    return f"The dialog ended in round {ended['round']}, as it {why}{reason}".rstrip(".") + "."


def _listed(counts: Iterable[tuple[str, int]], words: Mapping[str, str]) -> str:
    return ", ".join(f"{count:,} {words.get(why, why)}" for why, count in counts)
