"""Methods that learn from a model: their formulas, and the files that hold what they learned."""

import json
import math
import random

import oracles
import pytest
import torch
from fitted_files import METHODS, write_all, write_for
from safetensors.torch import save_file
from tiny import SHAPE, model

from holdfast import methods
from holdfast.errors import UsageError
from holdfast.methods import Capping, Prism, Seka, Vector
from holdfast.methods.all_methods import BY_NAME
from holdfast.methods.keys import rank_covering

LAYER = 1


HEAD_DIM = SHAPE["head_dim"]


ROUNDING = {"rel": 1e-4, "abs": 1e-5}  # float32 against float64 formulas


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    return {name: write_for(model(), folder / f"{name}.safetensors", name) for name in METHODS}


def columns(vectors: torch.Tensor) -> list[list[float]]:
    """The columns of a matrix as lists."""
    return vectors.T.double().tolist()


def states(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(5))


# Formulas


@pytest.mark.parametrize("gains", [(1.0, 0.0), (0.8, 0.2), (3.0, 5.0)])
def test_seka_equals_the_papers_formula(files, gains):
    method = Seka(files["seka"], *gains, coverage=0.6)
    keys = states(2, 3, 2, HEAD_DIM)
    edited = method.edit_keys(keys, LAYER)
    sides = [
        f"{sign}.{part}" for sign in ("positive", "negative") for part in ("vectors", "values")
    ]
    parts = {name: method.file.tensor(name)[method.file.index_of(LAYER)] for name in sides}
    for head in range(2):
        first = oracles.rank(parts["positive.values"][head].tolist(), 0.6)
        behind = oracles.rank(parts["negative.values"][head].tolist(), 0.6)
        positive = columns(parts["positive.vectors"][head])[:first]
        negative = columns(parts["negative.vectors"][head])[behind:]
        for row in range(2):
            for token in range(3):
                expected = oracles.seka(keys[row, token, head].tolist(), positive, negative, *gains)
                assert edited[row, token, head].tolist() == pytest.approx(expected, **ROUNDING)
        # as claimed, the part along the directions grows by half the gain
        before = oracles.projected(keys[0, 0, head].tolist(), positive)
        after = oracles.projected(edited[0, 0, head].tolist(), positive)
        if gains[1] == 0:
            assert after == pytest.approx([x * (1 + gains[0] / 2) for x in before], **ROUNDING)


def test_the_rank_is_the_smallest_that_reaches_the_coverage():
    draw = random.Random("coverage")
    for coverage in (1e-9, 0.3, 0.9, 0.998, 1.0):
        values = sorted((draw.random() for _ in range(12)), reverse=True)
        rank = int(rank_covering(torch.tensor(values).double(), coverage))
        assert rank == oracles.rank(values, coverage)
    assert int(rank_covering(torch.tensor([1.0, 0.0, 0.0]), 1.0)) == 1


@pytest.mark.parametrize("part", ("keys", "values"))
def test_prism_equals_the_papers_formula(files, part):
    method = Prism(files["prism"], 0.4, 0.7, coverage=0.5, offset=0.2)
    original = states(2, 3, 2, HEAD_DIM)
    edited = (method.edit_keys if part == "keys" else method.edit_values)(original, LAYER)
    index = method.file.index_of(LAYER)
    vectors = method.file.tensor(f"{part}.vectors")[index]
    values = method.file.tensor(f"{part}.values")[index]
    distances = method.file.tensor("distance" if part == "keys" else "values.distance")[index]
    gain = 0.4 if part == "keys" else 0.7
    for head in range(2):
        rank = oracles.rank(values[head].tolist(), 0.5)
        directions, distance = columns(vectors[head])[:rank], float(distances[head])
        for row in range(2):
            state = original[row, 2, head].tolist()
            expected = oracles.prism(state, directions, distance, 0.2, gain)
            assert edited[row, 2, head].tolist() == pytest.approx(expected, **ROUNDING)


@pytest.mark.parametrize(("percentile", "strength"), [(0, 1), (25, 1), (62.5, 0.5), (100, 1)])
def test_capping_equals_the_papers_formula_and_respects_the_cap(files, percentile, strength):
    method = Capping(files["capping"], percentile, strength)
    hidden = states(3, 7, 48) * 2
    edited = method.edit_hidden(hidden, LAYER)
    index = method.file.index_of(LAYER)
    direction = method.file.tensor("direction")[index].double().tolist()
    percents = method.file.tensor("percentiles")[index].double().tolist()
    low = math.floor(percentile)
    cap = percents[low] + (percentile - low) * (percents[min(low + 1, 100)] - percents[low])
    for row in range(3):
        for token in range(7):
            expected = oracles.capping(hidden[row, token].tolist(), direction, cap, strength)
            assert edited[row, token].tolist() == pytest.approx(expected, **ROUNDING)
            if strength == 1:
                assert oracles.dot(edited[row, token].tolist(), direction) <= cap + 1e-5
    below = torch.tensor([oracles.dot(h.tolist(), direction) < cap for h in hidden[0]])
    assert torch.equal(edited[0, below], hidden[0, below]), "unchanged below the cap"


def test_vectors_are_added(files):
    method = Vector(files["vector"], 1.5)
    hidden = states(2, 3, 48)
    addition = 1.5 * method.file.tensor("difference")[method.file.index_of(LAYER)]
    assert torch.allclose(method.edit_hidden(hidden, LAYER), hidden + addition)


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float64))
def test_states_keep_their_dtype(files, dtype):
    keys, hidden = states(1, 2, 2, HEAD_DIM).to(dtype), states(1, 2, 48).to(dtype)
    edited = (
        Seka(files["seka"]).edit_keys(keys, 0),
        Prism(files["prism"], value_gain=1.0).edit_values(keys, 0),
        Capping(files["capping"]).edit_hidden(hidden, 0),
        Vector(files["vector"]).edit_hidden(hidden, 0),
    )
    assert {tensor.dtype for tensor in edited} == {dtype}


# Files


def test_a_spelling_names_the_content_and_not_the_path(files, tmp_path, monkeypatch):
    source = files["seka"].path
    spelled = methods.spec_of([Seka(files["seka"], 2.0)])
    assert spelled == f"seka:file={files['seka'].digest},gain=2"
    copy = tmp_path / "copy.safetensors"
    copy.write_bytes(source.read_bytes())
    (seka,) = methods.parse(f"seka:file={copy},gain=2")
    assert seka == Seka(files["seka"], 2.0) and hash(seka) == hash(Seka(files["seka"], 2.0))
    assert methods.spec_of([seka]) == spelled and methods.parse(spelled) == (seka,)
    monkeypatch.setattr("holdfast.methods.fitted._FILES_READ", {})
    monkeypatch.chdir(tmp_path)
    assert methods.parse(spelled) == (seka,), "read from the folder"
    monkeypatch.setattr("holdfast.methods.fitted._FILES_READ", {})
    with pytest.raises(UsageError) as excinfo:
        methods.parse(spelled, files=False)
    assert (excinfo.value.option, excinfo.value.value) == ("file", files["seka"].digest)
    with pytest.raises(UsageError) as excinfo:
        methods.parse("seka:file=copy.safetensors", files=False)
    assert (excinfo.value.option, excinfo.value.value) == ("file", "copy.safetensors")


def test_files_of_another_kind_are_refused(files, tmp_path):
    truncated, foreign = tmp_path / "broken.safetensors", tmp_path / "foreign.safetensors"
    truncated.write_bytes(files["seka"].path.read_bytes()[:40])
    save_file({"weight": torch.zeros(2)}, foreign)
    for path, value, allowed in (
        (truncated, str(truncated), None),
        (foreign, str(foreign), None),
        (files["prism"].path, "prism", "seka"),
        ("seka.pt", "seka.pt", ".safetensors"),
    ):
        with pytest.raises(UsageError) as excinfo:
            methods.parse(f"seka:file={path}")
        assert excinfo.value.option == "file"
        assert (excinfo.value.value, excinfo.value.allowed) == (value, allowed)
    with pytest.raises(UsageError, match="No such file"):
        methods.parse(f"seka:file={tmp_path / 'none.safetensors'}")
    with pytest.raises(UsageError, match=r"seka:file=seka.safetensors"):
        methods.parse("seka:gain=2")


def test_a_file_that_changed_is_refused_when_it_is_used(tmp_path):
    fitted = write_for(model(), tmp_path / "v.safetensors", "vector", seed=11)
    replacement = write_for(model(), tmp_path / "w.safetensors", "vector", seed=12)
    fitted.path.write_bytes(replacement.path.read_bytes())
    with pytest.raises(UsageError) as excinfo:
        fitted.tensor("difference")
    assert (excinfo.value.value, excinfo.value.allowed) == (fitted.digest, replacement.digest)


def test_nothing_in_a_file_is_pickled_and_the_same_content_gives_the_same_bytes(tmp_path):
    first = write_for(model(), tmp_path / "a.safetensors", "seka", seed=4)
    second = write_for(model(), tmp_path / "b.safetensors", "seka", seed=4)
    assert first == second and first.path.read_bytes() == second.path.read_bytes()
    length = int.from_bytes(first.path.read_bytes()[:8], "little")
    header = json.loads(first.path.read_bytes()[8 : 8 + length])
    metadata = json.loads(header.pop("__metadata__")["holdfast"])
    assert metadata["on"]["fingerprint"] == model().fingerprint and metadata["method"] == "seka"
    assert {entry["dtype"] for entry in header.values()} == {"F32"}


def test_a_fitted_method_is_pickled_without_its_tensors(files):
    import pickle

    pickled = pickle.dumps(Seka(files["seka"], 2.0))
    assert len(pickled) < 1000 and pickle.loads(pickled) == Seka(files["seka"], 2.0)


def test_spellings_of_all_fitted_methods_parse_back(tmp_path, monkeypatch):
    write_all(tmp_path)
    monkeypatch.chdir(tmp_path)
    for name in METHODS:
        (method,) = methods.parse(f"{name}:file={name}.safetensors")
        assert type(method) is BY_NAME[name]
        assert methods.parse(methods.spec_of([method])) == (method,)
    (vector,) = methods.parse("vector:file=vector.safetensors,layers=0/2,tokens=reply")
    assert methods.spec_of([vector]).endswith(",tokens=reply,layers=0/2")
    with pytest.raises(UsageError) as excinfo:
        methods.parse("vector:file=vector.safetensors,layers=1-2")
    assert (excinfo.value.option, excinfo.value.value) == ("layers", "1-2")
