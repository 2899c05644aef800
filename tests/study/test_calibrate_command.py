"""`holdfast calibrate` as a command: budgets, figures, pages and method files."""

import dataclasses
import json

import pytest
from calibrations import sampled
from page_outline import read_page
from synthetic_run import as_json

import holdfast
from holdfast import cli, drift
from holdfast.analysis.calibration_reading import read_calibration

SETTINGS_SWEPT = ["split-softmax:exponent=0.8", "split-softmax:exponent=0.5"]


@pytest.fixture(scope="module")
def too_small(tmp_path_factory):
    """The folder of a calibration with too few conversations, and its command without a budget."""
    out = tmp_path_factory.mktemp("small") / "run"
    ids = [case.id for case in drift.load_suite("starter").cases[::60]][:3]
    command = "calibrate --sweep split-softmax:exponent=0.8,0.5 --questions 8 --draws 1".split()
    command += "--rounds 1 --ask-at 2 --max-new-tokens 12".split()
    command += ["--prompts", ",".join(ids), "--out", str(out)]
    assert cli.main(command) == 0
    return out, command


BUDGET = ["--budget", "100"]


@pytest.mark.slow
def test_a_calibration_that_is_too_small_says_how_large_it_has_to_be(
    too_small, capsys, monkeypatch
):
    out, command = too_small
    monkeypatch.setattr("sys.argv", ["holdfast", *command, *BUDGET])  # a larger run repeats it
    before = (out / "capability" / "records.jsonl").read_bytes()
    (out / "method.json").write_text("of an earlier budget")
    assert cli.main([*command, *BUDGET]) == 1
    output = capsys.readouterr()
    assert "method.json" in output.err and not (out / "method.json").exists()
    refusal, advice, larger = output.out.splitlines()[-3:]
    assert refusal.startswith("Too few conversations") and " 42 " in advice
    assert larger.startswith("holdfast calibrate ") and "--draws 7 --questions 42" in larger
    page = (out / "report.html").read_text()
    headline = page.split("<h1>")[1].split("</h1>")[0]
    assert advice in page
    assert refusal.startswith(headline.removesuffix(".")) and ". " not in headline
    assert (out / "capability" / "records.jsonl").read_bytes() == before
    assert cli.main(command) == 0
    assert capsys.readouterr().out.splitlines()[-3].startswith("Too few conversations")


@pytest.mark.slow
def test_the_command_writes_a_figure_a_page_and_summaries(too_small):
    out, _ = too_small
    assert (out / "trade_off.png").is_file()
    assert read_page(out / "report.html").tags.count("img") == 2
    results = json.loads((out / "summary.json").read_text())["results"]
    assert [row["method"] for row in results] == ["none", *SETTINGS_SWEPT]
    assert all((out / name / "summary.json").is_file() for name in ("stability", "capability"))


@pytest.mark.slow
def test_the_command_writes_a_method_file_that_drift_accepts(
    too_small, tmp_path, capsys, monkeypatch
):
    out, command = too_small
    calibration = sampled(0.2, 1, 5)
    none, fix = calibration.candidates
    calibration = dataclasses.replace(
        calibration,
        candidates=(none, dataclasses.replace(fix, method=SETTINGS_SWEPT[1])),
        about=read_calibration(out).about,
        names=(("split-softmax", "exponent"),),
    )
    monkeypatch.setattr("holdfast.cli.fix.calibrate.read_calibration", lambda folder: calibration)
    assert cli.main([*command, *BUDGET]) == 0
    *_, recommendation, _, last = capsys.readouterr().out.splitlines()
    assert recommendation.startswith(f"Use {SETTINGS_SWEPT[1]}, ")
    assert last.startswith("holdfast serve --model default --")
    file = out / "method.json"
    content = json.loads(file.read_text())
    file.write_text(json.dumps({**content, "model_fingerprint": "another"}))
    drifted = "drift --conversations 1 --rounds 1 --max-new-tokens 40".split()
    drifted += ["--method", str(file), "--out", str(tmp_path / "drift")]
    assert cli.main(drifted) == 0
    assert "another model" in capsys.readouterr().err
    identity = holdfast.records.read_run(tmp_path / "drift").manifest.identity.to_json()
    assert identity["methods"] == [content["method"]]


def test_a_negative_budget_is_refused(capsys):
    assert cli.main(["calibrate", "--budget", "-1"]) == 2 and "budget" in capsys.readouterr().err


@pytest.mark.slow
def test_a_budget_is_refused_before_the_sweep_if_the_model_guesses(tmp_path, capsys, monkeypatch):
    out = tmp_path / "run"
    command = ["calibrate", "--sweep", "boost:factor=2", "--questions", "24", "--draws", "12"]
    command += ["--rounds", "1", "--ask-at", "1", "--max-new-tokens", "4", "--out", str(out)]
    ids = [case.id for case in drift.load_suite("starter").cases[::60]][:2]
    command += ["--prompts", ",".join(ids)]
    real = read_calibration
    monkeypatch.setattr(
        "holdfast.cli.fix.calibrate.read_calibration",
        lambda folder: dataclasses.replace(real(folder), chance=99.0),
    )
    assert cli.main([*command, "--budget", "5"]) == 1
    refusal = capsys.readouterr().err
    assert "at chance" in refusal and "--budget 5" in refusal
    methods_run = [row["method"] for row in as_json(holdfast.records.read_run(out / "capability"))]
    assert set(methods_run) == {"none"}
    assert cli.main(command) == 0, "goes on without --budget"
    output = capsys.readouterr()
    assert "at chance" in output.err + output.out and "boost:factor=2" in output.out
    assert "--capability" in output.out.splitlines()[-1]
