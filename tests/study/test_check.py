"""Verdicts of `holdfast check`, and the conversations that they rest on."""

import json
import math

import numpy as np
import pytest
from scored_checks import junit_of, scored_conversations
from three_prompts import ROUNDS, SHARES, SUITE, TERMS, KeepsShares

from holdfast import drift
from holdfast.analysis.check_file import read_check
from holdfast.analysis.check_verdicts import budget_needed, check_prompts, closest_mean
from holdfast.analysis.sequential import FAIL, PASS, UNDECIDED
from holdfast.drift.pairing import draw_pairing
from holdfast.records import read_run
from holdfast.records.check_records import Terms
from holdfast.report.check_details import verdict_lines
from holdfast.study.checking import CheckOptions, check, looks

# Conversations


def test_each_prompt_has_its_verdict(check_run):
    run, checks = check_run.run, check_run.checks
    verdicts = [("good", PASS), ("late", FAIL), ("edge", UNDECIDED)]
    assert [(item.id, item.verdict) for item in checks] == verdicts
    good, late, edge = checks
    assert late.first_failure.round == 3 and late.first_failure.mean < 0.3
    assert good.first_failure is None and good.lowest.low >= 0.8
    assert len(edge.records) == TERMS.budget == edge.decided_after
    assert late.decided_after < good.decided_after < 60
    assert run.manifest.identity.to_json()["settings"]["pairs"] == "in-turn"


def test_a_prompt_with_a_verdict_gets_no_further_conversations(check_run):
    model, run, looked = check_run.model, check_run.run, check_run.looks
    numbers = {name: [n for prompt, n in model.begun if prompt == name] for name in SHARES}
    assert sorted(numbers["edge"]) == list(range(2, 3 * 60, 3)), "the whole budget, in turn"
    assert looked[0] == (0, [UNDECIDED] * 3)
    for name, index in (("good", 0), ("late", 1)):
        decided = next(count for count, verdicts in looked if verdicts[index] != UNDECIDED)
        assert len(numbers[name]) == decided, "none after the look at which the verdict was seen"
    assert len(run.records) == sum(map(len, numbers.values()))


def test_looks_are_spaced_by_a_factor_of_one_and_a_half():
    assert looks(200) == [8, 12, 18, 27, 40, 60, 90, 135, 200]
    assert looks(8) == [8] and looks(3) == [3]


def test_prompts_take_turns_and_their_users_are_drawn_at_random():
    suite = drift.load_suite("core")
    settings = drift.Settings(pairs="in-turn", conversations=5000)
    pairs = [draw_pairing(suite, settings, number) for number in range(5000)]
    count = len(suite.cases)
    assert [pair.agent.id for pair in pairs[:count]] == [case.id for case in suite.cases]
    assert all(pair.agent.id != pair.user.id for pair in pairs)
    assert all(pair.agent == pairs[at % count].agent for at, pair in enumerate(pairs))
    users = {pair.user.id for pair in pairs}
    assert len(users) == count
    first = [pair.user.id for pair in pairs if pair.agent == suite.cases[0]]
    assert len(set(first)) > 30, "drawn with replacement from all the others"


def test_an_interrupted_check_resumes_to_the_same_verdicts(check_run, tmp_path):
    whole, checks = check_run.run, check_run.checks
    model, replies = KeepsShares(SHARES), []

    def stop(count, tokens):
        replies.append(count)
        if len(replies) == 600:
            raise KeyboardInterrupt

    settings = drift.Settings(rounds=ROUNDS)
    with pytest.raises(KeyboardInterrupt):
        options = CheckOptions(running=drift.Running(progress=stop))
        check(model, SUITE, tmp_path, settings, TERMS, options)
    assert 0 < len(read_run(tmp_path).records) < len(whole.records)
    run, resumed = check(KeepsShares(SHARES), SUITE, tmp_path, settings, TERMS)
    assert {key(record) for record in run.records} == {key(record) for record in whole.records}
    assert [(c.verdict, c.cells) for c in resumed] == [(c.verdict, c.cells) for c in checks]


def key(record):
    return json.dumps({**record.to_json(), "seconds": 0}, sort_keys=True)


def test_a_larger_budget_extends_a_check(tmp_path):
    settings, small = drift.Settings(rounds=ROUNDS), Terms(min_stability=0.8, budget=10)
    run, checks = check(KeepsShares(SHARES), SUITE, tmp_path, settings, small)
    assert [item.verdict for item in checks] == [UNDECIDED, FAIL, UNDECIDED]
    model = KeepsShares(SHARES)
    _, checks = check(model, SUITE, tmp_path, settings, TERMS)
    assert [item.verdict for item in checks] == [PASS, FAIL, UNDECIDED]
    assert not {n for _, n in model.begun} & {record.conversation for record in run.records}


# Several rules


def bot_of(out, shares, terms):
    """The check of one prompt with a rule for each of the shares."""
    rules = tuple(drift.Rule(name, (f"{name}?",), {"regex": "kept"}) for name in shares)
    suite = drift.Suite("rules", (drift.Case("bot", "rules", "Be.", rules=rules),), ("hello",))
    return check(KeepsShares(shares), suite, out, drift.Settings(rounds=ROUNDS), terms)[1][0]


def test_a_prompt_fails_if_one_of_its_rules_fails(tmp_path):
    shares, terms = {"a": [1.0] * ROUNDS, "b": [1.0, 0.2, 1.0, 1.0]}, Terms(min_stability=0.5)
    bot = bot_of(tmp_path, shares, terms)
    assert (bot.verdict, bot.first_failure.rule, bot.first_failure.round) == (FAIL, "b", 2)
    assert "round 2, rule b: " in "\n".join(verdict_lines([bot], terms))


def test_every_rule_gets_its_own_verdict_on_request(tmp_path):
    shares = {"a": [1.0] * ROUNDS, "b": [1.0, 0.0, 1.0, 1.0], "c": [0.52] * ROUNDS}
    terms, out = Terms(min_stability=0.5, budget=40, all_rules=True), tmp_path / "run"
    soon = bot_of(out, shares, Terms(0.5, budget=40))
    assert soon.verdict == FAIL
    bot = bot_of(out, shares, terms)
    assert len(bot.records) == 40 > len(soon.records), "it goes on where the other check stopped"
    assert bot.verdict == FAIL
    verdicts = [(rule.rule, rule.verdict) for rule in bot.rules]
    assert verdicts == [("a", PASS), ("b", FAIL), ("c", UNDECIDED)]
    assert bot.error == pytest.approx(0.05 / 3), "each rule has its share"
    assert bot.first_failure.rule == "b"
    assert "c  undecided" in "\n".join(verdict_lines([bot], terms))
    assert read_check(read_run(out)).prompts[0].rules == bot.rules
    _, counts, code = junit_of(bot.records, terms, tmp_path)
    assert counts == (3, 1, 1, 0) and code == 1


@pytest.mark.slow
def test_verdicts_on_all_rules_are_wrong_no_more_often_than_declared():
    """With three rules at the bar, any failure is wrong; at most `error` of checks may have one."""
    draws, terms = np.random.default_rng(2), Terms(0.5, error=0.1, budget=60, all_rules=True)
    wrong = 0
    for _ in range(200):
        scores = (draws.random((3, 60, 2)) < [0.5, 0.5]).astype(float)
        records = scored_conversations(dict(zip("abc", scores.tolist(), strict=True)))
        (bot,) = check_prompts(records, ["bot"], 2, terms)
        wrong += any(rule.verdict == FAIL for rule in bot.rules)
    assert wrong / 200 <= 0.1 + 2 * math.sqrt(0.1 * 0.9 / 200)


# Undecided prompts


def test_the_budget_that_would_decide_is_suggested():
    terms = Terms(min_stability=0.5, budget=8)
    (few,) = check_prompts(
        scored_conversations({None: [[1.0], [1.0], [0.0], [1.0]] * 2}), ["bot"], 1, terms
    )
    assert few.verdict == UNDECIDED
    needed = budget_needed([few], terms)
    wider = Terms(min_stability=0.5, budget=needed)
    (bot,) = check_prompts(
        scored_conversations({None: [[1.0], [1.0], [0.0], [1.0]] * needed}), ["bot"], 1, wider
    )
    assert bot.verdict == PASS and bot.decided_after == needed
    (even,) = check_prompts(scored_conversations({None: [[1.0], [0.0]] * 4}), ["bot"], 1, terms)
    assert budget_needed([even], terms) is None, "at the bar, no number would"
    assert closest_mean([even], terms) == 0.5


def test_the_mean_that_keeps_a_prompt_undecided_is_the_one_closest_to_the_bar():
    terms = Terms(min_stability=0.3, budget=8, all_rules=True)
    far, close = [[0.0], [0.0], [0.0], [0.2]], [[1.0], [0.0], [0.0], [0.24]]
    (bot,) = check_prompts(scored_conversations({"far": far, "close": close}), ["bot"], 1, terms)
    assert bot.lowest.rule == "far" and {rule.verdict for rule in bot.rules} == {UNDECIDED}
    assert closest_mean([bot], terms) == pytest.approx(0.31)
    assert closest_mean([bot], Terms(min_stability=None)) is None


def test_a_conversation_that_kept_the_rule_is_not_shown_as_evidence(tmp_path):
    """Rule a is undecided though every score is 1; for rule b, the worst replies come first."""
    kept_scores = [[1.0]] * 8
    mixed = [[1.0], [0.2], [1.0], [0.0], [0.3], [0.1], [1.0], [1.0]]
    cases, _, _ = junit_of(
        scored_conversations({"a": kept_scores, "b": mixed}), Terms(0.5, budget=8), tmp_path
    )
    texts = [child.text for child in cases.values()]
    assert "conversation" not in texts[0].replace("8 conversations", "")
    headings = [line for line in texts[1].splitlines() if line.startswith("conversation ")]
    assert [line.split(",")[0] for line in headings] == [f"conversation {n}" for n in (3, 5, 1)]


def test_an_unanswered_probe_counts_for_nothing(check_run):
    run = check_run.run
    records = list(run.conversations)
    for at, record in enumerate(records):
        if record.agent.id == "good":
            probes = tuple(probe for probe in record.probes if probe.round != 4)
            records[at] = record.model_copy(update={"probes": probes})
    good = check_prompts(records, ["good", "late", "edge"], ROUNDS, TERMS)[0]
    assert good.verdict == UNDECIDED and good.unanswered == len(good.records)
    assert good.cells[-1].mean is None
    without = [record for record in run.conversations if record.conversation != 6]
    stopped = check_prompts(without, ["good", "late", "edge"], ROUNDS, TERMS)[0]
    assert len(stopped.records) == 2, "no later conversation is looked at before a missing one"
