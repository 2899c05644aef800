"""AdaSEKA: key directions mixed by the prompt's last query (Li et al. 2026, arXiv 2603.01281)."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from holdfast.methods.fitted import Fitted
from holdfast.methods.heads import HeadSet
from holdfast.methods.key_heads import KeyMethod, chosen_heads, layers_of_heads
from holdfast.methods.parameters import KEY_HEADS, fitted_file, method, number, parameter, whole

if TYPE_CHECKING:
    from torch import Tensor

_EPSILON = 1e-12  # of a routing weight's denominator


@method
class AdaSeka(KeyMethod):
    """Amplifies the keys of the span along directions of experts, mixed by the prompt's last query.

    Published: k' = k + g P k with P = sum over experts m of alpha_m U_m U_m^T, where U_m are the
    first left singular vectors of the expert's Omega+ and alpha_m = sum_i (q . u_i) sigma_i, over
    the greatest magnitude of any expert's sum; q is the query of the prompt's last token before
    rotation, averaged over the query heads that read the key-value head. Ours: q is that of the
    pass itself, steered below this layer, where the authors read an unsteered pass of its own; the
    number of directions (all of the file's where it has fewer); the experts that `holdfast fit
    ada-seka` learns; and that a direction points to where relevant keys lie, while the authors' has
    the sign that the decomposition left. As in their program the sum is not divided by the number
    of experts, and so directions that these have in common, such as that of the mean key, are moved
    by up to as many gains, which is why the default gain is small. The keys of the span depend on
    the whole prompt so, and are computed anew for every turn.
    """

    name: ClassVar[str] = "ada-seka"
    source: ClassVar[str] = "Li et al. 2026, arXiv 2603.01281"
    reads_query: ClassVar[bool] = True

    file: Fitted = parameter(*fitted_file("ada-seka"))
    gain: float = parameter("g; 0 changes nothing", number(0), "0.1", default=0.1)
    directions: int = parameter("how many directions of each expert", whole(1), "5", default=5)
    threshold: float = parameter(
        "the least distance of relevant from irrelevant keys in a head", number(0), default=0.0
    )
    heads: HeadSet | None = parameter(*KEY_HEADS, default=None)

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
        x = keys.to(torch.promote_types(keys.dtype, torch.float32))
        index, kept = self.file.index_of(layer), self.directions
        vectors = self.file.tensor("vectors", keys.device)[index, ..., :kept].to(x.dtype)
        values = self.file.tensor("values", keys.device)[index, ..., :kept].to(x.dtype)
        shared = query.to(x.dtype).reshape(len(query), keys.shape[2], -1, query.shape[-1])
        grouped = shared.mean(2)  # over the query heads of a key-value head: [row, head, size]
        # h: head, m: expert, i: direction
        sums = torch.einsum("rhd,hmdi,hmi->rhm", grouped, vectors, values)
        weights = sums / sums.abs().amax(-1, keepdim=True).clamp(min=_EPSILON)
        chosen = chosen_heads(self.file, self.threshold, self.heads, layer, keys.device)
        weights = self.gain * weights * chosen[:, None]
        along = torch.einsum("rthd,hmdi->rthmi", x, vectors) * weights[:, None, :, :, None]
        return (x + torch.einsum("rthmi,hmdi->rthd", along, vectors)).to(keys.dtype)
