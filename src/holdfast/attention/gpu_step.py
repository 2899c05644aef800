# mypy: disable-error-code="import-untyped, no-untyped-call, no-untyped-def, untyped-decorator"
"""A decode step of steered attention on a GPU, in one Triton kernel per layer.

PyTorch needs a dozen kernel launches to attend to two groups of keys and to merge the outputs, and
a decode step on a GPU mostly waits for launches. This kernel reads each key once, and accumulates
the output and the log-sum-exp of both groups. Keys that heads share are not copied. If there are
too few rows and heads to fill the GPU, the keys of each row are divided among several programs, and
a second kernel joins their parts.
"""

from __future__ import annotations

import os

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
# numbers that a program stores before its outputs: the maximum and the sum of both groups, and the
# sum over the span without generated tokens
_NUMBERS = tl.constexpr(5)
# arguments of the kernel that change often, so it is not compiled for each of their values
_VARYING = ["first", "width", "copies", "mask_row", "keys", "part_keys", "parts", "entries"]
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
    key = inputs.key
    value = inputs.value
    mask = inputs.mask
    key, value = (part if part.stride(3) == 1 else part.contiguous() for part in (key, value))
    rows, heads, _, size = query.shape
    groups, keys = key.shape[1:3]
    if mask is not None:
        mask = (mask.view(torch.uint8) if mask.dtype == torch.bool else mask).contiguous()
    block_size = padded_size(size)
    block_keys = 64 if size <= 128 else 32
    parts = max(1, min(_PROGRAMS // (rows * groups), keys // _MIN_KEYS))
    part_keys = -(-keys // (parts * block_keys)) * block_keys
    parts = -(-keys // part_keys)
    output = torch.empty(rows, 1, heads, size, dtype=query.dtype, device=query.device)
    mass = partial = None
    if traced:
        mass = torch.empty(rows, heads, device=query.device)
    if parts > 1:
        shape = rows, heads, parts, _NUMBERS.value + 2 * block_size
        partial = torch.empty(shape, device=query.device)
    numbers = None
    each_head = False
    if table is not None:
        numbers = table.numbers
        each_head = table.numbers.shape[2] > 1
    entries = 0 if numbers is None else numbers[0].numel()
    first_column = 0 if columns is None else columns.first_column
    shared = (numbers, output, mass, partial, parts, entries, each_head, heads, size, block_size)
    with torch.cuda.device_of(query):  # Triton launches on the current device
        _attend[(rows, groups, parts)](
            query,
            key,
            value,
            mask,
            None if columns is None else columns.span.view(torch.uint8),
            None if columns is None else columns.included_from,
            first_column.on_device if isinstance(first_column, Starts) else None,
            first_column if isinstance(first_column, int) else 0,
            0 if columns is None else columns.span.shape[1],
            1 if columns is None else columns.copies,
            0 if mask is None or mask.shape[0] == 1 else keys,
            inputs.scaling * _LOG2E.value,
            keys,
            part_keys,
            *key.stride()[:3],
            *value.stride()[:3],
            *shared,
            heads // groups,
            max(16, triton.next_power_of_2(heads // groups)),
            block_keys,
        )
        if partial is not None:
            _join[(rows, heads)](*shared)
    return output.transpose(1, 2), mass


@triton.jit(do_not_specialize=_VARYING)
def _attend(
    query,
    key,
    value,
    mask,
    span,
    generated,
    starts,
    first,
    width,
    copies,
    mask_row,
    scaling,
    keys,
    part_keys,
    key_row,
    key_group,
    key_token,
    value_row,
    value_group,
    value_token,
    numbers,
    output,
    mass,
    partial,
    parts,
    entries,
    EACH_HEAD: tl.constexpr,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    REPEATS: tl.constexpr,
    LINES: tl.constexpr,
    BLOCK_KEYS: tl.constexpr,
):
    """Attends to a part of a row's keys, for the heads that share them, with a line per head."""
    row = tl.program_id(0).to(tl.int64)
    group = tl.program_id(1)
    part = tl.program_id(2)
    line = tl.arange(0, LINES)
    head = group * REPEATS + line
    in_group = line < REPEATS
    dim = tl.arange(0, BLOCK_SIZE)
    query_mask = in_group[:, None] & (dim < SIZE)[None, :]
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
    rest_top = tl.full((LINES,), -float("inf"), tl.float32)
    span_top = tl.full((LINES,), -float("inf"), tl.float32)
    rest_sum = tl.zeros((LINES,), tl.float32)
    span_sum = tl.zeros((LINES,), tl.float32)
    prompt_sum = tl.zeros((LINES,), tl.float32)  # over the span without generated tokens
    rest_out = tl.zeros((LINES, BLOCK_SIZE), tl.float32)
    span_out = tl.zeros((LINES, BLOCK_SIZE), tl.float32)
    end = tl.minimum((part + 1) * part_keys, keys)
    for begin in range(part * part_keys, end, BLOCK_KEYS):
        index = (begin + tl.arange(0, BLOCK_KEYS)).to(tl.int64)
        is_visible = index < end
        key_mask = is_visible[:, None] & (dim < SIZE)[None, :]
        k = tl.load(key + index[:, None] * key_token + dim[None, :], mask=key_mask, other=0.0)
        v = tl.load(value + index[:, None] * value_token + dim[None, :], mask=key_mask, other=0.0)
        zeros = tl.zeros((LINES, BLOCK_KEYS), tl.float32)
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
            span_top, decay, p = _raise_maximum(span_top, span_scores)
            span_sum = span_sum * decay + tl.sum(p, 1)
            prompt_sum = prompt_sum * decay + tl.sum(tl.where(in_span[None, :], p, 0.0), 1)
            span_out = product(p.to(v.dtype), v, span_out * decay[:, None], _INTERPRETED)
        rest_scores = tl.where(in_rest[None, :], scores, -float("inf"))
        rest_top, decay, p = _raise_maximum(rest_top, rest_scores)
        rest_sum = rest_sum * decay + tl.sum(p, 1)
        rest_out = product(p.to(v.dtype), v, rest_out * decay[:, None], _INTERPRETED)
    if partial is not None:
        part_ptr = partial + ((row * HEADS + head) * parts + part) * (_NUMBERS + 2 * BLOCK_SIZE)
        tl.store(part_ptr, rest_top, mask=in_group)
        tl.store(part_ptr + 1, span_top, mask=in_group)
        tl.store(part_ptr + 2, rest_sum, mask=in_group)
        tl.store(part_ptr + 3, span_sum, mask=in_group)
        tl.store(part_ptr + 4, prompt_sum, mask=in_group)
        part_ptr = part_ptr[:, None] + _NUMBERS + dim[None, :]
        tl.store(part_ptr, rest_out, mask=in_group[:, None])
        tl.store(part_ptr + BLOCK_SIZE, span_out, mask=in_group[:, None])
    else:
        _write(
            rest_top, span_top, rest_sum, span_sum, prompt_sum, rest_out, span_out, row, head,
            in_group, numbers, entries, EACH_HEAD, output, mass, HEADS, SIZE, BLOCK_SIZE,
        )  # fmt: skip


@triton.jit(do_not_specialize=["parts", "entries"])
def _join(
    numbers,
    output,
    mass,
    partial,
    parts,
    entries,
    EACH_HEAD: tl.constexpr,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
):
    """Joins the parts of a row and head, and writes the result."""
    row = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) + tl.arange(0, 1)
    dim = tl.arange(0, BLOCK_SIZE)[None, :]
    rest_top = tl.full((1,), -float("inf"), tl.float32)
    span_top = tl.full((1,), -float("inf"), tl.float32)
    rest_sum = tl.zeros((1,), tl.float32)
    span_sum = tl.zeros((1,), tl.float32)
    prompt_sum = tl.zeros((1,), tl.float32)
    rest_out = tl.zeros((1, BLOCK_SIZE), tl.float32)
    span_out = tl.zeros((1, BLOCK_SIZE), tl.float32)
    for part in range(0, parts):
        part_ptr = partial + ((row * HEADS + head) * parts + part) * (_NUMBERS + 2 * BLOCK_SIZE)
        rest_top, decay, scale = _raise_maximum(rest_top, tl.load(part_ptr)[:, None])
        rest_sum = rest_sum * decay + tl.load(part_ptr + 2) * tl.sum(scale, 1)
        rest_part = tl.load(part_ptr[:, None] + _NUMBERS + dim)
        rest_out = rest_out * decay[:, None] + rest_part * scale
        span_top, decay, scale = _raise_maximum(span_top, tl.load(part_ptr + 1)[:, None])
        span_sum = span_sum * decay + tl.load(part_ptr + 3) * tl.sum(scale, 1)
        prompt_sum = prompt_sum * decay + tl.load(part_ptr + 4) * tl.sum(scale, 1)
        span_part = tl.load(part_ptr[:, None] + _NUMBERS + BLOCK_SIZE + dim)
        span_out = span_out * decay[:, None] + span_part * scale
    _write(
        rest_top, span_top, rest_sum, span_sum, prompt_sum, rest_out, span_out, row, head,
        head >= 0, numbers, entries, EACH_HEAD, output, mass, HEADS, SIZE, BLOCK_SIZE,
    )  # fmt: skip


@triton.jit
def _raise_maximum(top, scores):
    """Updates the running maximum by new scores.

    Returns the new maximum, the factor for sums under the old one, and exp2 of the scores.
    """
    higher = tl.maximum(top, tl.max(scores, 1))
    base = tl.where(higher == -float("inf"), 0.0, higher)
    return higher, tl.exp2(top - base), tl.exp2(scores - base[:, None])


@triton.jit
def _write(
    rest_top,
    span_top,
    rest_sum,
    span_sum,
    prompt_sum,
    rest_out,
    span_out,
    row,
    head,
    in_group,
    numbers,
    entries,
    EACH_HEAD: tl.constexpr,
    output,
    mass,
    HEADS: tl.constexpr,
    SIZE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
):
    """Moves the mass, and writes the mix of both groups' outputs."""
    # true for nan too, so that it is not lost
    has_rest = rest_sum != 0
    has_span = span_sum != 0
    both = has_rest & has_span
    rest_whole = tl.where(has_rest, rest_sum, 1.0)
    span_whole = tl.where(has_span, span_sum, 1.0)
    top_difference = tl.where(both, span_top, 0.0) - tl.where(both, rest_top, 0.0)
    log_odds = top_difference * _LN2 + tl.log(span_whole) - tl.log(rest_whole)
    if numbers is not None:
        numbers += row * HEADS + head if EACH_HEAD else row + head * 0
        bias = tl.load(numbers, mask=in_group, other=0.0)
        exponent = tl.load(numbers + entries, mask=in_group, other=1.0)
        floor = tl.load(numbers + 2 * entries, mask=in_group, other=-float("inf"))
        log_odds = move_log_odds(log_odds, bias, exponent, floor)
    span_share = tl.where(both, sigmoid(log_odds), tl.where(has_span, 1.0, 0.0))
    rest_share = tl.where(both, sigmoid(-log_odds), tl.where(has_rest, 1.0, 0.0))
    span_part = span_out * (span_share / span_whole)[:, None]
    mixed = span_part + rest_out * (rest_share / rest_whole)[:, None]
    dim = tl.arange(0, BLOCK_SIZE)
    output_ptr = output + (row * HEADS + head)[:, None] * SIZE + dim[None, :]
    is_written = in_group[:, None] & (dim < SIZE)[None, :]
    tl.store(output_ptr, mixed.to(output.dtype.element_ty), mask=is_written)
    if mass is not None:
        tl.store(mass + row * HEADS + head, span_share * prompt_sum / span_whole, mask=in_group)
