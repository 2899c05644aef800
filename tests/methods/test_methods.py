"""Steering methods: how they are spelled, and that each does what its paper says."""

import dataclasses
import itertools
import json
import math
import random

import method_examples
import oracles
import pytest
import torch
from fast_set import only_fast
from fitted_files import write_all

import holdfast
from holdfast import methods
from holdfast.attention.layer_shifts import MethodGroup, MethodSequence
from holdfast.errors import ParameterOutOfRange, PromptError, UnknownName, UsageError
from holdfast.methods import Boost, MethodKind, Pasta, Reminder, Repetition, SplitSoftmax, Spotlight
from holdfast.methods.all_methods import METHODS
from holdfast.methods.kinds import kind_of, members_of
from holdfast.methods.parameters import parameters_of, required_parameters

ROUNDING = 1e-6  # a few float32 roundings, relative to the log-odds, absolute for weights
EXPONENTS = (0.001, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999)
CHAT = (
    {"role": "system", "content": "Speak like a pirate."},
    {"role": "user", "content": "Hello."},
    {"role": "assistant", "content": "Arr."},
    {"role": "user", "content": "And then?"},
)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("none", ()),
        ("split-softmax:exponent=0.5", (SplitSoftmax(0.5),)),
        (" boost: factor = .2e1 + repetition:probability=0.5", (Boost(2), Repetition(0.5))),
        ("boost:heads=3.5/3.0/12.1,factor=2", (Boost(2.0, {(3, 0), (3, 5), (12, 1)}),)),
        ("boost:factor=2,heads=3.1-2/7.0", (Boost(2.0, {(3, 1), (3, 2), (7, 0)}),)),
        ("pasta:alpha=0.01,generated=scale", (Pasta(0.01, None, "scale"),)),
        ("boost:factor=1e3+spotlight:target=0.3", (Boost(1000.0), Spotlight(0.3))),
    ],
)
def test_a_spelling_is_parsed(spec, expected):
    assert methods.parse(spec) == expected


@pytest.mark.parametrize(
    "spec",
    [
        "none",
        "split-softmax:exponent=0.5",
        "split-softmax:exponent=1e-07",
        "split-softmax:exponent=0.30000000000000004",
        "repetition:probability=1",
        "reminder",
        'reminder:every=2,depth=1,text="Stay a pirate, + always."',
        "split-softmax:exponent=0.7,heads=3.0/3.5/12.1+repetition:probability=0.5",
        "repetition:probability=0.5+split-softmax:exponent=0.7",
        "guidance:scale=2,plausibility=0.1+repetition:probability=1",
        "anchoring:strength=1.5,plausibility=0.1",
        'prompt-strength:scale=2,default="Say \\"yes\\", [a+b]: c=1, ü\\n"+boost:factor=2',
        "pasta:alpha=0.01,heads=3.0/3.5,generated=scale",
        "boost:factor=1e20",  # no plus sign, which separates methods
        "boost:factor=8,heads=20-29.0-8",
        "pasta:alpha=1+boost:factor=1+spotlight:target=0",
    ],
)
def test_a_canonical_spelling_round_trips(spec):
    assert methods.spec_of(methods.parse(spec)) == spec


def test_equal_methods_are_spelled_alike():
    for value in (-0.0, 0):
        assert methods.spec_of([SplitSoftmax(value)]) == "split-softmax:exponent=0"
    assert methods.spec_of(methods.parse("boost:factor=25e-1")) == "boost:factor=2.5"


@pytest.mark.parametrize(
    ("spec", "error", "words"),
    [
        ("splitsoftmax:exponent=0.5", UnknownName, ["'splitsoftmax'", "'split-softmax'"]),
        ("split:exponent=0.5", UnknownName, ["'split'", "did you mean 'split-softmax'"]),
        ("split-softmax:expnent=0.5", UnknownName, ["'expnent'", "'exponent'"]),
        ("split-softmax", UsageError, ["'split-softmax'", "split-softmax:exponent=0.5"]),
        ("split-softmax:exponent", UsageError, ["'exponent'", "PARAMETER=VALUE"]),
        ("split-softmax:exponent=0.5,exponent=0.7", UsageError, ["once", "'exponent=0.7'"]),
        ("split-softmax:exponent=half", UsageError, ["exponent", "'half'"]),
        ("split-softmax:exponent=1.5", ParameterOutOfRange, ["exponent", "from 0 to 1", "1.5"]),
        ("split-softmax:exponent=0.5,heads=3", UsageError, ["'3'", "heads=3.0/3.5"]),
        ("boost:factor=2,heads=5-3.0-8", UsageError, ["lower number", "'5-3.0-8'"]),
        ("boost:factor=2,heads=0-99999.0-99999", UsageError, ["100,000", "'0-99999.0-99999'"]),
        ("boost", UsageError, ["boost needs factor", "boost:factor=4", "'boost'"]),
        ("boost:=3,factor=2", UnknownName, ["boost has no parameter", "''"]),
        ("guidance:scale=-1", ParameterOutOfRange, ["guidance", "scale", "from 0"]),
        ("pasta:alpha=0.1,generated=drop", UsageError, ["'drop'", "keep or scale"]),
        ("pasta:alpha=0.1,heads=none.json", UsageError, ["none.json", "[[layer, head], ...]"]),
        ("boost:factor=inf", ParameterOutOfRange, ["factor", "inf"]),
        ("spotlight:target=1", ParameterOutOfRange, ["target", "below 1", "1"]),
        ("", UsageError, ["''", "none"]),
        ("reminder:every=-1", UsageError, ["every", "from 0", "-1"]),
        ("reminder:every=1.5", UsageError, ["every", "whole number", "1.5"]),
        ("repetition:probability=1+", UsageError, ["'repetition:probability=1+'"]),
        ("none+repetition:probability=1", UsageError, ["'none+repetition:probability=1'"]),
    ],
)
def test_a_wrong_spelling_is_refused_with_a_hint(spec, error, words):
    with pytest.raises(error) as excinfo:
        methods.parse(spec)
    assert all(word in str(excinfo.value) for word in words), str(excinfo.value)


@pytest.mark.parametrize(
    ("kind", "protocol"),
    [
        (methods.MethodKind.LOG_ODDS, methods.ShiftsAttention),
        (methods.MethodKind.MESSAGES, methods.EditsMessages),
        (methods.MethodKind.LOGITS, methods.EditsLogits),
        (methods.MethodKind.KEYS, methods.EditsKeys),
        (methods.MethodKind.RESIDUAL, methods.EditsHidden),
        (methods.MethodKind.REHEARSED, methods.NeedsRehearsal),
    ],
)
def test_a_method_that_lacks_a_member_of_its_protocol_is_refused(kind, protocol):
    declared = {name for name in vars(protocol) if not name.startswith("_")}
    assert declared
    for lacking in declared:
        members = {"name": "odd", "kind": kind, **dict.fromkeys(declared - {lacking})}
        with pytest.raises(UsageError, match=f"Odd lacks {lacking};"):
            methods.read_methods([type("Odd", (), members)()])


def test_methods_without_a_target_are_those_that_would_do_nothing():
    boost, repetition = methods.Boost(2), methods.Repetition(1)
    method_list = (boost, repetition, methods.Guidance(2))
    lacking_target = methods.compile_methods(method_list).lacking_target
    assert lacking_target(prompted=True, emphasised=False).methods == ()
    assert lacking_target(prompted=False, emphasised=False).methods == method_list
    assert lacking_target(prompted=False, emphasised=True).methods == (repetition,)


@pytest.fixture
def fitted_files(tmp_path, monkeypatch):
    """A folder with the files that examples name."""
    write_all(tmp_path)
    monkeypatch.chdir(tmp_path)


def test_a_method_is_registered_by_its_class_alone(fitted_files):
    entries = methods.catalogue()
    assert [name for name, _, _ in entries] == [method.name for method in METHODS]
    assert len(entries) == len({name for name, _, _ in entries})
    wrong = [line for _, _, line in entries if not line.endswith(".") or len(line) >= 120]
    assert not wrong, "begin the class's docstring with a sentence of fewer than 120 characters"
    for method in METHODS:
        declared = parameters_of(method)
        fields = [field.name for field in dataclasses.fields(method) if field.repr]
        assert list(declared) == fields, f"a field of {method.name} is no parameter"
        assert method.source and all(parameter.description for parameter in declared.values())
        needed = required_parameters(method)
        parameters = ",".join(f"{parameter}={declared[parameter].example}" for parameter in needed)
        (value,) = methods.parse(f"{method.name}:{parameters}")
        assert all(hasattr(value, member) for member in members_of(kind_of(value)))
        assert type(value) is method and methods.parse(methods.spec_of([value])) == (value,)


def test_the_schema_is_plain_data_and_states_each_range_and_default():
    schema = {entry["name"]: entry for entry in methods.schema()}
    assert json.loads(json.dumps(schema)) == schema
    assert list(schema) == [name for name, _, _ in methods.catalogue()]
    kinds = {name: entry["kind"] for name, entry in schema.items()}
    assert kinds["boost"] == "log-odds" and kinds["repetition"] == "messages"
    assert kinds["guidance"] == "stream"
    assert schema["hold"]["needs"] == ["attention", "a rehearsed reply"]

    pasta = schema["pasta"]["parameters"]
    assert pasta["required"] == ["alpha"] and pasta["additionalProperties"] is False
    alpha, generated = pasta["properties"]["alpha"], pasta["properties"]["generated"]
    assert (alpha["type"], alpha["exclusiveMinimum"], alpha["maximum"]) == ("number", 0, 1)
    assert generated["enum"] == ["keep", "scale"] and generated["default"] == "keep"
    assert schema["guidance"]["parameters"]["properties"]["plausibility"]["default"] == 0
    assert "maximum" not in schema["boost"]["parameters"]["properties"]["factor"]
    assert schema["boost"]["parameters"]["properties"]["factor"]["examples"] == [4.0]
    assert schema["spotlight"]["parameters"]["properties"]["target"]["exclusiveMaximum"] == 1


def test_the_schemas_ranges_are_enforced():
    for entry in methods.schema():
        for parameter in entry["parameters"]["required"]:
            bounds = entry["parameters"]["properties"][parameter]
            if bounds["type"] != "number":
                continue
            for bound in ("minimum", "maximum"):
                if bound in bounds:
                    methods.parse(f"{entry['name']}:{parameter}={bounds[bound]}")
            outside = [bounds[b] for b in bounds if b.startswith("exclusive")]
            outside += [bounds["minimum"] - 0.01] if "minimum" in bounds else []
            outside += [bounds["maximum"] + 0.01] if "maximum" in bounds else []
            for value in outside:
                with pytest.raises(ParameterOutOfRange):
                    methods.parse(f"{entry['name']}:{parameter}={value}")


@pytest.mark.parametrize("value", [None, "0.5", True, [0.5]])
def test_a_parameter_that_is_not_a_number_is_refused(value):
    with pytest.raises(ParameterOutOfRange, match="exponent"):
        SplitSoftmax(value)


@pytest.mark.parametrize("dtype", only_fast([torch.float32, torch.float64], torch.float32))
@pytest.mark.parametrize("exponent", EXPONENTS)
def test_split_softmax_is_exact_over_the_whole_range(exponent, dtype):
    log_odds = torch.linspace(-80, 80, 641, dtype=dtype).view(1, 1, -1)
    shifted = SplitSoftmax(exponent).shift(log_odds, 0)
    expected = [oracles.split_softmax_log_odds(x, exponent) for x in log_odds.flatten().tolist()]
    assert shifted.dtype == dtype
    assert shifted.flatten().tolist() == pytest.approx(expected, rel=ROUNDING, abs=ROUNDING)


@pytest.mark.parametrize("exponent", [0, 1e-40, 1e-12, 0.5, 0.999999])
def test_split_softmax_is_finite_never_lowers_and_keeps_order(exponent):
    ranges = torch.linspace(-1e4, 1e4, 4001), torch.linspace(-90, 90, 4001)
    log_odds = torch.cat(ranges).sort().values.view(1, 1, -1)
    shifted = SplitSoftmax(exponent).shift(log_odds, 0)
    assert shifted.isfinite().all()
    # rounding of the last bit, relative to the size of the log-odds
    slack = log_odds.abs().clamp(min=1) * ROUNDING
    assert (shifted >= log_odds - slack).all()
    assert (shifted.diff() >= -slack[..., 1:]).all()


def test_exponent_zero_gives_the_span_all_mass():
    shifted = SplitSoftmax(0).shift(torch.tensor([[[-80.0, 0.0, 80.0]]]), 0)
    assert shifted.sigmoid().tolist() == [[[1.0, 1.0, 1.0]]]


def test_heads_that_do_not_exist_are_named():
    with pytest.raises(UsageError, match="no head 9"):
        SplitSoftmax(0.5, {(0, 9)}).shift(torch.zeros(1, 4, 1), 0)


@pytest.mark.parametrize("heads", [set(), {3}, {(0, -1)}, {(0, 1.0)}, 3, {(1, 2, 3)}])
def test_heads_that_are_not_pairs_are_refused(heads):
    with pytest.raises(UsageError, match="heads"):
        SplitSoftmax(0.5, heads)


LOG_ODDS = [*method_examples.of_kind(MethodKind.LOG_ODDS), *map(SplitSoftmax, EXPONENTS)]
LOG_ODDS += [Pasta(0.3, None, "scale"), Boost(3), Boost(1e6), Spotlight(0.1), Spotlight(0.9)]


@pytest.mark.parametrize("method", METHODS)
def test_every_method_has_the_members_of_its_kind(method):
    declared = {field.name for field in dataclasses.fields(method)}
    members = ("source", *members_of(method.kind))
    missing = [name for name in members if name not in declared and not hasattr(method, name)]
    assert not missing, f"{method.__name__} lacks {missing}; see methods/protocols.py"


def test_every_method_without_a_file_or_rules_has_an_oracle():
    kinds = (MethodKind.LOG_ODDS, MethodKind.LOGITS, MethodKind.MESSAGES)
    names = {method.name for method in METHODS if method.kind in kinds}
    without = names - oracles.ORACLES.keys() - {"repair"}  # `test_rule_methods.py`
    assert not without, f"add an oracle of {without} to tests/oracles.py"
    unknown = oracles.ORACLES.keys() - names
    assert not unknown, f"add the class of {unknown} to methods/method_classes.py"


@pytest.mark.parametrize("method", LOG_ODDS, ids=repr)
def test_log_odds_methods_match_the_papers_weights(method):
    draw = random.Random(f"{method}")
    for _ in range(50):
        scores = [draw.gauss(0, 3) for _ in range(24)]
        span, generated = [index < 7 for index in range(24)], [index >= 20 for index in range(24)]
        weights = oracles.softmax(scores)
        expected = oracles.ORACLES[method.name](method, weights, span, generated)
        if isinstance(method, Boost):
            assert expected == pytest.approx(oracles.guide(scores, span, math.log(method.factor)))
        elif isinstance(method, Spotlight):
            assert sum(expected[:7]) == pytest.approx(max(method.target, sum(weights[:7])))
        row = torch.tensor(scores)
        flags = zip(span, generated, strict=True)
        in_span = torch.tensor([s or (g and method.span_includes_generated) for s, g in flags])
        log_odds = row[in_span].logsumexp(0) - row[~in_span].logsumexp(0)
        shifted = method.shift(log_odds.view(1, 1, 1), 0)[0, 0, 0]
        merged = torch.empty(24)
        merged[in_span] = shifted.sigmoid() * row[in_span].softmax(0)
        merged[~in_span] = (-shifted).sigmoid() * row[~in_span].softmax(0)
        assert merged.tolist() == pytest.approx(expected, abs=ROUNDING)


@pytest.mark.parametrize("method", method_examples.of_kind(MethodKind.LOG_ODDS), ids=repr)
def test_what_changes_nothing_in_attention_is_the_identity(method):
    log_odds = torch.tensor([[[-math.inf, -80.0, -1e-3, 0.0, 5.0, 80.0, math.inf]]])
    if (neutral := method_examples.neutral(method)) is not None:
        assert torch.equal(neutral.shift(log_odds, 0), log_odds)


@pytest.mark.parametrize("method", method_examples.of_kind(MethodKind.LOGITS), ids=repr)
def test_logits_are_combined_as_in_the_paper(method):
    first, second = torch.randn(2, 5, 40, generator=torch.Generator().manual_seed(0)) * 4
    rows = zip(first.tolist(), second.tolist(), strict=True)
    expected = [oracles.ORACLES[method.name](method, *row) for row in rows]
    combined = method.combine_logits(first, second).softmax(-1)
    assert torch.allclose(combined, torch.tensor(expected), atol=1e-5)
    if (neutral := method_examples.neutral(method)) is not None:
        assert torch.equal(neutral.combine_logits(first, second), first.log_softmax(-1))


MESSAGES = [m for m in method_examples.of_kind(MethodKind.MESSAGES) if m != methods.Repair()]


@pytest.mark.parametrize("method", MESSAGES, ids=repr)
def test_messages_are_edited_as_the_oracle_does(method):
    chat = _long_chat(rounds=12)
    texts = [message["content"] for message in chat if message["role"] == "user"]
    for seed in range(5):
        edited = method.edit(chat, seed)
        edited_texts = [message["content"] for message in edited if message["role"] == "user"]
        assert edited_texts == oracles.ORACLES[method.name](method, texts, CHAT[0]["content"], seed)
    if (neutral := method_examples.neutral(method)) is not None:
        assert neutral.edit(chat, 0) == chat


def test_neutral_values_are_read_from_the_help():
    neutral = [
        method_examples.neutral(method) for method in method_examples.of_kind(MethodKind.LOG_ODDS)
    ]
    assert {SplitSoftmax(1), Pasta(1), Boost(1), Spotlight(0)} <= {*neutral}


def test_every_method_is_exported():
    for method in METHODS:
        assert getattr(holdfast, method.__name__) is getattr(methods, method.__name__) is method
        assert method.__name__ in holdfast.__all__ and method.__name__ in dir(holdfast)
    assert {"Request", "load", "drift", "tasks", "HoldfastError"} <= {*holdfast.__all__}


@pytest.mark.parametrize("method", [*LOG_ODDS, SplitSoftmax(0), SplitSoftmax(1e-40)])
def test_infinite_log_odds_stay_and_only_chosen_heads_move(method):
    one_group = torch.tensor([[[-math.inf, math.inf]]])
    assert torch.equal(method.shift(one_group, 0), one_group)
    log_odds = torch.randn(2, 4, 3, generator=torch.Generator().manual_seed(0)) - 4
    before, on_heads = log_odds.clone(), dataclasses.replace(method, heads={(3, 1), (5, 0)})
    moved = _in_layer(on_heads, 3).shift(log_odds)
    unmoved = _in_layer(on_heads, 4).shift(log_odds)
    assert torch.equal(unmoved, log_odds) and torch.equal(log_odds, before)
    assert torch.equal(moved[:, 1], method.shift(log_odds, 3)[:, 1])
    assert not torch.equal(moved[:, 1], log_odds[:, 1])
    assert torch.equal(moved[:, [0, 2, 3]], log_odds[:, [0, 2, 3]])


def _in_layer(method, layer):
    """The method as it acts on a layer of four heads."""
    return MethodSequence([MethodGroup((method,), slice(None))], layer, num_heads=4)


def test_a_custom_method_moves_only_its_heads():
    """Its `shift` has only the formula."""

    class Louder:
        name, heads, span_includes_generated = "louder", frozenset({(3, 1), (5, 0)}), False

        def shift(self, log_odds, layer):
            return log_odds + 1

    log_masses = torch.zeros(2, 4, 3)
    expected = torch.tensor([0.0, 1.0, 0.0, 0.0])[:, None].expand(2, 4, 3)
    on_one_head = _in_layer(Louder(), 3)
    assert torch.equal(on_one_head.shift(log_masses), expected)
    span, generated = on_one_head.shift_log_masses(log_masses, log_masses, log_masses)
    assert torch.equal(span, expected) and torch.equal(generated, log_masses)


def test_repetition_puts_the_system_prompt_before_each_user_message():
    chat = [dict(message) for message in CHAT]
    edited = Repetition(1).edit(chat, seed=3)
    prompt = "Speak like a pirate."
    expected = [prompt, f"{prompt}\n\nHello.", "Arr.", f"{prompt}\n\nAnd then?"]
    assert [message["content"] for message in edited] == expected
    assert [message["role"] for message in edited] == [message["role"] for message in CHAT]
    assert chat == list(CHAT)


def test_the_neutral_probability_is_the_identity():
    assert all(Repetition(0).edit(CHAT, seed) == CHAT for seed in range(50))


def test_repetition_never_changes_the_past():
    chat = _long_chat(rounds=12)
    for seed in range(20):
        whole = Repetition(0.5).edit(chat, seed)
        for end in range(1, len(chat) + 1):
            assert Repetition(0.5).edit(chat[:end], seed) == whole[:end]


def test_repetition_draws_per_conversation_and_message_with_its_probability():
    decisions = [_repeated(Repetition(0.3).edit(_long_chat(rounds=8), seed)) for seed in range(500)]
    assert len({tuple(row) for row in decisions}) > 50
    for column in zip(*decisions, strict=True):
        # 500 draws: a standard deviation of 0.02, and eight columns
        assert sum(column) / 500 == pytest.approx(0.3, abs=0.08)


def test_a_larger_probability_repeats_all_that_a_smaller_one_does():
    for seed in range(50):
        few = _repeated(Repetition(0.2).edit(_long_chat(rounds=8), seed))
        many = _repeated(Repetition(0.6).edit(_long_chat(rounds=8), seed))
        assert all(b >= a for a, b in zip(few, many, strict=True))


def test_repetition_draws_the_same_on_every_machine_and_version():
    assert _repeated(Repetition(0.5).edit(_long_chat(rounds=8), 0)) == [1, 1, 0, 0, 1, 0, 0, 1]


def test_repetition_needs_a_system_message():
    with pytest.raises(PromptError, match="system message"):
        Repetition(0.5).edit(CHAT[1:], seed=0)
    empty = ({"role": "system", "content": ""}, *CHAT[1:])
    assert Repetition(1).edit(empty, seed=0) == empty


@pytest.mark.parametrize("text", ["prompt", "Stay a pirate."])
@pytest.mark.parametrize("every", [0, 1, 2, 4, 5])
def test_reminders_stand_where_the_oracle_puts_them(every, text):
    chat = _long_chat(rounds=12)
    texts = [message["content"] for message in chat if message["role"] == "user"]
    for depth in range(7):
        reminder = Reminder(every, depth, text)
        edited = reminder.edit(chat, seed=0)
        edited_texts = [message["content"] for message in edited if message["role"] == "user"]
        assert edited_texts == oracles.reminder(reminder, texts, CHAT[0]["content"], 0)
        unedited = [(a, b) for a, b in zip(chat, edited, strict=True) if a["role"] != "user"]
        assert all(before is after for before, after in unedited)
    assert Reminder(0, 0, text).edit(chat, 0) == chat


def test_a_reminder_never_changes_the_past():
    chat = _long_chat(rounds=12)
    for reminder in (Reminder(), Reminder(2, 1), Reminder(3, 5, "Stay a pirate.")):
        whole = reminder.edit(chat, 0)
        for end in range(1, len(chat) + 1):
            assert reminder.edit(chat[:end], 0) == whole[:end]


@pytest.mark.parametrize("method", MESSAGES, ids=repr)
def test_a_message_method_continues_what_it_edited_before(method):
    """All but `repair`, whose purpose it is to take back what was shown."""
    if getattr(type(method), "needs_rules", None) is True:
        method = method.with_rules(Brief(("Be brief.",)))
    chat = _long_chat(rounds=12)
    whole = method.edit(chat, 0)
    for end in range(1, len(chat) + 1):
        assert method.edit(chat[:end], 0) == whole[:end]


def test_a_reminder_of_the_prompt_needs_one_and_any_other_does_not():
    with pytest.raises(PromptError, match="system message"):
        Reminder(1).edit(CHAT[1:], seed=0)
    reminder = Reminder(1, text="Stay a pirate.")
    assert reminder.edit(CHAT[1:], 0)[0]["content"] == "[Reminder: Stay a pirate.]\n\nHello."
    for method, idle in ((Reminder(), True), (reminder, False)):
        compiled = methods.compile_methods([method])
        assert compiled.needs_system_prompt is idle and not compiled.needs_span
        assert bool(compiled.lacking_target(prompted=False, emphasised=True)) is idle
    empty = ({"role": "system", "content": " "}, *CHAT[1:])
    assert Reminder(1).edit(empty, seed=0) == empty


def test_a_reminder_says_the_rules_of_a_prompt_once_it_knows_them():
    rules = Reminder(1, text="rules")
    with pytest.raises(UsageError) as excinfo:
        rules.edit(CHAT, seed=0)
    assert (excinfo.value.option, excinfo.value.value) == ("text", "rules")
    edited = rules.with_rules(Brief(("Be brief.", "Say Ahoy."))).edit(CHAT, seed=0)
    assert edited[1]["content"].startswith("[Reminder: Be brief. Say Ahoy.]\n\n")
    assert Reminder(1).with_rules(Brief(("Be brief.",))) == Reminder(1)


@dataclasses.dataclass(frozen=True)
class Brief:
    """Rules of which the first is broken by a reply of more than two words."""

    texts: tuple[str, ...]

    def broken(self, user, reply, *, is_cut=False):
        return self.texts[:1] if len(reply.split()) > 2 else ()

    def of_kinds(self, kinds):
        return Brief(self.texts[:1] if "length" in kinds else ())


def test_a_reminder_of_some_kinds_begins_where_they_fall():
    rules = Brief(("Be brief.", "Say Ahoy."))
    (reminder,) = methods.parse("reminder:every=1,text=rules,kinds=length/closing,after=2")
    assert reminder == Reminder(1, text="rules", kinds=("length", "closing"), after=2)
    assert methods.parse(methods.spec_of([reminder])) == (reminder,)
    chat = _long_chat(rounds=4)
    edited_texts = [
        message["content"]
        for message in reminder.with_rules(rules).edit(chat, seed=0)
        if message["role"] == "user"
    ]
    texts = [message["content"] for message in chat if message["role"] == "user"]
    assert edited_texts == [*texts[:2], *(f"[Reminder: Be brief.]\n\n{text}" for text in texts[2:])]
    # a prompt without rules of these kinds has nothing to be reminded of
    closing = dataclasses.replace(reminder, kinds=("closing",)).with_rules(rules)
    assert closing.edit(chat, seed=0) == tuple(chat)
    with pytest.raises(UsageError):
        reminder.edit(chat, seed=0)
    with pytest.raises(UsageError) as excinfo:
        Reminder(kinds=("length",))
    assert excinfo.value.option == "kinds"


def test_a_reminder_when_broken_follows_only_replies_that_broke_a_rule():
    words = ["Hi.", "One two three.", "Why?", "One two.", "And?", "One two three four.", "So?"]
    roles = itertools.cycle(("user", "assistant"))
    chat = [{"role": role, "content": text} for text, role in zip(words, roles, strict=False)]
    rules = Brief(("Be brief.", "Say Ahoy."))
    for text, statement in (("rules", "Be brief."), ("Keep to it.", "Keep to it.")):
        reminder = Reminder(1, text=text, when="broken").with_rules(rules)
        whole = reminder.edit(chat, seed=0)
        reminded = [at for at, message in enumerate(whole) if message is not chat[at]]
        assert reminded == [2, 6]
        assert whole[2]["content"] == f"[Reminder: {statement}]\n\nWhy?"
        for end in range(1, len(chat) + 1):  # what was shown never changes
            assert reminder.edit(chat[:end], 0) == whole[:end]
    # only every second message may have one
    fewer = Reminder(2, text="rules", when="broken").with_rules(rules).edit(chat, seed=0)
    assert [at for at, message in enumerate(fewer) if message is not chat[at]] == [2, 6]
    with pytest.raises(UsageError) as excinfo:
        Reminder(1, text="Keep to it.", when="broken").edit(chat, seed=0)
    assert excinfo.value.option == "when"


def test_edit_messages_applies_prompt_methods_and_ignores_others():
    composed = methods.parse("split-softmax:exponent=0.5+repetition:probability=1")
    assert methods.compile_methods(composed).edit(list(CHAT), 0) == Repetition(1).edit(CHAT, 0)
    assert methods.compile_methods([SplitSoftmax(0.5)]).edit(list(CHAT), 0) == CHAT


def test_compiled_methods_are_the_same_however_they_are_made():
    parsed = methods.parse("boost:factor=4+repetition:probability=1")
    direct, compiled = methods.CompiledMethods(parsed), methods.compile_methods(parsed)
    assert direct == compiled and direct.kinds == (MethodKind.LOG_ODDS, MethodKind.MESSAGES)
    assert direct.attention == compiled.attention == parsed[:1]
    assert direct.needs_span and direct.requires == compiled.requires
    assert direct.without_edits == methods.compile_methods(parsed[:1])
    with pytest.raises(UsageError):
        methods.CompiledMethods((MethodKind,))


def _long_chat(rounds):
    chat = [CHAT[0]]
    for number in range(rounds):
        chat += [{"role": "user", "content": f"q{number}"}]
        chat += [{"role": "assistant", "content": f"a{number}"}]
    return tuple(chat)


def _repeated(messages):
    contents = [message["content"] for message in messages if message["role"] == "user"]
    return [int("pirate" in content) for content in contents]
