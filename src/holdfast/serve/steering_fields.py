"""The fields that say what a reply is held to: Holdfast's own names, and the vLLM plug-in's."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.chat.emphasis import Part
from holdfast.chat.messages import SYSTEM_AS, shortened
from holdfast.errors import HoldfastError
from holdfast.methods import Method, parse
from holdfast.serve.fields import Field, Schema, flag, read_list, read_text, text, word
from holdfast.serve.refusals import Refusal, refusal_of, refused_field

_PARTS = 64
_LONGEST = 100_000  # characters of an emphasised text
_DEPTH = 2  # of brackets; each is read anew
_SPELLING = 20_000  # characters of methods, which may list every head of a model
_XARGS = {"holdfast": "steering", "holdfast_text": "emphasis", "holdfast_trace": "trace"}


@dataclass(frozen=True)
class Wanted:
    """The steering that a request asks for.

    Args:
        steering: the spelling of its methods; None where it asks for none, so that the server's
            default holds.
        emphasis: what to hold on to.
        marks: whether asterisks are emphasis too.
        system_as: where the system prompt stands.
        trace: False, True for the mean over all heads, "heads" for every head as well.
    """

    steering: str | None
    emphasis: tuple[Part, ...]
    marks: bool
    system_as: str
    trace: bool | str


def steering_fields() -> tuple[Field, ...]:
    """The fields of every request that generates."""
    return (
        text(
            "steering",
            _SPELLING,
            "Methods that hold on to the system prompt, or to the emphasis: `boost:factor=2`,"
            " several joined by `+`, or `none`; `/v1/steering` lists them.",
        ),
        Field("emphasis", _read_emphasis, _EMPHASIS, "Held on to in place of the system prompt."),
        flag("marks", False, "Whether `*like this*` is emphasis, and `\\*` an asterisk."),
        word(
            "system_as",
            SYSTEM_AS,
            SYSTEM_AS[0],
            "Where the system prompt stands; `first-user` is for models without a system role.",
        ),
        Field(
            "trace",
            _read_trace,
            {"enum": [True, False, "heads"]},
            "Whether the mass on the prompt is told of each token: true for the mean over all"
            " heads, `heads` for every head as well.",
            False,
        ),
        Field(
            "vllm_xargs",
            _read_xargs,
            _XARGS_SCHEMA,
            "The same under the names of the vLLM plug-in: `holdfast` is `steering`,"
            " `holdfast_text` `emphasis`, `holdfast_trace` `trace`.",
        ),
    )


def read_wanted(values: Mapping[str, Any]) -> Wanted:
    """What the fields of `steering_fields` say together.

    Raises:
        Refusal: something is given twice, with different values.
    """
    given = {name: values[name] for name in _XARGS.values()}
    for name, value in (values["vllm_xargs"] or {}).items():
        theirs, ours = _XARGS[name], given[_XARGS[name]]
        if ours not in (None, False) and ours != value:
            raise refused_field(
                "vllm_xargs",
                f"{theirs} is {shortened(ours)}, and vllm_xargs gives {name} as"
                f" {shortened(value)}; give it once.",
            )
        given[theirs] = value
    return Wanted(
        given["steering"],
        given["emphasis"] or (),
        values["marks"],
        values["system_as"],
        given["trace"],
    )


def read_spelling(spelled: str) -> tuple[Method, ...]:
    """The methods of a spelling that came over the wire, which names no files.

    Raises:
        Refusal: it is malformed.
    """
    if _depth(spelled) > _DEPTH:
        raise refused_field("steering", f"steering nests brackets deeper than {_DEPTH}.")
    try:
        return parse(spelled, files=False)
    except HoldfastError as error:
        raise refusal_of(error, "steering") from None


def _depth(spelled: str) -> int:
    """How deeply brackets are nested."""
    steps = ((character == "[") - (character == "]") for character in spelled)
    return max(itertools.accumulate(steps), default=0)


def _read_trace(name: str, value: Any) -> bool | str:
    if isinstance(value, bool) or value == "heads":
        return value
    raise refused_field(name, f"{name} is true, false or 'heads', not {shortened(value)}.")


_EMPHASIS: Schema = {
    "type": "array",
    "maxItems": _PARTS,
    "items": {
        "anyOf": [
            {
                "type": "string",
                "minLength": 1,
                "maxLength": _LONGEST,
                "description": "a text that stands in the chat once",
            },
            {
                "type": "array",
                "prefixItems": [
                    {"type": "string", "minLength": 1, "maxLength": _LONGEST},
                    {"type": "integer", "minimum": 1},
                ],
                "items": False,
                "minItems": 2,
                "description": "a text, and which occurrence of it, from 1",
            },
            {
                "type": "array",
                "items": {"type": "integer", "minimum": 0},
                "minItems": 3,
                "maxItems": 3,
                "description": "message from 0, first and last character",
            },
        ]
    },
}


def _read_emphasis(name: str, value: Any) -> tuple[Part, ...]:
    parts = read_list(name, value, 0, _PARTS)
    return tuple(_read_part(f"{name}[{number}]", part) for number, part in enumerate(parts))


def _read_part(where: str, part: Any) -> Part:
    match part:
        case str():
            return read_text(where, part, _LONGEST)
        case [str() as words, int() as occurrence] if _is_count(occurrence) and occurrence:
            return read_text(where, words, _LONGEST), occurrence
        case [int(), int(), int()] if all(map(_is_count, part)):
            number, first, last = part
            return number, first, last
    raise Refusal(
        f"{where} is a text, [text, occurrence from 1] or [message, first, last], not"
        f" {shortened(part)}.",
        "emphasis",
        "invalid_value",
    )


def _is_count(value: Any) -> bool:
    return not isinstance(value, bool) and value >= 0


_XARGS_SCHEMA: Schema = {
    "type": "object",
    "properties": {
        "holdfast": {"type": "string", "maxLength": _SPELLING},
        "holdfast_text": {"type": "string", "minLength": 1, "maxLength": _LONGEST},
        "holdfast_trace": {"enum": [True, False, 1, 0]},
    },
    "additionalProperties": False,
}


def _read_xargs(name: str, value: Any) -> dict[str, Any]:
    """By the names of the vLLM plug-in, values as our own fields have them."""
    if not isinstance(value, dict) or not value.keys() <= _XARGS.keys():
        raise refused_field(
            name, f"{name} is an object with {', '.join(_XARGS)}, not {shortened(value)}."
        )
    read: dict[str, Any] = {}
    if (spelled := value.get("holdfast")) is not None:
        read["holdfast"] = read_text(f"{name}.holdfast", spelled, _SPELLING)
    if (words := value.get("holdfast_text")) is not None:
        read["holdfast_text"] = (read_text(f"{name}.holdfast_text", words, _LONGEST),)
    if (trace := value.get("holdfast_trace")) is not None:
        if trace not in (0, 1) or isinstance(trace, float):
            raise refused_field(
                name, f"{name}.holdfast_trace is true, false, 1 or 0, not {shortened(trace)}."
            )
        read["holdfast_trace"] = bool(trace)
    return read
