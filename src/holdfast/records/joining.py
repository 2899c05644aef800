"""Joins the shards of a run, which several machines made, into one folder."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.errors import AnotherRun, RecordsError
from holdfast.files import write_whole
from holdfast.records.compatibility import Compatibility, first_difference
from holdfast.records.earlier import OLD_LINES, SCHEMA
from holdfast.records.folder import Key, open_run, read_run
from holdfast.records.lines import to_line
from holdfast.records.manifest import read_manifest
from holdfast.records.run import Run
from holdfast.records.traces import FOLDER as TRACES

_MACHINE = "runtime"  # the part of an identity in which the shards of a run may differ
_OF_THE_FOLDER = (SCHEMA, OLD_LINES, "identity", "created", "resumed")  # not of the whole run
_ANY_MACHINE = Compatibility(joins={_MACHINE: lambda stored, new: stored})


def join_runs(folders: Sequence[Path], out: Path, command: str) -> Run:
    """Copies the records and traces of runs with one identity into one folder.

    What the folder has already is left as it is, so that shards can be joined as they arrive.

    Args:
        folders: of the shards; at least one.
        out: a new folder, or one that holds shards of the same run.
        command: that made the whole run if one machine had, for the manifest.

    Raises:
        AnotherRun: a folder holds no run, or another run than the first.
        RecordsError: two folders have different records of one conversation, or the folder
            cannot be written.
    """
    shards = [read_run(folder) for folder in folders]
    lines = _lines_of(shards)
    first = shards[0]
    about = {
        name: value
        for name, value in read_manifest(first.folder).items()
        if name not in _OF_THE_FOLDER
    }
    about["argv"] = command
    if notes := [*first.manifest.notes, *_machine_notes(shards)]:
        about["notes"] = notes
    with open_run(out, first.manifest.identity.to_json(), about, _ANY_MACHINE) as joined:
        joined.append_lines({key: line for key, line in lines.items() if key not in joined})
        for shard in shards:
            _copy_traces(shard.folder / TRACES, out / TRACES)
    return read_run(out)


def _lines_of(shards: Sequence[Run]) -> dict[Key, bytes]:
    """The lines of all records; refuses shards of different runs."""
    first, lines, places = shards[0], dict[Key, bytes](), dict[Key, Path]()
    for shard in shards:
        _refuse_another(first, shard)
        for record in shard.records:
            key, line = (record.method, record.conversation), to_line(record)
            if lines.setdefault(key, line) != line:
                raise RecordsError(
                    f"{places[key]} and {shard.folder} have different records of conversation"
                    f" {key[1]} with method {key[0]!r}; give only one of the two.",
                    option=str(shard.folder),
                    value=key,
                )
            places.setdefault(key, shard.folder)
    return lines


def _refuse_another(first: Run, shard: Run) -> None:
    difference = first_difference(
        _of_any_machine(first.manifest.identity.to_json()),
        _of_any_machine(shard.manifest.identity.to_json()),
    )
    if difference is None:
        return
    raise AnotherRun(
        f"{shard.folder} is not a shard of the run in {first.folder}: its {difference.name} is"
        f" {difference.new!r}, and there it is {difference.stored!r}; give the folders of one"
        " command with different --shard.",
        option=difference.name,
        value=difference.new,
        allowed=difference.stored,
    )


def _of_any_machine(identity: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in identity.items() if name != _MACHINE}


def _machine_notes(shards: Sequence[Run]) -> list[str]:
    """A note if the shards were computed with different versions or devices."""
    machines = [shard.manifest.identity.runtime for shard in shards]
    if all(machine == machines[0] for machine in machines):
        return []
    return ["the shards were computed with different versions or devices, which round differently"]


def _copy_traces(traces: Path, to: Path) -> None:
    for path in sorted(traces.glob("*.npz")):
        if not (to / path.name).exists():
            write_whole(to / path.name, path.read_bytes())
