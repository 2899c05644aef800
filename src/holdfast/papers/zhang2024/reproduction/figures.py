"""Figures 2 to 6 of the paper: single heads, layers and all heads; numbers of heads; alphas."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.analysis.profile import UNSTEERED, head_name
from holdfast.analysis.statistics import Estimate, estimate, paired_difference
from holdfast.analysis.tasks import ZERO_SHOT, Result
from holdfast.analysis.verdicts import within
from holdfast.methods import HeadSet, Pasta, spell
from holdfast.papers.findings import Claim, Figure, claim_that, in_words, judged
from holdfast.papers.zhang2024.reproduction.setup import pasta_on
from holdfast.papers.zhang2024.reproduction.study import Study, values_of
from holdfast.papers.zhang2024.reproduction.tables import HALVES, best_less_worst, beyond_reach
from holdfast.records import read_run
from holdfast.report.figures import COLOURS, legend_below, means, panels, save, styled, whiskers

_FLUENCY = "fluency"


def write_single_heads(
    task: str,
    single: np.ndarray,
    layers: Sequence[Estimate],
    lines: Mapping[str, Estimate],
    folder: Path,
) -> list[Path]:
    """Figures 2, 4, 5 and 6: change against zero-shot by layer; returns the PNG.

    Args:
        task: its name.
        single: [layer, head], of one head each.
        layers: of each entire layer.
        lines: of other sets of heads, by name.
        folder: where to.
    """
    with styled():
        figure, (axis,) = panels(1, 1, 6.4, 3.8)
        axis.axhline(0.0, color="#222222", linewidth=0.9, linestyle="--", label="zero-shot")
        for (name, value), colour in zip(lines.items(), (COLOURS[5], COLOURS[1]), strict=True):
            if value.mean is not None:
                axis.axhline(value.mean, color=colour, linewidth=1.3, linestyle=":", label=name)
            if value.low is not None and value.high is not None:
                axis.axhspan(value.low, value.high, color=colour, alpha=0.12, linewidth=0)
        places = np.arange(len(single))
        # a violin of a few heads is mostly its own smoothing, so small models show their heads as
        # dots
        if single.shape[1] > 12:
            violins: Any = axis.violinplot(list(single), places, showextrema=False)["bodies"]
            for violin in violins:
                violin.set_facecolor(COLOURS[2])
        else:
            axis.plot(
                np.repeat(places, single.shape[1]),
                single.ravel(),
                linestyle="",
                marker="o",
                markersize=4,
                alpha=0.6,
                color=COLOURS[2],
                label="a single head",
            )
        axis.errorbar(
            places + 0.15,
            means(layers),
            whiskers(layers),
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
            xticks=places,
        )
        legend_below(figure, *axis.get_legend_handles_labels(), columns=3)
        return _pngs(save({"single_heads": figure}, folder))


def write_sizes(task: str, results: Mapping[int, Result], folder: Path) -> list[Path]:
    """Figures 3a and 3b: each metric, and fluency where there is one, by the number of heads;
    returns the PNG.
    """
    return _curves(
        f"{task}: how many heads are steered",
        "heads",
        {str(size): results[size] for size in sorted(results)},
        folder,
        "sizes",
    )


def write_alphas(task: str, results: Mapping[float, Result], folder: Path) -> list[Path]:
    """Figure 3c: each metric by alpha; returns the PNG."""
    return _curves(
        f"{task}: how strongly they are steered",
        "alpha",
        {f"{alpha:g}": results[alpha] for alpha in sorted(results, reverse=True)},
        folder,
        "alphas",
    )


def _curves(
    title: str, label: str, results: Mapping[str, Result], folder: Path, name: str
) -> list[Path]:
    with styled():
        figure, (axis,) = panels(1, 1, 6.4, 3.6)
        places = np.arange(len(results))
        metrics = list(next(iter(results.values())).scores)
        for number, metric in enumerate(metrics):
            scores = [estimate(result.scores[metric]) for result in results.values()]
            axis.errorbar(
                places,
                means(scores),
                whiskers(scores),
                marker="o",
                markersize=4,
                elinewidth=0.8,
                linewidth=1.3,
                color=COLOURS[number + 1],
                label=metric,
            )
        axis.set(
            title=title,
            xlabel=label,
            ylabel="share of the samples",
            xticks=places,
            xticklabels=list(results),
            ylim=(-0.03, 1.03),
        )
        handles, names = axis.get_legend_handles_labels()
        fluencies = [result.fluency for result in results.values()]
        if any(value is not None for value in fluencies):
            other = axis.twinx()
            other.plot(
                places,
                [np.nan if value is None else value for value in fluencies],
                "s--",
                markersize=4,
                linewidth=1.0,
                color=COLOURS[0],
                label=_FLUENCY,
            )
            other.set(
                ylabel="fluency, bits",
                ylim=(0, 1.1 * max(value for value in fluencies if value is not None)),
            )
            other.grid(visible=False)
            more_handles, more_names = other.get_legend_handles_labels()
            handles, names = [*handles, *more_handles], [*names, *more_names]
        legend_below(figure, handles, names, columns=3)
        return _pngs(save({name: figure}, folder))


def _pngs(paths: Sequence[Path]) -> list[Path]:
    return [path for path in paths if path.suffix == ".png"]


def _by_task(
    draw: Callable[[Study, str], tuple[Sequence[Path], Sequence[Claim]]],
    study: Study,
    names: Sequence[str],
) -> tuple[tuple[Path, ...], tuple[Claim, ...]]:
    """The figures and the claims of several tasks."""
    drawn = [draw(study, name) for name in names]
    images = tuple(path for paths, _ in drawn for path in paths)
    return images, tuple(claim for _, claims in drawn for claim in claims)


_ROBUST = 0.1  # a metric that changes by less is called robust


def figure_2(study: Study) -> Figure:
    """All heads, a layer, one head (Figures 2, 4, 5 and 6, one per task)."""
    images, claims = _by_task(_which_heads, study, study.setup.tasks)
    return Figure(
        number="2",
        title="all heads, an entire layer, a single head (Figures 2, 4, 5 and 6 of the paper)",
        how=(
            "Change against zero-shot: single heads on the training samples they are profiled on,"
            " everything else on test samples."
        ),
        images=images,
        claims=claims,
    )


def _which_heads(study: Study, name: str) -> tuple[list[Path], tuple[Claim, ...]]:
    """One task: its images and claims."""
    shape = study.setup.model.shape
    whole = [
        pasta_on(HeadSet((layer, head) for head in range(shape.heads)))
        for layer in range(shape.layers)
    ]
    everywhere, pasta = pasta_on(None), pasta_on(study.heads["multi-task", name])
    answers = study.ask("figure-2", name, [*whole, everywhere, pasta])
    zero = values_of(answers[ZERO_SHOT])
    values = {method: values_of(answers[spell([method])]) for method in (*whole, everywhere, pasta)}
    gains = {method: paired_difference(answer, zero) for method, answer in values.items()}
    single = _single_heads(study, name)
    images = write_single_heads(
        name,
        single.mean(0),
        [gains[method] for method in whole],
        {"PASTA, multi-task": gains[pasta], "all heads": gains[everywhere]},
        study.setup.out / "figures" / f"2-{name}",
    )
    ahead = paired_difference(values[pasta], values[everywhere])
    spread = best_less_worst(single.reshape(len(single), -1))
    claims = [
        claim_that(
            f"{name}: steering all heads is worse than steering none.",
            gains[everywhere],
            -1,
            f"All heads less zero-shot: {in_words(gains[everywhere])}.",
        ),
        claim_that(
            f"{name}: steering the profiled heads is better than all.",
            ahead,
            +1,
            f"Multi-task PASTA less all heads: {in_words(ahead)}.",
        ),
        claim_that(
            f"{name}: what one head gives varies between heads.",
            spread,
            +1,
            f"{HALVES}: {in_words(spread)}.",
        ),
    ]
    return images, judged(claims, beyond_reach(name, *values.values(), zero, single))


def _single_heads(study: Study, name: str) -> np.ndarray:
    """[sample, layer, head]: the score with one head steered, less that without."""
    shape = study.setup.model.shape
    heads = [(layer, head) for layer in range(shape.layers) for head in range(shape.heads)]
    scores = [record["scores"] for record in read_run(study.profile_folder(name)).records]
    gains = [[score[head_name(head)] - score[UNSTEERED] for head in heads] for score in scores]
    return np.array(gains).reshape(len(scores), shape.layers, shape.heads)


def figure_3(study: Study) -> Figure:
    """How many heads, and how strongly."""
    images, claims = _by_task(_how_many_heads, study, study.setup.free)
    return Figure(
        number="3",
        title="how many heads, and how strongly they are steered",
        how="Heads shared by the best k of all tasks, for every k; alpha on the heads of Table 1.",
        images=images,
        claims=claims,
    )


def _how_many_heads(study: Study, name: str) -> tuple[list[Path], tuple[Claim, ...]]:
    """One task: its images and claims."""
    options = study.candidates("multi-task", name)
    alphas = {
        alpha: Pasta(alpha, study.heads["multi-task", name]) for alpha in study.setup.scale.alphas
    }
    steered = [*map(pasta_on, options), *alphas.values()]
    answers = study.ask("figure-3", name, steered, generate=True)
    by_size = {len(heads): answers[spell([pasta_on(heads)])] for heads in options}
    by_alpha = {alpha: answers[spell([method])] for alpha, method in alphas.items()}
    folder = study.setup.out / "figures"
    images = [
        *write_sizes(name, by_size, folder / f"3-{name}"),
        *write_alphas(name, by_alpha, folder / f"3-{name}-alpha"),
    ]
    metric = next(iter(answers[ZERO_SHOT].scores))
    claims = [*_size_claims(name, by_size, metric), _alpha_claim(name, by_alpha, metric)]
    return images, judged(claims, beyond_reach(name, *map(values_of, answers.values())))


def _size_claims(name: str, by_size: Mapping[int, Result], metric: str) -> list[Claim]:
    sizes = sorted(by_size)
    least, middle, most = sizes[0], sizes[len(sizes) // 2], sizes[-1]
    claims = []
    if len(sizes) > 1:
        more = paired_difference(by_size[most].scores[metric], by_size[least].scores[metric])
        text = f"{name}: the more heads, the more closely the instruction is followed."
        evidence = f"{metric.capitalize()}, {most} heads less {least}: {in_words(more)}."
        claims.append(claim_that(text, more, +1, evidence))
    if len(sizes) > 2 and name == "json":
        many, fewer = by_size[most].scores["prediction"], by_size[middle].scores["prediction"]
        lost = paired_difference(many, fewer)
        text = "json: too many heads cost the quality of the answer."
        evidence = f"Prediction, {most} heads less {middle}: {in_words(lost)}."
        claims.append(claim_that(text, lost, -1, evidence))
    return claims


def _alpha_claim(name: str, by_alpha: Mapping[float, Result], metric: str) -> Claim:
    least, most = min(by_alpha), max(by_alpha)
    change = paired_difference(by_alpha[least].scores[metric], by_alpha[most].scores[metric])
    return Claim(
        f"{name}: alpha hardly matters from {most:g} to {least:g}.",
        robust(change),
        f"{metric.capitalize()} at {least:g} less that at {most:g}:"
        f" {in_words(change)} (we call an interval within {_ROBUST} robust).",
    )


def robust(change: Estimate) -> str:
    """Whether the whole interval of a change of scores lies within the bound."""
    return within(change, -_ROBUST, _ROBUST, -1, 1)
