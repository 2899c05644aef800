# mypy: disable-error-code="no-untyped-call, no-untyped-def, untyped-decorator"
"""Moves the outputs of steered rows towards those of their span, from vLLM's paged cache, on a GPU.

vLLM's own attention leaves an output O and a log-sum-exp for every query. This kernel attends only
to the keys of the span, wherever in their pages they begin and end, and writes

    O + c * (O_span - O),    c = (pi' - pi) / (1 - pi),    pi = exp(lse_span - lse),

where pi' is the mass that the steering table maps pi to. No sum is subtracted from another, so a
key outside the span with nearly all the weight causes no cancellation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from holdfast.attention.gpu_table import move_log_odds, padded_size, product, sigmoid

NONE_GENERATED = 2**30  # a position beyond every context: no generated token is in the span
_LOG2E = 1.4426950408889634
_LN2 = tl.constexpr(0.6931471805599453)
_MAX_LOG_MASS = tl.constexpr(-1e-7)  # above this, the mass is 1 in float32
_TINY = tl.constexpr(1e-37)
_MAX_TILE_LINES = 64  # queries of a tile, times the heads that share a key head
_BLOCK_KEYS = 32


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


class QueryRun(NamedTuple):
    """Consecutive queries of one row that are steered.

    Args:
        row: the number of the row in the batch.
        first_query: the first query, counted in the pass.
        num_queries: how many queries there are.
        position: the position of the first query in the row's context.
        span: token ranges, at least one.
        first_generated: the first token that counts as the span because it was generated;
            `NONE_GENERATED` if none does.
    """

    row: int
    first_query: int
    num_queries: int
    position: int
    span: Sequence[tuple[int, int]]
    first_generated: int = NONE_GENERATED


@dataclass(frozen=True)
class KernelQueries:
    """The queries of a pass that are steered, on the device: N runs, divided into T tiles.

    Args:
        rows: int32 [N], the number of each run's row in the batch.
        first_query, num_queries: int32 [N], its first query in the pass, and how many it has.
        position: int32 [N], the position of its first query in the row's context.
        first_generated: int32 [N], the first token that counts as the span because it was
            generated; `NONE_GENERATED` if none does.
        span: int32 [N, P, 2], token ranges; (0, 0) is empty.
        tiles: int32 [T, 2], for each program the number of a run, and its first query in the run.
        tile_size: the most queries of a tile.
    """

    rows: Tensor
    first_query: Tensor
    num_queries: Tensor
    position: Tensor
    first_generated: Tensor
    span: Tensor
    tiles: Tensor
    tile_size: int

    @classmethod
    def of(
        cls, runs: Sequence[QueryRun], heads_per_group: int, device: torch.device
    ) -> KernelQueries:
        """Copies runs to a device.

        Args:
            runs: at least one.
            heads_per_group: query heads that share a key head, and are side by side in a tile.
            device: of the cache.
        """
        longest = max(run.num_queries for run in runs)
        max_queries = _MAX_TILE_LINES // heads_per_group
        tile_size = max(1, min(max_queries, 1 << (longest - 1).bit_length()))
        parts = max(len(run.span) for run in runs)
        tiles = [
            (number, start)
            for number, run in enumerate(runs)
            for start in range(0, run.num_queries, tile_size)
        ]
        # one tensor, so that there is only one copy to the device
        numbers: list[int] = []
        for name in ("row", "first_query", "num_queries", "position", "first_generated"):
            numbers += [getattr(run, name) for run in runs]
        for run in runs:
            for part in (*run.span, *[(0, 0)] * (parts - len(run.span))):
                numbers += part
        for tile in tiles:
            numbers += tile
        on_device = torch.tensor(numbers, dtype=torch.int32).to(device, non_blocking=True)
        sizes = [len(runs)] * 5 + [len(runs) * parts * 2, len(tiles) * 2]
        rows, first, count, position, generated, span, flat_tiles = on_device.split(sizes)
        return cls(
            rows=rows,
            first_query=first,
            num_queries=count,
            position=position,
            first_generated=generated,
            span=span.view(-1, parts, 2),
            tiles=flat_tiles.view(-1, 2),
            tile_size=tile_size,
        )


def steer_outputs(
    output: Tensor,
    lse: Tensor,
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    pages: Tensor,
    queries: KernelQueries,
    table: KernelTable,
    scaling: float,
    mass: Tensor | None = None,
) -> None:
    """Moves the outputs of steered queries towards those of their span, in place.

    Args:
        output: [query, head, size], of the whole pass; written to.
        lse: float32 [head, query], natural logarithms.
        query: like `output`.
        keys, values: [page, token, group, size], any strides with the size innermost.
        pages: int32 [row, page], of every row of the batch.
        queries: the steered queries.
        table: the table of this layer, [N, head].
        scaling: factor of the scores.
        mass: receives the mass of each run's last query after steering, without generated tokens;
            float32 [N, head] or more rows; None if it is not recorded.
    """
    heads, head_size = query.shape[1:]
    groups = keys.shape[2]
    heads_per_group = heads // groups
    lines = max(16, triton.next_power_of_2(queries.tile_size * heads_per_group))
    _steer_tile[(len(queries.tiles), groups)](
        output,
        lse,
        query,
        keys,
        values,
        pages,
        queries.rows,
        queries.first_query,
        queries.num_queries,
        queries.position,
        queries.first_generated,
        queries.span,
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
        PAGE_SIZE=keys.shape[1],
        SPAN_PARTS=queries.span.shape[1],
        HEADS=heads,
        HEADS_PER_GROUP=heads_per_group,
        TILE_SIZE=queries.tile_size,
        LINES=lines,
        HEAD_SIZE=head_size,
        PADDED_SIZE=padded_size(head_size),
        BLOCK_KEYS=_BLOCK_KEYS,
        TRACE=mass is not None,
        WIDEN=query.device.type == "cpu",
        num_warps=4,
        num_stages=2,
    )


@triton.jit
def _steer_tile(
    output_ptr,
    lse_ptr,
    query_ptr,
    keys_ptr,
    values_ptr,
    pages_ptr,
    rows_ptr,
    first_query_ptr,
    num_queries_ptr,
    position_ptr,
    first_generated_ptr,
    span_ptr,
    tiles_ptr,
    bias_ptr,
    exponent_ptr,
    floor_ptr,
    mass_ptr,
    log2_scaling,
    pages_row_stride,
    output_query_stride,
    output_head_stride,
    lse_head_stride,
    query_query_stride,
    query_head_stride,
    key_page_stride,
    key_token_stride,
    key_group_stride,
    value_page_stride,
    value_token_stride,
    value_group_stride,
    PAGE_SIZE: tl.constexpr,
    SPAN_PARTS: tl.constexpr,
    HEADS: tl.constexpr,
    HEADS_PER_GROUP: tl.constexpr,
    TILE_SIZE: tl.constexpr,
    LINES: tl.constexpr,
    HEAD_SIZE: tl.constexpr,
    PADDED_SIZE: tl.constexpr,
    BLOCK_KEYS: tl.constexpr,
    TRACE: tl.constexpr,
    WIDEN: tl.constexpr,
):
    """Steers a tile of queries, for the heads that share a key head; a line per query and head."""
    group = tl.program_id(1)
    run = tl.load(tiles_ptr + 2 * tl.program_id(0))
    tile_start = tl.load(tiles_ptr + 2 * tl.program_id(0) + 1)  # in the run
    row = tl.load(rows_ptr + run).to(tl.int64)
    num_queries = tl.load(num_queries_ptr + run)
    run_position = tl.load(position_ptr + run)
    line = tl.arange(0, LINES)
    query_in_run = tile_start + line // HEADS_PER_GROUP
    query_in_pass = tl.load(first_query_ptr + run).to(tl.int64) + query_in_run
    position = run_position + query_in_run  # in the row's context
    head = group * HEADS_PER_GROUP + line % HEADS_PER_GROUP
    line_exists = (query_in_run < num_queries) & (line < TILE_SIZE * HEADS_PER_GROUP)
    dim = tl.arange(0, PADDED_SIZE)
    dim_exists = (dim < HEAD_SIZE)[None, :]
    query_offset = query_in_pass * query_query_stride + head * query_head_stride
    q = tl.load(
        query_ptr + query_offset[:, None] + dim[None, :],
        mask=line_exists[:, None] & dim_exists,
        other=0.0,
    )
    # no query of the tile sees a key from here on
    visible_end = run_position + tl.minimum(tile_start + TILE_SIZE, num_queries)

    # a running softmax over the keys of the span
    max_score = tl.full((LINES,), -float("inf"), tl.float32)
    sum_exp = tl.zeros((LINES,), tl.float32)
    prompt_sum_exp = tl.zeros((LINES,), tl.float32)  # without generated tokens
    weighted_values = tl.zeros((LINES, PADDED_SIZE), tl.float32)
    pages_ptr += row * pages_row_stride
    keys_ptr += group * key_group_stride
    values_ptr += group * value_group_stride
    for part in tl.static_range(0, SPAN_PARTS + 1):
        if part < SPAN_PARTS:
            part_ptr = span_ptr + (run * SPAN_PARTS + part) * 2
            part_start = tl.load(part_ptr)
            part_end = tl.minimum(tl.load(part_ptr + 1), visible_end)
        else:
            part_start = tl.load(first_generated_ptr + run)
            part_end = visible_end
        for block_start in range(part_start, part_end, BLOCK_KEYS):
            key = block_start + tl.arange(0, BLOCK_KEYS)
            key_exists = key < part_end
            page = tl.load(pages_ptr + key // PAGE_SIZE, mask=key_exists, other=0).to(tl.int64)
            token = (key % PAGE_SIZE).to(tl.int64)
            key_offset = page * key_page_stride + token * key_token_stride
            value_offset = page * value_page_stride + token * value_token_stride
            mask = key_exists[:, None] & dim_exists
            k = tl.load(keys_ptr + key_offset[:, None] + dim[None, :], mask=mask, other=0.0)
            v = tl.load(values_ptr + value_offset[:, None] + dim[None, :], mask=mask, other=0.0)
            zeros = tl.zeros((LINES, BLOCK_KEYS), tl.float32)
            scores = product(q, tl.trans(k), zeros, WIDEN) * log2_scaling
            is_visible = key_exists[None, :] & (key[None, :] <= position[:, None])
            scores = tl.where(is_visible, scores, -float("inf"))
            new_max = tl.maximum(max_score, tl.max(scores, 1))
            finite_max = tl.where(new_max == -float("inf"), 0.0, new_max)
            p = tl.exp2(scores - finite_max[:, None])
            decay = tl.exp2(max_score - finite_max)
            max_score = new_max
            sum_exp = sum_exp * decay + tl.sum(p, 1)
            prompt_sum_exp = prompt_sum_exp * decay
            if part < SPAN_PARTS:
                prompt_sum_exp += tl.sum(p, 1)
            weighted_values = product(p.to(v.dtype), v, weighted_values * decay[:, None], WIDEN)

    # log-odds of the mass on the span, before and after
    sees_span = line_exists & (sum_exp > 0)
    safe_sum_exp = tl.where(sees_span, sum_exp, 1.0)
    lse = tl.load(lse_ptr + head * lse_head_stride + query_in_pass, mask=line_exists, other=0.0)
    span_lse = tl.where(sees_span, max_score, 0.0) * _LN2 + tl.log(safe_sum_exp)
    log_mass = tl.minimum(span_lse - lse, _MAX_LOG_MASS)
    rest_mass = tl.maximum(1.0 - tl.exp(log_mass), _TINY)
    entry = run * HEADS + head
    bias = tl.load(bias_ptr + entry, mask=line_exists, other=0.0)
    exponent = tl.load(exponent_ptr + entry, mask=line_exists, other=1.0)
    floor = tl.load(floor_ptr + entry, mask=line_exists, other=-float("inf"))
    new_log_odds = move_log_odds(log_mass - tl.log(rest_mass), bias, exponent, floor)

    # output + c * (span_output - output)
    is_steered = sees_span & ((bias != 0) | (exponent != 1) | (floor > -float("inf")))
    c = 1.0 - sigmoid(-new_log_odds) / rest_mass
    c = tl.where(is_steered, tl.minimum(tl.maximum(c, 0.0), 1.0), 0.0)
    span_output = weighted_values / safe_sum_exp[:, None]
    output_offset = query_in_pass * output_query_stride + head * output_head_stride
    output_ptrs = output_ptr + output_offset[:, None] + dim[None, :]
    output = tl.load(output_ptrs, mask=line_exists[:, None] & dim_exists, other=0.0).to(tl.float32)
    steered = output + c[:, None] * (span_output - output)
    is_written = (line_exists & (c > 0))[:, None] & dim_exists
    tl.store(output_ptrs, steered.to(output_ptr.dtype.element_ty), mask=is_written)
    if TRACE:
        prompt_share = tl.where(sees_span, prompt_sum_exp, 0.0) / safe_sum_exp
        is_last = line_exists & (query_in_run == num_queries - 1)
        tl.store(mass_ptr + entry, sigmoid(new_log_odds) * prompt_share, mask=is_last)
