"""Figures 3 to 9 of Li et al. 2024, in the order of their runs, and the scales of the runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast import drift
from holdfast.analysis.candidates import Calibration, Candidate, read_calibration
from holdfast.analysis.choosing import ahead_at_cost
from holdfast.analysis.decay import Decay, Trace, describe
from holdfast.analysis.series import Series, read_series
from holdfast.analysis.statistics import (
    DIFFERENCES,
    SCORES,
    change,
    estimate,
    estimate_columns,
    paired_difference,
    row_means,
)
from holdfast.analysis.verdicts import CONTRADICTED, SUPPORTED, UNDECIDED, all_of, judge
from holdfast.drift.progress import Watch, unwatched
from holdfast.drift.remaining import count_replies
from holdfast.errors import UsageError
from holdfast.generation.sampling import Sampling
from holdfast.models.capabilities import require_layers
from holdfast.models.protocol import ChatModel
from holdfast.papers.findings import Claim, Figure, claim_that, in_words, not_run, pngs
from holdfast.papers.li2024.geometry import embedding_norms
from holdfast.records import Run, read_run
from holdfast.report.calibration_figures import write_calibration_figures
from holdfast.report.geometry_report import write_norms
from holdfast.report.run_figures import write_figures
from holdfast.report.trace_figures import write_trace_figures
from holdfast.study import attention_decay
from holdfast.study.calibrating import calibrate, units_of
from holdfast.study.calibration_plan import Plan, choose_prompts
from holdfast.study.capability import load_capability

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel


@dataclass(frozen=True)
class Li2024Scale:
    """The size of a reproduction."""

    conversations: int  # of Figures 3 and 9
    traced: int  # conversations of Figures 4 and 8
    rounds: int  # of all conversations
    # of Figures 5 and 6, where every ordered pair talks; the paper has 5, one of each category
    prompts: int
    draws: int  # conversations of each such pair, per setting
    questions: int  # of the capability, per setting
    # of Figures 5 and 6: split-softmax, repetition and guidance, in the form of `holdfast calibrate
    # --sweep`; () skips both figures, which cost the most
    sweeps: tuple[str, ...]
    max_new_tokens: int = 400  # of a reply; Figures 5 and 6 keep the paper's 400


def _sweeps(*values: str) -> tuple[str, ...]:
    swept = ("split-softmax:exponent", "repetition:probability", "guidance:scale")
    return tuple(f"{name}={some}" for name, some in zip(swept, values, strict=True))


_SMALLEST = _sweeps("0.9,0.5", "0.5,1", "1.5,2")
_SMALL = _sweeps("0.9,0.7,0.5,0.3", "0.25,0.5,1", "1.1,1.25,1.5")
_PAPER = _sweeps("0.95,0.9,0.8,0.7,0.6,0.5,0.4,0.3", "0.1,0.25,0.5,0.75,1", "1.05,1.1,1.25,1.5,2")
SCALES = {
    "smallest": Li2024Scale(4, 3, 3, 2, 2, 8, _SMALLEST),
    "brief": Li2024Scale(24, 24, 8, 1, 1, 1, (), max_new_tokens=100),
    "small": Li2024Scale(100, 40, 8, 5, 2, 120, _SMALL),
    "paper": Li2024Scale(200, 40, 8, 5, 5, 500, _PAPER),
}


@dataclass(frozen=True)
class Li2024Setup:
    """The model, the scale and the folder of a reproduction."""

    model: LocalModel
    suite: drift.Suite  # supplies the prompts
    out: Path  # the folder of all runs, figures and the page
    scale: Li2024Scale
    seed: int = 0
    # the capability of Figures 5 and 6, as for `holdfast calibrate --capability`
    capability: str = "knowledge"
    # the model before its chat training, for Figure 8; None leaves that figure undecided
    base: LocalModel | None = None
    # the model of Figure 9, an endpoint as in the paper, or None for `model` itself
    other: ChatModel | None = None
    tell: Callable[[str], None] = lambda line: None  # receives one line per step
    watch: Watch = unwatched  # notified of every long step, in replies

    def figures(self, number: str) -> Path:
        return self.out / "figures" / number

    @property
    def sampling(self) -> Sampling:
        return Sampling(max_new_tokens=self.scale.max_new_tokens)

    def self_chats(self, step: str, model: ChatModel, **changed: Any) -> Run:
        """Runs self-chats in a folder named after the step, with some of the settings changed."""
        settings = drift.Settings(
            rounds=self.scale.rounds,
            conversations=self.scale.conversations,
            sampling=self.sampling,
            seed=self.seed,
        )
        settings = replace(settings, **changed)
        replies = count_replies(self.suite, settings, None, range(settings.conversations))
        with self.watch(step, replies) as progress:
            running = drift.Running(progress=progress)
            return drift.run(model, self.suite, self.out / step, settings, running=running)


def check(setup: Li2024Setup) -> None:
    """Refuses what cannot be reproduced, before anything runs."""
    require_layers(setup.model, "attention and embeddings")
    if setup.base is not None and setup.base.fingerprint == setup.model.fingerprint:
        raise UsageError(
            f"The base model is {setup.model.name} itself; give the model it was before its chat"
            " training."
        )
    if setup.scale.sweeps:
        load_capability(setup.capability, setup.scale.questions, setup.seed)


_PLACES = {"role": "in the system role", "first-user": "before the first user message"}


def make_figures(setup: Li2024Setup) -> Iterator[Figure]:
    """Makes every figure, each with the runs that it needs."""
    yield _figure_3(setup)
    yield _figure_4(setup)
    yield from _figures_5_and_6(setup)
    yield _figure_7(setup)
    yield _figure_8(setup)
    yield _figure_9(setup)


def _figure_3(setup: Li2024Setup) -> Figure:
    (series,) = read_series(setup.self_chats("figure-3", setup.model))
    follows_less = "A: over eight rounds the model follows its own system prompt less and less."
    takes_on = "B: it begins to follow the prompt of its partner, which it never saw."
    return Figure(
        "3",
        "the agent lets go of its prompt, and takes on the other's",
        "Self-chat of two copies of the model, probed at every round.",
        pngs(write_figures([series], setup.figures("3"), whiskers=True), "drift"),
        (_moves(follows_less, series, "stability", -1), _moves(takes_on, series, "adoption", +1)),
    )


def _figure_9(setup: Li2024Setup) -> Figure:
    model = setup.other or setup.model
    series = {}
    for role in _PLACES:
        if role == "role" and not setup.other:  # these dialogs are Figure 3's
            run = read_run(setup.out / "figure-3")
        else:
            run = setup.self_chats(f"figure-9-{role}", model, system_as=role, adoption=False)
        series[role] = replace(read_series(run)[0], run=f"as {role}")
    text = "a model behind an API loses stability too, with the prompt {}."
    who = "The endpoint"
    if not setup.other:
        who = "No endpoint was given (--endpoint), so the model itself"
    return Figure(
        "9",
        "the system prompt in its role, and before the first user message",
        f"{who} ({model.name}) with both places of the prompt.",
        pngs(write_figures(list(series.values()), setup.figures("9"), whiskers=True), "drift"),
        tuple(
            _moves(text.format(where), series[role], "stability", -1)
            for role, where in _PLACES.items()
        ),
    )


def _moves(text: str, series: Series, kind: str, sign: int) -> Claim:
    values = series.values(kind)
    if values.shape[1] < 2 or np.isnan(values).all():
        return Claim(text, UNDECIDED, f"{kind.capitalize()} was measured in one round only.")
    rounds = estimate_columns(values, SCORES)
    ends = f"{rounds[0].mean:.3f} to {rounds[-1].mean:.3f}"
    return claim_that(text, change(values), sign, f"{kind.capitalize()} {ends}, change")


def _figure_4(setup: Li2024Setup) -> Figure:
    trace = _trace(setup, setup.model, "figure-4")
    layer, head = trace.shown_head
    return Figure(
        "4",
        "attention to the system prompt over a conversation",
        "One line per round; dashed: uniform attention to the tokens in view.",
        pngs(write_trace_figures(trace, setup.figures("4")), "decay"),
        (
            *_decay_claims(f"head {layer}.{head}, chosen on other dialogs", trace.head),
            *_decay_claims("the average over heads", trace.average),
        ),
    )


def _trace(setup: Li2024Setup, model: LocalModel, step: str) -> Trace:
    settings = attention_decay.settings_for(setup.scale.traced, setup.scale.rounds, setup.seed)
    settings = replace(settings, sampling=setup.sampling)
    replies = count_replies(setup.suite, settings, None, range(settings.conversations))
    with setup.watch(step, replies) as progress:
        running = drift.Running(progress=progress)
        chats = attention_decay.run_traced(
            model, setup.suite, setup.out / step, settings, running=running
        )
    return describe(model.name, *chats)


def _decay_claims(who: str, decay: Decay) -> tuple[Claim, Claim]:
    between, within = decay.between_turns.real, decay.within_turns.real
    slower = decay.within_turns.difference
    falls = f"{who}: attention to the system prompt falls between turns."
    falls_less = (
        f"{who}: within a turn it falls less than uniform attention, which decays hyperbolically."
    )
    measured = f"Log of the mass within turns {in_words(within)}; less that of uniform attention"
    return (
        claim_that(falls, between, -1, "Log of the mass, all turns:"),
        claim_that(falls_less, slower, +1, measured),
    )


# coefficients of variation of the norms: up to the first, we call them concentrated; from the
# second on, not concentrated
_NARROW, _WIDE = 0.2, 0.5


def _figure_7(setup: Li2024Setup) -> Figure:
    norms = embedding_norms(setup.model)
    mean, spread = float(np.mean(norms)), float(np.std(norms) / np.mean(norms))
    claim = Claim(
        "the norms of the embeddings are concentrated, so that taking them as equal is no great"
        " loss.",
        SUPPORTED if spread <= _NARROW else CONTRADICTED if spread >= _WIDE else UNDECIDED,
        f"Mean {mean:.3f}, coefficient of variation {spread:.2f} (we call up to {_NARROW}"
        f" concentrated, from {_WIDE} on not). Their scale has no meaning in a model that"
        " normalises its input.",
    )
    images = pngs(write_norms(setup.model.name, norms, setup.figures("7")))
    return Figure(
        "7", "norms of the embedding vectors", "Every token of the vocabulary.", images, (claim,)
    )


def _figure_8(setup: Li2024Setup) -> Figure:
    title = "attention to the system prompt before and after chat training"
    raises = "training on human feedback raises the attention to the system prompt."
    still_falls = "the trained model's attention to it still decays."
    if setup.base is None:
        why = "No base model was given; name it with --base."
        claims = tuple(Claim(text, UNDECIDED, why) for text in (raises, still_falls))
        return Figure("8", title, "Not run.", claims=claims)
    chat = _trace(setup, setup.model, "figure-4")
    base = _trace(setup, setup.base, "figure-8-base")
    ours, theirs = (
        read_series(read_run(setup.out / step))[0].mass for step in ("figure-4", "figure-8-base")
    )
    more = paired_difference(np.nanmean(ours, 1), np.nanmean(theirs, 1))
    less = f"Mean mass of {setup.model.name} less that of {setup.base.name}:"
    return Figure(
        "8",
        title,
        f"{setup.base.name} and {setup.model.name}, the same pairs of prompts.",
        pngs(write_trace_figures(chat, setup.figures("8"), [base]), "models"),
        (
            claim_that(raises, more, +1, less),
            claim_that(
                still_falls, change(ours), -1, "Mass in the last round less that in the first:"
            ),
        ),
    )


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


def _figures_5_and_6(setup: Li2024Setup) -> list[Figure]:
    """The gain and cost of each method."""
    scale, out = setup.scale, setup.out / "figures-5-and-6"
    if not scale.sweeps:
        why = "Not run at this scale: it takes a calibration of every method."
        return [
            not_run(_FIGURE_5, _AS_STABLE.values(), why),
            not_run(_FIGURE_6, (_FADES, _CROSSES), why),
        ]
    suite, plan = plan_of(setup)
    capability = load_capability(setup.capability, scale.questions, setup.seed)
    with setup.watch(out.name, units_of(suite, capability, plan)) as progress:
        running = drift.Running(progress=progress)
        calibrate(setup.model, suite, capability, out, plan, running)
    calibration = read_calibration(out)
    images = write_calibration_figures(calibration, _BUDGET, setup.figures("5-and-6"))
    return [_figure_5(setup, calibration, images), _figure_6(calibration, images)]


def plan_of(setup: Li2024Setup) -> tuple[drift.Suite, Plan]:
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
