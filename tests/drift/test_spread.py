"""One model behind several servers: who answers what, and what happens when a server goes away."""

import contextlib
import json
import re
import socket
import subprocess
import sys
import threading
import time

import pytest
from chat_server import KEY, Server, completion, refusal
from endpoint_runs import REQUESTS, measure
from short_drift import texts

import holdfast
from holdfast import drift
from holdfast.cli import main
from holdfast.errors import ModelError, RecordsError, Unreachable, UsageError
from holdfast.generation.sampling import Sampling
from holdfast.models.offered_steering import same_fingerprint
from holdfast.records import read_run


@pytest.fixture
def serve(monkeypatch):
    """serve(answer, ..., info=[steering]) -> servers, one for each answer."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with contextlib.ExitStack() as servers:
        yield lambda *answers, info=(): [servers.enter_context(Server(a, *info)) for a in answers]


def seeded_reply(body, number):
    """A reply that depends only on the request, like that of a server that uses seeds."""
    return completion(f"{len(body['messages'])} {body['seed']}")


def connect(servers, **options):
    urls = [server.url for server in servers]
    return holdfast.connect_all(urls, "tiny", **{"max_retries": 0, "timeout": 10, **options})


# Who answers


def servers_of(record, servers):
    """The servers that were asked to continue a dialog."""
    first_reply = record.turns[1].text
    return [server for server in servers if first_reply in json.dumps(server.bodies)]


@pytest.mark.slow
def test_conversations_are_spread_and_each_stays_with_its_server(serve, tmp_path):
    servers = serve(seeded_reply, seeded_reply)
    run = measure(connect(servers, concurrency=2), tmp_path / "run", 8)
    assert sum(len(server.bodies) for server in servers) == 8 * REQUESTS
    assert all(server.most_under_way <= 2 for server in servers)
    stays_with = [servers_of(record, servers) for record in run.records]
    assert [len(numbers) for numbers in stays_with] == [1] * 8
    assert {server.url for (server,) in stays_with} == set(run.manifest.servers)
    assert list(run.manifest.servers) == [server.url for server in servers]
    assert texts(run) == texts(measure(connect(servers[:1]), tmp_path / "alone", 8))


def test_requests_without_a_dialog_go_to_any_free_server(serve):
    first, second = serve(seeded_reply, seeded_reply)
    chats = [[{"role": "user", "content": f"question {n}"}] for n in range(12)]
    model = connect([first, second], concurrency=1)
    answers = model.generate_batch([holdfast.Request(chat, seed=n) for n, chat in enumerate(chats)])
    assert [reply.text for reply in answers] == [f"1 {n}" for n in range(12)]
    assert len(first.bodies) + len(second.bodies) == 12 and first.bodies and second.bodies


# Servers that go away


def switch_off(server, after):
    """Makes a server act like a switched-off machine from request number `after` on."""

    def answer(body, number):
        if number < after:
            return seeded_reply(body, number)
        if server._http.socket.fileno() >= 0:
            server._http.socket.close()
        raise ConnectionAbortedError

    server._answer = answer
    server._http.handle_error = lambda request, address: None  # would print the error


@pytest.mark.slow
@pytest.mark.parametrize("number", (1, 3, 20))
def test_the_others_take_over_the_work_of_a_lost_server(serve, tmp_path, number):
    servers = serve(seeded_reply, seeded_reply)
    switch_off(servers[0], number)
    with pytest.warns(UserWarning, match=f"continue without.*{servers[0].url}"):
        run = measure(connect(servers, concurrency=3, max_retries=1), tmp_path / "run", 8)
    assert texts(run) == texts(measure(connect(servers[1:]), tmp_path / "alone", 8))
    assert not any(record.ended or record.unanswered for record in run.records)


@pytest.mark.slow
def test_when_all_are_gone_the_run_stops_and_is_resumed(serve, tmp_path):
    servers = serve(seeded_reply, seeded_reply)
    for server in servers:
        switch_off(server, 40)
    with pytest.raises(Unreachable, match="Cannot reach"):
        measure(connect(servers, concurrency=2, max_retries=1), tmp_path / "run", 8)
    assert 0 < len(read_run(tmp_path / "run").records) < 8
    restarted = serve(seeded_reply)
    with pytest.raises(RecordsError, match="has changed since"):
        measure(connect(restarted), tmp_path / "run", 8)  # the model served there is unknown
    with pytest.warns(UserWarning, match="continue without"):
        model = connect([servers[0], *restarted])
    run = measure(model, tmp_path / "run", 8)
    assert texts(run) == texts(measure(connect(restarted), tmp_path / "alone", 8))


def test_servers_are_tried_again_after_all_were_unavailable(serve, monkeypatch):
    servers = serve(seeded_reply, seeded_reply)
    model = connect(servers)
    for server in model.servers:
        server.unavailable = Unreachable("gone")
    assert model.generate([{"role": "user", "content": "hello"}]).text == "1 0"


def test_an_error_of_one_server_ends_the_run_and_the_model_stays_usable(serve, tmp_path):
    refuses = [True]

    def answer(body, number):
        return refusal(401, "no") if refuses else seeded_reply(body, number)

    model = connect(serve(seeded_reply, answer))
    with pytest.raises(ModelError, match="401"):
        measure(model, tmp_path / "run", 8)
    refuses.clear()
    assert len(measure(model, tmp_path / "run", 8).records) == 8


SHORT_RUN = drift.Settings(rounds=2, conversations=6, sampling=Sampling(max_new_tokens=40))


@pytest.fixture
def processes(monkeypatch):
    """Two `holdfast serve` processes and their addresses."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    command = [sys.executable, "-m", "holdfast", "serve", "--port", "0"]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    urls = [re.search(r"http://\S+", process.stdout.readline())[0] + "/v1" for process in started]
    yield started, urls
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_a_run_continues_when_one_of_two_real_servers_is_killed(processes, tmp_path, capsys):
    (killed, _), urls = processes
    options = ["--conversations", "6", "--rounds", "2", "--max-new-tokens", "40"]
    options += ["--method", "boost:factor=4", "--out", str(tmp_path / "run"), "--concurrency", "2"]
    options += ["--temperature", "1"]  # as `SHORT_RUN`, with which the run is compared
    records = tmp_path / "run" / "records.jsonl"

    def kill():
        while not (records.exists() and records.stat().st_size):
            watching.wait(0.02)
        killed.kill()

    watching = threading.Event()
    thread = threading.Thread(target=kill)
    thread.start()
    assert main(["drift", "--model", ",".join(urls), *options]) == 0
    thread.join()
    stderr = capsys.readouterr().err
    assert f"Cannot reach {urls[0]}" in stderr
    run = read_run(tmp_path / "run")
    local = drift.run(holdfast.load(), "starter", tmp_path / "local", SHORT_RUN, ["boost:factor=4"])
    assert texts(run) == texts(local) and len(run.records) == 6
    assert run.manifest.servers == tuple(urls)
    before = records.read_bytes()
    assert main(["drift", "--model", urls[1], *options]) == 0  # the same run: nothing is left to do
    assert records.read_bytes() == before


# The identity of the servers


def steering(fingerprint, methods=("boost",)):
    offered = [{"name": name, "needs": ["log-odds"]} for name in methods]
    info = {"methods": offered, "default": "none", "fingerprint": fingerprint}
    return lambda number: (200, {}, json.dumps(info))


def test_servers_that_report_their_weights_need_no_address(serve):
    """A run continues with any number of them, at any address."""
    servers = serve(seeded_reply, seeded_reply, seeded_reply, info=[steering("abc")])
    prints = {connect(some).fingerprint for some in (servers, servers[:1], servers[1:])}
    assert prints == {"tiny Holdfast abc"}


def test_an_earlier_fingerprint_that_begins_with_the_address_is_recognised():
    current = "tiny Holdfast abc"
    assert same_fingerprint(f"http://a/v1 {current}", current) == current
    assert same_fingerprint("abc", "abc") == "abc"
    assert same_fingerprint(f"http://a/v1 {current}", "tiny Holdfast def") is None
    assert same_fingerprint("http://a/v1 tiny", "http://b/v1 tiny") is None


def test_the_first_address_names_a_run_of_ordinary_servers(serve):
    first, second = serve(seeded_reply, seeded_reply)
    assert connect([first, second]).fingerprint == connect([first]).fingerprint
    assert connect([second, first]).fingerprint != connect([first]).fingerprint


DIFFERENT_SERVERS = (
    (steering("def"), ("fingerprint", "abc", "def")),
    (steering("abc", ("pasta",)), ("steering", "boost", "pasta")),
    (None, ("fingerprint", "abc", None)),
)


@pytest.mark.parametrize(
    ("others", "difference"), DIFFERENT_SERVERS, ids=["weights", "methods", "no steering"]
)
def test_servers_of_different_models_are_refused(serve, others, difference):
    servers = serve(seeded_reply, info=[steering("abc")]) + serve(
        seeded_reply, info=[others][: bool(others)]
    )
    with pytest.raises(ModelError) as excinfo:
        connect(servers)
    error = excinfo.value
    assert (error.option, error.allowed, error.value) == difference
    first, second = (value or "none" for value in difference[1:])
    assert f"({first} and {second})" in str(error)
    assert all(server.url in str(error) for server in servers)


def test_servers_of_models_with_different_names_are_refused(serve):
    def lists(name):
        models = json.dumps({"data": [{"id": name}]})
        return lambda body, number: (200, {}, models) if body is None else completion()

    servers = serve(lists("small"), lists("large"))
    with pytest.raises(ModelError) as excinfo:
        holdfast.connect_all([server.url for server in servers], max_retries=0)
    error = excinfo.value
    assert (error.option, error.allowed, error.value) == ("model", "small", "large")


# Addresses


def test_duplicate_addresses_are_refused(serve):
    (server,) = serve(seeded_reply)
    with pytest.raises(UsageError) as excinfo:
        connect([server, server])
    assert (excinfo.value.option, excinfo.value.value) == ("urls", [server.url] * 2)


@pytest.mark.parametrize("urls", ["http://localhost:8000/v1", []])
def test_addresses_are_a_list_with_at_least_one(urls):
    with pytest.raises(UsageError) as excinfo:
        holdfast.connect_all(urls, "tiny")
    assert (excinfo.value.option, excinfo.value.value) == ("urls", urls)
    assert not urls or repr([urls]) in str(excinfo.value)


def test_no_reachable_server_gives_the_usual_error(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    urls = ["http://127.0.0.1:9/v1", "http://127.0.0.1:10/v1"]
    with pytest.raises(Unreachable, match=r"Cannot reach http://127\.0\.0\.1:9/v1"):
        holdfast.connect_all(urls, "tiny", max_retries=0)


def test_an_address_that_accepts_no_connection_fails_soon(monkeypatch):
    """Its queue of connections is full, so that a new one is neither accepted nor refused."""
    import openai  # noqa: F401  # takes a while, which does not count

    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with socket.socket() as listener, contextlib.ExitStack() as queued:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        for _ in range(4):
            client = queued.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(address)
        url = f"http://127.0.0.1:{address[1]}/v1"
        start = time.monotonic()
        with pytest.raises(Unreachable, match=rf"Cannot reach {url} \(timed out\)"):
            holdfast.connect_all([url], "tiny")
        assert time.monotonic() - start < 15  # about 6 on an idle machine
