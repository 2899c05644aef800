"""Scores samples with every head steered on its own, in one of three ways."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from holdfast.errors import ModelError, UsageError
from holdfast.generation.memory import ran_out_of_memory
from holdfast.generation.reply_scoring import Scored, score_requests
from holdfast.generation.sampling import Sampling
from holdfast.generation.saved_kv import CachedPrefix
from holdfast.generation.scheduler import Scheduler
from holdfast.generation.token_requests import RequestState, TokenPrompt, TokenRequest
from holdfast.methods import UNSTEERED, CompiledMethods
from holdfast.methods.heads import Head
from holdfast.papers.zhang2024.profiling.head_passes import HeadPasses, PassScores
from holdfast.papers.zhang2024.profiling.plan import Material
from holdfast.papers.zhang2024.profiling.profiling_samples import ContinuationSample, ReplySample
from holdfast.papers.zhang2024.profiling.scored_prompts import ScoredPrompt

# the largest difference in log-probabilities between shared and plain passes; a model that computes
# something between its layers exceeds it by far
_TOLERANCE = 1e-3
_TOLERANCE_IN_HALF = 0.1  # for two-byte dtypes
# the errors that a model's own code may raise for layers and caches that it does not know
_UNFIT_ERRORS = (
    ModelError,
    RuntimeError,
    TypeError,
    AttributeError,
    KeyError,
    ValueError,
    IndexError,
)


@dataclass(frozen=True)
class SampleScores:
    """The scores of one sample, and the replies to it, by the head that is steered (None: none)."""

    scores: Mapping[Head | None, float]
    replies: Mapping[Head | None, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ScoredSamples:
    """The scores of samples, in their order, and how many tokens were forwarded for them."""

    samples: list[SampleScores]
    tokens: int


class Scorer(Protocol):
    """Scores samples of one kind."""

    def groups(self) -> list[list[int]]:
        """The numbers of the samples that are best scored together."""

    async def score(self, heads: Sequence[Head]) -> ScoredSamples:
        """Scores every sample unsteered, and with each head steered."""


@dataclass(frozen=True)
class SharedPasses:
    """Compares continuations; heads share what steering one of them cannot change."""

    material: Material
    passes: HeadPasses

    def groups(self) -> list[list[int]]:
        return self.passes.groups(self.material.prompts)

    async def score(self, heads: Sequence[Head]) -> ScoredSamples:
        methods = {head: self.material.plan.steering(head) for head in heads}
        passes = self.passes.scores(self.material.prompts, methods)
        samples = _sample_scores(self.material, passes)
        return ScoredSamples(samples, round(self.passes.forwarded))


@dataclass(frozen=True)
class PlainPasses:
    """Compares continuations one head at a time, if layers cannot be forwarded separately."""

    material: Material

    def groups(self) -> list[list[int]]:
        return self.material.by_rows()

    async def score(self, heads: Sequence[Head]) -> ScoredSamples:
        passes: list[PassScores] = []
        tokens = 0
        for head, steering in self.material.methods(heads).items():
            plain_scores = await _plain_scores(self.material, steering)
            passes.append(PassScores(head, [sample.log_probabilities for sample in plain_scores]))
            tokens += sum(sample.forwarded for sample in plain_scores)
        return ScoredSamples(_sample_scores(self.material, passes), tokens)


async def can_share_passes(material: Material) -> bool:
    """Whether `SharedPasses` scores the shortest sample as the model itself does."""
    model = material.model
    if isinstance(material.samples[0], ReplySample):
        return False
    if not (model.reuses_cache and model.runner.sees_all and _have_same_factors(material)):
        return False
    heads = [(0, 0), (model.shape.layers - 1, 0)]
    lengths = [len(prompt.token_ids) for prompt in material.prompts]
    shortest = material.only([lengths.index(min(lengths))])
    plain = {
        head: (await _plain_scores(shortest, steering))[0].log_probabilities
        for head, steering in shortest.methods(heads).items()
    }
    try:
        methods = {head: material.plan.steering(head) for head in heads}
        shared = dict(HeadPasses(model.hf_model).scores(shortest.prompts, methods))
    except _UNFIT_ERRORS as error:
        if ran_out_of_memory(error):
            raise
        return False
    limit = _TOLERANCE if model.hf_model.dtype.itemsize >= 4 else _TOLERANCE_IN_HALF
    return all(
        abs(value - other) <= limit * max(1.0, abs(other))  # false for NaN
        for head in plain
        for value, other in zip(shared[head][0], plain[head], strict=True)
    )


def _have_same_factors(material: Material) -> bool:
    """Whether prompts and continuations of all lengths have the same rotary factors."""
    lengths = [len(prompt.token_ids) for prompt in material.prompts]
    longest = max(
        len(prompt.token_ids) + max(map(len, prompt.continuations)) - 1  # the last predicts nothing
        for prompt in material.prompts
    )
    return longest in material.model.runner.rotary.like(min(lengths))


async def _plain_scores(material: Material, steering: CompiledMethods) -> list[Scored]:
    requests = [replace(request, methods=steering.methods) for request in material.requests]
    continuations = [sample.continuations for sample in _continuation_samples(material)]
    return await material.model.session().score(requests, continuations)


def _sample_scores(material: Material, passes: Iterable[PassScores]) -> list[SampleScores]:
    """The scores of samples, from the log-probabilities of their continuations by head."""
    samples = _continuation_samples(material)
    scores: list[dict[Head | None, float]] = [{} for _ in samples]
    for head, log_probabilities in passes:
        for scores_of_sample, sample, options in zip(
            scores, samples, log_probabilities, strict=True
        ):
            right = options[sample.right]
            if material.plan.by == "probability":
                scores_of_sample[head] = right
            else:
                scores_of_sample[head] = float(right == max(options))
    return list(map(SampleScores, scores))


def _continuation_samples(material: Material) -> list[ContinuationSample]:
    return [sample for sample in material.samples if isinstance(sample, ContinuationSample)]


class _Ticket(NamedTuple):
    """A reply that is being generated: to which sample, and with which head steered."""

    number: int  # of the sample
    head: Head | None  # None if none is steered


@dataclass(frozen=True)
class Replies:
    """Scores replies: all samples with all heads are one batch, forwarded from the span on."""

    material: Material

    def groups(self) -> list[list[int]]:
        return self.material.by_rows()

    async def score(self, heads: Sequence[Head]) -> ScoredSamples:
        """Scores every sample under every head, with all requests in one scheduler."""
        model = self.material.model
        samples = self.material.samples
        scores: list[dict[Head | None, float]] = [{} for _ in samples]
        replies: list[dict[Head | None, str]] = [{} for _ in samples]
        scheduler = Scheduler(model.runner, model.stop_ids, model.batch_size)
        # a request for every sample and head; those of a sample are adjacent
        tickets: dict[RequestState, _Ticket] = {}
        tokens = 0
        for number, prompt in enumerate(self.material.prompts):
            prefix = self._before_span(prompt)
            tokens += 0 if prefix is None else len(prefix.token_ids)
            for head, request in self._requests(prompt, prefix, heads):
                tickets[scheduler.submit(request)] = _Ticket(number, head)
        while tickets:
            for state in scheduler.step():
                number, head = tickets.pop(state)
                state.require_reply()
                text = str(model.tokenizer.decode(state.token_ids, skip_special_tokens=True))
                replies[number][head] = text
                scores[number][head] = self._score_of(number, text)
                tokens += state.forwarded
        return ScoredSamples(list(map(SampleScores, scores, replies)), tokens)

    def _score_of(self, number: int, text: str) -> float:
        sample = self.material.samples[number]
        assert isinstance(sample, ReplySample)
        score = float(sample.score(text))
        if not math.isfinite(score):
            raise UsageError(
                f"The score of the reply {text[:60]!r} is {score}, which ranks no head; have the"
                " sample's score return a finite number.",
                option="score",
                value=score,
            )
        return score

    def _requests(
        self, prompt: ScoredPrompt, prefix: CachedPrefix | None, heads: Sequence[Head]
    ) -> Iterator[tuple[Head | None, TokenRequest]]:
        """The requests of a sample: unsteered, and with each head steered."""
        sampling = Sampling(0, 1, self.material.plan.max_new_tokens)
        for head, steering in self.material.methods(heads).items():
            steered = TokenPrompt.after(prefix, prompt.token_ids, prompt.span, steering)
            yield head, TokenRequest((steered,), sampling=sampling)

    def _before_span(self, prompt: ScoredPrompt) -> CachedPrefix | None:
        """The tokens before the span, which steering leaves as they are; None if not shareable."""
        model = self.material.model
        count = prompt.num_before_span
        if not (model.reuses_cache and model.runner.supports_chunked_prefill and count):
            return None
        beginning = TokenPrompt(prompt.token_ids[:count], prompt.span[:count])
        request = TokenRequest((beginning,), keep=True)
        (scored,) = score_requests(model.runner, [request], [[(0,)]], model.batch_size)
        return CachedPrefix(beginning.token_ids, beginning.span, UNSTEERED, scored.kv[0])


def scorer_of(material: Material, *, shares_passes: bool) -> Scorer:
    """The scorer for samples.

    Args:
        shares_passes: the result of `can_share_passes` for all samples of the profile.
    """
    if isinstance(material.samples[0], ReplySample):
        return Replies(material)
    if shares_passes:
        return SharedPasses(material, HeadPasses(material.model.hf_model))
    return PlainPasses(material)
