# mypy: disable-error-code="import-untyped, untyped-decorator, no-untyped-def, no-untyped-call"
"""Steered attention of a whole prompt, or a piece of it: flash attention with one accumulator.

A block of queries visits the keys of the group that has more of them in sight, span or rest, as
flash attention does. Of the other group it first sums the exponentials alone. Then both
log-sum-exps are known, so the table tells the weights of the groups, and the keys of the other
group are visited again and added to the same accumulator. So no second accumulator takes registers
from the inner loop, and steering costs the scores of the smaller group once more: next to nothing
for a system prompt in a long context. Tiles that hold only one group (`tiles.py`) are visited
without a mask, and tiles without the span never ask for it.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from holdfast.attention.cuda.arguments import LayerTable, padded_size, row_major
from holdfast.attention.cuda.product import product
from holdfast.attention.cuda.table import weights
from holdfast.attention.cuda.tiles import MIXED, REST, SPAN, Shape, Tiles

_LOG2E = 1.4426950408889634
_REST, _SPAN, _MIXED = tl.constexpr(REST), tl.constexpr(SPAN), tl.constexpr(MIXED)
_SUM, _BOTH, _ADD = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)  # what a visit is for


def shape_for(head_size: int, dtype: torch.dtype) -> Shape:
    """Sizes of blocks that fit a multiprocessor's registers and shared memory."""
    block = padded_size(head_size)
    if dtype == torch.float32:
        return Shape(64, 32) if block <= 64 else Shape(32, 32) if block <= 128 else Shape(32, 16)
    return Shape(128, 64) if block <= 128 else Shape(64, 32)


def prefill(
    query: Tensor, key: Tensor, value: Tensor, tiles: Tiles, table: LayerTable, scaling: float
) -> Tensor:
    """Attention of several queries per row, its mass on the span moved by the table.

    Args:
        query: [B, H, Q, D], D at most 256.
        key, value: [B, G, K, D] with H a multiple of G; any strides with D innermost.
        tiles: which columns each query sees and holds on to, cut by `shape_for` this dtype.
        table: of this layer.
        scaling: of the scores.

    Returns:
        [B, H, Q, D] in the dtype of the query, laid out as [B, Q, H, D]; 0 for queries that see
        nothing.
    """
    rows, heads, queries, size = query.shape
    query, key, value = (row_major(states) for states in (query, key, value))
    block, shape, sight = padded_size(size), tiles.shape, tiles.sight
    mask = None if sight.mask is None else row_major(sight.mask.expand(rows, -1, -1, -1))
    capability = torch.cuda.get_device_capability(query.device) if query.is_cuda else (8, 0)
    output = torch.empty(rows, queries, heads, size, dtype=query.dtype, device=query.device)
    with torch.cuda.device_of(query):  # Triton launches on the current device
        _attend_block[(triton.cdiv(queries, shape.queries) * rows * heads,)](
            query,
            key,
            value,
            tiles.members,
            tiles.order,
            tiles.places,
            None if mask is None else mask.view(torch.uint8),
            None if tiles.reach is None else tiles.reach.expand(rows, -1, -1).contiguous(),
            sight.offset,
            table.bias.contiguous(),
            table.exponent.contiguous(),
            table.floor.contiguous(),
            output,
            scaling * _LOG2E,
            queries,
            key.shape[2],
            tiles.order.shape[1],
            query.stride(0),
            query.stride(1),
            query.stride(2),
            key.stride(0),
            key.stride(1),
            key.stride(2),
            value.stride(0),
            value.stride(1),
            value.stride(2),
            0 if mask is None else mask.stride(0),
            0 if mask is None else mask.stride(2),
            HEADS=heads,
            REPEATS=heads // key.shape[1],
            CAUSAL=sight.causal and mask is None,
            SIZE=size,
            BLOCK_SIZE=block,
            BLOCK_QUERIES=shape.queries,
            BLOCK_KEYS=shape.keys,
            WIDEN=query.device.type == "cpu",
            num_warps=8,
            STAGES=stages(capability, size),
            num_stages=stages(capability, size),
        )
    return output.transpose(1, 2)


def stages(capability: tuple[int, int], head_size: int) -> int:
    """How many tiles are on their way at once: as many as shared memory holds."""
    data_centre = capability in ((8, 0), (9, 0), (10, 0))
    return 3 if data_centre or padded_size(head_size) <= 128 else 2


@triton.jit(do_not_specialize=["queries", "keys", "tiles"])
def _attend_block(
    query,
    key,
    value,
    members,
    order,
    places,
    mask,
    reach,
    offsets,
    bias,
    exponent,
    floor,
    output,
    scaling,
    queries,
    keys,
    tiles,
    query_row,
    query_head,
    query_column,
    key_row,
    key_head,
    key_column,
    value_row,
    value_head,
    value_column,
    mask_row,
    mask_query,
    HEADS: tl.constexpr,
    REPEATS: tl.constexpr,
    CAUSAL: tl.constexpr,
    SIZE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    BLOCK_QUERIES: tl.constexpr,
    BLOCK_KEYS: tl.constexpr,
    WIDEN: tl.constexpr,
    STAGES: tl.constexpr,
):
    """The output of one block of queries of one head."""
    blocks = tl.cdiv(queries, BLOCK_QUERIES)
    block = blocks - 1 - tl.program_id(0) % blocks  # those that see the most keys begin first
    head = tl.program_id(0) // blocks % HEADS
    row = (tl.program_id(0) // blocks // HEADS).to(tl.int64)
    index = block * BLOCK_QUERIES + tl.arange(0, BLOCK_QUERIES)
    within = tl.arange(0, BLOCK_SIZE)
    inside = (index < queries)[:, None] & (within < SIZE)[None, :]
    q = tl.load(
        query
        + row * query_row
        + head.to(tl.int64) * query_head
        + index.to(tl.int64)[:, None] * query_column
        + within[None, :],
        mask=inside,
        other=0.0,
    )
    key += row * key_row + (head // REPEATS).to(tl.int64) * key_head
    value += row * value_row + (head // REPEATS).to(tl.int64) * value_head
    members += row * tiles * BLOCK_KEYS
    order += row * tiles
    places += row * 3 * (tiles + 1)
    if mask is not None:
        mask += row * mask_row + index.to(tl.int64)[:, None] * mask_query

    begin = 0  # tiles from `begin` to `end` are seen by some queries, `first` to `last` by all
    first = 0
    last = tiles
    end = tiles
    column = index
    if mask is not None:
        reach += (row * blocks + block) * 4
        begin = tl.load(reach)
        first = tl.load(reach + 1)
        last = tl.load(reach + 2)
        end = tl.load(reach + 3)
    elif CAUSAL:
        lowest = block * BLOCK_QUERIES
        if offsets is not None:
            offset = tl.load(offsets + row).to(tl.int32)
            lowest += offset
            column += offset
        last = tl.minimum((lowest + 1) // BLOCK_KEYS, tiles)
        end = tl.minimum(tl.cdiv(lowest + BLOCK_QUERIES, BLOCK_KEYS), tiles)

    seen = (column, index, queries, begin, first, last, end)
    stored = (key, value, key_column, value_column, keys)
    lists = (order, places, members, mask, tiles)
    on_rest = _entry(lists, _REST, end) - _entry(lists, _REST, begin)
    on_span = _entry(lists, _SPAN, end) - _entry(lists, _SPAN, begin)
    most = (on_span > on_rest).to(tl.int32)  # the group with more tiles of its own
    least = 1 - most
    top = tl.full((BLOCK_QUERIES,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK_QUERIES,), tl.float32)
    mixed = tl.zeros((BLOCK_QUERIES, BLOCK_SIZE), tl.float32)
    q = (q, scaling)
    state = (top, total, mixed)
    most_top, most_total, mixed = _visit(
        q, stored, lists, seen, most, state,
        _BOTH, CAUSAL, SIZE, BLOCK_SIZE, BLOCK_KEYS, WIDEN, STAGES,
    )  # fmt: skip
    state = (top, total, mixed)
    least_top, least_total, mixed = _visit(
        q, stored, lists, seen, least, state,
        _SUM, CAUSAL, SIZE, BLOCK_SIZE, BLOCK_KEYS, WIDEN, STAGES,
    )  # fmt: skip

    swapped = most == _SPAN
    place = row * HEADS + head
    to_span, to_rest = weights(
        tl.where(swapped, most_top, least_top),
        tl.where(swapped, most_total, least_total),
        tl.where(swapped, least_top, most_top),
        tl.where(swapped, least_total, most_total),
        tl.load(bias + place),
        tl.load(exponent + place),
        tl.load(floor + place),
    )
    to_most = tl.where(swapped, to_span, to_rest) / tl.where(most_total > 0, most_total, 1.0)
    to_least = tl.where(swapped, to_rest, to_span) / tl.where(least_total > 0, least_total, 1.0)
    # The larger of the two is applied last: what half precision holds then reaches up to 1.
    larger = tl.maximum(tl.maximum(to_most, to_least), 1e-30)
    state = (least_top, to_least / larger, mixed * (to_most / larger)[:, None])
    _, _, mixed = _visit(
        q, stored, lists, seen, least, state,
        _ADD, CAUSAL, SIZE, BLOCK_SIZE, BLOCK_KEYS, WIDEN, STAGES,
    )  # fmt: skip
    mixed = mixed * larger[:, None]
    places_out = (row * queries + index)[:, None] * HEADS + head
    tl.store(
        output + places_out * SIZE + within[None, :],
        mixed.to(output.dtype.element_ty),
        mask=inside,
    )


@triton.jit
def _entry(lists, kind, tile):
    """Where the tiles of a kind that do not come before `tile` begin in the order."""
    _, places, _, _, tiles = lists
    return tl.load(places + kind * (tiles + 1) + tile)


@triton.jit
def _visit(
    query,
    stored,
    lists,
    seen,
    group,
    state,
    AIM: tl.constexpr,
    CAUSAL: tl.constexpr,
    SIZE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    BLOCK_KEYS: tl.constexpr,
    WIDEN: tl.constexpr,
    STAGES: tl.constexpr,
):
    """All keys of a group that the queries see.

    Args:
        query: the queries, and what their scores are multiplied with.
        stored: keys, values, what lies between two columns of each, and the number of keys.
        lists: of `Tiles`.
        seen: the queries' columns and indices, their number, and the tiles they see: those from the
            first number to the fourth by some, those from the second to the third by all.
        group: `REST` or `SPAN`.
        state: the largest score of each query, and the sum and the weighted values relative to it.
            To add, the largest score is known, and in place of the sum stands a factor.
        AIM: what is wanted: the sum, both, or values added by given weights.
    """
    top, total, mixed = state
    _, _, _, begin, first, last, end = seen
    order = lists[0]
    alone = _entry(lists, group, first)
    behind = _entry(lists, group, last)
    # Where a tile stands is read before its keys: Triton shares the stages among the two.
    for entry in tl.range(alone, behind, num_stages=2 * STAGES - 1):
        top, total, mixed = _tile(
            query, stored, lists, seen, group, tl.load(order + entry), top, total, mixed,
            AIM, False, CAUSAL, SIZE, BLOCK_SIZE, BLOCK_KEYS, WIDEN,
        )  # fmt: skip
    both = _entry(lists, _MIXED, begin)
    before = _entry(lists, group, begin)
    some = _entry(lists, _MIXED, end) - both
    more = some + alone - before
    for visit in range(0, more + _entry(lists, group, end) - behind):
        entry = tl.where(visit < more, before + visit - some, behind + visit - more)
        entry = tl.where(visit < some, both + visit, entry)
        top, total, mixed = _tile(
            query, stored, lists, seen, group, tl.load(order + entry), top, total, mixed,
            AIM, True, CAUSAL, SIZE, BLOCK_SIZE, BLOCK_KEYS, WIDEN,
        )  # fmt: skip
    return top, total, mixed


@triton.jit
def _tile(
    query,
    stored,
    lists,
    seen,
    group,
    tile,
    top,
    total,
    mixed,
    AIM: tl.constexpr,
    MASKED: tl.constexpr,
    CAUSAL: tl.constexpr,
    SIZE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    BLOCK_KEYS: tl.constexpr,
    WIDEN: tl.constexpr,
):
    """One tile of keys; MASKED where it has columns that are not the group's or not seen by all."""
    q, scaling = query
    key, value, key_column, value_column, keys = stored
    _, _, members, mask, _ = lists
    column, index, queries, _, _, _, _ = seen
    within = tl.arange(0, BLOCK_SIZE)
    places = tile * BLOCK_KEYS + tl.arange(0, BLOCK_KEYS)
    sizes = (within < SIZE)[None, :]
    if MASKED:
        sizes = sizes & (places < keys)[:, None]
    far = places.to(tl.int64)[:, None]
    k = tl.load(key + far * key_column + within[None, :], mask=sizes, other=0.0)
    nothing = tl.zeros((q.shape[0], BLOCK_KEYS), tl.float32)
    scores = product(q, tl.trans(k), nothing, WIDEN)
    if MASKED:
        own = (tl.load(members + places) == group)[None, :]
        if CAUSAL:
            own = own & (places[None, :] <= column[:, None])
        if mask is not None:
            there = (index < queries)[:, None] & (places < keys)[None, :]
            own = own & (tl.load(mask + places[None, :], mask=there, other=0) != 0)
        scores = tl.where(own, scores, -float("inf"))
    higher = top
    if AIM != _ADD:
        higher = tl.maximum(top, tl.max(scores, 1) * scaling)
    base = higher
    if MASKED:
        base = tl.where(higher == -float("inf"), 0.0, higher)
    p = tl.exp2(scores * scaling - base[:, None])  # one instruction before exp2
    if AIM == _ADD:
        p = p * total[:, None]
    else:
        decay = tl.exp2(top - base)
        total = total * decay + tl.sum(p, 1)
        top = higher
    if AIM == _BOTH:
        mixed = mixed * decay[:, None]
    if AIM != _SUM:
        v = tl.load(value + far * value_column + within[None, :], mask=sizes, other=0.0)
        mixed = product(p.to(v.dtype), v, mixed, WIDEN)
    return top, total, mixed
