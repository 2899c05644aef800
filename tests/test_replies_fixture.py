"""The default model's replies equal the recorded ones token for token, under every method."""

import copy
import math
import sys
from pathlib import Path

import pytest
import torch

from holdfast.methods.all_methods import BY_NAME

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import replies_fixture as fixture


@pytest.fixture
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_the_default_model_replies_as_recorded(one_thread):
    recorded = fixture.read()
    if recorded["made_with"]["torch"] != torch.__version__:
        pytest.skip(f"the fixture is of torch {recorded['made_with']['torch']}; record it anew")
    assert fixture.differences(recorded["models"]["default"], fixture.compute("default")) == []


def test_the_fixture_covers_every_method():
    fitted = {method for methods in fixture.FITTED for method in methods}
    late = {"reminder"}  # adds nothing to dialogs as short as these
    named = {spec.partition(":")[0] for spec in fixture.METHODS}
    assert named | fitted | late == {*BY_NAME, "none"}
    answers = fixture.read()["models"]
    assert all(f"three/{method}/2" in answers["default"] for method in BY_NAME.keys() - late)
    for name in answers:
        specs = {spec.partition(":")[0] for spec in fixture.METHODS}
        assert all(f"three/{method}/2" in answers[name] for method in specs)
        assert "forks/boost/3" in answers[name] and "sixteen/15" in answers[name]
    assert fixture.FILE.stat().st_size < 300_000


@pytest.mark.parametrize(
    ("change", "line"),
    (
        ({"tokens": [1, 2, 4]}, "a: tokens were [1, 2, 3], are [1, 2, 4]"),
        ({"stop": "stop"}, "a: stop were length, are stop"),
        ({"masses": [0.5, 0.25003]}, "a: masses moved by up to 3e-05, more than 2e-05"),
        ({"masses": [0.5, math.nan]}, "a: masses moved by up to nan, more than 2e-05"),
        ({"masses": [0.5]}, "a: masses were 2, are 1"),
        ({"masses": [0.5, 0.25001]}, None),
    ),
)
def test_a_difference_is_named(change, line):
    before = {"a": {"tokens": [1, 2, 3], "stop": "length", "masses": [0.5, 0.25]}}
    after = copy.deepcopy(before)
    after["a"] |= change
    assert fixture.differences(before, after) == ([line] if line else [])
    assert fixture.differences(before, {}) == ["a: only in the fixture"]
