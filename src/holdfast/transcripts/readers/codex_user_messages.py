"""The messages that Codex logs as the user's: who wrote each of their parts.

Since version 0.150 a message names the kind of each part (`content_item_kinds`), such as
`user.text` or `agents_md.instructions`. In older ones, what Codex wrote is known by
the elements it stands in.
"""

import re
from collections.abc import Mapping, Sequence, Set
from typing import Any

from holdfast.transcripts.content_blocks import text_of
from holdfast.transcripts.injected import element_around, without_elements
from holdfast.transcripts.reader import at
from holdfast.transcripts.transcript import Event, Kind

_INSTRUCTIONS = ("<user_instructions>", "# AGENTS.md instructions")  # the project's rules
_INSTRUCTIONS_KIND = "agents_md.instructions"
_KINDS_THAT_TELL_NOTHING = ("", "unknown")
_INJECTED = (  # elements that Codex writes into messages of the user
    *("environment_context", "subagent_notification", "user_shell_command"),
    *("skill", "user_action", "model_switch", "collaboration_mode", "permissions instructions"),
    *("personality_spec", "apps_instructions", "hook_prompt", "goal_context", "image"),
    *("recommended_plugins", "codex_internal_context", "external_codex_git_state"),
    *("in-app-browser-context", "response-annotations"),
)
_INTERRUPTED = "turn_aborted"  # the element that says that the user interrupted the assistant
# what editors and the app put before the user's words
_BEFORE_REQUEST = re.compile(
    r"\A\s*(?:"
    r"# [^\n]+:.*?^## My request for Codex:|"
    r"(?:# (?:Context from my IDE setup|Files mentioned by the user):"
    r"|<(?:in-app-browser-context|response-annotations)\b).*?^## My request:"
    r")[ \t]*\n?",
    re.DOTALL | re.MULTILINE,
)
_IMAGE = re.compile(r"<image\b[^>]*>\s*(?:</image>\s*|\Z)")  # around the part with the image itself


def events_of_user_message(item: Mapping[str, Any], typed: Set[str]) -> list[Event]:
    """The events in a message of the role `user`.

    Args:
        typed: the messages that the user typed, according to the events for display.

    Raises:
        Malformed: a part of it cannot be read.
    """
    content = item.get("content")
    parts = content if isinstance(content, list) else [content]
    is_typed = text_of(content).strip() in typed
    events: list[Event] = []
    words: list[str] = []
    kinds = _kinds_of_parts(item, parts)
    for part, kind in zip(parts, kinds, strict=True):
        text = text_of(part)
        if event := _by_codex(text, kind, is_typed):
            events.append(event)
        elif text:
            words.append(text)
    is_marked = any(map(_is_users, kinds))
    if words or is_marked or not events:
        events += _words("\n".join(words), is_marked)
    return events


def _kinds_of_parts(item: Mapping[str, Any], parts: Sequence[Any]) -> list[str]:
    """The kind of each part; "" where the message does not tell it."""
    kinds = at(item, "internal_chat_message_metadata_passthrough", "content_item_kinds")
    if not isinstance(kinds, list) or len(kinds) != len(parts):
        return [""] * len(parts)
    return [str(kind or "") for kind in kinds]


def _is_users(kind: str) -> bool:
    return kind.startswith("user.")


def _by_codex(text: str, kind: str, is_typed: bool) -> Event | None:
    """The event of a part that Codex wrote; None if it may be the user's."""
    if _is_users(kind) or not text.strip():
        return None
    element = element_around(text)
    if kind == _INSTRUCTIONS_KIND or text.lstrip().startswith(_INSTRUCTIONS):
        return Event(Kind.MESSAGE, text, "system")
    if element == _INTERRUPTED:
        return Event(Kind.INTERRUPTION, text)
    is_injected = element in _INJECTED or (element and not is_typed)
    if is_injected or kind not in _KINDS_THAT_TELL_NOTHING:
        return Event(Kind.REMINDER, text)
    return None


def _words(text: str, is_marked: bool) -> list[Event]:
    """The user's words, and before them what the app wrote into the same text."""
    surroundings = _BEFORE_REQUEST.match(text)
    before = [Event(Kind.REMINDER, surroundings[0])] if surroundings else []
    words = _IMAGE.sub("", text[surroundings.end() :] if surroundings else text).strip()
    said = words if is_marked else without_elements(words, _INJECTED)
    if words and not said:
        return [*before, Event(Kind.REMINDER, words)]
    return [*before, Event(Kind.MESSAGE, said, "user")]
