"""The page of `holdfast trace`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.analysis.study_summary import MODELS, trace_summary
from holdfast.analysis.summary import NAME
from holdfast.analysis.summary import spelled as summary_text
from holdfast.records import read_run
from holdfast.report.decay import lines, spelled
from holdfast.report.document import Document, Part, Table, head_facts, pictures
from holdfast.report.downloads import csv_file, json_file

_TERMS = (
    (
        "Mass",
        (
            "The share of the agent’s attention, at one generated token, that falls on its system"
            " prompt."
        ),
    ),
    (
        "Even attention",
        (
            "The mass there would be if every layer spread its attention evenly over the tokens"
            " that it sees, which a sliding window limits; the mean over the layers."
        ),
    ),
    (
        "Between turns",
        (
            "The change of the logarithm of the mass from the end of one turn to the start of the"
            " next, summed over a dialog."
        ),
    ),
    ("Within turns", "The same from the start of a turn to its end."),
    ("Round", "One turn of the user model and one of the agent."),
    (
        "Probe",
        (
            "A question asked in a copy of the dialog at a round, whose reply is scored and thrown"
            " away."
        ),
    ),
)
_CHANGES = (
    ("between_turns", "between turns"),
    ("within_turns", "within turns"),
    ("slope", "slope per token"),
)


def decay_document(traces: Sequence[dict[str, Any]], folder: Path) -> Document:
    """The page of what `analysis.decay.describe` says of one or two models, whose figures lie in
    `folder`/figures.
    """
    runs = [(name, read_run(folder / name)) for name, _ in zip(MODELS, traces, strict=False)]
    first, last = (traces[0]["average"]["mass"][at] for at in (0, -1))
    figures = folder / "figures"
    parts = (
        _decay_part(traces, figures),
        Part(
            "heads",
            "Head by head",
            pictures=pictures(
                figures, (("heads", "Mass in round 1, and its drop, in every head"),)
            ),
        ),
        _behaviour_part(traces, figures),
        Part("words", "In words", tuple(line for trace in traces for line in lines(trace))),
    )
    headline = (
        f"Of the attention of {traces[0]['model']}, its system prompt gets {_share(first)} in round"
        f" 1 and {_share(last)} in round {traces[0]['rounds']}."
    )
    files = (
        csv_file("curves.csv", "the mass at every step of every round", _curves(traces)),
        json_file(NAME, "what was found, as in its folder", summary_text(trace_summary(traces))),
    )
    return Document(
        "trace",
        headline,
        (),
        head_facts(runs[0][1], f"{traces[0]['dialogs']} dialogs of {traces[0]['rounds']} rounds"),
        parts,
        files,
        tuple(runs),
    )


def _decay_part(traces: Sequence[dict[str, Any]], figures: Path) -> Part:
    drawn = (
        ("decay", "Mass at each generated token; the later the round, the darker"),
        ("models", "The models side by side"),
    )
    caption = "Change of the logarithm of the mass over a dialog, with 95 % intervals"
    return Part(
        "decay",
        "Token by token",
        definitions=_TERMS,
        pictures=pictures(figures, drawn),
        tables=(Table(caption, _changes(traces)),),
    )


def _behaviour_part(traces: Sequence[dict[str, Any]], figures: Path) -> Part:
    drawn = (("mass_and_behaviour", "Stability of the probes by their mean mass"),)
    correlations = "Correlation of a probe’s mass with its score, with 95 % intervals"
    warning = (
        "A correlation is no proof of a cause: a model can keep an instruction it hardly attends"
        " to, and lose one it still attends to."
    )
    return Part(
        "behaviour",
        "Mass beside behaviour",
        (warning,),
        pictures=pictures(figures, drawn),
        tables=(Table(correlations, _correlations(traces)),),
    )


def _share(mass: dict[str, Any]) -> str:
    text = f"{100 * mass['mean']:.1f} %"
    return (
        text
        if mass["low"] is None
        else f"{text} [{100 * mass['low']:.1f}, {100 * mass['high']:.1f}]"
    )


def _changes(traces: Sequence[dict[str, Any]]) -> tuple[tuple[str, ...], ...]:
    rows: list[tuple[str, ...]] = [
        ("model and heads", "change", "measured", "even attention", "difference")
    ]
    for trace in traces:
        for name, title in (
            ("average", "all heads"),
            ("head", "head {}.{}".format(*trace["shown_head"])),
        ):
            for key, told in _CHANGES:
                change = trace[name][key]
                rows.append(
                    (
                        f"{trace['model']}, {title}",
                        told,
                        *(spelled(change[kind]) for kind in ("real", "uniform", "difference")),
                    )
                )
    return tuple(rows)


def _correlations(traces: Sequence[dict[str, Any]]) -> tuple[tuple[str, ...], ...]:
    rows = [("model", "over all probes", "within rounds", "within dialogs", "between dialogs")]
    for trace in traces:
        kinds = ("all", "within_rounds", "within_dialogs", "between_dialogs")
        rows.append((trace["model"], *(spelled(trace["behaviour"][kind]) for kind in kinds)))
    return tuple(rows)


def _curves(traces: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = [("model", "curve", "round", "token", "mass")]
    for trace in traces:
        for name, rounds in trace["curves"].items():
            for number, curve in enumerate(rounds, start=1):
                rows += [
                    (trace["model"], name, number, token, mass)
                    for token, mass in enumerate(curve, start=1)
                ]
    return rows
