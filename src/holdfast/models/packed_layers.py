"""Linear layers whose weights are packed once for the processor's kernels.

PyTorch rearranges a weight for oneDNN's bfloat16 kernels at every product. With few rows, as in a
decode step, that takes as long as the product itself; with weights that are rearranged once, the
products of a step of 16 rows take two thirds of the time at 0.5 billion parameters
(benchmarks/faster_layers.py).

A packed layer has no `weight`, so anything that needs one, such as an adapter, an optimiser or a
copy, first turns the layer back into an `nn.Linear`, in place: `PackedLinear.unpack` sets its
class. The methods that are overridden here are all those through which PyTorch reaches the weight.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

_UNPACKING = threading.Lock()


@dataclass(frozen=True)
class _WeightState:
    """The state of a weight, by which later edits are noticed.

    An edit in place raises the version; an edit through `.data` does not, but changes the values.
    """

    address: int
    version: int
    values: bytes  # 16 to 32 of them, float32

    @classmethod
    def of(cls, weight: Tensor) -> _WeightState:
        few = weight.detach().flatten()[:: max(1, weight.numel() // 16)]
        return cls(weight.data_ptr(), weight._version, few.float().numpy().tobytes())


@dataclass(frozen=True)
class _Packing:
    """The packed weight of a layer.

    Attributes:
        weight: the weight in oneDNN's layout, [out, in].
        requires_grad: whether the plain weight requires gradients.
        tied: the plain weight if another module shares it, so that its edits reach this layer; None
            if the layer alone has it.
        state: the state of the plain weight when it was packed.
    """

    weight: Tensor
    requires_grad: bool
    tied: nn.Parameter | None
    state: _WeightState

    @property
    def is_current(self) -> bool:
        """Whether the weight is still the one that was packed; only a shared one can change."""
        return self.tied is None or _WeightState.of(self.tied) == self.state

    def plain(self) -> Tensor:
        """The weight in PyTorch's layout, [out, in]."""
        return self.weight.to_dense() if self.tied is None else self.tied.detach()


class PackedLinear(nn.Linear):
    """A linear layer with a packed weight, for inference in bfloat16 on the CPU.

    Reading or setting `weight`, moving or copying the layer, and needing gradients all turn it back
    into a plain layer with the same values. So adapters, editors of weights and training work as
    with any model, at their usual speed.
    """

    _packing: _Packing  # missing once the layer has been unpacked, perhaps by another thread

    @classmethod
    def of(cls, linear: nn.Linear, is_tied: bool) -> PackedLinear:
        """Packs a layer; the result shares everything but the weight with it.

        Args:
            linear: the layer, in bfloat16 on the CPU.
            is_tied: whether another module shares its weight.
        """
        packed = cls.__new__(cls)
        packed.__dict__.update(linear.__dict__)
        packed._parameters = dict(linear._parameters)
        weight: Any = packed._parameters.pop("weight")
        packed._packing = _Packing(
            weight=torch.ops.mkldnn._reorder_linear_weight(weight.detach()),
            requires_grad=weight.requires_grad,
            tied=weight if is_tied else None,
            state=_WeightState.of(weight),
        )
        return packed

    def forward(self, input: Tensor) -> Tensor:
        """The product, [..., in] to [..., out]."""
        packing = _packing_of(self)
        if packing is None:
            return nn.Linear.forward(self, input)
        needs_gradients = torch.is_grad_enabled() and (packing.requires_grad or input.requires_grad)
        is_plain = input.dtype is not torch.bfloat16 or torch.is_autocast_enabled("cpu")
        if needs_gradients or is_plain or not packing.is_current:
            self.unpack()
            return nn.Linear.forward(self, input)
        product: Tensor = torch.ops.mkldnn._linear_pointwise(
            input, packing.weight, self.bias, "none", [], ""
        )
        return product

    def unpack(self) -> None:
        """Turns it back into a plain layer."""
        with _UNPACKING, torch.inference_mode(False), torch.no_grad():
            packing = _packing_of(self)
            if packing is None:
                return
            weight = packing.tied
            if weight is None:
                weight = nn.Parameter(packing.plain(), packing.requires_grad)
            del self._packing
            self.__class__ = nn.Linear  # type: ignore[assignment]
            self.weight = weight
            if packing.is_current:
                vars(self)["_state_as_packed"] = _WeightState.of(weight)

    def __getattr__(self, name: str) -> Any:
        if name == "weight":
            self.unpack()
            return self.weight
        return super().__getattr__(name)

    def train(self, mode: bool = True) -> Any:
        """Sets the mode; for training, turns it back into a plain layer."""
        if mode:
            self.unpack()
        return nn.Linear.train(self, mode)

    def _apply(self, fn: Any, recurse: bool = True) -> nn.Linear:
        self.unpack()  # the layout is for one dtype on one device
        plain: nn.Linear = nn.Linear._apply(self, fn, recurse)  # type: ignore[no-untyped-call]
        return plain

    def __reduce_ex__(self, protocol: Any) -> Any:
        self.unpack()  # the layout is for this processor
        return nn.Linear.__reduce_ex__(self, protocol)

    def _load_from_state_dict(self, *arguments: Any) -> None:
        self.unpack()
        nn.Linear._load_from_state_dict(self, *arguments)

    def _save_to_state_dict(
        self, destination: dict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[f"{prefix}weight"] = self._packing.plain()


def _packing_of(layer: nn.Linear) -> _Packing | None:
    """The packed weight of a layer; None if another thread has just unpacked it."""
    packing: _Packing | None = vars(layer).get("_packing")
    return packing


def pack_layers(model: nn.Module) -> None:
    """Packs the linear layers of a model that are in bfloat16 on the CPU.

    An output layer that shares its weight with the embeddings needs that memory twice.
    """
    num_owners = Counter(
        id(weight) for module in model.modules() for weight in module._parameters.values()
    )
    for name, module in list(model.named_modules()):
        if type(module) is nn.Linear and _fits(module.weight):
            is_tied = num_owners[id(module.weight)] > 1
            model.set_submodule(name, PackedLinear.of(module, is_tied))


def is_as_packed(module: nn.Module) -> bool:
    """Whether a module still has the weight that it was packed with, packed or not."""
    if isinstance(module, PackedLinear):
        return module._packing.is_current
    state = vars(module).get("_state_as_packed")
    weight = module._parameters.get("weight")
    return state is not None and weight is not None and _WeightState.of(weight) == state


def _fits(weight: Tensor) -> bool:
    """Whether the weight is in bfloat16 on the CPU, and the processor has kernels for it."""
    on_cpu = weight.dtype is torch.bfloat16 and weight.device.type == "cpu"
    return on_cpu and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
