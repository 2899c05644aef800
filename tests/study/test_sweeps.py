"""Sweeps of a method's parameter, and files that stand for a calibrated method."""

import pytest

from holdfast import SplitSoftmax, methods
from holdfast.errors import UsageError
from holdfast.study.calibration_plan import DEFAULT_SWEEPS

# Sweeps


def test_a_sweep_is_the_settings_of_one_parameter():
    heads_and_repetition = "heads=0.1/1.0+repetition:probability=0.5"
    sweep = methods.parse_sweep(f"split-softmax:exponent=0.9,0.5,{heads_and_repetition}")
    assert sweep.name == f"split-softmax:{heads_and_repetition}"
    assert (sweep.parameter, sweep.values) == ("exponent", ("0.9", "0.5"))
    second = f"split-softmax:exponent=0.5,{heads_and_repetition}"
    assert sweep.steerings[1] == methods.parse(second)
    assert all(len(methods.parse_sweep(spec).steerings) >= 3 for spec in DEFAULT_SWEEPS)


def test_a_single_setting_is_a_sweep_of_its_first_parameter():
    point = methods.parse_sweep("repetition:probability=0.5+boost:factor=4")
    assert point.name == "repetition+boost:factor=4"
    assert (point.parameter, point.values) == ("probability", ("0.5",))
    assert point.steerings == (methods.parse("repetition:probability=0.5+boost:factor=4"),)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("boost:factor=2,2.0", "same value twice"),
        ("boost:2,3", "PARAMETER=VALUE,VALUE, not '2'"),
        ("boost:factor=2,0.5", "factor from 1 upwards, not 0.5"),
        ("boost:factr=2,3", "'factr'.*'factor'"),
        ("none+boost:factor=2,3", "'none' cannot be combined"),
        ("boost:factor=2,3+", "empty method"),
        ("boost:factor=2,3+spotlight:target=0.1,0.2", "several values to factor and target"),
    ],
)
def test_a_sweep_that_is_none_is_refused(spec, message):
    with pytest.raises(UsageError, match=message):
        methods.parse_sweep(spec)


# Method files


def test_a_missing_method_file_is_explained(tmp_path):
    with pytest.raises(UsageError, match=r"method\.json"):
        methods.parse(str(tmp_path / "method.json"))
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(UsageError, match="recommended nothing"):
        methods.parse(str(tmp_path / "method.json"))


def test_a_method_file_stands_for_its_method(tmp_path):
    path = tmp_path / "fix.json"
    path.write_text('{"method": "split-softmax:exponent=0.5", "model_fingerprint": "x"}')
    assert methods.parse(str(path)) == (SplitSoftmax(0.5),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "None for its method"),
        ("{", "not JSON"),
        ('{"method": "other.json"}', "'other.json' for its method"),
    ],
)
def test_a_damaged_method_file_is_refused(tmp_path, text, message):
    path = tmp_path / "fix.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        methods.parse(str(path))
