# mypy: disable-error-code="no-untyped-call, no-untyped-def, untyped-decorator"
"""Moves the outputs of steered rows towards those of their span, from vLLM's paged cache, on a GPU.

vLLM's own attention leaves an output O and a log-sum-exp for every query. This kernel attends only
to the keys of the span, wherever in their pages they begin and end, and writes

    O + c * (O_span - O),    c = (pi' - pi) / (1 - pi),    pi = exp(lse_span - lse),

where pi' is the mass that the steering table maps pi to. No sum is subtracted from another, so a
key outside the span with nearly all the weight causes no cancellation.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from holdfast.attention.gpu_table import moved, padded_size, product, sigmoid

_LOG2E = 1.4426950408889634
_NOWHERE = 2**30  # a column beyond every context


@dataclass(frozen=True)
class KernelTable:
    """The steering table of a layer: x' = max(logit(sigmoid(x + bias)**exponent), floor).

    x is the log-odds of the attention mass on the span. A query that sees only the span, or none of
    it, is left unchanged.

    Args:
        bias: float32 [B, H]; 0 changes nothing.
        exponent: float32 [B, H], at least 0; 1 changes nothing.
        floor: float32 [B, H]; -inf changes nothing.
    """

    bias: Tensor
    exponent: Tensor
    floor: Tensor


@dataclass(frozen=True)
class Queries:
    """The queries of a pass that are moved: a run for each of N rows.

    Args:
        rows: int32 [N], numbers of the rows in the batch.
        first, count, position: int32 [N], the first query of each run in the pass, the number of
            its queries, and the position of the first in its context.
        ranges: int32 [N, P, 2], the span's token ranges; (0, 0) is empty.
        generated: int32 [N], the first token that counts as the span because it was generated;
            `NOWHERE` if none does.
        tiles: int32 [T, 2], for each program the number of a run and the first of its queries.
        most: maximum number of queries per program.
    """

    rows: Tensor
    first: Tensor
    count: Tensor
    position: Tensor
    ranges: Tensor
    generated: Tensor
    tiles: Tensor
    most: int

    NOWHERE = _NOWHERE


def queries_of(
    runs: list[tuple[int, int, int, int]],
    ranges: list[tuple[tuple[int, int], ...]],
    generated: list[int],
    repeats: int,
    device: torch.device,
) -> Queries:
    """The queries of a pass, on the device.

    Args:
        runs: (row, first query, count, position) of each run.
        ranges: the span of each run.
        generated: see `Queries`.
        repeats: query heads that share a key head; they are side by side in a tile.
        device: of the cache.
    """
    longest = max(count for _, _, count, _ in runs)
    most = max(1, min(64 // repeats, 1 << (longest - 1).bit_length()))
    parts = max(len(some) for some in ranges)
    padded = [[*some, *[(0, 0)] * (parts - len(some))] for some in ranges]
    tiles = [
        (number, start)
        for number, (_, _, count, _) in enumerate(runs)
        for start in range(0, count, most)
    ]
    # One tensor, so that there is only one copy to the device.
    flat = [value for run in zip(*runs, strict=True) for value in run] + generated
    flat += [place for some in padded for part in some for place in part]
    flat += [value for tile in tiles for value in tile]
    there = torch.tensor(flat, dtype=torch.int32).to(device, non_blocking=True)
    sizes = [len(runs)] * 5 + [len(runs) * parts * 2, len(tiles) * 2]
    row, first, count, position, begin, held, tile = there.split(sizes)
    return Queries(
        row, first, count, position, held.view(-1, parts, 2), begin, tile.view(-1, 2), most
    )


def move(
    output: Tensor,
    lse: Tensor,
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    pages: Tensor,
    queries: Queries,
    table: KernelTable,
    scaling: float,
    mass: Tensor | None = None,
) -> None:
    """Writes the moved outputs.

    Args:
        output: [query, head, size], of the whole pass; written to.
        lse: float32 [head, query], natural logarithms.
        query: like `output`.
        keys, values: [page, token, group, size], any strides with the size innermost.
        pages: int32 [row, page], of every row of the batch.
        queries: those that are moved.
        table: [N, head], of this layer.
        scaling: of the scores.
        mass: receives the mass of each run's last query after steering, without generated tokens;
            float32 [N, head] or more rows; None if it is not wanted.
    """
    heads, size = query.shape[1:]
    groups = keys.shape[2]
    repeats = heads // groups
    lines = max(16, triton.next_power_of_2(queries.most * repeats))
    _move_tile[(len(queries.tiles), groups)](
        output,
        lse,
        query,
        keys,
        values,
        pages,
        queries.rows,
        queries.first,
        queries.count,
        queries.position,
        queries.ranges,
        queries.generated,
        queries.tiles,
        table.bias,
        table.exponent,
        table.floor,
        mass,
        scaling * _LOG2E,
        pages.stride(0),
        output.stride(0),
        output.stride(1),
        lse.stride(0),
        query.stride(0),
        query.stride(1),
        keys.stride(0),
        keys.stride(1),
        keys.stride(2),
        values.stride(0),
        values.stride(1),
        values.stride(2),
        PAGE=keys.shape[1],
        PARTS=queries.ranges.shape[1],
        HEADS=heads,
        REPEATS=repeats,
        MOST=queries.most,
        LINES=lines,
        SIZE=size,
        BLOCK_SIZE=padded_size(size),
        BLOCK_KEYS=32,
        TRACE=mass is not None,
        WIDEN=query.device.type == "cpu",
        num_warps=4,
        num_stages=2,
    )


@triton.jit
def _move_tile(
    output,
    lse,
    query,
    keys,
    values,
    pages,
    rows,
    firsts,
    counts,
    positions,
    ranges,
    generated,
    tiles,
    bias,
    exponent,
    floor,
    mass,
    scaling,
    pages_row,
    output_query,
    output_head,
    lse_head,
    query_query,
    query_head,
    key_page,
    key_token,
    key_group,
    value_page,
    value_token,
    value_group,
    PAGE: tl.constexpr,
    PARTS: tl.constexpr,
    HEADS: tl.constexpr,
    REPEATS: tl.constexpr,
    MOST: tl.constexpr,
    LINES: tl.constexpr,
    SIZE: tl.constexpr,
    BLOCK_SIZE: tl.constexpr,
    BLOCK_KEYS: tl.constexpr,
    TRACE: tl.constexpr,
    WIDEN: tl.constexpr,
):
    """One tile of queries, for the heads that share a key head: a line per query and head."""
    tile = tl.program_id(0)
    group = tl.program_id(1)
    run = tl.load(tiles + 2 * tile)
    start = tl.load(tiles + 2 * tile + 1)
    row = tl.load(rows + run).to(tl.int64)
    count = tl.load(counts + run)
    line = tl.arange(0, LINES)
    index = start + line // REPEATS  # of the query in its run
    head = group * REPEATS + line % REPEATS
    there = (index < count) & (line < MOST * REPEATS)
    place = tl.load(firsts + run).to(tl.int64) + index  # of the query in the pass
    column = tl.load(positions + run) + index  # in its context
    within = tl.arange(0, BLOCK_SIZE)
    inside = there[:, None] & (within < SIZE)[None, :]
    asked = query + place[:, None] * query_query + head[:, None] * query_head + within[None, :]
    q = tl.load(asked, mask=inside, other=0.0)
    last = tl.load(positions + run) + tl.minimum(start + MOST, count)  # invisible from here on

    top = tl.full((LINES,), -float("inf"), tl.float32)
    total = tl.zeros((LINES,), tl.float32)
    proper = tl.zeros((LINES,), tl.float32)
    mixed = tl.zeros((LINES, BLOCK_SIZE), tl.float32)
    pages += row * pages_row
    keys += group * key_group
    values += group * value_group
    for part in tl.static_range(0, PARTS + 1):
        if part < PARTS:
            begin = tl.load(ranges + (run * PARTS + part) * 2)
            end = tl.minimum(tl.load(ranges + (run * PARTS + part) * 2 + 1), last)
        else:
            begin = tl.load(generated + run)
            end = last
        for from_key in range(begin, end, BLOCK_KEYS):
            key = from_key + tl.arange(0, BLOCK_KEYS)
            seen = key < end
            page = tl.load(pages + key // PAGE, mask=seen, other=0).to(tl.int64)
            token = (key % PAGE).to(tl.int64)
            sizes = seen[:, None] & (within < SIZE)[None, :]
            k = tl.load(
                keys + (page * key_page + token * key_token)[:, None] + within[None, :],
                mask=sizes,
                other=0.0,
            )
            v = tl.load(
                values + (page * value_page + token * value_token)[:, None] + within[None, :],
                mask=sizes,
                other=0.0,
            )
            nothing = tl.zeros((LINES, BLOCK_KEYS), tl.float32)
            scores = product(q, tl.trans(k), nothing, WIDEN) * scaling
            visible = seen[None, :] & (key[None, :] <= column[:, None])
            scores = tl.where(visible, scores, -float("inf"))
            higher = tl.maximum(top, tl.max(scores, 1))
            base = tl.where(higher == -float("inf"), 0.0, higher)
            p = tl.exp2(scores - base[:, None])
            decay = tl.exp2(top - base)
            top = higher
            total = total * decay + tl.sum(p, 1)
            proper = proper * decay
            if part < PARTS:
                proper += tl.sum(p, 1)
            mixed = product(p.to(v.dtype), v, mixed * decay[:, None], WIDEN)

    whole = tl.load(lse + head * lse_head + place, mask=there, other=0.0)
    has = there & (total > 0)
    log_mass = tl.where(has, top, 0.0) * 0.6931471805599453 + tl.log(tl.where(has, total, 1.0))
    log_mass = tl.minimum(log_mass - whole, -1e-7)  # above this the span is everything in float32
    rest = 1.0 - tl.exp(log_mass)
    entry = run * HEADS + head
    added = tl.load(bias + entry, mask=there, other=0.0)
    power = tl.load(exponent + entry, mask=there, other=1.0)
    least = tl.load(floor + entry, mask=there, other=-float("inf"))
    raised = moved(log_mass - tl.log(tl.maximum(rest, 1e-37)), added, power, least)
    share = 1.0 - sigmoid(-raised) / tl.maximum(rest, 1e-37)
    acts = has & ((added != 0) | (power != 1) | (least > -float("inf")))
    share = tl.where(acts, tl.minimum(tl.maximum(share, 0.0), 1.0), 0.0)
    result = output + place[:, None] * output_query + head[:, None] * output_head + within[None, :]
    before = tl.load(result, mask=inside, other=0.0).to(tl.float32)
    towards = mixed / tl.where(has, total, 1.0)[:, None]
    after = before + share[:, None] * (towards - before)
    tl.store(result, after.to(output.dtype.element_ty), mask=inside & (share > 0)[:, None])
    if TRACE:
        own = sigmoid(raised) * tl.where(has, proper, 0.0) / tl.where(has, total, 1.0)
        tl.store(mass + entry, tl.where(has, own, 0.0), mask=there & (index == count - 1))
