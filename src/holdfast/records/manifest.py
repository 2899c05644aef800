"""Reads the manifest of a run folder, and finds the command that resumes the run."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from holdfast.errors import RecordsError, json_type_in_words, reason_of
from holdfast.records.belonging import describe_fault
from holdfast.records.earlier import OLD_LINES, as_current, refuse_unknown
from holdfast.records.identity import Manifest
from holdfast.records.lines import FIELD, without_checksum

MANIFEST = "manifest.json"
EXTENDED_BY = "extended_by"  # the fields are described in `identity.Manifest`
EARLIER_SIZES = "earlier_sizes"


def typed_command(argv: str | None) -> str:
    """Returns NAME if the command was typed as `holdfast NAME ...`, otherwise ""."""
    match = re.match(r"holdfast ([a-z][a-z-]*)(?= |$)", argv or "")
    return match[1] if match else ""


def command_of(manifest: Manifest) -> str:
    """Returns the command that resumes a run: its first one, or the last that extended it; "" if
    the manifest has none.

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
