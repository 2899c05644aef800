"""Unusual input to the Python API either works or raises an error of one sentence."""

import pickle
from dataclasses import dataclass
from typing import ClassVar

import pytest
from tiny import chat, model

import holdfast
from holdfast import Boost, Request, Sampling, SplitSoftmax, drift, methods, tasks
from holdfast.client import edit
from holdfast.errors import ParameterOutOfRange, UnknownName, UsageError, option
from holdfast.papers.zhang2024.profiling import ProfilingPlan
from holdfast.validation.schema_words import describe_schema

CHAT = chat("always talk about cheese", "the old town")
SHORT = Sampling(temperature=0, max_new_tokens=6)
SETTINGS = drift.Settings(rounds=1, conversations=1, sampling=SHORT)


# Methods


class Plain:
    """A custom method as a plain class."""

    name, heads, span_includes_generated = "plain", None, False

    def __init__(self, strength=2.0):
        self.strength = strength

    def shift(self, log_odds, layer):
        return log_odds + self.strength


class NoHeads:
    name, span_includes_generated = "no-heads", False

    def shift(self, log_odds, layer):
        return log_odds


class NoName:
    edits_by_prompt = False

    def edit(self, messages, seed):
        return tuple(messages)


class HalfProcessor:
    name, masks_span = "half", False

    def combine_logits(self, logits, second_logits):
        return logits


class KeysOnly:
    """A key method that does not say whether it edits values."""

    name, touched_layers = "keys-only", frozenset({0})

    def edit_keys(self, keys, layer):
        return keys


@dataclass
class Thawed:
    name: ClassVar[str] = "thawed"
    heads: ClassVar[None] = None
    span_includes_generated: ClassVar[bool] = False
    strength: float = 1.0

    def shift(self, log_odds, layer):
        return log_odds + self.strength


FORMS = ("boost:factor=2", ["boost:factor=2"], Boost(2), [Boost(2)], (Boost(2), "none"))


@pytest.mark.parametrize("form", (*FORMS, iter([Boost(2)])))
def test_methods_are_accepted_in_every_form(form):
    assert Request(CHAT, form).methods == (Boost(2),)


def test_spec_strings_are_accepted_wherever_methods_are(tmp_path):
    tiny = model()
    expected = tiny.generate(CHAT, [SplitSoftmax(0.2)], SHORT)
    assert tiny.generate(CHAT, "split-softmax:exponent=0.2", SHORT).token_ids == expected.token_ids
    score = tiny.score(CHAT, ["bread"], "boost:factor=3")
    assert score == tiny.score(CHAT, ["bread"], [Boost(3)])
    specs = ["none", "boost:factor=2", SplitSoftmax(0.5), [Boost(3)]]
    run = drift.run(tiny, "starter", tmp_path / "drift", SETTINGS, specs)
    spelled = ["none", "boost:factor=2", "split-softmax:exponent=0.5", "boost:factor=3"]
    assert [record.method for record in run.records] == spelled
    settings = tasks.Settings(("json",), 2)
    data = tasks.load_data(["synthetic"], settings)
    run = tasks.run(tiny, data, tmp_path / "tasks", settings, ["boost:factor=2"])
    assert any("boost:factor=2" in record.variant for record in run.records)
    assert ProfilingPlan("boost:factor=2").method == Boost(2)


def test_a_plain_class_works_as_a_method_everywhere(tmp_path):
    tiny = model()
    pair = Plain(), Boost(2.718281828459045**2)
    replies = [tiny.generate(CHAT, [method], SHORT).token_ids for method in pair]
    assert replies[0] == replies[1] != tiny.generate(CHAT, sampling=SHORT).token_ids
    run = drift.run(tiny, "starter", tmp_path, SETTINGS, [[Plain(1.5)], [Plain()]])
    spelled = ["plain:strength=1.5", "plain:strength=2"]
    assert [record.method for record in run.records] == spelled


@pytest.mark.parametrize(
    ("wrong", "message"),
    (
        (NoHeads(), "lacks heads; a method of its kind has name, heads, span_includes_generated"),
        (
            NoName(),
            "The method NoName lacks name; a method of its kind has name, edits_by_prompt, edit",
        ),
        (HalfProcessor(), "The method HalfProcessor lacks second_chat"),
        (
            KeysOnly(),
            "The method KeysOnly lacks edits_values and edit_values;",
        ),
        (Thawed(), "The method Thawed cannot be hashed"),
        (Boost, "Boost is a class"),
        ({"boost": 2}, "{'boost': 2} is no method"),
    ),
)
def test_anything_but_a_method_is_refused_in_one_sentence_everywhere(wrong, message, tmp_path):
    tiny = model()
    calls = (
        lambda: tiny.generate(CHAT, [wrong], SHORT),
        lambda: tiny.generate(CHAT, wrong, SHORT),
        lambda: tiny.score(CHAT, ["bread"], [wrong]),
        lambda: drift.run(tiny, "starter", tmp_path, SETTINGS, [[wrong]]),
        lambda: drift.run(tiny, "starter", tmp_path, SETTINGS, [wrong]),
        lambda: methods.read_methods([wrong]),
    )
    for call in calls:
        with pytest.raises(UsageError) as excinfo:
            call()
        assert message in str(excinfo.value) and "\n" not in str(excinfo.value)


def test_a_block_refuses_methods_that_cannot_act_in_it_by_their_specs():
    tiny = model()
    chats = holdfast.encode_chats([CHAT], tiny.tokenizer)
    for method, message in (
        ("reminder:every=1", "reminder:every=1 does not act inside a forward pass"),
        ("check-and-retry", "`holdfast proxy --suite FILE --method check-and-retry`"),
        (
            ["boost:factor=2", "check-and-retry"],
            "`holdfast proxy --suite FILE --method check-and-retry`",
        ),
    ):
        block = holdfast.steering(tiny.hf_model, chats.span_mask, method)
        with pytest.raises(UsageError) as excinfo, block:
            pass
        assert message in str(excinfo.value) and "\n" not in str(excinfo.value)


# Chats, suites and folders


@pytest.mark.parametrize("chat", ["Hello!", {"role": "user", "content": "Hello!"}, 3])
def test_a_chat_that_is_no_list_is_refused(chat):
    with pytest.raises(UsageError, match=r"^The chat is .*, not a list of messages; write it as"):
        Request(chat)
    with pytest.raises(UsageError, match="not a list of messages"):
        edit(chat, "reminder")


def test_an_error_about_a_folder_names_the_argument_in_python_and_the_option_elsewhere(tmp_path):
    (tmp_path / "mine.txt").write_text("")
    with pytest.raises(UsageError) as excinfo:
        drift.run(model(), "core", tmp_path, SETTINGS)
    assert "folder with out." in str(excinfo.value)
    assert "folder with --out." in excinfo.value.message_in(lambda name, value: f"--{name}")


def test_a_suite_that_cannot_be_loaded_is_refused(tmp_path):
    with pytest.raises(UnknownName) as unknown:
        drift.run(model(), "cor", tmp_path, SETTINGS)
    assert (unknown.value.kind, unknown.value.name, unknown.value.suggestion) == (
        "suite",
        "cor",
        "core",
    )


def test_a_string_is_no_list_of_replies_and_unknown_arguments_are_named():
    chat = [{"role": "user", "content": "hi"}]
    with pytest.raises(UsageError) as refused:
        model().score(chat, "Bonjour")
    assert (refused.value.option, refused.value.value) == ("replies", "Bonjour")
    with pytest.raises(UnknownName) as unknown:
        model().generate(chat, temprature=0)
    assert (unknown.value.name, unknown.value.suggestion) == ("temprature", "temperature")
    assert unknown.value.owner == "generate"
    assert "\n" not in repr(model()) and "load" in dir(holdfast)


# Sampling and other numbers


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"temperature": 9}, "sampling takes temperature from 0 to 2, not 9."),
        ({"temperature": None}, "sampling takes temperature from 0 to 2, not None."),
        ({"top_p": 7}, "sampling takes top_p above 0 to 1, not 7."),
        ({"top_p": 95}, "sampling takes top_p above 0 to 1, not 95; did you mean 0.95?"),
        (
            {"max_new_tokens": 99999999999},
            "sampling takes max_new_tokens as a whole number from 1 to 1048576, not 99999999999.",
        ),
    ],
)
def test_sampling_out_of_range_is_refused(values, sentence):
    with pytest.raises(holdfast.errors.ParameterOutOfRange) as excinfo:
        Sampling(**values)
    assert str(excinfo.value) == sentence


def test_a_percentage_is_only_suggested_for_a_share():
    for spec, hint in (
        ("split-softmax:exponent=7", "from 0 to 1, not 7."),
        ("pasta:alpha=50,heads=0.0", "above 0 to 1, not 50."),
        ("repetition:probability=50", "not 50; did you mean 0.5?"),
        ("repetition:probability=7", "from 0 to 1, not 7."),
    ):
        with pytest.raises(UsageError) as excinfo:
            methods.parse(spec)
        assert str(excinfo.value).endswith(hint)


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string", "maxLength": 1}, "a text of at most 1 character"),
        ({"type": "string", "minLength": 2, "maxLength": 8}, "a text of 2 to 8 characters"),
        ({"type": "array", "minItems": 1, "maxItems": 1}, "a list of 1 entry"),
        ({"type": "array", "minItems": 2}, "a list of 2 or more entries"),
    ],
)
def test_a_length_limit_is_described_with_its_unit(schema, words):
    assert describe_schema(schema, schema) == words


# Errors as objects


def test_the_caller_decides_how_an_error_spells_an_option():
    error = UsageError(f"No role; use {option('system_as', 'first-user')}.")
    assert str(error) == "No role; use system_as='first-user'."
    wording = error.message_in(lambda name, value: f"{name} {value}")
    assert wording.endswith("system_as first-user.")
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)


def test_errors_have_their_values_as_fields_and_survive_another_process():
    with pytest.raises(ParameterOutOfRange) as caught:
        Sampling(temperature=9)
    with pytest.raises(ParameterOutOfRange) as whole:
        Sampling(max_new_tokens=0)
    with pytest.raises(UnknownName) as unknown:
        methods.parse("bost")
    for error, fields in (
        (caught.value, {"option": "temperature", "value": 9, "allowed": "from 0 to 2"}),
        (whole.value, {"option": "max_new_tokens", "value": 0, "allowed": "from 1 to 1048576"}),
        (unknown.value, {"kind": "method", "name": "bost", "suggestion": "boost"}),
    ):
        copy = pickle.loads(pickle.dumps(error))
        for name, value in fields.items():
            assert getattr(error, name) == getattr(copy, name) == value
        assert str(copy) == str(error)
