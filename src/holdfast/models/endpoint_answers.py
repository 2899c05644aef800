"""Reads the answers of an endpoint, whole or chunk by chunk."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from holdfast.chat.chat_completions import AssistantMessage, MalformedResponse, choices_in
from holdfast.errors import ModelError, shortened
from holdfast.methods.spec import NONE
from holdfast.models.requests import Reply, TokenUsage
from holdfast.validation.json_values import fields_of

_STOP_REASONS = {  # from finish_reason to ours; OpenAI's name is the first of each group
    **dict.fromkeys(("stop", "eos", "eos_token", "stop_sequence", "end_turn"), "stop"),
    **dict.fromkeys(("length", "max_tokens"), "length"),
    **dict.fromkeys(("tool_calls", "function_call"), "tool_calls"),
}


class BrokenOff(MalformedResponse):
    """A stream that ended before its reply did."""


class FilteredReply(ValueError):
    """A content filter has withheld the reply of an answer."""


def read_json(content: str | bytes) -> Mapping[str, Any]:
    """Parses an answer; returns {} if it is JSON but not an object.

    Raises:
        MalformedResponse: it is not JSON.
    """
    try:
        return fields_of(json.loads(content))
    except (ValueError, RecursionError):
        raise MalformedResponse("not JSON") from None


def read_reply(answer: Mapping[str, Any]) -> Reply:
    """Reads the reply in a chat completion.

    Raises:
        MalformedResponse: the answer has no reply, or one in an unknown shape.
        FilteredReply: a content filter has withheld the reply.
    """
    choices = answer.get("choices")
    if not isinstance(choices, list):
        raise MalformedResponse("no choices")
    if not choices:
        raise MalformedResponse("an empty list of choices")
    choice = fields_of(choices[0])
    ending = _read_ending(choice.get("finish_reason"))
    if not isinstance(choice.get("message"), Mapping):
        raise MalformedResponse("no message")
    message = AssistantMessage(is_strict=True)
    message.add(choice["message"])
    reply = _reply_of(message, ending, _read_masses(choice))
    return _with_usage(reply, fields_of(answer.get("usage")))


def _with_usage(reply: Reply, usage: Mapping[str, Any]) -> Reply:
    """Adds the numbers of tokens that an answer reports; the reply as it is if it reports none.

    Tokens that came from the server's cache are billed, but were not forwarded through the model.
    """
    prompt_tokens = usage.get("prompt_tokens")
    reply_tokens = usage.get("completion_tokens")
    if not isinstance(prompt_tokens, int) or not isinstance(reply_tokens, int):
        return reply
    forwarded = prompt_tokens + reply_tokens
    cached = fields_of(usage.get("prompt_tokens_details")).get("cached_tokens")
    if isinstance(cached, int):
        forwarded -= cached
    return replace(reply, forwarded=forwarded, billed=TokenUsage(prompt_tokens, reply_tokens))


class StreamReader:
    """Reads a reply chunk by chunk.

    Reasoning inside the text is part of the pieces as they come, but not of the reply's text.

    Args:
        check: is called with the first chunk, and may raise an error.

    Attributes:
        answer_id: the id of the answer, from its first chunk.
    """

    def __init__(self, check: Callable[[Mapping[str, Any]], None]):
        self.answer_id: object = None
        self._check = check
        self._message = AssistantMessage(is_strict=True)
        self._ending = ""
        self._masses: tuple[float, ...] | None = None
        self._is_first = True

    def add(self, chunk: object) -> str:
        """Reads a chunk; returns its text, which may be ""."""
        fields = fields_of(chunk)
        if self._is_first:
            self._is_first = False
            self._check(fields)
            self.answer_id = fields.get("id")
        choices = choices_in(fields)
        if not choices:
            return ""
        choice = choices[0]
        text = self._message.add(fields_of(choice.get("delta")))
        masses = _read_masses(choice)
        if masses is not None:
            self._masses = masses if self._masses is None else (*self._masses, *masses)
        if choice.get("finish_reason") is not None:
            self._ending = _read_ending(choice["finish_reason"])
        return text

    def reply(self) -> Reply:
        """Returns the whole reply; raises `BrokenOff` if it has not ended."""
        if not self._ending:
            raise BrokenOff("a stream without an end")
        return _reply_of(self._message, self._ending, self._masses)


def check_applied(answer: Mapping[str, Any], requested: str | None, url: str) -> None:
    """Raises a `ModelError` if an answer was steered and should not have been, or the reverse.

    Which methods were applied is not compared, only whether there were any.

    Args:
        answer: a completion, or the first chunk of one.
        requested: `EndpointRequest.steering`.
        url: the address of the endpoint.
    """
    reported = fields_of(answer.get("holdfast"))
    applied = reported.get("steering")
    why = reported.get("why")
    if not isinstance(applied, str):
        if requested in (None, NONE):
            return
        applied = NONE
        why = "it says nothing of its steering"
    elif not reported.get("applied"):
        applied = NONE
    if requested is None:
        raise ModelError(
            f"{url} steers (its answer says {applied}), but did not say so when it was connected;"
            " connect again, or repeat the command."
        )
    if (applied == NONE) != (requested == NONE):
        because = f" ({why})" if why else ""
        raise ModelError(
            f"{url} was asked for {requested!r} and applied {applied!r}{because}; see its log, and"
            " connect again if it was restarted."
        )


def read_models(text: str) -> list[str]:
    """Reads the names in a list of models; raises `MalformedResponse` for any other text."""
    models = read_json(text).get("data")
    if not isinstance(models, list):
        raise MalformedResponse("no list of models")
    names = (fields_of(model).get("id") for model in models)
    return [name for name in names if isinstance(name, str)]


def _read_ending(reason: object) -> str:
    """Reads a `finish_reason` as one of our stop reasons."""
    if reason == "content_filter":
        raise FilteredReply
    if not isinstance(reason, str) or reason not in _STOP_REASONS:
        raise MalformedResponse(f"finish_reason {shortened(reason)}")
    return _STOP_REASONS[reason]


def _read_masses(choice: Mapping[str, Any]) -> tuple[float, ...] | None:
    """Reads the mass at each token of a choice or chunk, and at the token that ended the reply.

    None if the answer has no trace.
    """
    trace = fields_of(choice.get("holdfast"))
    tokens = trace.get("tokens")
    if tokens is None:
        return None
    if not isinstance(tokens, list):
        raise MalformedResponse("no list of tokens in its trace")
    ending = [trace["end"]] if "end" in trace else []
    masses = [fields_of(token).get("mass") for token in [*tokens, *ending]]
    numbers = tuple(float(mass) for mass in masses if isinstance(mass, (int, float)))
    if len(numbers) < len(masses):
        raise MalformedResponse("a token without a mass in its trace")
    return numbers


def _reply_of(message: AssistantMessage, ending: str, masses: tuple[float, ...] | None) -> Reply:
    """Turns a whole message into a reply, without reasoning in its text.

    A reply that ended by itself and has no visible character is "empty". One that was cut off stays
    "length": it may be reasoning that had not reached the first word of the reply.
    """
    stop_reason = ending
    if message.is_refusal:
        stop_reason = "refusal"
    elif message.calls_tools:
        stop_reason = "tool_calls"
    reply = Reply(message.text, None, stop_reason, masses=masses, reasoning=message.reasoning)
    reply = reply.without_reasoning()
    is_empty = reply.stop_reason == "stop" and not reply.text.strip()
    return replace(reply, stop_reason="empty") if is_empty else reply
