"""Figures 5 and 6: the stability that methods gain against the capability that they cost."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from holdfast import drift
from holdfast.analysis.calibration_reading import read_calibration
from holdfast.analysis.calibration_results import Calibration, Candidate
from holdfast.analysis.choosing import ahead_at_cost
from holdfast.analysis.statistics import DIFFERENCES, estimate, row_means
from holdfast.analysis.verdicts import all_of, judge
from holdfast.methods import Guidance, Repetition, SplitSoftmax
from holdfast.papers.findings import Claim, Figure, claim_that, in_words, not_run, pngs
from holdfast.papers.li2024.li2024_setup import Li2024Setup
from holdfast.report.calibration_figures import write_calibration_figures
from holdfast.study.calibrating import calibrate, count_progress_steps
from holdfast.study.calibration_plan import CalibrationPlan, choose_prompts
from holdfast.study.capability import load_capability

# the points lost at which Figure 6 compares methods; the paper's 0.5 points of MMLU are too few to
# be resolved with a few hundred questions
_BUDGET = 5.0
_TITLE_5 = "stability against the capability lost"
_TITLE_6 = f"stability by round at about {_BUDGET:g} points lost"
_RIVALS = {  # of split-softmax, by the paper's names for them
    Repetition.name: "system prompt repetition",
    Guidance.name: "classifier-free guidance",
}
_AS_STABLE = "split-softmax is as stable as {} or more so, at the same cost."
_FADES = (
    "what classifier-free guidance gives in the first round does not carry into long conversations."
)
_CROSSES = "repetition is the stronger in late rounds, split-softmax in early ones."


def figures_5_and_6(setup: Li2024Setup) -> list[Figure]:
    """Compares what each method gains and costs, over its parameters and by round."""
    scale = setup.scale
    out = setup.out / "figures-5-and-6"
    if not scale.sweeps:
        why = "Not run at this scale: it takes a calibration of every method."
        return [
            not_run("5", _TITLE_5, map(_AS_STABLE.format, _RIVALS.values()), why),
            not_run("6", _TITLE_6, (_FADES, _CROSSES), why),
        ]
    cases = choose_prompts(setup.suite).cases[: scale.prompts]
    suite = replace(setup.suite, cases=cases)
    sweeps = [f"{method}:{values}" for method, values in scale.sweeps.items()]
    plan = CalibrationPlan(scale.draws, scale.rounds, seed=setup.seed, sweeps=tuple(sweeps))
    capability = load_capability(setup.capability, scale.questions, setup.seed)
    with setup.watch(out.name, count_progress_steps(suite, capability, plan)) as progress:
        running = drift.Running(progress=progress)
        calibrate(setup.model, suite, capability, out, plan, running)
    calibration = read_calibration(out)
    images = write_calibration_figures(calibration, _BUDGET, setup.figures("5-and-6"))
    return [_figure_5(setup, calibration, images), _figure_6(calibration, images)]


def _sweep_of(calibration: Calibration, method: str) -> list[Candidate]:
    """The candidates of the sweep of a method."""
    names = [name for name, _ in calibration.names]
    return calibration.sweeps[names.index(method)]


def _figure_5(setup: Li2024Setup, calibration: Calibration, images: Iterable[Path]) -> Figure:
    """Figure 5: the stability of methods that cost the same capability."""
    split_softmax = _sweep_of(calibration, SplitSoftmax.name)
    claims = [
        claim_that(
            _AS_STABLE.format(paper_name),
            ahead_at_cost(calibration, split_softmax, _sweep_of(calibration, method)),
            sign=+1,
            quantity=f"Stability of split-softmax less that of {paper_name} (its settings mixed to"
            " the same cost):",
        )
        for method, paper_name in _RIVALS.items()
    ]
    return Figure(
        "5",
        _TITLE_5,
        f"Questions: {setup.capability}, asked at the fourth turn of the same dialogs.",
        images=pngs(images, "trade_off"),
        claims=tuple(claims),
    )


def _figure_6(calibration: Calibration, images: Iterable[Path]) -> Figure:
    """Figure 6: how the gain of methods changes over the rounds."""

    def closest(method: str) -> Candidate:
        return calibration.closest(_sweep_of(calibration, method), _BUDGET)

    guidance = closest(Guidance.name)
    gain = calibration.gain_by_round(guidance)
    fades = claim_that(
        _FADES,
        estimate(gain[:, 0] - gain[:, -1], DIFFERENCES),
        sign=+1,
        quantity=f"Gain of {guidance.method} over none, first round less last:",
    )
    return Figure(
        "6",
        _TITLE_6,
        "Each method is shown at the setting of its sweep that comes closest.",
        images=pngs(images, "by_round"),
        claims=(
            fades,
            _crosses(calibration, closest(Repetition.name), closest(SplitSoftmax.name)),
        ),
    )


def _crosses(calibration: Calibration, repetition: Candidate, split_softmax: Candidate) -> Claim:
    """Judges the claim that repetition gains more in late rounds, and less in early ones."""
    ahead = calibration.gain_by_round(repetition) - calibration.gain_by_round(split_softmax)
    half = ahead.shape[1] // 2
    early = estimate(row_means(ahead[:, :half]), DIFFERENCES)
    late = estimate(row_means(ahead[:, half:]), DIFFERENCES)
    return Claim(
        _CROSSES,
        all_of(judge(late, +1), judge(early, -1)),
        f"{repetition.method} less {split_softmax.method}, first half of the rounds:"
        f" {in_words(early)}; second half: {in_words(late)}.",
    )
