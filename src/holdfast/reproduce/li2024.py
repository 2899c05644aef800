"""Figures 3 to 9 of Li et al. 2024, on any model, with the paper's claims judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from holdfast import drift
from holdfast.analysis.calibration import read_calibration
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
from holdfast.analysis.verdicts import CONTRADICTED, SUPPORTED, UNDECIDED, all_of, judge
from holdfast.errors import UnknownName, UsageError
from holdfast.methods import Ability
from holdfast.models.capabilities import offers
from holdfast.models.protocol import ChatModel
from holdfast.progress import Watch, unwatched
from holdfast.records import RunData, read_run
from holdfast.report.calibration_figures import write_calibration_figures
from holdfast.report.decay_figures import write_decay_figures
from holdfast.report.figures import write_figures
from holdfast.report.geometry import write_norms
from holdfast.reproduce.findings import Claim, Figure, claim_that, spelled
from holdfast.reproduce.page import write_findings, write_page
from holdfast.study import decay
from holdfast.study.calibrate import Plan, calibrate, choose_prompts, units_of
from holdfast.study.capability import load_capability
from holdfast.study.geometry import embedding_norms

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel

_NARROW, _WIDE = (
    0.2,
    0.5,
    # coefficient of variation of norms: up to the first we call them concentrated, from the second
    # on
    # not
)


@dataclass(frozen=True)
class Scale:
    """How much is run.

    Args:
        conversations: of Figures 3 and 9.
        traced: conversations of Figures 4 and 8.
        rounds: of all of them.
        prompts: of Figures 5 and 6, whose ordered pairs all talk; the paper has 5, one of each
            category.
        draws: conversations of each of these pairs, per setting.
        questions: of the capability, per setting.
        sweeps: of Figures 5 and 6: split-softmax, repetition and guidance, as `holdfast calibrate
            --sweep` takes them.
    """

    conversations: int
    traced: int
    rounds: int
    prompts: int
    draws: int
    questions: int
    sweeps: tuple[str, ...]


SCALES = {
    "smallest": Scale(
        4,
        3,
        3,
        2,
        2,
        8,
        ("split-softmax:exponent=0.9,0.5", "repetition:probability=0.5,1", "guidance:scale=1.5,2"),
    ),
    "small": Scale(
        100,
        40,
        8,
        5,
        2,
        120,
        (
            "split-softmax:exponent=0.9,0.7,0.5,0.3",
            "repetition:probability=0.25,0.5,1",
            "guidance:scale=1.1,1.25,1.5",
        ),
    ),
    "paper": Scale(
        200,
        40,
        8,
        5,
        5,
        500,
        (
            "split-softmax:exponent=0.95,0.9,0.8,0.7,0.6,0.5,0.4,0.3",
            "repetition:probability=0.1,0.25,0.5,0.75,1",
            "guidance:scale=1.05,1.1,1.25,1.5,2",
        ),
    ),
}
# points at which Figure 6 compares; the paper's 0.5 of MMLU is finer than a few hundred questions
# can tell
_BUDGET = 5.0


@dataclass(frozen=True)
class Task:
    """What is reproduced, and where to.

    Args:
        model: a model in this process.
        suite: its prompts.
        out: the folder of all runs, figures and the page.
        scale: how much.
        seed: of everything.
        capability: what Figures 5 and 6 ask, as `holdfast calibrate --capability` takes it.
        base: the model before its chat training, for Figure 8; None leaves that figure undecided.
        other: the model of Figure 9, an endpoint as in the paper, or None for `model` itself.
        tell: takes one line per step.
        watch: told of every step that takes long, in rounds.
    """

    model: LocalModel
    suite: drift.Suite
    out: Path
    scale: Scale
    seed: int = 0
    capability: str = "knowledge"
    base: LocalModel | None = None
    other: ChatModel | None = None
    tell: Callable[[str], None] = lambda line: None
    watch: Watch = unwatched

    def run(self, step: str, model: ChatModel, **changed) -> RunData:
        """Self-chats in a folder named after the step."""
        settings = self.settings(**changed)
        with self.watch(step, settings.conversations * settings.rounds) as progress:
            return drift.run(model, self.suite, self.out / step, settings, progress=progress)

    def settings(self, **changed) -> drift.Settings:
        settings = drift.Settings(
            rounds=self.scale.rounds, conversations=self.scale.conversations, seed=self.seed
        )
        return replace(settings, **changed)


def reproduce(task: Task) -> Path:
    """Runs every figure, resuming what is there, and writes `index.html` and `findings.json` into
    `task.out`; returns the page's path.

    Raises:
        RecordsError: `task.out` holds runs of another model, suite or scale.
    """
    check(task)
    figures = []
    for make in (figure_3, figure_4, figures_5_and_6, figure_7, figure_8, figure_9):
        for figure in made if isinstance(made := make(task), tuple) else (made,):
            figures.append(figure)
            for claim in figure.claims:
                task.tell(f"Figure {figure.number}: {claim.verdict}. {claim.text} {claim.evidence}")
    facts = [
        f"model {task.model.name}",
        f"suite {task.suite.name}",
        f"{task.scale.conversations} conversations of {task.scale.rounds} rounds",
        f"seed {task.seed}",
    ]
    write_findings(figures, task.out)
    return write_page(
        figures,
        "Measuring and controlling instruction (in)stability, on your model",
        facts,
        task.out / "index.html",
    )


def figure_3(task: Task) -> Figure:
    """Stability falls, adoption rises."""
    run = task.run("figure-3", task.model)
    (series,) = read_series(run)
    images = write_figures([series], task.out / "figures" / "3", whiskers=True)
    return Figure(
        "3",
        "the agent lets go of its prompt, and takes on the other's",
        "Self-chat of two copies of the model, probed at every round.",
        _pngs(images, "drift"),
        (
            _fall(
                "A: over eight rounds the model follows its own system prompt less and less.",
                series,
                "stability",
                -1,
            ),
            _fall(
                "B: it begins to follow the prompt of its partner, which it never saw.",
                series,
                "adoption",
                +1,
            ),
        ),
    )


def figure_4(task: Task) -> Figure:
    """Attention to the prompt decays between turns, not within them."""
    found = _traced(task, task.model, "figure-4")
    images = write_decay_figures(found, task.out / "figures" / "4")
    layer, head = found["shown_head"]
    claims = []
    for name, title in (
        ("head", f"head {layer}.{head}, whose mass falls most"),
        ("average", "the average over heads"),
    ):
        between, within = (
            Estimate(**found[name][what]["real"]) for what in ("between_turns", "within_turns")
        )
        slower = Estimate(**found[name]["within_turns"]["difference"])
        claims += [
            claim_that(
                f"{title}: attention to the system prompt falls between turns.",
                between,
                -1,
                f"Log of the mass, all turns: {spelled(between)}.",
            ),
            claim_that(
                f"{title}: within a turn it falls less than even attention, which decays "
                "hyperbolically.",
                slower,
                +1,
                f"Log of the mass within turns {spelled(within)}; less that of even attention "
                f"{spelled(slower)}.",
            ),
        ]
    return Figure(
        "4",
        "attention to the system prompt over a conversation",
        "One line per round; dashed: attention even over all tokens in sight.",
        _pngs(images, "decay"),
        tuple(claims),
    )


def _traced(task: Task, model: LocalModel, name: str) -> dict:
    sizes = decay.Sizes(task.scale.traced, task.scale.rounds, task.seed)
    with task.watch(name, sizes.conversations * sizes.rounds) as progress:
        dialogs = decay.hold(model, task.suite, task.out / name, sizes, progress=progress)
    return describe(model.name, *dialogs)


def figures_5_and_6(task: Task) -> tuple[Figure, Figure]:
    """What each method gives and costs."""
    plan = Plan(draws=task.scale.draws, rounds=task.scale.rounds, seed=task.seed)
    capability = load_capability(task.capability, task.scale.questions, task.seed)
    chosen = choose_prompts(task.suite)
    few = replace(chosen, cases=chosen.cases[: task.scale.prompts])
    units = units_of(few, capability, task.scale.sweeps, plan)
    with task.watch("figures-5-and-6", units) as progress:
        calibrate(
            task.model,
            few,
            capability,
            task.out / "figures-5-and-6",
            task.scale.sweeps,
            plan,
            progress=progress,
        )
    found = read_calibration(task.out / "figures-5-and-6")
    images = write_calibration_figures(found, _BUDGET, task.out / "figures" / "5-and-6")
    split, repetition, guidance = found.sweeps
    five = Figure(
        "5",
        "stability against the capability lost",
        f"Questions: {task.capability}, asked at the fourth turn of the same dialogs.",
        _pngs(images, "trade_off"),
        tuple(
            claim_that(
                f"split-softmax is as stable as {name} or more so, at the same cost.",
                difference,
                +1,
                f"Stability of split-softmax less that of {name} (its settings mixed to the same "
                f"cost): {spelled(difference)}.",
            )
            for name, others in (
                ("system prompt repetition", repetition),
                ("classifier-free guidance", guidance),
            )
            for difference in (ahead_at_cost(found, split, others),)
        ),
    )
    none = found.none
    ss, spr, cfg = (found.closest(sweep, _BUDGET) for sweep in (split, repetition, guidance))
    fading = estimate((cfg.by_round - none.by_round)[:, 0] - (cfg.by_round - none.by_round)[:, -1])
    early, late = (estimate(half) for half in _halves(spr.by_round - ss.by_round))
    six = Figure(
        "6",
        f"stability by round at about {_BUDGET:g} points lost",
        "Each method at the setting of its sweep that comes closest.",
        _pngs(images, "by_round"),
        (
            claim_that(
                "what classifier-free guidance gives in the first round does not carry into long "
                "conversations.",
                fading,
                +1,
                f"Gain of {cfg.method} over none, first round less last: {spelled(fading)}.",
            ),
            Claim(
                "repetition is the stronger in late rounds, split-softmax in early ones.",
                all_of(judge(late, +1), judge(early, -1)),
                f"{spr.method} less {ss.method}, first half of the rounds {spelled(early)}, second "
                f"half {spelled(late)}.",
            ),
        ),
    )
    return five, six


def _halves(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[conversation]: the means over the first half of the rounds, and over the second."""
    half = values.shape[1] // 2
    return row_means(values[:, :half]), row_means(values[:, half:])


def figure_7(task: Task) -> Figure:
    """Norms of the embeddings."""
    norms = np.array(embedding_norms(task.model))
    spread = float(norms.std() / norms.mean())
    verdict = SUPPORTED if spread <= _NARROW else CONTRADICTED if spread >= _WIDE else UNDECIDED
    images = write_norms(task.model.name, norms, task.out / "figures" / "7")
    evidence = (
        f"Mean {norms.mean():.3f}, coefficient of variation {spread:.2f} (we call up to {_NARROW}"
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
        "7",
        "norms of the embedding vectors",
        "Every token of the vocabulary.",
        _pngs(images),
        (claim,),
    )


def figure_8(task: Task) -> Figure:
    """A model before and after its chat training."""
    title, texts = (
        "attention to the system prompt before and after chat training",
        (
            "training on human feedback raises the attention to the system prompt.",
            "the trained model's attention to it still decays.",
        ),
    )
    if task.base is None:
        claims = tuple(
            Claim(text, UNDECIDED, "No base model was given; name it with --base.")
            for text in texts
        )
        return Figure("8", title, "Not run.", (), claims)
    chat, base = _traced(task, task.model, "figure-4"), _traced(task, task.base, "figure-8-base")
    images = write_decay_figures(chat, task.out / "figures" / "8", [base])
    ours, theirs = (
        read_series(read_run(task.out / name))[0] for name in ("figure-4", "figure-8-base")
    )
    more = paired_difference(np.nanmean(ours.mass, 1), np.nanmean(theirs.mass, 1))
    fall = change(ours.mass)
    return Figure(
        "8",
        title,
        f"{task.base.name} and {task.model.name}, the same pairs of prompts.",
        _pngs(images, "models"),
        (
            claim_that(
                texts[0],
                more,
                +1,
                f"Mean mass of {task.model.name} less that of {task.base.name}: {spelled(more)}.",
            ),
            claim_that(
                texts[1],
                fall,
                -1,
                f"Mass in the last round less that in the first: {spelled(fall)}.",
            ),
        ),
    )


def figure_9(task: Task) -> Figure:
    """The system prompt in its role, or before the first user message."""
    model = task.other or task.model
    places = {}
    for place in ("role", "first-user"):
        run = task.run(f"figure-9-{place}", model, system_as=place, adoption=False)
        places[place] = replace(read_series(run)[0], run=f"as {place}")
    images = write_figures(list(places.values()), task.out / "figures" / "9", whiskers=True)
    how = (
        "The endpoint" if task.other else "No endpoint was given (--endpoint), so the model itself"
    )
    return Figure(
        "9",
        "the system prompt in its role, and before the first user message",
        f"{how} ({model.name}) with both places of the prompt.",
        _pngs(images, "drift"),
        tuple(
            _fall(
                f"a model behind an API loses stability too, with the prompt {place}.",
                series,
                "stability",
                -1,
            )
            for place, series in zip(
                ("in the system role", "before the first user message"),
                places.values(),
                strict=True,
            )
        ),
    )


def _fall(text: str, series: Series, kind: str, sign: int) -> Claim:
    values = series.values(kind)
    if values.shape[1] < 2 or np.isnan(values).all():
        return Claim(text, UNDECIDED, f"{kind.capitalize()} was measured in one round only.")
    rounds = estimate_columns(values)
    found = change(values)
    ends = f"{rounds[0].mean:.3f} to {rounds[-1].mean:.3f}"
    return claim_that(text, found, sign, f"{kind.capitalize()} {ends}, change {spelled(found)}.")


def _pngs(paths: list[Path], *names: str) -> tuple[Path, ...]:
    return tuple(
        path for path in paths if path.suffix == ".png" and (not names or path.stem in names)
    )


def scale_of(name: str) -> Scale:
    """The scale of that name.

    Raises:
        UnknownName: there is none.
    """
    if name not in SCALES:
        raise UnknownName("scale", name, SCALES)
    return SCALES[name]


def check(task: Task) -> None:
    """Refuses what cannot be reproduced, before anything runs.

    Raises:
        UsageError: an endpoint as the model, the model itself as its own base, or a capability that
            cannot be read.
    """
    if not offers(task.model, Ability.LAYERS):
        raise UsageError(
            f"{task.model.name} is an endpoint, whose attention and embeddings cannot be seen; give"
            " a local --model, and the endpoint as --endpoint."
        )
    if task.base is not None and task.base.fingerprint == task.model.fingerprint:
        raise UsageError(
            f"The base model is {task.model.name} itself; give the model it was before its chat"
            " training."
        )
    load_capability(task.capability, task.scale.questions, task.seed)
