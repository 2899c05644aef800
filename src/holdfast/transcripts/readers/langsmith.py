"""LangSmith: runs of the type llm. Bulk exports have their inputs and outputs as JSON in a text."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from holdfast.transcripts.call_messages import input_messages, output_messages, prompt_of
from holdfast.transcripts.calls import Call, transcripts_of_calls
from holdfast.transcripts.chat_messages import is_cut
from holdfast.transcripts.reader import Format, at, decoded, entries, mapping
from holdfast.validation.json_values import fields_of


def _recognises(value: Any) -> bool:
    return "run_type" in fields_of(value)


def _calls(where: str, value: Any) -> Iterator[Call]:
    run = mapping(value)
    if run.get("run_type") == "llm":
        yield _call(where, run)
    for child in entries(run.get("child_runs")):  # of a run that was exported with those it started
        yield from _calls(where, child)


def _call(where: str, run: Mapping[str, Any]) -> Call:
    inputs, outputs = mapping(decoded(run.get("inputs"))), decoded(run.get("outputs"))
    chat = inputs.get("messages", inputs.get("prompts", inputs.get("input")))
    if isinstance(chat, list) and chat and isinstance(chat[0], list):  # of a batch
        chat = chat[0]
    if isinstance(chat, list) and all(isinstance(text, str) for text in chat):
        chat = "\n".join(chat)
    answer, is_limited = at(outputs, "generations"), False
    if isinstance(answer, list) and answer:
        batch = answer[0] if isinstance(answer[0], list) else answer
        first = batch[0] if batch else None
        answer, is_limited = at(first, "message") or at(first, "text"), is_cut(first)
    else:
        answer = outputs
        for name in ("messages", "message"):
            answer = at(answer, name) or answer
    metadata = at(decoded(run.get("extra")), "metadata")
    thread = at(metadata, "thread_id") or at(metadata, "session_id")
    session = str(thread or run.get("trace_id") or run.get("id"))
    start = str(run.get("start_time", ""))
    outputs = output_messages(answer)
    if outputs and is_limited:
        outputs[-1] = replace(outputs[-1], is_cut=True)
    return Call(where, session, start, [*prompt_of(inputs), *input_messages(chat)], outputs)


FORMAT = Format(
    "langsmith",
    _recognises,
    transcripts_of_calls(_calls, "of LangSmith's run type llm"),
    streams=True,
)
