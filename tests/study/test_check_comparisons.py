"""`holdfast check` against an earlier run: a certain fall fails a prompt."""

import pytest
from scored_checks import scored_conversations
from three_prompts import ROUNDS, SHARES, SUITE, KeepsShares, case

from holdfast import drift
from holdfast.analysis.check_comparison import compare_runs
from holdfast.analysis.check_verdicts import check_prompts
from holdfast.analysis.sequential import FAIL, PASS
from holdfast.errors import RecordsError, UsageError
from holdfast.records.check_records import Terms
from holdfast.report.check_details import verdict_lines
from holdfast.report.check_sentences import comparison_text
from holdfast.study.checking import CheckOptions, check, earlier_conversations


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


def test_a_lost_rule_does_not_hide_behind_one_that_gains():
    kept_scores, lost_scores = [[1.0, 1.0]] * 30, [[1.0, 0.0]] * 30
    before = scored_conversations(
        {"signs": kept_scores, "brief": lost_scores, "polite": kept_scores}
    )
    now = scored_conversations({"signs": lost_scores, "brief": kept_scores, "polite": kept_scores})
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
    records = scored_conversations({"a": [[1.0, 1.0]] * 3})
    compared = compare_runs(records, records, 2, 30, 0.05)
    compared = compared.model_copy(update={"pairs": pairs, "alike": alike})
    assert comparison_text(compared).endswith(f", {words}")


def test_a_rule_that_only_one_run_has_is_not_compared():
    ones = [[1.0, 1.0]] * 30
    fall = compare_runs(
        scored_conversations({"a": ones, "b": ones}),
        scored_conversations({"a": ones, "c": ones}),
        2,
        30,
        0.05,
    )
    assert [rule.rule for rule in fall.rules] == ["a"] and fall.not_compared == ("b", "c")
    assert comparison_text(fall).endswith("; not compared: b, c")
    fall = compare_runs(
        scored_conversations({"a": ones}), scored_conversations({"b": ones}), 2, 30, 0.05
    )
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


def test_a_bar_and_a_comparison_share_the_error():
    """A prompt that is neither below the bar nor worse than before could fail on either test."""
    records = scored_conversations({None: [[1.0]] * 8})
    for bar, before, error in [(0.5, {"bot": records}, 0.025), (0.5, None, 0.05)]:
        (bot,) = check_prompts(records, ["bot"], 1, Terms(bar), before)
        assert bot.error == error
