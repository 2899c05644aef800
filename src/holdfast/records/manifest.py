"""Reads the manifest of a run folder, of any version, and finds the command that resumes the run.

Records need no conversion: newer fields are optional, and a value that readers need is measured
from the text if it is missing (`analysis.collapse`).
"""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from holdfast.errors import RecordsError, json_type_in_words, reason_of
from holdfast.records.belonging import describe_fault
from holdfast.records.identity import Manifest
from holdfast.records.lines import FIELD, without_checksum

MANIFEST = "manifest.json"
EXTENDED_BY = "extended_by"  # the fields are described in `identity.Manifest`
EARLIER_SIZES = "earlier_sizes"
SCHEMA = "schema"
CURRENT = 3  # the version of the run folder format
OLD_LINES = "lines_without_crc32"


def typed_command(argv: str | None) -> str:
    """Returns NAME if the command was typed as `holdfast NAME ...`, otherwise ""."""
    match = re.match(r"holdfast ([a-z][a-z-]*)(?= |$)", argv or "")
    return match[1] if match else ""


def command_of(manifest: Manifest) -> str:
    """Returns the command that resumes a run: its first one, or the last that extended it.

    "" if the manifest has none.

    A `--dry-run` starts a run and does not finish it. If it is that command, the last one that
    continued the run takes its place.
    """
    command = manifest.extended_by or manifest.argv or ""
    if not _is_dry_run(command):
        return command
    later = (resumed.argv for resumed in reversed(manifest.resumed))
    return next((argv for argv in later if argv and not _is_dry_run(argv)), command)


def _is_dry_run(command: str) -> bool:
    return any(word.startswith("--dry") for word in command.split())  # may be abbreviated


def as_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a value as it is read back from JSON, with tuples as lists."""
    parsed: dict[str, Any] = json.loads(json.dumps(dict(value)))
    return parsed


def holds_lines(records: Path) -> bool:
    """Whether a file of records exists and has a whole line."""
    return records.is_file() and b"\n" in records.read_bytes()


def read_raw_manifest(folder: Path) -> dict[str, Any]:
    """Reads the manifest of a run folder as its version wrote it.

    Raises:
        RecordsError: it is missing, damaged, or of a newer version.
    """
    path = folder / MANIFEST
    cure = "restore it, or start a new run in another folder"
    try:
        content = without_checksum(path.read_bytes())
        manifest = None if content is None else json.loads(content.body)
    except (OSError, ValueError, RecursionError) as error:
        raise RecordsError(f"{path} cannot be read ({reason_of(error)}); {cure}.") from error
    if content is None:
        raise RecordsError(f"{path} is damaged: its checksum does not match; {cure}.")
    if not isinstance(manifest, dict):
        raise RecordsError(f"{path} holds {json_type_in_words(manifest)}, not an object; {cure}.")
    if not content.has_checksum and (OLD_LINES in manifest or FIELD in manifest):
        raise RecordsError(f"{path} is damaged: it has no checksum at its end; {cure}.")
    identity = manifest.get("identity")
    if not isinstance(identity, dict) or not isinstance(identity.get("settings", {}), dict):
        raise RecordsError(f"{path} has no 'identity', or one without settings; {cure}.")
    refuse_unknown(manifest, path)
    return manifest


def read_manifest(folder: Path) -> Manifest:
    """Reads the manifest of a run folder into its model, converted to the current form.

    Raises:
        RecordsError: it is missing, damaged, of a newer version, or does not fit the model.
    """
    path = folder / MANIFEST
    try:
        return Manifest.read(as_current(read_raw_manifest(folder)))
    except ValidationError as error:
        raise RecordsError(
            f"{describe_fault(str(path), error)}; restore it, or start a new run in another folder."
        ) from None


def version_of(manifest: Mapping[str, Any]) -> object:
    """Returns the version of a manifest, as it states it; versions before 3 do not state it.

    1: neither the manifest nor the lines have checksums; the identity may lack `runtime`, and its
    settings `pairs`.
    2: both end with a checksum; lines that version 1 wrote stay without one, and
    `lines_without_crc32` counts them.
    3: the manifest has its version, in `schema`.

    A field that earlier readers would misread requires a new version, and a step in `as_current`.
    """
    return manifest.get(SCHEMA, 2 if OLD_LINES in manifest else 1)


def refuse_unknown(manifest: Mapping[str, Any], path: Path) -> None:
    """Refuses a manifest of a version that this one cannot read, with a `RecordsError`."""
    version = version_of(manifest)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise RecordsError(
            f"{path} has the schema {version!r}, which is not a version; restore it, or start a new"
            " run in another folder."
        )
    if version > CURRENT:
        raise RecordsError(
            f"{path} was written by a newer Holdfast (schema {version}; this one reads up to"
            f" {CURRENT}); read it with that version or a later one."
        )


def as_current(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Converts a manifest of any known version to the current form; the file keeps its own."""
    current = {**manifest, SCHEMA: CURRENT}
    if version_of(manifest) == 1:  # pairs were drawn at random, and no runtime was recorded
        current["identity"] = identity = {"runtime": {}, **manifest["identity"]}
        settings = identity.get("settings")
        if manifest.get("command") == "drift" and isinstance(settings, dict):
            identity["settings"] = {"pairs": "random", **settings}
    return current
