"""LangSmith's runs of the type llm; bulk exports have their inputs and outputs as JSON text.

A value, shortened:

    {"run_type": "llm", "inputs": {"messages": [[...]]}, "outputs": {"generations": [[...]]}}
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from holdfast.transcripts.call_messages import input_messages, output_messages, prompt_of
from holdfast.transcripts.calls import Call, call_reader
from holdfast.transcripts.chat_messages import is_cut
from holdfast.transcripts.json_fields import (
    at,
    decode_json,
    list_or_empty,
    optional_list,
    require_object,
)
from holdfast.transcripts.reader import Format
from holdfast.transcripts.transcript import Event
from holdfast.validation.json_values import fields_of


def _recognises(value: Any) -> bool:
    return "run_type" in fields_of(value)


def _calls(source: str, value: Any) -> Iterator[Call]:
    """Reads the calls in a run and in the runs that it started."""
    run = require_object(value)
    if run.get("run_type") == "llm":
        yield _call(source, run)
    for child in optional_list(run.get("child_runs")):  # exports may nest the runs that it started
        yield from _calls(source, child)


def _call(source: str, run: Mapping[str, Any]) -> Call:
    """Reads a run of the type llm, which is one call of a model."""
    inputs = require_object(decode_json(run.get("inputs")))
    metadata = at(decode_json(run.get("extra")), "metadata")
    thread = at(metadata, "thread_id") or at(metadata, "session_id")
    return Call(
        source,
        session=str(thread or run.get("trace_id") or run.get("id") or ""),
        start=str(run.get("start_time", "")),
        input=[*prompt_of(inputs), *input_messages(_chat(inputs))],
        output=_answer(decode_json(run.get("outputs"))),
    )


def _chat(inputs: Mapping[str, Any]) -> Any:
    """Returns the messages in a run's inputs, or the text of a prompt.

    Inputs are {"messages": [...]}, {"messages": [[...]]} (a batch of one), or {"prompts": ["..."]}.
    """
    chat = inputs.get("messages", inputs.get("prompts", inputs.get("input")))
    if isinstance(chat, list) and chat and isinstance(chat[0], list):
        chat = chat[0]
    if isinstance(chat, list) and all(isinstance(text, str) for text in chat):
        return "\n".join(chat)
    return chat


def _answer(outputs: Any) -> list[Event]:
    """Reads the outputs of a run.

    Outputs are {"generations": [[{"message": ...}]]}, perhaps with a `text` or without the inner
    list; or {"messages": ...}, {"message": ...} or the message itself.
    """
    if generations := list_or_empty(at(outputs, "generations")):
        batch = generations[0] if isinstance(generations[0], list) else generations
        return _generation(batch[0] if batch else None)
    messages = at(outputs, "messages") or outputs
    return output_messages(at(messages, "message") or messages)


def _generation(generation: Any) -> list[Event]:
    """Reads one of the replies to a call."""
    events = output_messages(at(generation, "message") or at(generation, "text"))
    if events and is_cut(generation):
        events[-1] = replace(events[-1], is_cut=True)
    return events


FORMAT = Format(
    "langsmith",
    _recognises,
    call_reader(_calls, "of LangSmith's run type llm"),
    streams=True,
)
