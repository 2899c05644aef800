"""Cline's and Roo Code's tasks (`api_conversation_history.json`), and Cline's newer sessions.

The messages are Anthropic's. A turn of the user has tool results, notes of the program on the
environment, and the user's words, which are in elements such as `<task>`. A model without native
tool calls writes a call into its text, as an element with the name of the tool.

    {"role": "user", "content": [{"type": "text", "text": "<task>Fix it</task>"}, ...]}
    -> Event(MESSAGE, "Fix it", "user")
    {"role": "assistant", "content": [{"type": "text", "text": "<read_file><path>a.py</path>..."}]}
    -> Event(TOOL_CALL, call=ToolCall("read_file", {"path": "a.py"}))
"""

import html
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from holdfast.errors import shortened
from holdfast.measures.turns import ToolCall
from holdfast.transcripts.call_messages import system_prompt
from holdfast.transcripts.chat_messages import is_cut, read_message
from holdfast.transcripts.content_blocks import blocks_of
from holdfast.transcripts.content_texts import text_of
from holdfast.transcripts.injected import remove_elements
from holdfast.transcripts.json_fields import (
    at,
    list_or_empty,
    optional_list,
    require_field,
    require_object,
)
from holdfast.transcripts.part_blocks import ContentBlock, TextBlock, ToolResult, UnreadPart
from holdfast.transcripts.reader import Format, Unread, Values, file_of
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Malformed,
    Transcript,
    linear_transcript,
    message_events,
    with_unread,
)
from holdfast.validation.json_values import fields_of, text_or_empty

# elements that Cline and Roo Code write, and those that have the user's words
_INJECTED = (
    *("environment_details", "file_content", "folder_content", "url_content", "hook_context"),
    *("explicit_instructions", "mode_notice", "system-reminder", "command", "slash_command"),
    *("workspace_diagnostics", "git_working_state", "git_commit", "terminal_output"),
    *("final_file_content",),
)
_SPOKEN = ("task", "feedback", "answer", "user_message", "user_input", "user_command")
_SPOKEN_ELEMENT = re.compile(rf"<({'|'.join(_SPOKEN)})(?:\s[^>]*)?>(.*?)(?:</\1>|\Z)", re.DOTALL)
# the header of a tool's result before native calls, such as "[read_file for 'cart.py'] Result:"
_RESULT = re.compile(r"\[(\w+)(?:\]| for .*?\]) Result:\s*", re.DOTALL)
# the user's words in the result of any tool, such as a command that the user refused
_FEEDBACK = re.compile(
    r"(?:feedback|message|input)[^<\n]*:\s*<(feedback|user_message)>(.*?)</\1>", re.DOTALL
)
# what Roo Code writes, as JSON, with the words that the user added to a decision
_DENIED = "denied"
_DECISIONS = (_DENIED, "approved", "guidance")
_REFUSED = ("The user denied this operation", "Skipping tool [")
_TRUNCATED = "[NOTE] Some previous conversation history with the user has been removed"
_SUMMARY = "This session is being continued from a previous conversation"
_TOOLS = (
    *("read_file", "write_to_file", "replace_in_file", "apply_diff", "insert_content", "edit_file"),
    *("search_and_replace", "search_files", "list_files", "list_code_definition_names"),
    *("codebase_search", "execute_command", "browser_action", "use_mcp_tool", "web_fetch"),
    *("access_mcp_resource", "load_mcp_documentation", "fetch_instructions", "web_search"),
    *("ask_followup_question", "attempt_completion", "plan_mode_respond", "switch_mode"),
    *("new_task", "condense", "summarize_task", "report_bug", "new_rule", "update_todo_list"),
    *("run_slash_command", "generate_image", "use_skill", "apply_patch"),
)
# tools by which the model speaks to the user, and the argument that has its words
_ARGUMENT_WITH_WORDS = {
    "attempt_completion": "result",
    "ask_followup_question": "question",
    "plan_mode_respond": "response",
    "ask_question": "question",
}
_CALL = re.compile(rf"<({'|'.join(_TOOLS)})>(.*?)(?:</\1>|\Z)", re.DOTALL)
_ARGUMENT = re.compile(r"<(\w+)>\n?(.*?)\n?(?:</\1>|\Z)", re.DOTALL)
_PATH = re.compile(r"<path>(.*?)</path>", re.DOTALL)
_THINKING = ("thinking",)
_VERSION = 1  # the known version of Cline's sessions


@dataclass
class _Task:
    """The state of a task while its messages are read.

    Args:
        has_native_calls: whether tool calls are blocks, rather than elements in the text.
        marks_words: whether the user's words are in elements.
        tool_names: the name of the tool of each call, by the call's id.
    """

    has_native_calls: bool
    marks_words: bool
    tool_names: dict[str, str] = field(default_factory=dict)


def _recognises(value: Any) -> bool:
    fields = fields_of(value)
    if {"messages", "sessionId", "agent"} <= fields.keys() or _is_display(value):
        return True
    if not isinstance(value, list):
        return False
    # other programs may have put a system prompt before the messages of a task
    return any(_is_of_task(message) for message in value[:3])


def _is_display(value: Any) -> bool:
    """Whether a value is an entry of `ui_messages.json`, which Cline displays."""
    fields = fields_of(value)
    return fields.get("type") in ("ask", "say") and "ts" in fields and fields["type"] in fields


def _is_of_task(message: Any) -> bool:
    """Whether a message looks like one that Cline or Roo Code wrote."""
    fields = fields_of(message)
    if fields.get("role") not in ("user", "assistant"):
        return False
    content = fields.get("content")
    if isinstance(content, list) and isinstance(fields.get("ts"), int):
        return True
    return any("<environment_details>" in text for text in _texts_in(content))


def _texts_in(content: Any) -> list[str]:
    """Returns the texts in the content of a message."""
    parts = content if isinstance(content, list) else [content]
    texts = [part if isinstance(part, str) else at(part, "text") for part in parts]
    return [text for text in texts if isinstance(text, str)]


def _read(values: Values) -> Iterator[Transcript | Unread]:
    display_entries = [source for source, value in values if _is_display(value)]
    if display_entries:
        yield Unread(
            f"{file_of(display_entries[0])} is what Cline displays of a task, which is not read;"
            " give api_conversation_history.json beside it"
        )
    for source, value in values:
        if _is_display(value):
            continue
        try:
            if isinstance(value, list):
                messages = value
            else:
                messages = optional_list(require_field(require_object(value), "messages"))
            prompt = system_prompt(fields_of(value).get("system_prompt"))
            events = [*prompt, *_events(messages)]
        except Malformed as error:
            yield Unread(f"{source}: {error}")
            continue
        version = fields_of(value).get("version", _VERSION)
        if version != _VERSION:
            yield Unread(
                f"{source}: the version {shortened(version)} of Cline's sessions is not known; it"
                f" is read as version {_VERSION}"
            )
        is_of_subagent = fields_of(value).get("agent") in ("subagent", "teammate")
        yield replace(linear_transcript(source, events), is_of_subagent=is_of_subagent)


def _events(messages: Sequence[Any]) -> list[Event]:
    """Reads the messages of a task."""
    task = _Task(
        has_native_calls=any(map(_has_call, messages)),
        marks_words=any(map(_has_marked_words, messages)),
    )
    truncations = _truncations(messages)
    events: list[Event] = []
    for number, message in enumerate(messages, start=1):
        if _is_truncation_marker(message):
            continue
        try:
            new_events = [*_events_of_message(require_object(message), task)]
        except Malformed as error:
            raise Malformed(f"message {number}: {error}") from error
        if parent := message.get("truncationParent"):
            new_events = [replace(event, id=str(parent)) for event in new_events]
        events += new_events
        if number in truncations:
            events.append(_clearing(truncations[number], events))
    return events


def _is_truncation_marker(message: Any) -> bool:
    return at(message, "isTruncationMarker") is True


def _truncations(messages: Sequence[Any]) -> dict[int, str]:
    """Returns the ids of truncations, each by the number of the last message that it removed.

    Roo Code removes half of the messages of a long context. Each of these names the truncation, and
    the marker of the truncation is written before them.
    """
    parents = [at(message, "truncationParent") for message in messages]
    sizes = Counter(str(parent) for parent in parents if parent)
    truncations: dict[int, str] = {}
    for number, message in enumerate(messages, start=1):
        if _is_truncation_marker(message):
            name = str(message.get("truncationId"))
            truncations[number + sizes[name]] = name
    return truncations


def _clearing(name: str, events: Sequence[Event]) -> Event:
    """Returns the event that clears the messages which a truncation removed from the context."""
    calls = {event.call_id for event in events if event.id == name} - {""}
    return Event(EventKind.CLEARING, clears=frozenset((name, *calls)))


def _has_call(message: Any) -> bool:
    """Whether a message has a native tool call."""
    return any(at(block, "type") == "tool_use" for block in list_or_empty(at(message, "content")))


def _has_marked_words(message: Any) -> bool:
    """Whether a message of the user has words in elements."""
    texts = _texts_in(at(message, "content")) if at(message, "role") == "user" else []
    return any(_SPOKEN_ELEMENT.search(text) for text in texts)


def _events_of_message(message: Mapping[str, Any], task: _Task) -> Iterator[Event]:
    if message.get("type") == "reasoning":  # an entry of Roo Code's between the messages
        return
    if message.get("isSummary") is True:
        yield Event(EventKind.COMPACTION, text_of(message.get("content")))
    elif message.get("role") == "user":
        blocks = [*blocks_of(message.get("content"))]
        unread = tuple(block.kind for block in blocks if isinstance(block, UnreadPart))
        yield from with_unread([*_events_of_user(blocks, task)], unread)
    else:
        yield from _events_of_assistant(message, task)


def _events_of_assistant(message: Mapping[str, Any], task: _Task) -> Iterator[Event]:
    """Reads a turn of the assistant; tools by which it speaks to the user are part of its text."""
    events = read_message(message)
    calls = [_with_command(event.call) for event in events if event.call is not None]
    text = "\n".join(event.text for event in events if event.kind is EventKind.MESSAGE)
    if not task.has_native_calls:
        calls = [*chain.from_iterable(map(_calls_in, _CALL.finditer(text)))]
        text = _CALL.sub("", text)
    text = remove_elements(text, _THINKING)
    if text.startswith(_TRUNCATED):  # Cline's note, in place of a reply
        yield Event(EventKind.REMINDER, text)
        text = ""
        if not calls:
            return
    task.tool_names.update({call.id: call.name for call in calls if call.id})
    arguments = [call.arguments.get(_ARGUMENT_WITH_WORDS.get(call.name, "")) for call in calls]
    texts = [text, *(argument for argument in arguments if isinstance(argument, str))]
    reply = "\n\n".join(filter(None, texts))
    unread = tuple(chain.from_iterable(event.unread for event in events))
    yield from message_events("assistant", reply, calls, is_cut=is_cut(message), unread=unread)


def _with_command(call: ToolCall) -> ToolCall:
    """Joins the shell commands of a call that has several into one script, `command`."""
    commands = call.arguments.get("commands")
    if not isinstance(commands, list) or not all(isinstance(c, str) for c in commands):
        return call
    return ToolCall(call.name, {**call.arguments, "command": "\n".join(commands)}, call.id)


def _calls_in(match: re.Match[str]) -> list[ToolCall]:
    """Reads the element of a call; one that names several files is a call for each of them."""
    name = match[1]
    body = match[2]
    arguments = dict(_ARGUMENT.findall(body))
    if "command" in arguments:  # Cline undoes the escapes that some models write
        arguments["command"] = html.unescape(arguments["command"])
    paths = [] if "path" in arguments else _PATH.findall(body)
    if not paths:
        return [ToolCall(name, arguments)]
    return [ToolCall(name, {**arguments, "path": path.strip()}) for path in paths]


def _events_of_user(blocks: Sequence[ContentBlock], task: _Task) -> Iterator[Event]:
    """Reads a user turn; a tool result without an id is after its header, or is the next text."""
    tool = ""  # the tool whose result the next text is
    for block in blocks:
        match block:
            case ToolResult(text, call_id):
                yield Event(
                    EventKind.TOOL_RESULT,
                    text,
                    call_id=call_id,
                    is_refusal=_is_refusal(text),
                    unread=block.unread,
                )
                yield from _words_in_result(text, task.tool_names.get(call_id, ""))
            case TextBlock(text):
                header = _RESULT.match(text)
                if header:
                    tool = header[1]
                if header and header.end() == len(text):
                    continue  # the result is in the next text
                if header or (tool and remove_elements(text, _INJECTED)):
                    yield Event(EventKind.TOOL_RESULT, text, is_refusal=_is_refusal(text))
                    yield from _words_in_result(text, tool)
                    tool = ""
                else:
                    yield _classify(text, task)


def _is_refusal(text: str) -> bool:
    """Whether a tool's result says that the user refused the call, or one before it."""
    header = _RESULT.match(text)
    result = text[header.end() if header else 0 :].lstrip()
    return result.startswith(_REFUSED) or _decision_in(result).get("status") == _DENIED


def _decision_in(result: str) -> Mapping[str, Any]:
    """Returns the user's decision with which the result of a call of Roo Code begins; {} for any
    other result.
    """
    if not result.startswith('{"status"'):
        return {}
    try:
        decision, _ = json.JSONDecoder().raw_decode(result)
    except ValueError:
        return {}
    return decision if decision.get("status") in _DECISIONS else {}


def _words_in_result(text: str, tool: str) -> Iterator[Event]:
    """Finds the user's words in a tool's result: the answer to a question, or words on a call."""
    search = _SPOKEN_ELEMENT if tool in _ARGUMENT_WITH_WORDS else _FEEDBACK
    words = [match[2].strip() for match in search.finditer(text)]
    words.append(text_or_empty(_decision_in(text).get("feedback")).strip())
    if any(words):
        yield Event(EventKind.MESSAGE, "\n\n".join(filter(None, words)), "user")


def _classify(text: str, task: _Task) -> Event:
    """Tells the user's words in a user turn from what Cline put there."""
    if text.lstrip().startswith(_SUMMARY):
        return Event(EventKind.COMPACTION, text)
    rest = remove_elements(text, _INJECTED)
    words = [match[2].strip() for match in _SPOKEN_ELEMENT.finditer(rest)]
    if any(words):
        return Event(EventKind.MESSAGE, "\n\n".join(filter(None, words)), "user")
    if task.marks_words or not rest:
        return Event(EventKind.REMINDER, text)
    return Event(EventKind.MESSAGE, rest, "user")


FORMAT = Format("cline", _recognises, _read)
