"""Records of calls that Amazon Bedrock logs: the body of a request, and that of the answer.

A value, shortened:

    {"input": {"inputBodyJson": {"messages": [...]}},
     "output": {"outputBodyJson": {"output": {"message": {...}}, "stopReason": "end_turn"}}}
"""

from collections.abc import Iterator
from typing import Any

from holdfast.transcripts.call_messages import input_messages, output_messages, system_prompt
from holdfast.transcripts.calls import Call, call_reader
from holdfast.transcripts.json_fields import at, require_field, require_object
from holdfast.transcripts.reader import Format
from holdfast.transcripts.transcript import Malformed
from holdfast.validation.json_values import fields_of


def _recognises(value: Any) -> bool:
    return "inputBodyJson" in fields_of(at(value, "input"))


def _calls(source: str, value: Any) -> Iterator[Call]:
    request = require_object(at(value, "input", "inputBodyJson"))
    body = at(value, "output", "outputBodyJson")
    if not body:
        raise Malformed("the call has no answer, as when it failed")
    message = at(body, "output", "message")  # of the operation Converse
    if message is not None:
        body = {**require_object(message), "finish_reason": at(body, "stopReason")}
    start = str(fields_of(value).get("timestamp") or "")
    inputs = input_messages(require_field(request, "messages"))
    prompt = system_prompt(request.get("system"))
    yield Call(source, "", start, [*prompt, *inputs], output_messages(body))


FORMAT = Format("bedrock", _recognises, call_reader(_calls, "a record of a call"), streams=True)
