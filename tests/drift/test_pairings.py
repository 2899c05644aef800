"""Who talks to whom: the prompts of both sides, and the probes that are drawn for them."""

import itertools
from collections import Counter
from dataclasses import replace

import pytest
from scripted_model import Scripted, ScriptedModel
from short_drift import SUITE
from synthetic_run import as_json

from holdfast import drift
from holdfast.drift.pairing import draw_pairing
from holdfast.drift.resolved_settings import user_prompt_of


def rule(word: str, *probes: str) -> drift.Rule:
    probes = probes or (f"Where is the {word}?", f"Who took the {word}?")
    return drift.Rule(word, probes, {"regex": word})


RULES = tuple(map(rule, ("bread", "rain", "music")))
BOT = drift.Case("bot", "rules", "Talk about bread, rain and music.", rules=RULES)
PERSONAS = (drift.Persona("ada", "You are Ada."), drift.Persona("max", "You are Max."))
ONE_BOT = drift.Suite("bot", (BOT,), ("hello there", "how are you?"))
BRIEF = drift.Settings(rounds=2, conversations=6, seed=2)


# A bot with several rules


def test_one_bot_with_several_rules_is_probed_for_each_at_every_round(tmp_path):
    run = drift.run(Scripted(), ONE_BOT, tmp_path / "run", BRIEF)
    assert run.manifest.identity.to_json()["settings"]["user_prompt"] == "empty"
    expected = list(itertools.product((1, 2), ("bread", "rain", "music")))
    for record in as_json(run):
        assert [(p["round"], p["rule"]) for p in record["probes"]] == expected
        assert {(p["kind"], p["probe"]) for p in record["probes"]} == {("stability", 0)}
        questions = [p["question"] for p in record["probes"]]
        assert questions[:3] == questions[3:]
        assert record["user"] == {"id": None, "category": None, "system_prompt": ""}
    assert len({r["probes"][0]["question"] for r in as_json(run)}) == 2, "drawn per conversation"


def test_each_rule_is_scored_by_its_own_measure(tmp_path):
    class OfBreadAndRain(ScriptedModel):
        def text(self, request):
            return "bread and rain"

    record = as_json(drift.run(OfBreadAndRain(), ONE_BOT, tmp_path / "run", BRIEF))[0]
    assert {p["rule"]: p["score"] for p in record["probes"]} == {"bread": 1, "rain": 1, "music": 0}


def test_a_rule_draws_the_same_probe_whatever_other_rules_there_are():
    alone = replace(ONE_BOT, cases=(replace(BOT, rules=BOT.rules[1:2]),))
    for number in range(6):
        (probe,) = draw_pairing(alone, BRIEF, number).round_probes
        assert probe in draw_pairing(ONE_BOT, BRIEF, number).round_probes


# The prompt of the user


def test_a_persona_prompts_the_user_model_and_adoption_is_not_probed(tmp_path):
    scripted = Scripted()
    suite = replace(ONE_BOT, personas=PERSONAS)
    records = as_json(drift.run(scripted, suite, tmp_path / "run", BRIEF))
    assert {r["user"]["id"] for r in records} == {"ada", "max"}
    assert {p["kind"] for r in records for p in r["probes"]} == {"stability"}
    user_prompts = [q.messages[0]["content"] for q in scripted.requests if q.thread[0] == "user"]
    assert user_prompts == [r["user"]["system_prompt"] for r in records]
    assert all(r["user"]["category"] is None for r in records)
    plain = as_json(drift.run(Scripted(), ONE_BOT, tmp_path / "plain", BRIEF))
    for record, row in zip(plain, records, strict=True):
        assert (record["agent"], record["turns"][0]) == (row["agent"], row["turns"][0])
        questions = [[p["question"] for p in r["probes"]] for r in (record, row)]
        assert questions[0] == questions[1]


def test_the_source_of_the_user_prompt_follows_from_the_suite_unless_given():
    with_personas = replace(SUITE, personas=PERSONAS)
    for suite, choice, source in (
        (SUITE, "auto", "suite"),
        (ONE_BOT, "auto", "empty"),
        (replace(ONE_BOT, personas=PERSONAS), "auto", "persona"),
        (with_personas, "auto", "persona"),
        (with_personas, "suite", "suite"),
        (with_personas, "empty", "empty"),
    ):
        assert user_prompt_of(suite, replace(BRIEF, user_prompt=choice)) == source


def test_rules_of_both_speakers_are_probed_if_the_user_is_a_bot_too(tmp_path):
    suite = replace(SUITE, cases=(BOT, SUITE.cases[1]))
    records = as_json(drift.run(Scripted(), suite, tmp_path / "run", BRIEF))
    assert len(records) == BRIEF.conversations
    for record in records:
        probes = [p for p in record["probes"] if p["round"] == 1]
        first = [(p["kind"], p.get("rule"), p["probe"]) for p in probes]
        names, no_rule = [("bread", 0), ("rain", 0), ("music", 0)], [(None, 0)]
        agent, user = (names, no_rule) if record["agent"]["id"] == "bot" else (no_rule, names)
        expected = [("stability", *name) for name in agent] + [("adoption", *name) for name in user]
        assert first == expected


# Pairs


@pytest.mark.parametrize("personas", [(), PERSONAS])
def test_balanced_pairs_meet_equally_often_from_the_start(personas):
    suite = replace(SUITE, personas=personas)
    settings = replace(BRIEF, pairs="balanced")
    pairings = [draw_pairing(suite, settings, number) for number in range(6)]
    pairs = [(pairing.agent.id, pairing.user.id) for pairing in pairings]
    assert len(set(pairs)) == 6 and all(agent != user for agent, user in pairs)
    for end in range(1, 7):
        assert max(Counter(agent for agent, _ in pairs[:end]).values()) == -(-end // 3)
    starters = [draw_pairing(suite, BRIEF, number).starter for number in range(6)]
    assert [pairing.starter for pairing in pairings] == starters
    later_pairings = [draw_pairing(suite, settings, number + 6) for number in range(6)]
    assert [(pairing.agent.id, pairing.user.id) for pairing in later_pairings] == pairs


def test_all_pairs_with_personas_combine_every_case_with_every_persona():
    suite = replace(SUITE, personas=PERSONAS)
    pairings = [draw_pairing(suite, replace(BRIEF, pairs="all"), number) for number in range(6)]
    assert len({(pairing.agent.id, pairing.user.id) for pairing in pairings}) == 6


def test_all_pairs_go_through_the_permutations_of_the_cases():
    cases = tuple(replace(SUITE.cases[0], id=name) for name in "abcd")
    suite, settings = replace(SUITE, cases=cases), replace(BRIEF, pairs="all")
    pairings = [draw_pairing(suite, settings, number) for number in range(13)]
    pairs = list(itertools.permutations("abcd", 2))
    assert [(pairing.agent.id, pairing.user.id) for pairing in pairings] == [*pairs, pairs[0]]
