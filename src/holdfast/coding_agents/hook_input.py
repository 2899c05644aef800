"""The input of a hook: the JSON that a coding agent writes to its standard input.

Claude Code, Codex and Gemini CLI send one JSON object with the same fields. Some names of events
differ, but not their meaning: BeforeAgent of Gemini CLI is UserPromptSubmit of the others.
"""

import json
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from holdfast.errors import UsageError, reason_of, shortened
from holdfast.measures.turns import ToolCall


class HookOccasion(Enum):
    """The occasion on which a hook is called."""

    PROMPT = "the user has sent a message, so the turn before it is over"
    TOOL = "a tool has run, and the turn goes on"
    COMPACTED = "the context was compacted, and the model can be told something"
    COMPACTING = "the context is about to be compacted, or just was, and nothing reaches the model"
    OTHER = "a session begins or continues with its whole context"


_EVENTS = {
    "UserPromptSubmit": HookOccasion.PROMPT,
    "BeforeAgent": HookOccasion.PROMPT,  # Gemini CLI's names
    "PostToolUse": HookOccasion.TOOL,
    "PostToolUseFailure": HookOccasion.TOOL,
    "AfterTool": HookOccasion.TOOL,
    "PreCompact": HookOccasion.COMPACTING,
    "PostCompact": HookOccasion.COMPACTING,
    "PreCompress": HookOccasion.COMPACTING,
    "SessionStart": HookOccasion.OTHER,
}


@dataclass(frozen=True)
class HookInput:
    """The call of a hook.

    Args:
        event: the name of the event, which the answer repeats.
        transcript: the log of the session; None if the agent keeps none.
        call: the tool call that was just made; None on other occasions.
        is_in_subagent: whether a subagent made the call; its dialog is not in the transcript.
    """

    event: str
    occasion: HookOccasion
    transcript: Path | None
    call: ToolCall | None = None
    is_in_subagent: bool = False


def read_hook_input(text: str) -> HookInput:
    """Reads the JSON that an agent sends to a hook.

    Raises:
        UsageError: the text is not a JSON object, has an unknown event, or names a transcript
            that is not a file.
    """
    try:
        payload = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"The hook's input is not JSON ({reason_of(error)}); `holdfast remind` is for the hooks"
            " of a coding agent, which send it on standard input.",
            value=text[:60],
        ) from error
    if not isinstance(payload, Mapping):
        raise UsageError(
            f"The hook's input is {shortened(payload)}, but has to be a JSON object.",
            value=payload,
        )
    event = payload.get("hook_event_name")
    if not isinstance(event, str) or event not in _EVENTS:
        raise UsageError(
            f"The hook's input has the unknown hook_event_name {shortened(event)};"
            f" choose from: {', '.join(_EVENTS)}.",
            option="hook_event_name",
            value=event,
            allowed=tuple(_EVENTS),
        )
    occasion = _EVENTS[event]
    if occasion is HookOccasion.OTHER and payload.get("source") == "compact":
        occasion = HookOccasion.COMPACTED
    path = payload.get("transcript_path")
    transcript = _transcript_at(path) if isinstance(path, str) and path else None
    call = _call_of(payload) if occasion is HookOccasion.TOOL else None
    return HookInput(event, occasion, transcript, call, bool(payload.get("agent_id")))


def _transcript_at(path: str) -> Path:
    """The path of a session's log, which may not have been written yet.

    Raises:
        UsageError: the path cannot be looked up, or is not a file; a pipe would never end.
    """
    try:
        transcript = Path(path).expanduser()
        is_file = stat.S_ISREG(transcript.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return transcript
    except (OSError, ValueError, RuntimeError) as error:  # such as a name that no system allows
        raise _bad_transcript(
            path, f"The transcript {shortened(path)} cannot be looked up ({reason_of(error)})"
        ) from error
    if not is_file:
        raise _bad_transcript(path, f"The transcript {shortened(path)} is not a file")
    return transcript


def _bad_transcript(path: str, problem: str) -> UsageError:
    return UsageError(
        f"{problem}; check transcript_path in the hook's input.",
        option="transcript_path",
        value=path,
    )


def _call_of(payload: Mapping[str, Any]) -> ToolCall | None:
    """The tool call that the input reports; None if it names no tool."""
    name = payload.get("tool_name")
    arguments = payload.get("tool_input")
    if not isinstance(name, str):
        return None
    if not isinstance(arguments, Mapping):
        arguments = {"input": arguments}
    return ToolCall(name, arguments, str(payload.get("tool_use_id") or ""))
