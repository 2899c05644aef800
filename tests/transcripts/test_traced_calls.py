"""Calls of models in traces: prompts, events of spans, and values that are no call."""

import json

import pytest
from agent_sessions import write
from log_variations import HI, A, lines, text
from read_dialogs import dialog_in, turns_of

from holdfast.errors import UsageError
from holdfast.logs import read_logs

GEMINI_MESSAGES = [{"role": "user", "parts": [{"text": "Hi"}]}]
PROMPTS = {
    "messages and system": {"system": "Be brief.", "messages": [HI]},
    "system in blocks": {"system": [text("Be brief.")], "messages": [HI]},
    "input and instructions": {"instructions": "Be brief.", "input": "Hi"},
    "contents": {"contents": GEMINI_MESSAGES, "config": {"system_instruction": "Be brief."}},
}


@pytest.mark.parametrize("request_body", PROMPTS.values(), ids=PROMPTS)
@pytest.mark.parametrize("platform", ["langfuse", "phoenix"])
def test_a_prompt_beside_the_messages_of_a_traced_request_is_read(platform, request_body, tmp_path):
    if platform == "langfuse":
        span = {"id": "o", "traceId": "t", "type": "GENERATION", "input": request_body,
                "output": A}  # fmt: skip
    else:
        values = {"input": {"value": json.dumps(request_body)},
                  "output": {"value": json.dumps(A)}}  # fmt: skip
        span = {"context": {"trace_id": "t", "span_id": "s"}, "span_kind": "LLM",
                "attributes": values}  # fmt: skip
    dialog = dialog_in(tmp_path, "a.jsonl", lines(span))
    assert (dialog.system, turns_of(dialog)) == ("Be brief.", [("Hi", "A.")])


def test_the_prompt_and_the_end_of_a_run_of_langsmith_are_read(tmp_path):
    run = {"id": "r", "run_type": "llm", "trace_id": "t"}
    inputs = {"system": "Be brief.", "messages": [HI]}
    first = {"text": "A.", "generation_info": {"finish_reason": "length"}, "message": A}
    dialog = dialog_in(
        tmp_path, "a.jsonl", lines({**run, "inputs": inputs, "outputs": {"generations": [[first]]}})
    )
    assert (dialog.system, turns_of(dialog)) == ("Be brief.", [("Hi", "A.")])
    assert dialog.turns[0].done.is_cut


def test_a_run_of_langsmith_without_ids_is_of_no_session(tmp_path):
    run = {"run_type": "llm", "inputs": {"messages": [HI]}, "outputs": A}
    assert dialog_in(tmp_path, "a.jsonl", lines(run)).transcript.history == ""


def test_payloads_of_litellm_with_a_prompt_among_the_parameters_or_as_text_are_read(tmp_path):
    choice = {"message": A, "finish_reason": "length"}
    call = {
        "call_type": "acompletion",
        "model_parameters": {"system": "Be brief."},
        "messages": json.dumps([HI]),
        "response": json.dumps({"choices": [choice]}),
    }
    dialog = dialog_in(tmp_path, "a.jsonl", lines(call))
    assert (dialog.system, turns_of(dialog)) == ("Be brief.", [("Hi", "A.")])
    assert dialog.turns[0].done.is_cut


def span_of(events=(), **attributes) -> dict:
    attrs = {f"gen_ai.{name}": value for name, value in attributes.items()}
    return {"name": "chat", "traceId": "t", "spanId": "s", "attributes": attrs, "events": [*events]}


def event(name: str, **attributes) -> dict:
    return {
        "name": name,
        "attributes": {f"gen_ai.{k}": json.dumps(v) for k, v in attributes.items()},
    }


BRIEF = {"role": "system", "content": "Be brief."}
SPANS = {
    "details": span_of(
        [{"name": "gen_ai.client.inference.operation.details", "attributes": {
            "gen_ai.input.messages": json.dumps([BRIEF, HI]),
            "gen_ai.output.messages": json.dumps([A])}}],
        **{"operation.name": "chat"},
    ),
    "contents": span_of(
        [event("gen_ai.content.prompt", prompt=[BRIEF, HI]),
         event("gen_ai.content.completion", completion=[A])],
        **{"operation.name": "chat"},
    ),
    "messages": span_of(
        [{"name": "gen_ai.system.message", "attributes": {"content": "Be brief."}},
         {"name": "gen_ai.user.message", "attributes": {"content": "Hi"}},
         {"name": "gen_ai.choice", "attributes": {"message": json.dumps(A)}}],
        **{"operation.name": "chat"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("span", SPANS.values(), ids=SPANS)
def test_messages_in_the_events_of_a_span_are_read(span, tmp_path):
    dialog = dialog_in(tmp_path, "a.jsonl", lines(span))
    assert (dialog.system, turns_of(dialog)) == ("Be brief.", [("Hi", "A.")])


def test_the_reason_why_a_reply_ended_may_be_an_attribute_of_the_span(tmp_path):
    span = span_of(
        **{"operation.name": "chat", "input.messages": json.dumps([HI])},
        **{"output.messages": json.dumps([A]), "response.finish_reasons": ["length"]},
    )
    assert dialog_in(tmp_path, "a.jsonl", lines(span)).turns[0].done.is_cut


def test_spans_of_openllmetry_are_not_taken_for_those_of_openinference(tmp_path):
    span = span_of(**{"prompt.0.role": "user", "prompt.0.content": "Hi",
                      "completion.0.role": "assistant", "completion.0.content": "A."})  # fmt: skip
    span["attributes"]["llm.request.type"] = "chat"
    assert turns_of(dialog_in(tmp_path, "a.jsonl", lines(span))) == [("Hi", "A.")]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"run_type": "chain", "id": "1", "inputs": {}, "outputs": {}}, "LangSmith"),
        ({"type": "SPAN", "traceId": "t"}, "GENERATION"),
        ({"context": {}, "attributes": {"openinference.span.kind": "TOOL"}}, "OpenInference"),
        ({"context": {}, "attributes": {"gen_ai.operation.name": "execute_tool"}}, "gen_ai"),
        ({"context": {}, "attributes": {"gen_ai.operation.name": "chat"}}, "line 1.*gen_ai"),
        ({"resourceSpans": [{"scopeSpans": [{"spans": []}]}]}, "OTLP"),
    ],
)
def test_a_trace_without_a_call_of_a_model_says_so(value, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        read_logs([write(tmp_path, value)])


def test_one_value_that_is_no_call_is_named_in_the_singular(tmp_path):
    with pytest.raises(UsageError, match="its only value is not an OTLP batch with a model call"):
        read_logs([write(tmp_path, {"resourceSpans": []})])
    with pytest.raises(UsageError, match="none of its 2 values is an OTLP batch"):
        read_logs([write(tmp_path, {"resourceSpans": []}, {"resourceLogs": []})])


def test_spans_of_two_instrumentations_in_one_file_are_read(tmp_path):
    messages = [{"role": "user", "parts": [{"type": "text", "content": "Hi."}]}]
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": "Hello."}]}]
    gen_ai = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(messages),
        "gen_ai.output.messages": json.dumps(answer),
    }
    older = {
        "gen_ai.prompt.0.role": "user",
        "gen_ai.prompt.0.content": "Hi.",
        "gen_ai.completion.0.role": "assistant",
        "gen_ai.completion.0.content": "Hello.",
    }
    inference = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Hi.",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "Hello.",
    }
    spans = [
        {"context": {"trace_id": str(number)}, "attributes": attributes}
        for number, attributes in enumerate((gen_ai, older, inference))
    ]
    logs = read_logs([write(tmp_path, *spans)])
    assert [turns_of(dialog) for dialog in logs.dialogs] == [[("Hi.", "Hello.")]] * 3
    assert logs.formats == {"otel": 2, "phoenix": 1}
