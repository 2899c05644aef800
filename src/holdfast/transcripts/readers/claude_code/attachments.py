"""The attachments of a session of Claude Code: what the model saw beside the messages.

    {"type": "attachment", "attachment": {"type": "nested_memory", "content": "..."}}
    -> Event(REMINDER, "...")

They are messages that the user typed while the assistant worked, the output of hooks, files of
rules, and files that the user named. Since version 2.1.230 the line of an attachment also has the
text that the model saw (`rendered`).
"""

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.transcripts.content_texts import kinds_without_text, text_of
from holdfast.transcripts.injected import remove_elements
from holdfast.transcripts.json_fields import at, first_of, list_or_empty, optional_list
from holdfast.transcripts.transcript import Event, EventKind
from holdfast.validation.json_values import fields_of

# names of the elements that Claude Code writes into messages of the user
INJECTED = (
    *("system-reminder", "local-command-stdout", "local-command-stderr", "local-command-caveat"),
    *("bash-input", "bash-stdout", "bash-stderr", "task-notification", "user-prompt-submit-hook"),
    "user-memory-input",  # which goes into a file
    *("teammate-message", "cross-session-message", "fork-boilerplate"),
    *("ide_opened_file", "ide_selection", "ide_diagnostics", "new-diagnostics"),
)
_FILES_WITHOUT_TEXT = ("pdf_reference", "compact_file_reference")  # of which the log has the name
# events whose hooks add their output to the model's context
_HOOKS_SEEN_BY_MODEL = ("SessionStart", "UserPromptSubmit", "UserPromptExpansion", "SubagentStart")


def events_of_attachment(line: Mapping[str, Any]) -> Iterator[Event]:
    """Reads a line with an attachment.

    Raises:
        Malformed: a part of it cannot be read.
    """
    attachment = fields_of(line.get("attachment"))
    kind = attachment.get("type")
    if kind == "queued_command":
        yield _read_queued(attachment)
    elif kind == "prompt_snapshot":
        prompts = attachment.get("systemPrompt")
        texts = prompts if isinstance(prompts, list) else [prompts]
        prompt = "\n\n".join(text for text in texts if isinstance(text, str))
        yield Event(EventKind.MESSAGE, prompt, "system")
    elif kind == "instructions":  # files of rules, which survive a compaction
        for file in optional_list(attachment.get("files")):
            if text := _text_within(at(file, "content")):
                yield Event(EventKind.MESSAGE, text, "system")
    else:
        reminder = _rendered_text(line)
        if reminder is None:
            reminder = _own_text(attachment)
        file_kind = at(attachment, "content", "type")
        if reminder:
            yield Event(EventKind.REMINDER, reminder)
        elif kind == "file" and file_kind != "text":  # such as an image
            yield Event(EventKind.REMINDER, unread=(str(file_kind),))
        elif kind in _FILES_WITHOUT_TEXT:
            yield Event(EventKind.REMINDER, unread=(str(kind),))


def _read_queued(attachment: Mapping[str, Any]) -> Event:
    """Reads a message that was queued until the assistant had finished a step."""
    prompt = text_of(attachment.get("prompt"))
    origin = attachment.get("origin")  # an object with its kind, or the kind itself
    kind = origin if isinstance(origin, str) else at(origin, "kind")
    is_by_person = kind in (None, "human")
    is_typed = is_by_person and attachment.get("commandMode", "prompt") == "prompt"
    text = remove_elements(prompt, INJECTED) if is_typed else ""
    unread = kinds_without_text(attachment.get("prompt"))
    if text:
        return Event(EventKind.MESSAGE, text, "user", unread=unread)
    return Event(EventKind.REMINDER, prompt, unread=unread)


def _rendered_text(line: Mapping[str, Any]) -> str | None:
    """Returns an attachment's text as the model saw it; None if the line does not have it."""
    for name in ("rendered", "renderedInHumanTurn"):
        if isinstance(messages := line.get(name), list):
            return "\n".join(text_of(at(message, "content")) for message in messages)
    return None


def _own_text(attachment: Mapping[str, Any]) -> str:
    """Returns the texts in an attachment itself; "" if the model did not see them."""
    is_hook = attachment.get("type") == "hook_success"
    if is_hook and attachment.get("hookEvent") not in _HOOKS_SEEN_BY_MODEL:
        return ""
    parts = [
        attachment,
        *list_or_empty(attachment.get("skills")),
        *list_or_empty(attachment.get("memories")),
    ]
    texts = [_text_within(at(part, "content")) for part in parts]
    return "\n".join(filter(None, [*texts, _text_within(attachment.get("snippet"))]))


def _text_within(content: Any) -> str:
    """Returns the text of an attachment's content, which may be nested; "" if it has none."""
    if isinstance(content, list):
        return "\n".join(filter(None, map(_text_within, content)))
    if isinstance(content, Mapping):
        return _text_within(first_of(content, "content", "file", "contents", "text"))
    return content if isinstance(content, str) else ""
