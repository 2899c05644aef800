"""The messages that Codex logs as the user's: who wrote each of their parts.

Since version 0.150 a message names the kind of each part (`content_item_kinds`), such as
`user.text` or `agents_md.instructions`. In older ones, what Codex wrote is known by
the elements it stands in: those of other versions count if the message is nothing else.
"""

import re
from collections.abc import Mapping, Sequence, Set
from typing import Any

from holdfast.transcripts.content_blocks import text_of
from holdfast.transcripts.injected import element_around, without_elements
from holdfast.transcripts.json_fields import at
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
    # "# Context from my IDE setup:", "## Open tabs:", "- a.py", "## My request for Codex:"
    r"# [^\n]+:.*?^## My request for Codex:"
    # "# Files mentioned by the user:", "## a.png: /x/a.png", "## My request:"
    r"|# (?:Context from my IDE setup|Files mentioned by the user):.*?^## My request:"
    # "<in-app-browser-context>", "...", "</in-app-browser-context>", "## My request:"
    r"|<(?:in-app-browser-context|response-annotations)\b.*?^## My request:"
    r")[ \t]*\n?",
    re.DOTALL | re.MULTILINE,
)
_IMAGE = re.compile(r"<image\b[^>]*>\s*(?:</image>\s*|\Z)")  # around the part with the image itself


def events_of_user_message(item: Mapping[str, Any], typed: Set[str]) -> list[Event]:
    """The events in a message of the role `user`: one message with all words of the user's, between
    what Codex wrote before them and after them.

    Args:
        typed: the messages that the user typed, according to the events for display, without
            whitespace.

    Raises:
        Malformed: a part of it cannot be read.
    """
    content = item.get("content")
    texts = [text_of(part) for part in (content if isinstance(content, list) else [content])]
    kinds = _kinds_of_parts(item, texts)
    is_marked = any(map(_is_users, kinds))
    by_codex = _events_by_codex(texts, kinds, typed)
    written = [event for event in by_codex if event]
    words = _left(texts, by_codex)
    if not words and written and not is_marked:
        return written
    first = texts.index(words[0]) if words else len(texts)
    before = [event for event in by_codex[:first] if event]
    return [*before, *_words("\n".join(words), is_marked), *written[len(before) :]]


def _events_by_codex(
    texts: Sequence[str], kinds: Sequence[str], typed: Set[str]
) -> list[Event | None]:
    """The event of each part that Codex wrote; None for the user's, and for those without text.

    If all that is not known to be Codex's are elements that the user did not type, another version
    of Codex wrote them.
    """
    events = [*map(_known_event, texts, kinds)]
    left = _left(texts, events)
    is_typed = without_whitespace("".join(left)) in typed
    if any(map(_is_users, kinds)) or is_typed or not all(map(element_around, left)):
        return events
    return [
        event or (Event(Kind.REMINDER, text) if text.strip() else None)
        for text, event in zip(texts, events, strict=True)
    ]


def without_whitespace(text: str) -> str:
    """A text as it is compared with what the user typed, as programs join its parts differently."""
    return "".join(text.split())


def _left(texts: Sequence[str], by_codex: Sequence[Event | None]) -> list[str]:
    """The texts that Codex did not write."""
    return [text for text, event in zip(texts, by_codex, strict=True) if text.strip() and not event]


def _kinds_of_parts(item: Mapping[str, Any], parts: Sequence[Any]) -> list[str]:
    """The kind of each part; "" where the message does not tell it."""
    kinds = at(item, "internal_chat_message_metadata_passthrough", "content_item_kinds")
    if not isinstance(kinds, list) or len(kinds) != len(parts):
        return [""] * len(parts)
    return [str(kind or "") for kind in kinds]


def _is_users(kind: str) -> bool:
    return kind.startswith("user.")


def _known_event(text: str, kind: str) -> Event | None:
    """The event of a part that is known to be Codex's; None for any other."""
    if _is_users(kind) or not text.strip():
        return None
    element = element_around(text)
    if kind == _INSTRUCTIONS_KIND or text.lstrip().startswith(_INSTRUCTIONS):
        return Event(Kind.MESSAGE, text, "system")
    if element == _INTERRUPTED:
        return Event(Kind.INTERRUPTION, text)
    if element in _INJECTED or kind not in _KINDS_THAT_TELL_NOTHING:
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
