"""What the traces of a model say, in lines: how the mass on the system prompt decays, and whether
it goes with the score.
"""

from __future__ import annotations

from typing import Any

from holdfast.analysis.statistics import Estimate
from holdfast.analysis.verdicts import LEAST, tell
from holdfast.report.wording import with_interval

_WHERE = (
    ("all", "over all"),
    ("within_rounds", "within rounds"),
    ("within_dialogs", "within dialogs"),
    ("between_dialogs", "between dialogs"),
)


def lines(trace: dict[str, Any]) -> list[str]:
    """What `analysis.decay.describe` measured, a line each."""
    layer, head = trace["shown_head"]
    chosen = "" if trace["head_was_given"] else ", whose mass falls most in these dialogs"
    told = [
        _decay_line(trace, "average", "all heads"),
        _decay_line(trace, "head", f"head {layer}.{head}{chosen}"),
        _behaviour_line(trace["behaviour"]),
    ]
    if trace["whole_dialogs"] < LEAST:
        told.append(
            f"{trace['whole_dialogs']} whole dialogs are an example and not a measurement, "
            f"which takes {LEAST}."
        )
    return told


def _decay_line(trace: dict[str, Any], name: str, title: str) -> str:
    row = trace[name]
    between, within = row["between_turns"], row["within_turns"]
    first, last = (_mass(row["mass"][at]) for at in (0, -1))
    return (
        f"{trace['model']}, {title}: mass {first} in round 1, {last} in"
        f" round {trace['rounds']}. Log of the mass between turns"
        f" {judged(between['real'], 'rises', 'falls')} (even attention"
        f" {spelled(between['uniform'])}); within turns"
        f" {judged(within['real'], 'rises', 'falls')} (even attention"
        f" {spelled(within['uniform'])})."
    )


def _mass(mean: dict[str, Any]) -> str:
    """0.148 [0.140, 0.156]."""
    return with_interval(_estimate(mean), lambda value: f"{value:.3f}")


def _behaviour_line(behaviour: dict[str, Any]) -> str:
    words = "they rise together", "one falls as the other rises"
    parts = [f"{where} r = {judged(behaviour[name], *words)}" for name, where in _WHERE]
    return f"Mass and score of the probes: {'; '.join(parts)}."


def spelled(change: dict[str, Any]) -> str:
    """+0.123 [+0.100, +0.145]."""
    if change.get("low") is None:
        return "not measurable"
    return with_interval(_estimate(change), lambda value: f"{value:+.3f}")


def judged(change: dict[str, Any], above: str, below: str) -> str:
    """+0.123 [+0.100, +0.145], rises; or, cannot tell."""
    return f"{spelled(change)}, {tell(_estimate(change)).word(above, below)}"


def _estimate(value: dict[str, Any]) -> Estimate:
    """A change or a correlation as it stands in the JSON."""
    mean = value["mean"] if "mean" in value else value["r"]
    return Estimate(value["n"], mean, None, value["low"], value["high"], value.get("moved"))
