"""The turns of the assistant in Cline's tasks, and the calls that it writes into its text.

For example:

    "I look. <read_file><path>a.py</path></read_file>"
    -> Event(MESSAGE, "I look.", "assistant"), Event(TOOL_CALL, call=ToolCall("read_file", ...))
"""

import html
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from holdfast.measures.turns import ToolCall
from holdfast.transcripts.chat_messages import is_cut, read_message
from holdfast.transcripts.injected import remove_elements
from holdfast.transcripts.transcript import Event, EventKind, message_events

_TRUNCATED = "[NOTE] Some previous conversation history with the user has been removed"
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
ARGUMENT_WITH_WORDS = {
    "attempt_completion": "result",
    "ask_followup_question": "question",
    "plan_mode_respond": "response",
    "ask_question": "question",
}
_CALL = re.compile(rf"<({'|'.join(_TOOLS)})>(.*?)(?:</\1>|\Z)", re.DOTALL)
_ARGUMENT = re.compile(r"<(\w+)>\n?(.*?)\n?(?:</\1>|\Z)", re.DOTALL)
_PATH = re.compile(r"<path>(.*?)</path>", re.DOTALL)
_THINKING = ("thinking",)


@dataclass
class TaskState:
    """The state of a task while its messages are read.

    Args:
        has_native_calls: whether tool calls are blocks, rather than elements in the text.
        marks_words: whether the user's words are in elements.
        tool_names: the name of the tool of each call, by the call's id.
    """

    has_native_calls: bool
    marks_words: bool
    tool_names: dict[str, str] = field(default_factory=dict)


def events_of_assistant(message: Mapping[str, Any], task: TaskState) -> Iterator[Event]:
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
    arguments = [call.arguments.get(ARGUMENT_WITH_WORDS.get(call.name, "")) for call in calls]
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
