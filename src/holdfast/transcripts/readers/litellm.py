"""LiteLLM's payloads, and other logs of a request's messages with the response."""

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.transcripts.call_messages import input_messages, output_messages, prompt_of
from holdfast.transcripts.calls import Call, transcripts_of_calls
from holdfast.transcripts.json_fields import at, decoded, field_of, mapping
from holdfast.transcripts.reader import Format, has_messages
from holdfast.transcripts.transcript import Malformed
from holdfast.validation.json_values import fields_of

_ANSWERS = ("response", "completion", "choices")  # the answer beside a request's messages


def _recognises(value: Any) -> bool:
    fields = fields_of(value)
    # in spend logs, the messages may be JSON in a string
    has_chat = isinstance(fields.get("messages"), (list, str)) or bool(_sent_request(fields))
    if "call_type" in fields and has_chat:
        return True
    if has_messages(value):
        return "call_type" in fields or any(fields.get(name) for name in _ANSWERS)
    return isinstance(at(value, "request", "messages"), list) and any(
        name in fields for name in _ANSWERS
    )


def _sent_request(call: Mapping[str, Any]) -> Mapping[str, Any]:
    """The request as the proxy received it, where spend logs have no messages beside it."""
    if decoded(call.get("messages")):
        return {}
    request = fields_of(decoded(call.get("proxy_server_request")))
    return fields_of(request.get("body")) or request


def _calls(where: str, value: Any) -> Iterator[Call]:
    call = mapping(value)
    request = call.get("request")
    if not isinstance(request, Mapping):
        request = _sent_request(call) or call
    answer = call if "choices" in call else next((call[n] for n in _ANSWERS if n in call), None)
    if call.get("status") == "failure" or not answer:
        raise Malformed("the call has no response, as when it failed")
    prompt = prompt_of(request) or prompt_of(fields_of(call.get("model_parameters")))
    inputs = input_messages(decoded(field_of(request, "messages", "input")))
    outputs = output_messages(answer)
    if inputs[-len(outputs) :] == outputs:  # the request has it too
        inputs = inputs[: -len(outputs)]
    start = str(call.get("startTime") or call.get("start_time") or "")
    yield Call(where, "", start, [*prompt, *inputs], outputs)


FORMAT = Format(
    "litellm", _recognises, transcripts_of_calls(_calls, "a request with a response"), streams=True
)
