"""Whether a command continues the run in a folder, by their identities."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.errors import AnotherRun, cut
from holdfast.records.identity import Manifest
from holdfast.records.manifest import (
    EXTENDED_BY,
    MANIFEST,
    as_json,
    command_of,
    holds_lines,
    read_manifest,
    typed_command,
)

_ABSENT = object()


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


class Difference(NamedTuple):
    """A field in which two identities differ; a value is `_ABSENT` where one does not have it."""

    name: str  # dotted
    stored: Any  # in the folder
    new: Any  # of the command


def joined(
    folder: Path,
    manifest: Mapping[str, Any],
    identity: Mapping[str, Any],
    compatibility: Compatibility,
    about: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The identity of the run that covers both what the folder has and what the command asks."""
    stored = _completed(manifest["identity"], compatibility.defaults)
    new = _completed(dict(identity), compatibility.defaults)
    for name, join in compatibility.joins.items():
        values = _get(stored, name), _get(new, name)
        if _ABSENT not in values and (value := join(*values)) is not None:
            _set(stored, name, value)
            _set(new, name, value)
    difference = first_difference(stored, new)
    if difference is None:
        return _without_defaults(stored, manifest["identity"], as_json(identity))
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
    stored = _completed(manifest["identity"], compatibility.defaults)
    part = {**manifest, "identity": _part(stored, new)}
    joined(folder, part, new, replace(compatibility, defaults={}), about)


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
        value=None if difference.new is _ABSENT else difference.new,
        allowed=None if difference.stored is _ABSENT else difference.stored,
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
    stored, new = manifest.get("command"), about.get("command")
    return (str(stored), str(new)) if stored and new else ("", "")


def _short(value: Any) -> str:
    if value is _ABSENT:
        return "not given"
    return cut(json.dumps(value, ensure_ascii=False), 120)


# --- Identities as trees of JSON values


def first_difference(stored: Any, new: Any, path: str = "") -> Difference | None:
    """The first unequal value, in this command's order."""
    if isinstance(stored, dict) and isinstance(new, dict):
        for name in [*new, *(name for name in stored if name not in new)]:
            inner = f"{path}.{name}" if path else name
            values = stored.get(name, _ABSENT), new.get(name, _ABSENT)
            if difference := first_difference(*values, inner):
                return difference
        return None
    # 1 == True and 1 == 1.0 in Python: the spelling in JSON decides, except for whole floats
    same = stored == new and isinstance(stored, bool) == isinstance(new, bool)
    return None if same else Difference(path or "identity", stored, new)


def _completed(identity: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    complete = copy.deepcopy(dict(identity))
    for name, value in as_json(defaults).items():
        if name not in complete:
            complete[name] = value
        elif isinstance(value, dict) and isinstance(complete[name], dict):
            complete[name] = _completed(complete[name], value)
    return complete


def _without_defaults(
    joined: Mapping[str, Any], stored: Mapping[str, Any], new: Mapping[str, Any]
) -> dict[str, Any]:
    """A joined identity without the fields that only the defaults have, so that repeating a command
    leaves the manifest as it is.
    """
    kept = {}
    for name, value in joined.items():
        if name not in stored and name not in new:
            continue
        sides = stored.get(name), new.get(name)
        if isinstance(value, dict) and all(isinstance(side, dict) for side in sides if side):
            value = _without_defaults(value, *(side or {} for side in sides))
        kept[name] = value
    return kept


def _part(stored: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    part = {name: stored[name] for name in new if name in stored}
    for name, value in part.items():
        if isinstance(value, dict) and isinstance(new[name], dict):
            part[name] = _part(value, new[name])
    return part


def _get(identity: Mapping[str, Any], name: str) -> Any:
    value: Any = identity
    for part in name.split("."):
        value = value.get(part, _ABSENT) if isinstance(value, Mapping) else _ABSENT
    return value


def _set(identity: dict[str, Any], name: str, value: Any) -> None:
    *outer, last = name.split(".")
    for part in outer:
        identity = identity[part]
    identity[last] = value
