"""Dialogs in all formats, whose verdicts and causes were set by hand before the code was run.

A line of `data/log_verdicts.jsonl` has a log, a rule, and for each turn whether it keeps the rule
(null: the rule does not apply), then the cause of each breach and the user's messages where they
matter, and whether something has to be reported as left out.
"""

import json

import pytest
from paths import ROOT

from holdfast.drift import load_suite
from holdfast.logs import read_logs
from holdfast.logs.turn_scoring import score_dialog
from holdfast.records import LogProbe
from holdfast.transcripts import FORMATS

ROWS = [json.loads(line) for line in (ROOT / "tests/data/log_verdicts.jsonl").open()]


def test_every_format_has_a_dialog():
    assert {row["format"] for row in ROWS} == {*FORMATS} - {"run"}


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['group']}: {row['name']}" for row in ROWS])
def test_a_dialog_gets_its_verdicts_and_causes(row, tmp_path):
    for name, content in row["files"].items():
        path = tmp_path / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8", newline="")
    case = {"id": "c", "system_prompt": row["system"], "rules": [row["rule"]]}
    (tmp_path / "suite.yaml").write_text(json.dumps({"cases": [case]}))
    suite = load_suite(str(tmp_path / "suite.yaml"), probed=False)
    logs = read_logs(tmp_path / "logs")
    kept: list[bool | None] = []
    causes: list[str] = []
    for dialog in sorted(logs.dialogs, key=lambda dialog: dialog.source):
        outcomes = score_dialog(dialog, suite.cases[0]).outcomes
        scores = {score.round: score for score in outcomes if isinstance(score, LogProbe)}
        for turn in dialog.turns:
            score = scores.get(turn.number)
            kept.append(None if score is None else score.score >= 0.5)
            if score is not None and score.cause is not None:
                causes.append(score.cause.cause)
    assert [*logs.formats] == [row["format"]]
    assert kept == row["kept"]
    if "causes" in row:
        assert causes == row["causes"]
    if "users" in row:
        assert [turn.user for dialog in logs.dialogs for turn in dialog.turns] == row["users"]
    assert bool(logs.problems) is row.get("reports", False)
