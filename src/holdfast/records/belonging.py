"""Checks that a record belongs to its run and has the fields that every reader relies on."""

import reprlib
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

Round = Annotated[int, Field(ge=1)]
Number = Annotated[int, Field(ge=0)]
Fields = Mapping[str, Any]


class _Fields(BaseModel):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class _Turn(_Fields):
    round: Round
    speaker: str
    text: str
    stop_reason: str
    mass: float | None = None


class _Probe(_Fields):
    round: Round
    kind: str
    probe: Number
    question: str
    reply: str
    reason: str
    score: float
    mass: float | None = None


class _Unscored(_Fields):
    round: Round
    kind: str
    probe: Number
    question: str
    reply: str
    why: str
    reason: str


class _Person(_Fields):
    id: str | None
    category: str | None


class _Speaker(_Person):
    system_prompt: str


class _Dialog(_Fields):
    method: str
    conversation: Number
    agent: _Speaker
    user: _Speaker
    turns: list[_Turn]
    probes: list[_Probe]
    unscored: list[_Unscored] = []
    tokens: dict[str, float] = {}
    seconds: float = 0


class _LoggedDialog(_Dialog):
    agent: _Person  # type: ignore[assignment]  # a log may lack its prompt
    user: _Person  # type: ignore[assignment]


class _Sample(_Fields):
    method: str
    conversation: Number
    scores: Annotated[dict[str, float], Field(min_length=1)]


class _TaskSample(_Sample):
    task: Any
    variant: Any


# by command
_SAMPLES: dict[str, type[_Fields]] = {"tasks": _TaskSample, "profile": _Sample}
_SHAPES: dict[str, type[_Fields]] = {**_SAMPLES, "logs": _LoggedDialog}


def why_not(record: Fields, manifest: Fields) -> str | None:
    """The fault in a record of this run, to follow "Line 7 of ..."; None if there is none."""
    command = str(manifest.get("command"))
    try:
        _SHAPES.get(command, _Dialog).model_validate(record)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        first = next((entry for entry in errors if entry["type"] == "missing"), errors[0])
        name = ".".join(map(str, first["loc"]))
        if first["type"] == "missing":
            return f"has no {name!r}"
        why = first["msg"].replace("Input should", "which should")
        return f"has {name} {reprlib.repr(first['input'])}, {why}"
    identity = _mapping(manifest.get("identity"))
    return _of_another_run(record, command, identity) or (
        None if command in _SAMPLES else _out_of_range(record, command, identity)
    )


def _of_another_run(record: Fields, command: str, identity: Fields) -> str | None:
    settings = _mapping(identity.get("settings"))
    count = {"tasks": settings.get("samples"), "profile": identity.get("samples")}.get(
        command, settings.get("conversations")
    )
    if isinstance(count, int) and record["conversation"] >= count:
        unit = "sample" if command in _SAMPLES else "conversation"
        return f"has {unit} {record['conversation']}, and the run's are 0 to {count - 1}"
    lists = {
        "method": None if command in _SAMPLES else identity.get("methods"),
        "task": settings.get("tasks"),
        "variant": identity.get("variants"),
    }
    for name, known in lists.items():
        if isinstance(known, list) and name in record and record[name] not in known:
            return f"has the {name} {reprlib.repr(record[name])}, which the run does not have"
    return None


def _out_of_range(record: Fields, command: str, identity: Fields) -> str | None:
    for probe in record["probes"]:
        if probe["kind"] != "capability" and not 0 <= probe["score"] <= 1:
            return f"has the score {probe['score']}, which is not between 0 and 1"
    rounds = _mapping(identity.get("settings")).get("rounds") if command == "drift" else None
    for row in (*record["turns"], *record["probes"]):
        if isinstance(rounds, int) and row["round"] > rounds:
            return f"has round {row['round']}, and the run's are 1 to {rounds}"
    return None


def _mapping(value: Any) -> Fields:
    return value if isinstance(value, Mapping) else {}
