"""Dequantises the blocks of a GGUF file in torch, to the same bits as the package `gguf`.

A block has 32 or 256 quants, a scale, and for some types a minimum; the layouts are documented in
https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h. `gguf` takes 16 rows at a time
through numpy, one byte per quant, and makes a float32 array of the whole tensor. Here eight quants
are unpacked at once, as the bytes of an int64, and a chunk that fits into the processor's cache is
converted directly to the target dtype. The float32 products and sums are the same as in `gguf`, in
the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

_CHUNK = 1 << 18  # values dequantised at once: 1 MB in float32
_ONES = 0x0101010101010101  # an int64 with 1 in each of its eight bytes
_SIGNS = (0x80 * _ONES) - (1 << 64)  # their sign bits


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
