"""Learns directions of keys: singular vectors of their covariances after relevant and irrelevant
questions.

Li et al. (2026, arXiv 2603.01281): the keys of the same n tokens are H without a question, H+ after
a relevant one and H- after an irrelevant one, so that Omega+ = H^T H+ / n and Omega- = H^T H- / n.
PRISM-Delta (arXiv 2603.10705) uses Omega+ - Omega-, also for values.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from holdfast.drift.progress import Progress
from holdfast.errors import ModelError, option
from holdfast.generation.batch import SequenceGroup, batch_of
from holdfast.generation.token_requests import TokenSequence
from holdfast.models.local import LocalModel
from holdfast.models.requests import Request
from holdfast.states import Site, sites_of, watch_states
from holdfast.study.fitting.examples import FitResult, Triplet

_SITES = (Site.KEYS, Site.VALUES)


def _zero() -> Tensor:
    return torch.zeros((), dtype=torch.float64)


@dataclass
class _CovarianceSums:
    """Sums over the tokens that were read so far, float64; scalars of 0 before the first token.

    Args:
        positive, negative: H^T H+ and H^T H-, [layer, head, size, size].
        distance: the distances of H+ from H-, [layer, head].
        tokens: the number of tokens.
    """

    positive: Tensor = field(default_factory=_zero)
    negative: Tensor = field(default_factory=_zero)
    distance: Tensor = field(default_factory=_zero)
    tokens: int = 0

    def add(self, alone: Tensor, relevant: Tensor, irrelevant: Tensor) -> None:
        """Adds the keys of the same tokens in three prompts, each [layer, token, head, size]."""
        h = alone.double()
        plus = relevant.double()
        minus = irrelevant.double()
        self.positive = self.positive + torch.einsum("lthi,lthj->lhij", h, plus)
        self.negative = self.negative + torch.einsum("lthi,lthj->lhij", h, minus)
        self.distance = self.distance + (plus - minus).norm(dim=-1).sum(1)
        self.tokens += h.shape[1]

    def directions(self, product: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the left singular vectors, as columns, and the singular values of a covariance,
        in float32: [layer, head, size, size] and [layer, head, size].

        Args:
            product: `positive`, `negative`, or their difference.
        """
        vectors, values, _ = torch.linalg.svd(product / self.tokens)
        return vectors.float(), values.float()

    @property
    def mean_distance(self) -> Tensor:
        """The mean distance per token, float32 [layer, head]."""
        return (self.distance / self.tokens).float()


class _KeyStatistics(NamedTuple):
    """The layers whose keys and values were read, and the sums of each over the tokens."""

    layers: tuple[int, ...]
    sums: dict[Site, _CovarianceSums]


def learn_seka(model: LocalModel, examples: Sequence[Triplet], progress: Progress) -> FitResult:
    """Learns the singular vectors of Omega+ and Omega-, and the distances of heads."""
    layers, sums = _sum_over_examples(model, examples, progress)
    keys = sums[Site.KEYS]
    tensors = {"distance": keys.mean_distance}
    for name, product in (("positive", keys.positive), ("negative", keys.negative)):
        vectors, values = keys.directions(product)
        tensors |= {f"{name}.vectors": vectors, f"{name}.values": values}
    return FitResult(tensors, layers, layers, per_key_head=True)


def learn_prism(model: LocalModel, examples: Sequence[Triplet], progress: Progress) -> FitResult:
    """Learns the singular vectors of Omega+ - Omega-, of keys and of values."""
    layers, sums = _sum_over_examples(model, examples, progress)
    tensors: dict[str, Tensor] = {}
    for site, name in ((Site.KEYS, "keys"), (Site.VALUES, "values")):
        statistics = sums[site]
        vectors, values = statistics.directions(statistics.positive - statistics.negative)
        tensors |= {f"{name}.vectors": vectors, f"{name}.values": values}
    tensors["distance"] = sums[Site.KEYS].mean_distance
    tensors["values.distance"] = sums[Site.VALUES].mean_distance
    return FitResult(tensors, layers, layers, per_key_head=True)


def _sum_over_examples(
    model: LocalModel, examples: Sequence[Triplet], progress: Progress
) -> _KeyStatistics:
    """Reads the keys and values of each example's answer, and adds up their products.

    An example whose answer is not the same number of tokens after both questions is left out.

    Raises:
        ModelError: the model has no usable keys and values, or no example can be used.
    """
    sites = sites_of(model.hf_model)
    layers = tuple(sorted(set(sites.points[Site.KEYS]) & set(sites.points[Site.VALUES])))
    if not layers or not sites.key_heads:
        raise ModelError(
            f"{model.name} ({type(model.hf_model).__name__}) gives no keys and values of one form"
            " before rotation, so nothing can be fitted on them; use a method of another kind.",
            option="model",
            value=model.name,
        )
    sums = {site: _CovarianceSums() for site in _SITES}
    for example in examples:
        questions = (None, example.relevant, example.irrelevant)
        alone, relevant, irrelevant = (
            _span_states(model, example, question, layers) for question in questions
        )
        token_counts = {states[Site.KEYS].shape[1] for states in (alone, relevant, irrelevant)}
        if len(token_counts) == 1:
            for site in _SITES:
                sums[site].add(alone[site], relevant[site], irrelevant[site])
        progress(1)
    if not sums[Site.KEYS].tokens:
        raise ModelError(
            "No example has its answer in the same tokens after both questions; give others with"
            f" {option('data')}."
        )
    return _KeyStatistics(layers, sums)


@torch.inference_mode()
def _span_states(
    model: LocalModel, example: Triplet, question: str | None, layers: Sequence[int]
) -> dict[Site, Tensor]:
    """Returns the keys and values of the answer's tokens, [layer, token, head, size], after a
    question or without one.
    """
    before = "" if question is None else f"Question: {question}\n"
    text = f"{before}Context: {example.context}"
    start = text.rindex(example.answer)
    chat = [{"role": "user", "content": text}]
    request = Request(chat, emphasis=[(0, start, start + len(example.answer))])
    sequence = TokenSequence(model.session().render(request).token_request.prompts[0])
    device = model.runner.device
    batch = batch_of(SequenceGroup([sequence], device), [0])
    with watch_states(model.hf_model, _SITES) as states:
        model.runner.forward(batch)
    span = sequence.span.to(device)
    return {
        site: torch.stack([states[site][layer][0, span].float().cpu() for layer in layers])
        for site in _SITES
    }
