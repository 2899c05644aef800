"""Chat models that run here: replies that forward no token twice."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.cache import KeysValues, first_tokens
from holdfast.chat import Message, Reply, Request, Sampling
from holdfast.decoding import Continuation, Row, decode
from holdfast.errors import ModelError, PromptError, UsageError
from holdfast.methods import EditsMessages, Method, ShiftsAttention, edit_messages
from holdfast.prompt import Prompt, find_span, place_system, render_text, tokenize

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


@dataclass(frozen=True)
class _Computed:
    """What is known of a dialog: its rendered text up to the last reply, the tokens of it, and their keys and values."""

    text: str
    token_ids: tuple[int, ...]
    span: tuple[bool, ...]
    keys_values: KeysValues | None


@dataclass(frozen=True)
class LocalModel:
    """A Hugging Face chat model in this process.

    Args:
        name: as given to `holdfast.load`.
        fingerprint: of its configuration, weights and chat template.
        hf_model: the causal language model; its attention is `holdfast.attention`'s where the class allows it.
        tokenizer: its fast tokenizer.
        stop_ids: tokens that end a reply.
        reuses_cache: False where keys and values cannot be taken apart by row (sliding windows, linear attention);
            such a model runs its rows one by one and encodes the history again.
        steerable: whether the attention mass on the prompt can be read and moved.
        batch_size: rows forwarded together at most.
    """

    name: str
    fingerprint: str
    hf_model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast
    stop_ids: frozenset[int]
    reuses_cache: bool
    steerable: bool
    batch_size: int = 192

    def generate(
        self, messages: Sequence[Message], methods: Sequence[Method] = (), sampling: Sampling = Sampling(), seed: int = 0
    ) -> Reply:
        """Answers one chat."""
        return self.generate_batch([Request(tuple(messages), tuple(methods), sampling, seed)])[0]

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers many chats, in the order given."""
        return self.session().generate_batch(requests)

    def session(self) -> LocalSession:
        """Opens a session, in which requests of one thread forward only what is new."""
        return LocalSession(self)

    @property
    def context(self) -> int | None:
        """Tokens the model can see, where its configuration says so."""
        return getattr(self.hf_model.config.get_text_config(), "max_position_embeddings", None)


@dataclass
class LocalSession:
    """Requests that share prefixes; what was computed lives as long as the session."""

    model: LocalModel
    _threads: dict[Hashable, _Computed] = field(default_factory=dict)

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers requests in the order given.

        A request with a `thread` continues what that thread has computed; with `keep` (one per thread and call), its
        reply becomes part of it, and without, it forks the thread and leaves no trace.

        Raises:
            PromptError: a chat cannot be rendered, its system prompt is not found, or it passes the model's context.
            ModelError: a method cannot be applied to this model.
        """
        if not requests:
            return []
        prepared = self._prepare(requests)
        size = self.model.batch_size if self.model.reuses_cache else 1
        replies = []
        for start in range(0, len(requests), size):
            rows = [row for row, _ in prepared[start : start + size]]
            done = decode(self.model.hf_model, rows, self.model.stop_ids, reuse=self.model.reuses_cache)
            replies += [
                self._reply(*one) for one in zip(requests[start:], prepared[start:], done, strict=False)
            ]
        return replies

    def _prepare(self, requests: Sequence[Request]) -> list[tuple[Row, str]]:
        """The row of each request and its rendered text."""
        texts, spans = [], []
        for request in requests:
            _check_methods(request.methods, self.model)
            system = next((m["content"] for m in request.messages if m["role"] == "system"), "").strip()
            shown = edit_messages(request.messages, request.methods, request.editing_seed)
            text = render_text(place_system(shown, request.system_as), self.model.tokenizer)
            texts.append(text)
            spans.append(find_span(text, system) if system else (0, 0))
        prompts = tokenize(texts, spans, self.model.tokenizer)
        return [(self._row(*one), text) for one, text in zip(zip(requests, prompts, strict=True), texts, strict=True)]

    def _row(self, request: Request, prompt: Prompt) -> Row:
        before = self._threads.get(request.thread) if request.thread is not None else None
        token_ids, span = prompt.token_ids, prompt.span_mask
        if before and (known := _continue(before, prompt)):
            token_ids, span = known
        computed = before.keys_values if before and before.keys_values else None
        if computed:
            shared = _common_prefix(before.token_ids, token_ids)
            usable = min(shared, computed[0][0].shape[1], len(token_ids) - 1)
            computed = first_tokens(computed, usable) if usable else None
        limit = self.model.context
        if limit and len(token_ids) + request.sampling.max_new_tokens > limit:
            raise PromptError(
                f"A chat of {len(token_ids)} tokens and a reply of up to {request.sampling.max_new_tokens} pass the "
                f"{limit} tokens {self.model.name} can see; use fewer rounds or fewer new tokens."
            )
        methods = tuple(m for m in request.methods if isinstance(m, ShiftsAttention)) if any(span) else ()
        return Row(
            token_ids, span, computed, methods, request.sampling, request.seed,
            keep=request.keep and request.thread is not None, trace=request.trace and self.model.steerable,
        )

    def _reply(self, request: Request, prepared: tuple[Row, str], done: Continuation) -> Reply:
        row, text = prepared
        answer = self.model.tokenizer.decode(done.token_ids, skip_special_tokens=True)
        if row.keep:
            self._threads[request.thread] = _Computed(
                text + answer, row.token_ids + done.token_ids, row.span + (False,) * len(done.token_ids), done.computed
            )
        return Reply(answer, done.token_ids, done.stop_reason, done.trace, done.forwarded, row.token_ids)


def _check_methods(methods: Sequence[Method], model: LocalModel) -> None:
    for method in methods:
        if isinstance(method, ShiftsAttention) and not model.steerable:
            raise ModelError(
                f"The attention of {model.name} ({type(model.hf_model).__name__}) cannot be reached, so {method.name} cannot "
                "steer it; use a prompt method such as repetition."
            )
        if not isinstance(method, (EditsMessages, ShiftsAttention)):
            raise UsageError(f"{method!r} is no method this model can apply; see holdfast.methods for those there are.")


def _continue(before: _Computed, prompt: Prompt) -> tuple[tuple[int, ...], tuple[bool, ...]] | None:
    """The tokens and span of `prompt`, with those of `before` kept as they were generated; None where it cannot be.

    A reply may be spelled by other tokens than its text would be tokenized to, so the known tokens are kept, and the
    text after them is taken from a tokenization of the whole, if a token starts exactly there.
    """
    boundary = len(before.text)
    if not prompt.text.startswith(before.text):
        return None
    first = next((index for index, start in enumerate(prompt.starts) if start >= boundary), None)
    if first is None or prompt.starts[first] != boundary:
        return None
    return before.token_ids + prompt.token_ids[first:], before.span + prompt.span_mask[first:]


def _common_prefix(first: tuple[int, ...], second: tuple[int, ...]) -> int:
    for index, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return index
    return min(len(first), len(second))
