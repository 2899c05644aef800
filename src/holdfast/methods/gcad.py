"""GCAD: gated cropped attention-delta steering (Kang et al. 2026, arXiv 2605.10664)."""

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
class Gcad:
    """Adds to attention's output what a system prompt adds there on average, gated by token.

    The paper's abstract says that signals are taken from what the system prompt contributes to
    self-attention, and applied at its output with a gate per token; its formulas could be read in a
    program of others (IBM's vLLM-Hook) alone: o' = o + 2 g sigmoid(s (c - c_mean)) delta, with c
    the mean over heads of q . k_mean / sqrt(size), k_mean the mean key of system prompts and c_mean
    the mean of c where delta was learned. Ours: delta is the mean over reply tokens of attention's
    output less its output with the span's keys cropped, everything else equal; q and k_mean are
    those before rotation, since a rotated mean would depend on where the prompt stood; layers are
    as of `Capping`.

    Args:
        file: what `holdfast fit gcad` wrote.
        gain: g, at least 0; 0 changes nothing, 1 adds the difference where the gate is at 1/2.
        sharpness: s of the gate, at least 0; 0 gates nothing.
        tokens: "all", or "reply", as of `Vector`.
        layers: whose attention is moved; None for those that the file chose.

    Raises:
        ParameterOutOfRange: a parameter outside its range.
        UsageError: the file is none, or was fitted for another method.
    """

    name: ClassVar[str] = "gcad"
    kind: ClassVar[Kind] = Kind.OUTPUTS
    source: ClassVar[str] = "after Kang et al. 2026, arXiv 2605.10664"

    file: Fitted = field(metadata=fitted_file("gcad"))
    gain: float = field(default=1.0, metadata=parameter("g; 0 changes nothing", Number(0), "1"))
    sharpness: float = field(
        default=1.0, metadata=parameter("s, how sharply the gate opens; 0 gates nothing", Number(0))
    )
    tokens: str = field(
        default="all", metadata=parameter("which tokens are moved", Word(("all", "reply")))
    )
    layers: LayerSet | None = field(default=None, metadata=LAYERS)

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def touched_layers(self) -> frozenset[int]:
        """Those that are named, or else those that the file chose."""
        return frozenset(self.file.chosen if self.layers is None else self.layers)

    @property
    def reply_only(self) -> bool:
        """Whether it moves generated tokens only."""
        return self.tokens == "reply"

    def edit_outputs(self, outputs: Tensor, layer: int, queries: Tensor) -> Tensor:
        """The moved outputs of attention, [row, token, size]."""
        import torch

        if self.gain == 0:
            return outputs
        file, device, index = self.file, outputs.device, self.file.index_of(layer)
        wide = torch.promote_types(outputs.dtype, torch.float32)
        key = file.tensor("key", device)[index].to(wide)  # [key-value head, size]
        delta = file.tensor("delta", device)[index].to(wide)
        mean = file.tensor("compatibility", device)[index].to(wide)
        rows, tokens, _, size = queries.shape
        # [row, token, key-value head, query heads that share it, size]
        grouped = queries.to(wide).reshape(rows, tokens, key.shape[0], -1, size)
        fits = torch.einsum("rthnd,hd->rthn", grouped, key).mean((2, 3)) * key.shape[-1] ** -0.5
        gate = 2 * self.gain * torch.sigmoid(self.sharpness * (fits - mean))
        return (outputs.to(wide) + gate[..., None] * delta).to(outputs.dtype)
