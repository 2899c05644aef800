"""The records that the documents quote: of the shipped weights, each made by a command."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

import holdfast

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"


def load(name: str):
    path = ROOT / "benchmarks" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


record_list = load("record_list")


def test_every_results_file_has_a_command():
    paths = [path.relative_to(RESULTS) for path in RESULTS.rglob("*.json")]
    names = {record.name for record in record_list.RECORDS}
    assert {path.with_suffix("").as_posix() for path in paths} == names
    for record in record_list.RECORDS:
        assert (ROOT / record.command.split()[0]).exists(), record.command


@pytest.mark.parametrize("record", record_list.RECORDS, ids=lambda record: record.name)
def test_a_record_names_what_it_was_measured_on(record):
    whole = json.loads((RESULTS / f"{record.name}.json").read_text())
    told = whole["measured_on"]
    assert told["commit"] and told["machine"] and told["versions"]["torch"]
    if record.default_model:
        # the fingerprint depends on the dtype that the weights were loaded in
        dtypes = {"float32", whole.get("dtype", "float32")}
        shipped = {holdfast.load("default", dtype=dtype).fingerprint for dtype in dtypes}
        assert told["fingerprint"] in shipped, (
            f"{record.name} was measured on other weights than those that ship; "
            f"run python benchmarks/records.py {record.name}"
        )


def test_only_differences_beyond_the_intervals_are_changes():
    def record(mean: float, verdict: str, ratios: tuple[float, ...]) -> dict:
        claim = {"text": "it falls.", "verdict": verdict}
        return {
            "measured_on": {"commit": str(mean)},
            "rows": [{"method": "none", "drop": {"mean": mean, "low": mean - 1, "high": mean + 1}}],
            "repetitions": [{"peer": {"ratio": ratio, "seconds": ratio}} for ratio in ratios],
            "figures": [{"kind": "Table", "number": "1", "claims": [claim]}],
        }

    old = record(0.0, "supported", (2.0, 3.0, 4.0))
    assert load("record_changes").changes(old, record(1.5, "supported", (3.5, 4.0, 5.0))) == []
    assert load("record_changes").changes(old, record(2.5, "undecided", (4.5, 5.0, 6.0))) == [
        "| /rows/none/drop | 0.000 [-1.000, 1.000] | 2.500 [1.500, 3.500] |",
        "| /repetitions/peer/ratio | 3.000 [2.000, 4.000] | 5.000 [4.500, 6.000] |",
        "| Table 1: it falls. | supported | undecided |",
    ]


def test_the_stamp_names_commit_machine_and_versions():
    stamp = load("stamp").measured_on(holdfast.load("default"))
    assert stamp["fingerprint"] == holdfast.load("default").fingerprint
    assert "cores" in stamp["machine"] and set(stamp["versions"]) >= {"torch", "transformers"}
    assert len(stamp["commit"].removesuffix("+changes")) == 40 or "unknown" in stamp["commit"]
