"""Turns requests into those of the engine: the tokens of each prompt, and which of them are already
computed.

A conversation is rendered again at every turn, but the tokens of its replies may differ from those
that the tokenizer makes of their text. So a thread keeps its tokens as they were generated, and
only the text after them is taken from the new rendering.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, islice, pairwise, zip_longest

from transformers import PreTrainedTokenizerFast

from holdfast.chat.emphasis import TextRange, edit_emphasised
from holdfast.chat.messages import Message, Messages
from holdfast.chat.prompt import Prompt, RenderedText, render_with_spans, tokenize
from holdfast.errors import PromptError, PromptTooLong
from holdfast.generation.request_errors import name_errors
from holdfast.generation.saved_kv import CachedPrefix, SavedKV
from holdfast.generation.token_requests import TokenPrompt, TokenRequest
from holdfast.methods import CompiledMethods
from holdfast.models.requests import Request


@dataclass(frozen=True)
class RenderedRequest:
    """A request, and what the engine reads of it.

    Args:
        request: the request.
        token_request: its tokens and their methods.
        prompts: the rendered text of each of its prompts.
        rehearsal: the request to answer first, because `token_request` leaves out methods that need
            its reply; None if it has all methods.
        rehearsed: the tokens that went through the model for a rehearsal.
    """

    request: Request
    token_request: TokenRequest
    prompts: tuple[Prompt, ...]
    rehearsal: RenderedRequest | None = None
    rehearsed: int = 0

    @property
    def prompt_ids(self) -> tuple[int, ...]:
        """The tokens of the chat that the reply answers."""
        return self.token_request.prompts[0].token_ids

    @property
    def span_ranges(self) -> list[tuple[int, int]]:
        """The first and last (exclusive) token of each run of tokens to emphasise."""
        span = (False, *self.token_request.prompts[0].span, False)
        edges = [token for token, (before, after) in enumerate(pairwise(span)) if before != after]
        return list(zip(edges[::2], edges[1::2], strict=True))

    def with_resolved(self, request: Request, rehearsed: int) -> RenderedRequest:
        """Returns the rendered request with the methods that its rehearsal has resolved.

        Args:
            request: the same request with its methods resolved.
            rehearsed: the tokens that went through the model for the rehearsal.
        """
        prompts = tuple(
            TokenPrompt.after(prompt.prefix, prompt.token_ids, prompt.span, request.compiled)
            for prompt in self.token_request.prompts
        )
        token_request = replace(self.token_request, prompts=prompts)
        return RenderedRequest(request, token_request, self.prompts, rehearsed=rehearsed)

    def as_prefixes(
        self,
        saved: Sequence[SavedKV | None] = (),
        token_ids: tuple[int, ...] = (),
        reply: str = "",
    ) -> tuple[CachedPrefix, ...]:
        """Returns each prompt with the reply, for the next turn to continue.

        Args:
            saved: the keys and values of each; () if there are none.
            token_ids: the tokens of the reply.
            reply: its text.
        """
        saved = saved or [None] * len(self.prompts)
        return tuple(
            CachedPrefix(
                token_ids=tokens.token_ids + token_ids,
                span=tokens.span + (False,) * len(token_ids),
                pass_methods=tokens.pass_methods,
                kv=kv,
                text=prompt.text + reply,
                text_spans=prompt.spans,
            )
            for prompt, tokens, kv in zip(
                self.prompts, self.token_request.prompts, saved, strict=True
            )
        )


@dataclass(frozen=True)
class _Chat:
    """The chat of one prompt."""

    messages: tuple[Message, ...]  # as methods have edited them
    emphasis: tuple[TextRange, ...] | None  # in these messages; None if nothing is emphasised
    default_system: bool  # whether the template may insert its default system prompt


@dataclass(frozen=True)
class RequestInThread:
    """A request, and what its thread has computed of its conversation."""

    request: Request
    prefixes: Sequence[CachedPrefix] = ()  # one per prompt; () for none


def render_requests(
    requests: Sequence[RequestInThread], tokenizer: PreTrainedTokenizerFast, traces: bool = False
) -> list[RenderedRequest]:
    """Renders requests so that they continue the prefixes of their threads.

    Args:
        requests: the requests, which are tokenized together.
        tokenizer: the model's tokenizer.
        traces: whether the model's attention can be read.

    Raises:
        PromptError, UsageError: a request cannot be rendered; the message begins with its name.
    """
    if not requests:
        return []
    texts: list[list[RenderedText]] = []
    mask_ids: list[int | None] = []
    for in_thread in requests:
        request = in_thread.request
        with name_errors(request.name):
            texts.append([_render_text(request, chat, tokenizer) for chat in _edit_chats(request)])
            mask_ids.append(_mask_token(tokenizer) if request.compiled.masks_span else None)
    prompts = iter(tokenize(list(chain(*texts)), tokenizer))
    return [
        _make_rendered(in_thread, list(islice(prompts, len(request_texts))), mask_id, traces)
        for in_thread, request_texts, mask_id in zip(requests, texts, mask_ids, strict=True)
    ]


def render_one(
    request: Request, tokenizer: PreTrainedTokenizerFast, prefixes: Sequence[CachedPrefix] = ()
) -> RenderedRequest:
    """Renders a request after the prefixes of its thread, as `render_requests` does."""
    (rendered,) = render_requests([RequestInThread(request, prefixes)], tokenizer)
    return rendered


def _render_text(request: Request, chat: _Chat, tokenizer: PreTrainedTokenizerFast) -> RenderedText:
    """Renders a chat up to where the model's reply continues it."""
    if request.plain:
        return _render_plain(chat.messages[0]["content"], chat.emphasis, tokenizer)
    answered = chat.messages
    reply_start = ""
    if request.continue_final_message:  # as if the model had written the last message so far
        answered = chat.messages[:-1]
        reply_start = chat.messages[-1]["content"]
    emphasis = chat.emphasis and [part for part in chat.emphasis if part.message < len(answered)]
    text, spans = render_with_spans(
        answered,
        tokenizer,
        system_as=request.system_as,
        emphasis=emphasis,
        spares_replies=request.compiled.spares_replies,
        default_system=chat.default_system,
        tools=request.tools,
    )
    in_reply = [part for part in chat.emphasis or () if part.message == len(answered)]
    spans += tuple((len(text) + part.first, len(text) + part.last) for part in in_reply)
    if reply_start and request.compiled.spares_replies:
        spans += ((len(text), len(text) + len(reply_start)),)
    return RenderedText(text + reply_start, spans)


def _render_plain(
    text: str, emphasis: Sequence[TextRange] | None, tokenizer: PreTrainedTokenizerFast
) -> RenderedText:
    """Renders a prompt without a template, after the BOS token if the tokenizer adds one."""
    bos_id = tokenizer.bos_token_id
    adds_bos = bos_id is not None and list(tokenizer("").input_ids[:1]) == [bos_id]
    bos = str(tokenizer.bos_token) if adds_bos else ""
    if not tokenizer(bos + text, add_special_tokens=False).input_ids:
        raise PromptError(f"The prompt {text!r} has no tokens; give a text.")
    spans = ((len(bos) + start, len(bos) + end) for _, start, end in emphasis or ())
    return RenderedText(bos + text, tuple(spans))


def _make_rendered(
    in_thread: RequestInThread, prompts: Sequence[Prompt], mask_id: int | None, traces: bool
) -> RenderedRequest:
    """Makes the engine's request from rendered prompts.

    Args:
        in_thread: the request, and the prefixes of its thread.
        prompts: the rendered chat of each prompt.
        mask_id: replaces the tokens of the span in all prompts but the first; None leaves them.
        traces: whether the model's attention can be read.
    """
    request = in_thread.request
    compiled = request.compiled
    token_prompts: list[TokenPrompt] = []
    for prompt, prefix in zip_longest(prompts, in_thread.prefixes[: len(prompts)]):
        is_first = not token_prompts
        token_prompts.append(
            _make_token_prompt(prompt, prefix, compiled, None if is_first else mask_id)
        )
    token_request = TokenRequest(
        prompts=tuple(token_prompts),
        processors=compiled.processors,
        sampling=request.sampling,
        seed=request.seed,
        penalties=request.penalties,
        keep=request.keep and request.thread is not None,
        # the mass on another span than the prompt is not what a trace means
        trace=request.trace and traces and not compiled.spares_replies,
        room=request.room,
        name=request.name,
    )
    return RenderedRequest(request, token_request, tuple(prompts))


def _mask_token(tokenizer: PreTrainedTokenizerFast) -> int:
    """The tokenizer's mask token; without one, its unknown, padding or end-of-text token."""
    ids = (getattr(tokenizer, f"{name}_token_id") for name in ("mask", "unk", "pad", "eos"))
    token = next((token for token in ids if token is not None), None)
    if token is None:
        raise PromptError(
            f"{tokenizer.name_or_path or 'This tokenizer'} has no token that could mask a text;"
            " set tokenizer.mask_token, or use guidance in place of anchoring."
        )
    return int(token)


def _make_token_prompt(
    prompt: Prompt,
    prefix: CachedPrefix | None,
    compiled: CompiledMethods,
    mask_id: int | None = None,
) -> TokenPrompt:
    """Makes the engine's prompt, which continues the prefix if there is one.

    `mask_id`, if it is given, replaces every token of the span.
    """
    token_ids = prompt.token_ids
    span = prompt.span_mask
    new_from = None if prefix is None else _find_continuation(prefix, prompt)
    if prefix is not None and new_from is not None:
        token_ids = prefix.token_ids + token_ids[new_from:]
        span = prefix.span + span[new_from:]
    if mask_id is not None:
        pairs = zip(token_ids, span, strict=True)
        token_ids = tuple(mask_id if inside else token for token, inside in pairs)
    return TokenPrompt.after(prefix, token_ids, span, compiled)


def _find_continuation(prefix: CachedPrefix, prompt: Prompt) -> int | None:
    """The first token of a prompt after the text of a prefix.

    None if the prompt does not continue the prefix, or if a token spans the end of it.
    """
    boundary = len(prefix.text)
    spans_before = tuple(span for span in prompt.spans if span[0] < boundary)
    if prefix.text_spans != spans_before or not prompt.text.startswith(prefix.text):
        return None
    return token_at(prompt, boundary)


def token_at(prompt: Prompt, character: int) -> int | None:
    """The index of the token that starts at a character; None if no token does."""
    first = bisect_left(prompt.starts, character)
    return first if prompt.starts[first : first + 1] == (character,) else None


def _edit_chats(request: Request) -> list[_Chat]:
    """Edits the chat of a request for its prompts: its own and, for each processor, a second."""
    compiled = request.compiled

    def edit_chat(edit: Callable[[Messages], Messages], *, default_system: bool) -> _Chat:
        messages, emphasis = edit_emphasised(request.messages, request.emphasis, edit)
        return _Chat(messages, emphasis if request.emphasis else None, default_system)

    chats = [edit_chat(lambda chat: compiled.edit(chat, request.editing_seed), default_system=True)]
    for method in compiled.processors:
        chats.append(edit_chat(method.second_chat, default_system=False))
    return chats


def prefixes_of_known_replies(
    request: Request, tokenizer: PreTrainedTokenizerFast
) -> tuple[CachedPrefix, ...]:
    """Renders the replies of a request that come with their tokens, as a thread would keep them.

    () if there are none.
    """
    prefixes: tuple[CachedPrefix, ...] = ()
    for number, token_ids in request.reply_token_ids:
        reply = request.messages[number]["content"]
        text = str(tokenizer.decode(list(token_ids), skip_special_tokens=True))
        if text != reply:
            raise PromptError(
                f"The tokens of message {number} decode to {text[:60]!r}, and its text is"
                f" {reply[:60]!r}; leave them out.",
                option="reply_token_ids",
                value=text,
                allowed=reply,
            )
        emphasis = tuple(part for part in request.emphasis if part.message < number)
        answered = replace(
            request,
            name="",  # the caller puts the request's name into errors
            messages=request.messages[:number],
            emphasis=emphasis,
            reply_token_ids=(),
            continue_final_message=False,
        )
        rendered = render_one(answered, tokenizer, prefixes)
        prefixes = rendered.as_prefixes(token_ids=token_ids, reply=reply)
    return prefixes


def check_room(rendered: RenderedRequest, context: int | None, model: str) -> None:
    """Raises `PromptTooLong` if a chat leaves no room for a reply in a model's context."""
    longest = rendered.token_request.max_prompt_len
    if context and longest >= context:
        with name_errors(rendered.request.name):
            raise PromptTooLong(
                f"A chat of {longest} tokens leaves no room for a reply in the {context} tokens"
                f" {model} can see; use a shorter chat.",
                value=longest,
                allowed=context,
            )
