"""Activation capping (Lu et al. 2026, arXiv 2601.10387)."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from holdfast.methods.fitted import Fitted
from holdfast.methods.heads import LayerSet
from holdfast.methods.kinds import Kind
from holdfast.methods.parameters import LAYERS, Number, check_parameters, fitted_file, parameter

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@dataclass(frozen=True)
class Capping:
    """Caps hidden states along the direction that leads away from following the prompt.

    Published: h' = h - v * max(<h, v> - tau, 0) at every token, in some layers near 0.8 of the
    depth, with v a unit vector and tau a percentile of the projections; the authors cap along the
    negative of their "assistant axis", the mean difference of the default assistant's replies and
    those of other characters, at the 25th percentile of the axis, which is the 75th of its
    negative. Ours: v leads from replies under a system prompt to replies without, tau is a
    percentile of the projections of tokens under one, and `strength`.

    Args:
        file: what `holdfast fit capping` wrote.
        percentile: of the projections of prompted replies, from 0 to 100: where tau is; a lower
            one caps more.
        strength: from 0 to 1, how much of what exceeds tau is taken away; 0 changes nothing, 1 is
            the paper's.
        layers: behind which hidden states are capped; None for those that the file chose.

    Raises:
        ParameterOutOfRange: a parameter outside its range.
        UsageError: the file is none, or was fitted for another method.
    """

    name: ClassVar[str] = "capping"
    kind: ClassVar[Kind] = Kind.RESIDUAL
    source: ClassVar[str] = "Lu et al. 2026, arXiv 2601.10387"
    reply_only: ClassVar[bool] = False

    file: Fitted = field(metadata=fitted_file("capping"))
    percentile: float = field(
        default=75.0,
        metadata=parameter(
            "where the cap is among the projections of prompted replies", Number(0, 100), "75"
        ),
    )
    strength: float = field(
        default=1.0,
        metadata=parameter("how much of what exceeds the cap is taken away", Number(0, 1), "1"),
    )
    layers: LayerSet | None = field(default=None, metadata=LAYERS)

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def touched_layers(self) -> frozenset[int]:
        """Those that are named, or else those that the file chose."""
        return frozenset(self.file.chosen if self.layers is None else self.layers)

    def edit_hidden(self, hidden: Tensor, layer: int) -> Tensor:
        """The capped hidden states, [row, token, size]."""
        import torch

        if self.strength == 0:
            return hidden
        wide = torch.promote_types(hidden.dtype, torch.float32)
        direction = self.file.tensor("direction", hidden.device)[self.file.index_of(layer)].to(wide)
        h = hidden.to(wide)
        excess = (h @ direction - _cap(self, layer, hidden.device).to(wide)).clamp(min=0)
        return (h - self.strength * excess[..., None] * direction).to(hidden.dtype)


@lru_cache(maxsize=1024)
def _cap(method: Capping, layer: int, device: torch.device) -> Tensor:
    """Tau: the percentile of the projections, between whole percents by a straight line."""
    import torch

    percents = method.file.tensor("percentiles", device)[method.file.index_of(layer)]
    low = int(method.percentile)
    with torch.inference_mode(False):
        return percents[low].lerp(percents[min(low + 1, 100)], method.percentile - low)
