"""Reads the JSON of a record into its model, and checks that it belongs to its run."""

import reprlib
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from holdfast.records.conversation import CapabilityConversation, Conversation, LogDialog
from holdfast.records.samples import HeadScores, TaskSample

Record = Conversation | LogDialog | TaskSample | HeadScores
RECORD_TYPES: dict[str, type[Record]] = {  # by command; of all others, conversations
    "calibrate": CapabilityConversation,
    "logs": LogDialog,
    "tasks": TaskSample,
    "profile": HeadScores,
}


class NotOfRun(ValueError):
    """A record that is malformed or of another run; the text follows "Line 7 of ..."."""


def record_of(fields: Mapping[str, Any], manifest: Mapping[str, Any]) -> Record:
    """The record with these fields; raises `NotOfRun`."""
    command = str(manifest.get("command"))
    try:
        record = RECORD_TYPES.get(command, Conversation).model_validate(fields)
    except ValidationError as error:
        raise NotOfRun(_first_fault(error)) from None
    identity = _mapping(manifest.get("identity"))
    _refuse_another_run(record, command, identity)
    if isinstance(record, Conversation | LogDialog):
        _refuse_out_of_range(record, command, identity)
    return record


def _first_fault(error: ValidationError) -> str:
    errors = error.errors(include_url=False)
    first = next((entry for entry in errors if entry["type"] == "missing"), errors[0])
    name = ".".join(map(str, first["loc"]))
    if first["type"] == "missing":
        return f"has no {name!r}"
    why = first["msg"].replace("Input should", "which should").replace("tuple", "list")
    return f"has {name} {reprlib.repr(first['input'])}, {why}"


def _refuse_another_run(record: Record, command: str, identity: Mapping[str, Any]) -> None:
    settings = _mapping(identity.get("settings"))
    count = {"tasks": settings.get("samples"), "profile": identity.get("samples")}.get(
        command, settings.get("conversations")
    )
    of_samples = isinstance(record, TaskSample | HeadScores)
    if isinstance(count, int) and record.conversation >= count:
        unit = "sample" if of_samples else "conversation"
        raise NotOfRun(f"has {unit} {record.conversation}, and the run's are 0 to {count - 1}")
    if not of_samples:
        _refuse_unlisted("method", record.method, identity.get("methods"))
    if isinstance(record, TaskSample):
        _refuse_unlisted("task", record.task, settings.get("tasks"))
        _refuse_unlisted("variant", record.variant, identity.get("variants"))


def _refuse_unlisted(name: str, value: str, listed: Any) -> None:
    if isinstance(listed, list) and value not in listed:
        raise NotOfRun(f"has the {name} {reprlib.repr(value)}, which the run does not have")


def _refuse_out_of_range(
    record: Conversation | LogDialog, command: str, identity: Mapping[str, Any]
) -> None:
    for probe in record.probes:
        if probe.kind != "capability" and not 0 <= probe.score <= 1:
            raise NotOfRun(f"has the score {probe.score:g}, which is not between 0 and 1")
    rounds = _mapping(identity.get("settings")).get("rounds") if command == "drift" else None
    numbers = [turn.round for turn in record.turns] + [probe.round for probe in record.probes]
    if isinstance(rounds, int) and max(numbers, default=0) > rounds:
        raise NotOfRun(f"has round {max(numbers)}, and the run's are 1 to {rounds}")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
