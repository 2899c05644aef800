"""The turns of the user in Cline's tasks: results of tools, notes of the program, the user's words.

For example:

    "<feedback>No, the other file.</feedback> <environment_details>...</environment_details>"
    -> Event(MESSAGE, "No, the other file.", "user")
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.transcripts.injected import remove_elements
from holdfast.transcripts.json_fields import decode_json
from holdfast.transcripts.part_blocks import ContentBlock, TextBlock, ToolResult
from holdfast.transcripts.readers.cline_assistant_turns import ARGUMENT_WITH_WORDS, TaskState
from holdfast.transcripts.transcript import Event, EventKind
from holdfast.validation.json_values import fields_of, text_or_empty

# elements that Cline and Roo Code write, and those that have the user's words
_INJECTED = (
    *("environment_details", "file_content", "folder_content", "url_content", "hook_context"),
    *("explicit_instructions", "mode_notice", "system-reminder", "command", "slash_command"),
    *("workspace_diagnostics", "git_working_state", "git_commit", "terminal_output"),
    *("final_file_content", "SYSTEM_NOTICE"),
)
_SPOKEN = ("task", "feedback", "answer", "user_message", "user_input", "user_command")
SPOKEN_ELEMENT = re.compile(rf"<({'|'.join(_SPOKEN)})(?:\s[^>]*)?>(.*?)(?:</\1>|\Z)", re.DOTALL)
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
# what stands in place of the result of a call that Cline's newer sessions did not run, within
# {"error": "..."}
_NOT_RUN = re.compile(
    r"User (?:rejected|denied) (?:the tool call|tool execution)|Denied by VS Code user"
    r"|Tool approval (?:request timed out|callback is not configured)"
    r"|Tool \"?[^\s\"]+\"? (?:was (?:not approved|denied by user|blocked by a runtime hook)"
    r"|is disabled by policy|requires approval |approval request failed)"
)
_SUMMARY = "This session is being continued from a previous conversation"


def texts_in_place_of_files(content: Any) -> Any:
    """Returns a content in which the files that Cline's newer sessions attach are texts, and so are
    the operations of which the result of a tool is a list.

        {"type": "file", "path": "a.py", "content": "x"}   -> <file_content path="a.py">...
        {"query": "ls", "result": "a.py", "success": true} -> a.py
    """
    if not isinstance(content, list):
        return content
    parts: list[Any] = []
    for part in content:
        fields = fields_of(part)
        if fields.get("type") == "tool_result":
            parts.append({**fields, "content": texts_in_place_of_files(fields.get("content"))})
        elif fields.get("type") == "file" and isinstance(fields.get("content"), str):
            text = (
                f'<file_content path="{fields.get("path")}">\n{fields["content"]}\n</file_content>'
            )
            parts.append({"type": "text", "text": text})
        elif {"query", "result"} <= fields.keys() or {"query", "error"} <= fields.keys():
            parts += _parts_of_operation(fields)
        else:
            parts.append(part)
    return parts


def _parts_of_operation(operation: Mapping[str, Any]) -> list[Any]:
    """Returns the result of an operation, and its error, as parts of a content."""
    result = operation.get("result")
    if isinstance(result, list):
        parts = texts_in_place_of_files(result)
    elif result is None or isinstance(result, str):
        parts = [result] if result else []
    else:
        parts = [json.dumps(result, ensure_ascii=False)]
    error = operation.get("error")
    return [*parts, error] if isinstance(error, str) and error else parts


def events_of_user(blocks: Sequence[ContentBlock], task: TaskState) -> Iterator[Event]:
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
    if result.startswith(_REFUSED) or _decision_in(result).get("status") == _DENIED:
        return True
    error = fields_of(decode_json(result)).get("error")
    return isinstance(error, str) and bool(_NOT_RUN.match(error))


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
    search = SPOKEN_ELEMENT if tool in ARGUMENT_WITH_WORDS else _FEEDBACK
    words = [match[2].strip() for match in search.finditer(text)]
    words.append(text_or_empty(_decision_in(text).get("feedback")).strip())
    if any(words):
        yield Event(EventKind.MESSAGE, "\n\n".join(filter(None, words)), "user")


def _classify(text: str, task: TaskState) -> Event:
    """Tells the user's words in a user turn from what Cline put there."""
    if text.lstrip().startswith(_SUMMARY):
        return Event(EventKind.COMPACTION, text)
    rest = remove_elements(text, _INJECTED)
    words = [match[2].strip() for match in SPOKEN_ELEMENT.finditer(rest)]
    if any(words):
        return Event(EventKind.MESSAGE, "\n\n".join(filter(None, words)), "user")
    if task.marks_words or not rest:
        return Event(EventKind.REMINDER, text)
    return Event(EventKind.MESSAGE, rest, "user")
