"""Decides by their identities whether a command continues the run in a folder.

Identities are trees of JSON values, which are completed with defaults before they are compared.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.errors import AnotherRun, cut, option
from holdfast.records.identity import Manifest
from holdfast.records.manifest import EXTENDED_BY, as_json, command_of, typed_command

ABSENT = object()  # the value of a field that an identity lacks


@dataclass(frozen=True)
class Compatibility:
    """How a run's identity may differ between two commands on one folder.

    Attributes:
        defaults: values for the fields that manifests of some versions lack, nested as in the
            identity.
        joins: by dotted name, a function that takes the folder's value and the command's, and
            returns the value of the extended run, or None if the run cannot be extended so.
        reasons: by dotted name, why a run cannot be extended in this field, for the message.
    """

    defaults: Mapping[str, Any] = field(default_factory=dict)
    joins: Mapping[str, Callable[[Any, Any], Any]] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)


ALIKE = Compatibility()  # the identities must be equal


def union(stored: Sequence[Any], new: Sequence[Any]) -> list[Any]:
    """Returns all stored values, followed by the command's new ones."""
    return [*stored, *(value for value in new if value not in stored)]


def superset(stored: Sequence[Any], new: Sequence[Any]) -> list[Any] | None:
    """Returns the command's values if they include all stored ones, or else None."""
    return list(new) if all(value in new for value in stored) else None


def join_identities(
    folder: Path,
    manifest: Mapping[str, Any],
    identity: Mapping[str, Any],
    compatibility: Compatibility,
    about: Mapping[str, Any],
) -> dict[str, Any]:
    """Returns the identity of the run that includes both the folder's and the command's.

    Raises:
        AnotherRun: the two are of different runs.
    """
    stored = with_defaults(manifest["identity"], compatibility.defaults)
    new = with_defaults(dict(identity), compatibility.defaults)
    for name, join in compatibility.joins.items():
        stored_value = get_at(stored, name)
        new_value = get_at(new, name)
        if stored_value is ABSENT or new_value is ABSENT:
            continue
        value = join(stored_value, new_value)
        if value is not None:
            set_at(stored, name, value)
            set_at(new, name, value)
    difference = first_difference(stored, new)
    if difference is None:
        return without_defaults(stored, manifest["identity"], as_json(identity))
    raise _refusal(folder, manifest, compatibility, about, difference)


def refuse_another(
    folder: Path,
    manifest: Mapping[str, Any],
    identity: Mapping[str, Any],
    compatibility: Compatibility,
    about: Mapping[str, Any],
) -> None:
    """Refuses a command that does not continue the run of a manifest, as far as a part of its
    identity shows.
    """
    new = as_json(identity)
    stored = with_defaults(manifest["identity"], compatibility.defaults)
    part = {**manifest, "identity": part_of(stored, new)}
    join_identities(folder, part, new, replace(compatibility, defaults={}), about)


def _refusal(
    folder: Path,
    manifest: Mapping[str, Any],
    compatibility: Compatibility,
    about: Mapping[str, Any],
    difference: IdentityDifference,
) -> AnotherRun:
    """Makes the error that names how a command differs from the run in the folder."""
    cure = _cure(manifest, about)
    stored, new = _command_names(manifest, about)
    if stored != new:
        return AnotherRun(
            f"{folder} holds a run of `holdfast {stored}`, not of `holdfast {new}`; {cure}.",
            option="command",
            value=new,
            allowed=stored,
        )
    if difference.name == "model_fingerprint":
        difference = _dtype_difference(manifest, about) or difference
    if difference.name.endswith("fingerprint"):
        return _changed(folder, manifest, difference)
    if difference.name == "logs":  # their fingerprint includes the files of --loaded
        stored_files = manifest.get("loaded") or ()
        new_files = about.get("loaded") or ()
        if list(stored_files) != list(new_files):
            return AnotherRun(
                f"{folder} holds the scores of the logs with {_loaded_text(stored_files)}, and this"
                f" command has {_loaded_text(new_files)}; {cure}.",
                option="loaded",
                value=list(new_files),
                allowed=list(stored_files),
            )
    if difference.name in ("logs", "rules"):
        return AnotherRun(
            f"{folder} holds the scores of other {difference.name}; {cure}.",
            option=difference.name,
        )
    first, *others = difference.name.split(".")
    setting = others[-1] if others and first in ("settings", "plan") else difference.name
    values = f"{_short(difference.stored)} there and {_short(difference.new)} here"
    if reason := compatibility.reasons.get(difference.name):
        values = f"{values} ({reason})"
    return AnotherRun(
        f"{folder} holds another run: {setting} is {values}; {cure}.",
        option=difference.name,
        value=None if difference.new is ABSENT else difference.new,
        allowed=None if difference.stored is ABSENT else difference.stored,
    )


def _dtype_difference(
    manifest: Mapping[str, Any], about: Mapping[str, Any]
) -> IdentityDifference | None:
    """The difference that explains another fingerprint of the same model; None if it does not."""
    stored = manifest.get("dtype")
    new = about.get("dtype")
    if not stored or not new or stored == new:
        return None
    return IdentityDifference("dtype", stored, new)


def _loaded_text(files: Sequence[str]) -> str:
    """'--loaded AGENTS.md', or that it was not given."""
    return " ".join(option("loaded", file) for file in files) or f"no {option('loaded')}"


def _changed(
    folder: Path, manifest: Mapping[str, Any], difference: IdentityDifference
) -> AnotherRun:
    """Makes the error for a model or a file whose fingerprint is not that of the run."""
    kind = difference.name.removesuffix("fingerprint").rstrip("._")
    stored = manifest["identity"].get(kind)
    name = stored["name"] if isinstance(stored, dict) else stored
    subject = f"The {kind.replace('_', ' ')}"
    if name:
        subject = f"{subject} {name!r}"
    verb = "have" if kind in ("user_turns", "dialogs") else "has"
    change = f"{subject} {verb} changed since the run in {folder}"
    if kind == "model":
        change = f"{change} (from {difference.stored} to {difference.new})"
    return AnotherRun(
        f"{change}; choose another folder with {option('out')}, or undo the change to resume that"
        " run.",
        option=difference.name,
        value=difference.new,
        allowed=difference.stored,
    )


def _cure(manifest: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    """Returns the advice to a user whose command is refused: to use another folder, or to repeat
    the run's command unless that is the one that is refused.
    """
    cure = f"choose another folder with {option('out')}"
    command = command_of(Manifest.read(manifest))
    if command and command == about.get("argv"):
        return cure
    which = "last command that extended it" if manifest.get(EXTENDED_BY) else "first command"
    cure = f"{cure}, or repeat the {which} to resume it"
    return f"{cure} (`{command}`)" if command else cure


def _command_names(manifest: Mapping[str, Any], about: Mapping[str, Any]) -> tuple[str, str]:
    """Returns the names of the run's command and of this one; both "" if either is not known."""
    # check and calibrate run their conversations as drift runs, so the typed command says more
    stored = typed_command(command_of(Manifest.read(manifest)))
    new = typed_command(about.get("argv"))
    if not stored or not new:
        stored = str(manifest.get("command") or "")
        new = str(about.get("command") or "")
    if not stored or not new:
        return "", ""
    return stored, new


def _short(value: Any) -> str:
    if value is ABSENT:
        return "not given"
    return cut(json.dumps(value, ensure_ascii=False), 120)


class IdentityDifference(NamedTuple):
    """A field in which two identities differ; `ABSENT` is the value of one that lacks the field."""

    name: str  # dotted
    stored: Any  # in the folder
    new: Any  # of the command


def first_difference(stored: Any, new: Any, path: str = "") -> IdentityDifference | None:
    """Returns the first difference, in the order of `new`; None if the two are equal."""
    if isinstance(stored, dict) and isinstance(new, dict):
        for name in [*new, *(name for name in stored if name not in new)]:
            inner = f"{path}.{name}" if path else name
            difference = first_difference(stored.get(name, ABSENT), new.get(name, ABSENT), inner)
            if difference:
                return difference
        return None
    # in Python, 1 == True; in JSON, the two differ (1 and 1.0 count as equal here)
    is_same = stored == new and isinstance(stored, bool) == isinstance(new, bool)
    return None if is_same else IdentityDifference(path or "identity", stored, new)


def with_defaults(identity: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the identity with defaults for the fields that it lacks."""
    complete = copy.deepcopy(dict(identity))
    for name, value in as_json(defaults).items():
        if name not in complete:
            complete[name] = value
        elif isinstance(value, dict) and isinstance(complete[name], dict):
            complete[name] = with_defaults(complete[name], value)
    return complete


def without_defaults(
    joined: Mapping[str, Any], stored: Mapping[str, Any], new: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns a joined identity without the fields that came only from defaults, so that repeating
    a command leaves the manifest as it is.
    """
    reduced = {}
    for name, value in joined.items():
        if name not in stored and name not in new:
            continue
        sides = [stored.get(name) or {}, new.get(name) or {}]
        if isinstance(value, dict) and all(isinstance(side, dict) for side in sides):
            value = without_defaults(value, *sides)
        reduced[name] = value
    return reduced


def part_of(stored: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of a stored identity that a command's identity has too."""
    part = {name: stored[name] for name in new if name in stored}
    for name, value in part.items():
        if isinstance(value, dict) and isinstance(new[name], dict):
            part[name] = part_of(value, new[name])
    return part


def get_at(identity: Mapping[str, Any], name: str) -> Any:
    """Returns the value of a field, given its dotted name; `ABSENT` if the identity lacks it."""
    value: Any = identity
    for part in name.split("."):
        value = value.get(part, ABSENT) if isinstance(value, Mapping) else ABSENT
    return value


def set_at(identity: dict[str, Any], name: str, value: Any) -> None:
    """Sets the value of an existing field, given its dotted name."""
    *outer, last = name.split(".")
    for part in outer:
        identity = identity[part]
    identity[last] = value
