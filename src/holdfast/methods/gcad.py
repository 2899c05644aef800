"""GCAD: gated cropped attention-delta steering (Kang et al. 2026, arXiv 2605.10664)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from holdfast.methods.fitted import Fitted
from holdfast.methods.heads import LayerSet
from holdfast.methods.kinds import Kind
from holdfast.methods.parameters import LAYERS, fitted_file, method, number, parameter, word

if TYPE_CHECKING:
    from torch import Tensor


@method
class Gcad:
    """Adds to attention's output what a system prompt adds there on average, gated by token.

    The paper's abstract says that signals are taken from what the system prompt contributes to
    self-attention, and applied at its output with a gate per token; its formulas could be read in a
    program of others (IBM's vLLM-Hook) alone: o' = o + 2 g sigmoid(s (c - c_mean)) delta, with c
    the mean over heads of q . k_mean / sqrt(size), k_mean the mean key of system prompts and c_mean
    the mean of c where delta was learned. Ours: delta is the mean over reply tokens of attention's
    output less its output with the span's keys cropped, everything else equal; q and k_mean are
    those before rotation, since a rotated mean would depend on where the prompt stood; layers are
    as of `Capping`, and `tokens` as of `Vector`.
    """

    name: ClassVar[str] = "gcad"
    kind: ClassVar[Kind] = Kind.OUTPUTS
    source: ClassVar[str] = "after Kang et al. 2026, arXiv 2605.10664"

    file: Fitted = parameter(*fitted_file("gcad"))
    gain: float = parameter("g; 0 changes nothing", number(0), "1", default=1.0)
    sharpness: float = parameter(
        "s, how sharply the gate opens; 0 gates nothing", number(0), default=1.0
    )
    tokens: str = parameter("which tokens are moved", word("all", "reply"), default="all")
    layers: LayerSet | None = parameter(*LAYERS, default=None)

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
        o = outputs.to(torch.promote_types(outputs.dtype, torch.float32))
        key, delta, mean = (  # [key-value head, size], [size], []
            self.file.tensor(name, o.device)[self.file.index_of(layer)].to(o.dtype)
            for name in ("key", "delta", "compatibility")
        )
        rows, tokens, _, size = queries.shape
        # [row, token, key-value head, query heads that share it, size]
        grouped = queries.to(o.dtype).reshape(rows, tokens, key.shape[0], -1, size)
        fits = torch.einsum("rthnd,hd->rthn", grouped, key).mean((2, 3)) * key.shape[-1] ** -0.5
        gate = 2 * self.gain * torch.sigmoid(self.sharpness * (fits - mean))
        return (o + gate[..., None] * delta).to(outputs.dtype)
