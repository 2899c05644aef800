"""Runs in Parquet and polars."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.cli import main
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
    frame = run.to_pandas()
    table = pandas.read_parquet(out)
    assert list(table.columns) == list(frame.columns)
    assert table["score"].tolist() == frame["score"].tolist()
    assert table["reply"].isna().tolist() == frame["reply"].isna().tolist()
    schema = pyarrow.parquet.read_schema(out)
    assert {str(kind) for kind in schema.types} <= {"string", "int64", "double"}
    assert json.loads(schema.metadata[b"holdfast.identity"]) == run.manifest.identity.to_json()
    by_polars = polars.DataFrame(run.to_columns())
    assert by_polars["score"].to_list() == frame["score"].tolist()
    assert polars.read_parquet(out).height == by_polars.height == len(frame)


def test_parquet_takes_text_that_is_not_valid_unicode(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow", reason="make integrations installs it")
    import pandas

    from holdfast.records import write_parquet

    run = read_run(DRIFT)
    first, *others = run.conversations
    probe = first.probes[0].model_copy(update={"reply": "half \ud83d of one"})
    edited = first.model_copy(update={"probes": (probe, *first.probes[1:])})
    run = replace(run, records=(edited, *others))
    table = pandas.read_parquet(write_parquet(run, tmp_path / "t.parquet"))
    assert table["reply"][0] == "half ? of one"
