"""Answers in OpenAI's format, whole and in chunks, with Holdfast's additional fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, NotRequired

from typing_extensions import TypedDict

from holdfast.models.requests import Token
from holdfast.serve.decoding import Delta, Finish
from holdfast.serve.tool_calls import ParsedCall

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_DIGITS = 4  # of masses
_LOWEST = -9999.0  # replaces minus infinity, which JSON lacks; OpenAI uses the same number
_REPLACED = "\ufffd"  # how tokenizers decode bytes that form no character


class Share(TypedDict):
    """The mass of a token, and that of uniform attention; null without a span."""

    mass: float | None
    uniform: float | None


class TokenMass(Share):
    """A token with its mass and, if requested, the mass in each [layer][head]."""

    text: str
    heads: NotRequired[list[list[float]]]


class ChoiceDetails(TypedDict):
    """Holdfast's fields of a choice.

    If it is traced, `tokens` has its masses, and `end` that of the token that ended it.
    `unparsed_call` says that the text begins a tool call that could not be parsed.
    """

    tokens: NotRequired[list[TokenMass]]
    end: NotRequired[Share]
    unparsed_call: NotRequired[bool]


class AppliedSteering(TypedDict):
    """The steering applied to an answer.

    `why` says why nothing was applied; `edited` lists per choice the messages, from 0, that methods
    edited; `span` has the first and last (exclusive) token of each part of the span; `round` counts
    the user's messages.
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
    """The answer of `/tokenize`; `span` is as in `AppliedSteering`."""

    tokens: list[int]
    token_strs: list[str]
    count: int
    max_model_len: int | None
    span: list[list[int]]


class ErrorBody(TypedDict):
    """One sentence and, for programs, its type, the field and a code."""

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorResponse(TypedDict):
    """An error in OpenAI's format."""

    error: ErrorBody


class ChatShapes:
    """Builds the choices of `/v1/chat/completions`, whole or in pieces (`chunk_choice`)."""

    prefix = "chatcmpl-"
    whole = "chat.completion"
    chunk = "chat.completion.chunk"

    def choice(self, index: int, reply: Delta, details: Details) -> ChatChoice:
        """A whole reply."""
        message = ReplyMessage(role="assistant", content=reply.text, refusal=None)
        if reply.calls:
            message["tool_calls"] = list(reply.calls)
        logprobs = details.chat_logprobs(reply.tokens)
        return {"message": message, **_choice(index, reply, details, logprobs)}

    def chunk_choice(self, index: int, delta: Delta, details: Details, first: bool) -> ChatDelta:
        """A piece of a reply; the first one names the speaker."""
        message: dict[str, Any] = {"role": "assistant"} if first else {}
        if delta.text or first:
            message["content"] = delta.text
        if delta.calls:
            message["tool_calls"] = [{"index": at, **call} for at, call in enumerate(delta.calls)]
        logprobs = details.chat_logprobs(delta.tokens)
        return {"delta": message, **_choice(index, delta, details, logprobs)}


class CompletionShapes:
    """As `ChatShapes`, for `/v1/completions`."""

    prefix = "cmpl-"
    whole = "text_completion"
    chunk = "text_completion"

    def choice(self, index: int, reply: Delta, details: Details) -> TextChoice:
        """A whole continuation."""
        logprobs = details.completion_logprobs(reply.tokens)
        return {"text": reply.text, **_choice(index, reply, details, logprobs)}

    def chunk_choice(self, index: int, delta: Delta, details: Details, first: bool) -> TextChoice:
        """A piece of a continuation."""
        return self.choice(index, delta, details)


Shapes = ChatShapes | CompletionShapes


def _choice(
    index: int, delta: Delta, details: Details, logprobs: dict[str, Any] | None
) -> _ChoiceFields:
    choice = _ChoiceFields(index=index, logprobs=logprobs, finish_reason=delta.finish_reason)
    about = ChoiceDetails()
    if details.trace:
        about["tokens"] = details.masses(delta.tokens)
        if delta.end_mass is not None:
            about["end"] = _share(delta.end_mass, delta.end_uniform)
    if delta.unparsed:
        about["unparsed_call"] = True
    if about:
        choice["holdfast"] = about
    return choice


class Details:
    """Per-token details of a choice: `top` log-probabilities, and mass (`trace`, or "heads")."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, top: int | None, trace: bool | str):
        self.top = top
        self.trace = trace
        self._tokenizer = tokenizer
        self._characters = 0

    def masses(self, tokens: Sequence[Token]) -> list[TokenMass]:
        """Text and mass of each token."""
        entries = []
        for token in tokens:
            entry: TokenMass = {"text": token.text, **_share(token.mass, token.uniform)}
            if self.trace == "heads" and token.heads is not None:
                heads = token.heads.tolist()
                entry["heads"] = [[round(mass, _DIGITS) for mass in layer] for layer in heads]
            entries.append(entry)
        return entries

    def chat_logprobs(self, tokens: Sequence[Token]) -> dict[str, Any] | None:
        """Log-probabilities in the format of chat completions; None if not requested."""
        if self.top is None:
            return None
        content = [
            self._entry(token.token_id, token.logprob)
            | {"top_logprobs": [self._entry(*pair) for pair in token.top]}
            for token in tokens
        ]
        return {"content": content, "refusal": None}

    def completion_logprobs(self, tokens: Sequence[Token]) -> dict[str, Any] | None:
        """Log-probabilities in the format of completions; of tokens of one text, the likeliest."""
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
                {self._text(name): _finite(logprob) for name, logprob in reversed(token.top)}
                for token in tokens
            ],
            "text_offset": offsets,
        }

    def _entry(self, token_id: int, logprob: float | None) -> dict[str, Any]:
        text = self._text(token_id)
        return {
            "token": text,
            "logprob": _finite(logprob),
            "bytes": None if _REPLACED in text else list(text.encode()),
        }

    def _text(self, token_id: int) -> str:
        return str(self._tokenizer.decode([token_id]))


def _share(mass: float | None, uniform: float | None) -> Share:
    return Share(mass=mass and round(mass, _DIGITS), uniform=uniform and round(uniform, _DIGITS))


def _finite(logprob: float | None) -> float:
    return _LOWEST if logprob is None else max(logprob, _LOWEST)
