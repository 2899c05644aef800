"""The steering table of attention methods, compared with the methods themselves."""

import itertools
import math

import method_examples
import oracles
import pytest
import torch

from holdfast import Boost, Pasta, SplitSoftmax, Spotlight
from holdfast.errors import UsageError
from holdfast.methods import Method, MethodKind
from holdfast.methods.compiled import compile_methods, head_tables
from holdfast.methods.table import LayerTable, TableEntry, TableMethod, layer_table

# Of log-odds, relative to 1 + |log-odds|, in float64: a few roundings of numbers up to 60.
DOUBLE = 5e-14
FINITE = torch.linspace(-60, 30, 181, dtype=torch.double)
LOG_ODDS = torch.cat([FINITE, torch.tensor([-math.inf, math.inf])])
EXAMPLES = [m for m in method_examples.of_kind(MethodKind.LOG_ODDS) if isinstance(m, TableMethod)]
SINGLE = [*EXAMPLES, *filter(None, map(method_examples.neutral, EXAMPLES))]
SINGLE += [SplitSoftmax(0.05), Spotlight(0.999)]


def by_the_entry(entry, log_odds):
    """The table's formula by the oracle; infinite log-odds stay as they are."""
    numbers = entry.bias, entry.exponent, entry.floor

    def shift(x):
        return x if math.isinf(x) else oracles.steering_table(x, *numbers)

    return torch.tensor([*map(shift, log_odds.tolist())], dtype=torch.double)


def by_the_methods(methods, log_odds):
    shifted = log_odds[None, None]
    for method in methods:
        shifted = method.shift(shifted, 0)
    return shifted[0, 0]


def apart(values, expected):
    finite = values.isfinite()
    assert torch.equal(values[~finite], expected[~finite])
    return ((values - expected)[finite].abs() / (1 + expected[finite].abs())).max()


def compose(methods):
    entry = TableEntry()
    for method in methods:
        entry = entry and entry.then(method.table_entry)
    return entry


@pytest.mark.parametrize("method", SINGLE, ids=repr)
def test_three_numbers_define_a_method(method):
    expected = by_the_methods([method], LOG_ODDS)
    assert apart(by_the_entry(method.table_entry, LOG_ODDS), expected) < DOUBLE


@pytest.mark.slow
def test_a_composed_entry_does_what_its_methods_do_one_after_another():
    outside: set[tuple[Method, ...]] = set()
    for count in (2, 3):
        for methods in itertools.product(SINGLE, repeat=count):
            entry = compose(methods)
            if entry is None:
                outside.add(methods)
                continue
            expected = by_the_methods(methods, LOG_ODDS)
            assert apart(by_the_entry(entry, LOG_ODDS), expected) < DOUBLE, methods
    pairs = {methods for methods in outside if len(methods) == 2}
    assert pairs == {
        (first, second)
        for first, second in itertools.product(SINGLE, repeat=2)
        if first.table_entry.exponent != 1 and second.table_entry.bias
    }, "only a bias after a power has no entry"


def test_a_mass_of_one_stays_one():
    """With an exponent of 0, `shift` stops at log-odds of 100, which is a mass of 1 in float64."""
    entry = compose([Boost(4), SplitSoftmax(0), SplitSoftmax(0.5), Spotlight(0.3)])
    assert entry.exponent == 0
    expected = by_the_methods([Boost(4), SplitSoftmax(0), SplitSoftmax(0.5)], LOG_ODDS).sigmoid()
    assert torch.equal(by_the_entry(entry, LOG_ODDS).sigmoid(), expected)
    assert compose([SplitSoftmax(0), Boost(4)]) is None


def test_a_list_of_methods_has_an_entry_for_every_head():
    """There is none for a bias after a power, nor if methods differ on generated tokens."""
    table = compile_methods((Boost(4), SplitSoftmax(0.5, {(1, 2)}))).table
    numbers = [(math.log(4), 0.5 if head == 2 else 1) for head in range(4)]
    assert [(entry.bias, entry.exponent) for entry in table.of_layer(1, 4)] == numbers
    assert table.of_layer(0, 2) == [Boost(4).table_entry] * 2
    assert compile_methods(()).table.of_layer(0, 2) == [TableEntry()] * 2
    assert compile_methods((SplitSoftmax(0.5), Boost(4))).table is None
    assert compile_methods((Pasta(0.01),)).table.entries == {None: Pasta(0.01).table_entry}
    assert compile_methods((Pasta(0.01), Spotlight(0.3))).table is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("numbers", [(0.7, 0.4, -1.0), (1.4, 1, -math.inf), (0, 0, -math.inf)])
def test_the_mass_and_the_rest_follow_from_the_shifted_log_odds(numbers, dtype):
    table = LayerTable.of([TableEntry(*numbers)] * 2).to(dtype, torch.device("cpu"))
    log_odds = LOG_ODDS.to(dtype).expand(1, 2, -1)
    shifted = table.shift(log_odds)
    finite = log_odds.isfinite()
    log_rest = torch.nn.functional.logsigmoid(-shifted)
    rounding = 1e-6 if dtype == torch.float32 else 1e-13
    assert torch.allclose(table.mass(log_odds), shifted.sigmoid(), atol=rounding, rtol=0)
    near = finite & (shifted < 80)  # beyond that, the rest is too small for float32
    assert torch.allclose(table.log_rest(log_odds)[near], log_rest[near], atol=1e-5, rtol=1e-5)


def test_a_layer_table_has_the_numbers_of_every_row_and_head():
    rows = [[Boost(4)], [], [Boost(4)], [Spotlight(0.3, {(1, 0)})]]
    table = layer_table(head_tables(map(compile_methods, rows)), 1, 2)
    assert table.numbers[0].tolist() == [[math.log(4)] * 2, [0, 0], [math.log(4)] * 2, [0, 0]]
    assert (table.numbers[2] > -math.inf).tolist() == [[False] * 2] * 3 + [[True, False]]
    assert table.adds and table.floors and not table.powers


@pytest.mark.parametrize("numbers", [{"bias": -0.1}, {"exponent": 1.5}])
def test_an_entry_that_lowers_the_mass_is_refused(numbers):
    with pytest.raises(UsageError) as excinfo:
        TableEntry(**numbers)
    assert excinfo.value.option == "table_entry"
