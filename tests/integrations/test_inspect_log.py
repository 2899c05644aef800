"""Runs as logs of Inspect: read back by Inspect itself, and looked at in its viewer."""

import contextlib
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("inspect_ai", reason="make integrations installs it")

from browsing import PATIENCE, needs_browser, open_browser, wait
from inspect_ai.log import read_eval_log

from holdfast.analysis.series import read_series
from holdfast.analysis.statistics import row_means
from holdfast.cli import main
from holdfast.integrations.inspect.log import write_logs
from holdfast.records import read_run

RECORDED = Path(__file__).parents[1] / "data" / "recorded"
DRIFT = RECORDED / "schema-3" / "drift"
FOLDERS = sorted(RECORDED.glob("*/drift"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.parent.name)
def test_inspect_reads_the_numbers_of_every_version(folder, tmp_path, capsys):
    assert main(["export", str(folder), "--inspect", str(tmp_path)]) == 0
    told = capsys.readouterr().out.splitlines()
    series = read_series(read_run(folder))
    assert len(told) == len(series) == len(list(tmp_path.glob("*.eval")))
    for line, each in zip(told, series, strict=True):
        log = read_eval_log(line.removeprefix("Log: "))
        assert log.eval.task_args["method"] == each.method
        assert log.eval.metadata["identity"] == read_run(folder).manifest["identity"]
        metrics = {score.name: score.metrics for score in log.results.scores}
        for kind in ("stability", "adoption"):
            means = row_means(each.values(kind))
            assert metrics[kind]["mean"].value == pytest.approx(means.mean())
            by_round = [metrics[f"{kind}_round_{n + 1}"] for n in range(each.rounds)]
            assert [m["mean"].value for m in by_round] == pytest.approx(each.values(kind).mean(0))
            deviation = each.values(kind).std(0, ddof=1) / len(means) ** 0.5
            assert [m["stderr"].value for m in by_round] == pytest.approx(deviation)
        for sample, record in zip(log.samples, each.records, strict=True):
            turns = [message for message in sample.messages if message.role != "system"]
            assert [turn.text for turn in turns] == [turn["text"] for turn in record["turns"]]
            masses = [turn.metadata.get("mass") for turn in turns]
            assert masses == [turn.get("mass") for turn in record["turns"]]
            assert sample.scores["stability_and_adoption"].metadata["probes"] == record["probes"]


def test_one_file_holds_one_method(tmp_path, capsys):
    assert main(["export", str(DRIFT), "--inspect", str(tmp_path / "run.eval")]) == 2
    said = capsys.readouterr().err
    assert "has 2 methods (none, split-softmax:exponent=0.5)" in said and "give a folder" in said
    run = read_run(DRIFT)
    run.records[:] = [record for record in run.records if record["method"] == "none"]
    (path,) = write_logs(run, tmp_path / "run.eval")
    assert path == tmp_path / "run.eval" and read_eval_log(path).status == "success"
    run.records.pop()
    (path,) = write_logs(run, tmp_path / "run.eval")
    assert read_eval_log(path).status == "cancelled"


def test_a_text_that_is_no_unicode_is_written(tmp_path):
    run = read_run(DRIFT)
    run.records[0]["turns"][1]["text"] = "half \ud83d of one"
    log = read_eval_log(write_logs(run, tmp_path)[0])
    assert log.samples[0].messages[2].text == "half ? of one"


def test_what_is_no_drift_run_and_what_cannot_be_written_is_refused(tmp_path, capsys):
    tasks = RECORDED / "schema-3" / "tasks"
    assert main(["export", str(tasks), "--inspect", str(tmp_path)]) == 1
    assert "holds a run of `holdfast tasks`" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["export", str(DRIFT), "--inspect", str(tmp_path / "file" / "logs")]) == 1
    assert "choose another file with --inspect" in capsys.readouterr().err


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    yield from open_browser(tmp_path_factory)


@contextlib.contextmanager
def viewer(folder):
    """The address of `inspect view` on a folder of logs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["-m", "inspect_ai", "view", "start", "--log-dir", str(folder), "--port", str(port)]
    with subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            end = time.monotonic() + 6 * PATIENCE
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    assert time.monotonic() < end, "inspect view does not answer"
                    time.sleep(0.2)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


def shown(browser, address, *texts):
    """Opens a page of the viewer, and waits for texts."""
    browser.get(address)
    for text in texts:
        wait(browser, f"document.body.innerText.toLowerCase().includes({text.lower()!r})")


@needs_browser
def test_inspects_viewer_shows_dialogs_masses_and_probes(browser, tmp_path):
    write_logs(read_run(DRIFT), tmp_path)
    with viewer(tmp_path) as address:
        log = f"{address}/#/logs/none.eval"
        shown(browser, log, "holdfast/drift", "stability_round_2", "3 samples")
        sample = f"{log}/samples/sample/0/1"
        shown(browser, f"{sample}/messages", "Never trust the engine.", "mass:", "0.241")
        shown(browser, f"{sample}/scoring", "Round 2, adoption 0.00", "mass 0.185")
