# mypy: disable-error-code="import-untyped, no-untyped-call, no-untyped-def, untyped-decorator"
"""A decode step of steered attention on a GPU, in one Triton kernel per layer.

PyTorch needs a dozen kernel launches to attend to two groups of keys and to merge the outputs, and
a decode step on a GPU mostly waits for launches. This kernel reads each key once, and accumulates
the output and the log-sum-exp of both groups. Keys that heads share are not copied. If there are
too few rows and heads to fill the GPU, the keys of each row are divided among several programs, and
a second kernel joins their parts.

A program attends to one part of the keys of one row, for the heads that share these keys. It has a
lane for each head. As in FlashAttention, it goes through the keys block by block. For both groups
it keeps the maximum of the scores so far (`max`), the sum of exp2(score - max) (`sum`), and the
values weighted by these (`out`). Scores are multiplied by log2(e), so that exp2 can be used.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from holdfast.attention.fused_kernels import LayerInputs
from holdfast.attention.gpu_table import move_log_odds, padded_size, product, sigmoid
from holdfast.attention.key_groups import Starts
from holdfast.attention.pass_columns import SpanColumns
from holdfast.methods.table import LayerTable

_LOG2E = tl.constexpr(1.4426950408889634)
_LN2 = tl.constexpr(0.6931471805599453)
_PROGRAMS = 256  # this many programs fill a GPU
_MIN_KEYS = 256  # fewer keys are not worth a separate program
# numbers that a program stores for a head before its outputs: the maximum and the sum of both
# groups, and the sum over the span without generated tokens
_SUMS = tl.constexpr(5)
# arguments that change often, so the kernels are not compiled for each of their values: those of
# `_attend` alone, and those of both kernels
_VARYING = ["first", "width", "copies", "mask_row", "keys", "part_keys"]
_VARYING_IN_BOTH = ["parts", "table_stride"]
_INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")


def runs_on(device: torch.device) -> bool:
    """Whether the kernel runs on a device; older GPUs lack its instructions for bfloat16.

    It is tried once, so any error of Triton's compiler is raised here.
    """
    if device.type != "cuda" or torch.cuda.get_device_capability(device) < (8, 0):
        return False
    states = torch.zeros(1, 1, 1, 16, device=device)
    attend_step(LayerInputs(states, states, states, None, causal=False, scaling=1.0))
    return True


def attend_step(
    inputs: LayerInputs,
    columns: SpanColumns | None = None,
    table: LayerTable | None = None,
    *,
    traced: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Computes attention of one query per row.

    Args:
        inputs: queries [B, H, 1, D], keys and values [B, G, K, D], float32 or narrower.
        columns: which keys are the span; None for attention without a span.
        table: float32 numbers of B rows; None moves nothing.
        traced: whether to compute the mass.

    Returns:
        The output [B, H, 1, D], and the mass on the span without generated tokens, float32 [B, H];
        None unless traced.
    """
    query = inputs.query.contiguous()
    key = inputs.key if inputs.key.stride(3) == 1 else inputs.key.contiguous()
    value = inputs.value if inputs.value.stride(3) == 1 else inputs.value.contiguous()
    mask = inputs.mask
    if mask is not None:
        mask = (mask.view(torch.uint8) if mask.dtype == torch.bool else mask).contiguous()
    rows, heads, _, size = query.shape
    groups, keys = key.shape[1:3]
    heads_per_group = heads // groups
    block_size = padded_size(size)
    split = _split_keys(rows * groups, keys, size)
    output = torch.empty(rows, 1, heads, size, dtype=query.dtype, device=query.device)
    mass = torch.empty(rows, heads, device=query.device) if traced else None
    partial = None
    if split.parts > 1:
        shape = rows, heads, split.parts, _SUMS.value + 2 * block_size
        partial = torch.empty(shape, device=query.device)
    shared = {
        **_table_arguments(table),
        "output": output,
        "mass": mass,
        "partial": partial,
        "parts": split.parts,
        "HEADS": heads,
        "SIZE": size,
        "BLOCK_SIZE": block_size,
    }
    with torch.cuda.device_of(query):  # Triton launches on the current device
        _attend[(rows, groups, split.parts)](
            query=query,
            key=key,
            key_row=key.stride(0),
            key_group=key.stride(1),
            key_token=key.stride(2),
            value=value,
            value_row=value.stride(0),
            value_group=value.stride(1),
            value_token=value.stride(2),
            mask=mask,
            mask_row=0 if mask is None or mask.shape[0] == 1 else keys,
            scaling=inputs.scaling * _LOG2E.value,
            keys=keys,
            part_keys=split.part_keys,
            **_span_arguments(columns),
            **shared,
            HEADS_PER_GROUP=heads_per_group,
            LANES=max(16, triton.next_power_of_2(heads_per_group)),
            BLOCK_KEYS=split.block_keys,
        )
        if partial is not None:
            _join[(rows, heads)](**shared)
    return output.transpose(1, 2), mass


class _KeySplit(NamedTuple):
    """The division of the keys of a row among programs."""

    parts: int  # how many programs
    part_keys: int  # the keys of each
    block_keys: int  # how many keys a program reads at once


def _split_keys(programs: int, keys: int, size: int) -> _KeySplit:
    """Divides the keys into as many parts as fill the GPU.

    Args:
        programs: how many there are with one part.
        size: of a head.
    """
    block_keys = 64 if size <= 128 else 32
    parts = max(1, min(_PROGRAMS // programs, keys // _MIN_KEYS))
    part_keys = -(-keys // (parts * block_keys)) * block_keys
    return _KeySplit(-(-keys // part_keys), part_keys, block_keys)


def _span_arguments(columns: SpanColumns | None) -> dict[str, Any]:
    """The arguments of the kernel that say which keys are the span."""
    if columns is None:
        empty = {"span": None, "generated": None, "starts": None}
        return {**empty, "first": 0, "width": 0, "copies": 1}
    first = columns.first_column
    return {
        "span": columns.span.view(torch.uint8),
        "generated": columns.included_from,
        "starts": first.on_device if isinstance(first, Starts) else None,
        "first": 0 if isinstance(first, Starts) else first,
        "width": columns.span.shape[1],
        "copies": columns.copies,
    }


def _table_arguments(table: LayerTable | None) -> dict[str, Any]:
    """The arguments of the kernels that are about the steering table, [number, row, head]."""
    if table is None:
        return {"table": None, "table_stride": 0, "TABLE_HAS_HEADS": False}
    numbers = table.numbers
    return {
        "table": numbers,
        "table_stride": numbers[0].numel(),
        "TABLE_HAS_HEADS": numbers.shape[2] > 1,
    }


@triton.jit(do_not_specialize=[*_VARYING, *_VARYING_IN_BOTH])
def _attend(
    query,
    key,
    key_row,
    key_group,
    key_token,
    value,
    value_row,
    value_group,
    value_token,
    mask,
    mask_row,
    scaling,
    keys,
    part_keys,
    span,
    generated,
    starts,
    first,
    width,
    copies,
    table,
    table_stride,
    TABLE_HAS_HEADS: tl.constexpr,
    output,
    mass,
    partial,
    parts,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    HEADS_PER_GROUP: tl.constexpr,
    LANES: tl.constexpr,
    BLOCK_KEYS: tl.constexpr,
):
    """Attends to a part of a row's keys, for the heads that share them."""
    row = tl.program_id(0).to(tl.int64)
    group = tl.program_id(1)
    part = tl.program_id(2)
    lane = tl.arange(0, LANES)
    head = group * HEADS_PER_GROUP + lane
    is_head = lane < HEADS_PER_GROUP
    dim = tl.arange(0, BLOCK_SIZE)
    query_mask = is_head[:, None] & (dim < SIZE)[None, :]
    q = tl.load(
        query + (row * HEADS + head[:, None]) * SIZE + dim[None, :], mask=query_mask, other=0.0
    )
    key += row * key_row + group * key_group
    value += row * value_row + group * value_group
    if span is not None:
        span_row = row // copies  # of the span
        generated_from = tl.load(generated + span_row)
        if starts is not None:
            first = tl.load(starts + span_row)
    rest_max = tl.full((LANES,), -float("inf"), tl.float32)
    span_max = tl.full((LANES,), -float("inf"), tl.float32)
    rest_sum = tl.zeros((LANES,), tl.float32)
    span_sum = tl.zeros((LANES,), tl.float32)
    prompt_sum = tl.zeros((LANES,), tl.float32)  # over the span without generated tokens
    rest_out = tl.zeros((LANES, BLOCK_SIZE), tl.float32)
    span_out = tl.zeros((LANES, BLOCK_SIZE), tl.float32)
    end = tl.minimum((part + 1) * part_keys, keys)
    for begin in range(part * part_keys, end, BLOCK_KEYS):
        index = (begin + tl.arange(0, BLOCK_KEYS)).to(tl.int64)
        is_visible = index < end
        key_mask = is_visible[:, None] & (dim < SIZE)[None, :]
        k = tl.load(key + index[:, None] * key_token + dim[None, :], mask=key_mask, other=0.0)
        v = tl.load(value + index[:, None] * value_token + dim[None, :], mask=key_mask, other=0.0)
        zeros = tl.zeros((LANES, BLOCK_KEYS), tl.float32)
        scores = product(q, tl.trans(k), zeros, _INTERPRETED) * scaling
        if mask is not None:
            mask_values = tl.load(mask + row * mask_row + index, mask=is_visible, other=0)
            if mask.dtype.element_ty == tl.uint8:
                is_visible = is_visible & (mask_values != 0)
            else:
                mask_values = mask_values.to(tl.float32)
                # hidden keys have -inf or a dtype's lowest number
                is_visible = is_visible & (mask_values > -3e4)
                scores += tl.where(is_visible, mask_values, 0.0)[None, :] * _LOG2E
        in_rest = is_visible
        if span is not None:
            column = index + first
            in_span = tl.load(
                span + span_row * width + column, mask=is_visible & (column < width), other=0
            )
            in_span = is_visible & (in_span != 0)
            is_member = in_span | (is_visible & (column >= generated_from))
            in_rest = is_visible & (is_member == 0)
            span_scores = tl.where(is_member[None, :], scores, -float("inf"))
            span_max, decay, p = _raise_maximum(span_max, span_scores)
            span_sum = span_sum * decay + tl.sum(p, 1)
            prompt_sum = prompt_sum * decay + tl.sum(tl.where(in_span[None, :], p, 0.0), 1)
            span_out = product(p.to(v.dtype), v, span_out * decay[:, None], _INTERPRETED)
        rest_scores = tl.where(in_rest[None, :], scores, -float("inf"))
        rest_max, decay, p = _raise_maximum(rest_max, rest_scores)
        rest_sum = rest_sum * decay + tl.sum(p, 1)
        rest_out = product(p.to(v.dtype), v, rest_out * decay[:, None], _INTERPRETED)
    if partial is not None:
        part_ptr = partial + ((row * HEADS + head) * parts + part) * (_SUMS + 2 * BLOCK_SIZE)
        tl.store(part_ptr, rest_max, mask=is_head)
        tl.store(part_ptr + 1, span_max, mask=is_head)
        tl.store(part_ptr + 2, rest_sum, mask=is_head)
        tl.store(part_ptr + 3, span_sum, mask=is_head)
        tl.store(part_ptr + 4, prompt_sum, mask=is_head)
        part_ptr = part_ptr[:, None] + _SUMS + dim[None, :]
        tl.store(part_ptr, rest_out, mask=is_head[:, None])
        tl.store(part_ptr + BLOCK_SIZE, span_out, mask=is_head[:, None])
    else:
        _write_output(
            rest_max, span_max, rest_sum, span_sum, prompt_sum, rest_out, span_out, row, head,
            is_head, table, table_stride, TABLE_HAS_HEADS, output, mass, HEADS, SIZE, BLOCK_SIZE,
        )  # fmt: skip


@triton.jit(do_not_specialize=_VARYING_IN_BOTH)
def _join(
    table,
    table_stride,
    TABLE_HAS_HEADS: tl.constexpr,
    output,
    mass,
    partial,
    parts,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
):
    """Joins the parts of a row and head, and writes the output."""
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) + tl.arange(0, 1)
    dim = tl.arange(0, BLOCK_SIZE)[None, :]
    rest_max = tl.full((1,), -float("inf"), tl.float32)
    span_max = tl.full((1,), -float("inf"), tl.float32)
    rest_sum = tl.zeros((1,), tl.float32)
    span_sum = tl.zeros((1,), tl.float32)
    prompt_sum = tl.zeros((1,), tl.float32)
    rest_out = tl.zeros((1, BLOCK_SIZE), tl.float32)
    span_out = tl.zeros((1, BLOCK_SIZE), tl.float32)
    for part in range(0, parts):
        part_ptr = partial + ((row * HEADS + head) * parts + part) * (_SUMS + 2 * BLOCK_SIZE)
        rest_max, decay, scale = _raise_maximum(rest_max, tl.load(part_ptr)[:, None])
        rest_sum = rest_sum * decay + tl.load(part_ptr + 2) * tl.sum(scale, 1)
        rest_part = tl.load(part_ptr[:, None] + _SUMS + dim)
        rest_out = rest_out * decay[:, None] + rest_part * scale
        span_max, decay, scale = _raise_maximum(span_max, tl.load(part_ptr + 1)[:, None])
        span_sum = span_sum * decay + tl.load(part_ptr + 3) * tl.sum(scale, 1)
        prompt_sum = prompt_sum * decay + tl.load(part_ptr + 4) * tl.sum(scale, 1)
        span_part = tl.load(part_ptr[:, None] + _SUMS + BLOCK_SIZE + dim)
        span_out = span_out * decay[:, None] + span_part * scale
    _write_output(
        rest_max, span_max, rest_sum, span_sum, prompt_sum, rest_out, span_out, row, head,
        head >= 0, table, table_stride, TABLE_HAS_HEADS, output, mass, HEADS, SIZE, BLOCK_SIZE,
    )  # fmt: skip


@triton.jit
def _raise_maximum(maximum, scores):
    """Updates the running maximum by new scores.

    Returns the new maximum, the factor for sums under the old one, and exp2 of the scores.
    """
    higher = tl.maximum(maximum, tl.max(scores, 1))
    base = tl.where(higher == -float("inf"), 0.0, higher)
    return higher, tl.exp2(maximum - base), tl.exp2(scores - base[:, None])


@triton.jit
def _write_output(
    rest_max,
    span_max,
    rest_sum,
    span_sum,
    prompt_sum,
    rest_out,
    span_out,
    row,
    head,
    is_head,
    table,
    table_stride,
    TABLE_HAS_HEADS: tl.constexpr,
    output,
    mass,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
):
    """Moves mass between span and rest by the table, and writes the mix of their outputs."""
    # true for nan too, so that it is not lost
    has_rest = rest_sum != 0
    has_span = span_sum != 0
    has_both = has_rest & has_span
    safe_rest_sum = tl.where(has_rest, rest_sum, 1.0)
    safe_span_sum = tl.where(has_span, span_sum, 1.0)
    max_difference = tl.where(has_both, span_max, 0.0) - tl.where(has_both, rest_max, 0.0)
    log_odds = max_difference * _LN2 + tl.log(safe_span_sum) - tl.log(safe_rest_sum)
    if table is not None:
        table += row * HEADS + head if TABLE_HAS_HEADS else row + head * 0
        bias = tl.load(table, mask=is_head, other=0.0)
        exponent = tl.load(table + table_stride, mask=is_head, other=1.0)
        floor = tl.load(table + 2 * table_stride, mask=is_head, other=-float("inf"))
        log_odds = move_log_odds(log_odds, bias, exponent, floor)
    span_share = tl.where(has_both, sigmoid(log_odds), tl.where(has_span, 1.0, 0.0))
    rest_share = tl.where(has_both, sigmoid(-log_odds), tl.where(has_rest, 1.0, 0.0))
    scaled_span_out = span_out * (span_share / safe_span_sum)[:, None]
    mixed = scaled_span_out + rest_out * (rest_share / safe_rest_sum)[:, None]
    dim = tl.arange(0, BLOCK_SIZE)
    output_ptr = output + (row * HEADS + head)[:, None] * SIZE + dim[None, :]
    is_written = is_head[:, None] & (dim < SIZE)[None, :]
    tl.store(output_ptr, mixed.to(output.dtype.element_ty), mask=is_written)
    if mass is not None:
        tl.store(mass + row * HEADS + head, span_share * prompt_sum / safe_span_sum, mask=is_head)
