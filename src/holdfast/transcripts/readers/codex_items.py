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
from holdfast.transcripts.content_texts import text_of
from holdfast.transcripts.json_fields import at
from holdfast.transcripts.readers.codex_user_messages import events_of_user_message
from holdfast.transcripts.transcript import Event, EventKind

NOT_MESSAGES = ("ghost_snapshot", "compaction_summary", "context_compaction", "other")
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
    if at(item, "type") == "agent_message":  # by another agent
        return [Event(EventKind.REMINDER, text_of(item.get("content")))]
    if at(item, "role") == "user" and at(item, "type") in (None, "message"):
        return events_of_user_message(item, typed_texts)
    return [_with_refusal(event) for event in read_messages([item])]


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
