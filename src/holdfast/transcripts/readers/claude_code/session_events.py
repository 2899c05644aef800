"""The events in the lines of a session: who wrote a message, and when it left the context.

    {"type": "user", "message": {"content": "<system-reminder>...</system-reminder>Hi"}}
    -> Event(MESSAGE, "Hi", "user")
    {"type": "attachment", "attachment": {"type": "nested_memory", "content": "..."}}
    -> Event(REMINDER, "...")

Attachments are messages that the user typed while the assistant worked, the output of hooks, files
of rules, and files that the user named. Since version 2.1.230 the line of an attachment also has
the text that the model saw (`rendered`).
"""

import hashlib
import json
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any

from holdfast.transcripts.chat_messages import read_messages
from holdfast.transcripts.content_blocks import kinds_without_text, text_of
from holdfast.transcripts.injected import element_text, elements_in, remove_elements
from holdfast.transcripts.json_fields import (
    at,
    list_or_empty,
    optional_list,
    require_field,
    require_object,
)
from holdfast.transcripts.reader import Unread
from holdfast.transcripts.readers.claude_code.session_lines import (
    MICRO_BOUNDARY,
    SessionLine,
)
from holdfast.transcripts.readers.claude_code.session_tree import SessionTree
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Malformed,
    WorkingFolder,
    with_unread,
)
from holdfast.validation.json_values import fields_of

# names of the elements that Claude Code writes into messages of the user
_INJECTED = (
    *("system-reminder", "local-command-stdout", "local-command-stderr", "local-command-caveat"),
    *("bash-input", "bash-stdout", "bash-stderr", "task-notification", "user-prompt-submit-hook"),
    "user-memory-input",  # which goes into a file
    *("teammate-message", "cross-session-message", "fork-boilerplate"),
    *("ide_opened_file", "ide_selection", "ide_diagnostics", "new-diagnostics"),
)
_REMINDERS = ("system-reminder", "user-prompt-submit-hook")  # which the model reads as orders
_COMMAND = ("command-name", "command-message", "command-args", "command-contents")

# --- Attachments: what the model saw beside the messages

# events whose hooks add their output to the model's context
_HOOKS_SEEN_BY_MODEL = ("SessionStart", "UserPromptSubmit", "UserPromptExpansion", "SubagentStart")


def _events_of_attachment(line: Mapping[str, Any]) -> Iterator[Event]:
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
        file_kind = at(attachment, "content", "type") if kind == "file" else "text"
        if reminder:
            yield Event(EventKind.REMINDER, reminder)
        elif file_kind != "text":  # such as an image
            yield Event(EventKind.REMINDER, unread=(str(file_kind),))


def _read_queued(attachment: Mapping[str, Any]) -> Event:
    """Reads a message that was queued until the assistant had finished a step."""
    prompt = text_of(attachment.get("prompt"))
    origin = attachment.get("origin")  # an object with its kind, or the kind itself
    kind = origin if isinstance(origin, str) else at(origin, "kind")
    is_by_person = kind in (None, "human")
    is_typed = is_by_person and attachment.get("commandMode", "prompt") == "prompt"
    text = remove_elements(prompt, _INJECTED) if is_typed else ""
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
        return "\n".join(text for text in content if isinstance(text, str))
    while isinstance(content, Mapping):
        content = content.get("content", content.get("file"))
    return content if isinstance(content, str) else ""


# --- The lines of a session

_INTERRUPTED = re.compile(r"\[Request interrupted by user[^\]]*\]?")
_CAVEAT = "Caveat: The messages below were generated by the user while running local commands"
# the result of a call that the user refused, and the user's words
_REFUSED = re.compile(
    r"The user doesn't want to proceed with this tool use\.[^\n]{0,200}"
    r" (?:To tell you how to proceed, the user said:"
    r"|The user provided the following reason for the rejection:)\s+(.*)",
    re.DOTALL,
)
# what stopped a call that had begun; other kinds of denials came before it ran
_DENIALS_WHILE_RUNNING = ("interrupted",)
_SUMMARY = "This session is being continued from a previous conversation"
# where the boundary of a microcompaction lists what was cleared: in sessions, and in stream-json
_CLEARED = (
    *("compactedToolIds", "clearedAttachmentUUIDs"),
    *("compacted_tool_ids", "cleared_attachment_uuids"),
)


def events_of(tree: SessionTree) -> tuple[Mapping[str, Sequence[Event]], list[Unread]]:
    """Returns the events of each line by its id, and the lines of the active path not read."""
    nodes: dict[str, list[Event]] = {line.id: [] for line in tree.lines}
    unread: list[Unread] = []
    for line, events in _read_path(tree.path):
        if isinstance(events, Unread):
            unread.append(events)
        else:
            nodes[line.id] = events
    for line, events in _read_path(tree.abandoned):
        if not isinstance(events, Unread):  # unreadable lines are left out anyway
            nodes[line.id] = events
    return nodes, unread


def _read_path(lines: Sequence[SessionLine]) -> Iterator[tuple[SessionLine, list[Event] | Unread]]:
    """Yields each line with its events, or with the reason why it cannot be read."""
    messages = [line for line in lines if line.is_message and not line.is_by_the_program]
    previous = {line.id: earlier for earlier, line in pairwise(messages)}
    following = {line.id: later for line, later in pairwise(messages)}
    digest = hashlib.sha256()  # of the messages so far
    results = _ResultsInContext()
    folder = WorkingFolder()
    for line in lines:
        folder.note(line.fields.get("cwd"), line.fields.get("gitBranch"))
        if line.is_message:
            digest.update(json.dumps(line.content, sort_keys=True).encode())
        results.add(line)
        try:
            events = _events(line, lines, previous.get(line.id), following.get(line.id))
        except Malformed as error:
            yield line, Unread(f"{line.source}: {error}")
            continue
        if cleared := results.cleared_by(line):
            events.insert(0, Event(EventKind.CLEARING, clears=cleared))
        identity = line.id if line.has_uuid else ""
        copy_ids = _copy_ids(line, digest.hexdigest())
        located = [
            replace(folder.of(event), source=line.source, id=identity, copy_ids=copy_ids)
            for event in events
        ]
        yield line, located


def _copy_ids(line: SessionLine, digest: str) -> tuple[str, ...]:
    """Returns the ids by which copies of a reply are recognised.

    One is its uuid. Copies with another uuid share the uuid of the line that they were copied from,
    and the id of the reply with a digest of the line's content; lines without a reply's id share
    the time with a digest of all messages so far.
    """
    if line.kind != "assistant":
        return ()
    ids = [line.id] if line.has_uuid else []
    if copied_from := at(line.fields, "forkedFrom", "messageUuid"):
        ids.append(str(copied_from))
    if line.reply_id:  # a reply has a line for each of its blocks
        content = json.dumps(line.content, sort_keys=True).encode()
        ids.append(f"{line.reply_id} {hashlib.sha256(content).hexdigest()[:16]}")
    elif time := line.fields.get("timestamp"):
        ids.append(f"{time} {digest[:16]}")
    return tuple(ids)


def _events(
    line: SessionLine,
    lines: Sequence[SessionLine],
    before: SessionLine | None,
    after: SessionLine | None,
) -> list[Event]:
    """Reads the events of a line, given its path and the messages around it."""
    if line.is_boundary:
        return [Event(EventKind.COMPACTION, keeps=_kept_ids(line, lines))]
    if line.fields.get("subtype") == MICRO_BOUNDARY:
        return [Event(EventKind.CLEARING, clears=_cleared_ids(line))]
    if line.kind == "attachment":
        return list(_events_of_attachment(line.fields))
    if line.kind == "system" and at(line.fields, "message", "role") == "system":
        return [Event(EventKind.MESSAGE, line.text, "system")]
    if not line.is_message:
        return []
    if line.is_by_the_program:
        return [Event(EventKind.ERROR, line.text)]
    message = require_object(require_field(line.fields, "message"))
    events: list[Event] = []
    for event in read_messages([{"role": line.kind, **message}]):
        if event.is_by_user:
            parts = [*_events_of_user_message(event.text, line, before, after)]
            events += with_unread(parts, event.unread)
        else:
            events.append(_with_refusal(event, line))
    return [*events, *_words_of_refusals(line, events)]


def _with_refusal(event: Event, line: SessionLine) -> Event:
    """Marks a result as a refusal, or not, if the line says why its call was denied."""
    if event.kind is not EventKind.TOOL_RESULT:
        return event
    kind = line.denial_kind(event.call_id)
    return replace(event, is_refusal=kind not in _DENIALS_WHILE_RUNNING) if kind else event


def _words_of_refusals(line: SessionLine, events: Sequence[Event]) -> Iterator[Event]:
    """Yields the words with which the user refused tool calls.

    Claude Code marks the result of a refused call as an error, which tells it from the output of a
    tool with the same words.
    """
    failed = {str(block.get("tool_use_id") or "") for block in line.blocks if block.get("is_error")}
    for event in events:
        if event.kind is not EventKind.TOOL_RESULT or event.call_id not in failed:
            continue
        if (match := _REFUSED.match(event.text)) and (words := match[1].strip()):
            yield Event(EventKind.MESSAGE, words, "user")


def _kept_ids(boundary: SessionLine, lines: Sequence[SessionLine]) -> frozenset[str]:
    """Returns the ids of the lines that a compaction kept in the context unchanged."""
    uuids = at(boundary.compaction, "preservedMessages", "uuids")
    if isinstance(uuids, list):
        return frozenset(map(str, uuids))
    ids = [line.id for line in lines]
    head = boundary.preserved("head")
    tail = boundary.preserved("tail")
    if head not in ids or tail not in ids:
        return frozenset()
    return frozenset(ids[ids.index(head) : ids.index(tail) + 1])


def _cleared_ids(boundary: SessionLine) -> frozenset[str]:
    """Returns the ids of the calls whose results were cleared, and of attachments that were."""
    fields = boundary.fields
    metadata = fields.get("microcompactMetadata", fields.get("microcompact_metadata"))
    ids = chain.from_iterable(list_or_empty(at(metadata, name)) for name in _CLEARED)
    return frozenset(map(str, ids))


@dataclass
class _ResultsInContext:
    """The tool results that are in the context while a session is read.

    Args:
        ids: the ids of their calls, the oldest first; "" for a result that names none.
        cleared: how many results the API has cleared since the last compaction.
    """

    ids: deque[str] = field(default_factory=deque)
    cleared: int = 0

    def add(self, line: SessionLine) -> None:
        """Adds the results in a line; a compaction removes all before it."""
        if line.is_boundary:
            self.ids.clear()
            self.cleared = 0
        results = (block for block in line.blocks if block.get("type") == "tool_result")
        self.ids += (str(block.get("tool_use_id") or "") for block in results)

    def cleared_by(self, line: SessionLine) -> frozenset[str]:
        """Returns the ids of the calls whose results the API cleared before a reply.

        The reply says how many of the oldest results are gone (`clear_tool_uses`), including those
        that were cleared before.
        """
        if not line.is_message or line.is_by_the_program:
            return frozenset()
        edits = list_or_empty(at(line.fields, "message", "context_management", "applied_edits"))
        counts = (at(edit, "cleared_tool_uses") for edit in edits)
        total = max((count for count in counts if isinstance(count, int)), default=0)
        number = max(min(total - self.cleared, len(self.ids)), 0)
        self.cleared += number
        cleared = frozenset(self.ids.popleft() for _ in range(number))
        return cleared - {""}


def _events_of_user_message(
    text: str, line: SessionLine, before: SessionLine | None, after: SessionLine | None
) -> Iterator[Event]:
    """Tells the user's words from what Claude Code writes in the user's place."""
    if line.is_summary or text.startswith(_SUMMARY):
        yield Event(EventKind.COMPACTION, text)
    elif "toolUseResult" in line.fields and not line.has_block("tool_result"):
        yield Event(EventKind.TOOL_RESULT, text)
    else:
        if interruption := _INTERRUPTED.match(text):
            yield Event(EventKind.INTERRUPTION, interruption[0])
            text = text[interruption.end() :].strip()
            if not text:
                return
        words = _human_text(line, text, before, after)
        if words is None:
            yield Event(EventKind.REMINDER, text)
        else:
            if reminder := elements_in(text, _REMINDERS):
                yield Event(EventKind.REMINDER, reminder)
            yield Event(EventKind.MESSAGE, words, "user")


def _human_text(
    line: SessionLine, text: str, before: SessionLine | None, after: SessionLine | None
) -> str | None:
    """Returns the words of a person in a message of the user; None if a program wrote it all.

    A slash command counts as words of the user, unless its text follows in a message of its own,
    which then counts instead.
    """
    origin = line.fields.get("origin")
    kind = origin.get("kind", "human") if isinstance(origin, Mapping) else origin or "human"
    if kind != "human" or text.startswith(_CAVEAT):
        return None
    if line.flag("isVisibleInTranscriptOnly") or line.flag("isSynthetic"):
        return None
    words = remove_elements(text, (*_INJECTED, *_COMMAND))
    if line.flag("isMeta"):  # by Claude Code, or the text of the command in the line before
        command = _command_in(before)
        if not (command and words):
            return None
        return " ".join(filter(None, (words, _arguments(command, words))))
    command = _command_in(line)
    if words or command is None:
        is_by_program = not words and bool(text.strip())
        return None if is_by_program else words
    if after is not None and _continues_command(after):
        return None
    arguments = element_text(command, "command-args")
    return " ".join(filter(None, (element_text(command, "command-name"), arguments)))


def _arguments(command: str, expanded: str) -> str:
    """Returns a command's arguments; "" if its expanded text has them already."""
    arguments = element_text(command, "command-args")
    return "" if arguments in expanded else arguments


def _command_in(line: SessionLine | None) -> str | None:
    """Returns the text in a line that names a slash command; None if it names none."""
    if line is None or line.kind != "user":
        return None
    return next((text for text in line.texts if "<command-name>" in text), None)


def _continues_command(line: SessionLine) -> bool:
    """Whether a line is the text or the output of the command before it."""
    text = line.content.lstrip() if isinstance(line.content, str) else ""
    is_output = text.startswith(("<local-command-stdout>", "<local-command-stderr>"))
    return line.kind == "user" and (line.flag("isMeta") or is_output)
