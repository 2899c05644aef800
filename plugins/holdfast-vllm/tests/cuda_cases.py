"""The cases of `test_cuda.py`, which runs them with Triton's interpreter: the CUDA backend from the
rows of the new runner to the outputs, with FlashAttention replaced by a few lines of PyTorch.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from holdfast_vllm import cuda
from holdfast_vllm.graphs import Buffers
from holdfast_vllm.moved_weights import RankHeads, move_weights, shift_of
from holdfast_vllm.moves import VisibleKeys, members, needs_three
from holdfast_vllm.status import Engine
from holdfast_vllm.wire import Admitted

from holdfast.methods import compile_methods, parse

HEADS = 4
GROUPS = 2
SIZE = 32
PAGE = 16
CONTEXTS = [40, 21, 33, 18]
QUERIES = [1, 21, 1, 5]
SLOTS = [7, 2, 11, 0]  # of the new runner, for the rows of the batch
SCALE = SIZE**-0.5


def admitted(spec, ranges, prompt, trace=""):
    """An admitted request whose prompt has a span and this many tokens."""
    return Admitted(compile_methods(parse(spec)).attention, ranges, prompt, trace)


ROWS = {  # the steered rows, by their slots
    7: admitted("split-softmax:exponent=0.4", ((3, 20),), 38, "traced"),
    2: admitted("pasta:alpha=0.1,heads=3.1/3.2/1.0", ((2, 5), (9, 12)), 21),
    0: admitted("pasta:alpha=0.2", ((1, 4),), 15),
}


def flash_attention(q, k, v, out, cu_seqlens_q, seqused_k, softmax_scale, block_table, **options):
    """Computes the output of vLLM's FlashAttention, with log-sum-exps [head, query]."""
    assert options["causal"] and options["return_softmax_lse"]
    lse = torch.zeros(q.shape[1], len(q))
    for row in range(len(seqused_k)):
        first = cu_seqlens_q[row].item()
        end = cu_seqlens_q[row + 1].item()
        scores, values = scores_of(q[first:end], k, v, block_table[row], seqused_k[row].item())
        out[first:end] = (scores.softmax(-1) @ values).transpose(0, 1)
        lse[:, first:end] = scores.logsumexp(-1)
    return out, lse


def scores_of(query, keys, values, pages, length):
    """Causal scores [head, query, key], and the values [head, key, size]."""
    positions = torch.arange(length)
    page_slots = pages[positions // PAGE].long(), positions % PAGE
    key, value = (
        part[page_slots].transpose(0, 1).repeat_interleave(HEADS // GROUPS, 0)
        for part in (keys, values)
    )
    scores = query.transpose(0, 1) @ key.mT * SCALE
    last = length - len(query) + torch.arange(len(query))
    return scores.masked_fill(positions > last[:, None], -torch.inf), value


def instance(kind, **attributes):
    """An object of a class of vLLM's, whose constructor needs a whole engine."""
    item = object.__new__(kind)
    vars(item).update(attributes)
    return item


def builder_of(engine, buffers=None):
    """The builder of an engine's plans; with buffers, as in a CUDA graph."""
    if buffers is not None:
        engine.masses.fetch = lambda: buffers.read(engine.masses)
    return instance(
        cuda.Builder, _engine=engine, _heads=RankHeads(0, HEADS), _buffers=buffers,
        num_heads_q=HEADS, num_heads_kv=GROUPS,
    )  # fmt: skip


def expected_output(query, cache, pages, length, row, layer):
    """The outputs [query, head, size] of one row from its scores, and its mass [head, query]."""
    keys, values = cache.transpose(1, 2).split(SIZE, dim=-1)
    scores, value = scores_of(query, keys, values, pages, length)
    weights = scores.softmax(-1)
    mass = None
    if row is not None:
        three = needs_three(row)
        query_positions = length - len(query) + torch.arange(len(query))
        groups = members([row], length, three)
        visible_keys = VisibleKeys(groups, query_positions[None])
        shift = shift_of((row.methods,), layer, HEADS, three)
        moved, masses = move_weights(scores.nan_to_num(neginf=0)[None], visible_keys, shift, True)
        weights = moved[0]
        mass = masses[0]
    return (weights @ value).transpose(0, 1), mass


IMPL = instance(
    cuda.Impl, num_heads=HEADS, num_kv_heads=GROUPS, head_size=SIZE, scale=SCALE,
    vllm_flash_attn_version=3,
)  # fmt: skip


@dataclass(frozen=True)
class Pass:
    """A forward pass of the rows in `SLOTS` through one layer.

    Args:
        query: [query, head, size].
        cache: the layer's keys and values, [page, group, place, 2 * size].
        pages: the pages of each row, [row, page].
        starts: the first query of each row, and the end of the last row's queries.
        lengths: how many tokens each row has.
    """

    layer: int
    query: torch.Tensor
    cache: torch.Tensor
    pages: torch.Tensor
    starts: torch.Tensor
    lengths: torch.Tensor

    @property
    def most_queries(self):
        return self.starts.diff().max().item()

    def plan(self, builder):
        """The plan that a builder makes for the pass."""
        return builder._plan(
            SimpleNamespace(
                num_reqs=len(SLOTS), req_idx=np.array(SLOTS), query_start_loc_cpu=self.starts,
                seq_lens=self.lengths, seq_lens_cpu_upper_bound=None,
                max_query_len=self.most_queries,
            )
        )  # fmt: skip

    def forward(self, plan):
        """The layer's output under a plan."""
        metadata = SimpleNamespace(
            num_actual_tokens=len(self.query), query_start_loc=self.starts, seq_lens=self.lengths,
            max_query_len=self.most_queries, max_seq_len=self.lengths.max().item(),
            block_table=self.pages, scheduler_metadata=None, max_num_splits=0, holdfast=plan,
        )  # fmt: skip
        output = torch.full_like(self.query, torch.nan)
        module = SimpleNamespace(layer_name=f"model.layers.{self.layer}.self_attn.attn")
        IMPL.forward(module, self.query, None, None, self.cache, metadata, output)
        return output

    def check(self, output, rows):
        """Compares an output with the formula; yields each traced row and its expected mass."""
        for number, slot in enumerate(SLOTS):
            row_queries = slice(self.starts[number], self.starts[number + 1])
            row = rows.get(slot)
            length = self.lengths[number].item()
            expected, mass = expected_output(
                self.query[row_queries], self.cache, self.pages[number], length, row, self.layer
            )
            torch.testing.assert_close(
                output[row_queries], expected, rtol=0, atol=1e-5, msg=f"slot {slot}"
            )
            if row is not None and row.trace:
                yield row, mass[:, -1]


def draw_pages(draw):
    """Shuffled pages, three for each row, and a cache in which they are."""
    pages = torch.randperm(16, generator=draw)[: len(SLOTS) * 3].reshape(-1, 3).int()
    return pages, torch.randn(16, GROUPS, PAGE, 2 * SIZE, generator=draw)


@pytest.mark.parametrize("layer", [0, 3])
def test_rows_of_the_new_runner_are_steered(monkeypatch, layer):
    monkeypatch.setattr(cuda.fa_utils, "flash_attn_varlen_func", flash_attention, raising=False)
    draw = torch.Generator().manual_seed(layer)
    engine = Engine()
    for slot, row in ROWS.items():
        engine.rows.put(slot, row)
    pages, cache = draw_pages(draw)
    query = torch.randn(sum(QUERIES), HEADS, SIZE, generator=draw)
    starts = torch.tensor([0, *np.cumsum(QUERIES)], dtype=torch.int32)
    lengths = torch.tensor(CONTEXTS, dtype=torch.int32)
    step = Pass(layer, query, cache, pages, starts, lengths)
    output = step.forward(step.plan(builder_of(engine)))
    for row, mass in step.check(output, ROWS):
        recorded = engine.masses.read(row.trace)["mass"][0]
        assert recorded == pytest.approx(mass.mean().item(), abs=1e-6)


def addresses_of(plan, layer):
    """The addresses of the tensors that a plan's kernel reads, and its numbers."""
    arguments = (*vars(plan.queries).values(), *vars(plan.buffers.layer(layer)[0]).values())
    return [value if isinstance(value, int) else value.data_ptr() for value in arguments]


def test_a_replayed_step_steers_the_current_rows(monkeypatch):
    """The captured plan serves all steps, as in a CUDA graph: only its buffers are rewritten."""
    monkeypatch.setattr(cuda.fa_utils, "flash_attn_varlen_func", flash_attention, raising=False)
    draw = torch.Generator().manual_seed(0)
    engine = Engine()
    layer = 3
    builder = builder_of(engine, Buffers.of(6, [0, 1, 2, 3], HEADS, torch.device("cpu")))
    pages, cache = draw_pages(draw)
    starts = torch.arange(len(SLOTS) + 1, dtype=torch.int32)
    lengths = torch.tensor(CONTEXTS, dtype=torch.int32)

    def draw_step():
        query = torch.randn(len(SLOTS), HEADS, SIZE, generator=draw)
        return Pass(layer, query, cache, pages, starts, lengths)

    captured = draw_step().plan(builder)
    for rows in ({}, ROWS, {7: ROWS[7]}, {2: ROWS[0], 0: ROWS[2]}, {}):
        engine.rows.by_number.clear()
        engine.rows.by_number.update(rows)
        lengths += 1
        step = draw_step()
        assert addresses_of(step.plan(builder), layer) == addresses_of(captured, layer)
        for row, mass in step.check(step.forward(captured), rows):
            recorded = torch.tensor(engine.masses.take(row.trace))[layer, :, -1]
            torch.testing.assert_close(recorded, mass, rtol=0, atol=1e-6)


def test_a_pass_with_nothing_steered_has_no_plan():
    builder = builder_of(Engine())
    common = SimpleNamespace(num_reqs=1, req_idx=np.array([3]))
    assert builder._plan(common) is None
    assert builder.use_cascade_attention() is False
