"""Suites: the shipped hundred tell following from not following, and bad YAML is named precisely."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from statistics import fmean

import pytest

from holdfast.drift.suites import CATEGORIES, Case, load_suite
from holdfast.errors import HoldfastError, UnknownName, UsageError
from holdfast.measures import build

FOLLOWS, BREAKS = 0.75, 0.25  # what a measure must give to a reply that keeps to its prompt, or does not
LUCK = 0.15  # the most that replies written for other prompts may score on average
UNPROMPTED = (
    "I'd be happy to help! What would you like to know?",
    "I'm an AI assistant, so I have no experiences of my own, but I can tell you what people usually think. "
    "It depends on many things, such as where you live and how much time you have.",
    "That's a great question. There are several things to consider:\n\n1. Think about what you need.\n"
    "2. Compare the options.\n3. Ask somebody with experience.\n\nLet me know if you want more details!",
)

CORE = load_suite("core")
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


@pytest.mark.parametrize("case", CORE.cases, ids=lambda case: case.id)
def test_core_measure_tells_following_from_not_following(case: Case):
    assert len(case.follows) >= 2 and len(case.breaks) >= 2
    for reply in case.follows:
        assert case.measure.score(reply).value >= FOLLOWS, (reply, case.measure.score(reply))
    for reply in (*case.breaks, ""):
        assert case.measure.score(reply).value <= BREAKS, (reply, case.measure.score(reply))


def test_core_probes_do_not_reveal_the_answer():
    """In the categories that are about content: a question may well be one sentence, and it names all options."""
    for case in CORE.cases:
        if case.category not in ("pattern", "multiple_choice"):
            for probe in case.probes:
                assert case.measure.score(probe).value <= BREAKS, (case.id, probe)


def test_core_scores_low_without_its_prompt():
    unprompted = fmean(case.measure.score(reply).value for case in CORE.cases for reply in UNPROMPTED)
    others = fmean(
        case.measure.score(other.breaks[0]).value
        for case in CORE.cases
        for other in CORE.cases[::9]
        if case.category != other.category
    )
    assert unprompted <= LUCK and others <= LUCK


def test_core_has_twenty_different_prompts_in_each_category():
    assert Counter(case.category for case in CORE.cases) == dict.fromkeys(CATEGORIES, 20)
    for texts in (
        [case.id for case in CORE.cases],
        [case.system_prompt.casefold() for case in CORE.cases],
        [probe for case in CORE.cases for probe in case.probes],
        [starter.casefold() for starter in CORE.starters],
    ):
        assert len(set(texts)) == len(texts)
    assert all(1 <= len(case.probes) <= 3 for case in CORE.cases)
    assert len(CORE.starters) == 40


def test_core_options_are_right_equally_often():
    letters = Counter(case.measure.arguments["letter"] for case in CORE.cases if case.category == "multiple_choice")
    assert letters == dict.fromkeys("ABCDE", 4)


def test_user_file_is_read(suite_file):
    suite = load_suite(suite_file(GOOD))
    assert (suite.name, suite.starters) == ("mine", ("Hello there.",))
    one, two = suite.cases
    assert one == Case("one", "shop", "Answer in one sentence.", ("How are you?",), build("one_sentence"))
    assert (two.probes, two.follows, two.breaks) == (("What now?", "Where to?"), ("AHA",), ("aha",))


def test_name_and_starters_have_defaults(suite_file):
    suite = load_suite(suite_file(GOOD.replace("name: mine\n", "", 1).replace('starters: ["Hello there."]\n', "")))
    assert suite.name == "mine" and suite.starters == CORE.starters


def test_fingerprint_moves_with_what_changes_results_only(suite_file):
    suite = load_suite(suite_file(GOOD))
    case = suite.cases[0]
    same = (replace(suite, name="other"), replace(suite, notes=("n",)), swap(suite, replace(case, follows=("x",))))
    other = (
        replace(suite, starters=("Hi.",)),
        replace(suite, cases=suite.cases[::-1]),
        swap(suite, replace(case, id="uno")),
        swap(suite, replace(case, system_prompt="Be brief.")),
        swap(suite, replace(case, probes=("Who?",))),
        swap(suite, replace(case, measure=build({"name": "sentence_count", "count": 1}))),
    )
    assert {changed.fingerprint for changed in same} == {suite.fingerprint}
    assert len({changed.fingerprint for changed in (suite, *other)}) == len(other) + 1


def swap(suite, case):
    return replace(suite, cases=(case, *suite.cases[1:]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("probe: How are you?", "probe: [How are you?"), r"mine.yaml is not valid YAML at line 9, column"),
        (("    category: shop\n    system_prompt: A", "    system_prompt: A"), r"line 5, case 'one' lacks the field 'category'"),
        (("    system_prompt: SHOUT.\n", ""), r"line 10, case 'two' lacks the field 'system_prompt'"),
        (("    measure: one_sentence\n", ""), r"line 5, case 'one' lacks the field 'measure'"),
        (("    probe: How are you?\n", ""), r"case 'one' has neither 'probe' nor 'probes'"),
        (("    probes: [", "    probe: x\n    probes: ["), r"case 'two' has both 'probe' and 'probes'"),
        (("category: shop", "categry: shop"), r"case 'one' has an unknown field 'categry'; did you mean 'category'"),
        (("name: mine", "nmae: mine"), r"unknown field 'nmae'; did you mean 'name'"),
        (("id: two", "id: one"), r"line 10: the id 'one' is taken by the case at line 5"),
        (("id: one", "id: 7"), r"line 5, case 1: the field 'id' is 7, not a text"),
        (("- id: one\n    ", "- "), r"line 5, case 1 lacks the field 'id'"),
        (("system_prompt: SHOUT.", "system_prompt: yes"), r"case 'two': the field 'system_prompt' is True, not a text"),
        (("system_prompt: SHOUT.", "system_prompt: ' '"), r"the field 'system_prompt' is ' ', not a text"),
        (("measure: one_sentence", "measure: one_sentense"), r"case 'one': There is no measure 'one_sentense'; did you mean 'one_sentence'"),
        (("{name: upper_case}", "{name: upper_case, size: 3}"), r"case 'two': The measure 'upper_case' has no argument 'size'"),
        (("{name: upper_case}", "{regex: '('}"), r"case 'two': "),
        (("{name: upper_case}", "{python: os.getcwd}"), r"case 'two': .*--allow-code"),
        (('["What now?", "Where to?"]', "[]"), r"case 'two': the field 'probes' is an empty list"),
        (('["What now?", "Where to?"]', '["What now?", 3]'), r"'probes\[1\]' is 3, not a text"),
        (('["Hello there."]', "Hello there."), r"the field 'starters' is 'Hello there.', not a list"),
        (("    category: shop\n", "    category: shop\n    category: pub\n"), r"line 7: the field 'category' stands here and at line 6"),
        (("measure: one_sentence", "measure: 2026-99-99"), r"cannot be read as YAML"),
    ],
)
def test_bad_case_is_named(suite_file, change, message):
    assert GOOD.replace(*change, 1) != GOOD
    with pytest.raises(UsageError, match=message):
        load_suite(suite_file(GOOD.replace(*change, 1)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"holds empty, not a suite"),
        ("- a\n- b\n", r"holds a list, not a suite"),
        ("name: x\n", r"has no cases \('cases' is empty\)"),
        ("name: x\ncases: []\n", r"has no cases \('cases' is an empty list\)"),
        ("cases: [hello]\n", r"line 1, case 1 is 'hello', not a case"),
        ("a: \x00", r"not valid YAML"),
        ("a: &x [*x]", r"unknown field 'a'"),
        ("[" * 5000, r"YAML"),
        ("cases: !!python/object/apply:os.system ['true']", r"not valid YAML at line 1"),
    ],
)
def test_bad_file_is_named(suite_file, text, message):
    with pytest.raises(UsageError, match=message):
        load_suite(suite_file(text))


def test_unreadable_files_are_named(tmp_path):
    with pytest.raises(UsageError, match=r"absent.yaml cannot be read \(No such file"):
        load_suite(str(tmp_path / "absent.yaml"))
    (tmp_path / "latin.yaml").write_bytes("name: caf\xe9".encode("latin-1"))
    with pytest.raises(UsageError, match=r"latin.yaml is not UTF-8 text \(byte 9\)"):
        load_suite(str(tmp_path / "latin.yaml"))


def test_unknown_suite_and_scoring_suggest_the_nearest():
    with pytest.raises(UnknownName, match="no suite 'cores'; did you mean 'core'"):
        load_suite("cores")
    with pytest.raises(UnknownName, match="no scoring 'strickt'; did you mean 'strict'"):
        load_suite("core", scoring="strickt")
    with pytest.raises(UsageError, match="'released' is for li2024 suites, not for 'core'"):
        load_suite("core", scoring="released")
    with pytest.raises(UsageError, match="li2024:hub"):
        load_suite("li2024")


def test_python_measure_runs_only_when_allowed(suite_file, tmp_path, monkeypatch):
    (tmp_path / "own_measure_of_test.py").write_text("def half(text):\n    return 0.5\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    path = suite_file(GOOD.replace("{name: upper_case}", "{python: own_measure_of_test.half}"))
    with pytest.raises(HoldfastError, match="--allow-code"):
        load_suite(path)
    assert "own_measure_of_test" not in sys.modules
    assert load_suite(path, allow_code=True).cases[1].measure.score("x").value == 0.5


def test_loading_imports_no_torch():
    code = "import sys; from holdfast.drift.suites import load_suite; load_suite('core'); sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
