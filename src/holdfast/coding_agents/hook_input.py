"""The input of a hook: the JSON that a coding agent writes to its standard input.

Claude Code, Codex and Gemini CLI send one JSON object with the same fields. Where they name an
event differently, it means the same: Gemini CLI's BeforeAgent is the UserPromptSubmit of others.
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


class Occasion(Enum):
    """When a hook is called."""

    PROMPT = "the user has sent a message, so that the turn before it is over"
    TOOL = "a tool has run, and the turn goes on"
    COMPACTED = "the context was compacted, and the model can be told something"
    LEAVING = "the context is about to be compacted, or just was; nothing reaches the model"
    OTHER = "a session begins or goes on, with its context whole"


_EVENTS = {
    "UserPromptSubmit": Occasion.PROMPT,
    "BeforeAgent": Occasion.PROMPT,  # Gemini CLI's names
    "PostToolUse": Occasion.TOOL,
    "PostToolUseFailure": Occasion.TOOL,
    "AfterTool": Occasion.TOOL,
    "PreCompact": Occasion.LEAVING,
    "PostCompact": Occasion.LEAVING,
    "PreCompress": Occasion.LEAVING,
    "SessionStart": Occasion.OTHER,
}


@dataclass(frozen=True)
class HookInput:
    """The call of a hook.

    Args:
        event: its name, which the answer repeats.
        transcript: the log of the session; None if the agent keeps none.
        call: the tool call that was just made; None for other events.
        is_in_subagent: whether a subagent made it, whose dialog is not in the transcript.
    """

    event: str
    occasion: Occasion
    transcript: Path | None
    call: ToolCall | None = None
    is_in_subagent: bool = False


def read_hook_input(text: str) -> HookInput:
    """Reads the JSON that an agent sends.

    Raises:
        UsageError: it is not a JSON object, is of an unknown event, or names a transcript
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
            f"The hook's input is {shortened(payload)}, and has to be a JSON object.",
            value=payload,
        )
    event = payload.get("hook_event_name")
    if not isinstance(event, str) or event not in _EVENTS:
        raise UsageError(
            f"The hook's input has the hook_event_name {shortened(event)}, which is not answered;"
            f" choose from: {', '.join(_EVENTS)}.",
            option="hook_event_name",
            value=event,
            allowed=tuple(_EVENTS),
        )
    occasion = _EVENTS[event]
    if occasion is Occasion.OTHER and payload.get("source") == "compact":
        occasion = Occasion.COMPACTED
    path = payload.get("transcript_path")
    transcript = _transcript_at(path) if isinstance(path, str) and path else None
    call = _call_of(payload) if occasion is Occasion.TOOL else None
    return HookInput(event, occasion, transcript, call, bool(payload.get("agent_id")))


def _transcript_at(path: str) -> Path:
    """The log of a session, which may not have been written yet.

    Raises:
        UsageError: it cannot be looked up, or is not a file: a pipe would never end.
    """
    try:
        transcript = Path(path).expanduser()
        is_file = stat.S_ISREG(transcript.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return transcript
    except (OSError, ValueError, RuntimeError) as error:  # a name that no file system takes, say
        raise _unusable(path, f"cannot be looked up ({reason_of(error)})") from error
    if not is_file:
        raise _unusable(path, "is not a file")
    return transcript


def _unusable(path: str, obstacle: str) -> UsageError:
    return UsageError(
        f"The transcript {shortened(path)} {obstacle}; check transcript_path in the hook's input.",
        option="transcript_path",
        value=path,
    )


def _call_of(payload: Mapping[str, Any]) -> ToolCall | None:
    name = payload.get("tool_name")
    arguments = payload.get("tool_input")
    if not isinstance(name, str):
        return None
    if not isinstance(arguments, Mapping):
        arguments = {"input": arguments}
    return ToolCall(name, arguments, str(payload.get("tool_use_id") or ""))
