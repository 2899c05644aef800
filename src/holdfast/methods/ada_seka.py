"""AdaSEKA: key directions mixed by the prompt's last query (Li et al. 2026, arXiv 2603.01281)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from holdfast.methods.fitted import Fitted
from holdfast.methods.heads import HeadSet
from holdfast.methods.key_heads import chosen_heads, layers_of_heads
from holdfast.methods.kinds import Kind
from holdfast.methods.parameters import (
    KEY_HEADS,
    Number,
    Whole,
    check_parameters,
    fitted_file,
    parameter,
)

if TYPE_CHECKING:
    from torch import Tensor

_EPSILON = 1e-12  # of a routing weight's denominator


@dataclass(frozen=True)
class AdaSeka:
    """Amplifies the keys of the span along directions of experts, mixed by the prompt's last query.

    Published: k' = k + g P k with P = sum over experts m of alpha_m U_m U_m^T, where U_m are the
    first left singular vectors of the expert's Omega+ and alpha_m = sum_i (q . u_i) sigma_i, over
    the greatest magnitude of any expert's sum; q is the query of the prompt's last token before
    rotation, averaged over the query heads that read the key-value head. Ours: q is that of the
    pass itself, steered below this layer, where the authors read an unsteered pass of its own; the
    number of directions; the experts that `holdfast fit ada-seka` learns; and that a direction
    points to where relevant keys lie, while the authors' has the sign that the decomposition left.
    As in their program the sum is not divided by the number of experts, and so directions that
    these have in common, such as that of the mean key, are moved by up to as many gains. The keys
    of the span depend on the whole prompt so, and are computed anew for every turn.

    Args:
        file: what `holdfast fit ada-seka` wrote.
        gain: g, at least 0; 0 changes nothing. The default is small since the gains of experts add
            up.
        directions: how many first singular vectors of each expert, at least 1; all of the file's
            where it has fewer.
        threshold: delta_min, as of `Seka`; the distance is that of all experts' data.
        heads: (layer, key-value head) pairs, as of `Seka`; None for all.

    Raises:
        ParameterOutOfRange: a parameter outside its range.
        UsageError: the file is none, or was fitted for another method.
    """

    name: ClassVar[str] = "ada-seka"
    kind: ClassVar[Kind] = Kind.KEYS
    source: ClassVar[str] = "Li et al. 2026, arXiv 2603.01281"
    reads_query: ClassVar[bool] = True
    edits_values: ClassVar[bool] = False

    file: Fitted = field(metadata=fitted_file("ada-seka"))
    gain: float = field(default=0.1, metadata=parameter("g; 0 changes nothing", Number(0), "0.1"))
    directions: int = field(
        default=5, metadata=parameter("how many directions of each expert", Whole(1), "5")
    )
    threshold: float = field(
        default=0.0,
        metadata=parameter(
            "the least distance of relevant from irrelevant keys in a head", Number(0)
        ),
    )
    heads: HeadSet | None = field(default=None, metadata=KEY_HEADS)

    def __post_init__(self) -> None:
        check_parameters(self)

    @property
    def touched_layers(self) -> frozenset[int]:
        """Those that have a chosen head."""
        return layers_of_heads(self.file, self.threshold, self.heads)

    def edit_keys(self, keys: Tensor, layer: int, query: Tensor | None) -> Tensor:
        """The amplified keys, [row, token, key-value head, size]."""
        import torch

        if self.gain == 0:
            return keys
        assert query is not None, "a method that reads queries is given them"
        wide, index = torch.promote_types(keys.dtype, torch.float32), self.file.index_of(layer)
        kept = self.directions
        vectors = self.file.tensor("vectors", keys.device)[index, ..., :kept].to(wide)
        values = self.file.tensor("values", keys.device)[index, ..., :kept].to(wide)
        heads = keys.shape[2]
        shared = query.to(wide).reshape(query.shape[0], heads, -1, query.shape[-1])
        grouped = shared.mean(2)  # over the query heads of a key-value head: [row, head, size]
        # h: head, m: expert, i: direction
        sums = torch.einsum("rhd,hmdi,hmi->rhm", grouped, vectors, values)
        weights = sums / sums.abs().amax(-1, keepdim=True).clamp(min=_EPSILON)
        chosen = chosen_heads(self.file, self.threshold, self.heads, layer, keys.device)
        weights = self.gain * weights * chosen[:, None]
        x = keys.to(wide)
        along = torch.einsum("rthd,hmdi->rthmi", x, vectors) * weights[:, None, :, :, None]
        return (x + torch.einsum("rthmi,hmdi->rthd", along, vectors)).to(keys.dtype)

    def edit_values(self, values: Tensor, layer: int) -> Tensor:
        """The values as they are."""
        return values
