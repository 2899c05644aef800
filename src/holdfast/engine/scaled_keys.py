"""Keys of the span that a pass of one token per row reads multiplied: what is cached stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class KeyScale:
    """Keys of a row's span that a pass reads multiplied, and with them the scores on them.

    Args:
        factor: what they are multiplied by.
        layers: in which.
    """

    factor: float
    layers: tuple[int, ...]


@dataclass(frozen=True)
class ScaledKeys:
    """Keys that the layers of a pass read multiplied.

    Args:
        span: bool [row, column]; later columns are not in it.
        factors: [layer, row, 1], 1 where a row reads a layer's keys as they are.
    """

    span: Tensor
    factors: Tensor

    @classmethod
    def of(cls, scales: Sequence[KeyScale | None], span: Tensor, layers: int) -> ScaledKeys | None:
        """Those of rows of which each has its own scale, or none; None where none has one."""
        if not any(scales):
            return None
        factors = torch.ones(layers, len(scales), 1)
        for row, scale in enumerate(scales):
            if scale is not None:
                factors[list(scale.layers), row] = scale.factor
        return cls(span, factors.to(span.device))

    def columns(self, firsts: Sequence[int], count: int, ends: Sequence[int]) -> Tensor:
        """The span in front of `ends`, bool [row, column], among `count` columns of which each
        row's first one is another.
        """
        first, end = torch.tensor([firsts, ends])[..., None].to(self.span.device)
        places = first + torch.arange(count, device=self.span.device)
        width = self.span.shape[1]
        inside: Tensor = self.span.gather(1, places.clamp(max=width - 1))
        in_front: Tensor = (places < width) & (places < end)
        return inside & in_front
