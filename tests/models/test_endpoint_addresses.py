"""Addresses of endpoints, the keys that they need, and the models that they list."""

import json

import openai
import pytest
from chat_server import CHAT, KEY, Server, completion, failure_of, refusal

import holdfast.models.endpoint
from holdfast.errors import ModelError, ParameterOutOfRange, UsageError

# The model that a server lists


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


# Keys


LOOPBACK = ["localhost", "127.0.0.1", "127.8.9.1", "[::1]", "api.localhost", "0.0.0.0"]


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


# Addresses and numbers


WRONG = ["localhost:8000", "", "gpt-4o", "ftp://host/v1", "http://", "http://host:99999/v1"]
WRONG_NUMBERS = "concurrency=0 concurrency=2.5 timeout=0 max_retries=-1 requests_per_minute=0"


def test_an_address_without_v1_is_completed_in_the_message(serve):
    _, server = serve(lambda body, number: (404, {}, "Not Found"))
    bare = server.url.removesuffix("/v1")
    with pytest.raises(ModelError, match=f"{bare}/models .*{bare}/v1"):
        holdfast.connect(bare)


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
