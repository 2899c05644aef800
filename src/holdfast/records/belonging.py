"""Reads the JSON of a record into its model, and refuses a record of another run."""

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from holdfast.records.conversation import CapabilityConversation, Conversation, LogDialog
from holdfast.records.identity import (
    ConversationsIdentity,
    Manifest,
    ProfileIdentity,
    TasksIdentity,
)
from holdfast.records.precedent_records import PrecedentChat
from holdfast.records.samples import HeadScores, TaskSample

Record = Conversation | LogDialog | TaskSample | HeadScores | PrecedentChat
RECORD_TYPES: dict[str, type[Record]] = {  # by command; of all others, conversations
    "calibrate": CapabilityConversation,
    "logs": LogDialog,
    "tasks": TaskSample,
    "profile": HeadScores,
    "precedent": PrecedentChat,
}


class NotOfRun(ValueError):
    """A record that is malformed or of another run; the text follows "Line 7 of ..."."""


def record_of(fields: Mapping[str, Any], manifest: Manifest) -> Record:
    """The record with these fields; raises `NotOfRun`."""
    try:
        record = RECORD_TYPES.get(manifest.command, Conversation).model_validate(fields)
    except ValidationError as error:
        raise NotOfRun(first_fault(error)) from None
    refuse_foreign(record, manifest)
    return record


def refuse_foreign(record: Record, manifest: Manifest) -> None:
    """Refuses a record that is not of the run of a manifest; raises `NotOfRun`."""
    _refuse_another_run(record, manifest)
    if isinstance(record, Conversation | LogDialog):
        _refuse_out_of_range(record, manifest)


def first_fault(error: ValidationError) -> str:
    """The first fault of JSON that is not what a model needs, missing fields first."""
    errors = error.errors(include_url=False)
    first = next((entry for entry in errors if entry["type"] == "missing"), errors[0])
    if first["type"] == "json_invalid":
        return f"is not JSON ({first['msg'].removeprefix('Invalid JSON: ')})"
    name = ".".join(map(str, first["loc"]))
    if first["type"] == "missing":
        return f"has no {name!r}"
    why = first["msg"].replace("Input should", "which should").replace("tuple", "list")
    return f"has {name} {reprlib.repr(first['input'])}, {why}"


def _refuse_another_run(record: Record, manifest: Manifest) -> None:
    identity = manifest.identity
    unit = "sample"
    count: int | None = None
    if isinstance(identity, TasksIdentity):
        count = identity.settings.samples
    elif isinstance(identity, ProfileIdentity):
        count = identity.samples
    elif isinstance(identity, ConversationsIdentity):
        count = identity.settings.conversations
        unit = "conversation"
    if count is not None and record.conversation >= count:
        raise NotOfRun(f"has {unit} {record.conversation}, and the run's are 0 to {count - 1}")
    if isinstance(identity, ConversationsIdentity):
        _refuse_unlisted("method", record.method, identity.methods)
    if isinstance(identity, TasksIdentity) and isinstance(record, TaskSample):
        _refuse_unlisted("task", record.task, identity.settings.tasks)
        _refuse_unlisted("variant", record.variant, identity.variants)


def _refuse_unlisted(name: str, value: str, listed: Sequence[str]) -> None:
    if listed and value not in listed:
        raise NotOfRun(f"has the {name} {reprlib.repr(value)}, which the run does not have")


def _refuse_out_of_range(record: Conversation | LogDialog, manifest: Manifest) -> None:
    for probe in record.probes:
        if probe.kind != "capability" and not 0 <= probe.score <= 1:
            raise NotOfRun(f"has the score {probe.score:g}, which is not between 0 and 1")
    identity = manifest.identity
    if manifest.command != "drift" or not isinstance(identity, ConversationsIdentity):
        return
    last = max(
        [*(turn.round for turn in record.turns), *(p.round for p in record.probes)], default=0
    )
    if identity.settings.rounds is not None and last > identity.settings.rounds:
        raise NotOfRun(f"has round {last}, and the run's are 1 to {identity.settings.rounds}")
