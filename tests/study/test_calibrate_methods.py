"""`holdfast calibrate` with methods beyond attention's log-odds, locally and through a server."""

import itertools
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import tiny
from calibrations import ITEMS
from fitted_files import write_for
from served import served
from short_drift import SUITE
from small_calibration import GREEDY, SMALL, history_of
from synthetic_run import as_json

import holdfast
from holdfast import cli, methods
from holdfast.analysis.calibration_reading import read_calibration
from holdfast.serve.limits import RequestLimits
from holdfast.study.calibrating import calibrate
from holdfast.study.calibration_plan import CalibrationPlan


def model():
    """In float64: in float32, a reply may depend on the requests that share its batch."""
    return tiny.model(dtype="float64")


WRITTEN = CalibrationPlan(draws=1, rounds=1, ask_at=2, sampling=SMALL.sampling, answering=GREEDY)
WRITTEN = replace(WRITTEN, reading="written")
SWEEPS = {
    "anchoring": "anchoring:strength=1.5,3",
    "prompt-strength": 'prompt-strength:scale=1.5,3,default="be nice"',
    "seka": "seka:gain=0.5,2,file={}",
    "vector": "vector:factor=0.5,2,file={}",
}


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory):
    """The sweeps, with files fitted on the model."""
    folder = tmp_path_factory.mktemp("fitted")
    files = {name: folder / f"{name}.safetensors" for name in ("seka", "vector")}
    for name, path in files.items():
        write_for(model(), path, name)
    return {name: spec.format(files.get(name)) for name, spec in SWEEPS.items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", SWEEPS)
def test_questions_are_answered_as_the_model_answers_under_the_method(name, sweeps, tmp_path):
    local_model = model()
    plan = replace(SMALL, sweeps=(sweeps[name],))
    stability, questions = calibrate(local_model, SUITE, ITEMS, tmp_path / "run", plan)
    settings = methods.parse_sweep(sweeps[name]).steerings
    names = ["none", *map(methods.spec_of, settings)]
    assert stability.manifest.identity.to_json()["methods"] == names
    of_questions = {(r["method"], r["conversation"]) for r in as_json(questions)}
    assert of_questions == set(itertools.product(names, range(12)))
    for record in as_json(questions):
        if record["conversation"] not in (0, 5):
            continue
        under = methods.parse(record["method"])
        for probe in record["probes"]:
            item = ITEMS.items[probe["probe"]]
            history = history_of(record, record["turns"])
            chat = [*history, {"role": "user", "content": item.question}]
            score = local_model.score(chat, item.replies, under)
            assert probe["log_probabilities"] == pytest.approx(score.log_probabilities, abs=1e-3)
            likeliest = int(np.argmax(probe["log_probabilities"])) == item.answer
            assert probe["likeliest"] == probe["score"] == float(likeliest)
            assert probe["reply"] == local_model.generate(chat, under, GREEDY).text
    calibration = read_calibration(tmp_path / "run")
    assert [candidate.method for candidate in calibration.candidates] == names


@pytest.mark.slow
@pytest.mark.parametrize("name", SWEEPS)
def test_a_served_model_writes_the_same_answers_as_a_local_one(name, sweeps, tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    plan = replace(WRITTEN, sweeps=(sweeps[name],))
    with served(model(), RequestLimits(200, 60.0)) as server:
        remote = holdfast.connect(f"{server.url}/v1", timeout=60)
        remote_run, local = (
            calibrate(source, SUITE, ITEMS, tmp_path / place, plan)[1]
            for place, source in (("there", remote), ("here", model()))
        )

    def texts_of(run):
        rows = [(r["method"], probe) for r in as_json(run) for probe in r["probes"]]
        return {(name, p["probe"]): (p["reply"], p["score"]) for name, p in rows}

    assert texts_of(remote_run) == texts_of(local) and len(texts_of(local)) == 3 * len(ITEMS.items)


@pytest.fixture
def run_command(tmp_path):
    """Runs `holdfast calibrate` with one sweep, as small as possible."""
    ids = ",".join(case.id for case in holdfast.drift.load_suite("starter").cases[::60][:3])

    def run(sweep, *options, out="run"):
        command = ["calibrate", "--sweep", sweep, "--questions", "4", "--draws", "1"]
        command += ["--rounds", "1", "--ask-at", "2", "--prompts", ids, "--max-new-tokens", "8"]
        return cli.main([*command, "--out", str(tmp_path / out), *options])

    return run


@pytest.mark.slow
def test_a_served_sweep_accepts_only_files_that_the_server_was_given(run_command, tmp_path, capsys):
    default = holdfast.load("default")
    known, unknown = (
        write_for(default, tmp_path / f"{seed}.safetensors", "seka", seed) for seed in (0, 1)
    )
    command = [sys.executable, "-m", "holdfast", "serve", "--port", "0", "--fitted"]
    with subprocess.Popen([*command, str(known.path)], stdout=subprocess.PIPE, text=True) as server:
        try:
            assert f"seka:file={known.digest}" in server.stdout.readline()
            url = re.search(r"http://\S+", server.stdout.readline())[0]
            options = ["--model", f"{url}/v1", "--reading", "written"]
            assert run_command(f"seka:gain=0.1,0.2,file={known.path}", *options) == 0
            assert f"seka:file={known.digest},gain=0.2" in capsys.readouterr().out
            sweep = f"seka:gain=0.1,0.2,file={unknown.path}"
            assert run_command(sweep, *options, out="other") != 0
            assert "a server knows only the files that" in capsys.readouterr().err
        finally:
            server.kill()
