"""Spec strings of steering methods: how they are parsed and written, and what is refused."""

import dataclasses
import json

import method_examples
import oracles
import pytest
from fitted_files import write_all

import holdfast
from holdfast import methods
from holdfast.errors import ParameterOutOfRange, UnknownName, UsageError
from holdfast.methods import Boost, MethodKind, Pasta, Repetition, SplitSoftmax, Spotlight
from holdfast.methods.all_methods import METHODS
from holdfast.methods.kinds import kind_of, members_of
from holdfast.methods.parameters import parameters_of, required_parameters


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


# The classes of methods


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


# The schema


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
