"""The manifest of a run folder: read, with the command that resumes the run."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from holdfast.errors import RecordsError, json_type_in_words, reason_of
from holdfast.records.belonging import first_fault
from holdfast.records.earlier import OLD_LINES, as_current, refuse_unknown
from holdfast.records.identity import Manifest
from holdfast.records.lines import FIELD, without_checksum

MANIFEST = "manifest.json"
EXTENDED_BY = "extended_by"  # the command that last made the run larger
EARLIER_SIZES = "earlier_sizes"  # the conversations it had each time before it got more


def typed_command(argv: str | None) -> str:
    """The name of a command that was typed as `holdfast NAME ...`; "" if it was not."""
    typed = re.match(r"holdfast ([a-z][a-z-]*)(?= |$)", argv or "")
    return typed[1] if typed else ""


def command_of(manifest: Manifest) -> str:
    """The command that resumes a run: its first one, or the last that extended it.

    A `--dry-run` starts a run and does not finish it, so the last command that continued the run
    replaces it, if there is one.
    """
    command = manifest.extended_by or manifest.argv or ""
    if not _is_dry(command):
        return command
    later = (about.argv for about in reversed(manifest.resumed))
    return next((argv for argv in later if argv and not _is_dry(argv)), command)


def _is_dry(command: str) -> bool:
    return any(word.startswith("--dry") for word in command.split())  # "--dry" suffices


def as_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """A value as it is read back from JSON, with tuples as lists."""
    read: dict[str, Any] = json.loads(json.dumps(dict(value)))
    return read


def holds_lines(records: Path) -> bool:
    """Whether a whole line has been written."""
    return records.is_file() and b"\n" in records.read_bytes()


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a run folder, as its version wrote it."""
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
        seen = json_type_in_words(manifest)
        raise RecordsError(f"{path} holds {seen} and not an object; {cure}.")
    if not content.has_checksum and (OLD_LINES in manifest or FIELD in manifest):
        raise RecordsError(f"{path} is damaged: it has no checksum at its end; {cure}.")
    identity = manifest.get("identity")
    if not isinstance(identity, dict) or not isinstance(identity.get("settings", {}), dict):
        raise RecordsError(f"{path} has no 'identity', or one without settings; {cure}.")
    refuse_unknown(manifest, path)
    return manifest


def described(folder: Path) -> Manifest:
    """The manifest of a run folder by its model, in the current form."""
    path = folder / MANIFEST
    try:
        return Manifest.read(as_current(read_manifest(folder)))
    except ValidationError as error:
        raise RecordsError(
            f"{path} {first_fault(error)}; restore it, or start a new run in another folder."
        ) from None
