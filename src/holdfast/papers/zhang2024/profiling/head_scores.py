"""Scores samples with every head steered on its own, in one of three ways.

Continuations are compared in shared passes, in which heads share what steering one of them cannot
change, or with one pass per head if a model's layers cannot be forwarded separately. Replies are
generated.
"""

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
# what a model's own code may raise for layers and caches that it does not know; such a model is
# scored with one pass per head
_ERRORS_OF_UNFIT_MODELS = (
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


def scorer_of(material: Material, *, shares_passes: bool) -> Scorer:
    """The scorer for samples.

    Args:
        shares_passes: the result of `can_share_passes` for all samples of the profile.
    """
    if isinstance(material.samples[0], ReplySample):
        return ReplyScorer(material)
    if shares_passes:
        return SharedPassScorer(material, HeadPasses(material.model.hf_model))
    return PlainPassScorer(material)


async def can_share_passes(material: Material) -> bool:
    """Whether shared passes score the shortest sample as the model itself does.

    The first head of the first layer and that of the last are compared.
    """
    model = material.model
    if isinstance(material.samples[0], ReplySample):
        return False
    if not (model.reuses_cache and model.runner.sees_all and _have_same_factors(material)):
        return False
    lengths = [len(prompt.token_ids) for prompt in material.prompts]
    shortest = material.only([lengths.index(min(lengths))])
    heads = [(0, 0), (model.shape.layers - 1, 0)]
    expected = {
        head: (await _plain_scores(shortest, steering))[0].log_probabilities
        for head, steering in shortest.methods(heads).items()
    }
    log_probabilities = _shared_log_probabilities(shortest, heads)
    if log_probabilities is None:
        return False
    tolerance = _TOLERANCE if model.hf_model.dtype.itemsize >= 4 else _TOLERANCE_IN_HALF
    return all(_are_close(log_probabilities[head], expected[head], tolerance) for head in expected)


def _shared_log_probabilities(
    one_sample: Material, heads: Sequence[Head]
) -> dict[Head | None, Sequence[float]] | None:
    """The log-probabilities of a sample's continuations in shared passes, by the head steered.

    None if the layers of the model cannot be forwarded separately.
    """
    try:
        scorer = SharedPassScorer(one_sample, HeadPasses(one_sample.model.hf_model))
        return {head: by_sample[0] for head, by_sample in scorer.pass_scores(heads)}
    except _ERRORS_OF_UNFIT_MODELS as error:
        if ran_out_of_memory(error):
            raise
        return None


def _have_same_factors(material: Material) -> bool:
    """Whether prompts and continuations of all lengths have the same rotary factors."""
    shortest = min(len(prompt.token_ids) for prompt in material.prompts)
    longest = max(
        len(prompt.token_ids) + max(map(len, prompt.continuations)) - 1  # the last predicts nothing
        for prompt in material.prompts
    )
    return longest in material.model.runner.rotary.lengths_like(shortest)


def _are_close(values: Sequence[float], expected: Sequence[float], tolerance: float) -> bool:
    """Whether values differ little from others; False if any is NaN."""
    return all(
        abs(value - other) <= tolerance * max(1.0, abs(other))
        for value, other in zip(values, expected, strict=True)
    )


@dataclass(frozen=True)
class SharedPassScorer:
    """Compares continuations; heads share what steering one of them cannot change."""

    material: Material
    passes: HeadPasses

    def groups(self) -> list[list[int]]:
        return self.passes.groups(self.material.prompts)

    async def score(self, heads: Sequence[Head]) -> ScoredSamples:
        samples = _compare(self.material, self.pass_scores(heads))
        return ScoredSamples(samples, round(self.passes.forwarded))

    def pass_scores(self, heads: Sequence[Head]) -> Iterator[PassScores]:
        """The log-probabilities of all continuations: unsteered, then by the head steered."""
        methods = {head: self.material.plan.steering(head) for head in heads}
        return self.passes.scores(self.material.prompts, methods)


@dataclass(frozen=True)
class PlainPassScorer:
    """Compares continuations one head at a time, if layers cannot be forwarded separately."""

    material: Material

    def groups(self) -> list[list[int]]:
        return self.material.by_rows()

    async def score(self, heads: Sequence[Head]) -> ScoredSamples:
        passes: list[PassScores] = []
        tokens = 0
        for head, steering in self.material.methods(heads).items():
            scored = await _plain_scores(self.material, steering)
            passes.append(PassScores(head, [sample.log_probabilities for sample in scored]))
            tokens += sum(sample.forwarded for sample in scored)
        return ScoredSamples(_compare(self.material, passes), tokens)


async def _plain_scores(material: Material, steering: CompiledMethods) -> list[Scored]:
    """The log-probabilities of all continuations under some methods."""
    requests = [replace(request, methods=steering.methods) for request in material.requests]
    continuations = [sample.continuations for sample in _continuation_samples(material)]
    return await material.model.session().score(requests, continuations)


def _compare(material: Material, passes: Iterable[PassScores]) -> list[SampleScores]:
    """The scores of samples, from the log-probabilities of their continuations by head."""
    samples = _continuation_samples(material)
    scores: list[dict[Head | None, float]] = [{} for _ in samples]
    for head, by_sample in passes:
        for sample, log_probabilities, scores_of_sample in zip(
            samples, by_sample, scores, strict=True
        ):
            right = log_probabilities[sample.right]
            if material.plan.by == "probability":
                scores_of_sample[head] = right
            else:
                scores_of_sample[head] = float(right == max(log_probabilities))
    return list(map(SampleScores, scores))


def _continuation_samples(material: Material) -> list[ContinuationSample]:
    return [sample for sample in material.samples if isinstance(sample, ContinuationSample)]


class _SteeredReply(NamedTuple):
    """The reply that a request generates: to which sample, and with which head steered."""

    number: int  # of the sample
    head: Head | None  # None if none is steered


@dataclass(frozen=True)
class ReplyScorer:
    """Scores replies: all samples with all heads are one batch, forwarded from the span on."""

    material: Material

    def groups(self) -> list[list[int]]:
        return self.material.by_rows()

    async def score(self, heads: Sequence[Head]) -> ScoredSamples:
        """Scores every sample under every head, with all requests in one scheduler."""
        model = self.material.model
        scheduler = Scheduler(model.runner, model.stop_ids, model.batch_size)
        # a request for every sample and head; those of a sample are adjacent
        pending: dict[RequestState, _SteeredReply] = {}
        tokens = 0
        for number, prompt in enumerate(self.material.prompts):
            prefix = self._prefix_before_span(prompt)
            tokens += 0 if prefix is None else len(prefix.token_ids)
            for head, request in self._requests(prompt, prefix, heads):
                pending[scheduler.submit(request)] = _SteeredReply(number, head)
        scores: list[dict[Head | None, float]] = [{} for _ in self.material.samples]
        replies: list[dict[Head | None, str]] = [{} for _ in self.material.samples]
        while pending:
            for state in scheduler.step():
                number, head = pending.pop(state)
                state.require_reply()
                text = str(model.tokenizer.decode(state.token_ids, skip_special_tokens=True))
                replies[number][head] = text
                scores[number][head] = self._score_of(number, text)
                tokens += state.forwarded
        return ScoredSamples(list(map(SampleScores, scores, replies)), tokens)

    def _score_of(self, number: int, text: str) -> float:
        """The score of a reply to a sample; refuses one that is not finite."""
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

    def _prefix_before_span(self, prompt: ScoredPrompt) -> CachedPrefix | None:
        """The tokens before the span, which steering leaves as they are; None if not shareable."""
        model = self.material.model
        count = prompt.num_before_span
        if not (model.reuses_cache and model.runner.supports_chunked_prefill and count):
            return None
        beginning = TokenPrompt(prompt.token_ids[:count], prompt.span[:count])
        request = TokenRequest((beginning,), keep=True)
        (scored,) = score_requests(model.runner, [request], [[(0,)]], model.batch_size)
        return CachedPrefix(beginning.token_ids, beginning.span, UNSTEERED, scored.kv[0])
