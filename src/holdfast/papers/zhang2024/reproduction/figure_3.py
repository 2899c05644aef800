"""Figure 3 of the paper: how many heads are steered, and how strongly (alpha)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

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
    all: Sequence[TaskScores]  # these, and zero-shot


def figure_3(study: Study) -> Figure:
    """Makes the figure, with a part on the number of heads and one on alpha for each task."""
    images: list[Path] = []
    claims: list[Claim] = []
    folder = study.setup.out / "figures"
    for task in study.setup.instruction_tasks:
        results = _ask(study, task)
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


def _ask(study: Study, task: str) -> _Results:
    """Asks the test samples of a task, for every number of heads and every alpha."""
    heads = study.heads["multi-task", task]
    sizes = [pasta_on(candidate) for candidate in study.candidates("multi-task", task)]
    alphas = [Pasta(alpha, heads) for alpha in study.setup.scale.alphas]
    answers = study.ask("figure-3", task, [*sizes, *alphas], generate=True)
    scores_by_size = {len(method.heads or ()): answers.under(method) for method in sizes}
    scores_by_alpha = {method.alpha: answers.under(method) for method in alphas}
    return _Results(
        scores_by_size=dict(sorted(scores_by_size.items())),
        scores_by_alpha=dict(sorted(scores_by_alpha.items(), reverse=True)),
        all=answers.all,
    )


def _claims(task: str, results: _Results) -> Sequence[Claim]:
    """The paper's claims about the number of heads and about alpha, judged."""
    claims = [
        *_size_claims(task, results.scores_by_size),
        _alpha_claim(task, results.scores_by_alpha),
    ]
    return judge_within_reach(claims, task, *map(values_of, results.all))


def _size_claims(task: str, scores_by_size: Mapping[int, TaskScores]) -> list[Claim]:
    """The claims that more heads are better, and that too many cost the answer; [] for one size."""
    sizes = list(scores_by_size)
    fewest_heads = sizes[0]
    middle = sizes[len(sizes) // 2]
    most_heads = sizes[-1]
    claims = []
    if len(sizes) > 1:
        metric = scores_by_size[most_heads].main_metric
        gain = paired_difference(
            scores_by_size[most_heads].scores[metric], scores_by_size[fewest_heads].scores[metric]
        )
        claims.append(
            claim_that(
                f"{task}: the more heads, the more closely the instruction is followed.",
                gain,
                sign=+1,
                quantity=f"{metric.capitalize()}, {most_heads} heads less {fewest_heads}:",
            )
        )
    if len(sizes) > 2 and task == _TASK_WITH_ANSWERS:
        metric = _ANSWER_METRIC
        lost = paired_difference(
            scores_by_size[most_heads].scores[metric], scores_by_size[middle].scores[metric]
        )
        claims.append(
            claim_that(
                f"{task}: too many heads cost the quality of the answer.",
                lost,
                sign=-1,
                quantity=f"{metric.capitalize()}, {most_heads} heads less {middle}:",
            )
        )
    return claims


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
        ticks = np.arange(len(results))
        metrics = next(iter(results.values())).scores
        for colour, metric in zip(COLOURS[1:], metrics, strict=False):
            scores = [estimate(result.scores[metric], SCORES) for result in results.values()]
            axis.errorbar(
                ticks,
                means(scores),
                whiskers(scores),
                marker="o",
                markersize=4,
                elinewidth=0.8,
                linewidth=1.3,
                color=colour,
                label=metric,
            )
        axis.set(title=title, xlabel=xlabel, ylabel="share of the samples", ylim=(-0.03, 1.03))
        axis.set_xticks(ticks, list(results))
        handles, labels = axis.get_legend_handles_labels()
        fluencies = np.array([result.fluency for result in results.values()], dtype=float)
        if not np.isnan(fluencies).all():
            right = axis.twinx()
            (line,) = right.plot(
                ticks,
                fluencies,
                "s--",
                label="fluency",
                markersize=4,
                linewidth=1.0,
                color=COLOURS[0],
            )
            right.set(ylabel="fluency, bits", ylim=(0, 1.1 * np.nanmax(fluencies)))
            right.grid(visible=False)
            handles.append(line)
            labels.append("fluency")
        legend_below(figure, handles, labels, columns=3)
        return pngs(save({file.name: figure}, file.parent))
