"""Chat models that run here: replies that forward no token twice."""

from __future__ import annotations

import itertools
import logging
import math
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import torch

from holdfast.attention import check_methods
from holdfast.chat.emphasis import Part, Range, Span, put_marks, take_marks, unused_character
from holdfast.chat.messages import Message
from holdfast.chat.prompt import Prompt, render_with_spans, tokenize
from holdfast.chat.streaming import Pieces
from holdfast.engine.cache import KeysValues, first_tokens
from holdfast.engine.decoder import Continuation, Decoder, Row, Stream
from holdfast.engine.scoring import Scored, score_rows
from holdfast.errors import HoldfastError, ModelError, PromptError, UsageError
from holdfast.methods import (
    Ability,
    EditsLogits,
    Gate,
    Method,
    Shape,
    ShiftsAttention,
    attention_methods,
    edit_messages,
    read_methods,
)
from holdfast.models.capabilities import LOCAL, check_needs, why_unreached
from holdfast.models.protocol import Job, answer_all, request_names
from holdfast.models.requests import Reply, Request
from holdfast.sampling import Sampling

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

_LOG = logging.getLogger("holdfast")
_NO_MEMORY = ("DefaultCPUAllocator", "not enough memory", "out of memory", "bad_alloc")
_PREFILL = 16_384  # tokens of one prefill, padding included, unless a single request has more
_PADDED = 65_536  # columns of histories in one prefill, unless at least a quarter is used
_PASS = 128  # tokens that cost about as much as a forward pass costs beside its tokens
# waiting requests join when they are more than one for so many rows that run: a prefill costs about
# a step
_JOIN = 4


@dataclass(frozen=True)
class _Computed:
    """What is known of one stream of a dialog.

    Args:
        text: as it was rendered, with the last reply.
        spans: what is held on to in the text.
        token_ids: of the text, replies as they were generated.
        span: of the tokens.
        methods: the steering under which the keys and values were made.
        keys_values: of the first tokens, as they are in a prompt; None where nothing is computed.
    """

    text: str
    spans: tuple[Span, ...]
    token_ids: tuple[int, ...]
    span: tuple[bool, ...]
    methods: tuple[ShiftsAttention, ...]
    keys_values: KeysValues | None


@dataclass(frozen=True)
class LocalModel:
    """A Hugging Face chat model in this process.

    Args:
        name: as given to `holdfast.load`.
        fingerprint: of its configuration, weights and chat template.
        hf_model: the causal language model; its attention is `holdfast.attention`'s where the class
            allows it.
        tokenizer: its fast tokenizer.
        stop_ids: tokens that end a reply.
        reuses_cache: False where keys and values cannot be taken apart by row (sliding windows,
            linear attention); such a model runs its rows one by one and encodes the history again.
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
    independent: ClassVar[bool] = False  # the composition of a batch may decide a rounding

    def generate(
        self,
        messages: Sequence[Message],
        methods: Sequence[Method] = (),
        sampling: Sampling = Sampling(),
        seed: int = 0,
        *,
        emphasis: Sequence[Part] = (),
        marks: bool = False,
    ) -> Reply:
        """Answers one chat; `emphasis` and `marks` as in `Request`."""
        return self.generate_batch(
            [Request(messages, methods, sampling, seed, emphasis=emphasis, marks=marks)]
        )[0]

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers many chats, in the order given."""
        return self.session().generate_batch(requests)

    def score(
        self,
        messages: Sequence[Message],
        replies: Sequence[str],
        methods: Sequence[Method] = (),
        *,
        emphasis: Sequence[Part] = (),
        marks: bool = False,
    ) -> Scored:
        """The log-probabilities of given replies to one chat; see `LocalSession.score`."""
        return self.session().score(
            [Request(messages, methods, emphasis=emphasis, marks=marks)], [replies]
        )[0]

    def stream(self, request: Request, tell: Callable[[str], None]) -> Reply:
        """Answers one chat; `tell` takes the text piece by piece, as it is drawn, and all pieces
        are the reply.
        """
        text, answered = Pieces(self.tokenizer, tell), []
        self.session().run(
            [Job(request, lambda reply: answered.append(reply) or (), drawn=text.add)]
        )
        (reply,) = answered
        _check_room(self, reply, "")
        text.finish(reply.text)
        return reply

    def session(self) -> LocalSession:
        """Opens a session, in which requests of one thread forward only what is new."""
        return LocalSession(self)

    def check(self, methods: Sequence[Method]) -> None:
        """Refuses methods that this model cannot apply.

        Raises:
            ModelError: its attention cannot be reached.
            UsageError: no method at all, or heads that the model does not have.
        """
        methods = read_methods(methods)
        kind = type(self.hf_model).__name__
        unreached = "" if self.steerable else f", {why_unreached(self.hf_model)},"
        cure = "use a prompt method such as repetition"
        check_needs(methods, self.offers, f"{self.name} ({kind}){unreached}", cure)
        check_methods(self.hf_model, attention_methods(methods))

    @property
    def offers(self) -> frozenset[Ability]:
        """What methods and studies can use of it."""
        return LOCAL | {Ability.LOG_ODDS} if self.steerable else LOCAL

    @property
    def runtime(self) -> dict[str, str | int]:
        """What rounding depends on besides the model."""
        import transformers

        device = self.hf_model.device
        return {
            "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
            "batch_size": self.batch_size,
        }

    @property
    def shape(self) -> Shape:
        """What a head set made on this model is for.

        Raises:
            ModelError: its layers do not all have the same number of heads.
        """
        config = self.hf_model.config.get_text_config()
        layers, heads = (
            getattr(config, "num_hidden_layers", None),
            getattr(config, "num_attention_heads", None),
        )
        if not isinstance(layers, int) or not isinstance(heads, int):
            raise ModelError(
                f"{self.name} has {layers} layers of {heads} heads, and only layers with equally"
                " many heads have a profile."
            )
        return Shape(layers, heads, self.name, self.fingerprint)

    @property
    def context(self) -> int | None:
        """Tokens the model can see, where its configuration says so."""
        return getattr(self.hf_model.config.get_text_config(), "max_position_embeddings", None)


@dataclass(frozen=True, eq=False)
class _Pending:
    """A job that is not answered, and what its thread had computed when it was added."""

    job: Job
    before: tuple[_Computed, ...] = ()


class _Queue:
    """Jobs that wait: those that others wait for (`keep`) go first, each kind in order."""

    def __init__(self) -> None:
        self.kept: deque[_Pending] = deque()
        self.forks: deque[_Pending] = deque()

    def __len__(self) -> int:
        return len(self.kept) + len(self.forks)

    def add(self, pending: _Pending) -> None:
        (self.kept if pending.job.request.keep else self.forks).append(pending)

    def take(self, count: int) -> list[_Pending]:
        return [(self.kept or self.forks).popleft() for _ in range(count)]

    def give_back(self, taken: Iterable[_Pending]) -> None:
        """Puts jobs that were taken in front of all others, in the order in which they were."""
        for pending in reversed(list(taken)):
            (self.kept if pending.job.request.keep else self.forks).appendleft(pending)


@dataclass(frozen=True)
class _Asked:
    """A request on its way: its row, None where the context leaves no room for a reply, and the
    rendered text of each stream with its spans.
    """

    pending: _Pending
    row: Row | None
    texts: tuple[str, ...]
    spans: tuple[tuple[Span, ...], ...]
    prompt_ids: tuple[int, ...]

    @property
    def job(self) -> Job:
        return self.pending.job


@dataclass
class LocalSession:
    """Requests that share prefixes; what was computed lives as long as the session."""

    model: LocalModel
    _threads: dict[Hashable, tuple[_Computed, ...]] = field(default_factory=dict)

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers requests in the order given.

        A request with a `thread` continues what that thread has computed; with `keep` (one at a
        time per thread), its reply becomes part of it, and without, it forks the thread and leaves
        no trace.

        Raises:
            PromptError: a chat cannot be rendered, its system prompt is not found, or it passes the
                model's context.
            ModelError: a method cannot be applied to this model.
        """
        replies = answer_all(self, requests)
        for name, reply in zip(request_names(requests), replies, strict=True):
            _check_room(self.model, reply, name)
        return replies

    def score(self, requests: Sequence[Request], replies: Sequence[Sequence[str]]) -> list[Scored]:
        """How probable given replies are to each chat, without generating (at temperature 1, the
        whole vocabulary).

        A request with a `thread` continues what that thread has computed; with `keep`, the chat
        (not the replies) becomes part of it.

        Args:
            requests: the chats; sampling, seeds (but a conversation's) and traces play no part.
            replies: per request, the replies to score, at least one and none empty. A reply is
                tokenized behind its chat.

        Raises:
            PromptError: as `generate_batch`; or a reply is empty, or does not fit into the model's
                context.
            UsageError: a gate, which draws again and again, so that its tokens have no probability
                of their own.
            ModelError: a method cannot be applied to this model.
        """
        if gated := next(
            (
                method
                for request in requests
                for method in request.methods
                if isinstance(method, Gate)
            ),
            None,
        ):
            raise UsageError(
                f"{gated.name} draws tokens again, so replies under it have no log-probability;"
                " score without it."
            )
        asked, wanted = self._read(requests, replies)
        scored, computed = self._score([asking.row for asking in asked], wanted)
        for one, known in zip(asked, computed, strict=True):
            if one.job.request.keep and one.job.request.thread is not None and known:
                self._threads[one.job.request.thread] = tuple(
                    _Computed(text, spans, stream.token_ids, stream.span, stream.methods, kept)
                    for text, spans, stream, kept in zip(
                        one.texts, one.spans, one.row.streams, known, strict=True
                    )
                )
        return scored

    def _score(
        self, rows: Sequence[Row], wanted: Sequence[Sequence[tuple[int, ...]]]
    ) -> tuple[list[Scored], list[tuple[KeysValues, ...]]]:
        """`score_rows`, with half of the batch for as long as memory runs out."""
        model, size = self.model, self.model.batch_size
        while True:
            try:
                return score_rows(model.hf_model, rows, wanted, size, reuse=model.reuses_cache)
            except (RuntimeError, MemoryError) as error:
                if not _ran_out_of_memory(error):
                    raise
            size = self._halved(min(size, max(len(rows), max(map(len, wanted)))))

    def spell(
        self, requests: Sequence[Request], replies: Sequence[Sequence[str]]
    ) -> list[tuple[Stream, list[tuple[int, ...]]]]:
        """What `score` forwards: each chat's tokens and span, and the tokens of its replies.

        Raises:
            PromptError, UsageError, ModelError: as `score`.
        """
        asked, wanted = self._read(requests, replies)
        return [(one.row.streams[0], options) for one, options in zip(asked, wanted, strict=True)]

    def _read(
        self, requests: Sequence[Request], replies: Sequence[Sequence[str]]
    ) -> tuple[list[_Asked], list[list[tuple[int, ...]]]]:
        """The requests, and the tokens of their replies; none is longer than the model's
        context.
        """
        asked = self._prepare(
            [
                _Pending(Job(request, lambda reply: (), name=name), self._known(request))
                for name, request in zip(request_names(requests), requests, strict=True)
            ]
        )
        wanted = self._spell_out(asked, replies)
        for one, options in zip(asked, wanted, strict=True):
            longest = (
                max(len(stream.token_ids) for stream in one.row.streams) + max(map(len, options))
                if one.row
                else len(one.prompt_ids) + 1
            )
            if self.model.context and longest > self.model.context:
                with _named(one.job):
                    raise PromptError(
                        f"A chat and its reply take {longest} tokens, and {self.model.name} sees "
                        f"{self.model.context}; use a shorter chat."
                    )
        return asked, wanted

    def _spell_out(
        self, asked: Sequence[_Asked], replies: Sequence[Sequence[str]]
    ) -> list[list[tuple[int, ...]]]:
        """The tokens of each reply behind its chat; by itself where no token of the two together
        begins with the reply.
        """
        if any(not reply for options in replies for reply in options) or not all(replies):
            raise PromptError(
                "An empty reply ('') has no probability; give at least one reply to each chat, each"
                " with a text."
            )
        texts = [
            one.texts[0] + reply
            for one, options in zip(asked, replies, strict=True)
            for reply in options
        ]
        joined = iter(tokenize(texts, [()] * len(texts), self.model.tokenizer))
        spelled = []
        for one, options in zip(asked, replies, strict=True):
            spelled.append([])
            for reply in options:
                prompt, begins = next(joined), len(one.texts[0])
                first = next(
                    (index for index, start in enumerate(prompt.starts) if start >= begins), None
                )
                if first is None or prompt.starts[first] != begins:
                    prompt, first = tokenize([reply], [()], self.model.tokenizer)[0], 0
                spelled[-1].append(prompt.token_ids[first:])
        return spelled

    def run(self, jobs: Iterable[Job]) -> None:
        """Answers jobs and all that follow from them; rows join and leave the batch at any step.

        Requests that others wait for (`keep`) go first, each kind in order. What joins when depends
        on the requests and their replies alone, so that the same jobs are computed by the same
        arithmetic.

        Raises:
            PromptError, ModelError: as `generate_batch`, but for a chat that is too long, whose
                reply says so.
        """
        waiting, limit = _Queue(), self.model.batch_size if self.model.reuses_cache else 1
        decoder, taken = self._decoder(), dict[_Pending, None]()  # taken and not answered, in order

        def add(following: Iterable[Job]) -> None:
            for job in (
                following
            ):  # a fork that has to wait goes on from here, however far its thread gets meanwhile
                waiting.add(_Pending(job, self._known(job.request)))

        add(jobs)
        while waiting or taken:
            joining = min(len(waiting), limit - len(decoder))
            fresh = waiting.take(joining) if joining > len(decoder) // _JOIN else []
            taken |= dict.fromkeys(fresh)
            try:
                done = self._join(decoder, fresh) if fresh else decoder.step()
            except (RuntimeError, MemoryError) as error:
                if not _ran_out_of_memory(error):
                    raise
                done = None
            if done is None:  # outside the handler, whose error holds on to all that was computed
                limit = self._halved(len(taken))
                decoder = self._decoder()
                waiting.give_back(taken)
                taken.clear()
                continue
            for asked, continuation in done:
                del taken[asked.pending]
                add(asked.job.then(self._reply(asked, continuation)))

    def forget(self, thread: Hashable) -> None:
        """Frees what was computed for a thread that is over; a later request of it begins anew."""
        self._threads.pop(thread, None)

    def _known(self, request: Request) -> tuple[_Computed, ...]:
        return self._threads.get(request.thread, ()) if request.thread is not None else ()

    def _decoder(self) -> Decoder[_Asked]:
        model = self.model
        return Decoder(model.hf_model, model.stop_ids, reuse=model.reuses_cache)

    def _join(
        self, decoder: Decoder[_Asked], fresh: Sequence[_Pending]
    ) -> list[tuple[_Asked, Continuation | None]]:
        """Prefills requests; returns those whose reply ends there, or has no room to begin."""
        prepared = self._prepare(fresh)
        done = [(asked, None) for asked in prepared if asked.row is None]
        for group in _prefills([asked for asked in prepared if asked.row]):
            done += decoder.admit([asked.row for asked in group], group)
        return done

    def _halved(self, requests: int) -> int:
        """How many requests to go on with after memory ran out with so many.

        Raises:
            ModelError: it ran out with a single one.
        """
        name, size = self.model.name, self.model.batch_size
        if requests <= 1:
            raise ModelError(
                f"Out of memory with a single chat of {name} (batch_size={size} plays no part "
                "any more); use a shorter chat, a smaller dtype or a smaller model."
            )
        _LOG.warning(
            "Out of memory with %d chats of %s at once; going on with %d at a time. "
            "A smaller batch_size (now %d) does so from the start.",
            requests,
            name,
            requests // 2,
            size,
        )
        return requests // 2

    def _prepare(self, waiting: Sequence[_Pending]) -> list[_Asked]:
        """Renders the requests, each for its one or two streams, and takes up what its thread had
        computed when it was made.
        """
        texts, spans = [], []
        chats = []
        for pending in waiting:
            request = pending.job.request
            with _named(pending.job):
                self.model.check(request.methods)
                chats.append(_chats(request))
                for chat in chats[-1]:
                    text, span = render_with_spans(
                        chat.messages,
                        self.model.tokenizer,
                        system_as=request.system_as,
                        emphasis=chat.emphasis,
                        default_system=chat.default_system,
                    )
                    texts.append(text)
                    spans.append(span)
        prompts = iter(tokenize(texts, spans, self.model.tokenizer))
        return [
            self._ask(pending, list(itertools.islice(prompts, len(read))))
            for pending, read in zip(waiting, chats, strict=True)
        ]

    def _ask(self, pending: _Pending, prompts: Sequence[Prompt]) -> _Asked:
        request, limit = pending.job.request, self.model.context
        gate = next((method for method in request.methods if isinstance(method, Gate)), None)
        shifts = tuple(method for method in request.methods if isinstance(method, ShiftsAttention))
        known = (*pending.before, None, None)
        streams = tuple(
            _stream(prompt, known[number], shifts + (gate.methods if gate and number == 0 else ()))
            for number, prompt in enumerate(prompts)
        )
        room = (
            limit - max(len(stream.token_ids) for stream in streams)
            if limit
            else request.sampling.max_new_tokens
        )
        row = Row(
            streams,
            next((method for method in request.methods if isinstance(method, EditsLogits)), None),
            gate,
            replace(
                request.sampling, max_new_tokens=max(1, min(room, request.sampling.max_new_tokens))
            ),
            request.seed,
            keep=request.keep and request.thread is not None,
            trace=request.trace and self.model.steerable,
            drawn=pending.job.drawn,
        )
        return _Asked(
            pending,
            row if room > 0 else None,
            tuple(prompt.text for prompt in prompts),
            tuple(prompt.spans for prompt in prompts),
            streams[0].token_ids,
        )

    def _reply(self, asked: _Asked, done: Continuation | None) -> Reply:
        if done is None:
            return Reply("", (), "context", prompt_ids=asked.prompt_ids)
        answer = self.model.tokenizer.decode(done.token_ids, skip_special_tokens=True)
        if asked.row.keep:
            added = (False,) * len(done.token_ids)
            streams = zip(asked.texts, asked.spans, asked.row.streams, strict=True)
            self._threads[asked.job.request.thread] = tuple(
                _Computed(
                    text + answer,
                    spans,
                    stream.token_ids + done.token_ids,
                    stream.span + added,
                    stream.methods,
                    done.computed[number] if done.computed else None,
                )
                for number, (text, spans, stream) in enumerate(streams)
            )
        return Reply(
            answer, done.token_ids, done.stop_reason, done.trace, done.forwarded, asked.prompt_ids
        )


@contextmanager
def _named(job: Job) -> Iterator[None]:
    """Says of an error which of many requests it is about."""
    try:
        yield
    except HoldfastError as error:
        if job.name:
            error.args = (f"{job.name}: {error}",)
        raise


def _ran_out_of_memory(error: Exception) -> bool:
    """Whether an error says so; on a CPU, torch raises a plain RuntimeError."""
    if isinstance(error, (torch.OutOfMemoryError, MemoryError)):
        return True
    return any(sign in str(error) for sign in _NO_MEMORY)


def _check_room(model: LocalModel, reply: Reply, name: str) -> None:
    """Refuses a chat that fills the context; `name` says which of several it is.

    Raises:
        PromptError: it leaves no room for a reply.
    """
    if reply.stop_reason == "context":
        raise PromptError(
            f"{name and f'{name}: '}A chat of {len(reply.prompt_ids)} tokens leaves no room for a"
            f" reply in the {model.context} tokens {model.name} can see; use a shorter chat or"
            " fewer rounds."
        )


def _prefills(waiting: Sequence[_Asked]) -> list[list[_Asked]]:
    """The requests in groups of like length, of the least cost.

    Rows are padded to the longest, and each pass costs something by itself.
    """
    ordered = sorted(waiting, key=_new_tokens, reverse=True)
    # of the first requests: their cost, and where their last group starts
    least, start_of = [0.0], [0]
    for stop in range(1, len(ordered) + 1):
        costs, rows, longest, tokens = [math.inf] * stop, 0, 0, 0
        for start in reversed(range(stop)):
            streams = ordered[start].row.streams
            rows += len(streams)
            longest = max(longest, *(stream.cached for stream in streams))
            tokens += sum(stream.cached for stream in streams)
            padded = rows * _new_tokens(ordered[start])
            fits = padded <= _PREFILL and rows * longest <= max(_PADDED, 4 * tokens)
            if fits or start == stop - 1:
                costs[start] = least[start] + _PASS + padded
        least.append(min(costs))
        start_of.append(costs.index(least[-1]))
    groups, stop = [], len(ordered)
    while stop:
        groups.append(ordered[start_of[stop] : stop])
        stop = start_of[stop]
    return groups


def _new_tokens(asked: _Asked) -> int:
    """Tokens that the longest stream of a request has to forward."""
    return max(len(stream.token_ids) - stream.cached for stream in asked.row.streams)


@dataclass(frozen=True)
class _Chat:
    """What one stream reads.

    Args:
        messages: as its methods edited them.
        emphasis: in these messages; None where nothing was emphasised.
        default_system: whether the template may put in a system prompt of its own.
    """

    messages: tuple[Message, ...]
    emphasis: tuple[Range, ...] | None
    default_system: bool = True


def _chats(request: Request) -> list[_Chat]:
    """What the streams of a request read; what a method repeats is emphasised in every place."""
    messages, mark = request.messages, ""
    if request.emphasis:
        mark = unused_character([message["content"] for message in messages])
        messages = put_marks(messages, request.emphasis, mark)

    def read(chat: tuple[Message, ...], default_system: bool = True) -> _Chat:
        return _Chat(*(take_marks(chat, mark) if mark else (chat, None)), default_system)

    chats = [read(edit_messages(messages, request.methods, request.editing_seed))]
    for method in request.methods:
        if isinstance(method, EditsLogits):
            chats.append(read(method.other(messages), default_system=False))
        elif isinstance(method, Gate):
            chats.append(chats[0])
    return chats


def _stream(
    prompt: Prompt, before: _Computed | None, methods: tuple[ShiftsAttention, ...]
) -> Stream:
    """A prompt as far as it is computed already."""
    token_ids, span = prompt.token_ids, prompt.span_mask
    if before and (known := _continue(before, prompt)):
        token_ids, span = known
    methods = methods if any(span) else ()
    computed = before.keys_values if before else None
    if computed:
        usable = min(_reusable(before, token_ids, span, methods), len(token_ids) - 1)
        computed = first_tokens(computed, usable) if usable else None
    return Stream(token_ids, span, computed, methods)


def _reusable(
    before: _Computed,
    token_ids: tuple[int, ...],
    span: tuple[bool, ...],
    methods: tuple[ShiftsAttention, ...],
) -> int:
    """How many first tokens have the keys and values that `before` has.

    Under other methods only those in front of the span do: from there on, steering has moved what
    a token has read, and so its keys.
    """
    shared = min(_common_prefix(before.token_ids, token_ids), _common_prefix(before.span, span))
    if methods != before.methods and True in span[:shared]:
        shared = span.index(True)
    return min(shared, before.keys_values[0][0].shape[1])


def _continue(before: _Computed, prompt: Prompt) -> tuple[tuple[int, ...], tuple[bool, ...]] | None:
    """The tokens and span of `prompt`, with those of `before` kept as they were generated; None
    where it cannot be.

    A reply may be spelled by other tokens than its text would be tokenized to, so the known tokens
    are kept, and the text after them is taken from a tokenization of the whole, if a token starts
    exactly there."""
    boundary = len(before.text)
    if not prompt.text.startswith(before.text) or before.spans != tuple(
        span for span in prompt.spans if span[0] < boundary
    ):
        return None
    first = next((index for index, start in enumerate(prompt.starts) if start >= boundary), None)
    if first is None or prompt.starts[first] != boundary:
        return None
    return before.token_ids + prompt.token_ids[first:], before.span + prompt.span_mask[first:]


def _common_prefix(first: tuple, second: tuple) -> int:
    for index, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return index
    return min(len(first), len(second))
