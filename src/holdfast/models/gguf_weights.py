"""Reads the weights of a GGUF file for a model of transformers, in threads.

transformers dequantises one tensor at a time in one thread, and makes two copies of each in
float32. The weights read here have the same bits: the names of the weights, and how to undo the
changes that llama.cpp's converter made, come from transformers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from holdfast.generation.cpu_threads import one_thread
from holdfast.models.gguf_blocks import UNPACK, dequantise
from holdfast.models.gguf_header import ROTARY_FACTORS, Header, TensorInfo

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def read_weights(
    header: Header,
    model: PreTrainedModel,
    config_fields: Mapping[str, Any],
    dtype: torch.dtype,
) -> dict[str, torch.Tensor]:
    """Reads the weights as transformers' `load_gguf_checkpoint` does.

    Args:
        header: the header of the file.
        model: the model, which may be on the meta device; only the names of its weights are used.
        config_fields: the fields of its configuration, as transformers reads them from the file.
        dtype: the dtype of the weights.

    Returns:
        The weights, by their names in the model.
    """
    from tqdm.auto import tqdm
    from transformers.modeling_gguf_pytorch_utils import TENSOR_PROCESSORS, TensorProcessor

    make_processor: Any = TENSOR_PROCESSORS.get(header.architecture, TensorProcessor)
    processor = make_processor(config=config_fields)
    names = names_of(model, processor, [tensor.name for tensor in header.tensors])
    unchanged = []
    changed = []
    for tensor in header.tensors:
        if not _is_unchanged(tensor.name, tensor.shape, processor, names):
            changed.append(tensor)
        elif tensor.name in names:
            unchanged.append(tensor)
    weights: dict[str, Any] = {}
    threads = torch.get_num_threads()
    with one_thread(), ThreadPoolExecutor(threads) as pool:
        in_threads = pool.map(lambda tensor: read_tensor(tensor, dtype), unchanged)
        for tensor in changed:
            result = processor.process(
                weights=read_tensor(tensor).numpy(),
                name=tensor.name,
                tensor_key_mapping=names,
                parsed_parameters={"tensors": weights},
            )
            if result.name in names:
                values = torch.from_numpy(np.ascontiguousarray(result.weights))
                weights[names[result.name]] = values.to(dtype)
        in_order = tqdm(in_threads, "Dequantising the weights", len(unchanged))
        for tensor, values in zip(unchanged, in_order, strict=True):
            weights[names[tensor.name]] = values
    return weights


def names_of(model: PreTrainedModel, processor: Any, tensors: Collection[str]) -> dict[str, str]:
    """The names of a model's weights, by the names of the tensors in a file.

    transformers builds llama.cpp's table of names for the model and again for each of its modules,
    which takes seconds. Only a few architectures need the tables of the modules, so it is first
    given the model without its modules.
    """
    from transformers.modeling_gguf_pytorch_utils import get_gguf_hf_weights_map

    map_names: Any = get_gguf_hf_weights_map
    without_modules = SimpleNamespace(
        config=model.config, state_dict=model.state_dict, named_children=lambda: ()
    )
    names: dict[str, str] = map_names(without_modules, processor)
    if not names.keys() >= set(tensors) - {ROTARY_FACTORS}:
        names = map_names(model, processor)
    return names


def _is_unchanged(
    name: str, shape: tuple[int, ...], processor: Any, names: Mapping[str, str]
) -> bool:
    """Whether transformers uses a tensor's values without changing them.

    It is given an object without values: it returns that object if it has nothing to compute.
    """
    empty = SimpleNamespace(shape=shape)
    try:
        result = processor.process(
            weights=empty,
            name=name,
            tensor_key_mapping=names,
            parsed_parameters={"tensors": {}},
        )
    except Exception:  # any computation fails on that object, in whatever way
        return False
    return result.weights is empty and result.name == name


def read_tensor(tensor: TensorInfo, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Reads a tensor of a GGUF file and dequantises it to `dtype`; None is float32."""
    import gguf

    dtype = dtype or torch.float32
    kind = tensor.tensor_type
    if kind.name in UNPACK:
        return dequantise(torch.from_numpy(tensor.data), kind.name, dtype)
    if kind.name in ("F16", "F32"):
        return torch.from_numpy(tensor.data).to(torch.float32, copy=True).to(dtype)
    return torch.from_numpy(gguf.dequantize(tensor.data, kind)).to(dtype)
