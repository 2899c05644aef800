"""Chat models that run here: replies that forward no token twice."""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, ClassVar

import torch

from holdfast.attention import check_methods
from holdfast.cache import KeysValues, first_tokens
from holdfast.chat import Job, Message, Reply, Request, Sampling, answer_all
from holdfast.decoding import Continuation, Decoder, Row, Stream
from holdfast.emphasis import Part, Range, Span, put_marks, take_marks, unused_character
from holdfast.errors import ModelError, PromptError, UsageError
from holdfast.methods import EditsLogits, EditsMessages, Gate, Method, Shape, ShiftsAttention, edit_messages
from holdfast.prompt import Prompt, render_with_spans, tokenize
from holdfast.scoring import Scored, score_rows

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

_PREFILL = 16_384  # tokens of one prefill, padding included, unless a single request has more
_PASS = 128  # tokens that cost about as much as a forward pass costs beside its tokens
_JOIN = 4  # waiting requests join when they are more than one for so many rows that run: a prefill costs about a step


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
    independent: ClassVar[bool] = False  # the composition of a batch may decide a rounding

    def generate(
        self, messages: Sequence[Message], methods: Sequence[Method] = (), sampling: Sampling = Sampling(), seed: int = 0,
        *, emphasis: Sequence[Part] = (), marks: bool = False,
    ) -> Reply:  # fmt: skip
        """Answers one chat; `emphasis` and `marks` as in `Request`."""
        return self.generate_batch([Request(messages, methods, sampling, seed, emphasis=emphasis, marks=marks)])[0]

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers many chats, in the order given."""
        return self.session().generate_batch(requests)

    def score(
        self, messages: Sequence[Message], replies: Sequence[str], methods: Sequence[Method] = (), *, emphasis: Sequence[Part] = (), marks: bool = False
    ) -> Scored:
        """The log-probabilities of given replies to one chat; see `LocalSession.score`."""
        return self.session().score([Request(messages, methods, emphasis=emphasis, marks=marks)], [replies])[0]

    def session(self) -> LocalSession:
        """Opens a session, in which requests of one thread forward only what is new."""
        return LocalSession(self)

    def check(self, methods: Sequence[Method]) -> None:
        """Refuses methods that this model cannot apply.

        Raises:
            ModelError: its attention cannot be reached.
            UsageError: no method at all, or heads that the model does not have.
        """
        seconds = [method.name for method in methods if isinstance(method, (EditsLogits, Gate))]
        if len(seconds) > 1:
            raise UsageError(f"{' and '.join(seconds)} each need a second stream, and there is one; use one of them.")
        single = itertools.chain.from_iterable(method.methods if isinstance(method, Gate) else (method,) for method in methods)
        for method in single:
            if not isinstance(method, (EditsMessages, ShiftsAttention, EditsLogits, Gate)):
                raise UsageError(f"{method!r} is no method this model can apply; see holdfast.methods for those there are.")
            if not isinstance(method, ShiftsAttention):
                continue
            if not self.steerable:
                raise ModelError(
                    f"The attention of {self.name} ({type(self.hf_model).__name__}) cannot be reached, so {method.name} cannot "
                    "steer it; use a prompt method such as repetition."
                )
            check_methods(self.hf_model, [method])

    @property
    def runtime(self) -> dict[str, str | int]:
        """What rounding depends on besides the model."""
        import transformers

        device = self.hf_model.device
        return {
            "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
            "torch": torch.__version__, "transformers": transformers.__version__, "batch_size": self.batch_size,
        }

    @property
    def shape(self) -> Shape:
        """What a head set made on this model is for.

        Raises:
            ModelError: its layers do not all have the same number of heads.
        """
        config = self.hf_model.config.get_text_config()
        layers, heads = getattr(config, "num_hidden_layers", None), getattr(config, "num_attention_heads", None)
        if not isinstance(layers, int) or not isinstance(heads, int):
            raise ModelError(f"{self.name} has {layers} layers of {heads} heads, and only layers with equally many heads have a profile.")
        return Shape(layers, heads, self.name, self.fingerprint)

    @property
    def context(self) -> int | None:
        """Tokens the model can see, where its configuration says so."""
        return getattr(self.hf_model.config.get_text_config(), "max_position_embeddings", None)


@dataclass(frozen=True)
class _Asked:
    """A request on its way: its row, None where the context leaves no room for a reply, and the rendered text of each stream with its spans."""

    job: Job
    row: Row | None
    texts: tuple[str, ...]
    spans: tuple[tuple[Span, ...], ...]
    prompt_ids: tuple[int, ...]


@dataclass
class LocalSession:
    """Requests that share prefixes; what was computed lives as long as the session."""

    model: LocalModel
    _threads: dict[Hashable, tuple[_Computed, ...]] = field(default_factory=dict)

    def generate_batch(self, requests: Sequence[Request]) -> list[Reply]:
        """Answers requests in the order given.

        A request with a `thread` continues what that thread has computed; with `keep` (one at a time per thread), its
        reply becomes part of it, and without, it forks the thread and leaves no trace.

        Raises:
            PromptError: a chat cannot be rendered, its system prompt is not found, or it passes the model's context.
            ModelError: a method cannot be applied to this model.
        """
        replies = answer_all(self, requests)
        for reply in replies:
            if reply.stop_reason == "context":
                raise PromptError(
                    f"A chat of {len(reply.prompt_ids)} tokens leaves no room for a reply in the {self.model.context} tokens "
                    f"{self.model.name} can see; use a shorter chat or fewer rounds."
                )
        return replies

    def score(self, requests: Sequence[Request], replies: Sequence[Sequence[str]]) -> list[Scored]:
        """How probable given replies are to each chat, without generating (at temperature 1, the whole vocabulary).

        A request with a `thread` continues what that thread has computed; with `keep`, the chat (not the replies) becomes part of it.

        Args:
            requests: the chats; sampling, seeds (but a conversation's) and traces play no part.
            replies: per request, the replies to score, at least one and none empty. A reply is tokenized behind its chat.

        Raises:
            PromptError: as `generate_batch`; or a reply is empty, or does not fit into the model's context.
            UsageError: a gate, which draws again and again, so that its tokens have no probability of their own.
            ModelError: a method cannot be applied to this model.
        """
        model = self.model
        if gated := next((method for request in requests for method in request.methods if isinstance(method, Gate)), None):
            raise UsageError(f"{gated.name} draws tokens again, so replies under it have no log-probability; score without it.")
        asked, wanted = self._read(requests, replies)
        scored, computed = self._guarded(
            len(asked), lambda: score_rows(model.hf_model, [one.row for one in asked], wanted, model.batch_size, reuse=model.reuses_cache)
        )
        for one, known in zip(asked, computed, strict=True):
            if one.job.request.keep and one.job.request.thread is not None and known:
                self._threads[one.job.request.thread] = tuple(
                    _Computed(text, spans, stream.token_ids, stream.span, stream.methods, kept)
                    for text, spans, stream, kept in zip(one.texts, one.spans, one.row.streams, known, strict=True)
                )
        return scored

    def spell(self, requests: Sequence[Request], replies: Sequence[Sequence[str]]) -> list[tuple[Stream, list[tuple[int, ...]]]]:
        """What `score` forwards: each chat's tokens and span, and the tokens of its replies.

        Raises:
            PromptError, UsageError, ModelError: as `score`.
        """
        asked, wanted = self._read(requests, replies)
        return [(one.row.streams[0], options) for one, options in zip(asked, wanted, strict=True)]

    def _read(self, requests: Sequence[Request], replies: Sequence[Sequence[str]]) -> tuple[list[_Asked], list[list[tuple[int, ...]]]]:
        """The requests, and the tokens of their replies; none is longer than the model's context."""
        asked = self._prepare([(Job(request, lambda reply: ()), self._threads.get(request.thread, ())) for request in requests])
        wanted = self._spell_out(asked, replies)
        for one, options in zip(asked, wanted, strict=True):
            longest = max(len(stream.token_ids) for stream in one.row.streams) + max(map(len, options)) if one.row else len(one.prompt_ids) + 1
            if self.model.context and longest > self.model.context:
                raise PromptError(f"A chat and its reply take {longest} tokens, and {self.model.name} sees {self.model.context}; use a shorter chat.")
        return asked, wanted

    def _spell_out(self, asked: Sequence[_Asked], replies: Sequence[Sequence[str]]) -> list[list[tuple[int, ...]]]:
        """The tokens of each reply behind its chat; by itself where no token of the two together begins with the reply."""
        if any(not reply for options in replies for reply in options) or not all(replies):
            raise PromptError("An empty reply ('') has no probability; give at least one reply to each chat, each with a text.")
        texts = [one.texts[0] + reply for one, options in zip(asked, replies, strict=True) for reply in options]
        joined = iter(tokenize(texts, [()] * len(texts), self.model.tokenizer))
        spelled = []
        for one, options in zip(asked, replies, strict=True):
            spelled.append([])
            for reply in options:
                prompt, begins = next(joined), len(one.texts[0])
                first = next((index for index, start in enumerate(prompt.starts) if start >= begins), None)
                if first is None or prompt.starts[first] != begins:
                    prompt, first = tokenize([reply], [()], self.model.tokenizer)[0], 0
                spelled[-1].append(prompt.token_ids[first:])
        return spelled

    def run(self, jobs: Iterable[Job]) -> None:
        """Answers jobs and all that follow from them; rows join and leave the batch at any step.

        Requests that others wait for (`keep`) go first, each kind in order. What joins when depends on the requests and
        their replies alone, so that the same jobs are computed by the same arithmetic.

        Raises:
            PromptError, ModelError: as `generate_batch`, but for a chat that is too long, whose reply says so.
        """
        model, kept, forks = self.model, deque(), deque()
        decoder = Decoder(model.hf_model, model.stop_ids, reuse=model.reuses_cache)

        def add(following: Iterable[Job]) -> None:
            for job in following:  # a fork that has to wait goes on from here, however far its thread gets meanwhile
                before = self._threads.get(job.request.thread, ()) if job.request.thread is not None else ()
                (kept if job.request.keep else forks).append((job, before))

        add(jobs)
        while kept or forks or len(decoder):
            joining = min(len(kept) + len(forks), (model.batch_size if model.reuses_cache else 1) - len(decoder))
            if joining > len(decoder) // _JOIN:
                prepared = self._prepare([(kept or forks).popleft() for _ in range(joining)])
                done = [(asked, None) for asked in prepared if asked.row is None]
                for some in _prefills([asked for asked in prepared if asked.row]):
                    done += self._guarded(len(decoder) + len(some), decoder.admit, [asked.row for asked in some], some)
            else:
                done = self._guarded(len(decoder), decoder.step)
            for asked, continuation in done:
                add(asked.job.then(self._reply(asked, continuation)))

    def _guarded(self, rows: int, forward: Callable, *arguments):
        try:
            return forward(*arguments)
        except torch.OutOfMemoryError as error:
            raise ModelError(
                f"Out of memory with {rows} rows of {self.model.name} at once; use a smaller batch_size (now {self.model.batch_size})."
            ) from error

    def _prepare(self, waiting: Sequence[tuple[Job, tuple[_Computed, ...]]]) -> list[_Asked]:
        """Renders the requests, each for its one or two streams, and takes up what its thread had computed when it was made."""
        texts, spans = [], []
        for job, _ in waiting:
            self.model.check(job.request.methods)
            for messages, emphasis in _chats(job.request):
                text, held = render_with_spans(messages, self.model.tokenizer, system_as=job.request.system_as, emphasis=emphasis)
                texts.append(text)
                spans.append(held)
        prompts = iter(tokenize(texts, spans, self.model.tokenizer))
        return [self._ask(job, before, [next(prompts) for _ in _chats(job.request)]) for job, before in waiting]

    def _ask(self, job: Job, before: tuple[_Computed, ...], prompts: Sequence[Prompt]) -> _Asked:
        request, limit = job.request, self.model.context
        gate = next((method for method in request.methods if isinstance(method, Gate)), None)
        shifts = tuple(method for method in request.methods if isinstance(method, ShiftsAttention))
        known = (*before, None, None)
        streams = tuple(
            _stream(prompt, known[number], shifts + (gate.methods if gate and number == 0 else ())) for number, prompt in enumerate(prompts)
        )
        room = limit - max(len(stream.token_ids) for stream in streams) if limit else request.sampling.max_new_tokens
        row = Row(
            streams,
            next((method for method in request.methods if isinstance(method, EditsLogits)), None),
            gate,
            replace(request.sampling, max_new_tokens=max(1, min(room, request.sampling.max_new_tokens))),
            request.seed,
            keep=request.keep and request.thread is not None,
            trace=request.trace and self.model.steerable,
        )
        return _Asked(job, row if room > 0 else None, tuple(p.text for p in prompts), tuple(p.spans for p in prompts), streams[0].token_ids)

    def _reply(self, asked: _Asked, done: Continuation | None) -> Reply:
        if done is None:
            return Reply("", (), "context", prompt_ids=asked.prompt_ids)
        answer = self.model.tokenizer.decode(done.token_ids, skip_special_tokens=True)
        if asked.row.keep:
            added = (False,) * len(done.token_ids)
            streams = zip(asked.texts, asked.spans, asked.row.streams, strict=True)
            self._threads[asked.job.request.thread] = tuple(
                _Computed(
                    text + answer, spans, stream.token_ids + done.token_ids, stream.span + added,
                    stream.methods, done.computed[number] if done.computed else None,
                )
                for number, (text, spans, stream) in enumerate(streams)
            )
        return Reply(answer, done.token_ids, done.stop_reason, done.trace, done.forwarded, asked.prompt_ids)


def _prefills(waiting: Sequence[_Asked]) -> list[list[_Asked]]:
    """The requests in groups of like length, of the least cost: rows are padded to the longest, and each pass costs something by itself."""
    new = {id(asked): max(len(stream.token_ids) - stream.cached for stream in asked.row.streams) for asked in waiting}
    ordered = sorted(waiting, key=lambda asked: new[id(asked)], reverse=True)
    before = [0, *itertools.accumulate(len(asked.row.streams) for asked in ordered)]
    least, start_of = [0], [0]  # of the first requests: their cost, and where their last group starts
    for stop in range(1, len(ordered) + 1):
        costs = []
        for start in range(stop):
            tokens = (before[stop] - before[start]) * new[id(ordered[start])]
            costs.append(least[start] + _PASS + tokens if tokens <= _PREFILL or start == stop - 1 else math.inf)
        least.append(min(costs))
        start_of.append(costs.index(least[-1]))
    groups, stop = [], len(ordered)
    while stop:
        groups.append(ordered[start_of[stop] : stop])
        stop = start_of[stop]
    return groups


def _chats(request: Request) -> list[tuple[tuple[Message, ...], tuple[Range, ...] | None]]:
    """What the streams of a request read, and what is emphasised in it, None where nothing was; what a method repeats is so in every place."""
    messages, mark = request.messages, ""
    if request.emphasis:
        mark = unused_character([message["content"] for message in messages])
        messages = put_marks(messages, request.emphasis, mark)
    chats = [edit_messages(messages, request.methods, request.editing_seed)]
    for method in request.methods:
        if isinstance(method, EditsLogits):
            chats.append(method.other(messages))
        elif isinstance(method, Gate):
            chats.append(chats[0])
    return [take_marks(chat, mark) if mark else (chat, None) for chat in chats]


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
    before: _Computed, token_ids: tuple[int, ...], span: tuple[bool, ...],
    methods: tuple[ShiftsAttention, ...],
) -> int:  # fmt: skip
    """How many first tokens have the keys and values that `before` has.

    Under other methods only those in front of the span do: from there on, steering has moved what
    a token has read, and so its keys.
    """
    shared = min(_common_prefix(before.token_ids, token_ids), _common_prefix(before.span, span))
    if methods != before.methods and True in span[:shared]:
        shared = span.index(True)
    return min(shared, before.keys_values[0][0].shape[1])


def _continue(before: _Computed, prompt: Prompt) -> tuple[tuple[int, ...], tuple[bool, ...]] | None:
    """The tokens and span of `prompt`, with those of `before` kept as they were generated; None where it cannot be.

    A reply may be spelled by other tokens than its text would be tokenized to, so the known tokens are kept, and the
    text after them is taken from a tokenization of the whole, if a token starts exactly there.
    """
    boundary = len(before.text)
    if not prompt.text.startswith(before.text) or before.spans != tuple(span for span in prompt.spans if span[0] < boundary):
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
