"""Measures how often `holdfast logs` agrees with hand-set labels on why a rule was broken.

    python benchmarks/causes.py --out benchmarks/results/causes.json

No model is needed. The labels (`tests/data/causes`) were set before the code was run on them. The
first dialogs were in two halves, of which nobody looked at `held-out` before its first run; the
other parts were added later. All parts have been looked at since, so only the first runs
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

# the dialogs of `real` once more, under rules without `recalled`
REAL_WITHOUT_RECALLED = "real-without-recalled"
# parts of the labelled dialogs, which the data calls halves, as the first two were
PARTS = ("develop", "held-out", "later", "hand", "real", REAL_WITHOUT_RECALLED, "fresh")


class ExplainedBreach(NamedTuple):
    """A broken rule, and the cause of it by hand and by `holdfast logs`."""

    breach: str  # the dialog, the turn and the rule, in words
    label: str  # the cause as it was labelled by hand
    cause: str  # as `holdfast logs` found it


def explain_breaches(dialog: dict, suite: dict, folder: Path) -> list[ExplainedBreach]:
    """Finds the cause of each labelled breach of a dialog.

    Args:
        folder: for the files that `holdfast logs` reads and writes.
    """
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
        ExplainedBreach(
            breach=f"{label.dialog}, dialog {label.record + 1}, turn {label.turn}: {label.rule}",
            label=label.cause,
            cause=causes[label.record, label.turn, label.rule],
        )
        for label in labels(dialog)
    ]


def measure_part(part: str, all_dialogs: list[dict], suites: dict[str, dict]) -> dict:
    """Explains the breaches of one of `PARTS`."""
    half = part
    if part == REAL_WITHOUT_RECALLED:
        half = "real"
        suites = {name: without_recalled(suite) for name, suite in suites.items()}
    dialogs = [dialog for dialog in all_dialogs if dialog["half"] == half]
    with tempfile.TemporaryDirectory() as folder:
        explained = [
            explain_breaches(dialog, suites[dialog["suite"]], Path(folder)) for dialog in dialogs
        ]
    return {"dialogs": len(dialogs), **agreement_of(explained)}


def without_recalled(suite: dict) -> dict:
    """A suite whose rules have no `recalled`."""
    rules = [{name: rule[name] for name in rule if name != "recalled"} for rule in suite["rules"]]
    return {**suite, "rules": rules}


def agreement_of(breaches_by_dialog: list[list[ExplainedBreach]]) -> dict:
    """Agreement with its 95% interval over dialogs, and the table of labels and causes."""
    breaches = [breach for of_dialog in breaches_by_dialog for breach in of_dialog]
    agreeing = [
        [sum(breach.label == breach.cause for breach in of_dialog)]
        for of_dialog in breaches_by_dialog
    ]
    totals = [[len(of_dialog)] for of_dialog in breaches_by_dialog]
    (agreement,) = share(np.array(agreeing, dtype=float), np.array(totals, dtype=float))
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--half", choices=PARTS, help="only this part of the dialogs")
    arguments = parser.parse_args()
    files = load(), load_blind(), load_fresh()
    suites = {name: suite for file in files for name, suite in file["suites"].items()}
    dialogs = [dialog for file in files for dialog in file["dialogs"]]
    record: dict = {"measured_on": measured_on()}
    for part in PARTS if arguments.half is None else (arguments.half,):
        record[part] = measure_part(part, dialogs, suites)
    write_record(record, arguments.out)


if __name__ == "__main__":
    main()
