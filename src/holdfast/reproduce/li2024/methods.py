"""Figures 5 and 6: what each method gives and costs, and round by round at equal cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from holdfast import drift
from holdfast.analysis.calibration import Calibration, Candidate, read_calibration
from holdfast.analysis.choice import ahead_at_cost
from holdfast.analysis.statistics import estimate, row_means
from holdfast.analysis.verdicts import NOT_JUDGED, all_of, judge
from holdfast.report.study_figures import write_calibration_figures
from holdfast.reproduce.findings import Claim, Figure, claim_that, pngs, spelled
from holdfast.reproduce.li2024.setup import Setup
from holdfast.study.calibrate import Plan, calibrate, choose_prompts, units_of
from holdfast.study.capability import load_capability

_STEP = "figures-5-and-6"
# points at which Figure 6 compares; the paper's 0.5 of MMLU is finer than a few hundred questions
# can tell
_BUDGET = 5.0


def figures_5_and_6(setup: Setup) -> list[Figure]:
    """What each method gives and costs."""
    if not setup.scale.sweeps:
        as_stable = [_AS_STABLE.format(name) for name in (_REPETITION, _GUIDANCE)]
        return [_not_run("5", _TRADE_OFF, as_stable), _not_run("6", _BY_ROUND, _OVER_ROUNDS)]
    _calibrate(setup)
    calibration = read_calibration(setup.out / _STEP)
    images = write_calibration_figures(calibration, _BUDGET, setup.figures("5-and-6"))
    return [_figure_5(setup, calibration, images), _figure_6(calibration, images)]


_TRADE_OFF = "stability against the capability lost"
_BY_ROUND = f"stability by round at about {_BUDGET:g} points lost"
_REPETITION, _GUIDANCE = "system prompt repetition", "classifier-free guidance"
_AS_STABLE = "split-softmax is as stable as {} or more so, at the same cost."
_OVER_ROUNDS = (
    "what classifier-free guidance gives in the first round does not carry into long"
    " conversations.",
    "repetition is the stronger in late rounds, split-softmax in early ones.",
)


def _not_run(number: str, title: str, texts: Sequence[str]) -> Figure:
    why = "Not run at this scale: it takes a calibration of every method."
    claims = tuple(Claim(text, NOT_JUDGED, why) for text in texts)
    return Figure(number, title, "Not run.", (), claims)


def _calibrate(setup: Setup) -> None:
    """Runs the sweeps, or takes up what is there."""
    scale = setup.scale
    suite, plan = plan_of(setup)
    capability = load_capability(setup.capability, scale.questions, setup.seed)
    units = units_of(suite, capability, scale.sweeps, plan)
    with setup.watch(_STEP, units) as progress:
        calibrate(
            setup.model,
            suite,
            capability,
            setup.out / _STEP,
            scale.sweeps,
            plan,
            progress=progress,
        )


def plan_of(setup: Setup) -> tuple[drift.Suite, Plan]:
    """The prompts of Figures 5 and 6, and how they are calibrated."""
    scale, suite = setup.scale, choose_prompts(setup.suite)
    plan = Plan(draws=scale.draws, rounds=scale.rounds, seed=setup.seed)
    return replace(suite, cases=suite.cases[: scale.prompts]), plan


def _figure_5(setup: Setup, calibration: Calibration, images: Sequence[Path]) -> Figure:
    split, repetition, guidance = calibration.sweeps
    return Figure(
        number="5",
        title=_TRADE_OFF,
        how=f"Questions: {setup.capability}, asked at the fourth turn of the same dialogs.",
        images=pngs(images, "trade_off"),
        claims=(
            _as_stable(calibration, split, repetition, _REPETITION),
            _as_stable(calibration, split, guidance, _GUIDANCE),
        ),
    )


def _as_stable(
    calibration: Calibration, split: Sequence[Candidate], others: Sequence[Candidate], name: str
) -> Claim:
    ahead = ahead_at_cost(calibration, split, others)
    return claim_that(
        _AS_STABLE.format(name),
        ahead,
        +1,
        f"Stability of split-softmax less that of {name} (its settings mixed to the same "
        f"cost): {spelled(ahead)}.",
    )


def _figure_6(calibration: Calibration, images: Sequence[Path]) -> Figure:
    split, repetition, guidance = (
        calibration.closest(sweep, _BUDGET) for sweep in calibration.sweeps
    )
    return Figure(
        number="6",
        title=_BY_ROUND,
        how="Each method at the setting of its sweep that comes closest.",
        images=pngs(images, "by_round"),
        claims=(_fades(calibration, guidance), _crosses(repetition, split)),
    )


def _fades(calibration: Calibration, guidance: Candidate) -> Claim:
    gain = guidance.by_round - calibration.none.by_round
    fading = estimate(gain[:, 0] - gain[:, -1])
    return claim_that(
        _OVER_ROUNDS[0],
        fading,
        +1,
        f"Gain of {guidance.method} over none, first round less last: {spelled(fading)}.",
    )


def _crosses(repetition: Candidate, split: Candidate) -> Claim:
    early, late = (estimate(half) for half in _halves(repetition.by_round - split.by_round))
    return Claim(
        _OVER_ROUNDS[1],
        all_of(judge(late, +1), judge(early, -1)),
        f"{repetition.method} less {split.method}, first half of the rounds {spelled(early)}, "
        f"second half {spelled(late)}.",
    )


def _halves(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[conversation]: the means over the first half of the rounds, and over the second."""
    half = values.shape[1] // 2
    return row_means(values[:, :half]), row_means(values[:, half:])
