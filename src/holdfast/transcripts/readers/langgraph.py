"""States of LangGraph's threads, as its API and `get_state_history` return them.

A value, shortened:

    {"values": {"messages": [{"type": "human", "content": "Hi"}, ...]}, "next": [],
     "checkpoint": {"thread_id": "t"}, "created_at": "..."}

A history has a state for each step of a thread, the latest first, and each repeats the messages so
far.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.errors import shortened
from holdfast.transcripts.calls import Call, call_reader
from holdfast.transcripts.chat_messages import read_messages
from holdfast.transcripts.json_fields import at, list_or_empty, require_object
from holdfast.transcripts.reader import Format, Unread, is_message_list
from holdfast.validation.json_values import fields_of

# of a state that the API returns, of a snapshot, and of a thread
_STATE_FIELDS = ("checkpoint", "checkpoint_id", "config", "thread_id")


def _recognises(value: Any) -> bool:
    """Whether a value is a state: it has messages or a list of the next nodes, and one of the
    fields that are beside the values of a state.
    """
    fields = fields_of(value)
    has_state_field = any(name in fields for name in _STATE_FIELDS)
    has_content = isinstance(fields.get("next"), list) or _messages_in(value) is not None
    return has_state_field and has_content


def _messages_in(state: Any) -> list[Any] | None:
    """Returns the messages of a state, which may be all of its values; None if it has none."""
    values = fields_of(state).get("values")
    messages = values if is_message_list(values) else at(values, "messages")
    return messages if isinstance(messages, list) else None


def _read_state(source: str, value: Any) -> Iterator[Call | Unread]:
    """Reads a state as a call without an answer: a later state has all of its messages."""
    state = require_object(value)
    messages = _messages_in(state)
    if messages:
        start = str(state.get("created_at") or state.get("updated_at") or "")
        yield Call(source, _thread_of(state), start, read_messages(messages), [])
    for task in list_or_empty(state.get("tasks")):
        if _messages_in(at(task, "state")):
            name = shortened(at(task, "name"))
            yield Unread(f"{source}: left out the messages of the subgraph {name}")


def _thread_of(state: Mapping[str, Any]) -> str:
    """Returns the id of a state's thread; "" if it names none."""
    thread = (
        at(state, "checkpoint", "thread_id")
        or at(state, "config", "configurable", "thread_id")
        or at(state, "metadata", "thread_id")
        or state.get("thread_id")
    )
    return str(thread or "")


FORMAT = Format(
    "langgraph", _recognises, call_reader(_read_state, "a state with messages"), streams=True
)
