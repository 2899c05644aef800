"""The text and the JUnit file of `holdfast check`: which rounds and rules they name."""

from xml.etree import ElementTree

import pytest
from scored_checks import COUNTED, junit_of, scored_conversations
from three_prompts import TERMS

from holdfast.analysis.check_verdicts import cell_verdict, check_prompts
from holdfast.analysis.sequential import FAIL, UNDECIDED
from holdfast.records.check_records import Check, Terms
from holdfast.report.check_details import verdict_lines
from holdfast.report.check_junit import ALL_RULES, write_junit
from holdfast.report.check_sentences import how_to_decide, verdict_sentence

# Text


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
    every = scored_conversations(kept_rules | {"never": [[0.0]] * 12})
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
    (bot,) = check_prompts(
        scored_conversations({"unlucky": unlucky, "never": never}), ["bot"], 4, terms
    )
    assert cell_verdict(bot.cells[0], 0.9) == FAIL
    assert (bot.verdict, bot.first_failure.rule) == (FAIL, "never")
    verdicts = [(rule.rule, rule.verdict) for rule in bot.rules]
    assert verdicts == [("unlucky", UNDECIDED), ("never", FAIL)]
    assert "also below" not in verdict_sentence(bot, terms)


def test_a_rule_that_only_fell_is_not_called_below_the_bar():
    never = [[0.0]] * 40
    before = scored_conversations({"never": never, "fell": [[1.0]] * 40})
    now = scored_conversations({"never": never, "fell": [[1.0], [0.0]] * 20})
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
    records = scored_conversations({"a": shared, "b": shared, "c": shared, "kept": [[1.0]] * 5})
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
    (bot,) = check_prompts(
        scored_conversations({None: lost_scores + kept_scores}), ["bot"], 3, terms
    )
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
    (bot,) = check_prompts(scored_conversations({None: scores}), ["bot"], 4, terms)
    assert bot.first_failure.round == 4
    assert "], low since round 2 (decided after 3 of 8 conv" in verdict_sentence(bot, terms)
    between = [[1.0, float(at != 2), 1.0, 0.0] for at in range(8)]
    (bot,) = check_prompts(scored_conversations({None: between}), ["bot"], 4, terms)
    assert "low since" not in verdict_sentence(bot, terms), "round 3 between them holds"


# JUnit


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
    bot = scored_conversations({"signs": kept_scores, "brief": lost_scores})
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
    passing = scored_conversations({"signs": kept_scores * 10, "brief": kept_scores * 10})
    cases, counts, code = junit_of(passing, Terms(0.9, budget=80), tmp_path)
    assert counts == (2, 0, 0, 0) and code == 0
    assert [child.tag for child in cases.values()] == ["system-out"] * 2
    cases, counts, code = junit_of(passing[:8], Terms(0.9, budget=8), tmp_path)
    assert counts == (2, 0, 2, 0) and code == 3


def test_a_failure_that_no_single_rule_shows_has_its_own_test(tmp_path):
    """Two of three rules fall: certain for all together, but for neither on its own."""
    kept_scores = [[1.0]] * 8
    before = scored_conversations({"a": kept_scores, "b": kept_scores, "c": kept_scores})
    now = scored_conversations({"a": [[0.2]] * 8, "b": [[0.2]] * 8, "c": kept_scores})
    cases, counts, code = junit_of(now, Terms(None, budget=8), tmp_path, before)
    assert counts == (4, 1, 0, 0) and code == 1
    assert [name for (_, name), child in cases.items() if child.tag == "failure"] == [ALL_RULES]


@pytest.mark.parametrize("all_rules", [False, True])
def test_a_rule_missing_from_the_earlier_run_is_skipped(tmp_path, all_rules):
    kept_scores = [[1.0, 1.0]] * 30
    before, now = (
        scored_conversations({"a": kept_scores}),
        scored_conversations({"a": kept_scores, "new": kept_scores}),
    )
    terms = Terms(None, budget=30, all_rules=all_rules)
    cases, counts, code = junit_of(now, terms, tmp_path, before)
    assert counts == (2, 0, 0, 1) and code == 0
    skipped = cases["holdfast.rules.bot", "new"].get("message")
    assert skipped.startswith("not decided: the earlier run does not have it; ")
