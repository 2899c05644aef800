"""Claude Code's transcripts: `~/.claude/projects/*/SESSION.jsonl`, an event per line; and what
`claude -p --output-format stream-json` prints.

A file becomes transcripts in three steps: its lines (`distinct_lines`), the sessions and subagents
that they make up, each a tree with an active path (`session_tree`), and the events of these lines
(`session_events`).
"""

from collections.abc import Iterator
from typing import Any

from holdfast.errors import shortened
from holdfast.transcripts.content_blocks import CALL_BLOCK_TYPES
from holdfast.transcripts.reader import Format, Record, Unread, Values, objects
from holdfast.transcripts.readers import langfuse
from holdfast.transcripts.readers.claude_code.distinct_lines import distinct_lines
from holdfast.transcripts.readers.claude_code.session_events import events_of
from holdfast.transcripts.readers.claude_code.session_lines import BOUNDARIES
from holdfast.transcripts.readers.claude_code.session_tree import session_trees
from holdfast.transcripts.transcript import Transcript
from holdfast.validation.json_values import fields_of

_TYPES = ("user", "assistant", "system", "summary", "progress", "attachment")
# what a line of an unknown type may be, as in a copy
_OF_DIALOG = (*CALL_BLOCK_TYPES, "tool_result")
_OF_OTHERS = ("traceId", "trace_id", "messages")  # fields of other formats that have a sessionId


def _recognises(value: Any) -> bool:
    fields = fields_of(value)
    if any(name in fields for name in _OF_OTHERS) or fields.get("type") in langfuse.TYPES:
        return False
    if "parts" in fields_of(fields.get("message")):  # Qwen Code's sessions, which are much alike
        return False
    if "sessionId" in fields and ("type" in fields or "message" in fields):
        return True
    if "session_id" in fields and fields.get("subtype") in BOUNDARIES:  # of stream-json
        return True
    return fields.get("type") in _TYPES and isinstance(fields.get("message"), dict)


def _read(values: Values) -> Iterator[Transcript | Unread]:
    records, others = objects(values)
    yield from others
    yield from _of_unknown_types(records)
    lines, reused = distinct_lines(records)
    yield from reused
    for tree in session_trees(lines):
        yield from tree.branches_left_out()
        nodes, unread = events_of(tree)
        yield from unread
        yield tree.transcript(nodes)


def _of_unknown_types(records: list[Record]) -> Iterator[Unread]:
    """Notes on lines that are neither messages of a known type nor bookkeeping."""
    for where, fields in records:
        kind = fields.get("type")
        is_message = isinstance(fields.get("message"), dict) and kind not in _TYPES
        if kind in _OF_DIALOG or is_message:
            yield Unread(f"{where}: the type {shortened(kind)} of its line is not known")


FORMAT = Format("claude-code", _recognises, _read, has_events=True)
