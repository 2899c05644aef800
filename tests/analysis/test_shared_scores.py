"""Comparisons count only the rules that were judged on both sides, so that a missing score is
neither a gain nor a loss.
"""

from array import array
from types import SimpleNamespace

import numpy as np
import pytest
from synthetic_run import conversation_of

from holdfast.analysis.adherence import _change
from holdfast.analysis.calibration_reading import _candidate, _Setting
from holdfast.analysis.calibration_results import Calibration
from holdfast.analysis.context_summary_effect import context_summary_effect
from holdfast.analysis.drift_results import results_of
from holdfast.analysis.estimate_rows import row_of
from holdfast.analysis.loss_map import loss_map
from holdfast.analysis.precedent_results import precedent_of
from holdfast.analysis.prompt_rows import prompt_rows
from holdfast.analysis.row_differences import compare_rows
from holdfast.analysis.rule_context import context_effects
from holdfast.analysis.rule_scores import RuleScores
from holdfast.analysis.run_comparison import compare_folders
from holdfast.analysis.series import ProbeId, Series, read_series
from holdfast.analysis.statistics import means_over_probes, shared_means
from holdfast.records import open_run, read_run, to_line
from holdfast.records.identity import CalibrationIdentity
from holdfast.records.log_scores import NONE, LogScores, ScoredRule
from holdfast.report.fix_sentences import best_fix, fix_sentence
from holdfast.report.opening_sentences import opening
from holdfast.report.terminal import results_text
from holdfast.report.wording import ONLY_SHARED

FIX = "boost:factor=2"
RULES = ("name", "short", "opening", "dose")
SCORES = {"name": 1.0, "short": 1.0, "opening": 0.0, "dose": 0.0}
# a reply that was cut shows nothing about its length
SHORT_UNJUDGED = {**SCORES, "short": None}


def record(method, number, rounds, pressures=()):
    """A conversation with these scores, {rule: score} for each round; None was not judged."""
    probes, unscored = [], []
    for place, scores in enumerate(rounds, start=1):
        for rule, score in scores.items():
            about = {"rule": rule, "round": place, "rule_kind": rule, "polarity": "requirement"}
            if score is None:
                unscored.append({**about, "why": "cut"})
            else:
                probes.append({**about, "score": score})
    turns = [
        {"speaker": "user", "round": place, "text": "Hi.", **({"pressure": name} if name else {})}
        for place, name in enumerate(pressures or [None] * len(rounds), start=1)
    ]
    fields = {"method": method, "conversation": number, "turns": turns}
    return conversation_of(**fields, probes=probes, unscored=unscored)


def write_run(folder, *records):
    methods = list(dict.fromkeys(conversation.method for conversation in records))
    settings = {
        "rounds": max(len(conversation.turns) for conversation in records),
        "conversations": 1 + max(conversation.conversation for conversation in records),
        "seed": 0,
        "user_prompt": "empty",
        "system_as": "role",
        "probes_per_round": 1,
        "probe_at": "after-round",
        "batch": 8,
        "sampling": {"temperature": 0.0, "top_p": 1.0, "max_new_tokens": 25},
    }
    identity = {"model": "default", "model_fingerprint": "1", "suite": "bot"}
    identity |= {"suite_fingerprint": "2", "methods": methods, "settings": settings}
    about = {"command": "drift", "created": "2026-11-21T03:10:00+00:00"}
    about |= {"versions": {"holdfast": "0.4.0"}, "argv": "holdfast drift"}
    open_run(folder, identity, about).close()
    (folder / "records.jsonl").write_bytes(b"".join(map(to_line, records)))
    return read_run(folder)


def cut_under_boost(folder):
    """Two conversations under two methods; every rule scores the same, but one reply was cut."""
    return write_run(
        folder,
        *(record("none", number, [SCORES] * 3) for number in range(2)),
        record(FIX, 0, [SHORT_UNJUDGED] * 3),
        record(FIX, 1, [SCORES] * 3),
    )


# One difference, computed by five comparisons


def difference_of_methods(folder, before, now):
    """The second of two methods minus the first, over all rounds."""
    records = [record("none", n, rounds) for n, rounds in enumerate(before)]
    records += [record(FIX, n, rounds) for n, rounds in enumerate(now)]
    none, boost = read_series(write_run(folder / "run", *records))
    return compare_rows(row_of(boost, "stability"), row_of(none, "stability")).over_all_rounds


def difference_of_runs(folder, before, now):
    """The second of two runs minus the first, over all rounds."""
    for name, chats in (("before", before), ("now", now)):
        write_run(folder / name, *(record("none", n, rounds) for n, rounds in enumerate(chats)))
    comparison = compare_folders([folder / "before", folder / "now"])
    row = comparison.methods[0].overall
    assert comparison.methods[0].pairs == len(before)
    if row.over_rounds.mean is not None:
        assert row.now.mean - row.before.mean == pytest.approx(row.over_rounds.mean)
    return row.over_rounds


def change_over_rounds(folder, before, now):
    """From a first round to a last one."""
    chats = [[first[0], last[-1]] for first, last in zip(before, now, strict=True)]
    records = [record("none", n, rounds) for n, rounds in enumerate(chats)]
    return row_of(read_series(write_run(folder / "run", *records))[0], "stability").change


def loss_of_all_rules(folder, before, now):
    """From round 1 to the last quarter of the rounds."""
    chats = [[first[0], *last[1:]] for first, last in zip(before, now, strict=True)]
    run = write_run(folder / "run", *(record("none", n, rounds) for n, rounds in enumerate(chats)))
    return loss_map(run)[0].change


def loss_after_pressure(folder, before, now):
    """From the rounds with an ordinary message to those with a push."""
    pressures = [None] * 3 + ["push"] * 3
    chats = [[*first, *last] for first, last in zip(before, now, strict=True)]
    records = [record("none", n, rounds, pressures) for n, rounds in enumerate(chats)]
    rows = loss_map(write_run(folder / "run", *records))
    return next(row.change for row in rows if row.group == "push")


NAME_BROKEN = {**SCORES, "name": 0.0}
ONLY_SHORT_JUDGED = dict.fromkeys(RULES) | {"short": 1.0}


@pytest.mark.parametrize(
    "difference",
    [
        difference_of_methods,
        difference_of_runs,
        change_over_rounds,
        loss_of_all_rules,
        loss_after_pressure,
    ],
)
@pytest.mark.parametrize(
    ("before", "now", "mean", "n"),
    [
        # the reply of one conversation was cut, and every rule scores as before
        ([[SCORES] * 3] * 2, [[SHORT_UNJUDGED] * 3, [SCORES] * 3], 0.0, 2),
        ([[SHORT_UNJUDGED] * 3, [SCORES] * 3], [[SCORES] * 3] * 2, 0.0, 2),
        # a rule that falls does so by a third of the three rules that were judged on both sides
        (
            [[SCORES] * 3] * 2,
            [[{**NAME_BROKEN, "short": None}] * 3, [NAME_BROKEN] * 3],
            -(1 / 3 + 1 / 4) / 2,
            2,
        ),
        # no rule was judged on both sides of the first conversation, so it is no pair
        (
            [[SHORT_UNJUDGED] * 3, [SCORES] * 3],
            [[ONLY_SHORT_JUDGED] * 3, [NAME_BROKEN] * 3],
            -0.25,
            1,
        ),
        # nothing is missing
        ([[SCORES] * 3] * 2, [[NAME_BROKEN] * 3, [SCORES] * 3], -0.125, 2),
    ],
)
def test_a_difference_is_that_of_the_rules_judged_on_both_sides(
    tmp_path, difference, before, now, mean, n
):
    estimate = difference(tmp_path, before, now)
    assert (estimate.mean, estimate.n) == (pytest.approx(mean), n)


# Sentences and tables


def test_the_headline_does_not_contradict_the_paired_difference(tmp_path):
    results = results_of(cut_under_boost(tmp_path / "run"))
    levels = [row_of(series, "stability").points[-1].mean for series in results.series]
    assert levels == [0.5, pytest.approx(5 / 12)]
    text = " ".join(opening(results.series, results.findings))
    assert "42%" not in text
    assert (
        f"With {FIX} its score in round 3 differs by 0 points (95% interval -84 to +84), counting"
        " only what was judged under both; too few conversations to compare." in text
    )
    # the table of means shows 0.42 beside 0.50 and a difference of 0.00, and says why
    output = " ".join(results_text(results).split())
    assert "0.42" in output and ONLY_SHARED in output


def test_a_change_says_what_it_counts_if_it_is_not_that_of_the_means_shown(tmp_path):
    chats = [record("none", number, [SHORT_UNJUDGED, SCORES, SCORES]) for number in range(30)]
    results = results_of(write_run(tmp_path / "run", *chats))
    row = row_of(results.series[0], "stability")
    assert [row.points[place].mean for place in (0, -1)] == [pytest.approx(1 / 3), 0.5]
    assert row.change.mean == 0 and row.compared == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    text = " ".join(opening(results.series, results.findings))
    assert "33% in round 3, 33% in round 1" in text
    assert "counting only what was judged in both rounds" in text
    (prompt,) = prompt_rows(results.series[0])
    assert prompt.change == 0


def test_methods_with_other_conversations_are_ranked_on_those_that_all_have(tmp_path):
    low, high = dict.fromkeys(RULES, 0.0), dict.fromkeys(RULES, 1.0)
    run = write_run(
        tmp_path,
        *(record("none", number, [low if number < 2 else high] * 3) for number in range(4)),
        # retry saves both conversations that can be saved, reminder one of the two that it has
        *(record("check-and-retry", number, [high] * 3) for number in range(4)),
        record("reminder:every=1", 0, [high] * 3),
        record("reminder:every=1", 1, [{**high, "dose": 0.0}] * 3),
    )
    series = read_series(run)
    baseline = row_of(series[0], "stability")
    gains = {
        item.method: compare_rows(row_of(item, "stability"), baseline).over_all_rounds.mean
        for item in series[1:]
    }
    assert gains == {"check-and-retry": 0.5, "reminder:every=1": 0.875}
    assert best_fix(series).row.series.method == "check-and-retry"
    assert fix_sentence(series).startswith(
        "With check-and-retry, the highest of 2 methods over all rounds of the 2 conversations that"
        " all have, it scores 100% in round 3"
    )


# Other comparisons


def test_a_summary_is_judged_by_the_rules_asked_before_and_after_it():
    probes = [
        {"rule": rule, "round": place, "score": SCORES[rule]}
        | ({"left_out": 1} if place > 1 else {})
        for place in (1, 2)
        for rule in RULES
        if (rule, place) != ("short", 2)
    ]
    summary = {"round": 2, "view": "agent", "rounds": (1, 1), "text": "."}
    chat = conversation_of(probes=probes, summaries=[summary])
    matrix = np.full((1, 2), np.nan)
    series = Series("", "none", (chat,), np.arange(1), {"stability": matrix})
    overall = context_summary_effect(series)[0]
    assert overall.difference.mean == 0 and overall.before.mean == pytest.approx(1 / 3)


def test_a_setting_of_a_calibration_gains_by_the_rules_judged_with_and_without_it(tmp_path):
    none, boost = read_series(cut_under_boost(tmp_path / "run"))
    by_method = {series.method: series for series in (none, boost)}
    plain, fixed = (
        _candidate(_Setting(method, None, ""), by_method, {}, 2) for method in ("none", FIX)
    )
    names = ((FIX, "factor"),)
    result = Calibration((plain, fixed), names, np.array([False, True]), CalibrationIdentity())
    assert np.mean(fixed.stability) < np.mean(plain.stability)
    assert (result.gain(fixed).mean, result.gain(fixed).n, result.mean_gain(fixed)) == (0, 2, 0)
    assert result.gains_and_costs([plain, fixed])[:, :2].tolist() == [[0, 0], [0, 0]]


def test_a_history_is_compared_on_the_rules_judged_after_both():
    scores_after_kept, scores_after_broken = dict.fromkeys(RULES, 1.0), dict.fromkeys(RULES, 0.0)
    later = {"name": 1.0, "short": 0.0, "opening": 1.0, "dose": 1.0}
    chat = SimpleNamespace(
        method="none",
        agent=SimpleNamespace(category="rules"),
        kept=SimpleNamespace(scores=[scores_after_kept]),
        broken=SimpleNamespace(scores=[scores_after_broken]),
        next_replies=[
            SimpleNamespace(history="kept", seen=1, prompted=True, scores=later),
            SimpleNamespace(
                history="broken", seen=1, prompted=True, scores={**later, "short": None}
            ),
        ],
    )
    (result,) = precedent_of([chat])
    assert [cell.score.mean for cell in result.cells] == [0.75, 1.0]
    assert result.depths[0].precedent.mean == 0


def test_the_change_of_a_category_is_that_of_its_rules():
    # in each of two dialogs, a rule is judged twice and kept, and then another once and broken
    dialogs, turns, scores = [0.0] * 3 + [1.0] * 3, [1, 2, 3] * 2, [1.0, 1.0, 0.0] * 2
    columns = map(np.array, (dialogs, turns, turns, scores, [0, 0, 1] * 2))
    assert _change(RuleScores("all", 6, *columns)).mean == 0


def test_a_compaction_is_judged_by_the_rules_scored_before_and_after_it():
    rules = {ScoredRule("bot", None, name): place for place, name in enumerate(("kept", "broken"))}
    unknown = array("h", [NONE] * 3)
    scores = LogScores(
        rules=rules,
        rule=array("I", [0, 0, 1]),
        dialog=array("I", [0] * 3),
        turn=array("I", [1, 2, 3]),
        score=array("d", [1.0, 1.0, 0.0]),
        tokens_since=array("q", [NONE] * 3),
        calls=array("q", [NONE] * 3),
        compactions=array("q", [0, 1, 1]),
        kind=unknown,
        polarity=unknown,
        cause=array("b", [NONE] * 3),
        compacted={0: 1},
    )
    run = SimpleNamespace(log_scores=scores, manifest=SimpleNamespace(probe_rules=()), dialogs=[0])
    effect = context_effects(run).compactions
    assert (effect.before.mean, effect.after.mean, effect.change.mean) == (1, 1, 0)


# Random scores


def random_series(rng, scores):
    """A series with these scores by probe, of which some are dropped, in another order."""
    probes = list(scores)
    rng.shuffle(probes)
    some = {
        probe: np.where(rng.random(scores[probe].shape) < 0.4, np.nan, scores[probe])
        for probe in probes
        if rng.random() < 0.9
    }
    by_rule = some or scores
    count = len(next(iter(by_rule.values())))
    return Series(
        run="",
        method="none",
        records=tuple(conversation_of(conversation=number) for number in range(count)),
        conversations=np.arange(count),
        matrices={"stability": means_over_probes(by_rule)},
        by_probe={"stability": by_rule},
    )


@pytest.mark.parametrize("seed", range(20))
def test_dropped_or_reordered_scores_make_no_difference(seed):
    rng = np.random.default_rng(seed)
    probes = [ProbeId(f"rule-{place}", 0) for place in range(rng.integers(1, 7))]
    # each rule keeps its score over the rounds, so that no change is one either
    scores = {probe: np.repeat(rng.random((8, 1)), 5, axis=1) for probe in probes}
    first, second = random_series(rng, scores), random_series(rng, scores)
    for pair in shared_means(*(entry.scores("stability") for entry in (first, second))):
        assert np.isfinite(pair).any() or set(first.by_probe) != set(second.by_probe)
    rows = [row_of(series, "stability") for series in (first, second)]
    difference = compare_rows(*rows)
    for value in (difference.over_all_rounds, difference.last_round, *(row.change for row in rows)):
        assert value.n == 0 or value.mean == pytest.approx(0, abs=1e-12)
    assert all(row.lower_in_rounds == () for row in rows)


@pytest.mark.parametrize("seed", range(5))
def test_dropped_scores_make_no_row_of_the_map_and_no_run_differ(tmp_path, seed):
    rng = np.random.default_rng(seed)
    names = ("before", "now")
    scores = [dict(zip(RULES, rng.random(4).round(3).tolist(), strict=True)) for _ in range(6)]
    pressures = [None, "push", None, "push", None]

    def chats():
        for number, by_rule in enumerate(scores):
            rounds = [
                {rule: score if rng.random() < 0.6 else None for rule, score in by_rule.items()}
                for _ in pressures
            ]
            yield record("none", number, rounds, pressures)

    runs = [write_run(tmp_path / name, *chats()) for name in names]
    rows = [row for run in runs for row in loss_map(run)]
    assert {row.grouping for row in rows} > {"all rules", "kind", "rounds", "last message"}
    for row in rows:
        assert row.change.n == 0 or row.change.mean == pytest.approx(0, abs=1e-12), row.grouping
    (comparison,) = compare_folders([tmp_path / name for name in names]).methods
    assert comparison.pairs == 6
    for row in comparison.rows:
        assert row.over_rounds.mean == pytest.approx(0, abs=1e-12), row.group


@pytest.mark.parametrize("seed", range(5))
def test_where_nothing_is_missing_a_difference_is_that_of_the_means(tmp_path, seed):
    rng = np.random.default_rng(seed)
    records = [
        record(
            method, number, [dict(zip(RULES, rng.random(4).tolist(), strict=True)) for _ in "abc"]
        )
        for method in ("none", FIX)
        for number in range(6)
    ]
    run = write_run(tmp_path, *records)
    none, boost = read_series(run)
    by_hand = {
        series.method: np.array(
            [
                [
                    sum(probe.score for probe in chat.probes if probe.round == place) / len(RULES)
                    for place in (1, 2, 3)
                ]
                for chat in series.records
            ]
        )
        for series in (none, boost)
    }
    assert np.array_equal(none.stability, by_hand["none"])
    row = compare_rows(row_of(boost, "stability"), row_of(none, "stability"))
    gained = by_hand[FIX] - by_hand["none"]
    assert row.last_round.mean == gained[:, -1].mean()
    totals = [np.add(np.add(*scores.T[:2]), scores.T[2]) / 3 for scores in by_hand.values()]
    assert row.over_all_rounds.mean == pytest.approx((totals[1] - totals[0]).mean(), abs=1e-15)
    change = by_hand["none"][:, -1] - by_hand["none"][:, 0]
    assert row_of(none, "stability").change.mean == change.mean()
    assert loss_map(run)[0].change.mean == pytest.approx(change.mean(), abs=1e-15)
