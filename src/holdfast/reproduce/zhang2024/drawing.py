"""The figures of Zhang et al. 2024: single heads, layers and all heads; numbers of heads;
alphas.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.analysis.statistics import Estimate, estimate
from holdfast.analysis.tasks import Result
from holdfast.report.figures import (
    COLOURS,
    legend_below,
    means,
    panels,
    save,
    styled,
    whiskers,
)

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
