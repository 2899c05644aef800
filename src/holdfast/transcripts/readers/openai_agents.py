"""Sessions of OpenAI's Agents SDK, from its databases: items of the Responses API.

    {"agent_session": "user-7", "items": [{"role": "user", "content": "Hi"}, ...]}

The SDK does not save the instructions of the agents.
"""

from typing import Any

from holdfast.transcripts.chat_messages import read_messages
from holdfast.transcripts.json_fields import require_field
from holdfast.transcripts.reader import dialog_format
from holdfast.transcripts.transcript import Event
from holdfast.validation.json_values import fields_of


def _recognises(value: Any) -> bool:
    return {"agent_session", "items"} <= fields_of(value).keys()


def _read(value: Any) -> list[Event]:
    return read_messages(require_field(value, "items"))


FORMAT = dialog_format("openai-agents", _recognises, _read)
