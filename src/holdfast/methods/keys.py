"""Methods that edit keys: SEKA and PRISM-Delta.

Their files have, per layer and key-value head, singular vectors and values of a covariance of
keys, and the mean distance between keys of relevant and irrelevant tokens.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from holdfast.methods.fitted import Fitted
from holdfast.methods.heads import HeadSet
from holdfast.methods.kinds import MethodKind
from holdfast.methods.parameters import (
    file_parameter,
    key_heads_parameter,
    method,
    number,
    parameter,
)
from holdfast.methods.protocols import EditsKeys

if TYPE_CHECKING:
    import torch
    from torch import Tensor

# names of tensors [layer, head]
DISTANCE = "distance"
VALUE_DISTANCE = "values.distance"


def _coverage_parameter() -> Any:
    return parameter(
        "gamma, the share of the singular values that the directions make up",
        number(0, 1, above_low=True, share=True),
        default=0.9,
    )


class KeyMethod(EditsKeys, Protocol):
    """A key method with a fitted file, which leaves values unchanged unless it overrides this."""

    kind: ClassVar[MethodKind] = MethodKind.KEYS
    file: Fitted
    heads: HeadSet | None

    @property
    def touched_layers(self) -> frozenset[int]:
        """The layers that have a chosen head."""
        return layers_of_heads(self.file, self.min_distance, self.heads)

    @property
    def min_distance(self) -> float:
        """The distance between relevant and irrelevant keys from which a head is edited."""
        return 0.0

    @property
    def edits_values(self) -> bool:
        """Whether `edit_values` does anything."""
        return False

    def edit_values(self, values: Tensor, layer: int) -> Tensor:
        """Returns the values unchanged."""
        return values


@lru_cache(maxsize=256)
def layers_of_heads(file: Fitted, threshold: float, heads: HeadSet | None) -> frozenset[int]:
    """Returns the layers in which `chosen_heads` chooses a head."""
    return frozenset(
        layer for layer in file.layers if chosen_heads(file, threshold, heads, layer, "cpu").any()
    )


def chosen_heads(
    file: Fitted, threshold: float, heads: HeadSet | None, layer: int, device: torch.device | str
) -> Tensor:
    """Returns bool [head], True on the heads named whose distance reaches the threshold.

    Args:
        heads: the heads named; None for all.
    """
    import torch

    distance = file.tensor(DISTANCE, device)[file.index_of(layer)]
    is_named = [heads is None or (layer, head) in heads for head in range(len(distance))]
    return (distance >= threshold) & torch.tensor(is_named, device=distance.device)


def rank_covering(values: Tensor, coverage: float) -> Tensor:
    """Returns, int [...], how many of the descending values [..., size] make up `coverage` of
    their sum.
    """
    below = values.cumsum(-1) < coverage * values.sum(-1, keepdim=True)
    return (below.sum(-1) + 1).clamp(max=values.shape[-1])


def projection(vectors: Tensor, values: Tensor, coverage: float) -> Tensor:
    """Returns U U^T, [..., size, size], of the first columns of U, which make up `coverage`."""
    columns = vectors * _covering(values, coverage)[..., None, :]
    return columns @ columns.transpose(-1, -2)


def rest_projection(vectors: Tensor, values: Tensor, coverage: float) -> Tensor:
    """Returns U U^T, [..., size, size], of the columns that `projection` leaves out."""
    columns = vectors * ~_covering(values, coverage)[..., None, :]
    return columns @ columns.transpose(-1, -2)


def _covering(values: Tensor, coverage: float) -> Tensor:
    """Returns a bool for each of the values, True on the first, which make up `coverage`."""
    import torch

    rank = rank_covering(values, coverage)[..., None]
    return torch.arange(values.shape[-1], device=rank.device) < rank


def add_product(states: Tensor, matrices: Tensor) -> Tensor:
    """Returns x + M x in the dtype of x, the states [row, token, head, size].

    Args:
        matrices: M, [head, size, size].
    """
    import torch

    x = states.to(torch.promote_types(states.dtype, torch.float32))
    added = torch.einsum("rthi,hji->rthj", x, matrices.to(x.dtype))
    return (x + added).to(states.dtype)


@method
class Seka(KeyMethod):
    """Amplifies the keys of the span along directions in which relevant keys lie.

    Published: k' = k + (g+ P+ k + g- P- k) / 2 for the keys of the span, on heads whose mean
    distance between relevant and irrelevant keys is at least delta_min (`threshold`, in the model's
    own units). With Omega+ = H^T H+ / n of the keys of the same tokens in a neutral and in a
    relevant prompt, P+ projects onto the first left singular vectors of Omega+ that make up
    `coverage` (gamma) of its singular values; P-, for the irrelevant prompt, onto the remaining
    ones. Ours: the data that `holdfast fit seka` makes. With both gains 0 nothing changes.
    """

    name: ClassVar[str] = "seka"
    source: ClassVar[str] = "Li et al. 2026, arXiv 2603.01281"

    file: Fitted = file_parameter("seka")
    gain: float = parameter(
        "g+, along relevant directions; 0 changes nothing", number(0), "1", default=1.0
    )
    rest_gain: float = parameter("g-, along directions of irrelevant keys", number(0), default=0.0)
    coverage: float = _coverage_parameter()
    threshold: float = parameter(
        "heads whose relevant and irrelevant keys are closer than this stay as they are",
        number(0),
        default=0.0,
    )
    heads: HeadSet | None = key_heads_parameter()

    @property
    def min_distance(self) -> float:
        """The parameter `threshold`."""
        return self.threshold

    def edit_keys(self, keys: Tensor, layer: int) -> Tensor:
        """Returns the amplified keys, [row, token, key-value head, size]."""
        if self.gain == 0 and self.rest_gain == 0:
            return keys
        return add_product(keys, _seka_matrices(self, layer, keys.device))


@lru_cache(maxsize=1024)
def _seka_matrices(method: Seka, layer: int, device: torch.device) -> Tensor:
    """Returns (g+ P+ + g- P-) / 2 of each head, [head, size, size]; 0 on heads not chosen."""
    import torch

    file = method.file
    index = method.file.index_of(layer)
    with torch.inference_mode(False):  # passes with gradients use it too
        vectors = file.tensor("positive.vectors", device)[index]
        values = file.tensor("positive.values", device)[index]
        sums = method.gain * projection(vectors, values, method.coverage)
        if method.rest_gain:
            vectors = file.tensor("negative.vectors", device)[index]
            values = file.tensor("negative.values", device)[index]
            sums = sums + method.rest_gain * rest_projection(vectors, values, method.coverage)
        is_chosen = chosen_heads(file, method.threshold, method.heads, layer, device)
        return sums * is_chosen[:, None, None] / 2


@method
class Prism(KeyMethod):
    """Amplifies keys, and on request values, of the span where relevant ones differ from others.

    Published: k' = k + g w P k with P the projection onto the first left singular vectors of
    Omega+ - Omega- = H^T (H+ - H-) / n that make up `coverage` of its singular values, and w =
    softplus(d - delta) of each head, d the mean distance between its relevant and irrelevant keys;
    the same for values. As in the paper, no head is switched off (the authors' program skips heads
    with d below delta), and d is the mean of distances, as in SEKA. Ours: the data that
    `holdfast fit prism` makes.
    """

    name: ClassVar[str] = "prism"
    source: ClassVar[str] = "Ge et al. 2026, arXiv 2603.10705"

    file: Fitted = file_parameter("prism")
    gain: float = parameter("g for keys; 0 leaves them as they are", number(0), "0.4", default=0.4)
    value_gain: float = parameter("g for values; 0 leaves them as they are", number(0), default=0.0)
    coverage: float = _coverage_parameter()
    offset: float = parameter(
        "delta, subtracted from the distance in each head", number(0), default=0.08
    )
    heads: HeadSet | None = key_heads_parameter()

    @property
    def edits_values(self) -> bool:
        """Whether values are amplified too."""
        return self.value_gain != 0

    def edit_keys(self, keys: Tensor, layer: int) -> Tensor:
        """Returns the amplified keys, [row, token, key-value head, size]."""
        if self.gain == 0:
            return keys
        return add_product(keys, _prism_matrices(self, "keys", layer, keys.device))

    def edit_values(self, values: Tensor, layer: int) -> Tensor:
        """Returns the amplified values, [row, token, key-value head, size]."""
        if not self.edits_values:
            return values
        return add_product(values, _prism_matrices(self, "values", layer, values.device))


@lru_cache(maxsize=1024)
def _prism_matrices(
    method: Prism, part: Literal["keys", "values"], layer: int, device: torch.device
) -> Tensor:
    """Returns g w P of each head, [head, size, size]; 0 on heads that are not chosen."""
    import torch

    file = method.file
    index = method.file.index_of(layer)
    gain = method.gain if part == "keys" else method.value_gain
    distances = DISTANCE if part == "keys" else VALUE_DISTANCE
    with torch.inference_mode(False):  # passes with gradients use it too
        vectors = file.tensor(f"{part}.vectors", device)[index]
        values = file.tensor(f"{part}.values", device)[index]
        distance = file.tensor(distances, device)[index]
        weight = gain * torch.nn.functional.softplus(distance - method.offset)
        weight = weight * chosen_heads(file, 0.0, method.heads, layer, device)
        return weight[:, None, None] * projection(vectors, values, method.coverage)
