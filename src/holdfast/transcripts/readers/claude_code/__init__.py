"""Claude Code's transcripts: `~/.claude/projects/*/SESSION.jsonl`, an event per line.

The output of `claude -p --output-format stream-json` is read too. A file becomes transcripts in
three steps: its lines, each once (`session_lines`); the sessions and subagents among these, each a
tree with an active path (`session_tree`); and the events in the lines (`session_events`).
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from holdfast.errors import shortened
from holdfast.transcripts.reader import (
    Format,
    SourcedRecord,
    Unread,
    Values,
    file_of,
    separate_objects,
    unknown_lines,
)
from holdfast.transcripts.readers import langfuse
from holdfast.transcripts.readers.claude_code.session_events import events_of
from holdfast.transcripts.readers.claude_code.session_lines import (
    BOUNDARIES,
    CHANGES,
    distinct_lines,
)
from holdfast.transcripts.readers.claude_code.session_tree import session_trees
from holdfast.transcripts.tools import CALL_BLOCK_TYPES
from holdfast.transcripts.transcript import Transcript
from holdfast.validation.json_values import fields_of

_TYPES = ("user", "assistant", "system", "summary", "progress", "attachment")
# types of lines outside the dialog: about the session, and of stream-json
_OTHER_TYPES = frozenset(
    (
        *("agent-color", "agent-name", "agent-setting", "ai-title", "custom-title", "tag", "mode"),
        *("permission-mode", "pr-link", "last-prompt", "queue-operation", "task-summary"),
        *("file-history-snapshot", "file-history-delta", "attribution-snapshot", "cost-state"),
        *("worktree-state", "bridge-session", "frame-link", "fork-context-ref", "relocated"),
        *("atis-latch", "isolation-latch", "dev-mods", "speculation-accept", "todo-snapshot"),
        *("artifact-autoreact-ledger", "artifact-comment-monitor", "started", "failed"),
        *("continued-in", "ended-by-model", "history-suppression", "observer-ref"),
        *("agent_metadata", "marble-origami-snapshot", "marble-origami-reset", *CHANGES),
        *("agent-progress", "bash-progress", "hook-progress"),
        *("result", "stream_event", "rate_limit_event", "keep_alive", "auth_status"),
        *("control_request", "control_response", "control_cancel_request"),
        *("tool_progress", "tool_use_summary", "prompt_suggestion"),
    )
)
# types of content blocks, some of which copies of a session have as lines
_BLOCK_TYPES = (*CALL_BLOCK_TYPES, "tool_result")
_FOREIGN_FIELDS = ("traceId", "trace_id", "messages")  # of other formats that have a sessionId


def _recognises(value: Any) -> bool:
    fields = fields_of(value)
    if any(name in fields for name in _FOREIGN_FIELDS) or fields.get("type") in langfuse.TYPES:
        return False
    message = fields.get("message")
    if "parts" in fields_of(message) or isinstance(message, str):
        return False  # sessions of Qwen Code, and Gemini CLI's list of inputs, which look similar
    if "sessionId" in fields and ("type" in fields or "message" in fields):
        return True
    if "session_id" in fields and fields.get("subtype") in BOUNDARIES:  # printed as stream-json
        return True
    return fields.get("type") in _TYPES and isinstance(fields.get("message"), dict)


def _read(values: Values) -> Iterator[Transcript | Unread]:
    records, others = separate_objects(values)
    yield from others
    yield from _unknown_lines(records)
    lines, reused = distinct_lines(records)
    yield from reused
    for tree in session_trees(lines):
        yield from tree.branches_left_out()
        nodes, unread = events_of(tree)
        yield from unread
        yield tree.transcript(nodes)


def _unknown_lines(records: list[SourcedRecord]) -> Iterator[Unread]:
    """Reports lines of unknown types: each that may be a message, and the number of the others."""
    counts: Counter[str] = Counter()
    for source, fields in records:
        kind = fields.get("type")
        is_message = isinstance(fields.get("message"), dict) and kind not in _TYPES
        if kind in _BLOCK_TYPES or is_message:
            yield Unread(f"{source}: its line has the unknown type {shortened(kind)}")
        elif kind not in _TYPES and str(kind) not in _OTHER_TYPES:
            counts[str(kind)] += 1
    if records:
        yield from unknown_lines(file_of(records[0].source), counts)


FORMAT = Format(
    "claude-code",
    _recognises,
    _read,
    has_events=True,
    other_types=_OTHER_TYPES.union(_TYPES),
)
