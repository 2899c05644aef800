"""Joins the shards of a run, which several machines made, into one folder."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.errors import AnotherRun, RecordsError
from holdfast.files import write_whole
from holdfast.records.belonging import RecordKey, key_of
from holdfast.records.compatibility import Compatibility, first_difference, union
from holdfast.records.folder import open_run
from holdfast.records.judge_records import AGREEMENTS
from holdfast.records.lines import to_line, to_manifest
from holdfast.records.manifest import (
    EARLIER_SIZES,
    EXTENDED_BY,
    MANIFEST,
    OLD_LINES,
    SCHEMA,
    read_raw_manifest,
)
from holdfast.records.run import Run, read_run
from holdfast.records.traces import FOLDER as TRACES

_RUNTIME = "runtime"  # the part of an identity in which the shards of a run may differ
# the fields of a shard's manifest that describe its own folder, and not the whole run
_FOLDER_FIELDS = {
    "identity",
    "created",
    "resumed",
    SCHEMA,
    OLD_LINES,
    EXTENDED_BY,
    EARLIER_SIZES,
}
# the joined run may be joined again when its shards have more conversations or methods
_COMPATIBILITY = Compatibility(
    joins={
        _RUNTIME: lambda stored, new: stored,
        "settings.conversations": max,
        "methods": union,
    }
)
_DIFFERENT_RUNTIMES = (
    "the shards were computed with different versions or devices, which round differently"
)


def join_runs(folders: Sequence[Path], out: Path, command: str) -> Run:
    """Copies the shards of a run into one folder: their records, traces and judges' agreement.

    Files and records that the folder has already stay as they are, so that shards can be joined as
    they arrive.

    Args:
        folders: of the shards; at least one.
        out: a new folder, or one that holds shards of the same run.
        command: the command with which one machine would have made the whole run, for the manifest.

    Raises:
        AnotherRun: a folder holds no run, or another run than the first.
        RecordsError: two folders have different records of one conversation, or the folder
            cannot be written.
    """
    shards = [read_run(folder) for folder in folders]
    lines = _collect_lines(shards)
    first = shards[0]
    about = {
        name: value
        for name, value in read_raw_manifest(first.folder).items()
        if name not in _FOLDER_FIELDS
    }
    about["argv"] = command
    if earlier := max((shard.manifest.earlier_sizes for shard in shards), key=len):
        about[EARLIER_SIZES] = list(earlier)
    with open_run(out, first.manifest.identity.to_json(), about, _COMPATIBILITY) as output:
        output.append_lines({key: line for key, line in lines.items() if key not in output})
        for shard in shards:
            _copy_new(sorted((shard.folder / TRACES).glob("*.npz")), out / TRACES)
            _copy_new([shard.folder / AGREEMENTS], out)
        manifests = [output.manifest, *(shard.manifest for shard in shards)]
        runtimes = [manifest.identity.runtime for manifest in manifests]
        if any(runtime != runtimes[0] for runtime in runtimes):
            _note_in_manifest(out, _DIFFERENT_RUNTIMES)
    return read_run(out)


def _collect_lines(shards: Sequence[Run]) -> dict[RecordKey, bytes]:
    """Returns the lines of all records by key; refuses shards of different runs."""
    first = shards[0]
    lines: dict[RecordKey, bytes] = {}
    places: dict[RecordKey, Path] = {}  # the folder of each record
    for shard in shards:
        _refuse_another(first, shard)
        for record in shard.records:
            key = key_of(record)
            line = to_line(record)
            if lines.setdefault(key, line) != line:
                raise RecordsError(
                    f"{places[key]} and {shard.folder} have different records of conversation"
                    f" {key.conversation} with method {key.method!r}; give only one of the two.",
                    option=str(shard.folder),
                    value=key,
                )
            places.setdefault(key, shard.folder)
    return lines


def _refuse_another(first: Run, shard: Run) -> None:
    """Refuses a folder that is not a shard of the same run as the first."""
    difference = first_difference(
        _without_runtime(first.manifest.identity.to_json()),
        _without_runtime(shard.manifest.identity.to_json()),
    )
    if difference is None:
        return
    raise AnotherRun(
        f"{shard.folder} is not a shard of the run in {first.folder}: its {difference.name} is"
        f" {difference.new!r}, and there it is {difference.stored!r}; give folders that one command"
        " made with different values of --shard.",
        option=difference.name,
        value=difference.new,
        allowed=difference.stored,
    )


def _without_runtime(identity: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in identity.items() if name != _RUNTIME}


def _copy_new(paths: Iterable[Path], to: Path) -> None:
    """Copies files into a folder, except those that do not exist or that it has already."""
    for path in paths:
        if path.is_file() and not (to / path.name).exists():
            write_whole(to / path.name, path.read_bytes())


def _note_in_manifest(folder: Path, note: str) -> None:
    """Adds a note to the manifest of a run, for the run's page."""
    manifest = read_raw_manifest(folder)
    notes = manifest.get("notes", [])
    if note not in notes:
        write_whole(folder / MANIFEST, to_manifest({**manifest, "notes": [*notes, note]}))
