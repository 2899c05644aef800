"""The messages that Codex logs as the user's: who wrote each of their parts.

Since version 0.150 a message names the kind of each part (`content_item_kinds`), such as
`user.text` or `agents_md.instructions`. In older messages, the elements around a part tell that
Codex wrote it. Unknown elements count as Codex's only if the message has nothing else.
"""

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

from holdfast.transcripts.content_texts import kinds_without_text, text_of
from holdfast.transcripts.injected import elements_in, enclosing_element, remove_elements
from holdfast.transcripts.json_fields import at
from holdfast.transcripts.transcript import Event, EventKind, with_unread

_INSTRUCTIONS = ("<user_instructions>", "# AGENTS.md instructions")  # the project's rules
_INSTRUCTIONS_KIND = "agents_md.instructions"
_USER_KIND = "user."  # how the kinds of parts by the user begin
_KINDS_WITHOUT_AUTHOR = ("", "unknown")
# elements that Codex writes into messages of the user
_INJECTED = (
    *("environment_context", "subagent_notification", "user_shell_command"),
    *("skill", "user_action", "model_switch", "collaboration_mode", "permissions instructions"),
    *("personality_spec", "apps_instructions", "hook_prompt", "goal_context", "image"),
    *("recommended_plugins", "codex_internal_context", "external_codex_git_state"),
    *("in-app-browser-context", "response-annotations"),
)
_INTERRUPTION = "turn_aborted"  # the element which says that the user interrupted the assistant
# what editors and the app write before the user's request
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
_IMAGE = re.compile(r"<image\b[^>]*>\s*(?:</image>\s*|\Z)")  # around a part that is an image


@dataclass(frozen=True)
class _Part:
    """A part of a message.

    Args:
        kind: its kind as the message names it; "" if it names none.
        event: the event for what Codex wrote; None for the user's words and for empty parts.
    """

    text: str
    kind: str
    event: Event | None

    @property
    def is_marked(self) -> bool:
        """Whether the message says that the user wrote the part."""
        return self.kind.startswith(_USER_KIND)

    @property
    def is_words(self) -> bool:
        """Whether it has words of the user."""
        return self.event is None and bool(self.text.strip())


def events_of_user_message(item: Mapping[str, Any], typed_texts: Set[str]) -> list[Event]:
    """Reads a message with the role `user`.

    It becomes one message with all of the user's words, between what Codex wrote before them and
    after them.

    Args:
        typed_texts: the messages that the user typed, according to the events for display, without
            white space.

    Raises:
        Malformed: a part of it cannot be read.
    """
    unread = kinds_without_text(item.get("content"))
    parts = _with_elements_by_codex(_split(item), typed_texts)
    words = [part for part in parts if part.is_words]
    first = parts.index(words[0]) if words else len(parts)
    before = [part.event for part in parts[:first] if part.event]
    after = [part.event for part in parts[first:] if part.event]
    is_marked = any(part.is_marked for part in parts)
    if not words and before and not is_marked:
        return with_unread(before, unread)
    text = "\n".join(part.text for part in words)
    return with_unread([*before, *_events_of_words(text, is_marked), *after], unread)


def _split(message: Mapping[str, Any]) -> list[_Part]:
    """Splits a message into its parts, with events for those that are known to be Codex's."""
    content = message.get("content")
    items = content if isinstance(content, list) else [content]
    texts = [text_of(item) for item in items]
    kinds = at(message, "internal_chat_message_metadata_passthrough", "content_item_kinds")
    if not isinstance(kinds, list) or len(kinds) != len(texts):
        kinds = [""] * len(texts)
    kinds = [str(kind or "") for kind in kinds]
    return [
        _Part(text, kind, _known_event(text, kind)) for text, kind in zip(texts, kinds, strict=True)
    ]


def _known_event(text: str, kind: str) -> Event | None:
    """Returns the event for a part that Codex is known to have written; None for any other."""
    if kind.startswith(_USER_KIND) or not text.strip():
        return None
    element = enclosing_element(text)
    if kind == _INSTRUCTIONS_KIND or text.lstrip().startswith(_INSTRUCTIONS):
        return Event(EventKind.MESSAGE, text, "system")
    if element == _INTERRUPTION:
        return Event(EventKind.INTERRUPTION, text)
    if element in _INJECTED or kind not in _KINDS_WITHOUT_AUTHOR:
        return Event(EventKind.REMINDER, text)
    return None


def _with_elements_by_codex(parts: list[_Part], typed_texts: Set[str]) -> list[_Part]:
    """Marks parts that an unknown version of Codex wrote.

    These are all parts whose author is not known, if each of them is a single element and the user
    did not type them.
    """
    texts = [part.text for part in parts if part.is_words]
    is_typed = without_whitespace("".join(texts)) in typed_texts
    is_marked = any(part.is_marked for part in parts)
    if is_marked or is_typed or not all(map(enclosing_element, texts)):
        return parts
    return [
        replace(part, event=Event(EventKind.REMINDER, part.text)) if part.is_words else part
        for part in parts
    ]


def without_whitespace(text: str) -> str:
    """Removes all white space, to compare texts whose parts programs join differently."""
    return "".join(text.split())


def _events_of_words(text: str, is_marked: bool) -> list[Event]:
    """Returns the user's words, after a reminder with what the app wrote before them."""
    surroundings = _BEFORE_REQUEST.match(text)
    before = [Event(EventKind.REMINDER, surroundings[0])] if surroundings else []
    request = text[surroundings.end() :] if surroundings else text
    request = _IMAGE.sub("", request).strip()
    words = request if is_marked else remove_elements(request, _INJECTED)
    if request and not words:
        return [*before, Event(EventKind.REMINDER, request)]
    if not is_marked and (reminder := elements_in(request, _INJECTED)):
        before.append(Event(EventKind.REMINDER, reminder))
    return [*before, Event(EventKind.MESSAGE, words, "user")]
