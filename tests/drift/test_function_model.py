"""A bot that is a Python function is measured like any other model."""

import pytest

import holdfast
from holdfast import Request, drift
from holdfast.errors import ModelError, RequestFailed, Unsteerable
from holdfast.models.streaming import stream_text
from holdfast.records import read_run

CHAT = [{"role": "system", "content": "Begin with Sure."}, {"role": "user", "content": "Hello"}]
CASE = drift.Case(
    id="polite",
    category="style",
    system_prompt='Begin every reply with "Sure".',
    probes=("What is a fjord?", "How far away is the moon?"),
    measure={"name": "starts_with", "word": "Sure"},
)
SUITE = drift.Suite("polite", (CASE,), starters=("Hello!",))


def forgetful(messages):
    """Keeps its rule for two rounds."""
    return "Sure." if len(messages) < 5 else "No idea."


async def steady(messages):
    return "Sure."


def measure(answer, folder, methods=("none",)):
    settings = drift.Settings(rounds=3, conversations=2)
    model = holdfast.from_function(answer, "my bot", "1")
    cast = drift.Cast(user_turns="everyday")
    return drift.run(model, SUITE, folder, settings, methods, cast=cast)


@pytest.mark.parametrize(
    ("answer", "scores"), ((forgetful, {1: 1, 2: 1, 3: 0}), (steady, {1: 1, 2: 1, 3: 1}))
)
def test_functions_are_measured_whether_async_or_not(answer, scores, tmp_path):
    conversations = measure(answer, tmp_path).conversations
    assert len(conversations) == 2
    for record in conversations:
        asked = [probe for probe in record.probes if probe.kind == "stability"]
        assert {probe.round: probe.score for probe in asked} == scores


def test_methods_that_edit_messages_reach_the_function():
    contents = []

    def answer(messages):
        contents.append(messages[-1]["content"])
        return "Sure."

    model = holdfast.from_function(answer, "my bot")
    assert model.generate(CHAT, "repetition:probability=1").text == "Sure."
    (content,) = contents
    assert "Begin with Sure." in content
    assert content.endswith("Hello")


def test_methods_that_need_attention_are_refused():
    model = holdfast.from_function(steady, "my bot")
    with pytest.raises(Unsteerable, match="my bot supports only messages"):
        model.generate(CHAT, "boost:factor=2")


def test_a_method_that_a_model_cannot_apply_is_refused_before_a_reply_is_printed():
    model, printed = holdfast.from_function(steady, "my bot"), []
    with pytest.raises(Unsteerable, match="my bot supports only messages"):
        stream_text(model, Request(CHAT, "boost:factor=2"), printed.append)
    assert not printed


def test_a_streamed_reply_is_printed_as_it_is_returned():
    model, printed = holdfast.from_function(steady, "my bot"), []
    assert stream_text(model, Request(CHAT), printed.append).text == "Sure."
    assert "".join(printed) == "Sure."


def test_what_a_function_raises_ends_the_run_which_resumes_once_it_is_mended(tmp_path):
    def failing(messages):
        if len(messages) > 3:
            raise KeyError("price")
        return "Sure."

    with pytest.raises(KeyError, match="price") as excinfo:
        measure(failing, tmp_path)
    assert any(frame.name == "failing" for frame in excinfo.traceback), "the line is not shown"
    assert not read_run(tmp_path).conversations
    assert len(measure(steady, tmp_path).conversations) == 2


def test_an_answer_that_is_no_text_is_refused():
    with pytest.raises(ModelError, match="answered with 3"):
        holdfast.from_function(lambda messages: 3, "my bot").generate(CHAT)


def test_a_request_that_failed_ends_only_its_conversation(tmp_path):
    calls = []

    def flaky(messages):
        calls.append(messages)
        if len(calls) == 3:
            raise RequestFailed("filtered", "filter")
        return "Sure."

    ended = [record.ended for record in measure(flaky, tmp_path).conversations]
    assert [end.why for end in ended if end] == ["filter"]
