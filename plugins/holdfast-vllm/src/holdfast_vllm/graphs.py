"""Full CUDA graphs of decode steps: everything that changes between replays is in fixed buffers.

A graph replays kernels with the addresses and the grid of its capture. So row i of the batch is
run i of our kernel, and its query is query i. An unsteered row is a run without queries and with an
empty span: the kernel reads none of its keys and stores nothing. A step is set up by writing the
buffers before the replay; the mass is read from them before they are written again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from holdfast.methods.compiled import compile_methods, head_tables
from holdfast.methods.table import layer_table
from holdfast_vllm.kernel import NONE_GENERATED, KernelQueries, KernelTable
from holdfast_vllm.masses import Masses
from holdfast_vllm.moved_weights import Methods
from holdfast_vllm.moves import Move, counts_generated
from holdfast_vllm.wire import MAX_SPAN_PARTS


@dataclass
class Buffers:
    """The buffers of one engine, for its maximum number of rows.

    Args:
        flat: int32, all numbers of `queries` that change, in one tensor.
        queries: views of `flat`, with a run of at most one query for each row.
        tables: float32 [layer, 3, row, head], the steering tables.
        mass: float32 [layer, row, head], written by the kernel.
        indices: the index of each of the model's layers in `tables` and `mass`.
        written: the methods, by row, for which `tables` was written.
        recorded: rows whose mass to read after the last replay, with the names to keep it under.
    """

    flat: Tensor
    queries: KernelQueries
    tables: Tensor
    mass: Tensor
    indices: dict[int, int]
    written: tuple[Methods, ...] = ()
    recorded: list[tuple[int, str]] = field(default_factory=list)

    @classmethod
    def of(cls, rows: int, layers: Sequence[int], heads: int, device: torch.device) -> Buffers:
        """Makes buffers in which nothing is steered."""
        flat = torch.zeros(rows * (3 + 2 * MAX_SPAN_PARTS), dtype=torch.int32, device=device)
        count, position, generated, ranges = flat.split([rows] * 3 + [rows * 2 * MAX_SPAN_PARTS])
        order = torch.arange(rows, dtype=torch.int32, device=device)
        tiles = torch.stack([order, torch.zeros_like(order)], 1)
        ranges = ranges.view(rows, MAX_SPAN_PARTS, 2)
        queries = KernelQueries(
            rows=order,
            first_query=order,
            num_queries=count,
            position=position,
            first_generated=generated,
            span=ranges,
            tiles=tiles,
            tile_size=1,
        )
        tables = torch.zeros(len(layers), 3, rows, heads, device=device)
        mass = torch.zeros(len(layers), rows, heads, device=device)
        indices = {layer: index for index, layer in enumerate(layers)}
        buffers = cls(flat, queries, tables, mass, indices)
        buffers.write((), ())
        return buffers

    def first(self, rows: int) -> KernelQueries:
        """Returns the runs for a graph of `rows` rows."""
        all_rows = self.queries
        return KernelQueries(
            rows=all_rows.rows[:rows],
            first_query=all_rows.first_query[:rows],
            num_queries=all_rows.num_queries[:rows],
            position=all_rows.position[:rows],
            first_generated=all_rows.first_generated[:rows],
            span=all_rows.span[:rows],
            tiles=all_rows.tiles[:rows],
            tile_size=all_rows.tile_size,
        )

    def layer(self, number: int) -> tuple[KernelTable, Tensor]:
        """Returns the table of a layer, and the buffer for its mass."""
        index = self.indices[number]
        return KernelTable(*self.tables[index].unbind(0)), self.mass[index]

    def write(self, moves: Sequence[Move], methods: Sequence[Methods]) -> None:
        """Sets what the next replay moves.

        Args:
            moves: the queries of steered or traced rows, one per row.
            methods: the methods of each move, on the heads of this rank.
        """
        rows = len(self.queries.rows)
        values = torch.zeros(len(self.flat), dtype=torch.int32)
        count, position, generated, ranges = values.split([rows] * 3 + [rows * 2 * MAX_SPAN_PARTS])
        generated.fill_(NONE_GENERATED)
        ranges = ranges.view(rows, MAX_SPAN_PARTS, 2)
        by_row: list[Methods] = [()] * rows
        for move, row_methods in zip(moves, methods, strict=True):
            row = move.row
            parts = move.admitted.ranges
            count[row] = 1
            position[row] = move.position
            by_row[row] = row_methods
            ranges[row, : len(parts)] = torch.tensor(parts, dtype=torch.int32)
            if counts_generated(move.admitted):
                generated[row] = move.admitted.prompt
        self.flat.copy_(values)
        if tuple(by_row) != self.written:
            self._write_tables(tuple(by_row))
        self.recorded = [(move.row, move.admitted.trace) for move in moves if move.records_mass]

    def _write_tables(self, by_row: tuple[Methods, ...]) -> None:
        host = torch.device("cpu")
        heads = self.tables.shape[-1]
        names_heads = any(method.heads is not None for methods in by_row for method in methods)
        layers = list(self.indices) if names_heads else list(self.indices)[:1]
        rows = head_tables(map(compile_methods, by_row))
        assert rows is not None, "lists that three numbers cannot express are refused at admission"
        numbers = [layer_table(rows, layer, heads, torch.float32, host).numbers for layer in layers]
        stacked = torch.stack([table.expand(3, len(by_row), heads) for table in numbers])
        self.tables.copy_(stacked.expand_as(self.tables))
        self.written = by_row

    def read(self, masses: Masses) -> None:
        """Records the mass of the last replay where requested; waits for the replay to end."""
        recorded = self.recorded
        self.recorded = []
        if not recorded:
            return
        mass = self.mass.cpu()
        for row, name in recorded:
            for layer, index in self.indices.items():
                masses.record(name, layer, mass[index, row])
