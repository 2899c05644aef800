"""What `holdfast calibrate` found: stability and cost of every setting, the Pareto front, and the
setting to take under a budget.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from holdfast import knobs
from holdfast.errors import RecordsError, UsageError
from holdfast.files import write_whole
from holdfast.records import RunData, read_run
from holdfast.report.scores import NO_FIX, read_series
from holdfast.report.statistics import (
    Estimate,
    bounds_of,
    estimate,
    paired_difference,
    resampled_means,
    row_means,
)
from holdfast.report.verdicts import (
    CANNOT_TELL,
    CONTRADICTED,
    LEAST,
    SUPPORTED,
    bounds,
    tell,
    too_few,
    with_interval,
    within,
)
from holdfast.study.calibrate import half_of

_MOST = 100  # times as much work: beyond, nobody wants to know how many


@dataclass(frozen=True, eq=False)
class Setting:
    """One method at one strength; arrays are by conversation, in the order all settings share.

    Attributes:
        method: its spelling; "none" for the model as it is.
        sweep: the number of the sweep it belongs to; None for "none".
        value: of the knob, as spelled.
        by_round: stability, [conversation, round].
        stability: its mean over rounds, [conversation].
        capability: in points: 100 times the share answered right, or minus 100 times the nats per
            token of a text; NaN where nothing was asked.
        tokens: forwarded for the capability.
    """

    method: str
    sweep: int | None
    value: str
    by_round: np.ndarray
    stability: np.ndarray
    capability: np.ndarray
    tokens: int


@dataclass(frozen=True, eq=False)
class Calibration:
    """A sweep that is read.

    Attributes:
        settings: "none" first.
        names: of the sweeps, each with its knob.
        report: bool [conversation], True on the half that results are reported on; settings are
            chosen on the other.
        about: the identity of the run.
    """

    settings: tuple[Setting, ...]
    names: tuple[tuple[str, str], ...]
    report: np.ndarray
    about: dict[str, Any]

    def gain(self, setting: Setting, keep: np.ndarray | slice = slice(None)) -> Estimate:
        """Stability against none, paired by conversation."""
        return paired_difference(setting.stability[keep], self.settings[0].stability[keep])

    def drop(self, setting: Setting, keep: np.ndarray | slice = slice(None)) -> Estimate:
        """Points of capability lost against none, paired by conversation, whose questions are the
        same.
        """
        return paired_difference(self.settings[0].capability[keep], setting.capability[keep])

    @property
    def unit(self) -> str:
        """What a point is."""
        return (
            "hundredths of a nat per token (about % of perplexity)"
            if self.about["is_text"]
            else "percentage points"
        )

    @property
    def widest(self) -> float:
        """The most points that one conversation can lose."""
        return math.inf if self.about["is_text"] else 100.0


@dataclass(frozen=True)
class Pick:
    """The most stable setting of those whose cost, on one half of the conversations, is within the
    budget.

    stability_none, stability, gain and drop are those of the other half. none_fits: no setting but
    none is within the budget. why: what keeps the other half from showing that the setting is more
    stable and within the budget; "" where it shows both, and only then is the setting recommended.
    """

    method: str
    budget: float
    stability_none: float
    stability: Estimate
    gain: Estimate
    drop: Estimate
    none_fits: bool
    why: str

    @property
    def recommended(self) -> bool:
        """Whether the evidence allows to recommend it."""
        return not self.why


def read_calibration(folder: Path | str) -> Calibration:
    """Reads what a calibration wrote.

    Raises:
        RecordsError: the folder holds no calibration, or one that is not finished.
    """
    stability, asked = (read_run(Path(folder) / name) for name in ("stability", "capability"))
    about = asked.manifest["identity"]
    series = {item.method: item for item in read_series(stability)}
    costs = _costs(asked)
    places = {
        method: (number, value)
        for number, sweep in enumerate(about["sweeps"])
        for method, value in zip(sweep["methods"], sweep["values"], strict=True)
    }
    count, answered = (
        about["settings"]["conversations"],
        min(about["settings"]["conversations"], len(costs.get(NO_FIX, {}))),
    )
    settings = []
    for method in (NO_FIX, *places):
        found = series.get(method)
        if (
            found is None
            or len(found.conversations) < count
            or len(costs.get(method, {})) < max(answered, 1)
        ):
            raise RecordsError(
                f"The calibration in {folder} is not finished ({method} is missing or incomplete);"
                " repeat its command to go on."
            )
        points = np.full(count, np.nan)
        for conversation, (score, _) in costs[method].items():
            points[conversation] = 100 * score
        number, value = places.get(method, (None, ""))
        tokens = sum(tokens for _, tokens in costs[method].values())
        settings.append(
            Setting(
                method, number, value, found.stability, row_means(found.stability), points, tokens
            )
        )
    report = np.array([half_of(number, len(about["prompts"])) == 1 for number in range(count)])
    return Calibration(
        tuple(settings),
        tuple((sweep["name"], sweep["knob"]) for sweep in about["sweeps"]),
        report,
        about,
    )


def _costs(run: RunData) -> dict[str, dict[int, tuple[float, int]]]:
    """Per method and conversation, the mean score of its questions and the tokens forwarded for
    them.
    """
    found: dict[str, dict[int, tuple[float, int]]] = {}
    for record in run.records:
        mean = float(np.mean([probe["score"] for probe in record["probes"]]))
        found.setdefault(record["method"], {})[record["conversation"]] = (
            mean,
            record["tokens"]["forwarded"],
        )
    return found


def pareto(stability: Sequence[float], drop: Sequence[float]) -> list[bool]:
    """Which settings no other beats: none is as stable at as low a cost, and better in one of the
    two.
    """
    points = list(zip(stability, drop, strict=True))
    return [
        not any(s >= mine and d <= cost and (s, d) != (mine, cost) for s, d in points)
        for mine, cost in points
    ]


def pick(calibration: Calibration, budget: float) -> Pick:
    """Chooses on one half of the conversations and reports on the other, as the best of many looks
    better than it is where it was chosen.

    The choice is among the settings that the first half shows to be more stable and within the
    budget; where it shows none, among those whose mean cost is.

    Args:
        calibration: all settings.
        budget: points that may be lost on average, at least 0.

    Raises:
        KnobOutOfRange: a negative budget.
        UsageError: a half without questions.
    """
    budget = knobs.number_between("calibrate", "budget", budget, 0)
    here, there = ~calibration.report, calibration.report
    none = calibration.settings[0]
    if any(np.isnan(none.capability[half]).all() for half in (here, there)):
        raise UsageError(
            "One half of the conversations has no question, so no cost can be read there; ask more"
            " --questions."
        )
    others = calibration.settings[1:]
    # type: ignore[operator]
    fits = [none, *(one for one in others if calibration.drop(one, here).mean <= budget)]
    shown = [one for one in fits[1:] if not _missing(calibration, one, budget, here)]
    best = max(shown or fits, key=lambda one: float(np.nanmean(one.stability[here])))
    why = "it is the model as it is" if best is none else _missing(calibration, best, budget, there)
    return Pick(
        best.method,
        budget,
        float(np.nanmean(none.stability[there])),
        estimate(best.stability[there]),
        calibration.gain(best, there),
        calibration.drop(best, there),
        len(fits) == 1 and bool(others),
        why,
    )


def _missing(calibration: Calibration, setting: Setting, budget: float, keep: np.ndarray) -> str:
    """What these conversations lack to show that a setting is more stable and within the budget."""
    gain, drop = calibration.gain(setting, keep), calibration.drop(setting, keep)
    told = tell(gain)
    if few := too_few(gain) or too_few(drop):
        return few
    if told.sign <= 0:
        return f"its gain cannot be told ({told.why})" if told.why else "it is less stable"
    cost = within(drop, -math.inf, budget, -calibration.widest, calibration.widest)
    if cost == CONTRADICTED:
        return "it costs more than the budget"
    if cost == SUPPORTED:
        return ""
    most = bounds(drop, -calibration.widest, calibration.widest)[1]
    return (
        f"its cost may be up to {most:.1f} points"
        if math.isfinite(most)
        else "its cost has no bound"
    )


def answer(calibration: Calibration, chosen: Pick) -> str:
    """The one line for the user."""
    here, there = int((~calibration.report).sum()), int(calibration.report.sum())
    budget = f"at most {chosen.budget:g} points lost"
    if chosen.method == NO_FIX and here < LEAST:
        return (
            f"This run {CANNOT_TELL} which setting to use with {budget}: the {here} conversations"
            f" chosen on are fewer than {LEAST}; use more --draws."
        )
    if chosen.method == NO_FIX:
        missing = (
            f"every setting loses more than {chosen.budget:g} points on average"
            if chosen.none_fits
            else f"no setting with {budget} is more stable than the model as it is"
        )
        return (
            f"Nothing to recommend: on the {here} conversations chosen on, {missing}; "
            "raise --budget, or sweep other settings."
        )
    numbers = (
        f"{chosen.method}, stability {chosen.stability_none:.2f} -> {chosen.stability.mean:.2f}"
        f" ({_signed(chosen.gain)}), points lost {_signed(chosen.drop, 1)}; chosen on {here}"
        f" conversations, reported on the {there} others."
    )
    if chosen.recommended:
        return f"{budget.capitalize()}: use {numbers}"
    return (
        f"This run {CANNOT_TELL} which setting to use with {budget}. The likeliest is {numbers} "
        f"There {chosen.why}; {_cure(chosen)}."
    )


def _cure(chosen: Pick) -> str:
    """How much more would tell, if the means stay as they are."""
    gain, drop, room = chosen.gain, chosen.drop, chosen.budget - (chosen.drop.mean or 0.0)
    if not gain.mean or gain.mean < 0 or room <= 0 or gain.low is None or drop.low is None:
        return "use more --draws and --questions, or sweep other settings"
    halves = (gain.high - gain.low) / 2, (drop.high - drop.low) / 2  # type: ignore[operator]
    times = max(
        (halves[0] / gain.mean) ** 2, (halves[1] / room) ** 2, LEAST / gain.n, LEAST / drop.n, 1.5
    )
    if times > _MOST:
        return f"more than {_MOST} times as many --draws and --questions would be needed to tell"
    return f"about {times:.1f} times as many --draws and --questions would tell, if the means stay"


def table(calibration: Calibration) -> str:
    """Every setting: its stability, its capability, and both against none with 95 % intervals; a
    star marks the Pareto front.
    """
    rows = [("", "method", "stability", "against none", "", "capability", "points lost")]
    stars = front(calibration)
    for setting, star in zip(calibration.settings, stars, strict=True):
        plain = setting is calibration.settings[0]
        rows.append(
            (
                "*" if star else "",
                setting.method,
                f"{estimate(setting.stability).mean:.3f}",
                "" if plain else _signed(calibration.gain(setting), 3),
                "" if plain else tell(calibration.gain(setting)).word("higher", "lower"),
                f"{estimate(setting.capability).mean:.1f}",
                "" if plain else _signed(calibration.drop(setting), 1),
            )
        )
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    tokens = sum(setting.tokens for setting in calibration.settings)
    return "\n".join(
        [
            *lines,
            (
                f"* Pareto front of the means. Points are {calibration.unit} on"
                f" {calibration.about['capability']}; {tokens:,} tokens forwarded for them."
            ),
        ]
    )


def front(calibration: Calibration) -> list[bool]:
    """The Pareto front of all settings, over means of all conversations."""
    # type: ignore[arg-type]
    drops = [0.0, *(float(calibration.drop(setting).mean) for setting in calibration.settings[1:])]
    return pareto([float(np.nanmean(setting.stability)) for setting in calibration.settings], drops)


def ahead_at_cost(
    calibration: Calibration, ours: Sequence[Setting], others: Sequence[Setting]
) -> Estimate:
    """How much more stable ours are than the others at the same cost, on average.

    At a cost between those of two of the others (or none), they are what both are mixed: who takes
    the one in some conversations and the other in the rest has that cost and that stability. Beyond
    their dearest setting, they are that setting. The interval holds the uncertainty of the costs
    too, which are read again in every resample; there is no sd."""
    settings = (calibration.settings[0], *others, *ours)
    values = np.column_stack(
        [one.stability for one in settings] + [one.capability for one in settings]
    )

    def ahead(means: np.ndarray) -> float:
        stability, capability = means[: len(settings)], means[len(settings) :]
        cost = capability[0] - capability
        curve = np.argsort(cost[: len(others) + 1], kind="stable")
        return float(
            np.mean(
                stability[len(others) + 1 :]
                - np.interp(cost[len(others) + 1 :], cost[curve], stability[curve])
            )
        )

    low, high = bounds_of(np.array([ahead(means) for means in resampled_means(values)]))
    return Estimate(len(values), ahead(np.nanmean(values, 0)), None, low, high)


def write_method_file(calibration: Calibration, chosen: Pick, path: Path) -> None:
    """Writes the setting as a file that `drift --method` and `methods.parse` take; it says for
    which model it was chosen, and on what.
    """
    about = calibration.about
    content = {
        "method": chosen.method,
        "model": about["model"],
        "model_fingerprint": about["model_fingerprint"],
        "budget": chosen.budget,
        "capability": about["capability"],
        "prompts": about["prompts"],
        "stability_none": chosen.stability_none,
        "stability": _spread(chosen.stability),
        "gain": _spread(chosen.gain),
        "points_lost": _spread(chosen.drop),
    }
    write_whole(path, json.dumps(content, indent=1) + "\n")


def write_summary(calibration: Calibration, path: Path) -> None:
    """Writes the table as JSON."""
    rows = [
        {
            "method": setting.method,
            "front": star,
            "stability": _spread(estimate(setting.stability)),
            "gain": _spread(calibration.gain(setting)),
            "verdict": tell(calibration.gain(setting)).word("higher", "lower"),
            "capability": _spread(estimate(setting.capability)),
            "points_lost": _spread(calibration.drop(setting)),
            "tokens_forwarded": setting.tokens,
        }
        for setting, star in zip(calibration.settings, front(calibration), strict=True)
    ]
    content = {"about": calibration.about, "settings": rows}
    write_whole(path, json.dumps(content, indent=1) + "\n")


def _spread(found: Estimate) -> dict[str, float | int | None]:
    return {"mean": found.mean, "low": found.low, "high": found.high, "n": found.n}


def _signed(found: Estimate, digits: int = 2) -> str:
    if found.mean is None:
        return "not measured"
    return with_interval(found, lambda value: f"{round(value, digits) + 0.0:+.{digits}f}")
