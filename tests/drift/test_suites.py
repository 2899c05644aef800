"""A suite from a file: what is read, and how a mistake in it is named."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from measure_rows import rows_of
from paths import ROOT

from holdfast.drift.cases import Case, Persona, Rule, Suite
from holdfast.drift.suite_entries import CaseEntry, SuiteFile
from holdfast.drift.suites import load_suite
from holdfast.drift.user_scripts import PRESSURES, Pressure
from holdfast.errors import HoldfastError, UnknownName, UsageError
from holdfast.measures import build
from holdfast.measures.rule_kinds import KINDS, POLARITIES, Polarity, RuleKind

BOT = """
personas: ["You are Ada.", "You are Max."]
cases:
  - id: pizza
    system_prompt: Sign with Tony. Never say sorry.
    rules:
      - id: signs
        probes: ["Hi?", "Hello?"]
        measure: {name: ends_with, word: Tony}
        follows: ["Ciao, Tony"]
        breaks: ["Ciao."]
      - id: proud
        probe: Why is it cold?
        measure: {name: never_contains, words: [sorry]}
"""
GOOD = """
name: mine
starters: ["Hello there."]
cases:
  - id: one
    category: shop
    system_prompt: Answer in one sentence.
    probe: How are you?
    measure: one_sentence
  - id: two
    category: shop
    system_prompt: SHOUT.
    probes: ["What now?", "Where to?"]
    measure: {name: upper_case}
    follows: ["AHA"]
    breaks: ["aha"]
"""


@pytest.fixture
def suite_file(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / "mine.yaml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


# What is read

CORE = load_suite("core")


def test_a_suite_file_of_the_user_is_read(suite_file):
    suite = load_suite(suite_file(GOOD))
    assert (suite.name, suite.starters) == ("mine", ("Hello there.",))
    case, two = suite.cases
    sentence = build("one_sentence")
    assert case == Case("one", "shop", "Answer in one sentence.", ("How are you?",), sentence)
    (rule,) = two.rules
    assert (rule.probes, rule.follows, rule.breaks) == (
        ("What now?", "Where to?"),
        ("AHA",),
        ("aha",),
    )
    bare = GOOD.replace("name: mine\n", "", 1).replace('starters: ["Hello there."]\n', "")
    suite = load_suite(suite_file(bare))
    assert suite.name == "mine" and suite.starters == CORE.starters


def test_a_case_with_rules_is_read(suite_file):
    suite = load_suite(suite_file(BOT))
    (case,) = suite.cases
    ends = {"name": "ends_with", "word": "Tony"}
    signs = Rule("signs", ("Hi?", "Hello?"), ends, ("Ciao, Tony",), ("Ciao.",))
    never = build({"name": "never_contains", "words": ["sorry"]})
    rules = (signs, Rule("proud", ("Why is it cold?",), never))
    assert case == Case("pizza", "rules", "Sign with Tony. Never say sorry.", rules=rules)
    ada, max = Persona("persona-1", "You are Ada."), Persona("persona-2", "You are Max.")
    assert suite.personas == (ada, max)
    (rule,) = CORE.cases[0].rules
    assert rule == Rule(None, rule.probes, rule.measure, rule.follows, rule.breaks)


def test_the_kind_and_the_polarity_of_a_rule_are_read(suite_file):
    text = GOOD.replace("measure: one_sentence", "measure: one_sentence\n    kind: length", 1)
    (first,), (second,) = (case.rules for case in load_suite(suite_file(text)).cases)
    assert (first.kind, first.polarity, second.kind) == ("length", None, None)
    text = BOT.replace("- id: signs", "- id: signs\n        kind: closing\n        polarity: gate")
    signs, proud = load_suite(suite_file(text)).cases[0].rules
    assert (signs.kind, signs.polarity, proud.kind) == ("closing", "gate", None)
    with pytest.raises(UsageError, match=r"rule 'signs'.*closing, opening.*'clossing'"):
        load_suite(suite_file(text.replace("kind: closing", "kind: clossing")))


def test_a_case_needs_no_category_whatever_it_measures(suite_file):
    bare = GOOD.replace("    category: shop\n", "", 1)
    assert [case.category for case in load_suite(suite_file(bare)).cases] == ["rules", "shop"]
    probe = "    probe: How are you?\n    measure: one_sentence\n"
    short = "    rules: [{id: short, probe: How are you?, measure: one_sentence}]\n"
    rules = bare.replace(probe, short)
    case, _ = load_suite(suite_file(rules)).cases
    assert (case.category, len(case.rules)) == ("rules", 1)


def test_a_few_aliases_are_allowed(suite_file):
    text = GOOD.replace("probe: How are you?", "probe: &p How are you?")
    text = text.replace('["What now?", "Where to?"]', "[*p]")
    assert load_suite(suite_file(text)).cases[1].rules[0].probes == ("How are you?",)


def test_the_suffix_of_a_suite_does_not_matter(tmp_path):
    text = "cases:\n- {id: a, system_prompt: Hi, probe: Hi?, measure: {regex: hi}}\n"
    (suite := tmp_path / "suite.txt").write_text(text)
    assert [case.id for case in load_suite(suite).cases] == ["a"]


# Mistakes in a file


@pytest.mark.parametrize(
    ("suite", "change", "message"), [tuple(row.values()) for row in rows_of("bad_suites.jsonl")]
)
def test_a_mistake_in_a_case_or_rule_is_named_with_its_line(suite_file, suite, change, message):
    text = {"BOT": BOT, "GOOD": GOOD}[suite]
    assert text.replace(*change, 1) != text
    with pytest.raises(UsageError, match=message):
        load_suite(suite_file(text.replace(*change, 1)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rules: []", r"the field 'rules' has to be .* not empty, not an empty list"),
        ("rules: [signs]", r"case 'p', rule 1 has to be an object, not 'signs'"),
        (
            "rules: [{id: r, kind: x, measure: one_sentence}]",
            r"the field 'kind' must be one of closing, opening, .*; got 'x'\.",
        ),
        (
            "rules: [{id: r, measure: {name: command_not_run, pattern: x}}]",
            r"'command_not_run' has no field 'pattern'; its only field is 'command'\.",
        ),
    ],
)
def test_invalid_rules_are_named(suite_file, text, message):
    with pytest.raises(UsageError, match=message):
        load_suite(suite_file(f"cases: [{{id: p, system_prompt: Hi., {text}}}]"))


def test_examples_of_a_single_measure_are_checked_too(suite_file):
    with pytest.raises(UsageError, match=r"'two'.*'aha'.*'follows'"):
        load_suite(suite_file(GOOD.replace('follows: ["AHA"]', 'follows: ["aha"]')))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"mine\.yaml is empty; it needs the field 'cases'"),
        ("name: x\n", r"the field 'cases' is missing; give a list"),
        ("name: x\ncases: []\n", r"the field 'cases' has to be .* not empty, not an empty list"),
        ("cases: [hello]\n", r"yaml, case 1 has to be an object, not 'hello'"),
        ("a: \x00", r"not valid YAML"),
        (
            GOOD.replace("id: one", "id: " + "9" * 5000),
            r"cannot be read as YAML \(Exceeds",
        ),
        ("cases: !!python/object/apply:os.system ['true']", r"not valid YAML at line 1"),
    ],
)
def test_a_malformed_suite_file_is_refused_with_the_reason(suite_file, text, message):
    with pytest.raises(UsageError, match=message):
        load_suite(suite_file(text))


def test_unreadable_files_are_named(tmp_path):
    with pytest.raises(UsageError, match=r"absent\.yaml.*No such file"):
        load_suite(str(tmp_path / "absent.yaml"))
    (tmp_path / "latin.yaml").write_bytes("name: caf\xe9".encode("latin-1"))
    with pytest.raises(UsageError, match=r"latin\.yaml.*\(byte 9\)"):
        load_suite(str(tmp_path / "latin.yaml"))


@pytest.mark.parametrize("text", ["Be brief: no lists.", "Never use emojis.", "- a\n- b"])
def test_a_prompt_in_place_of_a_suite_is_answered_with_the_way_to_draft_one(text, tmp_path):
    (prompt := tmp_path / "bot.txt").write_text(text)
    cure = re.escape(f"`holdfast suite init {prompt} --out {tmp_path / 'bot.yaml'}`")
    with pytest.raises(UsageError, match=f"is not a suite.*{cure}"):
        load_suite(prompt)


def test_unknown_suite_and_scoring_suggest_the_nearest():
    with pytest.raises(UnknownName) as excinfo:
        load_suite("cores")
    assert (excinfo.value.name, excinfo.value.suggestion) == ("cores", "core")
    with pytest.raises(UnknownName) as excinfo:
        load_suite("core", scoring="strickt")
    assert (excinfo.value.name, excinfo.value.suggestion) == ("strickt", "strict")
    with pytest.raises(UsageError, match="is a folder; give a YAML file"):
        load_suite(str(Path(__file__).parent))
    with pytest.raises(UsageError, match=r"'released'.*'core'"):
        load_suite("core", scoring="released")
    with pytest.raises(UsageError, match="li2024:hub"):
        load_suite("li2024")


# Suites in Python


def shout(text):
    return float(text.isupper())


def loud_words(text):
    return shout(text) + "1"


def test_functions_and_specs_are_measures_in_python():
    case = Case("loud", "mine", "SHOUT.", ("What now?",), shout)
    (rule,) = case.rules
    assert rule.measure.score("AHA").value == 1 and rule.measure.score("aha").value == 0
    assert rule.measure.spec == {"name": "python", "python": f"{__name__}.shout"}
    suite_case = Case("loud", "mine", "SHOUT.", ["What now?"], "upper_case")
    assert suite_case == Case("loud", "mine", "SHOUT.", ("What now?",), build("upper_case"))
    with pytest.raises(UsageError, match="not 3"):
        Case("loud", "mine", "SHOUT.", ("What now?",), 3)
    with pytest.raises(UsageError, match=r"not <class 'int'>"):
        Case("loud", "mine", "SHOUT.", ("What now?",), int)
    with pytest.raises(UsageError, match=r"loud_words'.*'x'"):
        Case("loud", "mine", "SHOUT.", ("What now?",), loud_words).rules[0].measure.score("x")


def test_cases_that_make_no_sense_are_refused():
    rule = Rule("loud", ("What now?",), "upper_case")
    for arguments, message in (
        ({}, "neither a measure nor rules"),
        ({"rules": (rule,), "measure": "upper_case"}, "both rules and a measure"),
        ({"rules": (rule,), "probes": ("Hi?",)}, "probes or examples beside its rules"),
        ({"rules": (rule, rule)}, r"a rule with the id 'loud', which another rule has too"),
        ({"rules": (replace(rule, id=""),)}, r"a rule with the id '', which is empty"),
        ({"measure": "upper_case", "probes": "Hi?"}, r"has 'Hi\?' as its probes; give a tuple"),
    ):
        with pytest.raises(UsageError, match=message):
            Case("bot", "mine", "SHOUT.", **arguments)


def test_a_suite_given_as_lists_cannot_change():
    replies = ["Tony"]
    rule = Rule("name", ["Who are you?"], "one_sentence", follows=replies)
    cases = [Case("tony", "mine", "Be Tony.", rules=[rule])]
    starters = ["hello"]
    suite = Suite("lists", cases, starters)
    for values in (replies, cases, starters):
        values.clear()
    assert suite.starters == ("hello",) and suite.cases[0].rules[0].follows == ("Tony",)
    assert suite == Suite("lists", suite.cases, ("hello",))


# Fingerprints


def with_case(suite, **changes):
    """The suite with its first case changed."""
    return replace(suite, cases=(replace(suite.cases[0], **changes), *suite.cases[1:]))


def with_rule(suite, **changes):
    """The suite with its first rule changed."""
    return with_case(suite, rules=(replace(suite.cases[0].rules[0], **changes),))


def test_fingerprint_changes_only_with_what_affects_results(suite_file):
    suite = load_suite(suite_file(GOOD))
    equal = (
        replace(suite, name="other"),
        replace(suite, notes=("n",)),
        with_rule(suite, follows=("x",)),
    )
    variants = (
        replace(suite, starters=("Hi.",)),
        replace(suite, cases=suite.cases[::-1]),
        with_case(suite, id="uno"),
        with_case(suite, system_prompt="Be brief."),
        with_rule(suite, probes=("Who?",)),
        with_rule(suite, measure=build({"name": "sentence_count", "count": 1})),
    )
    assert {variant.fingerprint for variant in equal} == {suite.fingerprint}
    assert len({variant.fingerprint for variant in (suite, *variants)}) == len(variants) + 1


# the fingerprint of GOOD in the versions before rules existed
OLD_FINGERPRINT = "69faeed99858ab78fe2c45e995e699bc7d0e4228f43e97e2ae0537ba0c134d32"


def test_rules_and_personas_are_in_the_fingerprint_and_single_measures_keep_theirs(suite_file):
    suite = load_suite(suite_file(BOT))
    signs, proud = suite.cases[0].rules
    renamed, measured = replace(signs, id="x"), replace(signs, measure="one_sentence")
    rule_sets = (proud, signs), (renamed, proud), (measured, proud)
    suites = [suite, replace(suite, personas=()), *(with_case(suite, rules=r) for r in rule_sets)]
    assert len({item.fingerprint for item in suites}) == 5
    assert load_suite(suite_file(GOOD)).fingerprint == OLD_FINGERPRINT


# Functions as measures

WITH_FUNCTION = GOOD.replace("{name: upper_case}", "{python: own_measure_of_test.half}").replace(
    '    follows: ["AHA"]\n    breaks: ["aha"]\n', ""
)


def test_python_measure_runs_only_when_allowed(suite_file, tmp_path, monkeypatch):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "own_measure_of_test.py").write_text("def half(text):\n    return 0.5\n")
    monkeypatch.syspath_prepend(str(tmp_path / "code"))
    path = suite_file(WITH_FUNCTION)
    with pytest.raises(HoldfastError, match="allow_code=True"):
        load_suite(path)
    assert "own_measure_of_test" not in sys.modules
    assert load_suite(path, allow_code=True).cases[1].rules[0].measure.score("x").value == 0.5


def test_python_measure_is_found_beside_its_suite_and_not_confused_with_anothers(tmp_path):
    before = list(sys.path)
    code = "from part_of_test import VALUE\ndef half(text):\n    return VALUE\n"
    for name, value in (("one", 0.25), ("two", 0.75)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "part_of_test.py").write_text(f"VALUE = {value}\n")
        (tmp_path / name / "own_measure_of_test.py").write_text(code)
        (tmp_path / name / "mine.yaml").write_text(WITH_FUNCTION)
    paths = [str(tmp_path / name / "mine.yaml") for name in ("one", "two")]
    suites = [load_suite(path, allow_code=True) for path in paths]
    assert [suite.cases[1].rules[0].measure.score("x").value for suite in suites] == [0.25, 0.75]
    assert sys.path == before and "own_measure_of_test" not in sys.modules


@pytest.mark.parametrize(
    ("module", "why"), [(None, "Module.*beside the suite's"), ("def half(text:\n", "SyntaxError")]
)
def test_a_function_that_cannot_be_imported_is_named(suite_file, tmp_path, module, why):
    if module:
        (tmp_path / "own_measure_of_test.py").write_text(module)
    message = r"case 'two': The measure 'own_measure_of_test.half' cannot be imported \("
    with pytest.raises(UsageError, match=message + why):
        load_suite(suite_file(WITH_FUNCTION), allow_code=True)


# Documentation


def test_fields_of_a_suite_are_documented():
    text = (ROOT / "docs" / "suites.md").read_text(encoding="utf-8")
    for field in {*SuiteFile.model_fields, *CaseEntry.model_fields}:
        assert f"`{field}`" in text, field


def test_kinds_of_rules_and_pressures_are_complete_and_documented():
    docs = ROOT / "docs"
    for names, described, page in (
        (RuleKind, KINDS, "suites"),
        (Polarity, POLARITIES, "suites"),
        (Pressure, PRESSURES, "conversations"),
    ):
        assert list(get_args(names)) == list(described)
        text = (docs / f"{page}.md").read_text(encoding="utf-8")
        for name, description in described.items():
            assert f"| `{name}` | {description} |" in text
