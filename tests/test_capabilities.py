"""Kinds of method, what they need and what models offer are data; a refusal names both."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
from tiny import chat, model

from holdfast import AdaCad, Boost, Guidance, Hold, Pasta, Repetition, SplitSoftmax, methods
from holdfast.errors import ModelError, UsageError
from holdfast.methods import Ability, Kind, Spotlight
from holdfast.methods.heads import with_heads
from holdfast.methods.kinds import REQUIRED
from holdfast.models.capabilities import check_requirements, supports

ATTENTION = (SplitSoftmax(0.5), Boost(2))
MIXED = (Repetition(0.5), ATTENTION[0], Guidance(2.0), ATTENTION[1])
TALK = chat("always talk about cheese", "the old town")


@dataclass(frozen=True)
class Louder:
    """A custom method that declares no kind."""

    name: ClassVar[str] = "louder"
    heads: ClassVar[None] = None
    span_includes_generated: ClassVar[bool] = False
    by: float = 1.0

    def shift(self, log_odds, layer):
        return log_odds + self.by


class Torn(Louder):
    name: ClassVar[str] = "torn"

    def edit(self, messages, seed):
        return tuple(messages)


class Decided(Torn):
    kind: ClassVar[Kind] = Kind.LOG_ODDS


class Odd(Louder):
    kind: ClassVar[str] = "log-odds"


class Empty(Louder):
    kind: ClassVar[Kind] = Kind.STREAM


@pytest.mark.parametrize("made", (*MIXED, Pasta(0.1), Spotlight(0.3), Hold()), ids=str)
def test_every_method_declares_its_kind_and_its_requirements(made):
    assert isinstance(type(made).kind, Kind) and made.kind is methods.kind_of(made)
    assert methods.requirements(made) == getattr(made, "requires", REQUIRED[made.kind])


def test_methods_are_selected_by_kind():
    assert methods.of_kind(MIXED, Kind.LOG_ODDS) == ATTENTION
    assert methods.of_kind(MIXED, Kind.MESSAGES) == (Repetition(0.5),)
    assert methods.of_kind(MIXED, Kind.STREAM) == (Guidance(2.0),)
    assert methods.kind_of(7) is None and methods.kind_of(len) is None


def test_a_custom_method_has_the_kind_whose_functions_it_defines():
    assert methods.read_methods([Louder()]) == (Louder(),)
    assert methods.kind_of(Louder()) is Kind.LOG_ODDS
    assert methods.requirements(Louder()) == {Ability.LOG_ODDS}
    assert methods.kind_of(Decided()) is Kind.LOG_ODDS
    assert methods.read_methods(Decided()) == (Decided(),)


TWO = r"Torn has the functions of Kind\.LOG_ODDS and Kind\.MESSAGES; declare.*kind ="
WRONG = (
    (Torn(), TWO),
    (Odd(), r"Odd declares the kind 'log-odds'; give it one of Kind\.LOG_ODDS"),
    (Empty(), "Empty lacks other and guide; a method of its kind has name, other, guide"),
)


@pytest.mark.parametrize(("wrong", "says"), WRONG)
def test_a_kind_that_does_not_match_the_class_is_refused(wrong, says):
    with pytest.raises(UsageError, match=says):
        methods.read_methods([wrong])


def test_a_refusal_names_what_is_needed_and_what_is_offered():
    offered = frozenset({Ability.MESSAGES, Ability.SECOND_STREAM, Ability.REPLY_SCORES})
    check_requirements((Repetition(1), Guidance(2.0)), offered, "the model", "use another")
    says = r"boost:factor=3 needs attention, and the model offers .* alone; use another\."
    with pytest.raises(ModelError, match=says):
        check_requirements((Guidance(2.0), Boost(3)), offered, "the model", "use another")
    with pytest.raises(ModelError, match=r"attention and a rehearsed reply, .*messages alone"):
        check_requirements((Hold(),), frozenset({Ability.MESSAGES}), "the model", "use another")
    with pytest.raises(UsageError, match="guidance and adacad each need a second stream"):
        check_requirements((Guidance(2.0), AdaCad()), offered, "the model", "")


def test_models_declare_what_they_offer():
    import holdfast

    endpoint = holdfast.connect("http://localhost:1/v1", "m", "NO_SUCH_KEY")
    assert endpoint.capabilities == {Ability.MESSAGES, Ability.PIECES}
    assert model().capabilities == set(Ability)
    attention = {Ability.LOG_ODDS, Ability.KEYS, Ability.REHEARSAL}
    assert model("mamba").capabilities == set(Ability) - attention
    assert supports(object(), Ability.MESSAGES) and not supports(object(), Ability.REPLY_SCORES)
    with pytest.raises(ModelError, match=r"guidance:scale=2 needs a second stream.*messages alone"):
        endpoint.generate(TALK, [Guidance(2.0)])
    with pytest.raises(ModelError, match=r"boost:factor=3 needs attention.*MambaForCausalLM"):
        model("mamba").generate(TALK, [Boost(3)])


def test_only_a_dataclass_method_can_be_put_on_chosen_heads():
    class Plain:
        name, heads, span_includes_generated = "plain", None, False

        def shift(self, log_odds, layer):
            return log_odds

    with pytest.raises(UsageError, match=r"Plain cannot be put on chosen heads; .*dataclass"):
        with_heads(Plain(), [(0, 0)])
    assert with_heads(Boost(2), [(0, 1)]) == Boost(2, {(0, 1)})
    assert with_heads(Boost(2, {(0, 1)}), None) == Boost(2)
