"""LangSmith: runs of the type llm."""

from collections.abc import Iterator
from typing import Any

from holdfast.transcripts.calls import Call, transcripts_of_calls
from holdfast.transcripts.reader import (
    Format,
    answer_messages,
    at,
    fields_of,
    given_messages,
    mapping,
)


def _recognises(value: Any) -> bool:
    return "run_type" in fields_of(value)


def _calls(where: str, value: Any) -> Iterator[Call]:
    run = mapping(value)
    if run.get("run_type") != "llm":
        return
    inputs, outputs = mapping(run.get("inputs")), run.get("outputs")
    given = inputs.get("messages", inputs.get("prompts", inputs.get("input")))
    if isinstance(given, list) and given and isinstance(given[0], list):  # of a batch
        given = given[0]
    if isinstance(given, list) and all(isinstance(text, str) for text in given):
        given = "\n".join(given)
    answer = at(outputs, "generations")
    if isinstance(answer, list) and answer:
        batch = answer[0] if isinstance(answer[0], list) else answer
        first = batch[0] if batch else None
        answer = at(first, "message") or at(first, "text")
    else:
        answer = outputs
        for name in ("messages", "message"):
            answer = at(answer, name) or answer
    thread = at(run, "extra", "metadata", "thread_id") or at(run, "extra", "metadata", "session_id")
    session = str(thread or run.get("trace_id") or run.get("id"))
    start = str(run.get("start_time", ""))
    yield Call(where, session, start, given_messages(given), answer_messages(answer))


FORMAT = Format(
    "langsmith", _recognises, transcripts_of_calls(_calls, "of LangSmith's run type llm")
)
