"""The cases of `test_triton.py`, which runs them in a process of its own: on the CPU by Triton's
interpreter, on a GPU as they are.

By hand: TRITON_INTERPRET=1 python -m pytest tests/triton_cases.py
"""

from __future__ import annotations

import math
from dataclasses import replace

import oracles
import pytest
import tiny
import torch
import triton
import triton.language as tl
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import DynamicCache

from holdfast import Boost, Pasta, SplitSoftmax, Spotlight
from holdfast.attention import Steering, steered
from holdfast.attention.cuda import steer
from holdfast.attention.cuda.arguments import Columns, LayerTable
from holdfast.attention.cuda.decode import decode
from holdfast.attention.cuda.prefill import prefill, shape_for
from holdfast.attention.cuda.table import moved
from holdfast.attention.cuda.tiles import Shape, Sight, cut

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# Inputs are what the dtype holds, so what is left is rounding: of float32 sums, of the weights that
# the second product takes, and of the output. The interpreter truncates bfloat16, a GPU rounds it.
TOLERANCE = {torch.float32: 3e-6, torch.float16: 3e-3, torch.bfloat16: 3e-2}
MASS = 2e-6  # the mass is float32 whatever the inputs
SMALL = Shape(16, 16)


def states(rows, heads, groups, queries, keys, size, dtype=torch.float32, seed=0):
    """Queries, keys and values, the keys in the middle of a larger cache."""
    draw = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=draw).to(dtype).to(DEVICE)

    cache = normal(2, rows, groups, keys + 5, size)
    return normal(rows, heads, queries, size), *cache[..., :keys, :]


def table(rows, heads, seed=0):
    """Entries of all kinds: drawn ones, neutral ones in every third column, and extremes."""
    draw = torch.Generator().manual_seed(seed)
    bias = torch.randn(rows, heads, generator=draw) * 2
    exponent = torch.rand(rows, heads, generator=draw)
    floor = torch.randn(rows, heads, generator=draw) * 2 - 2
    place = torch.arange(rows * heads).reshape(rows, heads)
    bias[place % 3 == 0], exponent[place % 3 == 0], floor[place % 3 == 0] = 0, 1, -math.inf
    bias[place % 7 == 1], bias[place % 7 == 2], exponent[place % 7 == 4] = 30, -30, 0
    floor[place % 7 == 5] = 50
    return LayerTable(*(entries.to(DEVICE) for entries in (bias, exponent, floor)))


def neutral(rows, heads):
    ones = torch.ones(rows, heads, device=DEVICE)
    return LayerTable(ones * 0, ones, ones * -math.inf)


def membership(columns, keys):
    """Span, span and generated columns that count as such, and columns in sight: bool [B, K]."""
    rows = columns.span.shape[0]
    column = torch.arange(keys, device=DEVICE)
    span = torch.zeros(rows, keys, dtype=torch.bool, device=DEVICE)
    width = min(keys, columns.span.shape[1])
    span[:, :width] = columns.span[:, :width]
    held, sight = span.clone(), torch.ones_like(span)
    if columns.holds_generated is not None:
        held |= columns.holds_generated[:, None] & (column >= columns.prompt[:, None])
    if columns.first is not None:
        sight &= column >= columns.first[:, None]
    if columns.length is not None:
        sight &= column < columns.length[:, None]
    return span, held, sight if columns.seen is None else sight & columns.seen


def expected(query, key, value, columns, entries, scaling, mask=None):
    """Output float64 [B, H, Q, D] and mass [B, H, Q], query by query."""
    rows, heads, queries, _ = query.shape
    span, held, sight = (part.tolist() for part in membership(columns, key.shape[2]))
    repeats = heads // key.shape[1]
    key, value = (part.double().repeat_interleave(repeats, 1) for part in (key, value))
    scores = query.double() @ key.mT * scaling
    scores = scores.masked_fill(~torch.tensor(sight, device=DEVICE)[:, None, None], -math.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    weights, masses = torch.zeros_like(scores), torch.zeros(rows, heads, queries).double()
    for row in range(rows):
        for head in range(heads):
            numbers = [float(part[row, head]) for part in vars(entries).values()]
            for place in range(queries):
                line = scores[row, head, place].tolist()
                moved_to, mass = oracles.steered_head(line, span[row], held[row], *numbers)
                weights[row, head, place] = torch.tensor(moved_to)
                masses[row, head, place] = mass
    return weights @ value, masses.to(DEVICE)


def largest(left, right):
    return float((left.double() - right.double()).abs().max())


def corners(keys):
    """A row for each place that a span can have: none, all, start, middle, end, pieces."""
    span = torch.zeros(6, keys, dtype=torch.bool, device=DEVICE)
    span[1] = True
    span[2, :5] = True
    span[3, keys // 3 : keys // 2] = True
    span[4, -3:] = True
    span[5, 1:3] = span[5, 20:37] = span[5, keys - 8] = True
    return span


@triton.jit
def _move(log_odds, bias, exponent, floor, out, COUNT: tl.constexpr):
    place = tl.arange(0, COUNT)
    shifted = moved(
        tl.load(log_odds + place),
        tl.load(bias + place),
        tl.load(exponent + place),
        tl.load(floor + place),
    )
    tl.store(out + place, shifted)


@pytest.mark.parametrize("exponent", [0.0, 1e-6, 0.01, 0.3, 0.5, 0.99, 1.0, 2.0])
def test_the_table_moves_log_odds_as_the_formula_does(exponent):
    x = torch.linspace(-80, 80, 128)
    for bias, floor in ((0.0, -math.inf), (30.0, -5.0), (-30.0, -math.inf), (0.7, 1e4)):
        numbers = [torch.full_like(x, number) for number in (bias, exponent, floor)]
        out = torch.empty_like(x, device=DEVICE)
        _move[(1,)](x.to(DEVICE), *(part.to(DEVICE) for part in numbers), out, COUNT=128)
        for before, after in zip(x.tolist(), out.tolist(), strict=True):
            exact = oracles.steering_table(before, *(float(part[0]) for part in numbers))
            if exact > 85:  # both say that all mass is on the span, to float32
                assert after > 85
            else:  # the sum x + bias is rounded, and so is the exponent
                assert after == pytest.approx(exact, rel=5e-7, abs=4e-6)
    assert exponent != 1 or torch.equal(_shifted(x, exponent), x)


def _shifted(x, exponent):
    out = torch.empty_like(x, device=DEVICE)
    numbers = (torch.full_like(x, number, device=DEVICE) for number in (0, exponent, -math.inf))
    _move[(1,)](x.to(DEVICE), *numbers, out, COUNT=x.numel())
    return out.cpu()


@pytest.mark.parametrize(
    ("dtype", "size", "heads", "groups"),
    [
        (torch.float32, 64, 4, 4),
        (torch.float32, 128, 8, 2),
        (torch.float16, 80, 8, 1),
        (torch.float16, 128, 12, 1),
        (torch.bfloat16, 128, 8, 2),
        (torch.bfloat16, 256, 8, 1),
        (torch.float32, 96, 36, 1),
    ],
)
def test_decoding_matches_the_formula(dtype, size, heads, groups):
    keys, scaling = 70, size**-0.5
    arguments = states(2, heads, groups, 1, keys, size, dtype)
    columns, entries = Columns(corners(keys)[[3, 5]]), table(2, heads)
    output, mass = decode(*arguments, columns, entries, scaling, trace=True, splits=2)
    exact, masses = expected(*arguments, columns, entries, scaling)
    assert output.dtype == dtype and largest(output, exact) < TOLERANCE[dtype]
    assert largest(mass, masses[..., 0]) < MASS


@pytest.mark.parametrize("splits", [1, 3])
def test_decoding_takes_any_span_in_ragged_rows(splits):
    keys = 61
    arguments = states(6, 4, 2, 1, keys, 64)
    whole = Columns(corners(keys)[:, :50])
    prompt = torch.tensor([40, 61, 30, 50, 61, 45], device=DEVICE)
    holds = torch.tensor([True, True, False, True, False, True], device=DEVICE)
    first = torch.tensor([0, 3, 17, 0, 60, 9], device=DEVICE)
    length = torch.tensor([61, 7, 61, 20, 61, 50], device=DEVICE)
    seen = torch.rand(6, keys, generator=torch.Generator().manual_seed(3)).to(DEVICE) > 0.4
    seen[2] = False
    cases = [
        whole,
        replace(whole, prompt=prompt, holds_generated=holds),
        replace(whole, first=first, length=length),
        Columns(whole.span, prompt.int(), holds, first.int(), length.int(), seen),
    ]
    for columns in cases if splits > 1 else cases[-1:]:
        entries = table(6, 4, seed=1)
        output, mass = decode(*arguments, columns, entries, 0.3, trace=True, splits=splits)
        exact, masses = expected(*arguments, columns, entries, 0.3)
        assert largest(output, exact) < TOLERANCE[torch.float32]
        assert largest(mass, masses[..., 0]) < MASS
    assert not output[2].any() and not mass[2].any()


def test_what_stands_behind_a_rows_length_is_never_read():
    query, key, value = states(2, 2, 1, 1, 40, 64)
    length = torch.tensor([9, 33], device=DEVICE)
    columns = Columns(corners(40)[[2, 2]], length=length)
    before, _ = decode(query, key, value, columns, table(2, 2), 0.1)
    key[0, :, 9:], value[0, :, 9:], value[1, :, 33:] = math.nan, math.nan, math.nan
    after, mass = decode(query, key, value, columns, table(2, 2), 0.1)
    assert torch.equal(before, after) and mass is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_neutral_table_is_plain_attention(dtype):
    query, key, value = states(3, 2, 1, 33, 33, 64, dtype)
    columns, entries = Columns(corners(33)[[0, 1, 5]]), neutral(3, 2)
    plain = torch.nn.functional.scaled_dot_product_attention(
        query.double(), key.double(), value.double(), is_causal=True, enable_gqa=True, scale=0.2
    )
    steered = prefill(query, key, value, cut(columns, 33, Sight(), SMALL), entries, 0.2)
    assert largest(steered, plain) < TOLERANCE[dtype]
    step, _ = decode(query[:, :, -1:], key, value, columns, entries, 0.2)
    assert largest(step, plain[:, :, -1:]) < TOLERANCE[dtype]
    without = replace(columns, span=torch.zeros_like(columns.span))
    again, _ = decode(query[:, :, -1:], key, value, without, entries, 0.2)
    assert largest(step, again) < (1e-6 if dtype == torch.float32 else TOLERANCE[dtype])


def test_scores_that_are_far_apart_are_steered_exactly():
    """Log-odds of about -80 and 80, beyond what one shared maximum could hold in half precision."""
    query, key, value = states(2, 2, 1, 3, 32, 64)
    span = corners(32)[[3, 3]]
    query[:] = key[:] = 0
    query[..., 0], key[..., 0] = 1, torch.randn(32, device=DEVICE)
    key[0, 0, span[0], 0] += 80
    key[1, 0, span[1], 0] -= 80
    causal = torch.ones(3, 32, dtype=torch.bool, device=DEVICE).tril(29)
    entries = LayerTable(*(torch.tensor(rows, device=DEVICE) for rows in FAR))
    tiles = cut(Columns(span), 32, Sight(offset=torch.tensor([29, 29], device=DEVICE)), SMALL)
    output = prefill(query, key, value, tiles, entries, 1.0)
    exact, masses = expected(query, key, value, Columns(span), entries, 1.0, causal)
    assert largest(output, exact) < 2e-5  # scores of 80 are rounded to 4e-6
    step, mass = decode(query[:, :, 2:], key, value, Columns(span), entries, 1.0, trace=True)
    assert largest(step, exact[:, :, 2:]) < 2e-5 and largest(mass, masses[..., 2]) < 1e-5
    assert 0.01 < float(masses[1, 0, 2]) < 0.99 and 0.01 < float(masses[0, 0, 2]) < 0.99


FAR = [[-80.0, 0.0], [80.0, 0.0]], [[1.0, 0.5], [1.0, 0.01]], [[-math.inf] * 2] * 2


@pytest.mark.parametrize(
    ("dtype", "size", "heads", "groups"),
    [
        (torch.float32, 64, 4, 1),
        (torch.float16, 80, 2, 2),
        (torch.float16, 256, 2, 1),
        (torch.bfloat16, 128, 8, 1),
    ],
)
def test_a_prompt_matches_the_formula(dtype, size, heads, groups):
    keys, scaling = 45, size**-0.5
    arguments = states(1, heads, groups, keys, keys, size, dtype)
    columns, entries = Columns(corners(keys)[3:4]), table(1, heads, seed=2)
    output = prefill(*arguments, cut(columns, keys, Sight(), SMALL), entries, scaling)
    causal = torch.ones(keys, keys, dtype=torch.bool, device=DEVICE).tril()
    exact, _ = expected(*arguments, columns, entries, scaling, causal)
    assert output.dtype == dtype and largest(output, exact) < TOLERANCE[dtype]


def test_the_blocks_that_a_gpu_takes_match_the_formula():
    """More than one block of queries, and tiles of every kind, at the sizes of a real pass."""
    arguments = states(1, 2, 1, 150, 150, 64)
    columns, entries = Columns(corners(150)[5:]), table(1, 2)
    columns.span[0, 60:130] = True
    shape = shape_for(64, torch.float16)
    output = prefill(*arguments, cut(columns, 150, Sight(), shape), entries, 0.2)
    causal = torch.ones(150, 150, dtype=torch.bool, device=DEVICE).tril()
    assert largest(output, expected(*arguments, columns, entries, 0.2, causal)[0]) < 3e-6


def test_a_prompt_takes_any_span_in_padded_rows():
    keys = 40
    arguments = states(6, 2, 1, keys, keys, 64)
    first = torch.tensor([0, 3, 17, 0, 39, 9], device=DEVICE)
    prompt = torch.tensor([30, 40, 20, 33, 12, 39], device=DEVICE)
    holds = torch.tensor([True, True, False, True, True, True], device=DEVICE)
    columns = Columns(corners(keys)[:, :38], prompt, holds, first)
    entries = table(6, 2, seed=3)
    output = prefill(*arguments, cut(columns, keys, Sight(), SMALL), entries, 0.3)
    causal = torch.ones(keys, keys, dtype=torch.bool, device=DEVICE).tril()
    exact, _ = expected(*arguments, columns, entries, 0.3, causal)
    assert largest(output, exact) < TOLERANCE[torch.float32]
    assert not output[4, :, :39].any() and output[4, :, 39].any()  # padding sees nothing


def test_a_piece_of_a_prompt_behind_cached_keys_is_that_piece():
    """Rows whose new tokens begin at columns of their own, in a cache that is longer than both."""
    query, key, value = states(2, 2, 1, 20, 50, 64)
    offset = torch.tensor([25, 12], device=DEVICE)
    columns, entries = Columns(corners(50)[[2, 5]]), table(2, 2)
    output = prefill(query, key, value, cut(columns, 50, Sight(offset=offset), SMALL), entries, 0.3)
    column = torch.arange(50, device=DEVICE)
    mask = column <= (offset[:, None] + torch.arange(20, device=DEVICE))[:, None, :, None]
    exact, _ = expected(query, key, value, columns, entries, 0.3, mask)
    assert largest(output, exact) < TOLERANCE[torch.float32]


@pytest.mark.parametrize("kind", ["window", "wide window", "padded", "random", "one for all"])
def test_a_mask_says_what_is_seen(kind):
    query, key, value = states(2, 2, 1, 37, 45, 64)
    columns, entries = Columns(corners(45)[[3, 5]]), table(2, 2)
    place = torch.arange(37, device=DEVICE)[:, None] + 8 - torch.arange(45, device=DEVICE)
    window = ((place >= 0) & (place < 12))[None, None]
    draw = torch.rand(2, 1, 37, 45, generator=torch.Generator().manual_seed(5)).to(DEVICE)
    padding = torch.tensor([0, 9], device=DEVICE)[:, None, None, None]
    mask = {
        "window": window.expand(2, 1, -1, -1),
        "wide window": ((place >= -3) & (place < 30)).expand(2, 1, -1, -1),
        "padded": (place >= 0) & (torch.arange(45, device=DEVICE) >= padding),
        "random": draw > 0.8,
        "one for all": window,
    }[kind]
    if kind == "random":
        mask[1, :, 10:30] = False
    sight = Sight(causal=False, mask=mask)
    output = prefill(query, key, value, cut(columns, 45, sight, Shape(16, 8)), entries, 0.3)
    exact, _ = expected(query, key, value, columns, entries, 0.3, mask)
    assert largest(output, exact) < TOLERANCE[torch.float32]


def test_without_a_mask_and_not_causal_all_is_seen():
    arguments = states(2, 2, 2, 20, 35, 64)
    columns, entries = Columns(corners(35)[[3, 5]]), table(2, 2)
    output = prefill(*arguments, cut(columns, 35, Sight(causal=False), SMALL), entries, 0.3)
    assert largest(output, expected(*arguments, columns, entries, 0.3)[0]) < 3e-6


def test_a_mask_leaves_a_run_of_tiles_that_need_none():
    place = torch.arange(32, device=DEVICE)
    mask = (place <= place[:, None]) & (place >= 4)
    tiles = cut(Columns(mask[:1]), 32, Sight(mask=mask[None, None]), Shape(8, 4))
    assert tiles.reach.tolist() == [[[1, 2, 2, 2], [1, 1, 2, 4], [1, 1, 4, 6], [1, 1, 6, 8]]]


def test_tiles_are_sorted_by_what_they_hold():
    span = torch.zeros(1, 48, dtype=torch.bool, device=DEVICE)
    span[0, 18:45] = True
    first = torch.tensor([5], device=DEVICE)
    tiles = cut(Columns(span, first=first), 80, Sight(), Shape(8, 8))
    # Tile 0 holds padding and the rest, 2 the rest and the span, 5 the span and the rest.
    assert tiles.order.tolist() == [[1, 6, 7, 8, 9, 3, 4, 0, 2, 5]]
    assert tiles.places[0, 0].tolist() == [0, 0, 1, 1, 1, 1, 1, 2, 3, 4, 5]
    assert tiles.places[0, 1].tolist() == [5, 5, 5, 5, 6, 7, 7, 7, 7, 7, 7]
    assert tiles.places[0, 2].tolist() == [7, 8, 8, 9, 9, 9, 10, 10, 10, 10, 10]


def _passes(model, span, prompt, methods, padding, trace, steps=1):
    """Logits and masses of a pass over the prompt and of steps behind it."""
    rows, columns = span.shape
    ids = torch.randint(6, 400, (rows, columns + steps), generator=torch.Generator().manual_seed(1))
    cache, seen = DynamicCache(), torch.ones(rows, columns + steps, dtype=torch.long)
    seen[0, :padding] = 0
    logits, masses = [], []
    for first, last in [(0, columns), *((columns + k, columns + k + 1) for k in range(steps))]:
        grown = torch.nn.functional.pad(span, (0, last - columns))
        steering = Steering(grown, methods, trace, prompt)
        with torch.inference_mode(), steered(steering):
            output = model(
                input_ids=ids[:, first:last].to(DEVICE),
                attention_mask=seen[:, :last].to(DEVICE) if padding else None,
                past_key_values=cache,
            )
        logits.append(output.logits[:, -1])
        masses += steering.seen
    return torch.stack(logits), torch.stack(masses) if trace else None


PASTA_HEADS = frozenset({(0, 0), (1, 2), (1, 3)})
BATCHES = {
    "a method of its own in each row": [
        [SplitSoftmax(0.4)],
        [Pasta(0.1, PASTA_HEADS)],
        [Boost(3.0), Spotlight(0.6)],
        [],
    ],
    "none": [[]] * 4,
}


@pytest.mark.parametrize(
    ("batch", "padding"),
    [
        ("a method of its own in each row", 0),
        ("a method of its own in each row", 3),
        ("none", 3),
    ],
)
def test_a_model_takes_the_kernels_and_gives_what_it_gave(batch, padding, monkeypatch):
    model = tiny.model("llama", num_hidden_layers=2).hf_model.to(DEVICE)
    span = torch.zeros(4, 13, dtype=torch.bool, device=DEVICE)
    span[:, 4:8] = True
    asked = span, [13, 11, 13, 13], BATCHES[batch], padding, True
    taken = []

    def noted(layer_pass, query, *states):
        taken.append(query.shape[2])
        return attend(layer_pass, query, *states)

    attend = steer.attend
    monkeypatch.setattr(steer, "attend", noted)
    monkeypatch.setattr(steer, "is_covered", lambda *states: False)
    logits, masses = _passes(model, *asked)
    assert not taken
    monkeypatch.setattr(steer, "is_covered", lambda *states: True)
    again, masses_again = _passes(model, *asked)
    assert taken == [13, 13, 1, 1]  # queries, by pass and layer
    assert largest(again, logits) < 1e-4 and largest(masses_again, masses) < 1e-5
    assert float(logits.abs().max()) > 1


class _Squared:
    """A method outside the family."""

    name, heads, span_includes_generated = "squared", None, False

    def shift(self, log_odds, layer):
        return log_odds * 2


def test_rows_outside_the_family_go_the_general_way():
    device, pasta = torch.device("cpu"), Pasta(0.1)
    inside = steer.layer_rows(((SplitSoftmax(0.5),), (pasta,), ()), 2, None, 3, device)
    assert inside.table.exponent.tolist() == [[0.5] * 3] * 2 + [[1] * 3] * 4
    assert inside.table.bias[2:4].tolist() == [[pytest.approx(math.log(10))] * 3] * 2
    assert inside.holds_generated.tolist() == [False, False, True, True, False, False]
    assert steer.layer_rows(((_Squared(),), ()), 1, None, 3, device) is None
    # A bias behind a power is no entry of the table, nor are two opinions on generated tokens.
    assert steer.layer_rows(((SplitSoftmax(0.5), Boost(2.0)),), 1, None, 3, device) is None
    assert steer.layer_rows(((pasta, Boost(2.0)),), 1, None, 3, device) is None
    of_heads = steer.layer_rows(((Pasta(0.1, PASTA_HEADS),),), 1, 1, 4, device)
    assert (of_heads.table.bias > 0).tolist() == [[False, False, True, True]]


class _Operations(TorchDispatchMode):
    """Notes the names of operations."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.names.add(function.overloadpacket.__name__)
        return function(*args, **(kwargs or {}))


def _step_and_prompt(arguments, span, methods):
    query, key, value = arguments
    outputs = []
    for states in ((query[:, :, -1:], key, value), arguments):
        steering = Steering(span, methods, trace=True)
        steering.enter(0)
        layer_pass = steer.taken(steering, 0, *states, None)
        outputs.append(steer.attend(layer_pass, *states, None, states[0].shape[2] > 1, 0.2))
    return outputs


def test_nothing_is_read_back_to_the_host(monkeypatch):
    monkeypatch.setattr(steer, "is_covered", lambda *states: True)
    arguments = states(2, 2, 1, 20, 20, 64)
    asked = arguments, corners(20)[[2, 3]], [[SplitSoftmax(0.5)], [Pasta(0.5)]]
    before = _step_and_prompt(*asked)  # the table is made once
    with _Operations() as noted:
        _step_and_prompt(*asked)
    assert "empty" in noted.names
    assert not noted.names & {"_local_scalar_dense", "nonzero", "equal", "is_nonzero"}
    if DEVICE == "cuda":
        torch.cuda.set_sync_debug_mode("error")
        try:
            again = _step_and_prompt(*asked)
        finally:
            torch.cuda.set_sync_debug_mode("default")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            captured = _step_and_prompt(*asked)
        graph.replay()
        assert all(map(torch.equal, before, again)) and all(map(torch.equal, before, captured))
