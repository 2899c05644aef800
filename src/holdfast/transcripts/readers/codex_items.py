"""The items of Codex's rollouts, which are those of the Responses API, and its compactions.

For example:

    {"type": "function_call_output", "call_id": "c", "output": "exec command rejected by user"}
    -> Event(TOOL_RESULT, "exec command rejected by user", call_id="c", is_refusal=True)
"""

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from holdfast.transcripts.chat_messages import read_messages
from holdfast.transcripts.content_texts import kinds_without_text, text_of
from holdfast.transcripts.json_fields import at, decode_json, list_or_empty
from holdfast.transcripts.readers.codex_user_messages import events_of_user_message
from holdfast.transcripts.transcript import Event, EventKind
from holdfast.validation.json_values import fields_of

NOT_MESSAGES = (
    *("ghost_snapshot", "compaction_summary", "context_compaction", "configuration_update"),
    "other",
)
# how Codex marks the record of a message that a script delivered to the user but that is too long
# to be recorded as its text; the mark goes on with as much of the message as there is
_CUT_DELIVERY = "codex:code-mode-delivery:v1:incomplete:"
# the result of a call that the user, a reviewer or a policy refused
_REFUSED = re.compile(
    r"(?:\{\"output\": ?\")?(?:(?:Script (?:failed|error)|Wall time|Output)[^\n]*\n)*"
    r"(?:(?:(?:exec command|patch|command) )?rejected by user|patch rejected: "
    r"|approval policy is \w+; reject command"
    r"|This action was rejected due to unacceptable risk|apply_patch verification failed"
    r"|(?:`[^\n]*` |\w+ )?rejected: blocked by policy"
    r"|exec_command failed(?: for `.*?`)?: CreateProcess \{ message: \"Rejected\()",
    re.DOTALL,
)
# A compaction repeats up to 20,000 tokens of the user's messages, four characters per token.
_MAX_REPEATED_CHARACTERS = 80_000


def read_item(item: Any, typed_texts: Set[str] = frozenset()) -> list[Event]:
    """Reads an item, which may have been written by Codex in the user's place."""
    communication = communication_in(item)
    if communication is not None:
        return [message_of_agent(communication)]
    if at(item, "role") == "user" and at(item, "type") in (None, "message"):
        return events_of_user_message(item, typed_texts)
    return [_with_refusal(event) for event in read_messages([item])]


def communication_in(item: Any) -> Mapping[str, Any] | None:
    """Returns what another agent wrote in an item; None for any other item.

    Older versions write it as JSON text in a message with the role of the assistant.
    """
    if at(item, "type") == "agent_message":
        return fields_of(item)
    if at(item, "role") != "assistant":
        return None
    parts = list_or_empty(at(item, "content"))
    fields = fields_of(decode_json(at(parts[0], "text"))) if len(parts) == 1 else {}
    is_by_agent = {"author", "recipient", "other_recipients", "content"} <= fields.keys()
    return fields if is_by_agent else None


def message_of_agent(communication: Mapping[str, Any]) -> Event:
    """Returns the event for what another agent wrote; an encrypted part of it is not read."""
    content = communication.get("content")
    unread = kinds_without_text(content)
    if communication.get("encrypted_content"):
        unread = (*unread, "encrypted_content")
    return Event(EventKind.REMINDER, text_of(content), unread=unread)


def with_delivered_text(item: Mapping[str, Any], metadata: Any) -> Mapping[str, Any]:
    """Returns an item; a message that stands for a longer one which a script delivered to the user
    has as much of that one's text as is logged.

    Args:
        metadata: what the line has beside the item.
    """
    delivered = at(metadata, "delivered_assistant_message")
    if not (isinstance(delivered, str) and delivered.startswith(_CUT_DELIVERY)):
        return item
    text = delivered.removeprefix(_CUT_DELIVERY)
    return {**item, "content": [{"type": "output_text", "text": text}]}


def _with_refusal(event: Event) -> Event:
    """Marks a result as a refusal if its text says that Codex did not run the call."""
    is_refusal = event.kind is EventKind.TOOL_RESULT and bool(_REFUSED.match(event.text))
    return replace(event, is_refusal=True) if is_refusal else event


def compaction_in(payload: Mapping[str, Any], user_texts: Sequence[str]) -> Event:
    """Returns a compaction, whose text is all that the model sees of the dialog from then on.

    That is the history that replaces the old one. If the log does not have it, it is the summary,
    before which Codex repeats the user's last messages (`build_compacted_history` in
    codex-rs/core).
    """
    history = payload.get("replacement_history")
    if not isinstance(history, list):
        summary = str(payload.get("message") or "")
        return Event(EventKind.COMPACTION, "\n".join([*_last_texts(user_texts), summary]))
    items = [item for item in history if at(item, "type") not in NOT_MESSAGES]
    texts = [event.text for item in items for event in read_item(item)]
    return Event(EventKind.COMPACTION, "\n".join(texts))


def _last_texts(user_texts: Sequence[str]) -> list[str]:
    """Returns the user's last messages, as many as a compaction repeats."""
    count = 0
    size = 0
    for text in reversed(user_texts):
        size += len(text)
        if size > _MAX_REPEATED_CHARACTERS:
            break
        count += 1
    return [*user_texts[len(user_texts) - count :]]
