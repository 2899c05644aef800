"""The default model's replies equal the recorded ones token for token, under every method."""

import copy
import hashlib
import math
import sys
from types import SimpleNamespace

import pytest
import torch
from paths import ROOT

from holdfast import Reply
from holdfast.methods.all_methods import BY_NAME

sys.path.insert(0, str(ROOT / "benchmarks"))
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
    late, specs = {*fixture.UNCOVERED}, fixture.specs_by_name()
    answers = fixture.read()["models"]
    missing = [
        name for name in BY_NAME.keys() - late if f"three/{name}/2" not in answers["default"]
    ]
    assert not missing, f"run python benchmarks/replies_fixture.py, for replies under {missing}"
    later = {name.split("/")[1] for name in answers["default"] if name.startswith("mixed/")}
    assert BY_NAME.keys() - late <= {*fixture.MIXED} | later
    for name in answers:
        assert all(f"three/{method}/2" in answers[name] for method in specs)
        assert "forks/boost/3" in answers[name] and "sixteen/15" in answers[name]
    assert fixture.FILE.stat().st_size < 300_000


class BatchDigests:
    """A model whose replies are digests of the whole batch that they were made in."""

    def session(self):
        return self

    def generate_batch(self, requests):
        batch = repr([(r.messages, r.methods, r.sampling, r.seed, r.thread) for r in requests])
        digests = (hashlib.sha256(f"{batch}{n}".encode()).digest() for n in range(len(requests)))
        return [Reply("", tuple(digest), "stop") for digest in digests]

    def score(self, messages, replies, methods):
        return SimpleNamespace(log_probabilities=[0.0] * len(replies))


def test_a_method_that_is_added_adds_answers_and_changes_none():
    specs = fixture.specs_by_name()
    before = dict(fixture.answers_of("default", BatchDigests(), specs))
    specs["reminder"] = "reminder:every=4,depth=0,text=prompt"
    after = dict(fixture.answers_of("default", BatchDigests(), specs))
    assert {name: after[name] for name in before} == before
    new_answers = after.keys() - before.keys()
    assert {"three/reminder/2", "score/reminder", "mixed/reminder/3"} <= new_answers
    assert all("/reminder" in name for name in new_answers)


def test_answers_that_differ_by_rounding_stay_as_they_were_recorded():
    recorded = {"a": {"tokens": [1], "masses": [0.5]}, "gone": {"tokens": [2]}}
    current = {"a": {"tokens": [1], "masses": [0.500001]}, "new": {"tokens": [3]}}
    assert fixture.with_recorded(recorded, current) == {"a": recorded["a"], "new": current["new"]}
    new_answers = {"a": {"tokens": [4], "masses": [0.5]}}
    assert fixture.with_recorded(recorded, new_answers) == new_answers


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
