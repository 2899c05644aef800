"""Fingerprints: digests of a model's weights, configuration and chat template."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from holdfast.models.packed_layers import is_as_packed

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast

_NUM_SAMPLED = 256  # values of each tensor in a fingerprint
_NUM_WATCHED = 16  # values of each tensor that are compared at each use


class Fingerprint:
    """A model's fingerprint, which changes with its weights.

    Adapters (peft), edits in place and replaced parameters change a loaded model. `current` notices
    such changes by comparing each tensor's address, version counter and a few of its values (writes
    through `.data`, as when peft merges adapters, leave the counter unchanged). A changed model
    gets a digest of all its values, because the sample that distinguishes checkpoints might miss
    the edit. Moving a loaded model to another device also counts as a change.

    Args:
        model: the model.
        tokenizer: its tokenizer, for the chat template.
        loaded: the fingerprint that the model had when it was loaded; None computes it.
    """

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, loaded: str | None = None
    ):
        self._model = model
        self._tokenizer = tokenizer
        self._digest = loaded or fingerprint_of(model, tokenizer)
        self._state = self._read_state()

    def current(self) -> str:
        """The fingerprint of the model as it is now."""
        state = self._read_state()
        if state != self._state:
            self._digest = fingerprint_of(self._model, self._tokenizer, whole=True)
            self._state = state
        return self._digest

    def _read_state(self) -> tuple[Any, ...]:
        """Everything by which `current` notices a change."""
        tensors = [tensor for module in self._model.modules() for tensor in _tensors_of(module)]
        versions = [
            (tensor.data_ptr(), -1 if tensor.is_inference() else tensor._version)
            for tensor in tensors
        ]
        settings = repr(_settings(self._model.config)), repr(self._tokenizer.chat_template)
        return (*settings, adapters_of(self._model), versions, _few_values(tensors))


def fingerprint_of(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, *, whole: bool = False
) -> str:
    """A digest of configuration, template, active adapters and weights.

    Of each weight it covers a sample of the values, or all of them if it is `whole`.
    """
    tensors = _iterate_state_dict(model)
    return digest_of(
        model.config, tokenizer.chat_template, tensors, adapters_of(model), whole=whole
    )


def digest_of(
    config: PreTrainedConfig,
    chat_template: object,
    tensors: Iterable[tuple[str, Tensor]],
    adapters: object = (),
    *,
    whole: bool = False,
) -> str:
    """The digest of a model given as named tensors, as `fingerprint_of` describes it.

    Only one tensor at a time has to be in memory.
    """
    digest = hashlib.sha256()
    digest.update(repr(_settings(config)).encode())
    digest.update(repr(chat_template).encode())
    if adapters:
        digest.update(repr(adapters).encode())
    values = _all_values if whole else _sample
    parts = {}
    for name, tensor in tensors:
        parts[name] = f"{name} {tuple(tensor.shape)} {tensor.dtype}".encode() + values(tensor)
    for name in sorted(parts):
        digest.update(parts[name])
    return digest.hexdigest()[:32]


def adapters_of(model: PreTrainedModel) -> tuple[Any, ...]:
    """Which adapters (peft) are active, merged or disabled, and their scaling, in each layer."""
    states = []
    for module in model.modules():
        if "merged_adapters" in vars(module):
            layer: Any = module
            names = tuple(layer.active_adapters), tuple(layer.merged_adapters)
            scaling = tuple(getattr(layer, "scaling", {}).items())
            states.append((*names, layer.disable_adapters, scaling))
    return tuple(states)


def is_split(model: PreTrainedModel) -> bool:
    """Whether a model's weights are on several devices, or on disk."""
    return len({parameter.device for parameter in model.parameters()}) > 1


def _settings(config: PreTrainedConfig) -> list[tuple[str, Any]]:
    """The options of a configuration that may change replies, by name."""
    return sorted(
        (name, value)
        for name, value in config.to_dict().items()
        if not name.startswith("_") and name != "transformers_version"
    )


def _tensors_of(module: torch.nn.Module) -> Iterator[Tensor]:
    """A module's own parameters and saved buffers, except a weight that is unchanged since it was
    packed.
    """
    for name, parameter in module._parameters.items():
        if parameter is not None and not (name == "weight" and is_as_packed(module)):
            yield parameter
    for name, buffer in module._buffers.items():
        if buffer is not None and name not in module._non_persistent_buffers_set:
            yield buffer


def _few_values(tensors: Iterable[Tensor]) -> list[bytes]:
    """A few values of each tensor, in one transfer per device and dtype."""
    samples: dict[tuple[torch.device, torch.dtype], list[Tensor]] = {}
    for tensor in tensors:
        if tensor.device.type != "meta":  # on disk until it is used
            values = tensor.detach().flatten()
            sample = values[:: max(1, values.numel() // _NUM_WATCHED)]
            samples.setdefault((tensor.device, tensor.dtype), []).append(sample)
    return [torch.cat(values).float().cpu().numpy().tobytes() for values in samples.values()]


def _iterate_state_dict(model: PreTrainedModel) -> Iterator[tuple[str, Tensor]]:
    """Yields the tensors of `model.state_dict()` module by module, since some are only made on
    request.
    """
    split = is_split(model)
    if split:
        from accelerate.utils import align_module_device
    for name, module in model.named_modules(remove_duplicate=False):
        tensors: dict[str, Tensor] = {}
        # loads weights from disk only while they are sampled
        with align_module_device(module) if split else nullcontext():
            module._save_to_state_dict(tensors, f"{name}." if name else "", False)
            yield from tensors.items()


def _sample(tensor: Tensor) -> bytes:
    flat = tensor.detach().flatten()
    return flat[:: max(1, flat.numel() // _NUM_SAMPLED)].float().cpu().numpy().tobytes()


def _all_values(tensor: Tensor) -> bytes:
    return hashlib.sha256(tensor.detach().flatten().view(torch.uint8).cpu().numpy().data).digest()
