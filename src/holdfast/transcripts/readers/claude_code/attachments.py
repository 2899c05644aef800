"""Attachments of Claude Code: what it put before the model beside the messages.

They are messages that the user typed while the assistant worked, the output of hooks, files of
rules, and files that the user named. Versions from 2.1.230 on write beside an attachment what the
model saw of it (`rendered`).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.transcripts.content_blocks import text_of
from holdfast.transcripts.injected import without_elements
from holdfast.transcripts.json_fields import at, entries, list_of
from holdfast.transcripts.readers.claude_code.injected_elements import INJECTED
from holdfast.transcripts.transcript import Event, Kind
from holdfast.validation.json_values import fields_of

_HOOKS_THAT_SAY = ("SessionStart", "UserPromptSubmit", "UserPromptExpansion", "SubagentStart")


def events_of_attachment(line: Mapping[str, Any]) -> Iterator[Event]:
    """The events of a line with an attachment.

    Raises:
        Malformed: a part of it cannot be read.
    """
    attachment = fields_of(line.get("attachment"))
    kind = attachment.get("type")
    if kind == "queued_command":
        yield _queued(attachment)
    elif kind == "prompt_snapshot":
        prompts = attachment.get("systemPrompt")
        texts = prompts if isinstance(prompts, list) else [prompts]
        prompt = "\n\n".join(text for text in texts if isinstance(text, str))
        yield Event(Kind.MESSAGE, prompt, "system")
    elif kind == "instructions":  # files of rules, which a compaction does not remove
        for file in entries(attachment.get("files")):
            if text := _text_within(at(file, "content")):
                yield Event(Kind.MESSAGE, text, "system")
    else:
        reminder = _rendered(line)
        if reminder is None:
            reminder = _content(attachment)
        if reminder:
            yield Event(Kind.REMINDER, reminder)


def _queued(attachment: Mapping[str, Any]) -> Event:
    """A message that waited until the assistant had ended a step."""
    prompt = text_of(attachment.get("prompt"))
    is_by_person = at(attachment, "origin", "kind") in (None, "human")
    is_typed = is_by_person and attachment.get("commandMode", "prompt") == "prompt"
    text = without_elements(prompt, INJECTED) if is_typed else ""
    return Event(Kind.MESSAGE, text, "user") if text else Event(Kind.REMINDER, prompt)


def _rendered(line: Mapping[str, Any]) -> str | None:
    """The text of an attachment as the model saw it; None if the line does not say."""
    for name in ("rendered", "renderedInHumanTurn"):
        if isinstance(messages := line.get(name), list):
            return "\n".join(text_of(at(message, "content")) for message in messages)
    return None


def _content(attachment: Mapping[str, Any]) -> str:
    """The texts in an attachment itself; "" if the model did not see them."""
    is_hook = attachment.get("type") == "hook_success"
    if is_hook and attachment.get("hookEvent") not in _HOOKS_THAT_SAY:
        return ""
    parts = [
        attachment,
        *list_of(attachment.get("skills")),
        *list_of(attachment.get("memories")),
    ]
    texts = [_text_within(at(part, "content")) for part in parts]
    return "\n".join(filter(None, [*texts, _text_within(attachment.get("snippet"))]))


def _text_within(content: Any) -> str:
    """The text of an attachment's content, which may be nested."""
    if isinstance(content, list):
        return "\n".join(text for text in content if isinstance(text, str))
    while isinstance(content, Mapping):
        content = content.get("content", content.get("file"))
    return content if isinstance(content, str) else ""
