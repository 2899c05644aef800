"""Figures 3 to 9 of Li et al. 2024, on any model, with the paper's claims judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from holdfast import drift
from holdfast.chat import ChatModel
from holdfast.errors import UnknownName, UsageError
from holdfast.report.figures import write_figures
from holdfast.report.geometry import write_norms
from holdfast.report.scores import Series, read_series
from holdfast.report.statistics import change, estimate_columns
from holdfast.reproduce.findings import CONTRADICTED, SUPPORTED, UNDECIDED, Claim, Figure, judge, spelled
from holdfast.reproduce.page import write_page
from holdfast.study.geometry import embedding_norms

if TYPE_CHECKING:
    from holdfast.model import LocalModel

_NARROW, _WIDE = 0.2, 0.5  # coefficient of variation of norms: up to the first we call them concentrated, from the second on not


@dataclass(frozen=True)
class Scale:
    """How much is run.

    Args:
        conversations: of Figures 3 and 9.
        traced: conversations of Figures 4 and 8.
        rounds: of all of them.
        draws: conversations of each of the 20 pairs of Figures 5 and 6, per setting.
        questions: of the capability, per setting.
        sweep: the knobs of Figures 5 and 6, as `holdfast calibrate --sweep` takes them.
    """

    conversations: int
    traced: int
    rounds: int
    draws: int
    questions: int
    sweep: tuple[str, ...]


SCALES = {
    "smallest": Scale(4, 3, 2, 1, 4, ("split-softmax:exponent=0.9|0.5", "repetition:probability=0.5|1", "guidance:scale=1.5|2")),
    "small": Scale(100, 40, 8, 2, 150, ("split-softmax:exponent=0.9|0.7|0.5|0.3", "repetition:probability=0.25|0.5|1", "guidance:scale=1.25|1.5|2")),
    "paper": Scale(200, 40, 8, 5, 500, (
        "split-softmax:exponent=0.95|0.9|0.8|0.7|0.6|0.5|0.4|0.3", "repetition:probability=0.1|0.25|0.5|0.75|1", "guidance:scale=1.1|1.25|1.5|2|3")),
}


@dataclass(frozen=True)
class Task:
    """What is reproduced, and where to.

    Args:
        model: a model in this process.
        suite: its prompts.
        out: the folder of all runs, figures and the page.
        scale: how much.
        seed: of everything.
        base: the model before its chat training, for Figure 8; None leaves that figure undecided.
        other: the model of Figure 9, an endpoint as in the paper, or None for `model` itself.
        tell: takes one line per step.
    """

    model: LocalModel
    suite: drift.Suite
    out: Path
    scale: Scale
    seed: int = 0
    base: LocalModel | None = None
    other: ChatModel | None = None
    tell: Callable[[str], None] = lambda line: None

    def settings(self, **changed) -> drift.Settings:
        settings = drift.Settings(rounds=self.scale.rounds, conversations=self.scale.conversations, seed=self.seed)
        return replace(settings, **changed)


def reproduce(task: Task) -> Path:
    """Runs every figure, resuming what is there, and writes `index.html` into `task.out`; returns its path.

    Raises:
        RecordsError: `task.out` holds runs of another model, suite or scale.
    """
    figures = []
    for make in (figure_3, figure_7, figure_9):
        figure = make(task)
        figures.append(figure)
        for claim in figure.claims:
            task.tell(f"Figure {figure.number}: {claim.verdict}. {claim.text} {claim.evidence}")
    facts = [f"model {task.model.name}", f"suite {task.suite.name}", f"{task.scale.conversations} conversations of {task.scale.rounds} rounds", f"seed {task.seed}"]
    figures.sort(key=lambda figure: figure.number)
    return write_page(figures, "Measuring and controlling instruction (in)stability, on your model", facts, task.out / "index.html")


def figure_3(task: Task) -> Figure:
    """Stability falls, adoption rises."""
    run = drift.run(task.model, task.suite, task.out / "figure-3", task.settings())
    (series,) = read_series(run)
    images = write_figures([series], task.out / "figures" / "3")
    return Figure(
        "3", "the agent lets go of its prompt, and takes on the other's", "Self-chat of two copies of the model, probed at every round.",
        _pngs(images, "drift"), (
            _fall("A: over eight rounds the model follows its own system prompt less and less.", series, "stability", -1),
            _fall("B: it begins to follow the prompt of its partner, which it never saw.", series, "adoption", +1),
        ),
    )


def figure_7(task: Task) -> Figure:
    """Norms of the embeddings."""
    norms = np.array(embedding_norms(task.model))
    spread = float(norms.std() / norms.mean())
    verdict = SUPPORTED if spread <= _NARROW else CONTRADICTED if spread >= _WIDE else UNDECIDED
    images = write_norms(task.model.name, norms, task.out / "figures" / "7")
    evidence = (
        f"Mean {norms.mean():.3f}, coefficient of variation {spread:.2f} (we call up to {_NARROW} concentrated, from {_WIDE} on not). "
        "Their scale has no meaning in a model that normalises its input."
    )
    claim = Claim("the norms of the embeddings are concentrated, so that taking them as equal is no great loss.", verdict, evidence)
    return Figure("7", "norms of the embedding vectors", "Every token of the vocabulary.", _pngs(images), (claim,))


def figure_9(task: Task) -> Figure:
    """The system prompt in its role, or before the first user message."""
    model = task.other or task.model
    places = {}
    for place in ("role", "first-user"):
        run = drift.run(model, task.suite, task.out / f"figure-9-{place}", task.settings(system_as=place, adoption=False))
        places[place] = replace(read_series(run)[0], run=f"as {place}")
    images = write_figures(list(places.values()), task.out / "figures" / "9")
    how = "The endpoint" if task.other else "No endpoint was given (--endpoint), so the model itself"
    return Figure(
        "9", "the system prompt in its role, and before the first user message", f"{how} ({model.name}) with both places of the prompt.",
        _pngs(images, "drift"), tuple(
            _fall(f"a model behind an API loses stability too, with the prompt {place}.", series, "stability", -1)
            for place, series in zip(("in the system role", "before the first user message"), places.values(), strict=True)
        ),
    )


def _fall(text: str, series: Series, kind: str, sign: int) -> Claim:
    values = series.values(kind)
    if values.shape[1] < 2 or np.isnan(values).all():
        return Claim(text, UNDECIDED, f"{kind.capitalize()} was measured in one round only.")
    rounds = estimate_columns(values)
    found = change(values)
    return Claim(text, judge(found, sign), f"{kind.capitalize()} {rounds[0].mean:.3f} to {rounds[-1].mean:.3f}, change {spelled(found)}.")


def _pngs(paths: list[Path], *names: str) -> tuple[Path, ...]:
    return tuple(path for path in paths if path.suffix == ".png" and (not names or path.stem in names))


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
        UsageError: an endpoint as the model, or the model itself as its own base.
    """
    if not hasattr(task.model, "hf_model"):
        raise UsageError(f"{task.model.name} is an endpoint, whose attention and embeddings cannot be seen; give a local --model, and the endpoint as --endpoint.")
    if task.base is not None and task.base.fingerprint == task.model.fingerprint:
        raise UsageError(f"The base model is {task.model.name} itself; give the model it was before its chat training.")
