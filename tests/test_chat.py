"""The interface of chat models: what a request may hold."""

import pytest

from holdfast.chat import Request, Sampling
from holdfast.errors import KnobOutOfRange


def test_the_defaults_are_those_of_the_paper():
    assert Sampling() == Sampling(temperature=1.0, top_p=0.9, max_new_tokens=400)


@pytest.mark.parametrize("edge", [{"temperature": 0}, {"top_p": 1}, {"top_p": 1e-9}, {"max_new_tokens": 1}])
def test_the_ends_of_the_ranges_are_in_them(edge):
    knob, value = next(iter(edge.items()))
    assert getattr(Sampling(**edge), knob) == value


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -0.1},
        {"temperature": float("nan")},
        {"temperature": float("inf")},
        {"temperature": 10**400},
        {"temperature": "1"},
        {"temperature": True},
        {"top_p": 0},
        {"top_p": 1.01},
        {"max_new_tokens": 0},
        {"max_new_tokens": 1.5},
        {"max_new_tokens": True},
    ],
)
def test_a_value_outside_its_range_is_named(wrong):
    knob, value = next(iter(wrong.items()))
    with pytest.raises(KnobOutOfRange) as caught:
        Sampling(**wrong)
    assert knob in str(caught.value) and repr(value) in str(caught.value)


def test_editing_draws_from_the_conversation_where_it_is_given():
    assert Request((), seed=7).editing_seed == 7
    assert Request((), seed=7, conversation_seed=0).editing_seed == 0
