"""Scores samples, by their numbers, under every head.
A scorer divides samples into groups; `score` also returns the tokens it forwarded.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from holdfast.analysis.profile import head_name
from holdfast.common.sampling import Sampling
from holdfast.engine.prefixes import Prefix
from holdfast.engine.reply_scoring import score_rows
from holdfast.engine.rows import Row, Stream
from holdfast.errors import ModelError
from holdfast.methods import UNSTEERED, CompiledMethods
from holdfast.methods.heads import Head
from holdfast.papers.zhang2024.profiling.head_passes import HeadPasses
from holdfast.papers.zhang2024.profiling.plan import Choice, Material, Question

# largest difference in log-probabilities; a model that computes something else between its layers
# far exceeds it
_APART = 1e-3
_APART_IN_HALF = 0.1  # for two-byte dtypes
# what a model's own code may raise when given layers and caches that it does not know
_UNFIT = (ModelError, RuntimeError, TypeError, AttributeError, KeyError, ValueError, IndexError)
_Options = tuple[float, ...]  # log-probabilities of a sample's continuations
_Ticket = tuple[int, Head | None]  # the index of a sample in its group, and the head


@dataclass(frozen=True)
class SampleScores:
    """Scores of one sample, and replies written for it, by head or "none"."""

    scores: dict[str, float] = field(default_factory=dict)
    replies: dict[str, str] = field(default_factory=dict)

    def heads_by_reply(self) -> dict[str, tuple[str, ...]] | None:
        """Each distinct reply once, with the heads that gave it; None if none were written."""
        heads: dict[str, list[str]] = {}
        for head, text in self.replies.items():
            heads.setdefault(text, []).append(head)
        return {text: tuple(some) for text, some in heads.items()} or None


_Scored = tuple[list[SampleScores], int]  # scores of samples, and the tokens forwarded


@dataclass(frozen=True)
class SharedPasses:
    """Scores choices; heads share the computation that steering one of them cannot change."""

    material: Material
    passes: HeadPasses

    def groups(self, numbers: Sequence[int]) -> list[list[int]]:
        prompts = [self.material.prompts[number] for number in numbers]
        return [[numbers[index] for index in group] for group in self.passes.groups(prompts)]

    def score(self, numbers: Sequence[int], heads: Sequence[Head]) -> _Scored:
        before = self.passes.forwarded
        prompts = [self.material.prompts[number] for number in numbers]
        methods = {head: self.material.plan.steering(head) for head in heads}
        scored = _scored(self.material, numbers, self.passes.scores(prompts, methods))
        return scored, round(self.passes.forwarded - before)


@dataclass(frozen=True)
class PlainPasses:
    """Scores choices one head at a time, if the model's layers cannot be forwarded separately."""

    material: Material

    def groups(self, numbers: Sequence[int]) -> list[list[int]]:
        return self.material.by_rows(numbers)

    def score(self, numbers: Sequence[int], heads: Sequence[Head]) -> _Scored:
        methods = self.material.methods(heads)
        passes = (
            (head, _plain_scores(self.material, numbers, steering))
            for head, steering in methods.items()
        )
        tokens = sum(len(self.material.prompts[number].token_ids) for number in numbers)
        return _scored(self.material, numbers, passes), tokens * len(methods)


def _find_passes(material: Material) -> HeadPasses | None:
    """Head passes if they give this model's scores of the shortest sample; otherwise None."""
    model = material.model
    if not (model.reuses_cache and model.runner.sees_all and _have_same_factors(material)):
        return None
    heads = [(0, 0), (model.shape.layers - 1, 0)]
    lengths = [len(prompt.token_ids) for prompt in material.prompts]
    shortest = lengths.index(min(lengths))
    plain = {
        head: _plain_scores(material, [shortest], steering)
        for head, steering in material.methods(heads).items()
    }
    try:
        passes = HeadPasses(model.hf_model)
        methods = {head: material.plan.steering(head) for head in heads}
        shared = dict(passes.scores([material.prompts[shortest]], methods))
    except _UNFIT:
        return None
    limit = _APART if model.hf_model.dtype.itemsize >= 4 else _APART_IN_HALF
    apart = max(
        abs(value - other) / max(1.0, abs(other))  # relative for values above 1
        for head in plain
        for value, other in zip(shared[head][0], plain[head][0], strict=True)
    )
    return passes if apart <= limit else None


def _have_same_factors(material: Material) -> bool:
    """Whether the prompts, and all that is scored after them, have the same rotary factors."""
    lengths = [len(prompt.token_ids) for prompt in material.prompts]
    behind = [max(map(len, prompt.continuations)) for prompt in material.prompts]
    longest = max(map(int.__add__, lengths, behind)) - 1  # the last token predicts nothing
    return longest in material.model.runner.rotary.like(min(lengths))


def _plain_scores(
    material: Material, numbers: Sequence[int], steering: CompiledMethods
) -> list[_Options]:
    requests = [replace(material.requests[number], methods=steering.methods) for number in numbers]
    continuations = [_choice(material, number).continuations for number in numbers]
    scored = material.model.session().score(requests, continuations)
    return [sample.log_probabilities for sample in scored]


def _scored(
    material: Material,
    numbers: Sequence[int],
    passes: Iterable[tuple[Head | None, Sequence[_Options]]],
) -> list[SampleScores]:
    """The scores of samples from the log-probabilities of continuations under each head."""
    scored = [SampleScores() for _ in numbers]
    for head, samples in passes:
        for sample, number, options in zip(scored, numbers, samples, strict=True):
            right = options[_choice(material, number).right]
            is_likeliest = float(right == max(options))
            by_probability = material.plan.by == "probability"
            sample.scores[head_name(head)] = right if by_probability else is_likeliest
    return scored


def _choice(material: Material, number: int) -> Choice:
    sample = material.samples[number]
    assert isinstance(sample, Choice)
    return sample


@dataclass(frozen=True)
class Replies:
    """Scores questions: replies under all heads are one batch, forwarded from the span on."""

    material: Material

    def groups(self, numbers: Sequence[int]) -> list[list[int]]:
        return self.material.by_rows(numbers)

    def score(self, numbers: Sequence[int], heads: Sequence[Head]) -> _Scored:
        scored, tokens = [SampleScores() for _ in numbers], 0
        model, rows = self.material.model, list(self._rows(numbers, heads))
        scheduler = model.scheduler()
        tickets = {scheduler.submit(row): ticket for ticket, row in rows}
        while tickets:
            for handle in scheduler.step():
                (position, head), reply = tickets.pop(handle), handle.result()
                text = model.tokenizer.decode(list(reply.token_ids), skip_special_tokens=True)
                question = self.material.samples[numbers[position]]
                assert isinstance(question, Question)
                scored[position].replies[head_name(head)] = str(text)
                scored[position].scores[head_name(head)] = float(question.score(str(text)))
                tokens += reply.forwarded
        return scored, tokens

    def _rows(self, numbers: Sequence[int], heads: Sequence[Head]) -> Iterator[tuple[_Ticket, Row]]:
        """Every sample under every head; the rows of a sample are adjacent."""
        sampling = Sampling(0, 1, self.material.plan.max_new_tokens)
        methods = self.material.methods(heads)
        for position, number in enumerate(numbers):
            prompt = self.material.prompts[number]
            prefix = self._before_span(number)
            for head, steering in methods.items():
                stream = Stream.after(prefix, prompt.token_ids, prompt.span, steering)
                yield (position, head), Row((stream,), sampling=sampling)

    def _before_span(self, number: int) -> Prefix | None:
        """The tokens before the span, which no head changes, computed once."""
        model, prompt = self.material.model, self.material.prompts[number]
        count = prompt.before_span
        if not (model.reuses_cache and model.runner.supports_chunked_prefill and count):
            return None
        stream = Stream(prompt.token_ids[:count], prompt.span[:count])
        _, ((computed,),) = score_rows(
            model.runner, [Row((stream,), keep=True)], [[(0,)]], model.batch_size
        )
        return Prefix(stream.token_ids, stream.span, UNSTEERED, computed)


Scorer: TypeAlias = SharedPasses | PlainPasses | Replies


def scorer_of(material: Material) -> Scorer:
    """The fastest scorer that gives this model's own scores."""
    if isinstance(material.samples[0], Question):
        return Replies(material)
    passes = _find_passes(material)
    return PlainPasses(material) if passes is None else SharedPasses(material, passes)
