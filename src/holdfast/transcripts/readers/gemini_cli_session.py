"""A session of Gemini CLI, while its lines are read: its messages, and those in the context.

Gemini CLI adds messages, and at times sets the messages of the context anew. If it replaces 1 and 2
by a summary, it sets the context to the new message "s" and to 3:

    messages   1, 2, 3                context   1, 2, 3
    messages   1, 2, 3, compression   context   s, 3       the compression stands for "s", keeps 3

A compression, and a shortening of earlier results of tools, are entries among the messages.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from holdfast.errors import shortened
from holdfast.plurals import count_of
from holdfast.transcripts.json_fields import at, list_or_empty, optional_list, require_object
from holdfast.transcripts.reader import Unread
from holdfast.transcripts.readers.gemini_cli_messages import (
    Compression,
    Shortening,
    is_in_history,
    is_reply,
    is_spoken,
    results_in,
)
from holdfast.transcripts.transcript import Malformed, sequential_parents

Message = Mapping[str, Any]  # a message as Gemini CLI writes it


class CompressedMessage(NamedTuple):
    """A message that a compression put into the context, and the id of the compression."""

    compression_id: str
    message: Message


class AbandonedMessage(NamedTuple):
    """A message that was taken back, and the id of the message before it, if any."""

    id: str
    id_before: str | None
    message: Message


@dataclass
class GeminiSession:
    """A session under construction.

    Args:
        messages: the messages by id, in order, with an entry for each compression and shortening;
            a message that is written again replaces the first.
        sources: the source of each message; of the first if it is written again.
        context: the ids of the messages in the model's context.
        abandoned: the messages that were taken back.
        compressed: the messages within a compression, by their ids.
        first_ids: the first id of each message that Gemini CLI wrote again under another one.
    """

    name: str
    is_of_subagent: bool = False
    messages: dict[str, Message] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    context: list[str] = field(default_factory=list)
    abandoned: list[AbandonedMessage] = field(default_factory=list)
    compressed: dict[str, CompressedMessage] = field(default_factory=dict)
    first_ids: dict[str, str] = field(default_factory=dict)

    @property
    def has_reply(self) -> bool:
        return any(map(is_reply, self.messages.values()))

    def add(self, messages: Any, source: str) -> None:
        """Appends messages."""
        for message in optional_list(messages):
            message_id = self._id_of(message) or f"message {len(self.messages)}"
            if message_id in self.compressed:
                continue
            self.messages[message_id] = message
            self.sources.setdefault(message_id, source)
            if message_id not in self.context:
                self.context.append(message_id)

    def rewind(self, target: Any, source: str, by: str) -> Unread:
        """Takes back the message `target` and those after it; `by` is the field that says so."""
        if not isinstance(target, str):
            raise Malformed(f"Gemini CLI rewound to {shortened(target)}, which is not a message")
        ids = list(self.messages)
        target_id = self.first_ids.get(target, target)
        if target_id in self.compressed:
            first = ids.index(self.compressed[target_id].compression_id) + 1
        else:  # for a message that it does not know, Gemini CLI takes back all of them
            first = ids.index(target_id) if target_id in ids else 0
        ids_before = sequential_parents(ids)
        for message_id in ids[first:]:
            message = self.messages.pop(message_id)
            self.abandoned.append(AbandonedMessage(message_id, ids_before[message_id], message))
        self.compressed = {
            message_id: compressed
            for message_id, compressed in self.compressed.items()
            if compressed.compression_id in self.messages
        }
        known = self.messages.keys() | self.compressed.keys()
        self.context = [message_id for message_id in self.context if message_id in known]
        count = len(ids) - first
        return Unread(
            f"{source}: Gemini CLI rewound the session to before the message {target!r} ({by}), so"
            f" {count_of(count, 'message')} {'is' if count == 1 else 'are'} left out"
        )

    def set_context(self, messages: Any, source: str) -> Unread | None:
        """Sets the messages in the model's context.

        Gemini CLI does this when it starts, when it compresses the dialog or shortens old results
        of tools, and when it takes back a turn that was aborted. Which of these it was follows from
        what is removed.
        """
        new_context: dict[str, Message] = {}
        for number, message in enumerate(optional_list(messages)):
            message_id = self._id_of(message) or f"message {number}"
            has_id = bool(message.get("id"))
            new_context[message_id] = message if has_id else {**message, "id": message_id}
        removed = [message_id for message_id in self.context if message_id not in new_context]
        if not any(is_spoken(self._in_context(message_id)) for message_id in removed):  # a start
            self._write_again(new_context, removed, source)
            return None
        if any(message_id not in self.context for message_id in new_context):
            self._compress(new_context, source)
            return None
        kept = [message_id for message_id in self.context if message_id in new_context]
        if self.context[: len(kept)] == kept:  # the end of the context is removed
            return self.rewind(removed[0], source, by="$set")
        self._merge_copies(removed, kept, source)
        return None

    def _write_again(
        self, new_context: Mapping[str, Message], removed: Sequence[str], source: str
    ) -> None:
        """Writes the messages of the context again, in their order; some may have changed.

        Those from before a compression or a shortening stay before it. A result of a tool that has
        changed was shortened: its message keeps the whole result, and a shortening follows.
        """
        ids = list(self.messages)
        changes = [
            number
            for number, message_id in enumerate(ids)
            if isinstance(self.messages[message_id].get("type"), Compression | Shortening)
        ]
        in_place = set(ids[: changes[-1]]) & new_context.keys() if changes else set()
        shortened_calls: list[str] = []
        whole_messages: list[Message] = []
        for message_id, message in new_context.items():
            before = self._in_context(message_id) if message_id in self.context else {}
            changed_calls = _changed_calls(results_in(before), message) if before else []
            shortened_calls += changed_calls
            whole_messages.append(_with_calls_of(before, changed_calls, message))
        for message_id in self.context:
            if message_id not in in_place:
                self.messages.pop(message_id, None)
        self.context = [message_id for message_id in new_context if message_id in self.compressed]
        self.add(whole_messages, source)
        for message_id in removed:
            self.sources.pop(message_id, None)
        self._add_shortening(shortened_calls, source)

    def _compress(self, new_context: Mapping[str, Message], source: str) -> None:
        """Adds a compression, by which new messages replaced others in the context."""
        new = {id_: message for id_, message in new_context.items() if id_ not in self.context}
        kept = [id_ for id_ in new_context if id_ in self.messages and id_ not in new]
        again = [message for id_, message in new_context.items() if id_ in self.compressed]
        compression = Compression((*again, *new.values()), frozenset(kept))
        compression_id = f"compression {len(self.messages)}"
        self.messages[compression_id] = {"type": compression}
        self.sources[compression_id] = source
        for message_id, message in new.items():
            self.compressed[message_id] = CompressedMessage(compression_id, message)
        self.context = list(new_context)

    def _merge_copies(self, originals: list[str], copies: Sequence[str], source: str) -> None:
        """Removes the copies of the context's messages that Gemini CLI appended under new ids, and
        adds what it shortened in them. Copies that are not like the originals are a compression.

        Args:
            originals, copies: the ids of these messages.
        """
        copied = {id_: self.messages.pop(id_) for id_ in copies if id_ in self.messages}
        in_history = [id_ for id_ in originals if is_in_history(self._in_context(id_))]
        types = [self._in_context(id_).get("type") for id_ in in_history]
        if types != [message.get("type") for message in copied.values()]:
            self.context = originals
            self._compress(copied, source)
            return
        self.first_ids |= dict(zip(copied, in_history, strict=True))
        results: dict[str, str] = {}
        for message_id in originals:
            results |= results_in(self._in_context(message_id))
        shortened_calls = [
            call_id for message in copied.values() for call_id in _changed_calls(results, message)
        ]
        self.context = in_history
        self._add_shortening(shortened_calls, source)

    def _add_shortening(self, call_ids: Iterable[str], source: str) -> None:
        """Adds the shortening of the results of these calls, if there are any."""
        if shortening := frozenset(call_ids):
            shortening_id = f"shortening {len(self.messages)}"
            self.messages[shortening_id] = {"type": Shortening(shortening)}
            self.sources[shortening_id] = source

    def _id_of(self, message: Any) -> str:
        """Returns the id by which a message is known; "" if it has none."""
        message_id = str(require_object(message).get("id") or "")
        return self.first_ids.get(message_id, message_id)

    def _in_context(self, message_id: str) -> Message:
        """Returns a message of the context."""
        compressed = self.compressed.get(message_id)
        return compressed.message if compressed else self.messages.get(message_id, {})


def _changed_calls(results: Mapping[str, str], message: Message) -> list[str]:
    """Returns the ids of the calls whose results in a message are other ones than before.

    Args:
        results: the results before, by the ids of their calls.
    """
    after = results_in(message)
    return [call_id for call_id, text in after.items() if results.get(call_id, text) != text]


def _with_calls_of(before: Message, call_ids: Sequence[str], message: Message) -> Message:
    """Returns a message in which the calls with these ids are as they were before."""
    if not call_ids:
        return message
    calls = {str(at(call, "id")): call for call in list_or_empty(before.get("toolCalls"))}
    return {
        **message,
        "toolCalls": [
            calls.get(str(at(call, "id")), call) if str(at(call, "id")) in call_ids else call
            for call in list_or_empty(message.get("toolCalls"))
        ],
    }
