"""The manifest of a run: what it was started with, and whether another command continues it."""

import copy
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from holdfast.errors import AnotherRun, RecordsError, cut, json_type_in_words, reason_of
from holdfast.records.belonging import first_fault
from holdfast.records.earlier import OLD_LINES, as_current, refuse_unknown
from holdfast.records.identity import Manifest
from holdfast.records.lines import FIELD, without_checksum

MANIFEST = "manifest.json"
EXTENDED_BY = "extended_by"  # the command that last made the run larger
EARLIER_SIZES = "earlier_sizes"  # the conversations it had each time before it got more
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
    raise _another_run(folder, manifest, compatibility, about or {}, difference)


def _another_run(
    folder: Path,
    manifest: Mapping[str, Any],
    compatibility: Compatibility,
    about: Mapping[str, Any],
    difference: tuple[str, Any, Any],
) -> AnotherRun:
    """The error that refuses a command, naming how it differs from the run in the folder."""
    name, stored_value, new_value = difference
    dtypes = manifest.get("dtype"), about.get("dtype")
    if name == "model_fingerprint" and all(dtypes) and dtypes[0] != dtypes[1]:
        name, stored_value, new_value = "dtype", *dtypes
    which = "last command that extended it" if manifest.get(EXTENDED_BY) else "first command"
    command = command_of(Manifest.read(manifest))
    repeat = f", or repeat the {which} to resume it" + (f" (`{command}`)" if command else "")
    if command and command == about.get("argv"):  # it would be refused again
        repeat = ""
    words = _commands(manifest, about)
    if words[0] != words[1]:
        return AnotherRun(
            f"{folder} holds a run of `holdfast {words[0]}`, not of `holdfast {words[1]}`;"
            f" choose another folder with --out{repeat}.",
            option="command",
            value=words[1],
            allowed=words[0],
        )
    if name.endswith("fingerprint"):
        kind = name[: -len("_fingerprint")]
        changed = manifest["identity"].get(kind)
        title = changed["name"] if isinstance(changed, dict) else changed
        have = "have" if kind in ("user_turns", "dialogs") else "has"
        seen = f" (from {stored_value} to {new_value})" if kind == "model" else ""
        return AnotherRun(
            f"The {kind.replace('_', ' ')}{f' {title!r}' if title else ''} {have} changed since the"
            f" run in {folder}{seen}; choose another folder with --out, or undo the change to"
            " resume that run.",
            option=name,
            value=new_value,
            allowed=stored_value,
        )
    if name in ("logs", "rules"):
        return AnotherRun(
            f"{folder} holds the scores of other {name}; choose another folder with --out{repeat}.",
            option=name,
        )
    parts = name.split(".")
    setting = parts[-1] if parts[0] in ("settings", "plan") else name
    reason = f" ({compatibility.reasons[name]})" if name in compatibility.reasons else ""
    return AnotherRun(
        f"{folder} holds another run: {setting} is {_short(stored_value)} there and"
        f" {_short(new_value)} here{reason}; choose another folder with --out{repeat}.",
        option=name,
        value=None if new_value is _ABSENT else new_value,
        allowed=None if stored_value is _ABSENT else stored_value,
    )


def typed_command(argv: str | None) -> str:
    """The name of a command that was typed as `holdfast NAME ...`; "" if it was not."""
    typed = re.match(r"holdfast ([a-z][a-z-]*)(?= |$)", argv or "")
    return typed[1] if typed else ""


def _commands(manifest: Mapping[str, Any], about: Mapping[str, Any]) -> tuple[str, str]:
    """The names of the run's command and of this one, both "" if they are not known."""
    # check and calibrate run their conversations as drift runs, so the typed command says more
    typed = typed_command(command_of(Manifest.read(manifest))), typed_command(about.get("argv"))
    if all(typed):
        return typed
    stored, new = manifest.get("command"), about.get("command")
    return (str(stored), str(new)) if stored and new else ("", "")


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


def superset(stored: Sequence[Any], new: Sequence[Any]) -> list[Any] | None:
    """The command's values, if they include all stored ones; else None."""
    return list(new) if all(value in new for value in stored) else None


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


def as_json(value: Mapping[str, Any]) -> dict[str, Any]:
    """A value as it is read back from JSON, with tuples as lists."""
    read: dict[str, Any] = json.loads(json.dumps(dict(value)))
    return read


def holds_lines(records: Path) -> bool:
    """Whether a whole line has been written."""
    return records.is_file() and b"\n" in records.read_bytes()


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a run folder, as its version wrote it."""
    path, cure = folder / MANIFEST, "restore it, or start a new run in another folder"
    try:
        whole = without_checksum(path.read_bytes())
        manifest = json.loads(whole[0]) if whole else None
    except (OSError, ValueError, RecursionError) as error:
        raise RecordsError(f"{path} cannot be read ({reason_of(error)}); {cure}.") from error
    if whole is None:
        raise RecordsError(f"{path} is damaged: its checksum does not match; {cure}.")
    if not isinstance(manifest, dict):
        seen = json_type_in_words(manifest)
        raise RecordsError(f"{path} holds {seen} and not an object; {cure}.")
    if not whole[1] and (OLD_LINES in manifest or FIELD in manifest):
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


def first_difference(stored: Any, new: Any, path: str = "") -> tuple[str, Any, Any] | None:
    """The dotted name of the first unequal value, in this command's order, with both values."""
    if isinstance(stored, dict) and isinstance(new, dict):
        for name in [*new, *(name for name in stored if name not in new)]:
            inner = f"{path}.{name}" if path else name
            values = stored.get(name, _ABSENT), new.get(name, _ABSENT)
            if difference := first_difference(*values, inner):
                return difference
        return None
    # 1 == True and 1 == 1.0 in Python: the spelling in JSON decides, except for whole floats
    same = stored == new and isinstance(stored, bool) == isinstance(new, bool)
    return None if same else (path or "identity", stored, new)


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


def _short(value: Any) -> str:
    if value is _ABSENT:
        return "not given"
    return cut(json.dumps(value, ensure_ascii=False), 120)
