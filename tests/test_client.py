"""The request bodies of `holdfast.client`, for both servers that steer."""

import pytest

from holdfast import client, methods
from holdfast.errors import UnknownName, UsageError
from holdfast.methods import Boost

CHAT = ({"role": "system", "content": "Rhyme."}, {"role": "user", "content": "Hello."})


@pytest.mark.parametrize(
    ("options", "body"),
    [
        ({}, {"steering": "none"}),
        ({"method": "boost:factor=2.0"}, {"steering": "boost:factor=2"}),
        ({"method": Boost(2)}, {"steering": "boost:factor=2"}),
        (
            {"method": "reminder:every=1+boost:factor=2"},
            {"steering": "reminder:every=1+boost:factor=2"},
        ),
        (
            {"method": ["boost:factor=2", methods.SplitSoftmax(0.5, {(0, 1)})]},
            {"steering": "boost:factor=2+split-softmax:exponent=0.5,heads=0.1"},
        ),
        (
            {"emphasis": ["in JSON", ("job", 2), (1, 0, 4)], "trace": "heads"},
            {"steering": "none", "emphasis": ["in JSON", ["job", 2], [1, 0, 4]], "trace": "heads"},
        ),
        (
            {"method": "boost:factor=2", "server": "vllm"},
            {"vllm_xargs": {"holdfast": "boost:factor=2"}},
        ),
        (
            {"emphasis": ["in JSON"], "trace": True, "server": "vllm"},
            {"vllm_xargs": {"holdfast": "none", "holdfast_text": "in JSON", "holdfast_trace": 1}},
        ),
    ],
)
def test_the_body_contains_the_options(options, body):
    assert client.steer(**options) == body


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "bost:factor=2"}, ["'bost'", "did you mean 'boost'"]),
        (
            {"method": "boost:factor=2+repetition:probability=1", "server": "vllm"},
            ["repetition:probability=1", "holdfast.client.edit"],
        ),
        ({"method": "check-and-retry"}, ["check-and-retry", "`holdfast proxy --suite FILE"]),
        ({"method": "boost:factor=2+repair"}, ["repair", "`holdfast proxy --suite FILE"]),
        ({"method": "reminder:when=broken", "server": "vllm"}, ["when=broken", "holdfast proxy"]),
        ({"emphasis": "in JSON"}, ["emphasis=['like this']"]),
        ({"emphasis": [""]}, ["(text, occurrence from 1)", "''"]),
        ({"trace": "all"}, ["'heads'", "'all'"]),
        ({"server": "vlm"}, ["'vlm'", "'vllm'"]),
        ({"server": "vllm", "trace": "heads"}, ["trace=True"]),
        ({"server": "vllm", "emphasis": ["a", "b"]}, ["['a', 'b']", "server='holdfast'"]),
    ],
)
def test_options_that_a_server_cannot_accept_are_refused(options, words):
    with pytest.raises(UsageError) as excinfo:
        client.steer(**options)
    assert all(word in str(excinfo.value) for word in words), excinfo.value


def test_a_custom_method_is_unknown_to_servers():
    class Louder(Boost):
        name = "louder"

    with pytest.raises(UnknownName, match=r"^A server has no method 'louder'") as excinfo:
        client.steer(Louder(2))
    assert excinfo.value.option == "method"


def test_messages_are_edited_as_the_model_would_see_them():
    assert client.edit(CHAT, "repetition:probability=1") == [
        CHAT[0],
        {"role": "user", "content": "Rhyme.\n\nHello."},
    ]
    assert client.edit(CHAT, "none") == list(CHAT)
    with pytest.raises(UsageError, match=r"^boost:factor=2 .*steer"):
        client.edit(CHAT, "repetition:probability=1+boost:factor=2")
    with pytest.raises(UsageError, match=r"^repair needs the rules .*proxy"):
        client.edit(CHAT, "repair")
    with pytest.raises(UsageError, match="Message 1"):
        client.edit(["Hello."], "repetition:probability=1")
