"""`holdfast check`: verdicts on prompts, the conversations behind them, output for CI servers."""

import json
import math
from xml.etree import ElementTree

import numpy as np
import pytest
from served import served
from synthetic_run import conversation_of
from three_prompts import ROUNDS, SHARES, SUITE, TERMS, KeepsShares, case

import holdfast
from holdfast import drift
from holdfast.analysis.check_comparison import compare_runs
from holdfast.analysis.check_file import read_check
from holdfast.analysis.check_verdicts import (
    budget_needed,
    cell_verdict,
    check_prompts,
    closest_mean,
)
from holdfast.analysis.sequential import FAIL, PASS, UNDECIDED
from holdfast.cli import main
from holdfast.cli.measure.check import exit_code_of
from holdfast.drift.pairing import draw_pairing
from holdfast.errors import RecordsError, UsageError
from holdfast.records import read_run
from holdfast.records.check_records import Check, Terms
from holdfast.report.check_details import verdict_lines
from holdfast.report.check_junit import ALL_RULES, write_junit
from holdfast.report.check_sentences import comparison_text, how_to_decide, verdict_sentence
from holdfast.serve.limits import RequestLimits
from holdfast.study.checking import CheckOptions, check, earlier_conversations, looks

COUNTED = ("tests", "failures", "errors", "skipped")


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
        records = talks(dict(zip("abc", scores.tolist(), strict=True)))
        (bot,) = check_prompts(records, ["bot"], 2, terms)
        wrong += any(rule.verdict == FAIL for rule in bot.rules)
    assert wrong / 200 <= 0.1 + 2 * math.sqrt(0.1 * 0.9 / 200)


def test_the_budget_that_would_decide_is_suggested():
    terms = Terms(min_stability=0.5, budget=8)
    (few,) = check_prompts(talks({None: [[1.0], [1.0], [0.0], [1.0]] * 2}), ["bot"], 1, terms)
    assert few.verdict == UNDECIDED
    needed = budget_needed([few], terms)
    wider = Terms(min_stability=0.5, budget=needed)
    (bot,) = check_prompts(talks({None: [[1.0], [1.0], [0.0], [1.0]] * needed}), ["bot"], 1, wider)
    assert bot.verdict == PASS and bot.decided_after == needed
    (even,) = check_prompts(talks({None: [[1.0], [0.0]] * 4}), ["bot"], 1, terms)
    assert budget_needed([even], terms) is None, "at the bar, no number would"
    assert closest_mean([even], terms) == 0.5


def test_the_mean_that_keeps_a_prompt_undecided_is_the_one_closest_to_the_bar():
    terms = Terms(min_stability=0.3, budget=8, all_rules=True)
    far, close = [[0.0], [0.0], [0.0], [0.2]], [[1.0], [0.0], [0.0], [0.24]]
    (bot,) = check_prompts(talks({"far": far, "close": close}), ["bot"], 1, terms)
    assert bot.lowest.rule == "far" and {rule.verdict for rule in bot.rules} == {UNDECIDED}
    assert closest_mean([bot], terms) == pytest.approx(0.31)
    assert closest_mean([bot], Terms(min_stability=None)) is None


def test_a_conversation_that_kept_the_rule_is_not_shown_as_evidence(tmp_path):
    """Rule a is undecided though every score is 1; for rule b, the worst replies come first."""
    kept_scores = [[1.0]] * 8
    mixed = [[1.0], [0.2], [1.0], [0.0], [0.3], [0.1], [1.0], [1.0]]
    cases, _, _ = junit_of(talks({"a": kept_scores, "b": mixed}), Terms(0.5, budget=8), tmp_path)
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


@pytest.mark.slow
def test_a_fall_against_an_earlier_run_fails(check_run, tmp_path):
    before = check_run.run
    lower = {**SHARES, "good": [1.0, 1.0, 0.9, 0.45]}
    settings, low_bar = drift.Settings(rounds=ROUNDS), Terms(min_stability=0.3, budget=60)
    earlier = earlier_conversations(before.folder, SUITE, "none")
    _, plain = check(KeepsShares(lower), SUITE, tmp_path / "plain", settings, low_bar)
    assert plain[0].verdict != FAIL
    options = CheckOptions(before=earlier)
    _, (good, _, edge) = check(
        KeepsShares(lower), SUITE, tmp_path / "run", settings, low_bar, options
    )
    assert good.verdict == FAIL and good.first_failure is None
    assert good.comparison.fell and good.comparison.alike == good.comparison.pairs
    assert [(rule.rule, rule.fell, rule.round) for rule in good.comparison.rules] == [
        (None, True, 4)
    ]
    text = "\n".join(verdict_lines([good], low_bar))
    assert "most in round 4" in text and "from 1.00 to 0." in text
    assert edge.verdict == PASS and not edge.comparison.fell
    assert edge.comparison.pairs == len(earlier["edge"]), "all pairs that the earlier run has"


@pytest.mark.slow
def test_without_a_bar_only_a_fall_fails(check_run, tmp_path):
    """An unchanged bot passes against its own run, however little it keeps its prompts."""
    before = check_run.run
    settings, no_bar = drift.Settings(rounds=ROUNDS), Terms(min_stability=None, budget=60)
    earlier = earlier_conversations(before.folder, SUITE, "none")

    def against(name, shares, before):
        options = CheckOptions(before=before)
        return check(KeepsShares(shares), SUITE, tmp_path / name, settings, no_bar, options)[1]

    equal = against("a", SHARES, earlier)
    assert [(item.verdict, item.first_failure) for item in equal] == [(PASS, None)] * 3
    assert [item.comparison.pairs for item in equal] == [len(earlier[item.id]) for item in equal]
    assert all(rule.now == rule.before for item in equal for rule in item.comparison.rules)
    text = "\n".join(verdict_lines(equal, no_bar))
    assert "no mean is lower" in text and "over 60 pairs" in text
    assert "3 of 3 prompts passed" in text
    fell = against("b", {**SHARES, "good": [1.0, 1.0, 0.9, 0.3]}, earlier)
    assert [item.verdict for item in fell] == [FAIL, PASS, PASS]
    excerpt = "\n".join(verdict_lines(fell[:1], no_bar))
    assert "probe of round 4" in excerpt and "reply lost" in excerpt, "where it fell"
    _, _, edge = against("c", SHARES, {name: earlier[name] for name in ("good", "late")})
    assert edge.verdict == PASS and edge.comparison is None and len(edge.records) == 60
    (line, *_) = verdict_lines([edge], no_bar)
    assert "not in the earlier run, so there is nothing to compare" in line
    with pytest.raises(UsageError, match="a bar"):
        check(KeepsShares(SHARES), SUITE, tmp_path / "d", settings, no_bar)


def talks(scores):
    """Conversations of a prompt; scores by rule, each [conversation, round]."""

    def probe(number, rule, score):
        reply = {"question": "?", "reply": "kept" if score == 1 else "lost", "reason": "seen"}
        return {"round": number, "rule": rule, "score": float(score), **reply}

    return [
        conversation_of(
            conversation=number,
            probes=[
                probe(at, rule, score)
                for rule, rows in scores.items()
                for at, score in enumerate(rows[number], 1)
            ],
        )
        for number in range(len(next(iter(scores.values()))))
    ]


def test_a_lost_rule_does_not_hide_behind_one_that_gains():
    kept_scores, lost_scores = [[1.0, 1.0]] * 30, [[1.0, 0.0]] * 30
    before = talks({"signs": kept_scores, "brief": lost_scores, "polite": kept_scores})
    now = talks({"signs": lost_scores, "brief": kept_scores, "polite": kept_scores})
    fall = compare_runs(now, before, 2, 30, 0.05)
    assert fall.fell
    fell = [("signs", True), ("brief", False), ("polite", False)]
    assert [(rule.rule, rule.fell) for rule in fall.rules] == fell
    text = "fell against the earlier run: rule signs, most in round 2, from 1.00 to 0.00, over 30"
    assert comparison_text(fall).startswith(text)
    assert not compare_runs(before, before, 2, 30, 0.05).fell


@pytest.mark.parametrize(
    ("pairs", "alike", "words"),
    (
        (1, 1, "over 1 pair of conversations with the same draws"),
        (1, 0, "over 1 pair of conversations with different draws"),
        (3, 0, "over 3 pairs of conversations, none of them with the same draws"),
        (3, 2, "over 3 pairs of conversations, 2 of them with the same draws"),
        (3, 3, "over 3 pairs of conversations, all of them with the same draws"),
    ),
)
def test_a_comparison_says_how_many_pairs_have_the_same_draws(pairs, alike, words):
    records = talks({"a": [[1.0, 1.0]] * 3})
    compared = compare_runs(records, records, 2, 30, 0.05)
    compared = compared.model_copy(update={"pairs": pairs, "alike": alike})
    assert comparison_text(compared).endswith(f", {words}")


def test_a_rule_that_only_one_run_has_is_not_compared():
    ones = [[1.0, 1.0]] * 30
    fall = compare_runs(talks({"a": ones, "b": ones}), talks({"a": ones, "c": ones}), 2, 30, 0.05)
    assert [rule.rule for rule in fall.rules] == ["a"] and fall.not_compared == ("b", "c")
    assert comparison_text(fall).endswith("; not compared: b, c")
    fall = compare_runs(talks({"a": ones}), talks({"b": ones}), 2, 30, 0.05)
    assert not fall.rules and not fall.fell
    assert comparison_text(fall) == "nothing to compare with the earlier run; not compared: a, b"


def test_an_earlier_run_without_these_prompts_is_refused(check_run, tmp_path):
    before = check_run.run
    other_suite = drift.Suite("other", (case("new"),), ("hello",))
    with pytest.raises(RecordsError, match=r"\(new\)"):
        earlier_conversations(before.folder, other_suite, "none")
    with pytest.raises(RecordsError, match="not a run"):
        earlier_conversations(tmp_path / "nowhere", SUITE, "none")
    some = drift.Suite("some", (case("new"), case("good")), ("hello",))
    assert list(earlier_conversations(before.folder, some, "boost:factor=2")) == ["good"]


def test_the_output_names_the_round_and_shows_a_conversation(check_run):
    checks = check_run.checks
    lines = verdict_lines(checks, TERMS)
    assert lines[0].startswith("PASS       good")
    late = checks[1]
    assert late.decided_after < len(late.records) == 8
    assert lines[1].split()[:2] == ["FAIL", "late"] and "round 3: " in lines[1]
    assert lines[1].endswith(f" (decided after {late.decided_after} of 8 conversations)")
    assert lines[2].split()[:2] == ["UNDECIDED", "edge"] and "round 1: 0.8" in lines[2]
    assert lines[2].endswith("] (60 conversations)")
    text = "\n".join(lines)
    assert "below 0.8 in round 3: " in text and "stability by round:\n  █" in text
    start = text.index("conversation ", text.index("FAIL late"))
    excerpt = text[start : text.index("UNDECIDED", start)]
    assert "system Be late." in excerpt and "probe late?" in excerpt and "reply lost" in excerpt
    assert excerpt.count("so it goes") == 3, (
        "two rounds behind the starter, up to the third's probe"
    )
    assert lines[-1].startswith("1 of 3 prompts failed, 1 undecided, 1 passed (bar: 0.8 for every")


def test_an_interval_below_the_bar_that_does_not_decide_says_so():
    """One of four rules is never kept: below the bar on its own, but not certain as one of four."""
    terms = Terms(min_stability=0.5, budget=8)
    kept_rules = {rule: [[1.0]] * 12 for rule in ("signs", "brief", "polite")}
    every = talks(kept_rules | {"never": [[0.0]] * 12})
    (eight,) = check_prompts(every[:8], ["bot"], 1, terms)
    assert eight.verdict == UNDECIDED and cell_verdict(eight.lowest, 0.5) == FAIL
    text = "0.00 [0.00, 0.41] (below 0.5 on its own, but not yet certain as one of 4 comparisons)"
    assert text in verdict_sentence(eight, terms)
    advice = how_to_decide(eight.verdict, eight.lowest, terms)
    assert advice.startswith("Undecided after at most 8 conversations: raise --budget, or")
    (twelve,) = check_prompts(every, ["bot"], 1, Terms(min_stability=0.5, budget=12))
    assert twelve.verdict == FAIL
    assert how_to_decide(twelve.verdict, twelve.lowest, terms) is None
    assert "on its own" not in verdict_sentence(twelve, terms)


def test_a_rule_is_not_named_for_one_bad_round_beside_a_rule_that_fails():
    """Two early losses in one of four rounds: below the bar on its own, but one round of eight."""
    never = [[0.0] * 4] * 8
    unlucky = [[0.0, 1.0, 1.0, 1.0]] * 2 + [[1.0] * 4] * 6
    terms = Terms(min_stability=0.9)
    (bot,) = check_prompts(talks({"unlucky": unlucky, "never": never}), ["bot"], 4, terms)
    assert cell_verdict(bot.cells[0], 0.9) == FAIL
    assert (bot.verdict, bot.first_failure.rule) == (FAIL, "never")
    verdicts = [(rule.rule, rule.verdict) for rule in bot.rules]
    assert verdicts == [("unlucky", UNDECIDED), ("never", FAIL)]
    assert "also below" not in verdict_sentence(bot, terms)


def test_a_rule_that_only_fell_is_not_called_below_the_bar():
    never = [[0.0]] * 40
    before = talks({"never": never, "fell": [[1.0]] * 40})
    now = talks({"never": never, "fell": [[1.0], [0.0]] * 20})
    terms = Terms(min_stability=0.3)
    (bot,) = check_prompts(now, ["bot"], 1, terms, {"bot": before})
    verdicts = [(rule.rule, rule.verdict, rule.fails_bar) for rule in bot.rules]
    assert verdicts == [("never", FAIL, True), ("fell", FAIL, False)]
    text = verdict_sentence(bot, terms)
    assert text.startswith("below 0.3 in round 1, rule never") and "also below" not in text


def test_a_prompt_can_fail_although_no_rule_certainly_does(tmp_path):
    """Three rules share the losses, so that any of them may be the one that fails."""
    shared = [[0.0], [0.3], [1.0], [1.0], [1.0]]
    terms = Terms(min_stability=0.9)
    records = talks({"a": shared, "b": shared, "c": shared, "kept": [[1.0]] * 5})
    (bot,) = check_prompts(records, ["bot"], 1, terms)
    assert bot.verdict == FAIL and {rule.verdict for rule in bot.rules} == {UNDECIDED}
    text = "below 0.9, though no rule certainly by itself; most clearly in round 1, rule a: "
    assert verdict_sentence(bot, terms).startswith(text)
    cases, counts, code = junit_of(records, terms, tmp_path)
    assert ("holdfast.rules.bot", ALL_RULES) in cases and counts == (5, 1, 0, 4) and code == 1


def test_an_early_verdict_is_reported_with_the_numbers_of_all_conversations():
    """Round 2 is lost in the first four of eight conversations, round 3 in all of them."""
    lost_scores = [[1.0, 0.0, 0.0]] * 4
    kept_scores = [[1.0, 1.0, 0.0]] * 4
    terms = Terms(min_stability=0.9)
    (bot,) = check_prompts(talks({None: lost_scores + kept_scores}), ["bot"], 3, terms)
    assert bot.verdict == FAIL and bot.decided_after < 5 and len(bot.records) == 8
    assert [cell.mean for cell in bot.cells] == [1.0, 0.5, 0.0]
    assert bot.first_failure.round == 2 and bot.first_failure.mean == 0.5, (
        "certain at the verdict, so it stays"
    )
    assert verdict_sentence(bot, terms).startswith("below 0.9 in round 2: 0.50 [")
    text = verdict_sentence(bot, terms)
    assert text.endswith(f"] (decided after {bot.decided_after} of 8 conversations)")
    assert "low since" not in text


def test_low_rounds_before_the_first_certain_one_are_reported():
    """Rounds 2 and 3 are below the bar, but only round 4 certainly; round 1 holds."""
    scores = [[1.0, float(at != 2), float(at != 5), 0.0] for at in range(8)]
    terms = Terms(min_stability=0.9)
    (bot,) = check_prompts(talks({None: scores}), ["bot"], 4, terms)
    assert bot.first_failure.round == 4
    assert "], low since round 2 (decided after 3 of 8 conv" in verdict_sentence(bot, terms)
    between = [[1.0, float(at != 2), 1.0, 0.0] for at in range(8)]
    (bot,) = check_prompts(talks({None: between}), ["bot"], 4, terms)
    assert "low since" not in verdict_sentence(bot, terms), "round 3 between them holds"


def test_junit_has_a_test_for_each_prompt(check_run, tmp_path):
    checks = check_run.checks
    path = write_junit(
        Check.of("none", TERMS, tuple(checks)),
        "three \x00 <&>",
        tmp_path / "sub" / "junit.xml",
        90.0,
    )
    root = ElementTree.parse(path).getroot()
    (suite,) = root
    assert (root.tag, suite.tag) == ("testsuites", "testsuite")
    counts = ("3", "1", "1", "0")
    assert tuple(map(suite.get, COUNTED)) == counts
    good, late, edge = suite
    assert [test.get("name") for test in suite] == ["good", "late", "edge"]
    assert [child.tag for child in good] == ["system-out"]
    assert late[0].tag == "failure" and "below 0.8 in round 3" in late[0].get("message")
    assert "reply lost" in late[0].text
    assert edge[0].tag == "error" and edge[0].get("type") == "undecided"
    assert "� <&>" in suite.get("name")
    times = [float(test.get("time")) for test in suite]
    assert suite.get("time") == root.get("time") == "90.000"
    assert sum(times) == pytest.approx(90, abs=0.01) and times[2] > times[0] > times[1] > 0


def test_junit_has_a_test_for_each_rule_of_a_prompt(tmp_path):
    kept_scores, lost_scores = [[1.0, 1.0, 1.0]] * 8, [[1.0, 0.0, 0.0]] * 8
    bot = talks({"signs": kept_scores, "brief": lost_scores})
    cases, counts, code = junit_of(bot, Terms(0.9, budget=8), tmp_path)
    assert list(cases) == [("holdfast.rules.bot", "signs"), ("holdfast.rules.bot", "brief")]
    assert counts == (2, 1, 0, 1) and code == 1
    signs, brief = cases.values()
    assert brief.tag == "failure"
    assert brief.get("message").startswith("below 0.9 in round 2: 0.00 [")
    assert "brief" in brief.text and "signs" not in brief.text, "of this rule alone"
    assert "reply lost" in brief.text
    assert signs.tag == "skipped", "not red: the check ended before it was certain"
    assert signs.get("message").startswith("not decided: its prompt had already failed (--all-")
    passing = talks({"signs": kept_scores * 10, "brief": kept_scores * 10})
    cases, counts, code = junit_of(passing, Terms(0.9, budget=80), tmp_path)
    assert counts == (2, 0, 0, 0) and code == 0
    assert [child.tag for child in cases.values()] == ["system-out"] * 2
    cases, counts, code = junit_of(passing[:8], Terms(0.9, budget=8), tmp_path)
    assert counts == (2, 0, 2, 0) and code == 3


def test_a_failure_that_no_single_rule_shows_has_its_own_test(tmp_path):
    """Two of three rules fall: certain for all together, but for neither on its own."""
    kept_scores = [[1.0]] * 8
    before = talks({"a": kept_scores, "b": kept_scores, "c": kept_scores})
    now = talks({"a": [[0.2]] * 8, "b": [[0.2]] * 8, "c": kept_scores})
    cases, counts, code = junit_of(now, Terms(None, budget=8), tmp_path, before)
    assert counts == (4, 1, 0, 0) and code == 1
    assert [name for (_, name), child in cases.items() if child.tag == "failure"] == [ALL_RULES]


def test_a_bar_and_a_comparison_share_the_error():
    """A prompt that is neither below the bar nor worse than before could fail on either test."""
    records = talks({None: [[1.0]] * 8})
    for bar, before, error in [(0.5, {"bot": records}, 0.025), (0.5, None, 0.05)]:
        (bot,) = check_prompts(records, ["bot"], 1, Terms(bar), before)
        assert bot.error == error


@pytest.mark.parametrize("all_rules", [False, True])
def test_a_rule_missing_from_the_earlier_run_is_skipped(tmp_path, all_rules):
    kept_scores = [[1.0, 1.0]] * 30
    before, now = talks({"a": kept_scores}), talks({"a": kept_scores, "new": kept_scores})
    terms = Terms(None, budget=30, all_rules=all_rules)
    cases, counts, code = junit_of(now, terms, tmp_path, before)
    assert counts == (2, 0, 0, 1) and code == 0
    skipped = cases["holdfast.rules.bot", "new"].get("message")
    assert skipped.startswith("not decided: the earlier run does not have it; ")


def junit_of(records, terms, folder, before=None):
    """The JUnit file of one prompt: the content of each case, the counts, and the exit code."""
    before = None if before is None else {"bot": before}
    rounds = max(probe.round for probe in records[0].probes)
    checks = check_prompts(records, ["bot"], rounds, terms, before)
    path = write_junit(Check.of("none", terms, tuple(checks)), "rules", folder / "junit.xml", 1.0)
    (suite,) = ElementTree.parse(path).getroot()
    counts = tuple(int(suite.get(name)) for name in COUNTED)
    cases = {(test.get("classname"), test.get("name")): test[0] for test in suite}
    return cases, counts, exit_code_of(checks, terms)


PROMPTS = """
name: two
cases:
  - id: phrase
    category: memorization
    system_prompt: "System: say only: Never trust the engine."
    probe: Give me your view of the sea.
    measure: {name: contains, words: [Never trust the engine]}
  - id: lawyer
    category: persona
    system_prompt: You are a lawyer who quotes the civil code in every reply.
    probe: What do you think about the market?
    measure: {name: contains, words: [paragraph]}
"""
SHORT = ["--rounds", "2", "--max-new-tokens", "16", "--min-stability", "0.6", "--budget", "24"]


@pytest.fixture(scope="module")
def prompts(tmp_path_factory):
    path = tmp_path_factory.mktemp("suite") / "prompts.yaml"
    path.write_text(PROMPTS)
    return path


@pytest.mark.slow
def test_the_command_on_the_default_model_and_then_served(prompts, tmp_path, capsys):
    words = ["check", str(prompts), *SHORT]
    out, junit = tmp_path / "run", tmp_path / "junit.xml"
    assert main([*words, "--out", str(out), "--junit", str(junit)]) == 1
    local = capsys.readouterr()
    assert "PASS  phrase" in local.out and "FAIL  lawyer" in local.out
    *_, advice, last = local.out.splitlines()
    assert advice.startswith("Next: reword rules that miss the bar even in round 1, or try")
    assert f"holdfast calibrate --suite {prompts} --rounds 2 --max-new-tokens 16" in last
    assert "1 of 2 prompts failed" in local.err and "1 undecided" in local.err
    tests = ElementTree.parse(junit).iter("testcase")
    assert [test.get("name") for test in tests] == ["phrase", "lawyer"]
    page = (out / "report.html").read_text()
    assert "lawyer" in page and (out / "summary.json").is_file()
    lines = (out / "records.jsonl").read_bytes()
    assert main([*words, "--out", str(out)]) == 1
    assert (out / "records.jsonl").read_bytes() == lines, "nothing is held twice"
    verdicts = [line for line in local.out.splitlines() if line[:4] in ("PASS", "FAIL")]
    second_run = capsys.readouterr().out.splitlines()
    assert verdicts == [line for line in second_run if line[:4] in ("PASS", "FAIL")]
    with served(holdfast.load("default"), RequestLimits()) as server:
        arguments = [*words, "--model", f"{server.url}/v1", "--against", str(out)]
        assert main([*arguments, "--out", str(tmp_path / "served")]) == 1
    output = capsys.readouterr().out
    assert "PASS  phrase" in output and "FAIL  lawyer" in output
    no_bar = [word for word in words if word not in ("--min-stability", "0.6")]
    junit = tmp_path / "same.xml"
    second_run = ["--against", str(out), "--out", str(tmp_path / "again"), "--junit", str(junit)]
    assert main([*no_bar, *second_run]) == 0, "an unchanged bot against its own run"
    assert "2 of 2 prompts passed" in capsys.readouterr().out
    (suite,) = ElementTree.parse(junit).getroot()
    assert suite.get("failures") == suite.get("errors") == "0" and float(suite.get("time")) > 0.5


def test_other_exit_codes_say_that_nothing_was_checked(prompts, tmp_path, capsys):
    nobody = ["--model", "http://127.0.0.1:9/v1", "--endpoint-model", "x"]
    assert main(["check", str(prompts), *nobody, "--out", str(tmp_path / "a")]) == 5
    for wrong in (("--min-stability", "1.5"), ("--min-stability", "90"), ("--min-stability", "1")):
        assert main(["check", str(prompts), *wrong]) == 2
    assert main(["check", str(prompts), "--error", "5"]) == 2
    assert main(["check", str(tmp_path / "no.yaml")]) == 2
    assert main(["check", str(prompts), "--against", str(tmp_path / "no")]) == 2
    stderr = capsys.readouterr().err
    assert "--min-stability" in stderr and "not 1.5." in stderr
    assert "not 90;" in stderr and "0.9?" in stderr
    assert "not 1:" in stderr
    assert "--error" in stderr and "not 5;" in stderr and "0.05?" in stderr
    assert "no.yaml" in stderr and "not a run" in stderr
