"""The recommendation of a calibration, and when it recommends nothing."""

import dataclasses
import math
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest
from calibrations import ABOUT, against_none, at_chance, sampled, synthetic
from oracles import clopper_pearson

from holdfast.analysis.calibration_results import Calibration, Candidate
from holdfast.analysis.calibration_size import budget_shown, sizes_needed, times_needed
from holdfast.analysis.choosing import ahead_at_cost, pareto, pick
from holdfast.cli.fix.calibrate import _next_step
from holdfast.errors import ParameterOutOfRange
from holdfast.report import calibration_table as calibration_report
from holdfast.report.calibration_sentences import answer, chance_line, next_step
from holdfast.report.calibration_table import table

# Stability and cost


def test_the_lead_is_over_a_mixture_of_the_same_cost():
    calibration = synthetic(
        {
            "none": ([0.5, 0.5], [60, 60]),
            "weak": ([0.6, 0.6], [58, 58]),
            "strong": ([0.9, 0.9], [50, 50]),
            "between": ([0.8, 0.8], [56, 56]),
            "dear": ([0.95, 0.95], [20, 20]),
            "gain": ([0.5, 0.5], [70, 70]),
        }
    )
    none, weak, strong, between, dear, gain = calibration.candidates
    mixed = 0.6 + 0.3 * 2 / 8  # weak (2 lost) and strong (10 lost) in a mix of 3 to 1 lose 4
    for ours, rivals, expected in (
        ([between], [weak, strong], 0.8 - mixed),
        ([between], [strong, weak], 0.8 - mixed),
        ([weak], [weak, strong], 0.0),
        ([dear], [weak, strong], 0.05),
        ([gain], [weak], 0.0),
        ([none], [weak], 0.0),
        ([between, dear], [weak, strong], (0.85 - mixed) / 2),
        ([weak], [strong], 0.6 - (0.5 + 0.4 * 2 / 10)),
    ):
        ahead = ahead_at_cost(calibration, ours, rivals)
        names = ours[0].method, rivals[0].method
        assert ahead.mean == pytest.approx(expected), names
        assert ahead.low - 1e-9 <= expected <= ahead.high + 1e-9, names


def test_the_uncertainty_of_the_cost_is_in_the_interval():
    rng = np.random.default_rng(0)
    # one question each: the same stability in all conversations, but uncertain costs
    costs = 100.0 * (rng.random(200) < 0.7)
    ours = Candidate("ours", 0, "1", np.ones((200, 1)), np.full(200, 0.7), costs, 0)
    none = Candidate("none", None, "", np.ones((200, 1)), np.full(200, 0.5), np.full(200, 100.0), 0)
    rival = Candidate("other", 1, "1", np.ones((200, 1)), np.full(200, 0.9), np.full(200, 40.0), 0)
    names = ("m", "k"), ("n", "k")
    calibration = Calibration((none, ours, rival), names, np.arange(200) % 2 == 1, ABOUT)
    ahead = ahead_at_cost(calibration, [ours], [rival])
    mean_loss = 100 - costs.mean()
    half = 1.96 * costs.std(ddof=1) / 200**0.5 * 0.4 / 60  # 0.4 of stability over 60 points
    assert ahead.mean == pytest.approx(0.7 - (0.5 + 0.4 * mean_loss / 60))
    ends = ahead.mean - half, ahead.mean + half
    assert (ahead.low, ahead.high) == pytest.approx(ends, abs=0.2 * half)


def test_a_model_that_answers_everything_right_is_not_certain_to_do_so_again():
    calibration = synthetic({"none": ([0.5, 0.5], [100, 100])}, 20)
    none = dataclasses.replace(calibration.none, capability=np.full(20, 100.0))
    score = calibration.capability(none)
    low, high = clopper_pearson(20, 20)
    assert (score.low, score.high) == (pytest.approx(100 * low, abs=1), 100 * high)
    text = dataclasses.replace(calibration, about=ABOUT.model_copy(update={"is_text": True}))
    score = text.capability(none)
    assert (score.low, score.high) == (100, 100), "a log-probability has no limits"


# The choice


def test_the_best_setting_within_a_budget_is_picked_from_the_pareto_front():
    assert pareto([0.5, 0.7, 0.6, 0.9, 0.7], [0, 1, 2, 5, 1]) == [True, True, False, True, True]
    calibration = synthetic(
        {
            "none": ([0.5, 0.5], [60, 60]),
            "weak": ([0.6, 0.65], [60, 59]),
            "good": ([0.8, 0.7], [58, 55]),
            "strong": ([0.9, 0.9], [40, 42]),
        }
    )
    picks = [pick(calibration, budget).method for budget in (0, 1.9, 2, 19.9, 20)]
    assert picks == ["weak", "weak", "good", "good", "strong"]
    choice = pick(calibration, 2)  # chosen on one half, reported on the other
    assert choice.stability.mean == pytest.approx(0.7)
    assert choice.gain.mean == pytest.approx(0.2)
    assert choice.drop.mean == pytest.approx(5)
    assert choice.gain.low < 0.2 < choice.gain.high and choice.drop.low < 5 < choice.drop.high
    assert not choice.recommended
    assert "0.50 -> 0.70 (+0.20" in answer(calibration, choice)
    with pytest.raises(ParameterOutOfRange, match=r"budget.*-1"):
        pick(calibration, -1)


def test_the_choice_prefers_a_setting_whose_cost_is_certain():
    """The most stable setting has a cost too uncertain for one half; a weaker one costs nothing."""
    clear, blurred = sampled(0.1, 0, 1), sampled(0.3, 1, 150).candidates[1]
    clearly = dataclasses.replace(clear.candidates[1], method="clear")
    calibration = dataclasses.replace(
        clear, candidates=(clear.none, clearly, blurred), questions=4000
    )
    assert pick(calibration, 2).method == "clear" and pick(calibration, 2).recommended


def test_the_choice_prefers_what_the_other_half_is_likely_to_confirm():
    """Strong gains most, but so close to the budget that the other half may not confirm it."""
    weak, strong = sampled(0.1, 0, 5), sampled(0.3, 1.5, 5)
    candidates = [
        dataclasses.replace(calibration.candidates[1], method=name)
        for name, calibration in (("weak", weak), ("strong", strong))
    ]
    calibration = dataclasses.replace(weak, candidates=(weak.none, *candidates), questions=8000)
    first_half = ~calibration.report
    assert calibration.drop(candidates[1], first_half).high < 2.7, "within it on the first half"
    assert [pick(calibration, budget).method for budget in (2.7, 10)] == ["weak", "strong"]
    assert pick(calibration, 2.7).recommended and pick(calibration, 1.4).method == "weak"


def test_a_setting_that_changes_no_answer_may_be_chosen():
    """Its cost does not vary on the first half, which is neither a proof nor an objection."""
    noisy = sampled(0.3, 2, 5, 80)
    none, fix = noisy.candidates
    quiet = Candidate("quiet", 0, "1", none.by_round, fix.stability - 0.1, none.capability, 0)
    calibration = dataclasses.replace(noisy, candidates=(none, quiet, fix))
    assert calibration.drop(quiet, ~calibration.report).sd == 0
    assert pick(calibration, 4).method == "quiet" and pick(calibration, 20).method == "fix"


# No recommendation


def test_no_setting_is_recommended_if_none_meets_the_budget():
    calibration = synthetic({"none": ([0.5, 0.5], [60, 60]), "strong": ([0.9, 0.9], [40, 42])}, 80)
    choice = pick(calibration, 3)
    assert choice.method == "none" and choice.none_fits
    few = synthetic({"none": ([0.5, 0.5], [60, 60]), "weak": ([0.4, 0.4], [60, 60])})
    assert not pick(few, 3).recommended
    worse = synthetic({"none": ([0.5, 0.5], [60, 60]), "weak": ([0.4, 0.4], [60, 60])}, 80)
    choice = pick(worse, 3)
    assert not choice.recommended and not choice.none_fits


@pytest.mark.parametrize(
    ("calibration", "budget", "why"),
    [
        (sampled(0.2, 1, 5), 5, ""),
        (
            sampled(0.2, 1, 5, 36),
            5,
            "it was tried in too few conversations (n = 18, fewer than 20)",
        ),
        (sampled(0.0005, 0, 5), 5, "its gain is not certain (its interval includes 0)"),
        (sampled(0.2, 1, 150), 5, "it may cost up to "),
        (against_none([0.8, 0.8], [60, 60]), 2, "it may cost up to 8.8 points"),
        (against_none([0.8, 0.8], [60, 60]), 10, ""),
        (against_none([0.8, 0.4], [60, 60]), 10, "it is less stable"),
        (against_none([0.8, 0.8], [60, 20]), 10, "it costs more than the budget"),
        (against_none([0.5, 0.5], [60, 60]), 10, "it is the model as it is"),
    ],
)
def test_a_setting_is_recommended_only_if_the_evidence_allows(calibration, budget, why):
    choice = pick(calibration, budget)
    assert choice.why.startswith(why) and choice.recommended == (not why)
    assert answer(calibration, choice).startswith("Use fix, ") == (not why)


def test_a_model_that_guesses_has_no_capability_to_lose():
    guessing, able = at_chance(27.0), at_chance(40.0)
    assert guessing.at_chance and not able.at_chance
    assert at_chance(15.0).at_chance, "below chance"
    assert pick(able, 5).recommended and chance_line(able) == ""
    choice = pick(guessing, 5)
    assert not choice.recommended and choice.why
    line = chance_line(guessing)
    assert "27.0 [" in line and "25.0%" in line and "--capability" in line
    assert "--capability" in next_step(guessing, choice)
    assert "capability (chance 25.0)" in table(guessing)
    assert "capability (chance 25.0)" in calibration_report.setting_rows(guessing)[0]


# The size of the next calibration


def test_the_sizes_that_would_decide_follow_from_the_intervals():
    """Those of the reporting half, as that half has to show the result again."""
    close = sampled(0.2, 1, 30)
    choice = pick(close, 5)
    sizes = sizes_needed(close, choice)
    longer, times = times_needed(close, choice)
    assert not choice.recommended and longer == 1 < times < 10
    assert sizes == ("draws", 1, math.ceil(200 * times), 200)
    for questions in (sizes.questions, 4 * sizes.questions):
        assert budget_shown(close, choice, questions) == (5 if questions < 1000 else 3)
    far = sampled(0.2, 1, 400)
    assert sizes_needed(far, pick(far, 2)) is None
    few = sampled(0.2, 1, 5, 24)
    assert sizes_needed(few, pick(few, 5)).conversations >= 40


def test_no_more_questions_are_suggested_than_the_source_has(monkeypatch):
    close = sampled(0.2, 1, 30)
    monkeypatch.setattr("sys.argv", ["holdfast", "calibrate", "--draws", "9", "--questions=80"])
    arguments = Namespace(budget=5, model="default", seed=0)
    setup = Namespace(arguments=arguments, out=Path("runs/a"), capability_spec="knowledge")
    choice = pick(close, 5)
    questions = sizes_needed(close, choice).questions
    assert questions > 300
    step = _next_step(setup, close, choice)
    assert {"5", str(questions), "300;", "7"} <= set(step.split())
    assert step.endswith(" --draws 1 --questions 300 --out runs/a-200-300 --budget 7")
