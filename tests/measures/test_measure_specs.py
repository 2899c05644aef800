"""Specs of measures: refused with the cure, or built, also from code of the user's."""

import json
import subprocess
import sys

import pytest
from measure_rows import rows_of

from holdfast.errors import UnknownName, UsageError
from holdfast.measures import build, catalogue

# One row per measure: spec, two replies that follow, two that do not.
EXAMPLES = [tuple(row.values()) for row in rows_of("measures.jsonl")]


MEASURES = [build(spec) for spec, _, _ in EXAMPLES]


def score(spec, text: str) -> float:
    return build(spec).score(text).value


def test_specs_round_trip_through_json():
    for measure in MEASURES:
        rebuilt = build(json.loads(json.dumps(measure.spec)))
        assert rebuilt == measure
        assert rebuilt.spec == measure.spec
    assert build({"regex": "a", "flags": "i"}).spec == {"name": "regex", "regex": "a", "flags": "i"}
    assert build("no_letters").spec == {"name": "no_letters", "spaces": False}
    assert build("no_letters") != build({"name": "no_letters", "spaces": True})
    assert len({build("no_letters"), build("no_letters")}) == 1


LARGE = {"name": "mentions_number", "number": 1 << 20_000}
WRONG = [
    *map(tuple, map(dict.values, rows_of("wrong_specs.jsonl"))),
    (LARGE, "18 digits, not a num"),
]


@pytest.mark.parametrize(("spec", "message"), WRONG)
def test_errors_about_bad_specs_name_the_value_and_the_fix(spec, message):
    with pytest.raises(UsageError) as excinfo:
        build(spec)
    assert message in str(excinfo.value)


def test_a_regular_expression_that_hangs_is_stopped_with_an_error(monkeypatch):
    monkeypatch.setattr("holdfast.measures.patterns._MAX_SEARCH_SECONDS", 0.2)
    measure = build({"regex": r"(a|aa)+$"})
    message = r"'\(a\|aa\)\+\$' took more than 0.2 s on a text of 5001 characters; write it"
    with pytest.raises(UsageError, match=message):
        measure.score("a" * 5000 + "b")
    assert measure.score("aaa").value == 1


def test_unknown_names_have_their_own_error():
    with pytest.raises(UnknownName):
        build("uper_case")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("holdfast.nowhere.score", "'holdfast.nowhere.score' cannot be imported"),
        ("os.path.nothing", "'os.path.nothing' cannot be imported"),
        ("os.sep", "is a str, not a function"),
        ("exists", "write {python: package.module.function}"),
    ],
)
def test_bad_user_code_is_named(path, message):
    with pytest.raises(UsageError) as excinfo:
        build({"python": path}, allow_code=True)
    assert message in str(excinfo.value)


def test_user_code_runs_if_allowed(tmp_path, monkeypatch):
    code = "def vowels(text): return text.count('a') / len(text)\ndef big(text): return 7\n"
    (tmp_path / "my_measures.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    measure = build({"python": "my_measures.vowels"}, allow_code=True)
    assert measure.score("ab").value == 0.5
    assert build(measure.spec, allow_code=True) == measure
    with pytest.raises(UsageError, match=r"'my_measures.vowels' .*ZeroDivisionError"):
        measure.score("")
    with pytest.raises(UsageError, match=r"between 0 and 1, not 7\.0"):
        build({"python": "my_measures.big"}, allow_code=True).score("x")


# The catalogue


def test_importing_the_measures_loads_no_lexicon():
    command = [sys.executable, "-c", "import sys, holdfast.measures; print(*sorted(sys.modules))"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    lexicons = {"vaderSentiment", "wordfreq", "lemminflect", "py3langid", "regex", "numpy", "torch"}
    assert not lexicons & set(result.stdout.split())


def test_catalogue_has_one_line_per_measure():
    entries = [(name, arguments) for name, arguments, _ in catalogue()]
    assert ("contains", ("words", "all=true", "case=false", "whole=true")) in entries
    assert all(line.endswith(".") and "\n" not in line for _, _, line in catalogue())
