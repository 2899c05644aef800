"""The interface of chat models: what a request may contain."""

import pytest
from tiny import LOOK, model, tool_talk

from holdfast.errors import ParameterOutOfRange, UsageError
from holdfast.generation.sampling import Sampling
from holdfast.models.rendering import render_one
from holdfast.models.requests import Request

HELLO = ({"role": "user", "content": "hello"},)
EDGES = [("temperature", 0), ("top_p", 1), ("top_p", 1e-9), ("max_new_tokens", 1)]
BEGUN = (*HELLO, {"role": "assistant", "content": "Oui, "})
PARTS = [{"type": "text", "text": "x"}]


def test_the_defaults_are_those_of_the_paper():
    assert Sampling() == Sampling(temperature=1.0, top_p=0.9, max_new_tokens=400)


@pytest.mark.parametrize(("parameter", "value"), EDGES)
def test_values_at_the_ends_of_the_ranges_are_accepted(parameter, value):
    assert getattr(Sampling(**{parameter: value}), parameter) == value


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -0.1},
        {"temperature": float("nan")},
        {"temperature": 10**400},
        {"temperature": True},
        {"top_p": 0},
        {"max_new_tokens": 0},
        {"max_new_tokens": 1.5},
    ],
)
def test_a_value_outside_its_range_is_named(wrong):
    parameter, value = next(iter(wrong.items()))
    with pytest.raises(ParameterOutOfRange) as excinfo:
        Sampling(**wrong)
    assert parameter in str(excinfo.value) and repr(value) in str(excinfo.value)


def test_editing_uses_the_seed_of_the_conversation_if_given():
    assert Request(HELLO, seed=7).editing_seed == 7
    assert Request(HELLO, seed=7, conversation_seed=0).editing_seed == 0


def test_roles_that_only_a_template_knows_pass_through():
    result = {"role": "tool", "content": "4", "name": "add"}
    assert Request([*HELLO, result]).messages[-1] == result
    request = Request(tool_talk("be kind")[:4], tools=[LOOK])
    roles = ["system", "user", "assistant", "tool"]
    assert [message["role"] for message in request.messages] == roles


def with_message(content, role="user", **fields):
    """The arguments of a request with one message."""
    return {"messages": ({"role": role, "content": content, **fields},)}


@pytest.mark.parametrize(
    ("wrong", "option", "value"),
    [
        ({"messages": ()}, "messages", []),
        ({"messages": ("hello",)}, "messages", "hello"),
        ({"messages": (*HELLO, {"content": "x"})}, "role", None),
        (with_message("x", "usr"), "role", "usr"),
        (with_message("x", "User"), "role", "User"),
        ({"messages": ({"role": "user"},)}, "content", {"role": "user"}),
        (with_message(7), "content", 7),
        (with_message(PARTS), "content", PARTS),
        (with_message("hello", tool_calls=[{"id": "1"}]), "tool_calls", {"id": "1"}),
        ({"messages": BEGUN}, "continue_final_message", False),
        ({"continue_final_message": True}, "continue_final_message", True),
        ({"tools": [{"name": "look"}]}, "tools", {"name": "look"}),
        ({"tools": [LOOK], "plain": True}, "tools", LOOK),
        ({"system_as": "user"}, "system_as", "user"),
        ({"seed": -1}, "seed", -1),
        ({"seed": 2**128}, "seed", 2**128),
        ({"seed": 1.5}, "seed", 1.5),
    ],
)
def test_a_request_that_cannot_be_answered_is_refused(wrong, option, value):
    with pytest.raises(UsageError) as excinfo:
        Request(**{"messages": HELLO, **wrong})
    assert (excinfo.value.option, excinfo.value.value) == (option, value)
    message = str(excinfo.value)
    assert message.endswith(".") and "\n" not in message


def test_developer_is_read_as_system():
    chat = [{"role": "developer", "content": "Be kind."}, *HELLO]
    request = Request(chat, "boost:factor=2")
    assert [message["role"] for message in request.messages] == ["system", "user"]
    assert chat[0]["role"] == "developer"
    request.check_span()


def test_a_reply_continues_the_assistants_message_as_if_the_model_had_begun_it():
    tiny, greedy = model(), Sampling(0, 1.0, 8)
    chat = ({"role": "system", "content": "be brief about music"}, *HELLO)
    messages = (*chat, {"role": "assistant", "content": "bread and"})
    text = render_one(Request(chat), tiny.tokenizer).prompts[0].text + "bread and"
    request = Request(messages, "boost:factor=2", greedy, continue_final_message=True)
    assert render_one(request, tiny.tokenizer).prompts[0].text == text
    continued = tiny.generate(messages, sampling=greedy, continue_final_message=True)
    assert continued.prompt_ids == tuple(tiny.tokenizer(text, add_special_tokens=False).input_ids)
    raw = Request([{"role": "user", "content": text}], (), greedy, plain=True)
    (reply,) = tiny.generate_batch([raw])
    assert reply.prompt_ids == continued.prompt_ids and reply.token_ids == continued.token_ids


def test_the_beginning_of_a_reply_can_be_emphasised():
    request = Request(
        [*HELLO, {"role": "assistant", "content": "music and bread"}],
        emphasis=["music"],
        continue_final_message=True,
    )
    rendered = render_one(request, model().tokenizer)
    ((first, last),) = rendered.span_ranges
    assert model().tokenizer.decode(rendered.prompt_ids[first:last]).strip() == "music"
