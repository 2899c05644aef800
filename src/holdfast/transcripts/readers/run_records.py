"""The conversations in a run of Holdfast, from its `records.jsonl`.

A value, shortened:

    {"agent": {"system_prompt": "Be brief."}, "turns": [{"speaker": "user", "text": "Hi"}, ...]}
"""

from typing import Any

from holdfast.transcripts.call_messages import system_prompt
from holdfast.transcripts.chat_messages import read_messages
from holdfast.transcripts.json_fields import optional_list, require_field
from holdfast.transcripts.reader import dialog_format
from holdfast.transcripts.transcript import Event
from holdfast.validation.json_values import fields_of

_SPEAKERS = {"user": "user", "agent": "assistant"}


def _recognises(value: Any) -> bool:
    return {"method", "conversation", "agent", "turns"} <= fields_of(value).keys()


def _read(value: Any) -> list[Event]:
    turns = [
        {
            "role": _SPEAKERS.get(require_field(turn, "speaker")),
            "content": require_field(turn, "text"),
            "stop_reason": turn.get("stop_reason"),
        }
        for turn in optional_list(require_field(value, "turns"))
    ]
    prompt = require_field(require_field(value, "agent"), "system_prompt")
    return [*system_prompt(prompt), *read_messages(turns)]


FORMAT = dialog_format("run", _recognises, _read)
