"""Where a model's weights go, and in what precision: one device, or several by a device map."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from holdfast.errors import ModelError, UnknownName, UsageError
from holdfast.models.checkpoint import shorten

if TYPE_CHECKING:
    from transformers import PreTrainedModel

DTYPES = ("float16", "bfloat16", "float32", "float64")
DEVICE_MAPS = ("auto", "balanced", "balanced_low_0", "sequential")
DeviceMap = str | Mapping[str, str | int | torch.device]


@dataclass(frozen=True)
class Placement:
    """Where a model's weights go.

    Args:
        device: the one that they are moved to; None where the map says it all.
        device_map: as transformers takes it; None where they are read on the CPU first.
        dtype: theirs, or "auto" for the checkpoint's.
    """

    device: torch.device | None
    device_map: DeviceMap | None
    dtype: torch.dtype | str

    def options(self) -> dict[str, Any]:
        """The arguments of `from_pretrained`."""
        mapped = {} if self.device_map is None else {"device_map": self.device_map}
        return {"dtype": self.dtype, **mapped}

    def settle(self, model: PreTrainedModel, name: str) -> PreTrainedModel:
        """The model on its device.

        Raises:
            ModelError: it does not fit there.
        """
        if self.device is None or self.device_map is not None:
            return model
        try:
            model.to(self.device)  # type: ignore[arg-type]  # wrapped without its types
            return model
        except RuntimeError as error:  # torch.OutOfMemoryError is one
            raise self.no_room(name, error) from error

    def no_room(self, name: str, error: Exception) -> ModelError:
        """The refusal of a model that does not fit."""
        where = self.device if self.device is not None else f"the devices here ({self.device_map})"
        return ModelError(
            f"Cannot move {name!r} to {where} ({shorten(error)}); use a smaller dtype such as"
            " bfloat16, or the cpu."
        )


def placement_of(
    device: str | torch.device | None,
    dtype: str | torch.dtype | None,
    device_map: DeviceMap | None,
) -> Placement:
    """Reads what `load` is given.

    Raises:
        UsageError: an unknown device, dtype or map; a device and a map; a device that is not there,
            or a map without accelerate.
    """
    wanted = None if dtype is None else _read_dtype(dtype)
    if device_map is None:
        chosen = _find_device(device)
        usual = torch.float32 if chosen.type == "cpu" else "auto"
        # straight to the device where that is possible, without a copy on the CPU
        direct = chosen.type != "cpu" and _has_accelerate()
        return Placement(chosen, {"": chosen} if direct else None, wanted or usual)
    if device is not None:
        raise UsageError(
            f"A model has a device or a device map, not both ({device!r} and {device_map!r}); leave"
            " one out."
        )
    if isinstance(device_map, str) and device_map not in DEVICE_MAPS:
        raise UnknownName("device map", device_map, DEVICE_MAPS)
    if not _has_accelerate():
        raise UsageError(
            f"The device map {device_map!r} needs accelerate, which is not installed; run `pip"
            " install accelerate`, or give one device."
        )
    usual = torch.float32 if _on_cpu(device_map) else "auto"
    return Placement(None, device_map, wanted or usual)


def _read_dtype(dtype: str | torch.dtype) -> torch.dtype:
    name = str(dtype).removeprefix("torch.")
    if name not in DTYPES:
        raise UnknownName("dtype", name, DTYPES)
    read: torch.dtype = getattr(torch, name)
    return read


def _find_device(device: str | torch.device | None) -> torch.device:
    if device is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError, ValueError):
        raise UsageError(f"There is no device {device!r}; use cpu, cuda or cuda:0.") from None
    try:
        usable = torch.zeros(1, device=chosen).item() == 0 and not (
            chosen.type == "cpu" and chosen.index
        )
    except Exception:  # each kind of device has its own error for not being there
        usable = False
    if not usable:
        there = "cuda" if torch.cuda.is_available() else "cpu"
        raise UsageError(f"Device {str(device)!r} is not available here; use {there}.")
    return chosen


def _has_accelerate() -> bool:
    return importlib.util.find_spec("accelerate") is not None


def _on_cpu(device_map: DeviceMap) -> bool:
    """Whether no weight goes to an accelerator."""
    if isinstance(device_map, str):
        return not torch.accelerator.is_available()
    return all(str(devicement_of) in ("cpu", "disk") for devicement_of in device_map.values())
