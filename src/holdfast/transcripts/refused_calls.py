"""Calls that never ran: the user refused them, or a hook, a permission or the program stopped them.

A log says so in the call's result, which readers mark as a refusal.
"""

import re
from collections.abc import Sequence

from holdfast.measures.agent_acts.agent_tools import ASKS_USER
from holdfast.transcripts.transcript import Event, EventKind

# how the results of calls begin that Claude Code did not run; it marks them as errors. A tool that
# raised an error had begun, and may have when a broken stream was read again.
_BY_CLAUDE_CODE = re.compile(
    r"The user (?:doesn['’]t|does not) want to (?:proceed with this tool use|take this action)"
    r"|Claude requested permissions to "
    r"|Permission (?:to|for) .{0,300}?(?:has been|was) denied"
    r"|This command (?:requires approval|contains multiple operations)"
    r"|PreToolUse:\S+ hook (?:error|blocked)|Hook PreToolUse:\S+ denied"
    r"|<tool_use_error>(?!Error calling tool|Error: Streaming fallback)"
    r"|Denied by Enterprise policy"
    r"|File is in a directory that is denied by your permission settings",
    re.DOTALL,
)

# in the results of calls that Gemini CLI did not run
_BY_GEMINI_CLI = re.compile(
    r"User did not allow tool call|Tool execution (?:for .{0,80} )?(?:denied by policy|blocked)"
)

# how the results of calls begin that a person rejected, in LangChain's middleware, OpenAI's Agents
# SDK and Google's ADK
_BY_FRAMEWORK = re.compile(
    r"User rejected the tool call for |Tool execution was not approved\.\Z"
    r"|\{\"error\": \"This tool call is rejected\.?\""
)


def is_refusal_by_framework(text: str) -> bool:
    """Whether a result says that a library for agents did not run the call."""
    return bool(_BY_FRAMEWORK.match(text))


def is_refusal_by_claude_code(text: str) -> bool:
    """Whether the text of a result that is an error says that Claude Code did not run the call."""
    return bool(_BY_CLAUDE_CODE.match(text.lstrip()))


def is_refusal_by_gemini_cli(text: str) -> bool:
    """Whether the text of a result that is no success says that Gemini CLI did not run the call:
    the user, a policy or a hook refused it.
    """
    return bool(_BY_GEMINI_CLI.search(text))


def refused_calls(path: Sequence[Event]) -> frozenset[int]:
    """Returns the positions of the calls on a path that never ran.

    A result belongs to the last call with its id before it, or else to the first one after it.
    Results without ids answer the calls without ids of the last reply, in their order. A question
    that the user declined to answer has been asked, so its call is none of these.
    """
    if not any(event.is_refusal for event in path):
        return frozenset()
    refused: set[int] = set()
    before: dict[str, int] = {}  # the last call with each id so far
    unanswered: list[int] = []  # the calls of the last reply that have no id
    is_answering = False  # whether something followed these calls
    for position, event in enumerate(path):
        if event.call is not None:
            if event.call.id:
                before[event.call.id] = position
                continue
            unanswered = [position] if is_answering else [*unanswered, position]
            is_answering = False
            continue
        is_answering = is_answering or not event.is_by_assistant
        if event.kind is EventKind.TOOL_RESULT:
            call: int | None = before.get(event.call_id)
            if not event.call_id:
                call = unanswered.pop(0) if unanswered else None
            elif call is None and event.is_refusal:
                call = _call_after(path, position, event.call_id)
            if call is not None and event.is_refusal:
                refused.add(call)
    return frozenset(position for position in refused if not _asks_user(path[position]))


def _asks_user(event: Event) -> bool:
    return event.call is not None and bool(ASKS_USER.search(event.call.name))


def _call_after(path: Sequence[Event], position: int, call_id: str) -> int | None:
    """Returns the position of the first call with an id after a position; None if there is none."""
    later = range(position + 1, len(path))
    calls = ((number, path[number].call) for number in later)
    return next((number for number, call in calls if call and call.id == call_id), None)
