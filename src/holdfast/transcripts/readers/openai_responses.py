"""OpenAI's Responses API: a request with its response, or a list of items.

A value, shortened:

    {"object": "response", "instructions": "...", "input": [...], "output": [...]}
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from holdfast.errors import shortened
from holdfast.transcripts.call_messages import output_messages, system_prompt
from holdfast.transcripts.chat_messages import read_messages
from holdfast.transcripts.json_fields import require_field
from holdfast.transcripts.reader import Format, Located, Unread, is_message_list, is_responses_item
from holdfast.transcripts.transcript import (
    Event,
    EventKind,
    Malformed,
    Transcript,
    linear_transcript,
    path_to,
)
from holdfast.validation.json_values import fields_of


class _Response(NamedTuple):
    """A value that has been read; `previous` is the response that it continues, or ""."""

    source: str
    previous: str
    events: list[Event]


def _recognises(value: Any) -> bool:
    if is_message_list(value):
        return is_responses_item(value[0])
    fields = fields_of(value)
    return "input" in fields and ("output" in fields or "instructions" in fields)


def _read(value: Any) -> list[Event]:
    """Reads a list of items, or a request with its response."""
    if isinstance(value, list):
        return read_messages(value)
    inputs = require_field(value, "input")
    items = [{"role": "user", "content": inputs}] if isinstance(inputs, str) else inputs
    output = value.get("output") or []
    return [
        *system_prompt(value.get("instructions")),
        *read_messages(items),
        *(output_messages(value) if output else []),
    ]


def _transcripts(values: Iterable[Located]) -> Iterator[Transcript | Unread]:
    """Reads values into dialogs; one that continues an earlier response begins with it."""
    responses, unread = _read_responses(values)
    yield from unread
    parents = {name: response.previous or None for name, response in responses.items()}
    continued = set(parents.values())
    in_dialogs: set[str] = set()
    # first the ends of dialogs, then responses that are left, whose ids form a circle
    for name in sorted(responses, key=continued.__contains__):
        response = responses[name]
        if response.previous and response.previous not in responses:
            before = shortened(response.previous)
            yield Unread(
                f"{response.source}: it continues response {before}, which is not included"
            )
        if name in continued and name in in_dialogs:
            continue
        chain = path_to(name, parents)
        in_dialogs.update(chain)
        if parents[chain[0]] in chain:
            yield Unread(f"{response.source}: the responses before it continue each other")
        events = _chain_events([responses[name] for name in chain])
        transcript = linear_transcript(response.source, events)
        yield replace(transcript, history=chain[0] if len(chain) > 1 else "")


def _read_responses(values: Iterable[Located]) -> tuple[dict[str, _Response], list[Unread]]:
    """Reads the responses by id, and notes those that cannot be read or share an id.

    Of several states of a response, the latest is kept. Another response of the same id is kept
    under its place in the file.
    """
    responses: dict[str, _Response] = {}
    unread: list[Unread] = []
    for source, value in values:
        fields = fields_of(value)
        name = str(fields.get("id") or source)
        previous = str(fields.get("previous_response_id") or "")
        try:
            response = _Response(source, previous, _read(value))
        except Malformed as error:
            unread.append(Unread(f"{source}: {error}"))
            continue
        first = responses.get(name)
        if first is None or _is_beginning(first, response):
            responses[name] = response
        elif not _is_beginning(response, first):
            responses[source] = response
            sentence = (
                f"{source}: {first.source} has the same id, so responses that continue it are"
                " joined to that one"
            )
            unread.append(Unread(sentence))
    return responses, unread


def _is_beginning(response: _Response, other: _Response) -> bool:
    """Whether `other` is the same response in a later state: it has all the same events."""
    events = other.events[: len(response.events)]
    return response.previous == other.previous and response.events == events


def _chain_events(chain: list[_Response]) -> Iterator[Event]:
    """Chains the events of responses that continue each other.

    Each response has its own instructions, which replace those before it.
    """
    prompt: list[Event] = []
    for response in chain:
        new = [event for event in response.events if event.is_prompt]
        if new != prompt:
            if prompt:
                yield Event(EventKind.CLEARING, clears=frozenset(event.id for event in prompt))
            prompt = [replace(event, id=f"{response.source} prompt") for event in new]
            yield from prompt
        yield from (event for event in response.events if not event.is_prompt)


def _reaches_back(value: Any) -> bool:
    """Whether a value continues an earlier response."""
    return bool(fields_of(value).get("previous_response_id"))


FORMAT = Format(
    "responses", _recognises, _transcripts, is_per_value=True, reaches_back=_reaches_back
)
