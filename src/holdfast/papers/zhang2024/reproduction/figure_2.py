"""Figures 2, 4, 5 and 6 of the paper, one per task: all heads, entire layers, single heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.analysis.statistics import Estimate, paired_difference
from holdfast.methods import HeadSet
from holdfast.papers.findings import Claim, Figure, claim_that, pngs
from holdfast.papers.zhang2024.reproduction.comparisons import (
    HALVES,
    best_less_worst,
    judge_within_reach,
)
from holdfast.papers.zhang2024.reproduction.reproduction_setup import pasta_on
from holdfast.papers.zhang2024.reproduction.study import Study, values_of
from holdfast.records import read_run
from holdfast.report.figures import COLOURS, legend_below, means, panels, save, styled, whiskers

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TITLE = "all heads, an entire layer, a single head (Figures 2, 4, 5 and 6 of the paper)"
_HOW = (
    "Change against zero-shot: single heads on the training samples they are profiled on,"
    " everything else on test samples."
)
# a violin of fewer heads is mostly its own smoothing, so they are shown as dots
_MIN_HEADS_OF_VIOLIN = 13


@dataclass(frozen=True, eq=False)
class _Scores:
    """The scores of a task with different heads steered."""

    zero_shot: np.ndarray  # [test sample]
    all_heads: np.ndarray  # [test sample]
    multi_task: np.ndarray  # [test sample], the profiled heads that the tasks share
    layers: Sequence[np.ndarray]  # of each layer with all its heads steered, [test sample]
    head_gains: np.ndarray  # [training sample, layer, head], less zero-shot

    def gain(self, scores: np.ndarray) -> Estimate:
        """The change against zero-shot."""
        return paired_difference(scores, self.zero_shot)


@dataclass(frozen=True)
class _LevelLine:
    """A horizontal line, with its interval as a band."""

    label: str
    estimate: Estimate
    colour: str


def figure_2(study: Study) -> Figure:
    """Makes the figure; the paper has one per task, Figures 2, 4, 5 and 6."""
    images: list[Path] = []
    claims: list[Claim] = []
    for task in study.setup.tasks:
        scores = _measure(study, task)
        images += _draw(task, scores, study.setup.out / "figures" / f"2-{task}")
        claims += _claims(task, scores)
    return Figure("2", _TITLE, _HOW, images=tuple(images), claims=tuple(claims))


def _measure(study: Study, task: str) -> _Scores:
    """Answers the test samples of a task; the scores of single heads come from its profile."""
    shape = study.setup.model.shape
    all_heads = pasta_on(None)
    multi_task = pasta_on(study.heads["multi-task", task])
    layers = [
        pasta_on(HeadSet((layer, head) for head in range(shape.heads)))
        for layer in range(shape.layers)
    ]
    answers = study.ask("figure-2", task, [*layers, all_heads, multi_task])
    return _Scores(
        zero_shot=values_of(answers.zero_shot),
        all_heads=values_of(answers.under(all_heads)),
        multi_task=values_of(answers.under(multi_task)),
        layers=[values_of(answers.under(layer)) for layer in layers],
        head_gains=_head_gains(study, task),
    )


def _head_gains(study: Study, task: str) -> np.ndarray:
    """[training sample, layer, head]: the score with one head steered, less that without."""
    shape = study.setup.model.shape
    heads = [(layer, head) for layer in range(shape.layers) for head in range(shape.heads)]
    records = read_run(study.profile_folder(task)).head_scores
    by_sample = [record.by_head for record in records]
    steered = np.array([[scores[head] for head in heads] for scores in by_sample])
    unsteered = np.array([record.unsteered for record in records])
    gains = steered - unsteered[:, None]
    return gains.reshape(len(records), shape.layers, shape.heads)


def _claims(task: str, scores: _Scores) -> Sequence[Claim]:
    """The paper's claims about which heads are steered, judged."""
    head_gains = scores.head_gains.reshape(len(scores.head_gains), -1)
    claims = [
        claim_that(
            f"{task}: steering all heads is worse than steering none.",
            scores.gain(scores.all_heads),
            sign=-1,
            quantity="All heads less zero-shot:",
        ),
        claim_that(
            f"{task}: steering the profiled heads is better than all.",
            paired_difference(scores.multi_task, scores.all_heads),
            sign=+1,
            quantity="Multi-task PASTA less all heads:",
        ),
        claim_that(
            f"{task}: what one head gives varies between heads.",
            best_less_worst(head_gains),
            sign=+1,
            quantity=f"{HALVES}:",
        ),
    ]
    steered = (*scores.layers, scores.all_heads, scores.multi_task)
    return judge_within_reach(claims, task, *steered, scores.zero_shot, scores.head_gains)


def _draw(task: str, scores: _Scores, folder: Path) -> Sequence[Path]:
    """Draws the change against zero-shot by layer; returns the image."""
    by_head = scores.head_gains.mean(0)  # [layer, head]
    by_layer = [scores.gain(layer) for layer in scores.layers]
    lines = (
        _LevelLine("PASTA, multi-task", scores.gain(scores.multi_task), COLOURS[5]),
        _LevelLine("all heads", scores.gain(scores.all_heads), COLOURS[1]),
    )
    with styled():
        figure, (axis,) = panels(1, 1, 6.4, 3.8)
        axis.axhline(0.0, color="#222222", linewidth=0.9, linestyle="--", label="zero-shot")
        for line in lines:
            _draw_line(axis, line)
        _draw_heads(axis, by_head)
        layers = np.arange(len(by_layer))
        axis.errorbar(
            layers + 0.15,
            means(by_layer),
            whiskers(by_layer),
            fmt="s",
            markersize=5,
            color=COLOURS[3],
            elinewidth=0.8,
            label="an entire layer",
        )
        axis.set(
            title=f"{task}: which heads are steered",
            xlabel="layer",
            ylabel="change against zero-shot",
            xticks=layers,
        )
        handles, labels = axis.get_legend_handles_labels()
        legend_below(figure, handles, labels, columns=3)
        return pngs(save({"single_heads": figure}, folder))


def _draw_line(axis: Axes, line: _LevelLine) -> None:
    """Draws a line at the mean, if anything was measured, and a band over the interval."""
    estimate = line.estimate
    if estimate.mean is not None:
        axis.axhline(
            estimate.mean, color=line.colour, linewidth=1.3, linestyle=":", label=line.label
        )
    if estimate.low is not None and estimate.high is not None:
        axis.axhspan(estimate.low, estimate.high, color=line.colour, alpha=0.12, linewidth=0)


def _draw_heads(axis: Axes, gains: np.ndarray) -> None:
    """Draws the gains of single heads, [layer, head], at their layers."""
    layers = np.arange(len(gains))
    heads = gains.shape[1]
    if heads >= _MIN_HEADS_OF_VIOLIN:
        # matplotlib's types do not say that these are a list
        violins: Any = axis.violinplot(list(gains), layers, showextrema=False)["bodies"]
        for violin in violins:
            violin.set_facecolor(COLOURS[2])
        return
    axis.plot(
        np.repeat(layers, heads),
        gains.ravel(),
        "o",
        color=COLOURS[2],
        label="a single head",
        markersize=4,
        alpha=0.6,
    )
