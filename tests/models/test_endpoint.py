"""Requests to models behind an endpoint, against a real HTTP server on loopback."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest
from chat_server import CHAT, KEY, Server, completion, failure_of, refusal
from command_lines import heed_interrupts
from tiny import LOOK, tool_talk

from holdfast import methods
from holdfast.errors import ModelError
from holdfast.generation.sampling import Sampling
from holdfast.models.requests import Reply, Request

USAGE = {"prompt_tokens": 20, "completion_tokens": 3}


# What a request carries


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


# What is read from an answer


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


# Many requests


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
