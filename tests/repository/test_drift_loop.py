"""The benchmark of the drift loop continues a record only if its repetitions can be compared."""

import json
import sys

import pytest
from paths import ROOT

import holdfast

sys.path.insert(0, str(ROOT / "benchmarks"))
import drift_loop

EARLIER = [{"seed": 0}]


@pytest.mark.parametrize(
    ("options", "is_continued"),
    [
        ("--suite starter", True),
        ("--suite starter --repetitions 5", True),
        ("", False),
        ("--suite starter --temperature 0.1", False),
        ("--suite starter --seeds 7", False),
        ("--suite starter --chat-template plain", False),
        ("--suite starter --threads 1", False),
    ],
)
def test_a_record_is_continued_only_under_the_same_conditions(
    options, is_continued, tmp_path, monkeypatch
):
    model = holdfast.load("default")

    def conditions_under(options: str) -> dict:
        monkeypatch.setattr(sys, "argv", ["drift_loop.py", *options.split()])
        return drift_loop.conditions_of(drift_loop.parse_arguments(), model)

    out = tmp_path / "drift_loop.json"
    out.write_text(json.dumps({**conditions_under("--suite starter"), "repetitions": EARLIER}))
    repetitions = drift_loop.earlier_repetitions(out, conditions_under(options))
    assert repetitions == (EARLIER if is_continued else [])
