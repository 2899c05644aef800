"""Whether a command continues the run in a folder, by their identities."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from holdfast.errors import AnotherRun, cut
from holdfast.records.identity import Manifest
from holdfast.records.identity_trees import (
    ABSENT,
    Difference,
    first_difference,
    get_at,
    part_of,
    set_at,
    with_defaults,
    without_defaults,
)
from holdfast.records.manifest import (
    EXTENDED_BY,
    MANIFEST,
    as_json,
    command_of,
    holds_lines,
    read_manifest,
    typed_command,
)


@dataclass(frozen=True)
class Compatibility:
    """How a run's identity may differ between two commands on one folder; names are dotted."""

    # the values of fields that some versions' manifests lack, in the form of the identity
    defaults: Mapping[str, Any] = field(default_factory=dict)
    # by name, a function that takes the folder's value and the command's, and returns that of the
    # extended run, or None if the run cannot be extended in this way
    joins: Mapping[str, Callable[[Any, Any], Any]] = field(default_factory=dict)
    # by name, why a run cannot be extended in this field; for the message
    reasons: Mapping[str, str] = field(default_factory=dict)


ALIKE = Compatibility()  # the identities must be equal


def union(stored: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    """All stored values, and then those of the command that are new."""
    return [*stored, *(value for value in new if value not in stored)]


def superset(stored: Sequence[Any], new: Sequence[Any]) -> list[Any] | None:
    """The command's values, if they include all stored ones; else None."""
    return list(new) if all(value in new for value in stored) else None


def joint_identity(
    folder: Path,
    manifest: Mapping[str, Any],
    identity: Mapping[str, Any],
    compatibility: Compatibility,
    about: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The identity of the run that covers both what the folder has and what the command asks."""
    stored = with_defaults(manifest["identity"], compatibility.defaults)
    new = with_defaults(dict(identity), compatibility.defaults)
    for name, join in compatibility.joins.items():
        values = get_at(stored, name), get_at(new, name)
        if ABSENT not in values and (value := join(*values)) is not None:
            set_at(stored, name, value)
            set_at(new, name, value)
    difference = first_difference(stored, new)
    if difference is None:
        return without_defaults(stored, manifest["identity"], as_json(identity))
    raise _refusal(folder, manifest, compatibility, about or {}, difference)


def refuse_another(
    folder: Path | str,
    identity: Mapping[str, Any],
    compatibility: Compatibility,
    about: Mapping[str, Any] | None = None,
) -> None:
    """Refuses early what `open_run` would refuse, given part of the identity; writes nothing."""
    folder = Path(folder)
    if not (folder / MANIFEST).is_file() or not holds_lines(folder / "records.jsonl"):
        return
    manifest = read_manifest(folder)
    new = as_json(identity)
    stored = with_defaults(manifest["identity"], compatibility.defaults)
    part = {**manifest, "identity": part_of(stored, new)}
    joint_identity(folder, part, new, replace(compatibility, defaults={}), about)


# --- The refusal


def _refusal(
    folder: Path,
    manifest: Mapping[str, Any],
    compatibility: Compatibility,
    about: Mapping[str, Any],
    difference: Difference,
) -> AnotherRun:
    """The error that refuses a command, naming how it differs from the run in the folder."""
    repeat = _or_repeat(manifest, about)
    stored, new = _commands(manifest, about)
    if stored != new:
        return AnotherRun(
            f"{folder} holds a run of `holdfast {stored}`, not of `holdfast {new}`; choose another"
            f" folder with --out{repeat}.",
            option="command",
            value=new,
            allowed=stored,
        )
    dtypes = manifest.get("dtype"), about.get("dtype")
    if difference.name == "model_fingerprint" and all(dtypes) and dtypes[0] != dtypes[1]:
        difference = Difference("dtype", *dtypes)
    if difference.name.endswith("fingerprint"):
        return _changed(folder, manifest, difference)
    if difference.name in ("logs", "rules"):
        return AnotherRun(
            f"{folder} holds the scores of other {difference.name}; choose another folder with"
            f" --out{repeat}.",
            option=difference.name,
        )
    first, *others = difference.name.split(".")
    setting = others[-1] if others and first in ("settings", "plan") else difference.name
    reason = compatibility.reasons.get(difference.name)
    return AnotherRun(
        f"{folder} holds another run: {setting} is {_short(difference.stored)} there and"
        f" {_short(difference.new)} here{f' ({reason})' if reason else ''}; choose another folder"
        f" with --out{repeat}.",
        option=difference.name,
        value=None if difference.new is ABSENT else difference.new,
        allowed=None if difference.stored is ABSENT else difference.stored,
    )


def _changed(folder: Path, manifest: Mapping[str, Any], difference: Difference) -> AnotherRun:
    """The error for a model or a file that has another fingerprint than in the run."""
    kind = difference.name.removesuffix("fingerprint").rstrip("._")
    changed = manifest["identity"].get(kind)
    title = changed["name"] if isinstance(changed, dict) else changed
    have = "have" if kind in ("user_turns", "dialogs") else "has"
    seen = f" (from {difference.stored} to {difference.new})" if kind == "model" else ""
    return AnotherRun(
        f"The {kind.replace('_', ' ')}{f' {title!r}' if title else ''} {have} changed since the"
        f" run in {folder}{seen}; choose another folder with --out, or undo the change to resume"
        " that run.",
        option=difference.name,
        value=difference.new,
        allowed=difference.stored,
    )


def _or_repeat(manifest: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    """The cure of repeating the run's own command; "" for that command, which is refused."""
    command = command_of(Manifest.read(manifest))
    if command and command == about.get("argv"):
        return ""
    which = "last command that extended it" if manifest.get(EXTENDED_BY) else "first command"
    return f", or repeat the {which} to resume it" + (f" (`{command}`)" if command else "")


def _commands(manifest: Mapping[str, Any], about: Mapping[str, Any]) -> tuple[str, str]:
    """The names of the run's command and of this one, both "" if they are not known."""
    # check and calibrate run their conversations as drift runs, so the typed command says more
    typed = typed_command(command_of(Manifest.read(manifest))), typed_command(about.get("argv"))
    if all(typed):
        return typed
    stored = manifest.get("command")
    new = about.get("command")
    return (str(stored), str(new)) if stored and new else ("", "")


def _short(value: Any) -> str:
    if value is ABSENT:
        return "not given"
    return cut(json.dumps(value, ensure_ascii=False), 120)
