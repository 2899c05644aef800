"""LiteLLM's payloads, and other logs of a request's messages with the response to them.

A value, shortened:

    {"messages": [{"role": "user", "content": "Hi"}], "response": {"choices": [...]}}
"""

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.transcripts.call_messages import input_messages, output_messages, prompt_of
from holdfast.transcripts.calls import Call, call_reader
from holdfast.transcripts.json_fields import at, decode_json, require_field, require_object
from holdfast.transcripts.reader import Format, has_messages
from holdfast.transcripts.transcript import Malformed
from holdfast.validation.json_values import fields_of

_ANSWERS = ("response", "completion", "choices")  # fields for the answer, beside the request's


def _recognises(value: Any) -> bool:
    fields = fields_of(value)
    # messages may be JSON text in spend logs
    has_chat = isinstance(fields.get("messages"), (list, str)) or bool(_sent_request(fields))
    if "call_type" in fields and has_chat:
        return True
    if has_messages(value):
        return "call_type" in fields or any(fields.get(name) for name in _ANSWERS)
    return isinstance(at(value, "request", "messages"), list) and any(
        name in fields for name in _ANSWERS
    )


def _sent_request(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the request that the proxy received, if a spend log has no messages; else {}."""
    if decode_json(call.get("messages")):
        return {}
    request = fields_of(decode_json(call.get("proxy_server_request")))
    return fields_of(request.get("body")) or request


def _calls(source: str, value: Any) -> Iterator[Call]:
    """Reads a request with its response."""
    call = require_object(value)
    request = call.get("request")
    if not isinstance(request, Mapping):
        request = _sent_request(call) or call
    answer = call if "choices" in call else next((call[n] for n in _ANSWERS if n in call), None)
    if call.get("status") == "failure" or not answer:
        raise Malformed("the call has no response, as when it failed")
    prompt = prompt_of(request) or prompt_of(fields_of(call.get("model_parameters")))
    inputs = input_messages(decode_json(require_field(request, "messages", "input")))
    outputs = output_messages(answer)
    if inputs[-len(outputs) :] == outputs:  # the answer is logged among the messages as well
        inputs = inputs[: -len(outputs)]
    start = str(call.get("startTime") or call.get("start_time") or "")
    yield Call(source, "", start, [*prompt, *inputs], outputs)


FORMAT = Format(
    "litellm", _recognises, call_reader(_calls, "a request with a response"), streams=True
)
