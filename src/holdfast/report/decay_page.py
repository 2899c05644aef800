"""The page of `holdfast trace`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.files import write_whole
from holdfast.records import read_run
from holdfast.report.decay import lines, spelled
from holdfast.report.document import Document, Part, Table, head_facts, pictures
from holdfast.report.downloads import csv_file, json_file
from holdfast.report.summary import NAME, SCHEMA, write_summary
from holdfast.report.summary import spelled as summary_text

RUNS = ("model", "compared")  # the folders of the models, in their order
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
        "The mass there would be if attention were spread evenly over all tokens in sight.",
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


def decay_document(found: Sequence[dict[str, Any]], folder: Path) -> Document:
    """The page of what `report.decay.describe` says of one or two models, whose figures lie in
    `folder`/figures.
    """
    runs = [(name, read_run(folder / name)) for name, _ in zip(RUNS, found, strict=False)]
    first, last = (found[0]["average"]["mass"][at] for at in (0, -1))
    figures = folder / "figures"
    parts = (
        Part(
            "decay",
            "Token by token",
            (),
            _TERMS,
            pictures(
                figures,
                (
                    ("decay", "Mass at each generated token; the later the round, the darker"),
                    ("models", "The models side by side"),
                ),
            ),
            (
                Table(
                    "Change of the logarithm of the mass over a dialog, with 95 % intervals",
                    _changes(found),
                ),
            ),
        ),
        Part(
            "heads",
            "Head by head",
            pictures=pictures(
                figures, (("heads", "Mass in round 1, and its drop, in every head"),)
            ),
        ),
        Part(
            "behaviour",
            "Mass beside behaviour",
            (
                (
                    "A correlation is no proof of a cause: a model can keep an instruction it"
                    " hardly attends to, and lose one it still attends to."
                ),
            ),
            pictures=pictures(
                figures, (("mass_and_behaviour", "Stability of the probes by their mean mass"),)
            ),
            tables=(
                Table(
                    "Correlation of a probe’s mass with its score, with 95 % intervals",
                    _correlations(found),
                ),
            ),
        ),
        Part("words", "In words", tuple(line for one in found for line in lines(one))),
    )
    headline = (
        f"Of the attention of {found[0]['model']}, its system prompt gets {_share(first)} in round"
        f" 1 and {_share(last)} in round {found[0]['rounds']}."
    )
    files = (
        csv_file("curves.csv", "the mass at every step of every round", _curves(found)),
        json_file(NAME, "what was found, as in its folder", summary_text(summary(found))),
    )
    return Document(
        "trace",
        headline,
        (),
        head_facts(runs[0][1], f"{found[0]['dialogs']} dialogs of {found[0]['rounds']} rounds"),
        parts,
        files,
        tuple(runs),
    )


def write_summaries(found: Sequence[dict[str, Any]], folder: Path) -> None:
    """Writes `summary.json` of the traces and of the run of every model."""
    for name, _ in zip(RUNS, found, strict=False):
        write_summary(folder / name)
    write_whole(folder / NAME, summary_text(summary(found)))


def summary(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What was found, as JSON values, without the curves and the single probes."""
    results = [{name: value for name, value in one.items() if name != "curves"} for one in found]
    for one in results:
        one["behaviour"] = {
            name: value for name, value in one["behaviour"].items() if name != "probes"
        }
    identity = {"models": [one["model"] for one in found]}
    return {
        "schema": SCHEMA,
        "command": "trace",
        "identity": identity,
        "records": sum(one["dialogs"] for one in found),
        "results": json.loads(json.dumps(results)),
    }


def _share(mass: dict[str, Any]) -> str:
    text = f"{100 * mass['mean']:.1f} %"
    return (
        text
        if mass["low"] is None
        else f"{text} [{100 * mass['low']:.1f}, {100 * mass['high']:.1f}]"
    )


def _changes(found: Sequence[dict[str, Any]]) -> tuple[tuple[str, ...], ...]:
    rows = [("model and heads", "change", "measured", "even attention", "difference")]
    for one in found:
        for name, title in (
            ("average", "all heads"),
            ("head", "head {}.{}".format(*one["shown_head"])),
        ):
            for key, told in _CHANGES:
                change = one[name][key]
                rows.append(
                    (
                        f"{one['model']}, {title}",
                        told,
                        *(spelled(change[kind]) for kind in ("real", "uniform", "difference")),
                    )
                )
    return tuple(rows)


def _correlations(found: Sequence[dict[str, Any]]) -> tuple[tuple[str, ...], ...]:
    rows = [("model", "over all probes", "within rounds", "within dialogs", "between dialogs")]
    for one in found:
        kinds = ("all", "within_rounds", "within_dialogs", "between_dialogs")
        rows.append((one["model"], *(spelled(one["behaviour"][kind]) for kind in kinds)))
    return tuple(rows)


def _curves(found: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = [("model", "curve", "round", "token", "mass")]
    for one in found:
        for name, rounds in one["curves"].items():
            for number, curve in enumerate(rounds, start=1):
                rows += [
                    (one["model"], name, number, token, mass)
                    for token, mass in enumerate(curve, start=1)
                ]
    return rows
