"""No reply breaks a measure, or takes more than its share of time."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from measure_rows import rows_of

from holdfast.measures import Measure, build

# One row per measure: spec, two replies that follow, two that do not.
EXAMPLES = [tuple(row.values()) for row in rows_of("measures.jsonl")]


MEASURES = [build(spec) for spec, _, _ in EXAMPLES]


def check(measure: Measure, text: str) -> None:
    first, second = measure.score(text), measure.score(text)
    assert 0 <= first.value <= 1 and isinstance(first.value, float), (measure, text, first)
    assert first.reason and first == second


CHARACTERS = (
    st.characters()
    | st.characters(categories=["Cs"])
    | st.sampled_from("\ud800😀\u0301'’-.!?,;:()[]{}\"\n\r\t 09٣²½ßİéA")
)
WORDS = 'the Yes, B) (C) { "a": } 1. - Mr. not A I twenty 99 😀 été ?'.split()
REPLIES = st.text(CHARACTERS) | st.lists(st.sampled_from([*WORDS, "\n"])).map(" ".join)


AWKWARD = "| |\n\t|\u200b|\ud83d|\udc00\ud800|\x00|😀|e\u0301|...|?!|{|[|(|\ufeff|'|-|٣".split("|")
LONG = 50_000
HOSTILE = 1_000_000
HOSTILE_RUNS = ["A ", "answer is (", "not A ", "{", "a-", "été ", '"A" ']
REPEATED_TEXTS = (
    'a|a |. |!|\n|(|[|{"a":|-|A, |9|1,|I love it. |love |not A |answer is |a.b.|😀|a\'|one |'
    "x\n \n|*|:) |the the |really "
).split("|")


def assert_scored_twice_alike(text):
    for measure in MEASURES:
        check(measure, text)


@settings(max_examples=150, deadline=None)
@given(REPLIES)
def test_no_string_breaks_a_measure(text):
    assert_scored_twice_alike(text)


@pytest.mark.parametrize("text", AWKWARD, ids=ascii)
def test_awkward_strings_break_no_measure(text):
    assert_scored_twice_alike(text)


@pytest.mark.slow
@pytest.mark.parametrize("run", REPEATED_TEXTS, ids=ascii)
def test_very_long_replies_take_no_quadratic_time(run):
    text = run * (LONG // len(run))
    for measure in MEASURES:
        start = time.process_time()
        measure.score(text)
        assert time.process_time() - start < 30, measure  # a quadratic one took 100 s and more


@pytest.mark.slow
def test_a_reply_of_a_megabyte_takes_seconds():
    text = "".join(run * (HOSTILE // len(HOSTILE_RUNS) // len(run)) for run in HOSTILE_RUNS)
    for measure in MEASURES:
        start = time.process_time()
        measure.score(text)
        assert time.process_time() - start < 15, measure
