"""Files of head sets: written in the published format, read back, combined, or refused."""

import json
import pickle
from dataclasses import replace

import pytest
from tiny import model

from holdfast import Pasta, methods
from holdfast.errors import ParameterOutOfRange, UsageError
from holdfast.methods import HeadSet, Ranking, Shape, intersection, union, write_heads

HEADS = {(0, 1), (2, 0), (2, 3)}
TINY = Shape(3, 4, "tiny", "abc")


def test_head_files_are_written_in_the_published_format_and_read_back(tmp_path):
    write_heads(tmp_path / "plain.json", HEADS)
    assert json.loads((tmp_path / "plain.json").read_text()) == {"0": [1], "2": [0, 3]}
    write_heads(tmp_path / "ours.json", HEADS, TINY)
    assert json.loads((tmp_path / "ours.json").read_text())["made_for"]["layers"] == 3
    for name, made_for in (("plain", None), ("ours", TINY)):
        (pasta,) = methods.parse(f"pasta:alpha=0.1,heads={tmp_path / name}.json")
        assert pasta == Pasta(0.1, HEADS) and pasta.heads.made_for == made_for
        assert methods.spec_of([pasta]) == "pasta:alpha=0.1,heads=0.1/2.0/2.3"
        model().check([pasta])
        assert pickle.loads(pickle.dumps(pasta)).heads.made_for == made_for


def test_a_head_set_of_another_shape_is_refused_but_not_one_of_a_parent_model(tmp_path):
    write_heads(tmp_path / "large.json", HEADS, Shape(32, 32, "large"))
    message = r"large\.json.*chosen for large with 32 layers x 32 heads, but this model has 3 x 4"
    with pytest.raises(UsageError, match=message):
        model().check(methods.parse(f"pasta:alpha=0.1,heads={tmp_path / 'large.json'}"))
    write_heads(tmp_path / "plain.json", {(2, 9)})
    with pytest.raises(UsageError, match=r"head 9 .*plain\.json.* 4"):
        model().check(methods.parse(f"pasta:alpha=0.1,heads={tmp_path / 'plain.json'}"))
    model().check([Pasta(0.1, HeadSet(HEADS, Shape(3, 4, "parent", "another fingerprint")))])


@pytest.mark.parametrize(
    ("text", "parts"),
    (
        ('{"2": [0, 3, 0]}', ["head 0 in layer 2 twice"]),
        ('{"2": [0], "2": [1]}', ["layer 2 twice"]),
        ('{"2": [-1]}', ["head -1 in layer 2"]),
        ('{"2": [true]}', ["head True"]),
        ('{"2": [4], "made_for": {"layers": 3, "heads": 4}}', ["head 4 in layer 2", "of 4 heads"]),
        ('{"2": [1], "made_for": {"layers": 0, "heads": 4}}', ["0 layers"]),
        ("{}", ["names no heads"]),
        ("[[1, 2, 3]]", ["[[layer, head], ...]"]),
    ),
)
def test_bad_head_files_are_refused_by_file_and_head(tmp_path, text, parts):
    (tmp_path / "heads.json").write_text(text)
    with pytest.raises(UsageError) as excinfo:
        methods.parse(f"pasta:alpha=0.1,heads={tmp_path / 'heads.json'}")
    assert all(part in str(excinfo.value) for part in ["heads.json", *parts]), str(excinfo.value)


def test_rankings_are_combined_and_an_empty_intersection_suggests_a_larger_k():
    ranking = Ranking(((0, 0), (0, 1), (1, 0), (1, 1)), TINY)
    reverse = Ranking(((1, 1), (0, 1), (1, 0), (0, 0)), TINY)
    assert ranking.top(2) == {(0, 0), (0, 1)} and ranking.top(2).made_for == TINY
    shared = intersection([ranking, reverse], 2)
    assert shared == {(0, 1)} == HeadSet.intersection(ranking.top(2), reverse.top(2))
    assert shared.made_for == TINY
    assert union([ranking, reverse], 1) == {(0, 0), (1, 1)}
    with pytest.raises(UsageError) as excinfo:
        intersection([ranking, reverse], 1)
    assert excinfo.value.value == 1
    assert {k: excinfo.value.allowed[k] for k in (2, 3)} == {2: 1, 3: 2}, "heads in common by k"
    with pytest.raises(ParameterOutOfRange) as excinfo:
        ranking.top(5)
    assert (excinfo.value.option, excinfo.value.value) == ("k", 5)
    with pytest.raises(UsageError) as excinfo:
        union([ranking, replace(reverse, made_for=Shape(8, 8))], 1)
    assert (excinfo.value.value, excinfo.value.allowed) == ((8, 8), (3, 4))
