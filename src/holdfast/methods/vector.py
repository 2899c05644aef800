"""Persona and instruction vectors: a direction is added to hidden states."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from holdfast.methods.fitted import Fitted
from holdfast.methods.heads import LayerSet
from holdfast.methods.kinds import Kind
from holdfast.methods.parameters import (
    LAYERS,
    Number,
    Word,
    check_parameters,
    fitted_file,
    parameter,
)

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Vector:
    """Adds to hidden states the mean difference that a system prompt makes.

    Published (persona vectors, Chen et al. 2025, arXiv 2507.21509; instruction vectors, Stolfo et
    al. 2024, arXiv 2410.12877): h' = h + a v, with v the mean hidden state of replies under a
    prompt less that of replies without or under its opposite, in one layer; while a reply is
    generated. Ours: v is the mean over many prompts, the layer is the one in which both sides are
    told apart best, and all tokens may be moved.

    Args:
        file: what `holdfast fit vector` wrote.
        factor: a, at least 0; 0 changes nothing, 1 adds the mean difference, which is too much for
            some models; half of it is the default.
        tokens: "all", or "reply" for those that are being generated; once a reply is history, it
            is read anew without.
        layers: behind which it is added; None for the one that the file chose.

    Raises:
        ParameterOutOfRange: a parameter outside its range.
        UsageError: the file is none, or was fitted for another method.
    """

    name: ClassVar[str] = "vector"
    kind: ClassVar[Kind] = Kind.RESIDUAL
    source: ClassVar[str] = "after arXiv 2507.21509 and arXiv 2410.12877"

    file: Fitted = field(metadata=fitted_file("vector"))
    factor: float = field(
        default=0.5,
        metadata=parameter("a; 0 changes nothing, 1 adds the difference", Number(0), "0.5"),
    )
    tokens: str = field(
        default="all", metadata=parameter("which tokens are moved", Word(("all", "reply")))
    )
    layers: LayerSet | None = field(default=None, metadata=LAYERS)

    def __post_init__(self) -> None:
        check_parameters(self)

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
