"""Models behind an endpoint, against a real HTTP server on loopback."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback

import fake_upstream
import openai
import pytest
from chat_server import KEY, Server, completion, refusal
from command_lines import heed_interrupts
from fake_upstream import FakeUpstream, chunks, reply_events, reply_json
from tiny import LOOK, tool_talk

import holdfast.models.endpoint
from holdfast import methods
from holdfast.errors import ModelError, ParameterOutOfRange, RequestFailed, UsageError
from holdfast.generation.sampling import Sampling
from holdfast.models.requests import Reply, Request

USAGE = {"prompt_tokens": 20, "completion_tokens": 3}
CHAT = ({"role": "system", "content": "Rhyme."}, {"role": "user", "content": "Hello."})
LOOPBACK = ["localhost", "127.0.0.1", "127.8.9.1", "[::1]", "api.localhost", "0.0.0.0"]
WRONG = ["localhost:8000", "", "gpt-4o", "ftp://host/v1", "http://", "http://host:99999/v1"]
WRONG_NUMBERS = "concurrency=0 concurrency=2.5 timeout=0 max_retries=-1 requests_per_minute=0"


def failure_of(model, methods=()):
    """The message of the error; no part of the error may show the key."""
    with pytest.raises(ModelError) as excinfo:
        model.generate(CHAT, methods)
    assert KEY not in "".join(traceback.format_exception(excinfo.value)) + repr(model)
    message = str(excinfo.value)
    assert message.endswith(".") and message.isprintable() and len(message) < 600
    return message


def test_a_request_carries_the_chat_and_the_sampling(serve):
    model, server = serve(lambda body, number: completion())
    reply = model.generate(CHAT, sampling=Sampling(0.5, 0.8, 7), seed=11)
    assert reply == Reply("Arr.", None, "stop")
    assert server.paths == ["/v1/chat/completions"] and server.keys == [f"Bearer {KEY}"]
    sampling = {"temperature": 0.5, "top_p": 0.8, "max_tokens": 7, "seed": 11}
    assert server.bodies == [{"model": "tiny", "messages": list(CHAT), **sampling}]


def test_tools_and_their_calls_are_sent_in_openais_format(serve):
    model, server = serve(lambda body, number: completion())
    system, user, called, result, _ = tool_talk("Be kind.")
    messages = (system, user, {**called, "content": ""}, result)
    (reply,) = model.generate_batch([Request(messages, tools=[LOOK])])
    (body,) = server.bodies
    assert (reply.text, body["tools"], body["tool_choice"]) == ("Arr.", [LOOK], "none")
    function = {"name": "look", "arguments": '{"at": "the price", "many": 2}'}
    call = {"id": "call00001", "type": "function", "function": function}
    alone = {"role": "assistant", "content": None, "tool_calls": [call]}
    assert body["messages"] == [system, user, alone, result]
    assert messages[2]["tool_calls"][0]["function"]["arguments"]["many"] == 2


def test_seeds_of_any_size_are_reduced_to_31_bits(serve):
    model, server = serve(lambda body, number: completion())
    model.generate_batch([Request(CHAT, seed=seed) for seed in (2**31 - 1, 2**63 + 5, 2**64 - 1)])
    assert sorted(body["seed"] for body in server.bodies) == [5, 2**31 - 1, 2**31 - 1]


@pytest.mark.parametrize(("reason", "expected"), [("eos", "stop"), ("max_tokens", "length")])
def test_stop_reasons_are_mapped(serve, reason, expected):
    model, _ = serve(lambda body, number: completion(reason=reason))
    assert model.generate(CHAT).stop_reason == expected


@pytest.mark.parametrize(
    ("usage", "expected"),
    [(None, 0), (USAGE, 23), ({**USAGE, "prompt_tokens_details": {"cached_tokens": 16}}, 7)],
)
def test_forwarded_tokens_are_counted_if_the_server_reports_usage(serve, usage, expected):
    model, _ = serve(lambda body, number: completion(usage=usage))
    assert model.generate(CHAT).forwarded == expected


@pytest.mark.parametrize(
    ("message", "reason", "text", "stop_reason"),
    [
        ({"content": None}, "stop", "", "empty"),
        ({"content": None, "refusal": "I won't."}, "stop", "I won't.", "refusal"),
        ({"content": None, "tool_calls": [{"id": "1"}]}, "tool_calls", "", "tool_calls"),
        ({"content": "Wait.", "tool_calls": [{"id": "1"}]}, "tool_calls", "Wait.", "tool_calls"),
        ({"content": None, "function_call": {"name": "f"}}, "stop", "", "tool_calls"),
        ({"content": "Arr.", "refusal": None, "tool_calls": []}, "stop", "Arr.", "stop"),
        ({"content": None}, "length", "", "length"),
    ],
)
def test_a_reply_without_content_says_why(serve, message, reason, text, stop_reason):
    model, _ = serve(lambda body, number: completion(reason=reason, **message))
    reply = model.generate(CHAT)
    assert (reply.text, reply.stop_reason) == (text, stop_reason)


def test_lone_surrogates_are_received_as_they_are_and_sent_as_replacements(serve):
    model, server = serve(lambda body, number: completion("\ud83d and \ude00"))
    assert model.generate(CHAT).text == "\ud83d and \ude00"
    reply, emoji_message = "\ud83d and \ude00", {"role": "user", "content": "😀"}
    model.generate((*CHAT, {"role": "assistant", "content": reply}, emoji_message))
    contents = [message["content"] for message in server.bodies[-1]["messages"]]
    assert contents[2:] == ["\ufffd and \ufffd", "😀"]


def test_repetition_draws_by_the_conversation_and_not_by_the_turn(serve):
    model, server = serve(lambda body, number: completion(), concurrency=1)
    spread = methods.parse("repetition:probability=0.5")
    chat = (*CHAT, *({"role": "user", "content": f"{number}"} for number in range(20)))
    requests = [Request(chat, spread, seed=turn, conversation_seed=5) for turn in range(4)]
    model.generate_batch(requests)
    edited = list(methods.compile_methods(spread).edit(chat, 5))
    assert all(body["messages"] == edited for body in server.bodies)


def test_the_system_prompt_can_open_the_first_user_message(serve):
    model, server = serve(lambda body, number: completion())
    model.generate_batch([Request(CHAT, system_as="first-user")])
    assert server.bodies[0]["messages"] == [{"role": "user", "content": "Rhyme.\n\nHello."}]


def test_methods_that_need_attention_are_refused_before_anything_is_sent(serve):
    model, server = serve(lambda body, number: completion())
    message = failure_of(model, "repetition:probability=1+split-softmax:exponent=0.5")
    assert "split-softmax:exponent=0.5" in message and "attention" in message
    assert "repetition:probability=0.5" in message and "in this process" in message
    assert server.bodies == []


def test_a_batch_keeps_its_order(serve):
    def answer(body, number):
        question = int(body["messages"][0]["content"])
        time.sleep(0.02 * (5 - question))
        return completion(f"answer {question}")

    model, server = serve(answer)
    assert model.generate_batch([]) == [] and server.bodies == []
    requests = [Request(({"role": "user", "content": str(number)},)) for number in range(5)]
    replies = [reply.text for reply in model.generate_batch(requests)]
    assert replies == [f"answer {number}" for number in range(5)]


def test_as_many_requests_as_allowed_are_under_way_and_no_more(serve):
    # breaks, and the requests fail, unless three are in flight at once
    three = threading.Barrier(3, timeout=10)

    def answer(body, number):
        three.wait()
        time.sleep(0.05)
        return completion()

    model, server = serve(answer, concurrency=3)
    model.generate_batch([Request(CHAT)] * 9)
    assert server.most_under_way == 3 and len(server.bodies) == 9


def test_no_further_request_is_started_after_a_failure(serve):
    def answer(body, number):
        return refusal(400, "no") if number == 2 else completion()

    model, server = serve(answer, concurrency=1)
    with pytest.raises(ModelError, match="400: no"):
        model.generate_batch([Request(CHAT)] * 40)
    assert len(server.bodies) < 10


def test_an_interrupt_does_not_wait_for_pending_answers():
    released, arrived = threading.Event(), threading.Event()

    def answer(body, number):
        arrived.set()
        released.wait(60)
        return completion()

    script = (
        "import sys; from holdfast.models.requests import Request; from holdfast.models.connecting"
        " import connect\nchat = Request(({'role': 'user', 'content': 'Hello.'},))\n"
        "connect(sys.argv[1], 'tiny').generate_batch([chat] * 20)"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with Server(answer) as server:
        command = [sys.executable, "-c", script, server.url]
        piped = {"stderr": subprocess.PIPE, "text": True, "preexec_fn": heed_interrupts}
        program = subprocess.Popen(command, env=env, **piped)
        try:
            assert arrived.wait(60)
            program.send_signal(signal.SIGINT)
            _, stderr = program.communicate(timeout=20)  # far less than the 60 s that answers take
        finally:
            program.kill()
            released.set()
    assert stderr.rstrip().endswith("KeyboardInterrupt")
    assert len(server.bodies) <= 8


def test_requests_are_spaced_including_retries(serve):
    def answer(body, number):
        failed = refusal(500, "oops", headers={"retry-after-ms": "1"})
        return failed if number == 1 else completion()

    model, server = serve(answer, requests_per_minute=240, max_retries=1)
    model.generate_batch([Request(CHAT)] * 3)
    assert len(server.times) == 4
    gaps = [later - earlier for earlier, later in zip(server.times, server.times[1:], strict=False)]
    # sent 0.25 s apart; on a busy machine the gaps at arrival vary
    assert server.times[-1] - server.times[0] > 0.45 and min(gaps) > 0.05


def test_repeated_requests_are_counted(serve):
    def answer(body, number):
        if number == 1:
            return refusal(500, "oops", headers={"retry-after-ms": "1"})
        return (200, {}, "<html>busy</html>") if number == 2 else completion()

    model, server = serve(answer, concurrency=1, max_retries=2)
    model.generate_batch([Request(CHAT)] * 3)
    assert len(server.bodies) == 5 and model.num_repeated == 2


def test_max_tokens_gives_way_to_max_completion_tokens_for_good(serve):
    def answer(body, number):
        if "max_tokens" in body:
            text = "Unsupported parameter: 'max_tokens' is not supported with this model."
            return refusal(400, text, "unsupported_parameter")
        return completion()

    model, server = serve(answer)
    model.generate(CHAT, sampling=Sampling(max_new_tokens=9))
    model.generate(CHAT, sampling=Sampling(max_new_tokens=9))
    assert [body.get("max_tokens") for body in server.bodies] == [9, None, None]
    assert [body.get("max_completion_tokens") for body in server.bodies] == [None, 9, 9]


NO_SEED = "Unsupported parameter: 'seed' is not supported with this model."
EXTRA = '{"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}'


@pytest.mark.parametrize(
    "response",
    [
        refusal(400, NO_SEED, "unsupported_parameter"),
        refusal(400, "Unrecognized request argument supplied: seed"),
        (422, {}, EXTRA),
    ],
)
def test_a_refused_seed_is_left_out_for_good_with_one_warning(serve, response):
    model, server = serve(lambda body, number: response if "seed" in body else completion())
    with pytest.warns(UserWarning) as warned:
        assert model.generate(CHAT, seed=3).text == "Arr."
        assert model.generate(CHAT, seed=4).text == "Arr."
    assert [body.get("seed") for body in server.bodies] == [3, None, None]
    (warning,) = (str(entry.message) for entry in warned)
    assert server.url in warning and "'seed'" in warning


@pytest.mark.parametrize("reason", ["seed must be at most 1000", "max_tokens must be at most 256"])
def test_another_complaint_about_a_field_is_passed_on(serve, reason):
    model, server = serve(lambda body, number: refusal(400, reason))
    assert f"400: {reason}" in failure_of(model)
    assert len(server.bodies) == 1


def reasoning(body, number):
    """Answers like OpenAI's reasoning models, which accept neither max_tokens nor sampling."""
    for name in ("max_tokens", "seed", "top_p"):
        if name in body:
            text = f"Unsupported parameter: '{name}' is not supported with this model."
            return refusal(400, text, "unsupported_parameter")
    if body.get("temperature", 1) != 1:
        text = "Unsupported value: 'temperature' does not support 0.7 with this model."
        return refusal(400, text, "unsupported_value")
    return completion()


@pytest.mark.parametrize("name", ["temperature", "top_p"])
def test_refused_sampling_is_an_error_that_names_the_parameter_and_the_cure(serve, name):
    model, _ = serve(reasoning)
    with pytest.raises(ModelError, match=f"'{name}'.*; set {name}=1, this"):
        model.generate(CHAT, sampling=Sampling(**{"temperature": 1, "top_p": 1, name: 0.7}))


def test_neutral_sampling_is_left_out_if_it_is_refused(serve):
    model, server = serve(reasoning)
    with pytest.warns(UserWarning, match="'seed'"):
        for _ in range(2):
            assert model.generate(CHAT, sampling=Sampling(temperature=1, top_p=1)).text == "Arr."
    fields = [set(body) - {"model", "messages"} for body in server.bodies[-2:]]
    assert fields == [{"temperature", "max_completion_tokens"}] * 2
    assert len(server.bodies) == 5
    # a parameter that was left out as neutral is not dropped once it is set
    with pytest.raises(ModelError, match="set top_p=1"):
        model.generate(CHAT, sampling=Sampling(temperature=1, top_p=0.9))


def test_of_two_mutually_exclusive_parameters_the_neutral_one_is_left_out(serve):
    def answer(body, number):
        has_both = "temperature" in body and "top_p" in body
        error = refusal(400, "`temperature` and `top_p` cannot both be specified for this model.")
        return error if has_both else completion()

    model, server = serve(answer)
    model.generate(CHAT, sampling=Sampling(temperature=1, top_p=0.9))
    model.generate(CHAT, sampling=Sampling(temperature=1, top_p=0.9))
    assert ["temperature" in body for body in server.bodies] == [True, False, False]
    model, server = serve(answer)
    with pytest.raises(ModelError, match="temperature=1 or top_p=1"):
        model.generate(CHAT, sampling=Sampling(temperature=0.5, top_p=0.9))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ((401, f"Incorrect API key provided: {KEY}"), ["refused the API key in OPENAI", "***"]),
        ((404, "The model `tiny` does not exist", "model_not_found"), ["no model 'tiny'"]),
        ((404, {}, '{"detail": "Not Found"}'), ["/v1/chat/completions does not exist", "/v1"]),
        ((405, {}, "Method Not Allowed"), ["/v1/chat/completions does not exist", "405"]),
        ((429, "You exceeded your quota"), ["429: You exceeded", "0 retries", "requests per mi"]),
        ((503, "Loading model"), ["failed (503: Loading model)", "0 retries"]),
        ((500, "x" * 290 + KEY), ["failed (500"]),
        ((500, {"Content-Type": "text/html"}, "<h1>\nbad\n</h1>"), ["<h1> bad </h1>"]),
        ((400, "This model's maximum context length is 64 tokens."), ["context", "fewer rounds"]),
        ((400, "System role not supported"), ["System role", "before the first user message"]),
        ((422, {}, '{"detail": [{"loc": ["seed"], "msg": "extra field"}]}'), ["422", "extra fie"]),
        ((403, "Not in your country"), ["403: Not in your country", "'tiny'"]),
        ((500, "\x1b]0;owned\x07\x1b[31mred\x1b[0m \u202e\x9b2J"), ["]0;owned", "[31mred"]),
        ((500, "x" * 10**6), ["xxx"]),
        ((500, "half \ud83d a pair"), ["half a pair"]),
    ],
)
def test_a_refusal_is_explained(serve, answer, words):
    answer = answer if isinstance(answer[1], dict) else refusal(*answer)
    model, server = serve(lambda body, number: answer)
    message = failure_of(model)
    assert all(word in message for word in [server.url, *words]), message
    assert KEY[:12] not in message


def choice(reason, content):
    message = {} if content is None else {"content": content}
    return json.dumps({"choices": [{"finish_reason": reason, "message": message}]})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<html>Welcome</html>", ["not JSON", "<html>Welcome", "/v1"]),
        ("[1]", ["no choices"]),
        ('{"error": {"message": "upstream is down"}}', ["no choices", "upstream is down"]),
        ('{"choices": []}', ["empty list of choices"]),
        ('{"choices": [7]}', ["finish_reason None"]),
        ('{"choices": [{"finish_reason": "stop"}]}', ["no message"]),
        (choice("stop", ["a"]), ["no text"]),
        (choice(["stop"], "a"), ["finish_reason ['stop']"]),
        (choice("x" * 10**6, None), ["finish_reason 'xxx"]),
        ("[" * 100_000, ["not JSON"]),
        (choice("content_filter", "a"), ["content filter"]),
        (json.dumps({"echo": KEY}), ["no choices", "***"]),
    ],
)
@pytest.mark.parametrize("kind", ["application/json", "text/html"])
def test_a_malformed_answer_is_explained(serve, text, words, kind):
    model, server = serve(lambda body, number: (200, {"Content-Type": kind}, text))
    message = failure_of(model)
    assert all(word in message for word in [server.url, *words]), message


def endpoint_of(upstream):
    return holdfast.connect(f"{upstream.url}/v1", "m", max_retries=0, timeout=10)


def test_an_answer_in_another_encoding_is_not_read_with_letters_lost(monkeypatch):
    """JSON is UTF-8; a reply with replacement characters would be another one."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    body = fake_upstream.completion("Guten Tag").replace(
        b"Guten Tag", "Grüß Gott".encode("latin-1")
    )
    with FakeUpstream(reply_json(body)) as upstream, pytest.raises(ModelError, match="not JSON"):
        endpoint_of(upstream).generate(CHAT)


def test_a_connection_that_is_closed_is_named_so(monkeypatch):
    """In place of a cause that has nothing to do with it."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    words = "Server disconnected without sending a response"
    with FakeUpstream(lambda *_: False) as upstream, pytest.raises(ModelError, match=words):
        endpoint_of(upstream).generate(CHAT)


@pytest.mark.parametrize(
    ("events", "words"),
    [
        (chunks("He", finish=None), "broke off in the middle of its answer, after 'He'; try again"),
        ([b"data: {bad\n\n"], "a piece that is not JSON"),
        ([], "gave an empty answer .a stream without an end."),
    ],
)
def test_a_stream_that_is_not_whole_is_explained(monkeypatch, events, words):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    answer = reply_events(*events)
    with FakeUpstream(answer) as upstream, pytest.raises(ModelError, match=words):
        endpoint_of(upstream).stream(Request(CHAT), lambda piece: None)


def test_a_silent_server_times_out(serve):
    released = threading.Event()

    def answer(body, number):
        released.wait(10)
        return completion()

    model, server = serve(answer, timeout=0.3)
    started = time.monotonic()
    message = failure_of(model)
    released.set()
    assert time.monotonic() - started < 5
    assert "within 0.3 s" in message and server.url in message


def test_an_unreachable_server_fails_quickly():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    start = time.monotonic()
    with pytest.raises(ModelError, match=f"Cannot reach {url} .*is running"):
        holdfast.connect(url)
    assert url in failure_of(holdfast.connect(url, "tiny"))
    assert time.monotonic() - start < 6


def models(*names):
    entries = [{"id": name, "object": "model"} for name in names]
    return 200, {}, json.dumps({"object": "list", "data": entries})


def find(answer, monkeypatch):
    """Connects, without naming a model, to a server that answers `listed`."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Server(lambda body, number: answer if body is None else completion()) as server:
        model = holdfast.connect(server.url, max_retries=0)
        assert server.paths == ["/v1/models"] and server.keys == [f"Bearer {KEY}"]
        model.generate(CHAT)
        return model, server


def test_the_only_model_that_a_server_lists_is_used(monkeypatch):
    model, server = find(models("meta/llama"), monkeypatch)
    assert model.name == server.bodies[-1]["model"] == "meta/llama"
    assert model.fingerprint == f"{server.url} meta/llama"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (models("first", "second"), ["has 2 models (first, second)", "--endpoint-model"]),
        (models(*(f"m{n}" for n in range(500))), ["has 500 models (m0, m1", "m9 and 490 more)"]),
        (models("\x1b[31mred", KEY), ["[31mred, ***"]),
        (models(), ["lists no model", "--endpoint-model"]),
        ((200, {}, "<html>"), ["lists no model"]),
        ((404, {}, "Not Found"), ["/models answers 404, not found", "/v1"]),
        (refusal(401, f"bad {KEY}"), ["refused the API key"]),
    ],
)
def test_a_model_that_cannot_be_chosen_from_the_list_is_explained(monkeypatch, answer, words):
    with pytest.raises(ModelError) as excinfo:
        find(answer, monkeypatch)
    message = str(excinfo.value)
    assert all(word in message for word in words), message
    assert message.isprintable() and KEY not in message and len(message) < 600


def test_the_client_is_closed_if_no_model_is_found(monkeypatch):
    closed = []
    close = openai.AsyncOpenAI.close

    async def note(client):
        closed.append(await close(client))

    monkeypatch.setattr(openai.AsyncOpenAI, "close", note)
    with pytest.raises(ModelError) as excinfo:
        find(models("first", "second"), monkeypatch)
    assert excinfo.value.option == "model" and len(closed) == 1


def test_an_address_without_v1_is_completed_in_the_message(serve):
    _, server = serve(lambda body, number: (404, {}, "Not Found"))
    bare = server.url.removesuffix("/v1")
    with pytest.raises(ModelError, match=f"{bare}/models .*{bare}/v1"):
        holdfast.connect(bare)


def test_localhost_needs_no_key_and_no_proxy(serve, monkeypatch):
    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    for variable in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.delenv("OPENAI_API_KEY")
    model, server = serve(lambda body, number: completion())
    assert model.generate(CHAT).text == "Arr."
    assert KEY not in server.keys[0]


def test_a_local_server_that_requires_a_key_is_explained(serve, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    model, _ = serve(lambda body, number: refusal(401, "who are you?"))
    assert "401" in failure_of(model)


@pytest.mark.parametrize("host", LOOPBACK)
def test_hosts_that_are_this_machine_need_no_key(monkeypatch, host):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    url = f"http://{host}:9/v1"  # the port for discarding, where nothing listens
    assert holdfast.connect(f"{url}/", "tiny").fingerprint == f"{url} tiny"


def test_a_variable_that_is_named_has_to_hold_a_key(monkeypatch):
    """Even for a server on this machine: whoever names one has a key."""
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(ModelError, match="MY_KEY"):
        holdfast.connect("http://127.0.0.1:8000/v1", "tiny", "MY_KEY")


def test_a_placeholder_key_is_not_masked_in_messages(monkeypatch, serve):
    """A server that needs no key is often given "x", which is in many words."""
    _, server = serve(lambda body, number: refusal(400, "The text exceeds the maximum."))
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    assert "The text exceeds the maximum" in failure_of(holdfast.connect(server.url, "tiny"))


def test_a_connection_that_is_closed_in_mid_stream_is_not_called_unreachable(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)

    def break_off(_, writer):
        writer.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        writer.chunk(chunks("He", finish=None)[0])
        return False

    words = "closed the connection before its answer"
    with FakeUpstream(break_off) as upstream, pytest.raises(RequestFailed, match=words):
        endpoint_of(upstream).stream(Request(CHAT), lambda piece: None)


@pytest.mark.parametrize("key", [None, "", "  \n"])
def test_a_missing_key_is_named_by_its_variable(monkeypatch, key):
    monkeypatch.delenv("MY_KEY", raising=False)
    if key is not None:
        monkeypatch.setenv("MY_KEY", key)
    with pytest.raises(ModelError, match=r"api\.example\.com .*MY_KEY"):
        holdfast.connect("https://api.example.com/v1", "tiny", "MY_KEY")


@pytest.mark.parametrize("key", ["sk-secret\nsk-other", "sk-schlüssel", "sk secret"])
def test_an_invalid_key_is_refused_without_being_shown(monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ModelError) as excinfo:
        holdfast.connect("https://api.example.com/v1", "tiny")
    error = excinfo.value
    assert (error.option, error.value) == ("api_key_env", "OPENAI_API_KEY")
    assert "OPENAI_API_KEY" in str(error) and "sk" not in str(error)


@pytest.mark.parametrize("mistake", ["sk-secret", "gsk_secret"])
def test_a_key_given_in_place_of_its_variable_is_not_shown(mistake):
    with pytest.raises((UsageError, ModelError)) as excinfo:
        holdfast.connect("https://api.example.com/v1", "tiny", mistake)
    assert (excinfo.value.option, excinfo.value.value) == ("api_key_env", None)
    assert mistake not in str(excinfo.value)


@pytest.mark.parametrize("url", WRONG)
def test_an_invalid_address_is_named(url):
    with pytest.raises(UsageError) as excinfo:
        holdfast.connect(url, "tiny")
    assert repr(url) in str(excinfo.value) and "http://localhost:8000/v1" in str(excinfo.value)


def test_forbidden_parts_of_an_address_are_refused_without_being_shown():
    too_long = "http://localhost:8000/v1/chat/completions"
    for url, message, value in (
        (too_long, "ends in /chat/completions", too_long),
        ("https://me:secret@host/v1", "environment variable", None),
        ("https://host/v1?key=secret", "environment variable", None),
    ):
        with pytest.raises(UsageError, match=message) as excinfo:
            holdfast.connect(url, "tiny")
        assert (excinfo.value.option, excinfo.value.value) == ("base_url", value)
        assert "secret" not in str(excinfo.value)


@pytest.mark.parametrize("wrong", WRONG_NUMBERS.split())
def test_numbers_out_of_range_are_named(wrong):
    option, value = wrong.split("=")
    with pytest.raises(ParameterOutOfRange, match=f"{option}.*{value}"):
        holdfast.connect("http://localhost:8000/v1", "tiny", **{option: json.loads(value)})
