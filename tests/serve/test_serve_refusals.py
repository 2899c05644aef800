"""Fields and messages of requests that the server refuses, or accepts without effect."""

from collections.abc import Iterator
from dataclasses import replace

import hypothesis
import pytest
from fast_set import only_fast
from refused_requests import BRIEF, DEEP, HELLO, LIMITS, error_of, post
from served import RunningServer, served
from tiny import LOOK, TEMPLATE, model, tokenizer

from holdfast.methods import parse
from holdfast.serve.bodies import ChatBody, CompletionBody, TokenizeBody
from holdfast.serve.body_model import read_body
from holdfast.serve.refusals import Refusal
from holdfast.serve.responses_body import ResponsesBody


@pytest.fixture(scope="module")
def server() -> Iterator[RunningServer]:
    with served(model(), LIMITS) as running:
        yield running


def call_of(name: str, arguments: str) -> dict:
    function = {"name": name, "arguments": arguments}
    return {"id": "1", "type": "function", "function": function}


# Templates


NO_SYSTEM_ROLE = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}" + TEMPLATE
)
DROPS_SYSTEM = TEMPLATE.replace("in messages", "in messages if m['role'] != 'system'")
DROPS_USER = TEMPLATE.replace("in messages", "in messages if m['role'] != 'user'")


@pytest.mark.parametrize("template", [NO_SYSTEM_ROLE, DROPS_SYSTEM], ids=["raises", "drops"])
@pytest.mark.parametrize("stream", only_fast([False, True], False))
def test_a_template_without_a_system_role_is_refused_with_the_field_that_moves_it(template, stream):
    tiny = replace(model(), tokenizer=tokenizer(template))
    with served(tiny, LIMITS) as running:
        body = {"messages": BRIEF, "steering": "boost:factor=2", "max_tokens": 4, "stream": stream}
        answer = post(running.url, **body)
        error = error_of(answer)
        assert answer.status_code == 400 and error["param"] == "system_as"
        assert '"system_as": "first-user"' in error["message"] and "--" not in error["message"]
        assert post(running.url, **body, system_as="first-user").status_code == 200


def test_a_template_that_drops_a_users_message_is_refused():
    with served(replace(model(), tokenizer=tokenizer(DROPS_USER)), LIMITS) as running:
        answer = post(running.url, messages=BRIEF, max_tokens=4)
        assert answer.status_code == 400 and "user message 1 ('hello" in error_of(answer)["message"]


def test_a_model_without_a_template_takes_no_chats():
    with served(replace(model(), tokenizer=tokenizer(None)), LIMITS) as running:
        for path in ("/v1/chat/completions", "/tokenize"):
            error = error_of(post(running.url, path, messages=BRIEF))
            assert (error["param"], error["code"]) == ("messages", "no_chat_template")
            assert "/v1/completions" in error["message"]
        assert post(running.url, "/v1/completions", prompt="hello").status_code == 200
        assert post(running.url, "/tokenize", prompt="hello").status_code == 200


# Fields and messages


@pytest.mark.parametrize(
    ("param", "value", "expected"),
    [
        ("tools", [{"type": "function"}], "tools[0].function is missing"),
        ("tools", [{"type": "custom", "custom": {"name": "a"}}], "'custom'"),
        ("tools", [{"type": "function", "function": {"name": "a\ud800"}}], "half a character"),
        ("tools", [{**LOOK, "function": {"name": "a", "parameters": DEEP}}], "deeper than 64"),
        ("tools", [LOOK], "The tokenizer of 'default' has no response template"),
        ("steering", "check-and-retry", "`holdfast proxy --suite FILE"),
        ("steering", "boost:factor=2+repair", "`holdfast proxy --suite FILE"),
        ("tool_choice", "required", "the declared tools are none"),
        ("tool_choice", {"type": "function", "function": {"name": "a"}}, "asks for 'a'"),
        ("functions", [{}], "functions"),
        ("response_format", {"type": "xml"}, "'xml'"),
        ("modalities", ["text", "audio"], "modalities"),
        ("reasoning_effort", "high", "'high'"),
        ("frequency_penalty", 2.5, "2.5"),
        ("top_k", 40, "top_k is not implemented here, so 40 is refused; leave it out"),
        ("min_p", 0.1, "min_p is not implemented"),
        ("repetition_penalty", 1.1, "leave it out or give 1."),
        ("chat_template_kwargs", {"enable_thinking": False}, "chat_template_kwargs is not"),
        ("logit_bias", {"5": 100}, "logit_bias"),
        ("store", True, "store is not implemented here, so true is refused"),
        ("temperature", 2.1, "2.1"),
        ("top_p", 0, "above 0 to 1"),
        ("max_tokens", 17, "1 to 16"),
        ("max_completion_tokens", 0, "1 to 16"),
        ("n", 5, "1 to 4"),
        ("seed", -1, "-1"),
        ("seed", 1.5, "1.5"),
        ("stop", ["a", "b", "c", "d", "e"], "4"),
        ("stop", [""], "1 to 1,000 characters"),
        ("stream", "yes", "'yes'"),
        ("stream_options", {"include_usage": True}, "stream"),
        ("metadata", {"a": 1}, "metadata"),
        ("steering", "bost:factor=2", "did you mean 'boost'"),
        ("steering", "boost:factor=0.5", "from 1 upwards"),
        ("steering", "boost:factor=2,heads=/etc/passwd.json", "names a file"),
        ("steering", "boost:factor=2,heads=" + "9" * 5000 + ".0", "LAYER.HEAD"),
        ("steering", "boost:factor=2,heads=7.0", "layer"),
        ("emphasis", "music", "emphasis"),
        ("emphasis", ["nowhere"], "is in no message"),
        ("emphasis", [["music", 2]], "occurs 1 times"),
        ("emphasis", [[0, 3, 99]], "characters"),
        ("emphasis", [7], "emphasis[0]"),
        ("emphasis", [["music"]], "a list of 1"),
        ("emphasis", [[]], "an empty list"),
        ("emphasis", ["music", [0, 1, 2, 3]], "emphasis[1]"),
        ("emphasis", [["music", None]], "emphasis[0][1]"),
        ("emphasis", ["music"] * 65, "64"),
        ("trace", "all", "'all'"),
        ("system_as", "tool", "first-user"),
        ("vllm_xargs", {"holdfast_trace": 7}, "holdfast_trace"),
        ("temprature", 1, "did you mean 'temperature'"),
        ("zebra", 1, "no field 'zebra'"),
    ],
)
def test_an_invalid_or_unsupported_field_is_refused_by_name(url, param, value, expected):
    answer = post(url, messages=BRIEF, **{param: value})
    assert answer.status_code == 400
    error = error_of(answer)
    assert error["type"] == "invalid_request_error" and error["code"]
    assert expected in error["message"], error
    assert (error["param"] or "").split("[")[0].split(".")[0] == param


IMAGE = [{"type": "image_url", "image_url": {"url": "file:///"}}]
WRONG = [
    ("hello", ""),
    ({"role": "wizard", "content": "a"}, ".role"),
    ({"role": "tool", "content": "a", "tool_call_id": 1}, ".tool_call_id"),
    ({"role": "assistant", "tool_calls": [{"id": "1"}]}, ".tool_calls[0].type"),
    (
        {"role": "assistant", "tool_calls": [call_of("look", "nine")]},
        ".tool_calls[0].function.arguments",
    ),
    ({"role": "user"}, ".content"),
    ({"role": "user", "content": None}, ".content"),
    ({"role": "user", "content": "a\ud800"}, ".content"),
    ({"role": "user", "content": "a", "mood": "b"}, ".mood"),
    ({"role": "user", "content": "a", "name": "Ann"}, ".name"),
    ({"role": "assistant", "content": "a", "reasoning_content": "b"}, ".reasoning_content"),
    ({"role": "user", "content": IMAGE}, ".content[0].type"),
]


@pytest.mark.parametrize(("message", "param"), WRONG)
def test_an_invalid_message_is_refused_by_its_position(url, message, param):
    answer = post(url, messages=[message])
    assert answer.status_code == 400 and error_of(answer)["param"] == f"messages[0]{param}"
    assert len(error_of(answer)["message"]) < 610


@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        ("/v1/completions", {"prompt": ""}, "prompt"),
        ("/v1/completions", {"prompt": "bread and cheese " * 400}, "prompt"),
        ("/v1/completions", {"prompt": "hello", "emphasis": [["hello"]]}, "emphasis[0]"),
        ("/v1/completions", {"prompt": [[1, [2]]]}, "prompt[0][1]"),
        ("/tokenize", {"prompt": ""}, "prompt"),
        ("/tokenize", {"prompt": "hello", "emphasis": [[]]}, "emphasis[0]"),
        ("/tokenize", {"messages": [{"role": "tool", "content": "a"}]}, "messages"),
    ],
)
def test_a_refusal_names_the_field_on_every_path(url, path, fields, param):
    answer = post(url, path, **fields)
    assert answer.status_code == 400
    error = error_of(answer)
    assert error["param"] == param
    assert "another value" not in error["message"]


# Any JSON


ANY_JSON = hypothesis.strategies.recursive(
    hypothesis.strategies.sampled_from(
        [None, True, False, 0, 1, -1, 2**64, 0.5, "", " ", "music", "user", "text", "function"]
    ),
    lambda inner: (
        hypothesis.strategies.lists(inner, max_size=4)
        | hypothesis.strategies.dictionaries(
            hypothesis.strategies.sampled_from(
                ["role", "content", "type", "text", "function", "name", "arguments", "id", "str"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)
FIELDS = [
    (body, base, name)
    for body, base in (
        (ChatBody, {"messages": BRIEF}),
        (CompletionBody, {"prompt": "music"}),
        (TokenizeBody, {"messages": BRIEF}),
        (ResponsesBody, {"input": "music"}),
    )
    for name in body.model_fields
]
# what is wrong with the first may be said of the second
RELATED = {
    "top_logprobs": "logprobs",
    "max_completion_tokens": "max_tokens",
    "parallel_tool_calls": "tools",
}


def fields_in_fast_set():
    """The fields as parameters; those that an earlier body has too are marked slow."""
    names = set()
    for body, base, name in FIELDS:
        yield pytest.param(body, base, name, marks=[pytest.mark.slow] if name in names else [])
        names.add(name)


@pytest.mark.parametrize(("body", "base", "name"), [*fields_in_fast_set()])
def test_a_field_of_any_json_is_read_or_refused_by_name(body, base, name):
    @hypothesis.given(value=ANY_JSON)
    @hypothesis.settings(max_examples=60, deadline=None, derandomize=True, database=None)
    def check(value):
        try:
            read_body(body, {**base, name: value})
        except Refusal as refusal:
            refused_field = (refusal.param or "").split("[")[0].split(".")[0]
            assert refused_field in (name, RELATED.get(name)), refusal
            assert refusal.message.endswith((".", "?"))

    check()


# Fields without effect, and steering


def test_fields_that_change_nothing_are_accepted(url):
    neutral = {"user": "me", "metadata": {"a": "b"}, "store": False, "stop": None}
    neutral |= {"frequency_penalty": 0.0, "presence_penalty": 0, "logit_bias": {}}
    neutral |= {"top_k": -1, "min_p": 0, "repetition_penalty": 1.0, "chat_template_kwargs": {}}
    neutral |= {"tools": [], "tool_choice": "none", "parallel_tool_calls": True}
    neutral |= {"response_format": {"type": "text"}, "modalities": ["text"]}
    neutral |= {"service_tier": "auto", "prompt_cache_key": "k", "safety_identifier": "s"}
    plain = post(url, messages=BRIEF, seed=3).json()["choices"]
    assert post(url, messages=BRIEF, seed=3, **neutral).json()["choices"] == plain
    parts = [{"role": "developer", "content": [{"type": "text", "text": BRIEF[0]["content"]}]}]
    assert post(url, messages=[*parts, *HELLO], seed=3).json()["choices"] == plain


def test_steering_without_a_span_is_refused_unless_it_is_the_servers_default(url):
    error = error_of(post(url, messages=HELLO, steering="boost:factor=2"))
    assert (error["param"], error["code"]) == ("steering", "nothing_to_hold")
    for emphasis in ([], ["hello"]):  # what is emphasised is no prompt to repeat
        answer = post(url, messages=HELLO, steering="repetition:probability=1", emphasis=emphasis)
        assert answer.status_code == 400 and error_of(answer)["code"] == "nothing_to_hold"
    with served(model(), LIMITS, default=parse("boost:factor=2")) as running:
        applied = post(running.url, messages=HELLO).json()["holdfast"]
        assert applied["applied"] is False and "no system prompt" in applied["why"]
        applied = post(running.url, messages=BRIEF).json()["holdfast"]
        assert (applied["applied"], applied["steering"]) == (True, "boost:factor=2")
        applied = post(running.url, messages=BRIEF, steering="none").json()["holdfast"]
        assert (applied["applied"], applied["steering"]) == (False, "none")


def test_the_names_of_the_vllm_plug_in_mean_the_same(url):
    fields = {"steering": "boost:factor=5", "emphasis": ["music"], "trace": True}
    ours = post(url, messages=BRIEF, seed=1, **fields)
    vllm_fields = {"holdfast": "boost:factor=5", "holdfast_text": "music", "holdfast_trace": 1}
    vllm_reply = post(url, messages=BRIEF, seed=1, vllm_xargs=vllm_fields).json()
    assert vllm_reply["choices"] == ours.json()["choices"]
    assert vllm_reply["holdfast"] == ours.json()["holdfast"]
    conflict = post(url, messages=BRIEF, steering="boost:factor=2", vllm_xargs=vllm_fields)
    assert conflict.status_code == 400 and "boost:factor=2" in error_of(conflict)["message"]


def test_the_mass_on_the_prompt_is_not_traced_under_attenuate(url):
    refusal = post(url, messages=BRIEF, steering="attenuate:factor=0.1", trace=True)
    assert refusal.status_code == 400 and error_of(refusal)["param"] == "trace"
    steered = post(url, messages=BRIEF, steering="attenuate:factor=0.1").json()["holdfast"]
    assert (steered["applied"], steered["steering"]) == (True, "attenuate:factor=0.1")
    unprompted = [message for message in BRIEF if message["role"] != "system"]
    steered = post(url, messages=unprompted, steering="attenuate:factor=0.1").json()["holdfast"]
    assert (steered["applied"], steered["steering"]) == (True, "attenuate:factor=0.1")


def test_a_chat_beyond_the_context_has_openais_code(url):
    answer = post(url, messages=[{"role": "user", "content": "bread and cheese " * 400}])
    assert answer.status_code == 400
    assert error_of(answer)["code"] == "context_length_exceeded"


def test_another_model_is_not_found(url):
    answer = post(url, model="gpt-4", messages=HELLO)
    assert answer.status_code == 404 and error_of(answer)["code"] == "model_not_found"
