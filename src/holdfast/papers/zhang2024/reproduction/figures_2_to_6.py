"""Figures 2 to 6 of the paper: single heads, layers and all heads; numbers of heads; alphas."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.analysis.profile import UNSTEERED, head_name
from holdfast.analysis.statistics import SCORES, Estimate, estimate, paired_difference
from holdfast.analysis.task_results import ZERO_SHOT, Result
from holdfast.analysis.verdicts import within
from holdfast.methods import HeadSet, Pasta, spec_of
from holdfast.papers.findings import Claim, Figure, claim_that, in_words, judged, pngs
from holdfast.papers.zhang2024.reproduction.paper_tables import (
    HALVES,
    best_less_worst,
    beyond_reach,
)
from holdfast.papers.zhang2024.reproduction.study import Study, pasta_on, values_of
from holdfast.records import read_run
from holdfast.report.figures import COLOURS, legend_below, means, panels, save, styled, whiskers

_ROBUST = 0.1  # a metric that changes by less is called robust
_Drawn = tuple[tuple[Path, ...], tuple[Claim, ...]]  # the images and claims of a task


def figure_2(study: Study) -> Figure:
    """All heads, a layer, one head (Figures 2, 4, 5 and 6, one per task)."""
    title = "all heads, an entire layer, a single head (Figures 2, 4, 5 and 6 of the paper)"
    how = (
        "Change against zero-shot: single heads on the training samples they are profiled on,"
        " everything else on test samples."
    )
    return _joined("2", title, how, [_which_heads(study, name) for name in study.setup.tasks])


def figure_3(study: Study) -> Figure:
    """How many heads, and how strongly."""
    how = "Heads shared by the best k of all tasks, for every k; alpha on the heads of Table 1."
    drawn = [_how_many_heads(study, name) for name in study.setup.free]
    return _joined("3", "how many heads, and how strongly they are steered", how, drawn)


def _joined(number: str, title: str, how: str, drawn: Sequence[_Drawn]) -> Figure:
    images = tuple(path for paths, _ in drawn for path in paths)
    return Figure(number, title, how, images, tuple(claim for _, some in drawn for claim in some))


def _which_heads(study: Study, name: str) -> _Drawn:
    shape = study.setup.model.shape
    whole = [
        pasta_on(HeadSet((layer, head) for head in range(shape.heads)))
        for layer in range(shape.layers)
    ]
    everywhere, pasta = pasta_on(None), pasta_on(study.heads["multi-task", name])
    results = study.ask("figure-2", name, [*whole, everywhere, pasta])
    zero = values_of(results[ZERO_SHOT])
    values = {
        method: values_of(results[spec_of([method])]) for method in (*whole, everywhere, pasta)
    }
    gains = {method: paired_difference(answer, zero) for method, answer in values.items()}
    single = _single_heads(study, name)
    images = _draw_single_heads(
        name,
        single.mean(0),
        [gains[method] for method in whole],
        {"PASTA, multi-task": gains[pasta], "all heads": gains[everywhere]},
        study.setup.out / "figures" / f"2-{name}",
    )
    worse = f"{name}: steering all heads is worse than steering none."
    better = f"{name}: steering the profiled heads is better than all."
    varies = f"{name}: what one head gives varies between heads."
    ahead = paired_difference(values[pasta], values[everywhere])
    spread = best_less_worst(single.reshape(len(single), -1))
    claims = [
        claim_that(worse, gains[everywhere], -1, "All heads less zero-shot:"),
        claim_that(better, ahead, +1, "Multi-task PASTA less all heads:"),
        claim_that(varies, spread, +1, f"{HALVES}:"),
    ]
    return images, judged(claims, beyond_reach(name, *values.values(), zero, single))


def _single_heads(study: Study, name: str) -> np.ndarray:
    """[sample, layer, head]: the score with one head steered, less that without."""
    shape = study.setup.model.shape
    heads = [(layer, head) for layer in range(shape.layers) for head in range(shape.heads)]
    scores = [record.scores for record in read_run(study.profile_folder(name)).head_scores]
    gains = [[score[head_name(head)] - score[UNSTEERED] for head in heads] for score in scores]
    return np.array(gains).reshape(len(scores), shape.layers, shape.heads)


def _draw_single_heads(
    task: str,
    single: np.ndarray,
    layers: Sequence[Estimate],
    lines: Mapping[str, Estimate],
    folder: Path,
) -> tuple[Path, ...]:
    """Change against zero-shot: of each head [layer, head], whole layers, named head sets."""
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
            dots: dict[str, Any] = {"markersize": 4, "alpha": 0.6}
            across = np.repeat(places, single.shape[1])
            axis.plot(across, single.ravel(), "o", color=COLOURS[2], label="a single head", **dots)
        squares: Any = {"fmt": "s", "markersize": 5, "color": COLOURS[3], "elinewidth": 0.8}
        squares["label"] = "an entire layer"
        axis.errorbar(places + 0.15, means(layers), whiskers(layers), **squares)
        title, change = f"{task}: which heads are steered", "change against zero-shot"
        axis.set(title=title, xlabel="layer", ylabel=change, xticks=places)
        legend_below(figure, *axis.get_legend_handles_labels(), columns=3)
        return pngs(save({"single_heads": figure}, folder))


def _how_many_heads(study: Study, name: str) -> _Drawn:
    options = study.candidates("multi-task", name)
    alphas = {
        alpha: Pasta(alpha, study.heads["multi-task", name]) for alpha in study.setup.scale.alphas
    }
    steered = [*map(pasta_on, options), *alphas.values()]
    results = study.ask("figure-3", name, steered, generate=True)
    by_size = {
        len(heads): results[spec_of([pasta_on(heads)])] for heads in sorted(options, key=len)
    }
    by_alpha = {alpha: results[spec_of([alphas[alpha]])] for alpha in sorted(alphas, reverse=True)}
    sizes = {str(size): result for size, result in by_size.items()}
    strengths = {f"{alpha:g}": result for alpha, result in by_alpha.items()}
    titles = f"{name}: how many heads are steered", f"{name}: how strongly they are steered"
    folder = study.setup.out / "figures"
    images = (
        *_curves(titles[0], "heads", sizes, folder / f"3-{name}" / "sizes"),
        *_curves(titles[1], "alpha", strengths, folder / f"3-{name}-alpha" / "alphas"),
    )
    metric = next(iter(results[ZERO_SHOT].scores))
    claims = [*_size_claims(name, by_size, metric), _alpha_claim(name, by_alpha, metric)]
    return images, judged(claims, beyond_reach(name, *map(values_of, results.values())))


def _curves(title: str, label: str, results: Mapping[str, Result], out: Path) -> tuple[Path, ...]:
    with styled():
        figure, (axis,) = panels(1, 1, 6.4, 3.6)
        places = np.arange(len(results))
        for number, metric in enumerate(next(iter(results.values())).scores):
            scores = [estimate(result.scores[metric], SCORES) for result in results.values()]
            dots: Any = {"marker": "o", "markersize": 4, "elinewidth": 0.8, "linewidth": 1.3}
            dots |= {"color": COLOURS[number + 1], "label": metric}
            axis.errorbar(places, means(scores), whiskers(scores), **dots)
        axis.set(title=title, xlabel=label, ylabel="share of the samples", ylim=(-0.03, 1.03))
        axis.set_xticks(places, list(results))
        axes = [axis]
        fluencies = np.array([result.fluency for result in results.values()], dtype=float)
        if not np.isnan(fluencies).all():
            axes.append(axis.twinx())
            style: dict[str, Any] = {"markersize": 4, "linewidth": 1.0, "color": COLOURS[0]}
            axes[1].plot(places, fluencies, "s--", label="fluency", **style)
            axes[1].set(ylabel="fluency, bits", ylim=(0, 1.1 * np.nanmax(fluencies)))
            axes[1].grid(visible=False)
        handles, names = [], []
        for part in axes:
            shown = part.get_legend_handles_labels()
            handles += shown[0]
            names += shown[1]
        legend_below(figure, handles, names, columns=3)
        return pngs(save({out.name: figure}, out.parent))


def _size_claims(name: str, by_size: Mapping[int, Result], metric: str) -> list[Claim]:
    sizes = list(by_size)
    least, middle, most = sizes[0], sizes[len(sizes) // 2], sizes[-1]
    claims = []
    if len(sizes) > 1:
        more = paired_difference(by_size[most].scores[metric], by_size[least].scores[metric])
        text = f"{name}: the more heads, the more closely the instruction is followed."
        measured = f"{metric.capitalize()}, {most} heads less {least}:"
        claims.append(claim_that(text, more, +1, measured))
    if len(sizes) > 2 and name == "json":
        many, fewer = by_size[most].scores["prediction"], by_size[middle].scores["prediction"]
        text = "json: too many heads cost the quality of the answer."
        measured = f"Prediction, {most} heads less {middle}:"
        claims.append(claim_that(text, paired_difference(many, fewer), -1, measured))
    return claims


def _alpha_claim(name: str, by_alpha: Mapping[float, Result], metric: str) -> Claim:
    least, most = min(by_alpha), max(by_alpha)
    change = paired_difference(by_alpha[least].scores[metric], by_alpha[most].scores[metric])
    return Claim(
        f"{name}: alpha hardly matters from {most:g} to {least:g}.",
        within(change, -_ROBUST, _ROBUST),
        f"{metric.capitalize()} at {least:g} less that at {most:g}:"
        f" {in_words(change)} (we call an interval within {_ROBUST} robust).",
    )
