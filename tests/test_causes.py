"""Why rules were broken: labelled transcripts, and each definition of docs/logs.md."""

import sys
from pathlib import Path

import pytest

from holdfast.drift import load_suite
from holdfast.logs import read_logs, score_logs

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import labelled_transcripts as labelled  # isort: skip

FILE = labelled.load()
LABELS = [label for dialog in FILE["dialogs"] for label in labelled.labels(dialog)]


def scored(tmp_path, dialog):
    """The run of a labelled dialog, under its suite."""
    suite = dict(FILE["suites"][dialog["suite"]])
    suite["rules"] = [
        {name: value for name, value in rule.items() if name != "unless"} for rule in suite["rules"]
    ]
    path = tmp_path / "suite.yaml"
    path.write_text(labelled.suite_file(suite, dialog["suite"]))
    logs = read_logs([labelled.write(dialog, tmp_path)])
    assert not logs.problems
    return score_logs(logs, load_suite(str(path), probed=False), tmp_path / "run")


@pytest.mark.parametrize("dialog", FILE["dialogs"], ids=lambda dialog: dialog["id"])
def test_every_breach_of_the_labelled_transcripts_has_a_label(dialog, tmp_path):
    run = scored(tmp_path, dialog)
    broken = [
        (record, probe.round, probe.rule)
        for record, logged in enumerate(run.dialogs)
        for probe in logged.probes
        if probe.score < 0.5
    ]
    assert sorted(broken) == sorted(
        (label.record, label.turn, label.rule) for label in labelled.labels(dialog)
    )


def test_there_are_enough_labels_and_half_of_the_dialogs_are_held_out():
    assert len(LABELS) >= 200
    halves = [dialog["half"] for dialog in FILE["dialogs"]]
    assert abs(halves.count("develop") - halves.count("held-out")) <= 4
