"""Chooses the device and the dtype of a model's weights."""

from __future__ import annotations

import importlib.util
import platform
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from transformers import PreTrainedModel

from holdfast.errors import ModelError, UnknownName, UsageError
from holdfast.models.checkpoint import check_dtype, on_one_line

DEVICE_MAPS = ("auto", "balanced", "balanced_low_0", "sequential")
DeviceMap = str | Mapping[str, str | int | torch.device]
_LARGE = 50_000_000  # parameters beyond which a step in bfloat16 is certainly faster


@dataclass(frozen=True)
class Placement:
    """Where a model's weights go, and in which dtype.

    Args:
        device: the device that they are moved to; None if the map decides.
        device_map: the map for transformers; None if the weights are first read to the CPU.
        dtype: a dtype, or "auto" for the checkpoint's; None is chosen by size and device.
    """

    device: torch.device | None
    device_map: DeviceMap | None
    dtype: torch.dtype | str | None

    @property
    def on_cpu(self) -> bool:
        """Whether all weights are on the CPU, or on disk."""
        if self.device is not None:
            return self.device.type == "cpu"
        assert self.device_map is not None
        return _on_cpu(self.device_map)

    def options(self) -> dict[str, Any]:
        """The arguments of `from_pretrained`."""
        if self.device_map is None:
            return {"dtype": self.dtype}
        return {"dtype": self.dtype, "device_map": self.device_map}

    def for_size(self, parameters: int, name: str) -> Placement:
        """Chooses the dtype by model size and device, unless one is given."""
        if self.dtype is not None:
            return self
        if not is_large(parameters):
            return replace(self, dtype=torch.float32)
        if not self.on_cpu:
            return replace(self, dtype="auto")
        size = f"{parameters / 1e6:,.0f} million parameters"
        if multiplies_bfloat16():
            warnings.warn(
                f"{name} ({size}) runs in bfloat16: this processor has bfloat16 instructions;"
                " --dtype float32 is more exact.",
                stacklevel=5,  # the line that calls `load`
            )
            return replace(self, dtype=torch.bfloat16)
        warnings.warn(
            f"{name} ({size}) runs in float32: this processor has no bfloat16 instructions, so that"
            " would be slower.",
            stacklevel=5,
        )
        return replace(self, dtype=torch.float32)

    def move(self, model: PreTrainedModel, name: str) -> PreTrainedModel:
        """Moves the model to its device; raises a `ModelError` if it does not fit there."""
        if self.device is None or self.device_map is not None:
            return model
        try:
            model.to(self.device)  # type: ignore[arg-type]  # wrapped without its types
            return model
        except RuntimeError as error:  # torch.OutOfMemoryError is one
            raise self.out_of_memory(name, error) from error

    def out_of_memory(self, name: str, error: Exception) -> ModelError:
        """The error for a model that does not fit on its device."""
        where = self.device if self.device is not None else f"the devices here ({self.device_map})"
        return ModelError(
            f"Cannot move {name!r} to {where} ({on_one_line(error)}); use a smaller dtype such as"
            " bfloat16, or the cpu."
        )


def placement_of(
    device: str | torch.device | None, dtype: str | torch.dtype | None, device_map: DeviceMap | None
) -> Placement:
    """Reads these arguments of `load`; raises a `UsageError` for unknown or unavailable ones."""
    torch_dtype = _read_dtype(dtype)
    if device_map is None:
        torch_device = _find_device(device)
        # directly to the device if possible, without a copy on the CPU
        is_direct = torch_device.type != "cpu" and _has_accelerate()
        return Placement(torch_device, {"": torch_device} if is_direct else None, torch_dtype)
    if device is not None:
        raise UsageError(
            f"A model has a device or a device map, not both ({device!r} and {device_map!r}); leave"
            " one out.",
            option="device_map",
            value=device_map,
        )
    if isinstance(device_map, str) and device_map not in DEVICE_MAPS:
        raise UnknownName("device map", device_map, DEVICE_MAPS)
    if not _has_accelerate():
        raise UsageError(
            f"The device map {device_map!r} needs accelerate, which is not installed; run `pip"
            " install accelerate`, or give one device."
        )
    return Placement(None, device_map, torch_dtype)


def _read_dtype(dtype: str | torch.dtype | None) -> torch.dtype | None:
    """Reads a dtype; None for "auto"."""
    name = "auto" if dtype is None else str(dtype).removeprefix("torch.")
    check_dtype(name)
    return None if name == "auto" else getattr(torch, name)


def is_large(parameters: int) -> bool:
    """Whether a step of a model of this size is certainly faster in bfloat16."""
    return parameters > _LARGE


def multiplies_bfloat16() -> bool:
    """Whether this processor has instructions for bfloat16 products; if not, it emulates them."""
    if platform.machine().lower() in ("x86_64", "amd64"):
        return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def read_device(device: str | torch.device) -> torch.device:
    """Reads the name of a device, which this machine need not have; refuses an unknown name."""
    try:
        return torch.device(device)
    except (RuntimeError, TypeError, ValueError):
        raise UsageError(
            f"There is no device {device!r}; use cpu, cuda or cuda:0.",
            option="device",
            value=str(device),
            allowed=["cpu", "cuda", "cuda:0"],
        ) from None


def _find_device(device: str | torch.device | None) -> torch.device:
    """Returns a usable device; None takes CUDA if available."""
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch_device = read_device(device)
    try:
        is_numbered_cpu = torch_device.type == "cpu" and bool(torch_device.index)
        is_usable = torch.zeros(1, device=torch_device).item() == 0 and not is_numbered_cpu
    except Exception:  # each kind of device has its own error for being absent
        is_usable = False
    if not is_usable:
        default = "cuda" if torch.cuda.is_available() else "cpu"
        raise UsageError(
            f"Device {str(device)!r} is not available here; use {default}.",
            option="device",
            value=str(device),
            allowed=default,
        )
    return torch_device


def _has_accelerate() -> bool:
    return importlib.util.find_spec("accelerate") is not None


def _on_cpu(device_map: DeviceMap) -> bool:
    if isinstance(device_map, str):
        return not torch.accelerator.is_available()
    return all(str(where) in ("cpu", "disk") for where in device_map.values())
