"""Persona and instruction vectors: a direction is added to hidden states."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from holdfast.methods.fitted import Fitted
from holdfast.methods.heads import LayerSet
from holdfast.methods.kinds import Kind
from holdfast.methods.parameters import LAYERS, fitted_file, method, number, parameter, word

if TYPE_CHECKING:
    from torch import Tensor


@method
class Vector:
    """Adds to hidden states the mean difference that a system prompt makes.

    Published (persona vectors, Chen et al. 2025, arXiv 2507.21509; instruction vectors, Stolfo et
    al. 2024, arXiv 2410.12877): h' = h + a v, with v the mean hidden state of replies under a
    prompt less that of replies without or under its opposite, in one layer; while a reply is
    generated. Ours: v is the mean over many prompts, the layer is the one in which both sides are
    told apart best, and all tokens may be moved. With `tokens="reply"`, a reply that is history is
    read anew without. Adding the whole difference is too much for some models: the default is half.
    """

    name: ClassVar[str] = "vector"
    kind: ClassVar[Kind] = Kind.RESIDUAL
    source: ClassVar[str] = "after arXiv 2507.21509 and arXiv 2410.12877"

    file: Fitted = parameter(*fitted_file("vector"))
    factor: float = parameter(
        "a; 0 changes nothing, 1 adds the difference", number(0), "0.5", default=0.5
    )
    tokens: str = parameter("which tokens are moved", word("all", "reply"), default="all")
    layers: LayerSet | None = parameter(*LAYERS, default=None)

    @property
    def touched_layers(self) -> frozenset[int]:
        """Those that are named, or else the one that the file chose."""
        return frozenset(self.file.chosen if self.layers is None else self.layers)

    @property
    def reply_only(self) -> bool:
        """Whether it moves generated tokens only."""
        return self.tokens == "reply"

    def edit_hidden(self, hidden: Tensor, layer: int) -> Tensor:
        """The moved hidden states, [row, token, size]."""
        import torch

        if self.factor == 0:
            return hidden
        wide = torch.promote_types(hidden.dtype, torch.float32)
        difference = self.file.tensor("difference", hidden.device)[self.file.index_of(layer)]
        return (hidden.to(wide) + self.factor * difference.to(wide)).to(hidden.dtype)
