"""How often `holdfast logs` agrees with hand-set labels on why a rule was broken.

`python benchmarks/causes.py --out benchmarks/results/causes.json`; no model is needed. The labels
(`tests/data/causes`) were set before the code was run on them. Nobody looked at the half `held-out`
before its first run; `hand` and `real` are a third set and `fresh` a fourth, which were added
later. All sets have been looked at since, so only the first runs
(`tests/data/causes/first_run.json`) show what to expect.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from labelled_transcripts import labels, load, load_blind, load_fresh, suite_file, write
from stamp import measured_on, write_record

from holdfast.analysis.statistics import share
from holdfast.drift import load_suite
from holdfast.logs import read_logs, score_logs
from holdfast.records import CAUSES

BARE = "real-without-recalled"  # the same dialogs under rules without their `recalled`
HALVES = ("develop", "held-out", "later", "hand", "real", BARE, "fresh")


def compare(dialog: dict, suite: dict, folder: Path) -> list[tuple[str, str, str]]:
    """The label and the cause of each breach of a dialog, with what identifies it."""
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
        (
            label.cause,
            causes[label.record, label.turn, label.rule],
            f"{label.dialog}, dialog {label.record + 1}, turn {label.turn}: {label.rule}",
        )
        for label in labels(dialog)
    ]


def result_of(dialogs: list[list[tuple[str, str, str]]]) -> dict:
    """Agreement with its 95% interval over dialogs, and the table of labels and causes."""
    same = [[sum(label == cause for label, cause, _ in pairs)] for pairs in dialogs]
    given = [[len(pairs)] for pairs in dialogs]
    (agreement,) = share(np.array(same, dtype=float), np.array(given, dtype=float))
    pairs = [pair for listed in dialogs for pair in listed]
    counts = Counter((label, cause) for label, cause, _ in pairs)
    return {
        "breaches": len(pairs),
        "agreement": round(agreement.mean, 4),
        "interval": [round(agreement.low, 4), round(agreement.high, 4)],
        "confusion": {
            label: {cause: counts[label, cause] for cause in CAUSES if counts[label, cause]}
            for label in CAUSES
        },
        "disagreements": [
            {"breach": breach, "label": label, "cause": cause}
            for label, cause, breach in pairs
            if label != cause
        ],
    }


def _suite(suite: dict, half: str) -> dict:
    if half != BARE:
        return suite
    rules = [{name: rule[name] for name in rule if name != "recalled"} for rule in suite["rules"]]
    return {**suite, "rules": rules}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--half", choices=HALVES, help="only this half")
    arguments = parser.parse_args()
    files = load(), load_blind(), load_fresh()
    suites = {name: suite for file in files for name, suite in file["suites"].items()}
    every = [dialog for file in files for dialog in file["dialogs"]]
    record: dict = {"measured_on": measured_on()}
    for half in HALVES if arguments.half is None else (arguments.half,):
        of_half = "real" if half == BARE else half
        dialogs = [dialog for dialog in every if dialog["half"] == of_half]
        with tempfile.TemporaryDirectory() as folder:
            compared = [
                compare(dialog, _suite(suites[dialog["suite"]], half), Path(folder))
                for dialog in dialogs
            ]
        record[half] = {"dialogs": len(dialogs), **result_of(compared)}
    write_record(record, arguments.out)


if __name__ == "__main__":
    main()
