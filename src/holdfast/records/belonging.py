"""Validates records: each must fit the model of its command, and belong to its run."""

import reprlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic import ValidationError

from holdfast.records.conversation import (
    CapabilityConversation,
    Conversation,
    DialogRecord,
    LogDialog,
)
from holdfast.records.identity import (
    ConversationsIdentity,
    Manifest,
    ProfileIdentity,
    TasksIdentity,
)
from holdfast.records.precedent_records import PrecedentChat
from holdfast.records.samples import HeadScores, TaskSample

Record = Conversation | LogDialog | TaskSample | HeadScores | PrecedentChat
RECORD_TYPES: dict[str, type[Record]] = {  # by command; all other commands record conversations
    "calibrate": CapabilityConversation,
    "logs": LogDialog,
    "tasks": TaskSample,
    "profile": HeadScores,
    "precedent": PrecedentChat,
}


class RecordKey(NamedTuple):
    """A run has at most one record of each of these."""

    method: str  # or a task and variant, or a stage
    conversation: int  # or the number of a sample


def key_of(record: Record) -> RecordKey:
    """Returns the key of a record in its run."""
    return RecordKey(record.method, record.conversation)


class NotOfRun(ValueError):
    """A record is malformed, or belongs to another run; the message names its place."""


def validate_record(fields: Mapping[str, Any], manifest: Manifest, location: str) -> Record:
    """Makes the record with these fields.

    Args:
        manifest: of the run that the record should belong to.
        location: where the record is, such as "Line 7 of records.jsonl", for messages.

    Raises:
        NotOfRun: the record is malformed, or does not belong to the run.
    """
    try:
        record = RECORD_TYPES.get(manifest.command, Conversation).model_validate(fields)
    except ValidationError as error:
        raise NotOfRun(describe_fault(location, error)) from None
    refuse_foreign(record, manifest, location)
    return record


def refuse_foreign(record: Record, manifest: Manifest, location: str) -> None:
    """Refuses a record that cannot belong to the run of a manifest.

    Raises:
        NotOfRun: it has a number, a method, a score or a round that the run cannot have.
    """
    _refuse_another_run(record, manifest, location)
    if isinstance(record, DialogRecord):
        _refuse_out_of_range(record, manifest, location)


def describe_fault(location: str, error: ValidationError) -> str:
    """Says what is wrong with the JSON at a place: "Line 7 of records.jsonl has no 'round'".

    Of several faults, a missing field comes first. There is no full stop, as a cure may follow.
    """
    errors = error.errors(include_url=False)
    first = next((entry for entry in errors if entry["type"] == "missing"), errors[0])
    if first["type"] == "json_invalid":
        return f"{location} is not JSON ({first['msg'].removeprefix('Invalid JSON: ')})"
    name = ".".join(map(str, first["loc"]))
    if first["type"] == "missing":
        return f"{location} has no {name!r}"
    why = first["msg"].replace("Input should", "which should").replace("tuple", "list")
    return f"{location} has {name} {reprlib.repr(first['input'])}, {why}"


def _refuse_another_run(record: Record, manifest: Manifest, location: str) -> None:
    """Refuses a record with a number or a method that the run does not have."""
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
        raise NotOfRun(
            f"{location} has {unit} {record.conversation}, and the run's are 0 to {count - 1}"
        )
    if isinstance(identity, ConversationsIdentity):
        _refuse_unlisted("method", record.method, identity.methods, location)
    if isinstance(identity, TasksIdentity) and isinstance(record, TaskSample):
        _refuse_unlisted("task", record.task, identity.settings.tasks, location)
        _refuse_unlisted("variant", record.variant, identity.variants, location)


def _refuse_unlisted(name: str, value: str, allowed: Sequence[str], location: str) -> None:
    """Refuses a value that the identity does not list; old identities list nothing."""
    if allowed and value not in allowed:
        raise NotOfRun(
            f"{location} has the {name} {reprlib.repr(value)}, which the run does not have"
        )


def _refuse_out_of_range(record: DialogRecord, manifest: Manifest, location: str) -> None:
    for probe in record.probes:
        if probe.kind != "capability" and not 0 <= probe.score <= 1:
            raise NotOfRun(
                f"{location} has the score {probe.score:g}, which is not between 0 and 1"
            )
    identity = manifest.identity
    if manifest.command != "drift" or not isinstance(identity, ConversationsIdentity):
        return
    rounds = [turn.round for turn in record.turns] + [probe.round for probe in record.probes]
    last = max(rounds, default=0)
    if identity.settings.rounds is not None and last > identity.settings.rounds:
        raise NotOfRun(
            f"{location} has round {last}, and the run's are 1 to {identity.settings.rounds}"
        )
