"""Reads the weights of a GGUF file for a model of transformers, in threads.

transformers dequantises tensor by tensor in one thread, and makes two copies of each in float32;
it also builds the table of llama.cpp's names again for each module of the model. The weights here
have the same bits: names, and what llama.cpp's converter changed, are those of transformers.
"""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import torch

from holdfast.generation.cpu_threads import one_thread
from holdfast.models.gguf_blocks import UNPACK, dequantise
from holdfast.models.gguf_header import Header, TensorInfo

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def read_weights(
    header: Header,
    model: PreTrainedModel,
    config: Mapping[str, Any],
    dtype: torch.dtype | None,
) -> dict[str, torch.Tensor]:
    """The weights by their names in the model, as transformers' `load_gguf_checkpoint` reads them.

    Args:
        model: may be on the meta device; only its names are used.
        config: the configuration as transformers reads it from the file.
        dtype: of the weights; None: float32.
    """
    import gguf
    from tqdm.auto import tqdm
    from transformers.modeling_gguf_pytorch_utils import (
        TENSOR_PROCESSORS,
        TensorProcessor,
        get_gguf_hf_weights_map,
    )

    architecture = header.values["general.architecture"].content
    make_processor: Any = TENSOR_PROCESSORS.get(architecture, TensorProcessor)
    processor = make_processor(config=config)
    with patch("gguf.get_tensor_name_map", cache(gguf.get_tensor_name_map)):
        names = get_gguf_hf_weights_map(model, processor)
    unchanged, changed = [], []
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


def _is_unchanged(
    name: str, shape: tuple[int, ...], processor: Any, names: Mapping[str, str]
) -> bool:
    """Whether transformers takes a tensor's values as they are.

    It is handed an object that has none, and hands it back if it has no use for them.
    """
    empty = SimpleNamespace(shape=shape)
    try:
        result = processor.process(
            weights=empty,
            name=name,
            tensor_key_mapping=names,
            parsed_parameters={"tensors": {}},
        )
    except Exception:  # whatever it wanted to compute, the object cannot do it
        return False
    return result.weights is empty and result.name == name


def read_tensor(tensor: TensorInfo, dtype: torch.dtype | None = None) -> torch.Tensor:
    """A tensor of a GGUF file, dequantised to `dtype`, or to float32."""
    import gguf

    dtype, kind = dtype or torch.float32, tensor.tensor_type
    if kind.name in UNPACK:
        return dequantise(torch.from_numpy(tensor.data), kind.name, dtype)
    if kind.name in ("F16", "F32"):
        return torch.from_numpy(tensor.data).to(torch.float32, copy=True).to(dtype)
    return torch.from_numpy(gguf.dequantize(tensor.data, kind)).to(dtype)
