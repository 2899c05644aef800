"""Figure 3 of the paper: how many heads are steered, and how strongly (alpha)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from holdfast.analysis.statistics import SCORES, estimate, paired_difference
from holdfast.analysis.task_results import TaskScores
from holdfast.analysis.verdicts import within
from holdfast.methods import Pasta
from holdfast.papers.findings import Claim, Figure, claim_that, in_words, pngs
from holdfast.papers.zhang2024.reproduction.comparisons import judge_within_reach
from holdfast.papers.zhang2024.reproduction.reproduction_setup import pasta_on
from holdfast.papers.zhang2024.reproduction.study import Study, values_of
from holdfast.report.figures import COLOURS, legend_below, means, panels, save, styled, whiskers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_HOW = "Heads shared by the best k of all tasks, for every k; alpha on the heads of Table 1."
_ROBUST = 0.1  # a metric that changes by less than this is called robust
# only JSON formatting has a metric of the answer beside that of following the instruction
_TASK_WITH_ANSWERS = "json"
_ANSWER_METRIC = "prediction"


@dataclass(frozen=True, eq=False)
class _Results:
    """A task's results by how many heads are steered, and by how strongly."""

    scores_by_size: Mapping[int, TaskScores]  # by the number of heads, ascending
    scores_by_alpha: Mapping[float, TaskScores]  # descending: a smaller alpha is stronger
    all_scores: Sequence[TaskScores]  # these, and zero-shot


def figure_3(study: Study) -> Figure:
    """Makes the figure, with a part on the number of heads and one on alpha for each task."""
    images: list[Path] = []
    claims: list[Claim] = []
    folder = study.setup.out / "figures"
    for task in study.setup.instruction_tasks:
        results = _measure(study, task)
        images += _draw(
            f"{task}: how many heads are steered",
            "heads",
            {str(size): result for size, result in results.scores_by_size.items()},
            folder / f"3-{task}" / "sizes",
        )
        images += _draw(
            f"{task}: how strongly they are steered",
            "alpha",
            {f"{alpha:g}": result for alpha, result in results.scores_by_alpha.items()},
            folder / f"3-{task}-alpha" / "alphas",
        )
        claims += _claims(task, results)
    title = "how many heads, and how strongly they are steered"
    return Figure("3", title, _HOW, images=tuple(images), claims=tuple(claims))


def _measure(study: Study, task: str) -> _Results:
    """Answers the test samples of a task, for every number of heads and every alpha."""
    heads = study.heads["multi-task", task]
    sizes = [pasta_on(candidate) for candidate in study.candidates("multi-task", task)]
    alphas = [Pasta(alpha, heads) for alpha in study.setup.scale.alphas]
    answers = study.ask("figure-3", task, [*sizes, *alphas], generate=True)
    scores_by_size = {len(method.heads or ()): answers.under(method) for method in sizes}
    scores_by_alpha = {method.alpha: answers.under(method) for method in alphas}
    return _Results(
        scores_by_size=dict(sorted(scores_by_size.items())),
        scores_by_alpha=dict(sorted(scores_by_alpha.items(), reverse=True)),
        all_scores=answers.all,
    )


def _claims(task: str, results: _Results) -> Sequence[Claim]:
    """The paper's claims about the number of heads and about alpha, judged."""
    claims = [
        *_size_claims(task, results.scores_by_size),
        _alpha_claim(task, results.scores_by_alpha),
    ]
    return judge_within_reach(claims, task, *map(values_of, results.all_scores))


def _size_claims(task: str, scores_by_size: Mapping[int, TaskScores]) -> list[Claim]:
    """The claims that more heads are better, and that too many cost the answer; [] for one size."""
    sizes = list(scores_by_size)
    fewest = sizes[0]
    middle = sizes[len(sizes) // 2]
    most = sizes[-1]
    claims = []
    if len(sizes) > 1:
        text = f"{task}: the more heads, the more closely the instruction is followed."
        metric = scores_by_size[most].main_metric
        claims.append(_size_claim(text, scores_by_size, metric, most, fewest, sign=+1))
    if len(sizes) > 2 and task == _TASK_WITH_ANSWERS:
        text = f"{task}: too many heads cost the quality of the answer."
        claims.append(_size_claim(text, scores_by_size, _ANSWER_METRIC, most, middle, sign=-1))
    return claims


def _size_claim(
    text: str,
    scores_by_size: Mapping[int, TaskScores],
    metric: str,
    more: int,
    fewer: int,
    *,
    sign: int,
) -> Claim:
    """Judges a claim that more heads score higher than fewer (`sign` +1), or lower (-1)."""
    difference = paired_difference(
        scores_by_size[more].scores[metric], scores_by_size[fewer].scores[metric]
    )
    quantity = f"{metric.capitalize()}, {more} heads less {fewer}:"
    return claim_that(text, difference, sign, quantity)


def _alpha_claim(task: str, scores_by_alpha: Mapping[float, TaskScores]) -> Claim:
    """The claim that the strongest and the weakest alpha differ by little."""
    strongest = min(scores_by_alpha)
    weakest = max(scores_by_alpha)
    metric = scores_by_alpha[strongest].main_metric
    change = paired_difference(
        scores_by_alpha[strongest].scores[metric], scores_by_alpha[weakest].scores[metric]
    )
    return Claim(
        f"{task}: alpha hardly matters from {weakest:g} to {strongest:g}.",
        within(change, -_ROBUST, _ROBUST),
        f"{metric.capitalize()} at {strongest:g} less that at {weakest:g}:"
        f" {in_words(change)} (we call an interval within {_ROBUST} robust).",
    )


def _draw(title: str, xlabel: str, results: Mapping[str, TaskScores], file: Path) -> Sequence[Path]:
    """Draws every metric, and the fluency on an axis at the right, for each labelled result.

    Returns the image; `file` is its path without a suffix.
    """
    with styled():
        figure, (axis,) = panels(1, 1, 6.4, 3.6)
        _draw_metrics(axis, list(results.values()))
        axis.set(title=title, xlabel=xlabel, ylabel="share of the samples", ylim=(-0.03, 1.03))
        axis.set_xticks(np.arange(len(results)), list(results))
        handles, labels = axis.get_legend_handles_labels()
        fluencies = np.array([result.fluency for result in results.values()], dtype=float)
        if not np.isnan(fluencies).all():
            handles.append(_draw_fluency(axis.twinx(), fluencies))
            labels.append("fluency")
        legend_below(figure, handles, labels, columns=3)
        return pngs(save({file.name: figure}, file.parent))


def _draw_metrics(axis: Axes, results: Sequence[TaskScores]) -> None:
    """Draws a curve with intervals for each metric of the task."""
    for colour, metric in zip(COLOURS[1:], results[0].scores, strict=False):
        scores = [estimate(result.scores[metric], SCORES) for result in results]
        axis.errorbar(
            np.arange(len(results)),
            means(scores),
            whiskers(scores),
            marker="o",
            markersize=4,
            elinewidth=0.8,
            linewidth=1.3,
            color=colour,
            label=metric,
        )


def _draw_fluency(axis: Axes, fluencies: np.ndarray) -> Line2D:
    """Draws a dashed curve without intervals; returns it for the legend."""
    (line,) = axis.plot(
        np.arange(len(fluencies)),
        fluencies,
        "s--",
        label="fluency",
        markersize=4,
        linewidth=1.0,
        color=COLOURS[0],
    )
    axis.set(ylabel="fluency, bits", ylim=(0, 1.1 * np.nanmax(fluencies)))
    axis.grid(visible=False)
    return line
