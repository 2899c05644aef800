"""Methods that move hidden states: capping and vectors."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Protocol

from holdfast.methods.fitted import Fitted
from holdfast.methods.heads import LayerSet
from holdfast.methods.kinds import MethodKind
from holdfast.methods.parameters import (
    file_parameter,
    layers_parameter,
    method,
    number,
    parameter,
    word,
)
from holdfast.methods.protocols import EditsHidden

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class LayerMethod(EditsHidden, Protocol):
    """A method with a fitted file, on the layers that the user names, or else on those that the
    file chose.
    """

    file: Fitted
    layers: LayerSet | None

    @property
    def touched_layers(self) -> frozenset[int]:
        """The layers that the user names, or else those that the file chose."""
        return frozenset(self.file.chosen if self.layers is None else self.layers)

    @property
    def reply_only(self) -> bool:
        """False, as all tokens are moved, unless a method overrides this."""
        return False


@method
class Capping(LayerMethod):
    """Caps hidden states along the direction that leads away from following the prompt.

    Published: h' = h - v * max(<h, v> - tau, 0) at every token, in some layers near 0.8 of the
    depth, with v a unit vector and tau a percentile of the projections. The authors cap along the
    negative of their "assistant axis", the mean difference between the default assistant's replies
    and those of other characters, at the 25th percentile of the axis, which is the 75th of its
    negative. Ours: v points from replies under a system prompt to replies without one; tau is a
    percentile of the projections of tokens under a system prompt, so that a lower one caps more;
    and a `strength`, where 0 changes nothing and 1 is the paper's method.
    """

    name: ClassVar[str] = "capping"
    kind: ClassVar[MethodKind] = MethodKind.RESIDUAL
    source: ClassVar[str] = "Lu et al. 2026, arXiv 2601.10387"

    file: Fitted = file_parameter("capping")
    percentile: float = parameter(
        "where the cap is among the projections of prompted replies",
        number(0, 100),
        "75",
        default=75.0,
    )
    strength: float = parameter(
        "how much of what exceeds the cap is taken away", number(0, 1, share=True), "1", default=1.0
    )
    layers: LayerSet | None = layers_parameter()

    def edit_hidden(self, hidden: Tensor, layer: int) -> Tensor:
        """Returns the capped hidden states, [row, token, size]."""
        import torch

        if self.strength == 0:
            return hidden
        h = hidden.to(torch.promote_types(hidden.dtype, torch.float32))
        direction = self.file.tensor("direction", h.device)[self.file.index_of(layer)].to(h.dtype)
        excess = (h @ direction - _cap(self, layer, h.device).to(h.dtype)).clamp(min=0)
        return (h - self.strength * excess[..., None] * direction).to(hidden.dtype)


@lru_cache(maxsize=1024)
def _cap(method: Capping, layer: int, device: torch.device) -> Tensor:
    """Returns tau: the percentile of the projections, interpolated between whole percents."""
    import torch

    percents = method.file.tensor("percentiles", device)[method.file.index_of(layer)]
    low = int(method.percentile)
    with torch.inference_mode(False):
        return percents[low].lerp(percents[min(low + 1, 100)], method.percentile - low)


@method
class Vector(LayerMethod):
    """Adds to hidden states the mean difference that a system prompt makes.

    Published (persona vectors, Chen et al. 2025, arXiv 2507.21509; instruction vectors, Stolfo et
    al. 2024, arXiv 2410.12877): h' = h + a v in one layer while a reply is generated, with v the
    mean hidden state of replies under a prompt less that of replies without it or under its
    opposite. Ours: v is the mean over many prompts, the layer is the one that best separates the
    two sides, and all tokens may be moved. With `tokens="reply"`, past replies are read again
    without the edit. Adding the whole difference is too much for some models: the default is half.
    """

    name: ClassVar[str] = "vector"
    kind: ClassVar[MethodKind] = MethodKind.RESIDUAL
    source: ClassVar[str] = "after arXiv 2507.21509 and arXiv 2410.12877"

    file: Fitted = file_parameter("vector")
    factor: float = parameter(
        "a; 0 changes nothing, 1 adds the difference", number(0), "0.5", default=0.5
    )
    tokens: str = parameter("which tokens are moved", word("all", "reply"), default="all")
    layers: LayerSet | None = layers_parameter()

    @property
    def reply_only(self) -> bool:
        """Whether only generated tokens are moved."""
        return self.tokens == "reply"

    def edit_hidden(self, hidden: Tensor, layer: int) -> Tensor:
        """Returns the moved hidden states, [row, token, size]."""
        import torch

        if self.factor == 0:
            return hidden
        wide = torch.promote_types(hidden.dtype, torch.float32)
        difference = self.file.tensor("difference", hidden.device)[self.file.index_of(layer)]
        return (hidden.to(wide) + self.factor * difference.to(wide)).to(hidden.dtype)
