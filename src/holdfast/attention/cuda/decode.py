# mypy: disable-error-code="import-untyped, untyped-decorator, no-untyped-def, no-untyped-call"
"""Steered attention of one query per row: every key and value is read once.

The matrix units take 16 queries at a time, and the query heads that share a key head are seldom
more than 8. So the queries stand there twice: one half of the rows sees the rest, the other the
span. A single running softmax over the 16 rows is then both accumulators, and steering costs a
mask. The keys are split among programs (flash decoding); a second, small kernel merges the splits,
and both groups by the table.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from holdfast.attention.cuda.arguments import Columns, LayerTable, padded_size, row_major
from holdfast.attention.cuda.product import product
from holdfast.attention.cuda.table import weights

_LOG2E = 1.4426950408889634
_LEAST_HALF, _MOST_HALF = 8, 32  # query heads of a program; half of the rows of its matrix product
_MOST_SPLITS = 64
_LEAST_KEYS = 128  # of a split, below which merging costs more than it gains


def decode(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    columns: Columns,
    table: LayerTable,
    scaling: float,
    trace: bool = False,
    splits: int | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Attention of one query per row, its mass on the span moved by the table.

    No value is read back to the host, and all shapes depend on those of the arguments alone.

    Args:
        query: [B, H, 1, D], D at most 256.
        key, value: [B, G, K, D] with H a multiple of G; any strides with D innermost.
        columns: which columns each row sees and holds on to.
        table: of this layer.
        scaling: of the scores.
        trace: whether the mass is asked for.
        splits: among how many programs the keys of a row are split; None: as many as fill the GPU.

    Returns:
        The output, [B, H, 1, D] in the dtype of the query, 0 in rows that see nothing; and the mass
        on the span after steering, float32 [B, H], or None. Generated columns that count as span
        are steered like it and not in this mass.
    """
    rows, heads, _, size = query.shape
    groups, keys = key.shape[1], key.shape[2]
    repeats = heads // groups
    half = min(_MOST_HALF, max(_LEAST_HALF, 1 << (repeats - 1).bit_length()))
    packs = groups * -(-repeats // half)
    splits = splits or _splits(query.device, rows * packs, keys)
    query, key, value, span = (row_major(states) for states in (query, key, value, columns.span))
    seen = None if columns.seen is None else row_major(columns.seen).view(torch.uint8)
    wide, device = torch.float32, query.device
    partial = torch.empty(rows * packs, splits, 2 * half, size, dtype=wide, device=device)
    sums = torch.empty(rows * packs, splits, 3, 2 * half, dtype=wide, device=device)
    output = torch.empty(query.shape, dtype=query.dtype, device=device)
    mass = torch.empty(rows, heads, dtype=wide, device=device) if trace else None
    block = padded_size(size)
    block_keys = max(16, min(64, 16384 // (block * query.element_size())))
    with torch.cuda.device_of(query):  # Triton launches on the current device
        _attend_split[(rows * packs, splits)](
            query,
            key,
            value,
            span.view(torch.uint8),
            seen,
            columns.first,
            columns.length,
            columns.prompt,
            columns.holds_generated,
            partial,
            sums,
            scaling * _LOG2E,
            keys,
            span.shape[1],
            splits,
            query.stride(0),
            query.stride(1),
            key.stride(0),
            key.stride(1),
            key.stride(2),
            value.stride(0),
            value.stride(1),
            value.stride(2),
            span.stride(0),
            0 if seen is None else seen.stride(0),
            PACKS=packs,
            GROUPS=groups,
            REPEATS=repeats,
            HALF=half,
            SIZE=size,
            BLOCK_SIZE=block,
            BLOCK_KEYS=block_keys,
            TRACE=trace,
            WIDEN=query.device.type == "cpu",
            num_warps=4,
            num_stages=3,
        )
        _merge_splits[(rows * heads,)](
            partial,
            sums,
            table.bias.contiguous(),
            table.exponent.contiguous(),
            table.floor.contiguous(),
            output,
            mass,
            splits,
            PACKS=packs,
            GROUPS=groups,
            REPEATS=repeats,
            HALF=half,
            BLOCK_SPLITS=max(2, 1 << (splits - 1).bit_length()),
            SIZE=size,
            BLOCK_SIZE=block,
            TRACE=trace,
            num_warps=4,
        )
    return output, mass


def _splits(device: torch.device, programs: int, keys: int) -> int:
    """Two programs fit a multiprocessor at once; beyond that, splits wait for one another."""
    processors = (
        torch.cuda.get_device_properties(device).multi_processor_count
        if device.type == "cuda"
        else 1
    )
    return max(1, min(_MOST_SPLITS, 2 * processors // programs, -(-keys // _LEAST_KEYS)))


@triton.jit(do_not_specialize=["keys", "width", "splits"])  # they change from step to step
def _attend_split(
    query,
    key,
    value,
    span,
    seen,
    firsts,
    lengths,
    prompts,
    holds_generated,
    partial,
    sums,
    scaling,
    keys,
    width,
    splits,
    query_row,
    query_head,
    key_row,
    key_head,
    key_column,
    value_row,
    value_head,
    value_column,
    span_row,
    seen_row,
    PACKS: tl.constexpr,
    GROUPS: tl.constexpr,
    REPEATS: tl.constexpr,
    HALF: tl.constexpr,
    SIZE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    BLOCK_KEYS: tl.constexpr,
    TRACE: tl.constexpr,
    WIDEN: tl.constexpr,
):
    """One split of the keys for the query heads of one pack: running softmax of span and rest.

    `partial` gets the weighted sums of values, [row and pack, split, 2 * HALF, SIZE]; `sums` the
    largest score, the sum of 2**(score - largest), and its part on the span proper.
    """
    pack = tl.program_id(0)
    split = tl.program_id(1)
    row = (pack // PACKS).to(tl.int64)
    group = (pack % PACKS) // (PACKS // GROUPS)
    slot = tl.arange(0, 2 * HALF)
    on_span = slot >= HALF
    head = (pack % (PACKS // GROUPS)) * HALF + slot % HALF  # among those of the group
    within = tl.arange(0, BLOCK_SIZE)
    whole: tl.constexpr = BLOCK_SIZE == SIZE

    q = tl.load(
        query + row * query_row + (group * REPEATS + head)[:, None] * query_head + within[None, :],
        mask=(head < REPEATS)[:, None] & (within < SIZE)[None, :],
        other=0.0,
    )
    key += row * key_row + group.to(tl.int64) * key_head
    value += row * value_row + group.to(tl.int64) * value_head
    span += row * span_row
    begin = 0
    if firsts is not None:
        begin = tl.load(firsts + row).to(tl.int32)
    end = keys
    if lengths is not None:
        end = tl.minimum(tl.load(lengths + row).to(tl.int32), keys)
    generated = keys  # columns from here on count as span
    if holds_generated is not None:
        generated = tl.where(
            tl.load(holds_generated + row), tl.load(prompts + row).to(tl.int32), keys
        )
    share = tl.cdiv(tl.maximum(end - begin, 0), splits * BLOCK_KEYS) * BLOCK_KEYS
    begin += split * share
    end = tl.minimum(end, begin + share)

    top = tl.full((2 * HALF,), -float("inf"), tl.float32)
    total = tl.zeros((2 * HALF,), tl.float32)
    proper = tl.zeros((2 * HALF,), tl.float32)
    mixed = tl.zeros((2 * HALF, BLOCK_SIZE), tl.float32)
    for start in range(begin, end, BLOCK_KEYS):
        column = start + tl.arange(0, BLOCK_KEYS)
        visible = column < end
        sizes = visible[:, None] if whole else visible[:, None] & (within < SIZE)[None, :]
        places = column.to(tl.int64)[:, None]
        k = tl.load(key + places * key_column + within[None, :], mask=sizes, other=0.0)
        v = tl.load(value + places * value_column + within[None, :], mask=sizes, other=0.0)
        named = tl.load(span + column, mask=visible & (column < width), other=0) != 0
        if seen is not None:
            visible &= tl.load(seen + row * seen_row + column, mask=visible, other=0) != 0
        held = named | (column >= generated)
        nothing = tl.zeros((2 * HALF, BLOCK_KEYS), tl.float32)
        scores = product(q, tl.trans(k), nothing, WIDEN)
        own = (held[None, :] == on_span[:, None]) & visible[None, :]
        scores = tl.where(own, scores, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 1) * scaling)
        base = tl.where(higher == -float("inf"), 0.0, higher)
        p = tl.exp2(scores * scaling - base[:, None])
        decay = tl.exp2(top - base)
        top = higher
        total = total * decay + tl.sum(p, 1)
        if TRACE:
            proper = proper * decay + tl.sum(tl.where(named[None, :], p, 0.0), 1)
        mixed = product(p.to(v.dtype), v, mixed * decay[:, None], WIDEN)

    place = pack.to(tl.int64) * splits + split
    sums += place * (6 * HALF) + slot
    tl.store(sums, top)
    tl.store(sums + 2 * HALF, total)
    if TRACE:
        tl.store(sums + 4 * HALF, proper)
    tl.store(  # a split without a column of the span has nothing to say about it
        partial + (place * (2 * HALF) + slot[:, None]) * SIZE + within[None, :],
        mixed,
        mask=(total > 0)[:, None] & (within < SIZE)[None, :],
    )


@triton.jit(do_not_specialize=["splits"])
def _merge_splits(
    partial,
    sums,
    bias,
    exponent,
    floor,
    output,
    mass,
    splits,
    PACKS: tl.constexpr,
    GROUPS: tl.constexpr,
    REPEATS: tl.constexpr,
    HALF: tl.constexpr,
    BLOCK_SPLITS: tl.constexpr,
    SIZE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    TRACE: tl.constexpr,
):
    """The output of one head of one row: its splits, and then span and rest."""
    place = tl.program_id(0)  # of [B, H]
    head = place % (GROUPS * REPEATS)
    within_group = head % REPEATS
    row = place // (GROUPS * REPEATS)
    pack = row * PACKS + head // REPEATS * (PACKS // GROUPS) + within_group // HALF
    slot = within_group % HALF
    within = tl.arange(0, BLOCK_SIZE)
    rest_top, rest_total, _, rest = _merged(
        partial, sums, splits, pack, slot, within, HALF, BLOCK_SPLITS, SIZE, False
    )
    span_top, span_total, proper, span = _merged(
        partial, sums, splits, pack, slot + HALF, within, HALF, BLOCK_SPLITS, SIZE, TRACE
    )
    on_span, on_rest = weights(
        span_top,
        span_total,
        rest_top,
        rest_total,
        tl.load(bias + place),
        tl.load(exponent + place),
        tl.load(floor + place),
    )
    on_span = on_span / tl.where(span_total > 0, span_total, 1.0)
    on_rest = on_rest / tl.where(rest_total > 0, rest_total, 1.0)
    steered = span * on_span + rest * on_rest
    tl.store(
        output + place.to(tl.int64) * SIZE + within,
        steered.to(output.dtype.element_ty),
        mask=within < SIZE,
    )
    if TRACE:
        tl.store(mass + place, proper * on_span)


@triton.jit
def _merged(
    partial,
    sums,
    splits,
    pack,
    slot,
    within,
    HALF: tl.constexpr,
    BLOCK_SPLITS: tl.constexpr,
    SIZE: tl.constexpr,
    TRACE: tl.constexpr,
):
    """Largest score, sum, sum on the span proper, and weighted sum of values over all splits."""
    split = tl.arange(0, BLOCK_SPLITS)
    inside = split < splits
    place = pack.to(tl.int64) * splits + split
    first = sums + place * (6 * HALF) + slot
    tops = tl.load(first, mask=inside, other=-float("inf"))
    top = tl.max(tops, 0)
    base = tl.where(top == -float("inf"), 0.0, top)
    decay = tl.exp2(tops - base)
    total = tl.sum(tl.load(first + 2 * HALF, mask=inside, other=0.0) * decay, 0)
    proper = 0.0
    if TRACE:
        proper = tl.sum(tl.load(first + 4 * HALF, mask=inside, other=0.0) * decay, 0)
    mixed = tl.load(
        partial + (place * (2 * HALF) + slot)[:, None] * SIZE + within[None, :],
        mask=(inside & (tops > -float("inf")))[:, None] & (within < SIZE)[None, :],
        other=0.0,
    )
    return top, total, proper, tl.sum(mixed * decay[:, None], 0)
