"""The formats of answers: OpenAI's, whole and in chunks, with Holdfast's additional fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NotRequired

from typing_extensions import TypedDict

from holdfast.client import TraceRequest
from holdfast.models.requests import Token
from holdfast.serve.decoding import Delta, Finish
from holdfast.serve.tool_calls import ParsedCall

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_MASS_DIGITS = 4  # digits after the point
_MIN_LOGPROB = -9999.0  # replaces minus infinity, which JSON lacks; OpenAI uses the same number
_REPLACEMENT = "\ufffd"  # tokenizers decode bytes that form no character to this


class MassFields(TypedDict):
    """The mass at a token, and the mass under uniform attention; null without a span."""

    mass: float | None
    uniform: float | None


class TracedToken(MassFields):
    """The text of a token, its mass and, if requested, its mass in each [layer][head]."""

    text: str
    heads: NotRequired[list[list[float]]]


class ChoiceDetails(TypedDict):
    """Holdfast's fields of a choice.

    If it is traced, `tokens` has the mass at each token, and `end` the mass at the token that ended
    it. `unparsed_call` is true if the text begins a tool call that could not be parsed.
    """

    tokens: NotRequired[list[TracedToken]]
    end: NotRequired[MassFields]
    unparsed_call: NotRequired[bool]


class AppliedSteering(TypedDict):
    """The steering applied to an answer.

    `why` says why nothing was applied. `edited` has, for each choice, the numbers (from 0) of the
    messages that methods have edited. `span` has the first and last (exclusive) token of each part
    of the span. `round` is the number of the user's messages.
    """

    steering: str
    applied: bool
    why: NotRequired[str]
    edited: NotRequired[list[list[int]]]
    span: NotRequired[list[list[int]]]
    round: NotRequired[int]


class Cached(TypedDict):
    """Prompt tokens that were not forwarded."""

    cached_tokens: int


class Usage(TypedDict):
    """Token counts of an answer."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: Cached


class ReplyMessage(TypedDict):
    """A reply as a message."""

    role: Literal["assistant"]
    content: str
    refusal: None
    tool_calls: NotRequired[list[ParsedCall]]


class _ChoiceFields(TypedDict):
    index: int
    logprobs: dict[str, Any] | None
    finish_reason: Finish | None
    holdfast: NotRequired[ChoiceDetails]


class ChatChoice(_ChoiceFields):
    """A reply to a chat."""

    message: ReplyMessage


class ChatDelta(_ChoiceFields):
    """A piece of a reply to a chat."""

    delta: dict[str, Any]


class TextChoice(_ChoiceFields):
    """A continuation of a text, or a piece of one."""

    text: str


class _Answer(TypedDict):
    id: str
    object: str
    created: int
    model: str
    system_fingerprint: str
    usage: Usage
    holdfast: AppliedSteering


class ChatAnswer(_Answer):
    """The answer of `/v1/chat/completions`."""

    choices: list[ChatChoice]


class CompletionAnswer(_Answer):
    """The answer of `/v1/completions`."""

    choices: list[TextChoice]


class TokensAnswer(TypedDict):
    """The answer of `/tokenize`.

    `span` has the first and last (exclusive) token of each part of the span.
    """

    tokens: list[int]
    token_strs: list[str]
    count: int
    max_model_len: int | None
    span: list[list[int]]


class ErrorBody(TypedDict):
    """One sentence and, for programs, the type of the error, the field at fault and a code."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorResponse(TypedDict):
    """An error in OpenAI's format."""

    error: ErrorBody


class ChatShapes:
    """Builds the choices of `/v1/chat/completions`, whole (`choice`) or in pieces."""

    prefix = "chatcmpl-"
    whole = "chat.completion"
    chunk = "chat.completion.chunk"

    def choice(self, index: int, reply: Delta, details: Details) -> ChatChoice:
        """The choice with a whole reply."""
        message = ReplyMessage(role="assistant", content=reply.text, refusal=None)
        if reply.calls:
            message["tool_calls"] = list(reply.calls)
        logprobs = details.chat_logprobs(reply.tokens)
        return {"message": message, **_choice(index, reply, details, logprobs)}

    def chunk_choice(
        self, index: int, delta: Delta, details: Details, *, is_first: bool
    ) -> ChatDelta:
        """The choice with a piece of a reply; the first piece has the role."""
        message: dict[str, Any] = {"role": "assistant"} if is_first else {}
        if delta.text or is_first:
            message["content"] = delta.text
        if delta.calls:
            message["tool_calls"] = [
                {"index": number, **call} for number, call in enumerate(delta.calls)
            ]
        logprobs = details.chat_logprobs(delta.tokens)
        return {"delta": message, **_choice(index, delta, details, logprobs)}


class CompletionShapes:
    """Builds the choices of `/v1/completions`, as `ChatShapes` does for chats."""

    prefix = "cmpl-"
    whole = "text_completion"
    chunk = "text_completion"

    def choice(self, index: int, reply: Delta, details: Details) -> TextChoice:
        """The choice with a whole continuation."""
        logprobs = details.completion_logprobs(reply.tokens)
        return {"text": reply.text, **_choice(index, reply, details, logprobs)}

    def chunk_choice(
        self, index: int, delta: Delta, details: Details, *, is_first: bool
    ) -> TextChoice:
        """The choice with a piece of a continuation."""
        return self.choice(index, delta, details)


Shapes = ChatShapes | CompletionShapes


def _choice(
    index: int, delta: Delta, details: Details, logprobs: dict[str, Any] | None
) -> _ChoiceFields:
    choice = _ChoiceFields(index=index, logprobs=logprobs, finish_reason=delta.finish_reason)
    additions = ChoiceDetails()
    if details.trace:
        additions["tokens"] = details.masses(delta.tokens)
        if delta.end_mass is not None:
            additions["end"] = _mass_fields(delta.end_mass, delta.end_uniform)
    if delta.unparsed:
        additions["unparsed_call"] = True
    if additions:
        choice["holdfast"] = additions
    return choice


class Details:
    """Formats the per-token details of a choice: log-probabilities and masses.

    Args:
        tokenizer: the model's tokenizer.
        top: the number of likeliest tokens at each position; None gives no log-probabilities.
        trace: whether masses were requested, and whether those of each head were.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast, top: int | None, trace: TraceRequest):
        self.top = top
        self.trace = trace
        self._tokenizer = tokenizer
        self._characters = 0

    def masses(self, tokens: Sequence[Token]) -> list[TracedToken]:
        """The text and the mass of each token."""
        entries = []
        for token in tokens:
            entry: TracedToken = {"text": token.text, **_mass_fields(token.mass, token.uniform)}
            if self.trace == "heads" and token.heads is not None:
                heads = token.heads.tolist()
                entry["heads"] = [[round(mass, _MASS_DIGITS) for mass in layer] for layer in heads]
            entries.append(entry)
        return entries

    def chat_logprobs(self, tokens: Sequence[Token]) -> dict[str, Any] | None:
        """The log-probabilities in the format of chat completions; None if not requested."""
        if self.top is None:
            return None
        content = [
            self._entry(token.token_id, token.logprob)
            | {"top_logprobs": [self._entry(*pair) for pair in token.top]}
            for token in tokens
        ]
        return {"content": content, "refusal": None}

    def completion_logprobs(self, tokens: Sequence[Token]) -> dict[str, Any] | None:
        """The log-probabilities in the format of completions; None if not requested.

        Its likeliest tokens are named by their text; of several with the same text, only the
        likeliest is kept.
        """
        if self.top is None:
            return None
        offsets = []
        for token in tokens:
            offsets.append(self._characters)
            self._characters += len(token.text)
        return {
            "tokens": [self._text(token.token_id) for token in tokens],
            "token_logprobs": [_finite(token.logprob) for token in tokens],
            "top_logprobs": [
                {self._text(top_id): _finite(logprob) for top_id, logprob in reversed(token.top)}
                for token in tokens
            ],
            "text_offset": offsets,
        }

    def _entry(self, token_id: int, logprob: float | None) -> dict[str, Any]:
        text = self._text(token_id)
        return {
            "token": text,
            "logprob": _finite(logprob),
            "bytes": None if _REPLACEMENT in text else list(text.encode()),
        }

    def _text(self, token_id: int) -> str:
        return str(self._tokenizer.decode([token_id]))


def _mass_fields(mass: float | None, uniform: float | None) -> MassFields:
    return MassFields(
        mass=None if mass is None else round(mass, _MASS_DIGITS),
        uniform=None if uniform is None else round(uniform, _MASS_DIGITS),
    )


def _finite(logprob: float | None) -> float:
    """A log-probability that JSON can express."""
    return _MIN_LOGPROB if logprob is None else max(logprob, _MIN_LOGPROB)
