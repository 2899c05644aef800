"""Figures 5 and 6: the stability that methods gain against the capability that they cost."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from holdfast import drift
from holdfast.analysis.candidates import Calibration, Candidate, read_calibration
from holdfast.analysis.choosing import ahead_at_cost
from holdfast.analysis.statistics import DIFFERENCES, estimate, row_means
from holdfast.analysis.verdicts import all_of, judge
from holdfast.papers.findings import Claim, Figure, claim_that, in_words, not_run, pngs
from holdfast.papers.li2024.li2024_setup import Li2024Setup
from holdfast.report.calibration_figures import write_calibration_figures
from holdfast.study.calibrating import calibrate, units_of
from holdfast.study.calibration_plan import Plan, choose_prompts
from holdfast.study.capability import load_capability

# points lost at which Figure 6 compares methods; a few hundred questions cannot resolve the paper's
# 0.5 points of MMLU
_BUDGET = 5.0
_FIGURE_5 = "5", "stability against the capability lost"
_FIGURE_6 = "6", f"stability by round at about {_BUDGET:g} points lost"
_AS_STABLE = {
    name: f"split-softmax is as stable as {name} or more so, at the same cost."
    for name in ("system prompt repetition", "classifier-free guidance")
}
_FADES = (
    "what classifier-free guidance gives in the first round does not carry into long conversations."
)
_CROSSES = "repetition is the stronger in late rounds, split-softmax in early ones."


def figures_5_and_6(setup: Li2024Setup) -> list[Figure]:
    """The gain and the cost of each method: over its parameters, and by round at the same cost."""
    scale, out = setup.scale, setup.out / "figures-5-and-6"
    if not scale.sweeps:
        why = "Not run at this scale: it takes a calibration of every method."
        return [
            not_run(_FIGURE_5, _AS_STABLE.values(), why),
            not_run(_FIGURE_6, (_FADES, _CROSSES), why),
        ]
    suite, plan = _plan_of(setup)
    capability = load_capability(setup.capability, scale.questions, setup.seed)
    with setup.watch(out.name, units_of(suite, capability, plan)) as progress:
        running = drift.Running(progress=progress)
        calibrate(setup.model, suite, capability, out, plan, running)
    calibration = read_calibration(out)
    images = write_calibration_figures(calibration, _BUDGET, setup.figures("5-and-6"))
    return [_figure_5(setup, calibration, images), _figure_6(calibration, images)]


def _plan_of(setup: Li2024Setup) -> tuple[drift.Suite, Plan]:
    """The prompts of Figures 5 and 6, and how they are calibrated."""
    scale, suite = setup.scale, choose_prompts(setup.suite)
    plan = Plan(scale.draws, scale.rounds, seed=setup.seed, sweeps=scale.sweeps)
    return replace(suite, cases=suite.cases[: scale.prompts]), plan


def _figure_5(setup: Li2024Setup, calibration: Calibration, images: Iterable[Path]) -> Figure:
    split, *others = calibration.sweeps
    measured = "Stability of split-softmax less that of {} (its settings mixed to the same cost):"
    claims = [
        claim_that(text, ahead_at_cost(calibration, split, sweep), +1, measured.format(name))
        for (name, text), sweep in zip(_AS_STABLE.items(), others, strict=True)
    ]
    how = f"Questions: {setup.capability}, asked at the fourth turn of the same dialogs."
    return Figure(*_FIGURE_5, how, pngs(images, "trade_off"), tuple(claims))


def _figure_6(calibration: Calibration, images: Iterable[Path]) -> Figure:
    split, repetition, guidance = (
        calibration.closest(sweep, _BUDGET) for sweep in calibration.sweeps
    )
    gain = guidance.by_round - calibration.none.by_round
    fading = estimate(gain[:, 0] - gain[:, -1], DIFFERENCES)
    gained = f"Gain of {guidance.method} over none, first round less last:"
    claims = (claim_that(_FADES, fading, +1, gained), _crosses(repetition, split))
    how = "Each method at the setting of its sweep that comes closest."
    return Figure(*_FIGURE_6, how, pngs(images, "by_round"), claims)


def _crosses(repetition: Candidate, split: Candidate) -> Claim:
    ahead = repetition.by_round - split.by_round
    half = ahead.shape[1] // 2
    early, late = (
        estimate(row_means(half_of_rounds), DIFFERENCES)
        for half_of_rounds in (ahead[:, :half], ahead[:, half:])
    )
    return Claim(
        _CROSSES,
        all_of(judge(late, +1), judge(early, -1)),
        f"{repetition.method} less {split.method}, first half of the rounds {in_words(early)}, "
        f"second half {in_words(late)}.",
    )
