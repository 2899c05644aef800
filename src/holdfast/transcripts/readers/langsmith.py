"""LangSmith: runs of the type llm. Bulk exports have their inputs and outputs as JSON in a text."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from holdfast.transcripts.call_messages import input_messages, output_messages, prompt_of
from holdfast.transcripts.calls import Call, transcripts_of_calls
from holdfast.transcripts.chat_messages import is_cut
from holdfast.transcripts.json_fields import at, decoded, entries, list_of, mapping
from holdfast.transcripts.reader import Format
from holdfast.transcripts.transcript import Event
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
    inputs = mapping(decoded(run.get("inputs")))
    metadata = at(decoded(run.get("extra")), "metadata")
    thread = at(metadata, "thread_id") or at(metadata, "session_id")
    return Call(
        where,
        session=str(thread or run.get("trace_id") or run.get("id")),
        start=str(run.get("start_time", "")),
        input=[*prompt_of(inputs), *input_messages(_chat(inputs))],
        output=_answer(decoded(run.get("outputs"))),
    )


def _chat(inputs: Mapping[str, Any]) -> Any:
    """The messages of a run's inputs, or their text."""
    chat = inputs.get("messages", inputs.get("prompts", inputs.get("input")))
    if isinstance(chat, list) and chat and isinstance(chat[0], list):  # of a batch
        chat = chat[0]
    if isinstance(chat, list) and all(isinstance(text, str) for text in chat):
        return "\n".join(chat)
    return chat


def _answer(outputs: Any) -> list[Event]:
    """The messages of a run's outputs: the first generation, or what stands in its place."""
    generations = list_of(at(outputs, "generations"))
    if generations:
        batch = generations[0] if isinstance(generations[0], list) else generations
        generation = batch[0] if batch else None
        events = output_messages(at(generation, "message") or at(generation, "text"))
        if events and is_cut(generation):
            events[-1] = replace(events[-1], is_cut=True)
        return events
    answer = outputs
    for name in ("messages", "message"):
        answer = at(answer, name) or answer
    return output_messages(answer)


FORMAT = Format(
    "langsmith",
    _recognises,
    transcripts_of_calls(_calls, "of LangSmith's run type llm"),
    streams=True,
)
