"""Drift runs over an endpoint that fails in every way that servers do."""

import itertools
import json
import threading
from dataclasses import replace

import pytest
from chat_server import KEY, completion, refusal
from command_lines import changed
from endpoint_runs import REQUESTS, ROUNDS, measure
from short_drift import ONE_QUESTION
from synthetic_run import as_json

from holdfast import drift, report
from holdfast.cli import main
from holdfast.errors import ModelError
from holdfast.generation.sampling import Sampling
from holdfast.measures import build
from holdfast.records import read_run
from holdfast.report.how_measured import about_runs


def is_turn(body, turns):
    """Whether the request is for the agent's turn after `turns` messages of the dialog."""
    texts = [message["content"] for message in body["messages"]]
    return len(texts) == turns + 1 and texts[1] == "hello there" and texts[-1] != "What?"


# Answers that end a dialog, or not even that


def fails_once(answer, matches):
    """A server that gives `answer` to the first request that matches, and replies to all others."""
    lock, failed = threading.Lock(), []

    def serve(body, number):
        with lock:
            if not failed and matches(body):
                failed.append(number)
                return answer
        return completion()

    return serve


FILTERED = refusal(400, "The response was filtered.", "content_filter")
TOO_LONG = refusal(400, "This model's maximum context length is 64 tokens.")


@pytest.mark.parametrize(
    ("answer", "why", "words"),
    [
        (completion(None, "content_filter"), "filter", "content filter"),
        (FILTERED, "filter", "content filter"),
        (refusal(403, "Your chosen model requires moderation."), "filter", "content filter"),
        (TOO_LONG, "context", "fewer rounds"),
        (refusal(400, "prompt is too long: 9 tokens > 8 maximum"), "context", "fewer rounds"),
        (refusal(413, "Payload too large"), "context", "fewer rounds"),
        (refusal(500, "CUDA error"), "failure", "500: CUDA error"),
        (refusal(422, "messages.3: text is empty"), "failure", "422"),
        ((200, {}, '{"choices": [{"mess'), "failure", "no chat completion"),
    ],
)
def test_a_bad_answer_ends_only_its_dialog(serve, tmp_path, answer, why, words):
    model, _ = serve(fails_once(answer, lambda body: is_turn(body, 5)))  # the agent's, round 3
    run = measure(model, tmp_path / "run")
    assert len(run.records) == 6
    (ended,) = [record for record in as_json(run) if "ended" in record]
    assert (ended["ended"]["round"], ended["ended"]["why"]) == (3, why)
    assert words in ended["ended"]["reason"]
    assert [turn["round"] for turn in ended["turns"]] == [1, 1, 2, 2, 3]
    assert {probe["round"] for probe in ended["probes"]} == {1, 2, 3}
    assert all(len(r["turns"]) == 2 * ROUNDS for r in as_json(run) if r != ended)


def test_a_probe_that_is_withheld_is_left_out_and_its_dialog_continues(serve, tmp_path):
    def answer(body, number):
        is_probe = body["messages"][-1]["content"] == "What?"
        withheld = is_probe and "rain" in str(body["messages"][0])
        return completion(None, "content_filter") if withheld else completion()

    model, _ = serve(answer)
    run = measure(model, tmp_path / "run")
    assert all(len(record["turns"]) == 2 * ROUNDS for record in as_json(run))
    for record in as_json(run):
        withheld = record["agent"]["id"] == "case-rain"
        assert len(record["probes"]) == (0 if withheld else 2 * ROUNDS)
        assert len(record.get("unanswered", ())) == (2 * ROUNDS if withheld else 0)
    unanswered = next(record["unanswered"] for record in as_json(run) if "unanswered" in record)
    failures = {(item["round"], item["kind"], item["why"]) for item in unanswered}
    assert failures == set(itertools.product(range(1, 5), ("stability", "adoption"), ("filter",)))


def test_a_filter_that_always_refuses_one_prompt_lets_the_run_finish(serve, tmp_path):
    def answer(body, number):
        is_refused = is_turn(body, 1) and "rain" in body["messages"][0]["content"]
        return completion(None, "content_filter") if is_refused else completion()

    model, server = serve(answer)
    run = measure(model, tmp_path / "run")
    assert [r["ended"]["round"] for r in as_json(run) if r["agent"]["id"] == "case-rain"] != []
    assert all(("ended" in r) == (r["agent"]["id"] == "case-rain") for r in as_json(run))
    request_count = len(server.bodies)
    assert as_json(measure(model, tmp_path / "run")) == as_json(run)
    assert len(server.bodies) == request_count  # nothing is asked again


def test_a_key_that_the_server_repeats_is_in_no_record_or_page(serve, tmp_path):
    model, _ = serve(fails_once(refusal(500, f"bad key {KEY}"), lambda body: is_turn(body, 3)))
    run = measure(model, tmp_path / "run")
    assert any(
        "bad key ***" in record.get("ended", {}).get("reason", "") for record in as_json(run)
    )
    report.write([tmp_path / "run"], tmp_path / "run" / "report.html")
    for path in (tmp_path / "run").rglob("*"):
        assert path.is_dir() or KEY.encode() not in path.read_bytes()


# Retries


def test_malformed_answers_are_retried(serve, tmp_path, monkeypatch):
    monkeypatch.setattr("holdfast.models.endpoint_server._MAX_WAIT", 0.01)
    bodies, malformed = set(), (200, {}, completion()[2][:40])

    def answer(body, number):  # the second attempt at each request succeeds
        first = str(body) not in bodies
        bodies.add(str(body))
        return malformed if first else completion()

    model, server = serve(answer, max_retries=1)
    run = measure(model, tmp_path / "run", conversations=2)
    assert not any("ended" in record for record in as_json(run))
    assert len(server.bodies) == 2 * 2 * REQUESTS


def test_malformed_answers_are_retried_a_bounded_number_of_times(serve, monkeypatch):
    monkeypatch.setattr("holdfast.models.endpoint_server._MAX_WAIT", 0.01)
    model, server = serve(lambda body, number: (200, {}, "<html>"), max_retries=2)
    with pytest.raises(ModelError, match="no chat completion"):
        model.generate([{"role": "user", "content": "Hello."}])
    assert len(server.bodies) == 3


# Failures that stop a run


@pytest.mark.slow
def test_failures_in_a_row_stop_the_run_which_can_be_resumed(serve, tmp_path):
    shutdown = threading.Event()

    def answer(body, number):
        if number > 0.5 * 14 * REQUESTS:
            shutdown.set()
        return refusal(500, "shutting down") if shutdown.is_set() else completion()

    model, server = serve(answer, concurrency=4)
    message = r"5 conversations in a row failed.*repeat the command.*500: shutting down"
    with pytest.raises(ModelError, match=message):
        measure(model, tmp_path / "run", conversations=14)
    records = as_json(read_run(tmp_path / "run"))
    # begun conversations are completed before others begin, so only those in progress are lost
    assert len(records) >= 5
    assert sum("ended" in record for record in records) < 4  # requests in progress may be answered
    server._answer = lambda body, number: completion()
    assert len(measure(model, tmp_path / "run", conversations=14).records) == 14


def test_failures_with_answers_in_between_do_not_stop_the_run(serve, tmp_path):
    def answer(body, number):
        return refusal(500, "no") if is_turn(body, 3) else completion()

    model, _ = serve(answer, concurrency=2)
    run = measure(model, tmp_path / "run", conversations=8)
    assert [record["ended"]["why"] for record in as_json(run)] == ["failure"] * 8


@pytest.mark.slow
def test_a_server_that_goes_down_during_the_last_conversation_leaves_it_open(serve, tmp_path):
    def answer(body, number):
        return refusal(500, "gone") if number > int(5.5 * REQUESTS) else completion()

    model, server = serve(answer, concurrency=1)
    message = r"Stopped, because requests of a conversation failed.*500: gone"
    with pytest.raises(ModelError, match=message):
        measure(model, tmp_path / "run")
    records = as_json(read_run(tmp_path / "run"))
    assert len(records) == 5 and not any("ended" in record for record in records)
    server._answer = lambda body, number: completion()
    assert not any("ended" in record for record in as_json(measure(model, tmp_path / "run")))


def test_a_last_conversation_that_always_fails_is_recorded(serve, tmp_path):
    def answer(body, number):
        return refusal(500, "no") if len(body["messages"]) > 2 else completion()

    model, _ = serve(answer, concurrency=1)
    (record,) = as_json(measure(model, tmp_path / "run", conversations=1))
    assert (record["ended"]["round"], record["ended"]["why"]) == (2, "failure")


def test_if_nothing_is_answered_nothing_is_recorded(serve, tmp_path):
    model, _ = serve(lambda body, number: refusal(500, "no"))
    with pytest.raises(ModelError, match="500: no"):
        measure(model, tmp_path / "run", conversations=2)
    assert as_json(read_run(tmp_path / "run")) == []


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (refusal(401, "expired"), "refused the API key"),
        (refusal(404, "The model `tiny` does not exist"), "has no model 'tiny'"),
        (refusal(429, "slow down"), "still limits requests"),
        (refusal(429, "You exceeded it", "insufficient_quota"), "quota is used up .*add credit"),
        (refusal(400, "System role not supported"), "before the first user message"),
    ],
)
def test_an_error_that_concerns_every_request_stops_the_run_at_once(serve, tmp_path, answer, words):
    def late(body, number):
        return answer if number > 4 else completion()

    model, server = serve(late, concurrency=1)
    with pytest.raises(ModelError, match=words):
        measure(model, tmp_path / "run")
    assert len(server.bodies) <= 6


@pytest.mark.slow
def test_begun_conversations_are_completed_before_others_begin(serve, tmp_path):
    model, server = serve(lambda body, number: completion(), concurrency=1)
    measure(model, tmp_path / "one", conversations=4)
    starts = [index for index, body in enumerate(server.bodies) if is_turn(body, 1)]
    assert starts == [number * REQUESTS for number in range(4)]
    model, server = serve(lambda body, number: completion(), concurrency=4)
    measure(model, tmp_path / "many", conversations=10)
    starts = [index for index, body in enumerate(server.bodies) if is_turn(body, 1)]
    for number, index in enumerate(starts):  # at most four are open at a time
        assert index >= (number - 4) * REQUESTS


# Replies without content, and cut ones


@pytest.mark.parametrize(
    ("message", "reason", "recorded", "text"),
    [
        ({"refusal": "I would rather not."}, "stop", "refusal", "I would rather not."),
        ({"tool_calls": [{"id": "1", "type": "function"}]}, "tool_calls", "tool_calls", ""),
        ({}, "stop", "empty", ""),
    ],
)
def test_a_reply_without_content_is_recorded_and_not_scored(
    serve, tmp_path, message, reason, recorded, text
):
    rather = build({"regex": "^$|rather"})
    cases = tuple(
        replace(case, rules=(replace(case.rules[0], measure=rather),))
        for case in ONE_QUESTION.cases
    )
    model, _ = serve(lambda body, number: completion(None, reason, **message))
    settings = drift.Settings(rounds=2, conversations=1)
    suite = replace(ONE_QUESTION, cases=cases)
    (record,) = as_json(drift.run(model, suite, tmp_path / "run", settings))
    assert {(t["stop_reason"], t["text"]) for t in record["turns"][1:]} == {(recorded, text)}
    probes = [(p["why"], p["stop_reason"], p["reply"]) for p in record["unscored"]]
    assert probes == [(recorded, recorded, text)] * 4
    assert record["probes"] == [] and "ended" not in record


def test_a_limit_of_the_server_is_recorded_and_named(serve, tmp_path):
    """One answer in two is cut after 5 tokens, of the 40 that the run allows."""

    def answer(body, number):
        assert body["max_tokens"] == 40
        reason = "length" if number % 2 else "stop"
        return completion("Some bread.", reason, {"prompt_tokens": 9, "completion_tokens": 5})

    model, _ = serve(answer)
    settings = drift.Settings(rounds=2, conversations=4, sampling=Sampling(max_new_tokens=40))
    run = drift.run(model, ONE_QUESTION, tmp_path, settings)
    replies = [
        reply for record in run.conversations for reply in (*record.turns[1:], *record.answered)
    ]
    cut = [reply for reply in replies if reply.stop_reason == "length"]
    assert cut and {reply.cut_at for reply in cut} == {5}
    assert {reply.cut_at for reply in replies if reply not in cut} == {None}
    rows = dict(about_runs([run], [""])[0].rows)
    line = f"{len(cut)} of {len(replies)}, after 5 tokens: by a limit of the server"
    assert rows["replies cut before the run's limit"].startswith(line)


def test_replies_that_are_cut_where_the_run_says_have_no_limit_of_the_server(serve, tmp_path):
    usage = {"prompt_tokens": 9, "completion_tokens": 40}
    model, _ = serve(lambda body, number: completion("Some bread.", "length", usage))
    settings = drift.Settings(rounds=2, conversations=4, sampling=Sampling(max_new_tokens=40))
    with pytest.warns(UserWarning, match="replies are cut at 40 tokens"):
        run = drift.run(model, ONE_QUESTION, tmp_path, settings)
    assert "cut_at" not in (tmp_path / "records.jsonl").read_text()
    assert "replies cut before the run's limit" not in dict(about_runs([run], [""])[0].rows)


# Commands


def command(server, *options):
    sizes = ["--suite", "core", "--rounds", "1", "--conversations", "1"]
    return changed(["drift", "--model", server.url, *sizes], *options)


def listing():
    return 200, {}, json.dumps({"object": "list", "data": [{"id": "tiny"}]})


def test_the_command_finds_the_model_and_says_what_ended(serve, tmp_path, monkeypatch, capsys):
    def answer(body, number):
        if body is None:
            return listing()
        if len(body["messages"]) > 3:
            return completion(None, "content_filter")
        of_user = body["messages"][-1]["content"].startswith("You asked")
        return completion(None if of_user else "Yes.")

    _, server = serve(answer)
    monkeypatch.chdir(tmp_path)
    assert main(command(server, "--no-adoption", "--rounds", "2")) == 0
    output = capsys.readouterr().out
    assert "ended early: 1 of 1 (1 " in output
    assert "without content: 1 of 3" in output
    (folder,) = (tmp_path / "runs").iterdir()
    assert "tiny" in folder.name
    assert "1 of 1 (1 met" in (folder / "report.html").read_text()


def test_a_run_without_any_scored_probe_says_so(serve, tmp_path, capsys):
    withheld = completion(None, "content_filter")
    _, server = serve(lambda body, number: withheld if body else listing())
    assert main(command(server, "--out", str(tmp_path / "run"))) == 1
    captured = capsys.readouterr()
    assert "ended early: 1 of 1" in captured.out
    assert "nothing to draw (dialogs that ended early: 1 of 1 (1 met a content" in captured.err
    assert main(["report", str(tmp_path / "run")]) == 1
    assert "1 met a content filter" in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_succeeds_even_if_one_method_got_no_answers(serve, tmp_path, capsys):
    def answer(body, number):
        if body is None:
            return listing()
        system, *_, last = (message["content"] for message in body["messages"])
        return completion(None, "content_filter") if last.startswith(system) else completion()

    _, server = serve(answer)
    methods = ["--method", "none", "--method", "repetition:probability=1", "--conversations", "3"]
    assert main(command(server, *methods, "--out", str(tmp_path / "run"))) == 0
    assert "3 of 6 (3 met" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answer", "out", "err"),
    [
        (completion("half \ud83d a pair"), "half ? a pair\n", ""),
        (completion(None, tool_calls=[{"id": "1"}]), "\n", "no content (tool_calls)"),
    ],
)
def test_generate_prints_any_reply(serve, capsys, answer, out, err):
    _, server = serve(lambda body, number: answer if body else listing())
    assert main(["generate", "--model", server.url, "--user", "Hello."]) == 0
    captured = capsys.readouterr()
    assert captured.out == out and err in captured.err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--timeout", "0.3", "did not answer within 0.3 s"),
        ("--timeout", "0", "--timeout above 0"),
        ("--requests-per-minute", "-1", "--requests-per-minute above 0"),
        ("--concurrency", "0", "concurrency"),
    ],
)
def test_the_command_has_the_options_that_its_messages_recommend(
    serve, tmp_path, monkeypatch, capsys, option, value, words
):
    released = threading.Event()

    def answer(body, number):
        if body is not None:
            released.wait(10)
        return completion() if body else listing()

    waits = "openai._base_client.BaseClient._calculate_retry_timeout"
    monkeypatch.setattr(waits, lambda *_, **__: 0.01)
    _, server = serve(answer)
    assert main(command(server, option, value, "--out", str(tmp_path / "run"))) != 0
    released.set()
    assert words in capsys.readouterr().err
