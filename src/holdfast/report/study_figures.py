"""The figures of calibrate, trace, geometry and profile."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from holdfast.analysis.candidates import Calibration, Candidate
from holdfast.analysis.choosing import front
from holdfast.analysis.decay import Rows, Trace
from holdfast.analysis.hidden_geometry import Geometry
from holdfast.analysis.profile import Profile
from holdfast.analysis.statistics import SCORES, estimate, estimate_columns
from holdfast.errors import cut
from holdfast.report import figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DARK = "#222222"
_LONG = 28  # most characters of a sweep's name in the legend
_BINS = 6
_STEPS = (6, 12, 20, 30, 42, 56, 72)  # distances of a label from its point, in points
_WAYS = ((1, 0.6), (-1, 0.6), (1, -0.9), (-1, -0.9), (0, 1), (0, -1), (1, 0), (-1, 0))
_SIDES: Any = {1: "left", -1: "right", 0: "center"}  # alignment of a label, by its direction
_DOT = 3  # padding around a point for its marker, in points
_FAR = 15  # points; a label farther away is joined to its point by a line
_GROUPS = (  # in the order of `ByGroup`
    "all tokens so far",
    "system prompt",
    "user, equally many tokens",
    "agent, equally many tokens",
)


def write_calibration_figures(calibration: Calibration, budget: float, folder: Path) -> list[Path]:
    """Writes `trade_off` and `by_round` (Li et al. 2024, Figures 5 and 6) as SVG and PNG."""
    with figures.styled():
        trade_off, by_round = _trade_off(calibration), _by_round(calibration, budget)
        return figures.save({"trade_off": trade_off, "by_round": by_round}, folder)


def _trade_off(calibration: Calibration) -> Figure:
    figure, (axis,) = figures.panels(1, 1, 6.4, 4.4)
    none = calibration.none
    start = none.mean_stability()
    axis.axhline(start, color="#888888", linewidth=0.8, linestyle=":")
    axis.plot(0, start, marker="s", markersize=5, color=_DARK, linestyle="", label="none")
    labels: list[_Label] = []
    for number in range(len(calibration.names)):
        labels += _draw_sweep(axis, calibration, number, start)
    corners = sorted(
        (calibration.mean_drop(candidate), candidate.mean_stability())
        for candidate, star in zip(calibration.candidates, front(calibration), strict=True)
        if star
    )
    ring: Any = {"linestyle": "", "marker": "o", "markersize": 10, "markerfacecolor": "none"}
    edge: Any = {"markeredgecolor": _DARK, "markeredgewidth": 0.9}
    axis.plot(*zip(*corners, strict=True), label="Pareto front", **ring, **edge)
    axis.set(
        title="what a method gives, and what it costs",
        xlabel=f"lost on {_short(calibration)}: {calibration.unit}",
        ylabel="stability, mean over rounds",
    )
    axis.set_ylim(max(0.0, axis.get_ylim()[0]), min(1.02, axis.get_ylim()[1]))
    axis.grid(True, axis="x")
    note = (
        f"{len(none.stability)} conversations per setting; whiskers: 95% bootstrap intervals of"
        " the paired difference to none"
    )
    figures.legend_below(figure, *axis.get_legend_handles_labels(), note)
    _place_labels(figure, axis, labels)
    return figure


def _draw_sweep(axis: Axes, calibration: Calibration, number: int, start: float) -> list[_Label]:
    """Draws a sweep, starting at the stability without a fix; returns its candidates' labels."""
    candidates = calibration.sweeps[number]
    drops = [calibration.drop(candidate) for candidate in candidates]
    gains = [calibration.gain(candidate) for candidate in candidates]
    x, y = (
        figures.means(drops),
        figures.means([estimate(candidate.stability, SCORES) for candidate in candidates]),
    )
    style = figures.look(number + 1)
    # the quantity measured is the difference from no method, so the whiskers in both directions
    # show paired differences
    figures.error_bars(axis, x, y, style["color"], figures.whiskers(gains), figures.whiskers(drops))
    label = _label(*calibration.names[number])
    dots: Any = {"marker": "o", "markersize": 4, "markevery": slice(1, None)}
    axis.plot([0, *x], [start, *y], linewidth=1.3, label=label, **style, **dots)
    return [
        _Label(candidate.value, at, level, style["color"])
        for candidate, at, level in zip(candidates, x, y, strict=True)
    ]


def _by_round(calibration: Calibration, budget: float) -> Figure:
    figure, (axis,) = figures.panels(1, 1, 6.4, 3.8)
    plain = {"color": _DARK, "linestyle": "--"}
    shown: list[tuple[Candidate, dict[str, Any], str]] = [(calibration.none, plain, "none")]
    for number, (name, parameter) in enumerate(calibration.names):
        closest = calibration.closest(calibration.sweeps[number], budget)
        lost = f"{calibration.mean_drop(closest):+.1f} lost"
        label = f"{_label(name, parameter)}={closest.value} ({lost})"
        shown.append((closest, figures.look(number + 1), label))
    for index, (candidate, style, label) in enumerate(shown):
        points = estimate_columns(candidate.by_round, SCORES)
        rounds = np.arange(1, len(points) + 1) + 0.06 * (index - (len(shown) - 1) / 2)
        measured = ~np.isnan(figures.means(points))
        x, y = rounds[measured], figures.means(points)[measured]
        figures.error_bars(axis, x, y, style["color"], figures.whiskers(points)[:, measured])
        dots: Any = {"linewidth": 1.5, "marker": "o", "markersize": 3}
        axis.plot(x, y, label=label, **style, **dots)
    axis.set(
        title=f"stability by round, each method at its setting closest to {budget:g} points lost",
        xlabel="round",
        ylabel="stability",
        xticks=range(1, calibration.none.by_round.shape[1] + 1),
        ylim=(0, 1.02),
    )
    note = (
        f"lost on {_short(calibration)}, {calibration.unit}; whiskers: 95% bootstrap intervals"
        " over conversations"
    )
    figures.legend_below(figure, *axis.get_legend_handles_labels(), note)
    return figure


def _label(name: str, parameter: str) -> str:
    """The name of a sweep in the legend; long lists of heads are cut."""
    return f"{cut(name, _LONG)}, {parameter}".replace("$", r"\$")


def _short(calibration: Calibration) -> str:
    """The name of the capability, without the folders of its file."""
    kind, _, where = calibration.about.capability.partition(":")
    if kind == "mmlu":
        return "MMLU"
    return " ".join(filter(None, (kind, where.rstrip("/").rsplit("/", 1)[-1]))).replace("$", r"\$")


class _Label(NamedTuple):
    text: str
    x: float
    y: float
    colour: str


def _place_labels(figure: Figure, axis: Axes, labels: Sequence[_Label]) -> None:
    """Writes every label as near to its point as possible without overlapping another."""
    # the rest of the figure must be finished, since labels are placed around it
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.transforms import Bbox

    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw_without_rendering()  # settles the layout
    inside = axis.get_window_extent(renderer)
    points = axis.transData.transform([(label.x, label.y) for label in labels]).reshape(-1, 2)
    taken = [Bbox.from_extents(x, y, x, y).padded(_DOT * figure.dpi / 72) for x, y in points]
    for label in sorted(labels, key=lambda label: (label.x, label.y)):
        anchor: Any = {"xy": (label.x, label.y), "textcoords": "offset points"}
        style: Any = {"fontsize": 7, "color": label.colour, "va": "center"}
        text = axis.annotate(label.text, xytext=(0, 0), **style, **anchor)
        text.set_in_layout(False)
        for step, (across, up) in itertools.product(_STEPS, _WAYS):
            text.xyann = (across * step, up * step)
            text.set_horizontalalignment(_SIDES[across])
            box = text.get_window_extent(renderer).padded(1)
            within = inside.containsx(box.x0) and inside.containsx(box.x1)
            within &= inside.containsy(box.y0) and inside.containsy(box.y1)
            if within and not any(box.overlaps(other) for other in taken):
                break
        taken.append(box)
        if max(map(abs, text.xyann)) > _FAR:
            line = {"arrowstyle": "-", "color": label.colour, "linewidth": 0.4, "alpha": 0.6}
            axis.annotate("", xytext=text.xyann, arrowprops=line, **anchor).set_in_layout(False)


def write_trace_figures(trace: Trace, folder: Path, compared: Sequence[Trace] = ()) -> list[Path]:
    """Writes `decay` (Li et al. 2024, Figures 4, 8), `heads`, `mass_and_behaviour`, `models`."""
    layer, head = trace.shown_head
    with figures.styled():
        drawn = {
            "decay": _decay(
                [
                    _Panel(f"head {layer}.{head}", trace.curves.head),
                    _Panel("average over heads", trace.curves.average, trace.curves.uniform),
                ]
            ),
            "heads": _heat_maps(
                {
                    "mass in round 1": trace.heads.first_round,
                    f"drop from round 1 to {trace.rounds}": trace.heads.drop,
                }
            ),
            "mass_and_behaviour": _behaviour(trace),
        }
        if compared:
            drawn["models"] = _decay(
                [
                    _Panel(model.model, model.curves.average, model.curves.uniform)
                    for model in (trace, *compared)
                ]
            )
        return figures.save(drawn, folder)


class _Panel(NamedTuple):
    """The curves of one panel: the mass at each generated token, [round][step]."""

    title: str
    curves: Rows
    uniform: Rows = ()  # under uniform attention; () for none


def _decay(panels: Sequence[_Panel]) -> Figure:
    """One line per round, darker for later rounds; dashed lines show uniform attention."""
    from matplotlib import colormaps
    from matplotlib.ticker import MaxNLocator

    figure, axes = figures.panels(len(panels), len(panels), 4.8, 3.2)
    for axis, panel in zip(axes, panels, strict=True):
        shades = colormaps["viridis_r"](np.linspace(0.3, 1, len(panel.curves)))
        for number, (curve, colour) in enumerate(zip(panel.curves, shades, strict=True)):
            steps, label = range(1, len(curve) + 1), f"round {number + 1}"
            axis.plot(steps, curve, color=colour, linewidth=1.5, label=label)
            if panel.uniform:
                even = panel.uniform[number]
                steps = range(1, len(even) + 1)
                axis.plot(steps, even, "--", color=colour, linewidth=0.8, alpha=0.7)
        axis.set(title=panel.title, xlabel="generated token", ylabel="mass on the system prompt")
        axis.set_ylim(bottom=0)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes[-1].plot([], [], "--", color="#777777", linewidth=0.8, label="uniform attention")
    figures.legend_below(figure, *axes[-1].get_legend_handles_labels(), columns=5)
    return figure


def _heat_maps(values_by_title: Mapping[str, Rows]) -> Figure:
    figure, axes = figures.panels(len(values_by_title), len(values_by_title), 4.0, 2.8)
    for axis, (title, rows) in zip(axes, values_by_title.items(), strict=True):
        values = np.array(rows)
        low, high = min(0.0, float(values.min())), float(values.max()) or 1.0
        image = axis.imshow(values, aspect="auto", cmap="Greens", vmin=low, vmax=high)
        axis.set(title=title, xlabel="head", ylabel="layer")
        axis.grid(False)
        for ticks, size in ((axis.set_xticks, values.shape[1]), (axis.set_yticks, values.shape[0])):
            ticks(range(0, size, max(1, size // 8)))
        figure.colorbar(image, ax=axis)
    return figure


def _behaviour(trace: Trace) -> Figure:
    """Mean scores of probes in equally full bins of mass, for all, early and late rounds."""
    figure, (axis,) = figures.panels(1, 1, 5.2, 3.2)
    probes, half = np.array(trace.behaviour.probes), trace.rounds // 2
    groups = (
        ("all rounds", probes),
        (_rounds(1, half), probes[probes[:, 0] <= half]),
        (_rounds(half + 1, trace.rounds), probes[probes[:, 0] > half]),
    )
    for colour, (label, rows) in zip(figures.COLOURS, groups, strict=False):
        parts = np.array_split(rows[rows[:, 1].argsort()], min(_BINS, max(1, len(rows) // 5)))
        x, y = np.array([part[:, 1:3].mean(0) for part in parts]).T
        axis.plot(x, y, marker="o", markersize=3.5, color=colour, label=label)
    within = trace.behaviour.within_rounds
    note = (
        "r not measurable"
        if within.r is None
        else f"r = {within.r:+.2f} [{within.low:+.2f}, {within.high:+.2f}] within rounds"
    )
    axis.set(title=note, ylabel="mean stability", ylim=(0, 1.02))
    axis.set_xlabel("mean mass on the system prompt, equally full bins")
    figures.legend_below(figure, *axis.get_legend_handles_labels(), columns=3)
    return figure


def _rounds(first: int, last: int) -> str:
    return f"round {first}" if first == last else f"rounds {first} to {last}"


def write_geometry_figures(geometry: Geometry, folder: Path) -> list[Path]:
    """Writes `norms` (Li et al. 2024, Figure 7) and `hidden_states` as SVG and PNG."""
    with figures.styled():
        norms = _norms(geometry.model, geometry.embedding_norms)
        return figures.save({"norms": norms, "hidden_states": _hidden_states(geometry)}, folder)


def write_norms(model: str, norms: Sequence[float], folder: Path) -> list[Path]:
    """Writes only `norms`, as SVG and PNG."""
    with figures.styled():
        return figures.save({"norms": _norms(model, norms)}, folder)


def _norms(model: str, norms: Sequence[float]) -> Figure:
    figure, (axis,) = figures.panels(1, 1, 4.6, 3.0)
    axis.hist(norms, bins=60, density=True, color=figures.COLOURS[1])
    axis.set(title=f"norms of the embeddings of {model}", xlabel="norm", ylabel="density")
    return figure


def _hidden_states(geometry: Geometry) -> Figure:
    figure, axes = figures.panels(2, 2, 4.6, 3.2)
    spreads = geometry.hidden_states
    rounds = [spread.round for spread in spreads]
    quantities = {
        "effective dimension": [spread.dimension.values() for spread in spreads],
        "opening angle in radians (95% of the tokens)": [
            spread.angle.values() for spread in spreads
        ],
    }
    for axis, (title, by_round) in zip(axes, quantities.items(), strict=True):
        by_group = zip(*by_round, strict=True)
        for colour, label, values in zip(figures.COLOURS, _GROUPS, by_group, strict=False):
            axis.plot(rounds, values, marker="o", markersize=3, color=colour, label=label)
        axis.set(title=title, xlabel="round", xticks=rounds)
        axis.set_ylim(bottom=0)
    figures.legend_below(figure, *axes[0].get_legend_handles_labels())
    return figure


def write_heat_map(profile: Profile, folder: Path) -> list[Path]:
    """Writes `heads`, the change from steering each single head, as SVG and PNG."""
    layers, heads = profile.shape.layers, profile.shape.heads
    grid = np.full((layers, heads), np.nan)
    for (layer, head), score in profile.scores.items():
        grid[layer, head] = score - profile.unsteered
    widest = float(np.nanmax(np.abs(grid))) or 1.0
    by = "right answer’s log-probability" if profile.by == "probability" else "accuracy"
    with figures.styled():
        figure, (axis,) = figures.panels(
            1, 1, max(4.6, 0.35 * heads + 2), max(3.0, 0.25 * layers + 1.2)
        )
        image = axis.imshow(grid, cmap="RdBu_r", vmin=-widest, vmax=widest, aspect="auto")
        axis.set(title=f"{profile.method} on one head: change of the {by}")
        axis.set(xlabel="head", ylabel="layer", xticks=range(heads), yticks=range(layers))
        axis.grid(visible=False)
        figure.colorbar(image, ax=axis)
        return figures.save({"heads": figure}, folder)
