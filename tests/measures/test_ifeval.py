"""IFEval's 25 instructions as measures, each on edge cases."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measure_rows import rows_of

from holdfast.drift.sys_ifeval import measure_name
from holdfast.errors import UsageError
from holdfast.measures import build, catalogue
from holdfast.measures.ifeval_sentences import count_sentences

# an instruction, its arguments, replies that keep it, replies that do not
TABLE = [tuple(row.values()) for row in rows_of("ifeval.jsonl")]


def test_all_25_instructions_are_measures_and_in_the_table():
    names = {name for name, _, _ in catalogue() if name.startswith("ifeval_")}
    assert len(names) == 25
    assert {measure_name(id) for id, *_ in TABLE} == names


@pytest.mark.parametrize(("id", "arguments", "follows", "breaks"), TABLE)
def test_an_instruction_on_its_edge_cases(id, arguments, follows, breaks):
    measure = build({"name": measure_name(id), **arguments})
    assert [measure.score(reply).value for reply in follows] == [1.0] * len(follows)
    assert [measure.score(reply).value for reply in breaks] == [0.0] * len(breaks)
    assert measure.score("  \n").value == 0.0  # the paper's checkers refuse an empty reply, too


@pytest.mark.slow
@settings(deadline=None)
@given(text=st.text(alphabet=st.sampled_from("aB1.,?!*-<>[]\"'\n #🙂ß़")) | st.text())
def test_no_text_makes_an_instruction_raise(text):
    for id, arguments, *_ in TABLE:
        if id not in ("language:response_language",):  # has its own test, and is slow
            spec = {"name": measure_name(id), **arguments}
            loose = build({"name": "loosely", "measure": spec}).score(text).value
            assert build(spec).score(text).value <= loose <= 1.0


RUNS = ["<<" * 20_000, "*" * 40_000, "[" * 40_000, "```" * 10_000, '"' * 40_000]


@pytest.mark.slow
@pytest.mark.parametrize("text", RUNS)
def test_every_instruction_scores_long_texts_in_little_time(text):
    start = time.process_time()
    for id, arguments, *_ in TABLE:
        spec = {"name": measure_name(id), **arguments}
        assert build(spec).score(text).value in (0.0, 1.0)
    assert time.process_time() - start < 30


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('He said "Stop." Then he left.', 2),
        ("1. Wash it.\n2. Dry it.", 4),  # Punkt takes "1." for a sentence
        ("Dr. Byrne lives in the U.S. and leaves at 5 p.m. sharp.", 1),
        ("She left the U.S. The rest stayed.", 2),
        ("Well... I'm not sure... really. 😀", 3),
        ("no stop at all", 1),
        ("", 0),
    ],
)
def test_sentences_are_counted_as_punkt_does(text, count):
    assert count_sentences(text) == count


def test_loosely_leaves_out_the_first_line_the_last_and_stars():
    loose = build({"name": "loosely", "measure": {"name": "ifeval_punctuation_no_comma"}})
    assert loose.score("Sure, here:\nHello there").value == 1.0
    assert loose.score("Hello there\nBye, all").value == 1.0
    assert loose.score("Sure, here:\nHello there\nBye, all").value == 1.0
    assert loose.score("Hello, you\nand you\nall, too\nbye, now").value == 0.0
    ends = {"name": "ifeval_startend_end_checker", "end_phrase": "Bye"}
    assert build({"name": "loosely", "measure": ends}).score("Hello *Bye*").value == 1.0
    assert build(ends).score("Hello *Bye*").value == 0.0
    assert build(loose.spec) == loose


def test_a_wrong_argument_is_named():
    with pytest.raises(UsageError, match=r"'relation' .*less than.*'more than'"):
        words = {"name": "ifeval_length_constraints_number_words", "num_words": 3}
        build({**words, "relation": "more than"})
    with pytest.raises(UsageError, match=r"'measure' .*'loosely'"):
        build("loosely")
