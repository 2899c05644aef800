"""Cursor's chats.

They are read from the Markdown that Cursor exports, from its database `state.vscdb`, from its
agent's databases (`~/.cursor/chats/*/*/store.db`) and transcripts
(`~/.cursor/projects/*/agent-transcripts/`), and from the output of
`cursor-agent --output-format stream-json`.

A line of a transcript, and one of the output, shortened:

    {"role": "user", "message": {"content": [{"type": "text", "text": "Hi"}]}}
    {"type": "user", "session_id": "s1", "message": {"role": "user", "content": [...]}}

The dialogs of the databases are read in `cursor_composers`.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from holdfast.errors import shortened
from holdfast.transcripts.chat_messages import read_message
from holdfast.transcripts.content_texts import text_of
from holdfast.transcripts.json_fields import at, decode_json, list_or_empty, require_object
from holdfast.transcripts.reader import Format, Located, Markdown, Unread, Values, file_of
from holdfast.transcripts.readers.cursor_composers import (
    context_in,
    read_agent_message,
    read_composer,
    read_context_alone,
    read_tabs,
)
from holdfast.transcripts.tools import read_call
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Malformed,
    Transcript,
    call_events,
    linear_transcript,
    message_events,
)
from holdfast.validation.json_values import fields_of

# "# Title of the chat" and "_Exported on 1/2/2026 at 10:00:00 from Cursor (2.0.1)_"
_EXPORT = re.compile(r"\A\s*# [^\n]*\n_Exported on [^\n]* from Cursor \([^\n]*\)_\s*\n")
# "---", "" and "**User**"
_SPEAKER = re.compile(r"^---\n\n\*\*(User|Cursor)\*\*\n\n", re.MULTILINE)
_ROLES = {"User": "user", "Cursor": "assistant"}  # by the speaker in an export
# the fields of the result of a call that the user or the permissions refused
_REFUSALS = ("rejected", "permissionDenied")
# types of lines outside the dialog: in the agent's output, and in its transcripts
_OTHER_TYPES = frozenset(("system", "thinking", "result", "interaction_query", "turn_ended"))


def _recognises(value: Any) -> bool:
    if isinstance(value, Markdown):
        return bool(_EXPORT.match(value.text))
    fields = fields_of(value)
    if isinstance(fields.get("composerData"), Mapping) or context_in(value) is not None:
        return True
    if isinstance(fields.get("tabs"), list):
        return any("bubbles" in fields_of(tab) for tab in fields["tabs"])
    return _is_of_agent(value) or _is_of_output(value)


def _is_of_output(value: Any) -> bool:
    """Whether a value is a line of the agent's output.

    Claude Code's output has similar messages, but these have ids, and tool calls and results among
    their blocks.
    """
    fields = fields_of(value)
    if "session_id" not in fields or {"uuid", "parent_tool_use_id"} & fields.keys():
        return False
    if fields.get("type") == "tool_call":
        return isinstance(fields.get("tool_call"), Mapping)
    message = fields_of(fields.get("message"))
    blocks = list_or_empty(message.get("content"))
    is_text = all(at(block, "type") == "text" for block in blocks)
    is_plain = message.keys() == {"role", "content"} and is_text
    return fields.get("type") in ("user", "assistant") and is_plain and bool(blocks)


def _is_of_agent(value: Any) -> bool:
    """Whether a value is a line of an agent's transcript."""
    fields = fields_of(value)
    names = fields.keys()
    is_message = "role" in names and isinstance(fields.get("message"), Mapping)
    return is_message and not names & {"type", "sessionId", "session_id", "uuid", "author"}


def _read(values: Iterable[Located]) -> Iterator[Transcript | Unread]:
    transcript_lines: Values = []
    output_lines: dict[str, Values] = {}  # by session
    for source, value in values:
        if _is_of_output(value):
            session = str(value["session_id"])
            output_lines.setdefault(session, []).append(Located(source, value))
            continue
        if _is_of_agent(value):
            transcript_lines.append(Located(source, value))
            continue
        fields = fields_of(value)
        context = context_in(value)
        try:
            if isinstance(value, Markdown):
                yield from _read_export(source, value.text)
            elif isinstance(fields.get("composerData"), Mapping):
                yield from read_composer(source, fields, context)
            elif context is not None and not fields.get("tabs"):
                yield from read_context_alone(source, context)
            elif "composerData" in fields and not fields.get("tabs"):
                raise Malformed(f"its dialog is {shortened(fields['composerData'])}")
            else:
                yield from read_tabs(source, require_object(value))
        except Malformed as error:
            yield Unread(f"{source}: {error}")
    if transcript_lines:
        yield from _read_agent_transcript(transcript_lines)
    for session, lines in output_lines.items():
        yield from _read_output(f"{file_of(lines[0].source)}, session {session}", lines)


def _read_export(source: str, text: str) -> Iterator[Transcript | Unread]:
    """Reads a chat that was exported as Markdown."""
    preface, *turns = _SPEAKER.split(_EXPORT.sub("", text.replace("\r\n", "\n")))
    if preface.strip():
        yield Unread(f"{source}: left out the text before its first message")
    events: list[Event] = []
    for speaker, words in zip(turns[::2], turns[1::2], strict=True):
        text = words.strip().removesuffix("\n\n---").strip()
        events += message_events(_ROLES[speaker], text)
    yield linear_transcript(file_of(source), events)


def _read_agent_transcript(lines: Values) -> Iterator[Transcript | Unread]:
    """Reads a transcript of the agent, which is a single session."""
    events: list[Event] = []
    for source, line in lines:
        try:
            events += read_agent_message({"role": line.get("role"), **line["message"]})
        except Malformed as error:
            yield Unread(f"{source}: {error}")
    yield linear_transcript(file_of(lines[0].source), events)


def _read_output(name: str, lines: Values) -> Iterator[Transcript | Unread]:
    """Reads a session in the agent's output.

    With `--stream-partial-output`, a reply is printed in parts, which have times, and then again as
    a whole.
    """
    is_in_parts = any(_is_part(line) for _, line in lines)
    events: list[Event] = []
    call_ids: set[str] = set()  # of the calls so far
    for source, line in lines:
        try:
            if line["type"] == "tool_call":
                events += _read_output_call(line, call_ids)
            elif line["type"] == "user":
                events += read_agent_message(line["message"])
            elif not is_in_parts:
                events += read_message(line["message"])
            elif _is_part(line):
                text = text_of(line["message"]["content"])
                if events and events[-1].role == "assistant":  # the part before it
                    text = events.pop().text + text
                events += message_events("assistant", text)
        except Malformed as error:
            yield Unread(f"{source}: {error}")
    yield linear_transcript(name, events)


def _is_part(line: Mapping[str, Any]) -> bool:
    """Whether a line is a part of a reply, rather than a whole one."""
    return "timestamp_ms" in line and "model_call_id" not in line and line["type"] == "assistant"


def _read_output_call(line: Mapping[str, Any], call_ids: set[str]) -> list[Event]:
    """Reads the beginning of a call, or its end with the result.

    The fields are in an object named after the tool, such as `shellToolCall`.

    Args:
        call_ids: the calls so far; a new one is added.
    """
    wrapper = line["tool_call"]
    name = next((name for name in wrapper if isinstance(wrapper[name], Mapping)), "")
    fields = fields_of(wrapper.get(name))
    call_id = str(line.get("call_id") or "")
    events: list[Event] = []
    if call_id not in call_ids:
        call_ids.add(call_id)
        tool = fields.get("name") or name.removesuffix("ToolCall")
        arguments = decode_json(fields.get("args", fields.get("arguments")))
        call = read_call({"name": tool, "arguments": arguments, "id": call_id})
        events += call_events(call)
    result = fields.get("result")
    if line.get("subtype") == "completed" and result is not None:
        text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        is_refusal = not fields_of(result).keys().isdisjoint(_REFUSALS)
        events.append(Event(EventKind.TOOL_RESULT, text, call_id=call_id, is_refusal=is_refusal))
    return events


FORMAT = Format(
    "cursor", _recognises, _read, has_events=True, other_types=_OTHER_TYPES, streams=True
)
