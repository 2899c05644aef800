"""Run folders of every schema version (data/recorded): each opens, exports and continues."""

import csv
import dataclasses
import json
import shutil

import pytest
from fast_set import only_fast
from paths import ROOT

from holdfast import report
from holdfast.analysis.summary import summarise, write_summary
from holdfast.analysis.verdicts import verdict_on
from holdfast.cli import main
from holdfast.drift.run_identity import COMPATIBILITY
from holdfast.drift.settings import Settings
from holdfast.errors import RecordsError
from holdfast.records import drift_summary, open_run, read_run, run_table, to_line
from holdfast.records.identity import CalibrationIdentity, ConversationsIdentity, TasksIdentity
from holdfast.records.lines import to_manifest, without_checksum
from holdfast.records.manifest import CURRENT, version_of
from holdfast.records.mean_estimate import Estimate

RUNS = ROOT / "tests" / "data" / "recorded"
FOLDERS = sorted(path.parent for path in RUNS.rglob("manifest.json"))
DRIFT = [folder for folder in FOLDERS if folder.name in ("drift", "stability")]


PROBES = (
    "model suite seed method conversation agent category user user_category round kind rule probe"
    " question reply score reason mass turn_mass stop_reason rule_kind polarity pressure"
).split()
SCORES = "model data method sample task variant target reply name score".split()


def name_of(folder):
    return str(folder.relative_to(RUNS))


def plainly(folder):
    """The records of a folder, read without Holdfast."""
    return [json.loads(line) for line in (folder / "records.jsonl").read_text().splitlines()]


# Every version


def test_every_version_is_kept_and_has_a_reader():
    numbers = {version_of(json.loads((folder / "manifest.json").read_text())) for folder in FOLDERS}
    assert numbers == set(range(1, CURRENT + 1)), (
        "write folders of the new version into tests/data/recorded, as those there were written"
    )


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_a_folder_of_every_version_opens_and_is_summarised(folder):
    run = read_run(folder)
    assert len(run.records) == len(plainly(folder)) > 0
    assert run.manifest.version == CURRENT and "runtime" in run.manifest.identity.to_json()
    assert summarise(run).to_json()["results"]


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_a_summary_is_read_as_it_was_written(folder, tmp_path):
    shutil.copytree(folder, copy := tmp_path / "run")
    summary_json = json.loads(write_summary(copy).read_text(encoding="utf-8"))
    summary = read_run(copy).summary
    assert json.loads(json.dumps(summary.to_json())) == summary_json
    assert bool(summary.methods) is (summary_json["command"] == "drift")


def test_a_summary_of_another_version_is_read_as_far_as_possible(tmp_path):
    shutil.copytree(RUNS / "schema-3" / "drift", tmp_path / "run")
    run = read_run(tmp_path / "run")
    summary_json = json.loads(write_summary(run.folder).read_text(encoding="utf-8"))
    path = run.folder / "summary.json"
    path.write_text(json.dumps({**summary_json, "more": 1}), encoding="utf-8")
    assert run.summary.outcome == summary_json["results"][0]["outcome"]
    old = [{"method": "none", "conversations": 2}]  # of a version without outcomes
    path.write_text(json.dumps({**summary_json, "results": old}), encoding="utf-8")
    assert run.summary.results == old and run.summary.outcome is None
    for unreadable in ("{", "[]", "{}"):
        path.write_text(unreadable, encoding="utf-8")
        assert run.summary is None


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_a_folder_of_every_version_is_exported(folder, tmp_path, capsys):
    out = tmp_path / "table.csv"
    assert main(["export", str(folder), "--csv", str(out)]) == 0
    assert str(out) in capsys.readouterr().out
    with open(out, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    lines = plainly(folder)
    if "scores" in lines[0]:
        assert list(rows[0]) == SCORES
        scores = [score for line in lines for score in line["scores"].values()]
    else:
        assert list(rows[0]) == PROBES
        scores = [probe["score"] for line in lines for probe in line["probes"]]
        replies = [probe["reply"] for line in lines for probe in line["probes"]]
        assert [row["reply"] for row in rows] == replies
    assert [float(row["score"]) for row in rows] == scores
    frame = read_run(folder).to_pandas()
    assert list(frame.columns) == list(rows[0]) and list(frame["score"]) == scores


@pytest.mark.parametrize("folder", only_fast(DRIFT, DRIFT[0], DRIFT[-1]), ids=name_of)
def test_a_page_is_written_for_every_version(folder, tmp_path):
    page = report.write([folder], tmp_path / "report.html").read_text(encoding="utf-8")
    first = plainly(folder)[0]
    assert first["agent"]["id"] in page and page.rstrip().endswith("</html>")


@pytest.mark.parametrize("version", ["schema-1", "schema-2", "schema-3"])
def test_a_run_of_every_version_can_be_continued(version, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(RUNS / version / "drift", folder)
    identity = json.loads((folder / "manifest.json").read_text())["identity"]
    settings = {**identity["settings"], "conversations": 4}
    identity["settings"] = {**dataclasses.asdict(Settings()), **settings}
    about = {"command": "drift", "argv": "holdfast drift --conversations 4"}
    before = plainly(folder)
    with open_run(folder, identity, about, COMPATIBILITY) as run:
        run.append(read_run(folder).records[0].model_copy(update={"conversation": 3}))
    assert len(read_run(folder).records) == len(before) + 1
    assert json.loads((folder / "manifest.json").read_text())["schema"] == CURRENT


@pytest.mark.parametrize("folder", FOLDERS, ids=name_of)
def test_a_record_of_every_version_is_written_as_it_was_read(folder):
    for line, record in zip(plainly(folder), read_run(folder).records, strict=True):
        line.pop("crc32", None)
        assert json.dumps(record.to_json()) == json.dumps(line)


# Unknown versions


UNKNOWN = [
    (CURRENT + 1, f"written by a newer Holdfast (schema {CURRENT + 1}; this one reads up to"),
    ("three", "has the schema 'three', which is not a version"),
    (0, "has the schema 0, which is not a version"),
]


@pytest.mark.parametrize(("version", "sentence"), UNKNOWN)
def test_an_unknown_version_is_refused(version, sentence, tmp_path, capsys):
    folder = tmp_path / "run"
    shutil.copytree(RUNS / "schema-3" / "drift", folder)
    path = folder / "manifest.json"
    manifest = json.loads(without_checksum(path.read_bytes())[0])
    path.write_bytes(to_manifest({**manifest, "schema": version}))
    with pytest.raises(RecordsError) as excinfo:
        read_run(folder)
    assert sentence in str(excinfo.value) and str(path) in str(excinfo.value)
    for command in (["report", str(folder)], ["export", str(folder), "--csv", "x.csv"]):
        assert main(command) == 1
        assert sentence in capsys.readouterr().err
    with pytest.raises(RecordsError, match="schema"):
        open_run(folder, manifest["identity"], {"command": "drift"}, COMPATIBILITY)


def test_the_identity_of_another_commands_run_is_refused():
    run = read_run(RUNS / "schema-3" / "drift")
    assert run.identity_as(ConversationsIdentity) is run.manifest.identity
    for kind, command in ((TasksIdentity, "tasks"), (CalibrationIdentity, "calibrate")):
        with pytest.raises(RecordsError) as excinfo:
            run.identity_as(kind)
        assert (excinfo.value.value, excinfo.value.allowed) == ("drift", [command])
        assert str(run.folder) in str(excinfo.value)


# Exports and tables


def test_a_table_can_be_a_plain_dict(tmp_path):
    columns = read_run(RUNS / "schema-3" / "drift").to_columns()
    assert list(columns) == PROBES and len({len(column) for column in columns.values()}) == 1
    assert set(columns["rule"]) == {None} and all(0 < mass < 1 for mass in columns["turn_mass"])


def test_a_row_without_a_column_is_an_error_not_an_empty_cell(monkeypatch):
    run = read_run(RUNS / "schema-3" / "drift")
    columns = (*run_table.PROBE_COLUMNS, run_table.Column("polarty", str))
    monkeypatch.setattr(run_table, "PROBE_COLUMNS", columns)
    with pytest.raises(KeyError, match="polarty"):
        run.to_table()


def test_texts_of_any_kind_survive_a_table(tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(RUNS / "schema-3" / "drift", folder)
    texts = ['a "quoted", comma', "two\nlines\r\nand more", "=1+1", "é 東 🙂", ""]
    lines = []
    for record in plainly(folder):
        record.pop("crc32")
        for probe, text in zip(record["probes"], texts, strict=False):
            probe["reply"] = text
        lines.append(to_line(record))
    (folder / "records.jsonl").write_bytes(b"".join(lines))
    assert main(["export", str(folder), "--csv", str(tmp_path / "t.csv")]) == 0
    with open(tmp_path / "t.csv", encoding="utf-8", newline="") as file:
        replies = [row["reply"] for row in csv.DictReader(file)]
    assert read_run(folder).to_pandas()["reply"].tolist()[:4] == texts[:4]
    assert replies[:4] == [*texts[:2], "'=1+1", texts[3]], "a spreadsheet would run the formula"


REFUSED = [
    (["nowhere", "--csv", "t.csv"], 2, "nowhere is not a run: it does not exist"),
    ([str(RUNS / "schema-3/drift"), "--csv", "/proc/no/t.csv"], 1, "Cannot write /proc/no"),
    ([str(RUNS / "schema-3/drift")], 2, "--parquet"),
]


@pytest.mark.parametrize(("words", "code", "sentence"), REFUSED)
def test_exports_that_cannot_work_are_refused(words, code, sentence, capsys):
    assert main(["export", *words]) == code
    assert sentence in capsys.readouterr().err


def test_a_row_has_all_digits_until_it_is_written():
    value = Estimate(40, 1 / 3, 0.5, -1e-9, 0.7)
    row = drift_summary.RuleSummary(
        rule="signs",
        n=40,
        stability_by_round=(value,),
        first_broken_by_round=(3,),
        kept_throughout=37,
        kept_in_any_round=40,
        never_followed=False,
        change=verdict_on(value),
        lower_from_round=None,
        lower_in_rounds=(),
        against=None,
    )
    assert row.stability_by_round[0].mean == row.change.mean == 1 / 3
    row_json = json.dumps(row.to_json())
    assert "0.333333," in row_json and "-0.0" not in row_json
    assert drift_summary.RuleSummary.model_validate(json.loads(row_json)).change.mean == 0.333333
