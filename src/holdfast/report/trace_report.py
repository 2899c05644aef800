"""The lines and the page of `holdfast trace`: how mass decays, and whether scores follow."""

from collections.abc import Sequence
from pathlib import Path

from holdfast.analysis.decay import Decay, MassChange, Trace
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.summary import MODELS
from holdfast.analysis.verdicts import MIN_SAMPLES, verdict_on
from holdfast.plurals import count_of
from holdfast.records import read_run
from holdfast.report.page import Table, pictures, render_study
from holdfast.report.wording import with_interval

_TOGETHER = "they rise together"
_OPPOSITE = "one falls as the other rises"
# the pictures of each section of the page, by the name of their file, and their titles
_PICTURES = {
    "decay": {
        "decay": "Mass at each generated token, a line for each round",
        "models": "The models side by side",
    },
    "heads": {"heads": "Mass in round 1, and its drop, in every head"},
    "behaviour": {"mass_and_behaviour": "Stability of the probes by their mean mass"},
}


def trace_lines(trace: Trace) -> list[str]:
    """Says how the mass on the system prompt decays, and whether it correlates with the score."""
    sentences = [_all_heads_line(trace), _shown_head_line(trace), correlations_line(trace)]
    if trace.whole_dialogs < MIN_SAMPLES:
        dialogs = count_of(trace.whole_dialogs, "whole dialog")
        sentences.append(
            f"With {dialogs}, this is an example and not a measurement, which takes {MIN_SAMPLES}."
        )
    return sentences


def _all_heads_line(trace: Trace) -> str:
    """The mass in the first round and the last, as the mean over all heads."""
    mass = trace.average.mass
    first, last = (with_interval(value, "{:.3f}".format) for value in (mass[0], mass[-1]))
    return (
        f"{trace.model}, all heads: mass {first} in round 1, {last} in round {trace.rounds}."
        f" {_log_changes(trace.average)}"
    )


def _shown_head_line(trace: Trace) -> str:
    """The same for the head whose mass falls most."""
    layer, head = trace.shown_head
    first = trace.head.mass[0].mean
    last = trace.head.mass[-1].mean
    return (
        f"{trace.model}, head {layer}.{head}, chosen because its mass falls most in one half of the"
        f" dialogs; in the other half: mass {first:.3f} in round 1, {last:.3f} in round"
        f" {trace.rounds}. {_log_changes(trace.head)}"
    )


def _log_changes(decay: Decay) -> str:
    """Compares the changes of the log of the mass with those under uniform attention."""
    between_turns = _beside_uniform_attention(decay.between_turns)
    within = _beside_uniform_attention(decay.within_turns)
    return f"Log of the mass between turns {between_turns}; within turns {within}."


def _beside_uniform_attention(change: MassChange) -> str:
    """'-0.31 [-0.40, -0.22], falls (uniform attention -0.12 [-0.15, -0.09])'."""
    change_text = _interval_and_verdict(change.real, "rises", "falls")
    return f"{change_text} (uniform attention {_interval_text(change.uniform)})"


def correlations_line(trace: Trace) -> str:
    """Says how the mass correlates with the score, or once that this cannot be measured."""
    correlations = _correlations_of(trace)
    if all(value.interval is None for value in correlations):
        return "The correlation of mass and score of the probes is not measurable."
    over_all, within_rounds, within_dialogs, between_dialogs = (
        _interval_and_verdict(value, _TOGETHER, _OPPOSITE) for value in correlations
    )
    return (
        f"Mass and score of the probes: over all r = {over_all}; within rounds r = {within_rounds};"
        f" within dialogs r = {within_dialogs}; between dialogs r = {between_dialogs}."
    )


def _correlations_of(trace: Trace) -> list[Estimate]:
    """The correlations over all probes, within rounds, within dialogs and between dialogs."""
    behaviour = trace.behaviour
    kinds = (
        behaviour.all,
        behaviour.within_rounds,
        behaviour.within_dialogs,
        behaviour.between_dialogs,
    )
    return [correlation.estimate for correlation in kinds]


def _interval_text(value: Estimate) -> str:
    """'+0.123 [+0.100, +0.145]'; 'not measurable' without an interval."""
    if value.interval is None:
        return "not measurable"
    return with_interval(value, "{:+.3f}".format)


def _interval_and_verdict(value: Estimate, above: str, below: str) -> str:
    """'+0.123 [+0.100, +0.145], rises', or '..., cannot tell'."""
    return f"{_interval_text(value)}, {verdict_on(value).word(above, below)}"


def trace_page(traces: Sequence[Trace], folder: Path) -> str:
    """The HTML of the page of one or two traced models."""
    first = traces[0]
    runs = {name: read_run(folder / name) for name in MODELS[: len(traces)]}
    figures_folder = folder / "figures"
    content = {
        **{name: pictures(figures_folder, titles) for name, titles in _PICTURES.items()},
        "changes": Table(
            "Change of the logarithm of the mass over a dialog, with 95% intervals",
            _changes_table(traces),
        ),
        "correlations": Table(
            "Correlation of a probe’s mass with its score, with 95% intervals",
            _correlations_table(traces),
        ),
        "words": [line for trace in traces for line in trace_lines(trace)],
    }
    return render_study(
        "trace",
        f"Of the attention of {first.model}, its system prompt gets"
        f" {_share_text(first.average.mass[0])} in round 1 and"
        f" {_share_text(first.average.mass[-1])} in round {first.rounds}.",
        content,
        runs=runs,
        facts=(f"{first.dialogs} dialogs of {first.rounds} rounds",),
    )


def _share_text(mass: Estimate) -> str:
    """'3.3% [3.0, 3.6]'."""
    share, _, interval = with_interval(mass, lambda value: f"{100 * value:.1f}").partition(" ")
    return f"{share}% {interval}".rstrip()


def _changes_table(traces: Sequence[Trace]) -> list[tuple[str, ...]]:
    """The changes of the mean over all heads and of the head that is shown, for each model."""
    rows: list[tuple[str, ...]] = [
        ("model and heads", "change", "measured", "uniform attention", "difference")
    ]
    for trace in traces:
        layer, head = trace.shown_head
        rows += _change_rows(f"{trace.model}, all heads", trace.average)
        rows += _change_rows(f"{trace.model}, head {layer}.{head}", trace.head)
    return rows


def _change_rows(heads: str, decay: Decay) -> list[tuple[str, ...]]:
    """The rows of the three changes of some heads."""
    changes = {
        "between turns": decay.between_turns,
        "within turns": decay.within_turns,
        "slope per token": decay.slope,
    }
    return [
        (
            heads,
            name,
            _interval_text(change.real),
            _interval_text(change.uniform),
            _interval_text(change.difference),
        )
        for name, change in changes.items()
    ]


def _correlations_table(traces: Sequence[Trace]) -> list[tuple[str, ...]]:
    """The correlations of each model."""
    rows: list[tuple[str, ...]] = [
        ("model", "over all probes", "within rounds", "within dialogs", "between dialogs")
    ]
    for trace in traces:
        rows.append((trace.model, *map(_interval_text, _correlations_of(trace))))
    return rows
