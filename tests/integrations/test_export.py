"""Runs in Parquet, polars, Weights & Biases (offline) and MLflow (a database in a folder)."""

import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.analysis.series import read_series
from holdfast.cli import main
from holdfast.errors import RecordsError
from holdfast.integrations.trackers import entries_of
from holdfast.records import read_run

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
FOLDERS = sorted(path.parent for path in RECORDED.rglob("manifest.json"))
DRIFT = RECORDED / "schema-3" / "drift"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(RECORDED)))
def test_parquet_of_every_version(folder, tmp_path):
    pytest.importorskip("pyarrow", reason="make integrations installs it")
    polars = pytest.importorskip("polars", reason="make integrations installs it")
    import pandas
    import pyarrow.parquet

    out = tmp_path / "table.parquet"
    assert main(["export", str(folder), "--parquet", str(out)]) == 0
    run = read_run(folder)
    frame = run.frame()
    table = pandas.read_parquet(out)
    assert list(table.columns) == list(frame.columns)
    assert table["score"].tolist() == frame["score"].tolist()
    assert table["reply"].isna().tolist() == frame["reply"].isna().tolist()
    schema = pyarrow.parquet.read_schema(out)
    assert {str(kind) for kind in schema.types} <= {"string", "int64", "double"}
    assert json.loads(schema.metadata[b"holdfast.identity"]) == run.manifest["identity"]
    by_polars = run.frame(polars.DataFrame)
    assert by_polars["score"].to_list() == frame["score"].tolist()
    assert polars.read_parquet(out).height == by_polars.height == len(frame)


def test_parquet_takes_a_text_that_is_no_unicode(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow", reason="make integrations installs it")
    import pandas

    from holdfast.records import write_parquet

    run = read_run(DRIFT)
    run.records[0]["probes"][0]["reply"] = "half \ud83d of one"
    table = pandas.read_parquet(write_parquet(run, tmp_path / "t.parquet"))
    assert table["reply"][0] == "half ? of one"


def test_wandb_offline_holds_the_curves(tmp_path):
    pytest.importorskip("wandb", reason="make integrations installs it")
    ran = subprocess.run(
        [sys.executable, "-m", "holdfast", "export", str(DRIFT), "--wandb", "drift-tests"],
        env={**os.environ, "WANDB_MODE": "offline", "WANDB_DIR": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == [
        "Logged to the project drift-tests: drift · none",
        "Logged to the project drift-tests: drift · split-softmax:exponent=0.5",
    ]
    entries = entries_of(read_run(DRIFT))
    logs = {path.parent.name[-16:]: path for path in tmp_path.rglob("*.wandb")}
    assert sorted(logs) == sorted(entry.id for entry in entries)
    for entry in entries:
        rows, summary, config = _read_wandb(logs[entry.id])
        assert [row["round"] for row in rows] == [1, 2]
        assert [row["stability"] for row in rows] == entry.curves["stability"]
        assert config["method"] == entry.settings["method"] and config["settings.rounds"] == 2
        assert summary["stability_over_all_rounds"] == entry.totals["stability_over_all_rounds"]


def _read_wandb(path):
    """The history, the summary and the config of an offline log."""
    from wandb.proto import wandb_internal_pb2

    rows, summary, config = [], {}, {}
    for data in _log_records(path.read_bytes()):
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        for told, items in (
            (rows.append, record.history.item),
            (summary.update, record.summary.update),
            (config.update, record.run.config.update),
        ):
            if items:
                told({(i.key or i.nested_key[0]): json.loads(i.value_json) for i in items})
    return rows, summary, config


def _log_records(data, block=32768):
    """The records of a log in LevelDB's format, behind a header of seven bytes."""
    place, parts = 7, b""
    while place + 7 <= len(data):
        if block - place % block < 7:  # the rest of a block too short for a header is empty
            place += block - place % block
            continue
        _, length, kind = struct.unpack("<IHB", data[place : place + 7])
        parts += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield parts
            parts = b""


def test_wandb_without_an_account_is_one_sentence(tmp_path):
    pytest.importorskip("wandb", reason="make integrations installs it")
    env = {name: value for name, value in os.environ.items() if not name.startswith("WANDB")}
    ran = subprocess.run(
        [sys.executable, "-m", "holdfast", "export", str(DRIFT), "--wandb", "drift-tests"],
        env={**env, "HOME": str(tmp_path), "WANDB_DIR": str(tmp_path)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 1
    assert "wandb does not take the run (No API key configured" in ran.stderr
    assert "WANDB_MODE=offline" in ran.stderr and "Traceback" not in ran.stderr


def test_mlflow_holds_the_curves_once(tmp_path, capsys):
    mlflow = pytest.importorskip("mlflow", reason="make integrations installs it")
    for _ in range(2):  # the second adds nothing
        assert main(["export", str(DRIFT), "--mlflow", str(tmp_path / "store")]) == 0
    assert "drift · split-softmax:exponent=0.5" in capsys.readouterr().out
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'store' / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("holdfast").experiment_id
    logged = {run.data.params["method"]: run for run in client.search_runs([experiment])}
    assert len(client.search_runs([experiment])) == 2
    for series in read_series(read_run(DRIFT)):
        run = logged[series.method]
        points = client.get_metric_history(run.info.run_id, "stability")
        means = {point.step: point.value for point in points}
        assert means == dict(enumerate(series.stability.mean(axis=0), start=1))
        assert run.data.params["settings.rounds"] == "2"
        kept = {file.path for file in client.list_artifacts(run.info.run_id)}
        assert kept == {"manifest.json", "records.jsonl"}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: str(path.relative_to(RECORDED)))
def test_every_kind_of_run_has_entries(folder):
    entries = entries_of(read_run(folder))
    assert entries and len({entry.id for entry in entries}) == len(entries)
    assert all(entry.totals for entry in entries)


def test_mlflow_that_cannot_be_reached_is_one_sentence(tmp_path):
    pytest.importorskip("mlflow", reason="make integrations installs it")
    from holdfast.integrations.trackers import log_to_mlflow

    (tmp_path / "file").write_text("")
    with pytest.raises(RecordsError, match="MLflow does not take the run"):
        log_to_mlflow(read_run(DRIFT), str(tmp_path / "file"))
