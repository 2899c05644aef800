"""Pages of every command, their data and `summary.json`, without a model."""

import itertools
import json
import random
import re

import numpy as np
import pytest
from hostile_pages import hostile, rewrite
from page_outline import read_page
from synthetic_run import as_json, write_run

from holdfast import report
from holdfast.analysis.series import read_series
from holdfast.analysis.statistics import SCORES, estimate_columns
from holdfast.cli import main
from holdfast.cli.command_list import command_named
from holdfast.errors import RecordsError
from holdfast.records import TaskSample, open_run, read_run
from holdfast.report.task_tables import tasks_page

PAGES = ("drift", "trace", "geometry", "calibrate", "tasks", "profile")


def tasks_run(folder, samples=6):
    """A run of two tasks under two variants, the second with the higher fluency."""
    names, variants = ["json", "bios"], ["zero-shot", "boost:factor=4"]
    settings = {"tasks": names, "split": "test", "instruction": "original"}
    identity = {"model": "m", "variants": variants, "settings": settings}
    about = {"command": "tasks", "argv": "holdfast tasks"}
    with open_run(folder, identity, about) as run:
        for task, (gain, variant) in itertools.product(names, enumerate(variants)):
            for number in range(samples):
                scores = {"accuracy": float((number + gain) % 3 > 0)}
                record = {"method": f"{task} {variant}", "conversation": number, "task": task}
                record |= {"variant": variant, "draw": 0, "scores": scores}
                run.append(TaskSample.model_validate({**record, "fluency": 4.0 + gain}))
    return read_run(folder)


def test_a_summary_says_what_the_records_say(tmp_path):
    folder = write_run(tmp_path / "run", conversations=24, rounds=3)
    summary = json.loads(report.write_summary(folder).read_text(encoding="utf-8"))
    assert (summary["schema"], summary["command"], summary["records"]) == (2, "drift", 48)
    assert summary["identity"] == read_run(folder).manifest.identity.to_json()
    series = read_series(read_run(folder))
    for item, method in zip(series, summary["results"], strict=True):
        assert method["method"] == item.method and method["conversations"] == 24
        for kind in ("stability", "adoption", "mass"):
            means = [point["mean"] for point in method["by_round"][kind]]
            expected = [point.mean for point in estimate_columns(item.values(kind), SCORES)]
            assert means == pytest.approx(expected, abs=1e-6)
        assert sum(prompt["n"] for prompt in method["prompts"]) == 24
    none, fix = summary["results"]
    assert none["against"] is None and fix["against"]["method"] == "none"
    assert fix["against"]["pairs"] == 24
    by_hand = np.mean(series[1].stability[:, -1] - series[0].stability[:, -1])
    assert fix["against"]["stability"]["last_round"]["mean"] == pytest.approx(by_hand, abs=1e-6)
    assert none["baseline"] is None and fix["baseline"] is None
    fall = none["change"]["stability"]
    assert fall["mean"] < 0 and (fall["verdict"] == "lower") == (fall["why"] is None)


def test_a_summary_reports_each_rule(tmp_path):
    folder = write_run(tmp_path / "run", conversations=6, rounds=2, methods=("none",))
    records = as_json(read_run(folder))
    for record in records:
        record["agent"]["id"] = "bot"
        for probe in record["probes"]:
            probe.update(rule="price", score=float(probe["round"] == 1))
    rewrite(folder, records)
    (rule,) = json.loads(report.write_summary(folder).read_text())["results"][0]["rules"]
    assert (rule["rule"], rule["n"], rule["kept_throughout"]) == ("price", 6, 0)
    assert rule["first_broken_by_round"] == [0, 6]
    assert [point["mean"] for point in rule["stability_by_round"]] == [1.0, 0.0]


def test_a_summary_derived_again_is_identical_to_the_byte(tmp_path):
    folder = write_run(tmp_path / "run", conversations=12, rounds=2, nasty=True)
    first = report.write_summary(folder).read_bytes()
    records = as_json(read_run(folder))
    random.Random(1).shuffle(records)  # as if batches had ended in another order
    rewrite(folder, records, resumed=[{"created": "2027-01-01"}])
    assert report.write_summary(folder).read_bytes() == first


def test_the_summary_of_tasks_has_a_row_per_task_and_variant(tmp_path):
    tasks_run(tmp_path / "run")
    summary = json.loads(report.write_summary(tmp_path / "run").read_text())
    assert summary["command"] == "tasks" and len(summary["results"]) == 4
    first = summary["results"][0]
    assert (first["task"], first["variant"], first["samples"]) == ("json", "zero-shot", 6)
    assert first["scores"]["accuracy"]["mean"] == pytest.approx(4 / 6, abs=1e-6)
    assert first["fluency"] == 4.0


def test_no_text_of_a_page_becomes_markup(tmp_path):
    out = hostile(tmp_path)
    page = read_page(out)
    text = out.read_text(encoding="utf-8")
    assert "<script>window.hacked" not in text and "<img src=x" not in text
    assert page.tags.count("img") == 1 and page.tags.count("table") == 1
    assert page.ids.count("about") == 1


def test_the_page_of_tasks_has_a_section_per_task(tmp_path):
    run = tasks_run(tmp_path / "run")
    (tmp_path / "page.html").write_text(tasks_page(run), encoding="utf-8")
    page = read_page(tmp_path / "page.html")
    assert {"task-json", "task-bios", "average", "about"} <= set(page.ids)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    headline = re.search("<h1[^>]*>(.*?)</h1>", text, re.DOTALL)[1]
    assert all(name in headline for name in ("json", "bios", "zero-shot", "boost:factor=4"))
    assert "0.67 [" in text


@pytest.fixture
def no_model(monkeypatch):
    """Fails if a command gets as far as loading a model."""

    def load(arguments):
        raise AssertionError("the model was loaded before the page's place was looked at")

    for command in PAGES:
        command_named(command)  # its imports are those of the module as it is
    modules = "fix.calibrate measure.drift shared.model_loading fix.profile papers.tasks".split()
    for module in modules:
        monkeypatch.setattr(f"holdfast.cli.{module}.load_model", load)


@pytest.mark.parametrize("command", PAGES)
def test_a_place_where_no_page_can_be_written_is_refused(command, tmp_path, capsys, no_model):
    (tmp_path / "file").write_text("")
    samples = ["--task", "json"] if command == "profile" else []
    arguments = [command, *samples, "--out", str(tmp_path / "run"), "--report"]
    assert main([*arguments, str(tmp_path)]) == 2
    stderr = capsys.readouterr().err
    assert stderr.startswith(f"holdfast: --report {tmp_path} ")
    assert stderr.count("\n") == 1
    assert main([*arguments, str(tmp_path / "file" / "page.html")]) == 1
    stderr = capsys.readouterr().err
    assert f"{tmp_path / 'file' / 'page.html'}: Not a directory" in stderr and "--report" in stderr
    assert not (tmp_path / "run").exists()


def test_a_run_folder_that_cannot_be_made_suggests_another_out(tmp_path, capsys, no_model):
    (tmp_path / "file").write_text("")
    assert main(["drift", "--out", str(tmp_path / "file" / "run")]) == 1
    message = capsys.readouterr().err
    assert str(tmp_path / "file") in message and "--out" in message


def test_a_page_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    folder = write_run(tmp_path / "run", conversations=2, rounds=2)
    out = report.write([folder], tmp_path / "page.html")
    before = out.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    write_run(tmp_path / "other", conversations=3, rounds=2)
    monkeypatch.setattr("os.replace", full)
    with pytest.raises(RecordsError, match="disk"):
        report.write([tmp_path / "other"], out)
    assert out.read_bytes() == before
    names = ["other", "page.html", "page_figures", "run"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
