"""Figures 3 to 9 of Li et al. 2024.

Figures 3 and 9: stability and adoption in self-chats, on this model and behind an API. Figures 4,
7 and 8: attention to the system prompt, and the norms of embeddings. Figures 5 and 6: the gain and
cost of each method, and round by round at equal cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast import drift
from holdfast.analysis.calibration import Calibration, Candidate, read_calibration
from holdfast.analysis.choice import ahead_at_cost
from holdfast.analysis.decay import describe
from holdfast.analysis.series import Series, read_series
from holdfast.analysis.statistics import (
    Estimate,
    change,
    estimate,
    estimate_columns,
    paired_difference,
    row_means,
)
from holdfast.analysis.verdicts import CONTRADICTED, NOT_JUDGED, SUPPORTED, UNDECIDED, all_of, judge
from holdfast.papers.findings import Claim, Figure, claim_that, in_words, pngs
from holdfast.papers.li2024.geometry import embedding_norms
from holdfast.papers.li2024.setup import Li2024Setup
from holdfast.records import read_run
from holdfast.report.figures import write_figures
from holdfast.report.study_figures import (
    write_calibration_figures,
    write_norms,
    write_trace_figures,
)
from holdfast.study import decay
from holdfast.study.calibrate import Plan, calibrate, choose_prompts, units_of
from holdfast.study.capability import load_capability

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel

_PLACES = {"role": "in the system role", "first-user": "before the first user message"}


def figure_3(setup: Li2024Setup) -> Figure:
    """Stability falls, adoption rises."""
    (series,) = read_series(setup.self_chats("figure-3", setup.model))
    images = write_figures([series], setup.figures("3"), whiskers=True)
    claims = (
        _moves(
            "A: over eight rounds the model follows its own system prompt less and less.",
            series,
            "stability",
            -1,
        ),
        _moves(
            "B: it begins to follow the prompt of its partner, which it never saw.",
            series,
            "adoption",
            +1,
        ),
    )
    return Figure(
        number="3",
        title="the agent lets go of its prompt, and takes on the other's",
        how="Self-chat of two copies of the model, probed at every round.",
        images=pngs(images, "drift"),
        claims=claims,
    )


def figure_9(setup: Li2024Setup) -> Figure:
    """The system prompt in its role, or before the first user message."""
    model = setup.other or setup.model
    by_place = {role: _with_prompt_in(role, setup) for role in _PLACES}
    images = write_figures(list(by_place.values()), setup.figures("9"), whiskers=True)
    claims = [
        _moves(
            f"a model behind an API loses stability too, with the prompt {_PLACES[role]}.",
            series,
            "stability",
            -1,
        )
        for role, series in by_place.items()
    ]
    who = (
        "The endpoint" if setup.other else "No endpoint was given (--endpoint), so the model itself"
    )
    return Figure(
        number="9",
        title="the system prompt in its role, and before the first user message",
        how=f"{who} ({model.name}) with both places of the prompt.",
        images=pngs(images, "drift"),
        claims=tuple(claims),
    )


def _with_prompt_in(role: str, setup: Li2024Setup) -> Series:
    """Self-chats with the system prompt in that place."""
    model = setup.other or setup.model
    run = setup.self_chats(f"figure-9-{role}", model, system_as=role, adoption=False)
    return replace(read_series(run)[0], run=f"as {role}")


def _moves(text: str, series: Series, kind: str, sign: int) -> Claim:
    """The claim that stability or adoption rises (+1) or falls (-1)."""
    values = series.values(kind)
    if values.shape[1] < 2 or np.isnan(values).all():
        return Claim(text, UNDECIDED, f"{kind.capitalize()} was measured in one round only.")
    rounds, moved = estimate_columns(values), change(values)
    ends = f"{rounds[0].mean:.3f} to {rounds[-1].mean:.3f}"
    return claim_that(text, moved, sign, f"{kind.capitalize()} {ends}, change {in_words(moved)}.")


# coefficient of variation of norms: up to the first we call them concentrated, from the second on
# not
_NARROW, _WIDE = 0.2, 0.5


def figure_4(setup: Li2024Setup) -> Figure:
    """Attention to the prompt decays between turns, not within them."""
    trace = _trace(setup, setup.model, "figure-4")
    images = write_trace_figures(trace, setup.figures("4"))
    layer, head = trace["shown_head"]
    claims = (
        *_decay_claims(f"head {layer}.{head}, whose mass falls most", trace["head"]),
        *_decay_claims("the average over heads", trace["average"]),
    )
    return Figure(
        number="4",
        title="attention to the system prompt over a conversation",
        how="One line per round; dashed: attention spread evenly over the tokens in view.",
        images=pngs(images, "decay"),
        claims=claims,
    )


def _trace(setup: Li2024Setup, model: LocalModel, step: str) -> dict[str, Any]:
    """The decay of the masses in a model's self-chats."""
    sizes = decay.Sizes(setup.scale.traced, setup.scale.rounds, setup.seed)
    with setup.watch(step, sizes.conversations * sizes.rounds) as progress:
        chats = decay.hold(model, setup.suite, setup.out / step, sizes, progress=progress)
    return describe(model.name, *chats)


def _decay_claims(who: str, changes: dict[str, Any]) -> tuple[Claim, Claim]:
    between = Estimate(**changes["between_turns"]["real"])
    within = Estimate(**changes["within_turns"]["real"])
    slower = Estimate(**changes["within_turns"]["difference"])
    return (
        claim_that(
            f"{who}: attention to the system prompt falls between turns.",
            between,
            -1,
            f"Log of the mass, all turns: {in_words(between)}.",
        ),
        claim_that(
            f"{who}: within a turn it falls less than even attention, which decays hyperbolically.",
            slower,
            +1,
            f"Log of the mass within turns {in_words(within)}; less that of even attention "
            f"{in_words(slower)}.",
        ),
    )


def figure_7(setup: Li2024Setup) -> Figure:
    """Norms of the embeddings."""
    norms = embedding_norms(setup.model)
    mean, spread = float(np.mean(norms)), float(np.std(norms) / np.mean(norms))
    verdict = SUPPORTED if spread <= _NARROW else CONTRADICTED if spread >= _WIDE else UNDECIDED
    evidence = (
        f"Mean {mean:.3f}, coefficient of variation {spread:.2f} (we call up to {_NARROW}"
        f" concentrated, from {_WIDE} on not). Their scale has no meaning in a model that"
        " normalises its input."
    )
    claim = Claim(
        "the norms of the embeddings are concentrated, so that taking them as equal is no great"
        " loss.",
        verdict,
        evidence,
    )
    return Figure(
        number="7",
        title="norms of the embedding vectors",
        how="Every token of the vocabulary.",
        images=pngs(write_norms(setup.model.name, norms, setup.figures("7"))),
        claims=(claim,),
    )


_TRAINED = "attention to the system prompt before and after chat training"
_RAISES = "training on human feedback raises the attention to the system prompt."
_STILL_FALLS = "the trained model's attention to it still decays."


def figure_8(setup: Li2024Setup) -> Figure:
    """A model before and after its chat training."""
    if setup.base is None:
        why = "No base model was given; name it with --base."
        claims = tuple(Claim(text, UNDECIDED, why) for text in (_RAISES, _STILL_FALLS))
        return Figure("8", _TRAINED, "Not run.", (), claims)
    chat = _trace(setup, setup.model, "figure-4")
    base = _trace(setup, setup.base, "figure-8-base")
    images = write_trace_figures(chat, setup.figures("8"), [base])
    ours, theirs = _series(setup, "figure-4").mass, _series(setup, "figure-8-base").mass
    more = paired_difference(np.nanmean(ours, 1), np.nanmean(theirs, 1))
    fall = change(ours)
    less = f"Mean mass of {setup.model.name} less that of {setup.base.name}: {in_words(more)}."
    return Figure(
        number="8",
        title=_TRAINED,
        how=f"{setup.base.name} and {setup.model.name}, the same pairs of prompts.",
        images=pngs(images, "models"),
        claims=(
            claim_that(_RAISES, more, +1, less),
            claim_that(
                _STILL_FALLS,
                fall,
                -1,
                f"Mass in the last round less that in the first: {in_words(fall)}.",
            ),
        ),
    )


def _series(setup: Li2024Setup, step: str) -> Series:
    return read_series(read_run(setup.out / step))[0]


_STEP = "figures-5-and-6"
# points at which Figure 6 compares; the paper's 0.5 of MMLU is finer than a few hundred questions
# can tell
_BUDGET = 5.0


def figures_5_and_6(setup: Li2024Setup) -> list[Figure]:
    """The gain and cost of each method."""
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


def _calibrate(setup: Li2024Setup) -> None:
    """Runs the sweeps, or takes up what is there."""
    scale = setup.scale
    suite, plan = plan_of(setup)
    capability = load_capability(setup.capability, scale.questions, setup.seed)
    units = units_of(suite, capability, scale.sweeps, plan)
    with setup.watch(_STEP, units) as progress:
        calibrate(
            setup.model, suite, capability, setup.out / _STEP, scale.sweeps, plan, progress=progress
        )


def plan_of(setup: Li2024Setup) -> tuple[drift.Suite, Plan]:
    """The prompts of Figures 5 and 6, and how they are calibrated."""
    scale, suite = setup.scale, choose_prompts(setup.suite)
    plan = Plan(draws=scale.draws, rounds=scale.rounds, seed=setup.seed)
    return replace(suite, cases=suite.cases[: scale.prompts]), plan


def _figure_5(setup: Li2024Setup, calibration: Calibration, images: Sequence[Path]) -> Figure:
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
        f"cost): {in_words(ahead)}.",
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
        f"Gain of {guidance.method} over none, first round less last: {in_words(fading)}.",
    )


def _crosses(repetition: Candidate, split: Candidate) -> Claim:
    early, late = (estimate(half) for half in _halves(repetition.by_round - split.by_round))
    return Claim(
        _OVER_ROUNDS[1],
        all_of(judge(late, +1), judge(early, -1)),
        f"{repetition.method} less {split.method}, first half of the rounds {in_words(early)}, "
        f"second half {in_words(late)}.",
    )


def _halves(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[conversation]: the means over the first half of the rounds, and over the second."""
    half = values.shape[1] // 2
    return row_means(values[:, :half]), row_means(values[:, half:])
