"""Reads the weights of a GGUF file for a model of transformers, in threads.

transformers dequantises one tensor at a time in one thread, and makes two copies of each in
float32. The weights read here have the same bits: the names of the weights, and how to undo the
changes that llama.cpp's converter made, come from transformers.

Blocks are dequantised in torch, to the same bits as by the package `gguf`. A block has 32 or 256
quants, a scale, and for some types a minimum; the layouts are documented in
https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h. `gguf` takes 16 rows at a time
through numpy, one byte per quant, and makes a float32 array of the whole tensor. Here eight quants
are unpacked at once, as the bytes of an int64, and a chunk that fits into the processor's cache is
converted directly to the target dtype. The float32 products and sums are the same as in `gguf`, in
the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from holdfast.generation.cpu_threads import one_thread
from holdfast.models.gguf import GGUF, ROTARY_FACTORS
from holdfast.models.gguf_header import TensorInfo

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_CHUNK = 1 << 18  # values dequantised at once: 1 MB in float32
_ONES = 0x0101010101010101  # an int64 with 1 in each of its eight bytes
_SIGNS = (0x80 * _ONES) - (1 << 64)  # their sign bits


def read_weights(
    gguf: GGUF,
    model: PreTrainedModel,
    config_fields: Mapping[str, Any],
    dtype: torch.dtype,
) -> dict[str, torch.Tensor]:
    """Reads the weights as transformers' `load_gguf_checkpoint` does.

    Args:
        gguf: the file.
        model: the model, which may be on the meta device; only the names of its weights are used.
        config_fields: the fields of its configuration, as transformers reads them from the file.
        dtype: the dtype of the weights.

    Returns:
        The weights, by their names in the model.
    """
    from tqdm.auto import tqdm
    from transformers.modeling_gguf_pytorch_utils import TENSOR_PROCESSORS, TensorProcessor

    make_processor: Any = TENSOR_PROCESSORS.get(gguf.architecture, TensorProcessor)
    processor = make_processor(config=config_fields)
    names = names_of(model, processor, [tensor.name for tensor in gguf.tensors])
    unchanged = []
    changed = []
    for tensor in gguf.tensors:
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


class Unpacked(NamedTuple):
    """The parts of blocks, whose values are `quants * scale + minimum`.

    Attributes:
        quants: int8 [block, ..., quant].
        scale: float32 [block, ..., 1], one value for each run of quants.
        minimum: like `scale`; None if the type has none.
    """

    quants: Tensor
    scale: Tensor
    minimum: Tensor | None = None


def dequantise(blocks: Tensor, kind: str, dtype: torch.dtype) -> Tensor:
    """Computes the values of blocks.

    Args:
        blocks: uint8 [..., byte]; each row has the bytes of whole blocks.
        kind: the name of the type, such as "Q4_K"; one of `UNPACK`.
        dtype: the dtype of the values, which are computed in float32.

    Returns:
        The values, [..., value].
    """
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

    count, size = GGML_QUANT_SIZES[GGMLQuantizationType[kind]]
    rows = blocks.reshape(-1, size)
    values = torch.empty(len(rows), count, dtype=dtype)
    step = _CHUNK // count
    for start in range(0, len(rows), step):
        quants, scale, minimum = UNPACK[kind](rows[start : start + step])
        chunk = quants * scale
        if minimum is not None:
            chunk += minimum
        values[start : start + step] = chunk.view(-1, count)
    return values.view(*blocks.shape[:-1], -1)


def _q4_0(blocks: Tensor) -> Unpacked:
    return Unpacked(_bytes_of(_fields(blocks[:, 2:], 4, 16), 8), _half(blocks, 0))


def _q4_1(blocks: Tensor) -> Unpacked:
    return Unpacked(_bytes_of(_fields(blocks[:, 4:], 4, 16)), _half(blocks, 0), _half(blocks, 2))


def _q5_0(blocks: Tensor) -> Unpacked:
    quants = _fields(blocks[:, 6:], 4, 16).flatten(1) | _fifth_bits(blocks[:, 2:6])
    return Unpacked(_bytes_of(quants, 16), _half(blocks, 0))


def _q5_1(blocks: Tensor) -> Unpacked:
    quants = _fields(blocks[:, 8:], 4, 16).flatten(1) | _fifth_bits(blocks[:, 4:8])
    return Unpacked(_bytes_of(quants), _half(blocks, 0), _half(blocks, 2))


def _q8_0(blocks: Tensor) -> Unpacked:
    return Unpacked(blocks[:, 2:].view(torch.int8), _half(blocks, 0))


def _q4_k(blocks: Tensor) -> Unpacked:
    quants = _fields(blocks[:, 16:], 4, 32)
    return Unpacked(_bytes_of(quants).view(-1, 8, 32), *_scale_and_minimum(blocks))


def _q5_k(blocks: Tensor) -> Unpacked:
    fifth = _fields(blocks[:, 16:48], 1, 32)
    quants = _fields(blocks[:, 48:], 4, 32).view(fifth.shape) | fifth << 4
    return Unpacked(_bytes_of(quants).view(-1, 8, 32), *_scale_and_minimum(blocks))


def _q6_k(blocks: Tensor) -> Unpacked:
    high = _fields(blocks[:, 128:192], 2, 32)
    quants = _fields(blocks[:, :128], 4, 64).view(high.shape) | high << 4
    scale = _half(blocks, 208) * blocks[:, 192:208].view(torch.int8)
    return Unpacked(_bytes_of(quants, 32).view(-1, 16, 16), scale[..., None])


UNPACK: dict[str, Callable[[Tensor], Unpacked]] = {
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q8_0": _q8_0,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
}


def _fields(packed: Tensor, bits: int, run: int) -> Tensor:
    """Unpacks fields of a few bits, so that each has a byte of its own.

    Args:
        packed: uint8 [block, byte]. Each run of bytes begins with the fields in their lowest bits,
            followed by the fields in the next higher bits.
        bits: the bits of a field; 1, 2 or 4.
        run: the bytes of a run.

    Returns:
        int64 [block, byte / run, 8 / bits, run / 8]; each int64 has eight fields.
    """
    # a copy, because an int64 has to begin at a multiple of eight bytes
    copied = packed.clone(memory_format=torch.contiguous_format)
    words = copied.view(torch.int64).view(len(packed), -1, run // 8)
    mask = ((1 << bits) - 1) * _ONES
    return torch.stack([(words >> shift) & mask for shift in range(0, 8, bits)], 2)


def _bytes_of(words: Tensor, offset: int = 0) -> Tensor:
    """Splits int64 words into bytes, and subtracts `offset` from each: int8 [block, byte]."""
    words = words.flatten(1)
    if offset:  # with the sign bits set, no byte borrows from the next; then they are flipped back
        words = ((0x80 - offset) * _ONES + words).bitwise_xor_(_SIGNS)
    return words.view(torch.int8)


def _half(blocks: Tensor, start: int) -> Tensor:
    """Reads the float16 at this byte of each block as float32 [block, 1]."""
    return blocks[:, start : start + 2].view(torch.float16).float()


def _fifth_bits(packed: Tensor) -> Tensor:
    """Spreads the bits of bytes [block, byte]: each becomes the fifth bit of a byte of an int64
    [block, byte].
    """
    return _spread_bits().index_select(0, packed.flatten().int()).view(packed.shape)


@cache
def _spread_bits() -> Tensor:
    """The table of `_fifth_bits`, by the value of a byte: int64 [256]."""
    values = torch.arange(256, dtype=torch.uint8)[:, None]
    return ((values >> torch.arange(8, dtype=torch.uint8) & 1) << 4).view(torch.int64).flatten()


def _scale_and_minimum(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Unpacks the scales and minima of the eight runs of Q4_K and Q5_K: six bits each, in twelve
    bytes.
    """
    scales, minima, high = blocks[:, 4:16].view(-1, 3, 4).unbind(1)
    scales = torch.cat([scales & 63, high & 15 | scales >> 2 & 48], 1)
    minima = torch.cat([minima & 63, high >> 4 | minima >> 2 & 48], 1)
    scale = _half(blocks, 0) * scales
    minimum = _half(blocks, 2) * minima
    return scale[..., None], -minimum[..., None]
