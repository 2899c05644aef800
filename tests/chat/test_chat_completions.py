"""The assistant's message of a chat completion, read strictly and leniently."""

import pytest

from holdfast.chat.chat_completions import AssistantMessage, MalformedResponse, ToolCallText

IMAGE = {"type": "image_url", "image_url": {"url": "x"}}


def read(*parts, is_strict=True):
    """The message that these parts make, and the texts that they brought."""
    message = AssistantMessage(is_strict)
    return message, [message.add(part) for part in parts]


@pytest.mark.parametrize("is_strict", [True, False])
def test_a_message_is_the_same_whole_and_in_pieces(is_strict):
    whole, _ = read({"content": "Hello there", "reasoning": "Hm."}, is_strict=is_strict)
    pieces = [{"role": "assistant", "content": ""}, {"reasoning_content": "Hm."}]
    pieces += [{"content": "Hello "}, {"content": "there"}, {}]
    streamed, texts = read(*pieces, is_strict=is_strict)
    assert streamed == whole and texts == ["", "", "Hello ", "there", ""]
    assert (whole.text, whole.reasoning, whole.is_refusal) == ("Hello there", "Hm.", False)


@pytest.mark.parametrize("is_strict", [True, False])
def test_the_parts_of_a_content_are_read(is_strict):
    """Mistral sends a content in parts."""
    thoughts = {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}
    parts = [thoughts, {"type": "text", "text": "Hello "}]
    message, texts = read({"content": parts}, {"content": "there"}, is_strict=is_strict)
    assert (message.text, message.reasoning) == ("Hello there", "Hm.")
    assert texts == ["Hello ", "there"]


@pytest.mark.parametrize("content", [3, {"text": "x"}, [IMAGE], [None]])
def test_an_unknown_content_is_malformed_if_read_strictly_and_else_left_out(content):
    with pytest.raises(MalformedResponse):
        read({"content": content})
    message, _ = read({"content": "He"}, {"content": content}, {"content": "y"}, is_strict=False)
    assert message == AssistantMessage(is_strict=False, content="Hey")


def test_a_refusal_takes_the_place_of_a_missing_content():
    message, texts = read({"refusal": "I "}, {"content": None, "refusal": "won't."})
    assert (message.text, message.is_refusal, texts) == ("I won't.", True, ["I ", "won't."])
    message, _ = read({"content": "Arr.", "refusal": ""})
    assert (message.text, message.is_refusal) == ("Arr.", False)


def test_a_content_goes_before_a_refusal_in_the_same_stream():
    message, _ = read({"content": "Hi"}, {"refusal": "No."}, is_strict=False)
    assert (message.text, message.is_refusal) == ("Hi", False)


@pytest.mark.parametrize(
    ("part", "calls_tools"),
    [
        ({"function_call": {}}, False),
        ({"tool_calls": []}, False),
        ({"tool_calls": ["look"]}, True),
        ({"tool_calls": {"name": "look"}}, True),
        ({"function_call": "look"}, True),
    ],
)
def test_calls_in_an_unknown_shape_are_noticed_and_empty_ones_are_none(part, calls_tools):
    message, _ = read(part)
    assert message.calls_tools is calls_tools and not message.calls


def test_tool_calls_are_put_together_by_their_index():
    first = {"index": 0, "id": "a", "function": {"name": "look", "arguments": ""}}
    second = {"index": 1, "id": "b", "function": {"name": "wait", "arguments": "{}"}}
    message, _ = read(
        {"tool_calls": [first, second]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"at":'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": " 1}"}}]},
    )
    calls = [ToolCallText("a", "look", '{"at": 1}'), ToolCallText("b", "wait", "{}")]
    assert [*message.calls.values()] == calls
    message, _ = read(*({"function_call": part} for part in ({"name": "f"}, {"arguments": "{}"})))
    assert [*message.calls.values()] == [ToolCallText("", "f", "{}")]
