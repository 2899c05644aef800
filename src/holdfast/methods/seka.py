"""SEKA: spectral editing of keys (Li et al. 2026, arXiv 2603.01281)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from holdfast.methods.fitted import Fitted
from holdfast.methods.heads import HeadSet
from holdfast.methods.key_heads import KeyMethod, chosen_heads, layers_of_heads, moved, projection
from holdfast.methods.parameters import KEY_HEADS, fitted_file, method, number, parameter

if TYPE_CHECKING:
    import torch
    from torch import Tensor


@method
class Seka(KeyMethod):
    """Amplifies the keys of the span along directions in which relevant keys lie.

    Published: k' = k + (g+ P+ k + g- P- k) / 2 for the keys of the span, on heads whose mean
    distance between relevant and irrelevant keys is at least delta_min (`threshold`, in the model's
    own units). With Omega+ = H^T H+ / n of the keys of the same tokens in a neutral and in a
    relevant prompt, P+ projects on as many first left singular vectors of Omega+ as make up
    `coverage` (gamma) of its singular values; P-, of the irrelevant prompt, on those behind as
    many. Ours: the data that `holdfast fit seka` makes. With both gains 0 nothing changes.
    """

    name: ClassVar[str] = "seka"
    source: ClassVar[str] = "Li et al. 2026, arXiv 2603.01281"

    file: Fitted = parameter(*fitted_file("seka"))
    gain: float = parameter(
        "g+, along relevant directions; 0 changes nothing", number(0), "1", default=1.0
    )
    rest_gain: float = parameter("g-, along directions of irrelevant keys", number(0), default=0.0)
    coverage: float = parameter(
        "gamma, the share of the singular values that the directions make up",
        number(0, 1, above_low=True),
        default=0.9,
    )
    threshold: float = parameter(
        "the least distance of relevant from irrelevant keys in a head", number(0), default=0.0
    )
    heads: HeadSet | None = parameter(*KEY_HEADS, default=None)

    @property
    def touched_layers(self) -> frozenset[int]:
        """Those that have a chosen head."""
        return layers_of_heads(self.file, self.threshold, self.heads)

    def edit_keys(self, keys: Tensor, layer: int, query: Tensor | None = None) -> Tensor:
        """The amplified keys, [row, token, key-value head, size]."""
        if self.gain == 0 and self.rest_gain == 0:
            return keys
        return moved(keys, _matrices(self, layer, keys.device))


@lru_cache(maxsize=1024)
def _matrices(method: Seka, layer: int, device: torch.device) -> Tensor:
    """(g+ P+ + g- P-) / 2 of each head, [head, size, size]; 0 on those that are not chosen."""
    import torch

    file, index = method.file, method.file.index_of(layer)

    def part(sign: str, *, behind: bool) -> Tensor:
        vectors, values = (file.tensor(f"{sign}.{x}", device)[index] for x in ("vectors", "values"))
        return projection(vectors, values, method.coverage, behind=behind)

    with torch.inference_mode(False):  # it is kept for passes with gradients too
        both = method.gain * part("positive", behind=False)
        if method.rest_gain:
            both = both + method.rest_gain * part("negative", behind=True)
        chosen = chosen_heads(file, method.threshold, method.heads, layer, device)
        return both * chosen[:, None, None] / 2
