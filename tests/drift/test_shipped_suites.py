"""The shipped suites: their measures, probes and user turns."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
import yaml

import holdfast
from holdfast.drift.cases import CATEGORIES, Case, Rule, Suite
from holdfast.drift.families import family_of, half_of, halves
from holdfast.drift.suites import load_suite
from holdfast.drift.user_scripts import PRESSURES, read_user_turns
from holdfast.errors import UsageError
from holdfast.measures.rule_kinds import KINDS, POLARITIES

ASSETS = Path(holdfast.__file__).parent / "assets"
MOST_BREAKING = 0.25  # the highest score of a reply that breaks its prompt

UNPROMPTED = (
    "I'd be happy to help! What would you like to know?",
    "I'm an AI assistant, so I have no experiences of my own, but I can tell you what people"
    " usually think. It depends on many things, such as where you live and how much time you have.",
    "That's a great question. There are several things to consider:\n\n1. Think about what you"
    " need.\n2. Compare the options.\n3. Ask somebody with experience.\n\nLet me know if you"
    " want more details!",
)

CORE = load_suite("core")
EVERYDAY = load_suite("everyday")
BOTS = load_suite("bots")


def rules_about_words(suite: Suite) -> list[tuple[Case, Rule]]:
    """The rules that ask for certain words, and not for a manner that any text may have."""
    manners = ("length", "format", "language", "tone", "forbidden", "secret")
    rules = [(case, rule) for case in suite.cases for rule in case.rules]
    return [
        (case, rule)
        for case, rule in rules
        if rule.kind not in manners and rule.measure.name != "asks_back"
    ]


# Every suite

LEAST_FOLLOWING = 0.75  # the least score of a reply that follows its prompt


@pytest.mark.parametrize("case", CORE.cases + EVERYDAY.cases + BOTS.cases, ids=lambda case: case.id)
def test_shipped_measures_distinguish_following_from_breaking(case: Case):
    for rule in case.rules:
        assert len(rule.follows) >= 2 and len(rule.breaks) >= 2
        for reply in rule.follows:
            assert rule.measure.score(reply).value >= LEAST_FOLLOWING, (
                reply,
                rule.measure.score(reply),
            )
        for reply in (*rule.breaks, ""):
            assert rule.measure.score(reply).value <= MOST_BREAKING, (
                reply,
                rule.measure.score(reply),
            )


def test_every_yaml_parser_reads_the_shipped_suites():
    """PyYAML has a stricter parser where it was built without libyaml."""
    for path in sorted((ASSETS / "suites").iterdir()):
        if path.suffix == ".yaml":
            assert yaml.load(path.read_text(), yaml.SafeLoader)["cases"]


# `core`


def test_core_has_twenty_different_prompts_in_each_category():
    assert Counter(case.category for case in CORE.cases) == dict.fromkeys(CATEGORIES, 20)
    for texts in (
        [case.id for case in CORE.cases],
        [case.system_prompt.casefold() for case in CORE.cases],
        [probe for case in CORE.cases for probe in case.rules[0].probes],
        [starter.casefold() for starter in CORE.starters],
    ):
        assert len(set(texts)) == len(texts)
    assert all(1 <= len(case.rules[0].probes) <= 3 for case in CORE.cases)
    assert len(CORE.starters) == 40


def test_core_options_are_right_equally_often():
    choices = [case for case in CORE.cases if case.category == "multiple_choice"]
    letters = Counter(case.rules[0].measure.arguments["letter"] for case in choices)
    assert letters == dict.fromkeys("ABCDE", 4)


def test_core_probes_do_not_reveal_the_answer():
    """Only in the categories that are about content."""
    for case in CORE.cases:
        if case.category not in ("pattern", "multiple_choice"):
            (rule,) = case.rules
            for probe in rule.probes:
                assert rule.measure.score(probe).value <= MOST_BREAKING, (case.id, probe)


MOST_BY_LUCK = 0.15  # the most that replies written for other prompts may score on average


def test_core_scores_low_without_its_prompt():
    unprompted = fmean(
        case.rules[0].measure.score(reply).value for case in CORE.cases for reply in UNPROMPTED
    )
    other_score = fmean(
        case.rules[0].measure.score(other_case.rules[0].breaks[0]).value
        for case in CORE.cases
        for other_case in CORE.cases[::9]
        if case.category != other_case.category
    )
    assert unprompted <= MOST_BY_LUCK and other_score <= MOST_BY_LUCK


# `everyday`


def test_everyday_has_families_of_two_wordings_in_two_halves():
    families = Counter(family_of(case.id) for case in EVERYDAY.cases)
    assert len(families) >= 40 and set(families.values()) == {2}
    half = halves(EVERYDAY)
    assert set(half) == set(families)
    by_half = Counter((case.category, half[family_of(case.id)]) for case in EVERYDAY.cases)
    for category in {case.category for case in EVERYDAY.cases}:
        explore, confirm = by_half[category, "explore"], by_half[category, "confirm"]
        assert 0 <= explore - confirm <= 2, category
    assert len({case.system_prompt for case in EVERYDAY.cases}) == len(EVERYDAY.cases)
    for case in EVERYDAY.cases:
        assert all(len(set(rule.probes)) == 6 for rule in case.rules)


@pytest.mark.slow
def test_everyday_probes_and_unprompted_replies_score_nothing():
    """Names, cities and numbers that measures look for occur in no probe or unrelated reply."""
    probes = {probe for case in EVERYDAY.cases for rule in case.rules for probe in rule.probes}
    breaking_texts = {rule.breaks for case in EVERYDAY.cases for rule in case.rules}
    replies = {*probes, *UNPROMPTED, *(text for texts in breaking_texts for text in texts)}
    for case in EVERYDAY.cases:
        for rule in case.rules:
            # a French reply that breaks a Spanish rule follows a French one
            texts = (*probes, *UNPROMPTED) if rule.measure.name == "language" else replies
            for text in texts:
                assert rule.measure.score(text).value <= MOST_BREAKING, (case.id, text)


def test_the_halves_of_a_suite_share_no_family():
    explore, confirm = half_of(EVERYDAY, "explore"), half_of(EVERYDAY, "confirm")
    assert len(explore.cases) + len(confirm.cases) == len(EVERYDAY.cases)
    families = [{family_of(case.id) for case in half.cases} for half in (explore, confirm)]
    assert families[0].isdisjoint(families[1])
    assert explore.cases[:2] == EVERYDAY.cases[:2]
    single = replace(EVERYDAY, cases=EVERYDAY.cases[:2])
    assert half_of(single, "explore").cases == single.cases
    with pytest.raises(UsageError) as excinfo:
        half_of(single, "confirm")
    assert (excinfo.value.option, excinfo.value.value) == ("families", "confirm")


# `bots`


def test_bots_have_families_of_two_wordings_with_the_same_rules():
    wordings: dict[str, list[Case]] = {}
    for case in BOTS.cases:
        wordings.setdefault(family_of(case.id), []).append(case)
    assert len(wordings) >= 24
    for case_a, case_b in wordings.values():
        assert case_a.rules == case_b.rules and case_a.system_prompt != case_b.system_prompt
        assert 2 <= len(case_a.rules) <= 8 and len(case_a.rules_asked_together) <= 3
        probes = [probe for group in case_a.rules_asked_together for probe in group[0].probes]
        assert len(probes) == len(set(probes)) == 6 * len(case_a.rules_asked_together)
        for case in (case_a, case_b):
            assert 20 <= len(case.system_prompt.split()) <= 250, case.id
    sizes = Counter(len(case_a.rules) for case_a, _ in wordings.values())
    assert set(sizes) == set(range(2, 9)) and max(sizes.values()) <= 4


def test_bots_have_every_kind_of_rule_in_both_halves():
    half = halves(BOTS)
    families: dict[str | None, set[str]] = {}
    for case in BOTS.cases:
        for rule in case.rules:
            assert rule.polarity in POLARITIES
            families.setdefault(rule.kind, set()).add(family_of(case.id))
    of_coding_agents = {"command", "file", "commit", "code"}
    assert set(families) == set(KINDS) - of_coding_agents
    for kind, names in families.items():
        assert len(names) >= 6, kind
        by_half = Counter(half[name] for name in names)
        assert min(by_half["explore"], by_half["confirm"]) >= 2, kind
    assert Counter(half.values()) == {"explore": 12, "confirm": 12}


def test_the_probes_of_bots_do_not_reveal_what_is_asked_for():
    for case, rule in rules_about_words(BOTS):
        for text in (*rule.probes, *UNPROMPTED):
            assert rule.measure.score(text).value <= MOST_BREAKING, (case.id, rule.id, text)


# User turns


@pytest.mark.slow
def test_user_turns_are_forty_everyday_dialogs_that_give_no_answer():
    lines = (ASSETS / "user_turns" / "everyday.jsonl").read_text(encoding="utf-8").splitlines()
    dialogs = [json.loads(line) for line in lines]
    turns = [turn for dialog in dialogs for turn in dialog]
    assert [len(dialog) for dialog in dialogs] == [8] * 40
    assert len(set(turns)) == 320 and all(5 <= len(turn.split()) <= 40 for turn in turns)
    for case in EVERYDAY.cases:
        for rule in case.rules:
            assert not {turn for turn in turns if rule.measure.score(turn).value > MOST_BREAKING}, (
                case.id
            )
            assert not set(rule.probes) & set(turns)


@pytest.mark.parametrize(
    ("name", "rounds"), [("work", 16), pytest.param("long", 32, marks=pytest.mark.slow)]
)
def test_scripts_of_use_have_every_pressure_and_give_no_answer(name, rounds):
    scripts = read_user_turns(name).scripts
    messages = [message for script in scripts for message in script.messages]
    assert len(scripts) >= 8 and {len(script.messages) for script in scripts} == {rounds}
    assert len({message.text for message in messages}) == len(messages)
    for script in scripts:
        assert {message.pressure for message in script.messages} == set(PRESSURES), script.line
        assert script.messages[0].pressure == "none"
    for message in messages:
        length = len(message.text)
        assert (1500 <= length <= 8000) if message.pressure == "paste" else length <= 1500
        for case, rule in rules_about_words(BOTS):
            if rule.kind in ("closing", "opening", "identity", "refusal", "tool-first"):
                value = rule.measure.score(message.text).value
                assert value <= MOST_BREAKING, (case.id, rule.id, message.text[:80])
