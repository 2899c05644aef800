"""The version of a run folder's form, and how folders of earlier versions are read.

1. Neither the manifest nor its lines have checksums; the identity may lack `runtime`, the settings
   `pairs`.
2. Manifest and lines end in a checksum. Lines that a version 1 had written stay without, and
   `lines_without_crc32` counts them.
3. The manifest says its version, in `schema`.

A field that an earlier reader may pass over is no new version. One that it would misread is: then
`CURRENT` grows, and `_TO_NEXT` gains a step, so that every version that there ever was is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from holdfast.errors import RecordsError

SCHEMA = "schema"
CURRENT = 3
OLD_LINES = "lines_without_crc32"


def version_of(manifest: Mapping[str, Any]) -> int:
    """The version of a manifest; before 3 none said it."""
    version: int = manifest.get(SCHEMA, 2 if OLD_LINES in manifest else 1)
    return version


def refuse_unknown(manifest: Mapping[str, Any], path: Path) -> None:
    """Refuses a version that this reader does not know.

    Raises:
        RecordsError: it is newer, or no version at all.
    """
    version = version_of(manifest)
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise RecordsError(
            f"{path} has the schema {version!r}, which is no version; restore it, or start a new"
            " run in another folder."
        )
    if version > CURRENT:
        raise RecordsError(
            f"{path} was written by a newer Holdfast (schema {version}; this one reads up to"
            f" {CURRENT}); read it with that version or a later one."
        )


def as_current(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """A manifest of any known version in today's form; the file keeps its own."""
    current = dict(manifest)
    for version in range(version_of(manifest), CURRENT):
        current = _TO_NEXT[version](current)
    return {**current, SCHEMA: CURRENT}


def _from_1(manifest: dict[str, Any]) -> dict[str, Any]:
    """Pairs were always drawn at random, and where a model ran was not said."""
    identity = {"runtime": {}, **manifest["identity"]}
    settings = identity.get("settings")
    if manifest.get("command") == "drift" and isinstance(settings, dict):
        identity["settings"] = {"pairs": "random", **settings}
    return {**manifest, "identity": identity}


def _from_2(manifest: dict[str, Any]) -> dict[str, Any]:
    """Nothing else changed."""
    return manifest


_TO_NEXT: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: _from_1, 2: _from_2}
