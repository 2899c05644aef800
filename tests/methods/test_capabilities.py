"""Kinds of method, what they need and what models offer are data; a refusal names both."""

import math
import pickle
import re
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest
import torch
from tiny import chat, model

import holdfast
from holdfast import (
    AdaCad,
    Boost,
    Guidance,
    Hold,
    Pasta,
    Repetition,
    Request,
    Sampling,
    SplitSoftmax,
    methods,
)
from holdfast.errors import Unsteerable, UsageError
from holdfast.generation.batch import SequenceGroup, batch_of
from holdfast.generation.token_requests import TokenSequence
from holdfast.methods import Ability, MethodKind, Spotlight, compile_methods
from holdfast.methods.heads import HeadSet, with_heads
from holdfast.methods.kinds import TRAITS, kind_of
from holdfast.models.capabilities import check_requirements, supports
from holdfast.models.protocol import facts_about

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
    kind: ClassVar[MethodKind] = MethodKind.LOG_ODDS


class Odd(Louder):
    kind: ClassVar[str] = "log-odds"


class Empty(Louder):
    kind: ClassVar[MethodKind] = MethodKind.LOGITS


@pytest.mark.parametrize("method", (*MIXED, Pasta(0.1), Spotlight(0.3), Hold()), ids=str)
def test_every_method_declares_its_kind_and_its_requirements(method):
    assert isinstance(type(method).kind, MethodKind) and method.kind is kind_of(method)
    assert compile_methods([method]).requires == TRAITS[method.kind].requires


def test_compiled_methods_are_sorted_by_what_they_change():
    compiled = compile_methods(MIXED)
    assert compiled.attention == ATTENTION and compiled.in_pass.methods == ATTENTION
    assert compiled.messages == (Repetition(0.5),) and compiled.processors == (Guidance(2.0),)
    assert compiled.keys == compiled.hidden == compiled.states == compiled.rehearsed == ()
    assert compiled.without_edits.methods == MIXED[1:]
    assert compiled.chat_only == (Repetition(0.5), Guidance(2.0))
    assert compiled.without_span.methods == (Repetition(0.5),)
    assert compile_methods([Hold(), Boost(2)]).without_rehearsed.methods == (Boost(2),)
    assert kind_of(7) is None and kind_of(len) is None


def test_the_same_methods_compiled_twice_are_equal_even_in_another_process():
    parsed = methods.parse("pasta:alpha=0.1")
    compiled = compile_methods(parsed)
    assert compiled == compile_methods(parsed) and compiled is compiled.in_pass
    assert compiled == compile_methods([Pasta(0.1)]) != compile_methods(())
    copy = pickle.loads(pickle.dumps(compiled))
    assert copy == compiled and hash(copy) == hash(compiled)
    assert compiled.spec == "pasta:alpha=0.1" and compile_methods(()).spec == "none"


def test_equal_methods_keep_the_files_that_they_come_from():
    heads = [HeadSet({(0, 1)}, file=name) for name in ("a.json", "b.json")]
    pair = [compile_methods([Boost(2, some)]) for some in heads]
    assert pair[0] == pair[1] and hash(pair[0]) == hash(pair[1])
    assert [compiled.attention[0].heads.file for compiled in pair] == ["a.json", "b.json"]


def test_an_empty_list_of_compiled_methods_is_falsy():
    assert not compile_methods(()) and compile_methods([Boost(2)])


def test_a_spec_string_reaches_the_kernel_as_a_table_of_numbers():
    """The stations of docs/how.md, in their order."""
    request = Request(TALK, "boost:factor=4")
    assert request.methods == (Boost(4),) and request.compiled.attention == request.methods
    prompt = model().session().render(request).token_request.prompts[0]
    assert prompt.pass_methods is request.compiled and any(prompt.span)
    sequence, device = TokenSequence(prompt), model().runner.device
    batch = batch_of(SequenceGroup([sequence], device), [0])
    assert batch.steering.methods_by_row == [request.compiled]
    table = batch.steering.layer_shift(0, torch.zeros(1, model().runner.heads, 1, 1))
    assert table.numbers.tolist() == [[[pytest.approx(math.log(4))]], [[1.0]], [[-math.inf]]]


def test_only_the_methods_package_asks_for_a_kind():
    source = Path(holdfast.__file__).parent
    imports = re.compile(r"from holdfast\.methods(?:\.kinds)? import (\([^)]*\)|.*)")
    asks = re.compile(r"\b(MethodKind|kind_of|kinds_of)\b")
    paths = [path for path in source.rglob("*.py") if path.parent.name != "methods"]
    assert len(paths) > 200
    for path in paths:
        imported = imports.findall(path.read_text(encoding="utf-8"))
        assert not any(map(asks.search, imported)), path.name


def test_compiled_methods_need_what_each_of_them_needs():
    compiled = compile_methods(MIXED)
    needed = {Ability.MESSAGES, Ability.LOG_ODDS, Ability.SECOND_STREAM}
    assert compiled.requires == needed
    assert compiled.needs_span and compiled.needs_system_prompt
    assert not compile_methods([Boost(2)]).needs_system_prompt
    assert not compile_methods([Repetition(1)]).needs_span
    assert compile_methods([Pasta(0.1)]).treats_generated_apart
    assert not compile_methods([Pasta(0.1), Boost(2)]).agrees_on_span
    assert compile_methods([SplitSoftmax(0.5), Boost(2)]).table is None
    assert compile_methods([Boost(2), SplitSoftmax(0.5)]).table is not None


def test_a_custom_method_has_the_kind_whose_functions_it_defines():
    assert methods.read_methods([Louder()]) == (Louder(),)
    assert compile_methods([Louder()]).attention == (Louder(),)
    assert compile_methods([Louder()]).requires == {Ability.LOG_ODDS}
    assert kind_of(Decided()) is MethodKind.LOG_ODDS
    assert methods.read_methods(Decided()) == (Decided(),)


WRONG = (
    (Torn(), "Torn", (MethodKind.LOG_ODDS, MethodKind.MESSAGES)),
    (Odd(), "log-odds", tuple(MethodKind)),
    (Empty(), "Empty", ("name", "masks_span", "second_chat", "combine_logits")),
)


@pytest.mark.parametrize(("wrong", "value", "allowed"), WRONG)
def test_a_kind_that_does_not_match_the_class_is_refused(wrong, value, allowed):
    with pytest.raises(UsageError) as excinfo:
        methods.read_methods([wrong])
    assert (excinfo.value.option, excinfo.value.value) == ("method", value)
    assert excinfo.value.allowed == allowed


def test_a_refusal_names_what_is_needed_and_what_is_offered():
    offered = frozenset({Ability.MESSAGES, Ability.SECOND_STREAM, Ability.REPLY_SCORES})
    check_requirements((Repetition(1), Guidance(2.0)), offered, "the model", "use another")
    message = r"boost:factor=3 needs attention, and the model supports only .*; use another\."
    with pytest.raises(Unsteerable, match=message):
        check_requirements((Guidance(2.0), Boost(3)), offered, "the model", "use another")
    with pytest.raises(Unsteerable, match=r"^hold needs"):
        check_requirements((Hold(),), frozenset({Ability.MESSAGES}), "the model", "use another")
    with pytest.raises(UsageError, match=r"^guidance and adacad"):
        check_requirements((Guidance(2.0), AdaCad()), offered, "the model", "")


def test_models_declare_what_they_offer():
    endpoint = holdfast.connect("http://localhost:1/v1", "m")
    assert endpoint.capabilities == {Ability.MESSAGES, Ability.PIECES}
    everything = set(Ability) - {Ability.RETRIES}  # which dialogs under a suite offer
    assert model().capabilities == everything
    attention = {Ability.LOG_ODDS, Ability.KEYS, Ability.REHEARSAL, Ability.REPLY_SPANS}
    assert model("mamba").capabilities == everything - attention
    assert supports(object(), Ability.MESSAGES) and not supports(object(), Ability.REPLY_SCORES)
    with pytest.raises(Unsteerable, match=r"^guidance:scale=2 needs"):
        endpoint.generate(TALK, [Guidance(2.0)])
    with pytest.raises(Unsteerable, match=r"boost:factor=3 needs attention.*MambaForCausalLM"):
        model("mamba").generate(TALK, [Boost(3)])


def test_a_custom_method_on_one_head_acts_as_a_built_in_one_there():
    class OnOneHead(Louder):
        heads: ClassVar[HeadSet] = HeadSet({(0, 1)})

    pair = OnOneHead(math.log(4)), Boost(4, {(0, 1)})
    greedy = Sampling(temperature=0, max_new_tokens=3)
    custom, boosted = (model().generate(TALK, [method], greedy, trace=True) for method in pair)
    assert torch.allclose(custom.trace.mass, boosted.trace.mass, atol=1e-5)
    on_all_heads = model().generate(TALK, [Louder(math.log(4))], greedy, trace=True)
    assert not torch.allclose(custom.trace.mass, on_all_heads.trace.mass, atol=1e-3)


def test_only_a_dataclass_method_can_be_put_on_chosen_heads():
    class Plain:
        name, heads, span_includes_generated = "plain", None, False

        def shift(self, log_odds, layer):
            return log_odds

    with pytest.raises(UsageError, match="Plain"):
        with_heads(Plain(), [(0, 0)])
    assert with_heads(Boost(2), [(0, 1)]) == Boost(2, {(0, 1)})
    assert with_heads(Boost(2, {(0, 1)}), None) == Boost(2)


def test_a_model_without_a_tokenizer_reports_its_own_facts():
    assert facts_about(SimpleNamespace(tokenizer=None, about={"family": "x"})) == {"family": "x"}
    assert facts_about(SimpleNamespace()) == {}
