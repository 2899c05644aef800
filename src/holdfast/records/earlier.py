"""Converts the manifests of run folders that earlier versions wrote.

Their records need no conversion: newer fields are optional, and a value that readers need is
measured from the text if it is missing (`analysis.collapse`).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.errors import RecordsError

SCHEMA = "schema"
CURRENT = 3  # the version of the run folder format
OLD_LINES = "lines_without_crc32"


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
