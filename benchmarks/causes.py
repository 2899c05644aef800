"""Measures how often `holdfast logs` agrees with hand-set labels on why a rule was broken.

    python benchmarks/causes.py --out benchmarks/results/causes.json

No model is needed. The labels (`tests/data/causes`) were set before the code was run on them.
Nobody looked at the half `held-out` before its first run; `hand` and `real` are a third set and
`fresh` a fourth, which were added later. All sets have been looked at since, so only the first runs
(`tests/data/causes/first_run.json`) show what to expect.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
from labelled_transcripts import labels, load, load_blind, load_fresh, suite_file, write
from stamp import measured_on, write_record

from holdfast.analysis.statistics import share
from holdfast.drift import load_suite
from holdfast.logs import read_logs, score_logs
from holdfast.records import CAUSES

BARE = "real-without-recalled"  # the same dialogs under rules without their `recalled`
HALVES = ("develop", "held-out", "later", "hand", "real", BARE, "fresh")


class LabelledBreach(NamedTuple):
    """A broken rule with two explanations."""

    breach: str  # the dialog, the turn and the rule, in words
    label: str  # the cause, set by hand
    cause: str  # as `holdfast logs` found it


def compare(dialog: dict, suite: dict, folder: Path) -> list[LabelledBreach]:
    """Explains each labelled breach of a dialog."""
    rules = folder / f"{dialog['suite']}.yaml"
    rules.write_text(suite_file(suite, dialog["suite"]), encoding="utf-8")
    logs = read_logs([write(dialog, folder)])
    run = score_logs(logs, load_suite(str(rules), probed=False), folder / f"run-{dialog['id']}")
    causes = {
        (number, probe.round, probe.rule): probe.cause.cause
        for number, record in enumerate(run.dialogs)
        for probe in record.probes
        if probe.cause is not None
    }
    return [
        LabelledBreach(
            breach=f"{label.dialog}, dialog {label.record + 1}, turn {label.turn}: {label.rule}",
            label=label.cause,
            cause=causes[label.record, label.turn, label.rule],
        )
        for label in labels(dialog)
    ]


def result_of(dialogs: list[list[LabelledBreach]]) -> dict:
    """Agreement with its 95% interval over dialogs, and the table of labels and causes."""
    agreeing = [[sum(breach.label == breach.cause for breach in breaches)] for breaches in dialogs]
    totals = [[len(breaches)] for breaches in dialogs]
    (agreement,) = share(np.array(agreeing, dtype=float), np.array(totals, dtype=float))
    breaches = [breach for of_dialog in dialogs for breach in of_dialog]
    counts = Counter((breach.label, breach.cause) for breach in breaches)
    return {
        "breaches": len(breaches),
        "agreement": round(agreement.mean, 4),
        "interval": [round(agreement.low, 4), round(agreement.high, 4)],
        "confusion": {
            label: {cause: counts[label, cause] for cause in CAUSES if counts[label, cause]}
            for label in CAUSES
        },
        "disagreements": [breach._asdict() for breach in breaches if breach.label != breach.cause],
    }


def without_recalled(suite: dict) -> dict:
    """A suite whose rules have no `recalled`."""
    rules = [{name: rule[name] for name in rule if name != "recalled"} for rule in suite["rules"]]
    return {**suite, "rules": rules}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--half", choices=HALVES, help="only this half")
    arguments = parser.parse_args()
    files = load(), load_blind(), load_fresh()
    suites = {name: suite for file in files for name, suite in file["suites"].items()}
    bare_suites = {name: without_recalled(suite) for name, suite in suites.items()}
    all_dialogs = [dialog for file in files for dialog in file["dialogs"]]
    record: dict = {"measured_on": measured_on()}
    for half in HALVES if arguments.half is None else (arguments.half,):
        label_of_half = "real" if half == BARE else half
        dialogs = [dialog for dialog in all_dialogs if dialog["half"] == label_of_half]
        suites_of_half = bare_suites if half == BARE else suites
        with tempfile.TemporaryDirectory() as folder:
            compared = [
                compare(dialog, suites_of_half[dialog["suite"]], Path(folder)) for dialog in dialogs
            ]
        record[half] = {"dialogs": len(dialogs), **result_of(compared)}
    write_record(record, arguments.out)


if __name__ == "__main__":
    main()
