"""The sessions in Codex's rollouts, by their headers: where each begins, and what it has inherited.

A header, shortened, of a session that was forked from another:

    {"type": "session_meta", "payload": {"id": "s2", "forked_from_id": "s1", "cwd": "/repo"}}
"""

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.transcripts.json_fields import at
from holdfast.transcripts.reader import SourcedRecord
from holdfast.validation.json_values import fields_of


def is_item(fields: Mapping[str, Any]) -> bool:
    """Whether a line is a message, a call or a result, and not a header or for display."""
    return fields.get("type") == "response_item"


def split_by_session(records: Sequence[SourcedRecord]) -> list[list[SourcedRecord]]:
    """Splits the records at the headers of sessions; a file has several if it was joined.

    A fork has a second header after its own: that of the session that it was forked from.
    """
    sessions: list[list[SourcedRecord]] = [[]]
    ids: set[str] = set()  # of the sessions whose header may come again in the same session
    for record in records:
        if record.fields.get("type") == "session_meta":
            name = str(at(record.fields, "payload", "id") or "")
            has_items = any(is_item(earlier.fields) for earlier in sessions[-1])
            if has_items and name not in ids:
                sessions.append([])
            ids |= {name, str(at(record.fields, "payload", "forked_from_id") or "")}
        sessions[-1].append(record)
    return sessions


def _headers(records: Sequence[SourcedRecord]) -> list[Mapping[str, Any]]:
    """Returns the payloads of the lines `session_meta`."""
    headers = [fields for _, fields in records if fields.get("type") == "session_meta"]
    payloads = [fields.get("payload") for fields in headers]
    return [payload for payload in payloads if isinstance(payload, Mapping)]


def is_of_subagent(records: Sequence[SourcedRecord]) -> bool:
    """Whether another session or Codex itself started this one."""
    headers = _headers(records)
    source = fields_of(headers[0].get("source")) if headers else {}
    return not source.keys().isdisjoint(("subagent", "internal"))


def origin_of(records: Sequence[SourcedRecord]) -> str:
    """Returns the id of the session whose history the file begins with; "" if it has none."""
    headers = _headers(records)
    last = headers[-1] if headers else {}
    return str(last.get("forked_from_id") or last.get("id") or "")


def base_of(records: Sequence[SourcedRecord]) -> str:
    """Returns the id of the rollout with the beginning of a session; "" if it is in this file."""
    headers = _headers(records)
    return str(at(headers[0], "history_base", "thread_id") or "") if headers else ""


def inherited_questions(records: Sequence[SourcedRecord]) -> frozenset[str]:
    """Returns the sources of the questions that a subagent has from the session that started it.

    If the user's questions were copied without the replies, nobody asks them here. If there are
    replies as well, nothing is returned.
    """
    headers = _headers(records)
    start = headers[0].get("subagent_history_start_ordinal") if headers else None
    inherited = [(source, fields) for source, fields in records if _is_inherited(fields, start)]
    if any(at(fields, "payload", "role") == "assistant" for _, fields in inherited):
        return frozenset()
    return frozenset(source for source, _ in inherited)


def _is_inherited(fields: Mapping[str, Any], start: Any) -> bool:
    """Whether a subagent's line was copied from another session.

    Args:
        start: the number of the subagent's own first line; anything but a number if not known.
    """
    number = fields.get("ordinal")
    is_before = isinstance(start, int) and isinstance(number, int) and number < start
    return is_before or at(fields, "metadata", "inherited_user_message") is True
