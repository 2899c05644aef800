"""Tasks and calibrations over an endpoint where single requests fail, or all of them."""

import dataclasses
import json

import pytest
from calibrations import ITEMS
from chat_server import Server, completion, refusal
from short_drift import ONE_QUESTION
from synthetic_run import as_json

from holdfast import drift, tasks
from holdfast.analysis.calibration_reading import read_calibration
from holdfast.analysis.task_results import read_results
from holdfast.drift.asking_baseline import ask_baseline
from holdfast.drift.pairing import draw_pairing
from holdfast.errors import ModelError, Unreachable
from holdfast.generation.sampling import Sampling
from holdfast.models.connecting import connect
from holdfast.papers.zhang2024.synthetic import TextShape, make_data
from holdfast.records import read_run
from holdfast.report.how_measured import about_runs
from holdfast.report.task_tables import table
from holdfast.seeds import seed_of
from holdfast.study.calibrating import calibrate
from holdfast.study.calibration_plan import CalibrationPlan

SAMPLES = 12
SETTINGS = tasks.Settings(tasks=("json",), samples=SAMPLES, batch=5)
DATA = make_data(0, "test", SAMPLES, TextShape((1, 2)))
ASKED = tasks.draw_samples(DATA, tasks.CATALOGUE["json"], SETTINGS)
PROMPTS = [sample.prompts[0] for sample in ASKED]
REPLY = json.dumps({"name": "Ann", "occupation": "nurse"})


def number_of(body) -> int:
    """The number of the sample that a request is about."""
    return PROMPTS.index(body["messages"][-1]["content"])


def failing(numbers, answer=None):
    """A server that fails on the samples with these `numbers`."""

    def respond(body, number):
        failure = answer or refusal(500, "CUDA error")
        return failure if number_of(body) in numbers else completion(REPLY)

    return respond


def numbers_of(run) -> list[int]:
    return sorted(row["conversation"] for row in as_json(run))


def test_a_sample_that_fails_is_noted_and_a_rerun_asks_only_for_it(serve, tmp_path):
    bad = {3, 7}
    model, server = serve(failing(bad))
    run = tasks.run(model, DATA, tmp_path, SETTINGS)
    assert numbers_of(run) == [n for n in range(SAMPLES) if n not in (3, 7)]
    notes = [(note.conversation, note.why) for note in run.failures]
    assert notes == [(3, "failure"), (7, "failure")]
    assert "CUDA error" in run.failures[0].reason
    text = "Not answered: 2 (2 had a request that failed); left out of the means, and asked again"
    assert text in table(run)
    assert any(text[14:] in value for about in about_runs([run], [""]) for _, value in about.rows)
    (result,) = read_results(run)
    assert len(result.numbers) == SAMPLES - 2
    bad.clear()
    whole = tasks.run(model, DATA, tmp_path, SETTINGS)
    assert sorted(map(number_of, server.bodies[SAMPLES:])) == [3, 7]
    assert numbers_of(whole) == list(range(SAMPLES)) and whole.failures == ()
    assert "Not answered" not in table(whole)


TOO_LONG = refusal(400, "This model's maximum context length is 64 tokens.")
REFUSED = ((completion(None, "content_filter"), "filter"), (TOO_LONG, "context"))


@pytest.mark.parametrize(("answer", "why"), REFUSED)
def test_requests_that_the_server_refuses_do_not_stop_a_run(serve, tmp_path, answer, why):
    model, _ = serve(failing(set(range(SAMPLES - 1)), answer))
    run = tasks.run(model, DATA, tmp_path, SETTINGS)
    assert numbers_of(run) == [SAMPLES - 1]
    assert {note.why for note in run.failures} == {why} and len(run.failures) == SAMPLES - 1


def test_failures_in_a_row_stop_the_run_which_keeps_every_answer(tmp_path, serve):
    model, _ = serve(failing(set(range(4, SAMPLES))), concurrency=1)
    with pytest.raises(ModelError, match=r"5 samples .*CUDA error"):
        tasks.run(model, DATA, tmp_path, SETTINGS)
    run = read_run(tmp_path)
    assert numbers_of(run) == [0, 1, 2, 3] and run.failures == ()


def test_the_error_for_an_unreachable_server_says_how_to_resume(tmp_path):
    with Server(failing(())) as server:
        model = connect(server.url, "tiny", max_retries=0, timeout=10)
        run = tasks.run(model, DATA, tmp_path / "run", SETTINGS)
    records = (tmp_path / "run" / "records.jsonl").read_bytes()
    settings = dataclasses.replace(SETTINGS, tasks=("json", "pronouns"))
    later = connect(server.url, "tiny", max_retries=0, timeout=10)
    with pytest.raises(Unreachable) as excinfo:
        tasks.run(later, DATA, tmp_path / "run", settings)
    message = str(excinfo.value)
    assert message.startswith("Cannot reach http://127.0.0.1:") and message.count("repeat") == 1
    end = f"is running, then repeat the command: what is finished is kept in {run.folder}."
    assert message.endswith(end)
    assert (tmp_path / "run" / "records.jsonl").read_bytes() == records


BRIEF = Sampling(max_new_tokens=5)
PLAN = CalibrationPlan(draws=1, rounds=1, ask_at=2, reading="written", sampling=BRIEF, batch=4)
PLAN = dataclasses.replace(PLAN, sweeps=("repetition:probability=0.5,1",))


def questions(server) -> list[str]:
    texts = [body["messages"][-1]["content"] for body in server.bodies]
    return [text for text in texts if "which one, number" in text]


def test_a_question_that_fails_is_noted_and_the_calibration_continues(serve, tmp_path):
    """Questions 2 and 8 belong to conversation 2."""

    def answer(body, number):
        fails = any(f"number {bad}?" in body["messages"][-1]["content"] for bad in failing_numbers)
        return refusal(500, "CUDA error") if fails else completion("bread (B)")

    failing_numbers = [8]
    model, server = serve(answer)
    _, run = calibrate(model, ONE_QUESTION, ITEMS, tmp_path, PLAN)
    assert len(run.records) == 3 * 5 and {note.conversation for note in run.failures} == {2}
    assert len(run.failures) == 3 and len(questions(server)) == 3 * 14
    calibration = read_calibration(tmp_path)
    names = ["none", "repetition:probability=0.5", "repetition:probability=1"]
    assert [candidate.method for candidate in calibration.candidates] == names
    failing_numbers.clear()
    before = len(server.bodies)
    _, whole = calibrate(model, ONE_QUESTION, ITEMS, tmp_path, PLAN)
    assert len(whole.records) == 3 * 6 and whole.failures == ()
    numbers = [int(text.split("number ")[1].split("?")[0]) for text in questions(server)[3 * 14 :]]
    assert sorted(numbers) == [2, 2, 2, 8, 8, 8] and len(server.bodies) == before + 6


def test_a_baseline_continues_without_a_question_that_fails(serve, tmp_path):
    settings = drift.Settings(conversations=6, rounds=1, probes_per_round=2, batch=4)
    asked_by = draw_pairing(ONE_QUESTION, settings, 3).round_probes
    probes = [probe for probe in asked_by if probe.kind == "stability"]
    seeds = [seed_of("baseline", 0, 3, probe.rule.id, probe.index) % 2**31 for probe in probes]
    failing_seeds = seeds[:1]

    def answer(body, number):
        return refusal(500, "CUDA error") if body["seed"] in failing_seeds else completion("tea")

    model, server = serve(answer)
    run = ask_baseline(model, ONE_QUESTION, tmp_path, settings)
    assert numbers_of(run) == [0, 1, 2, 4, 5]
    (note,) = run.failures
    assert note.conversation == 3 and note.why == "failure"
    assert "CUDA error" in note.reason
    failing_seeds.clear()
    before = len(server.bodies)
    whole = ask_baseline(model, ONE_QUESTION, tmp_path, settings)
    assert numbers_of(whole) == list(range(6)) and whole.failures == ()
    assert sorted(body["seed"] for body in server.bodies[before:]) == sorted(seeds)
