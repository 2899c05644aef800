"""Drawing tokens: temperature and nucleus, from numbers that belong to the reply and to nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from holdfast.chat import Sampling

_LIKELIEST = (64, 512)  # taken in turn until they reach top_p in every row; the whole vocabulary only after that


def uniforms(seeds: Sequence[int], count: int) -> Tensor:
    """float64 [row, count] in [0, 1): row i from a counter-based generator keyed by its seed, whatever the batch."""
    return torch.from_numpy(
        np.stack([np.random.Generator(np.random.Philox(key=seed)).random(count) for seed in seeds])
    )


class Sampler:
    """Draws one token per row by inverting the cumulated probabilities of the nucleus, likeliest first.

    Args:
        samplings: one per row.
        seeds: one per row; names its draws.
        device: of the logits to come.
    """

    def __init__(self, samplings: Sequence[Sampling], seeds: Sequence[int], device: torch.device):
        steps = max(sampling.max_new_tokens for sampling in samplings)
        self.uniforms = uniforms(seeds, steps).to(device)
        self.greedy = torch.tensor([sampling.temperature == 0 for sampling in samplings], device=device)
        self.temperature = torch.tensor([[s.temperature or 1.0] for s in samplings], device=device)
        self.top_p = torch.tensor([[s.top_p] for s in samplings], dtype=torch.float64, device=device)

    def select(self, rows: Tensor) -> None:
        """Keeps only these rows."""
        self.uniforms, self.greedy = self.uniforms[rows], self.greedy[rows]
        self.temperature, self.top_p = self.temperature[rows], self.top_p[rows]

    def draw(self, logits: Tensor, step: int) -> Tensor:
        """Token ids [row] for logits [row, vocabulary]."""
        probabilities = (logits.float() / self.temperature).softmax(-1)
        for count in (*_LIKELIEST, probabilities.shape[-1]):
            likeliest, ids = probabilities.topk(min(count, probabilities.shape[-1]))
            if (likeliest.sum(-1, dtype=torch.float64) >= self.top_p[:, 0]).all():
                break
        cumulated = likeliest.cumsum(-1, dtype=torch.float64)
        kept = likeliest.double().masked_fill(cumulated - likeliest >= self.top_p, 0.0).cumsum(-1)
        target = self.uniforms[:, step, None] * kept[:, -1:]
        place = (kept <= target).sum(-1, keepdim=True).clamp(max=kept.shape[-1] - 1)
        drawn = ids.gather(-1, place)[:, 0]
        return torch.where(self.greedy, logits.argmax(-1), drawn)
