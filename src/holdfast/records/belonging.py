"""Whether a record is one of its run: its fields are what every reader relies on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

_DIALOG = ("agent", "user", "turns", "probes")
_FIELDS = {"tasks": ("task", "variant", "scores"), "profile": ("scores",)}  # by the command


def why_not(record: Mapping[str, Any], manifest: Mapping[str, Any]) -> str | None:
    """The fault of a record of this run, to follow "Line 7 of ..."; None where nothing is."""
    command = str(manifest.get("command"))
    for name in ("method", "conversation", *_FIELDS.get(command, _DIALOG)):
        if name not in record:
            return f"has no {name!r}"
    if not isinstance(record["method"], str):
        return f"has the method {_short(record['method'])}, which is no text"
    if not _is_whole(record["conversation"], 0):
        return f"has the conversation {_short(record['conversation'])}, which is no whole number"
    identity = manifest.get("identity")
    if why := _of_another_run(record, command, identity if isinstance(identity, Mapping) else {}):
        return why
    if command in _FIELDS:
        return _wrong_scores(record["scores"])
    return _wrong_dialog(record, manifest)


def _of_another_run(
    record: Mapping[str, Any], command: str, identity: Mapping[str, Any]
) -> str | None:
    settings = identity.get("settings")
    settings = settings if isinstance(settings, Mapping) else {}
    count = {"tasks": settings.get("samples"), "profile": identity.get("samples")}.get(
        command, settings.get("conversations")
    )
    if isinstance(count, int) and record["conversation"] >= count:
        what = "sample" if command in _FIELDS else "conversation"
        return f"has {what} {record['conversation']}, and the run's are 0 to {count - 1}"
    lists = {
        "method": None if command in _FIELDS else identity.get("methods"),
        "task": settings.get("tasks"),
        "variant": identity.get("variants"),
    }
    for name, known in lists.items():
        if isinstance(known, list) and name in record and record[name] not in known:
            return f"has the {name} {_short(record[name])}, which the run does not have"
    return None


def _wrong_scores(scores: Any) -> str | None:
    """Of a sample: numbers by their names."""
    if not isinstance(scores, dict) or not scores:
        return f"has the scores {_short(scores)}, which are not numbers by name"
    for name, score in scores.items():
        if not _is_number(score):
            return f"has the score {_short(score)} for {name!r}, which is no number"
    return None


def _wrong_dialog(record: Mapping[str, Any], manifest: Mapping[str, Any]) -> str | None:
    for name in ("agent", "user"):
        if not isinstance(record[name], dict) or not {"id", "category"} <= record[name].keys():
            return f"has the {name} {_short(record[name])}, which has no id and category"
    for name in ("turns", "probes"):
        rows = record[name]
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            return f"has {name} that are not a list of objects"
    for name, wanted in (("turns", _TURN), ("probes", _PROBE)):
        for row in record[name]:
            for field, (fits, what) in wanted.items():
                if not fits(row.get(field)):
                    return f"has {name} with the {field} {_short(row.get(field))}, which is {what}"
    for probe in record["probes"]:
        if probe["kind"] != "capability" and not 0 <= probe["score"] <= 1:
            return f"has the score {_short(probe['score'])}, which is not between 0 and 1"
    return _wrong_rounds(record, manifest) or _wrong_costs(record)


def _wrong_rounds(record: Mapping[str, Any], manifest: Mapping[str, Any]) -> str | None:
    settings = manifest.get("identity", {}).get("settings", {})
    rounds = settings.get("rounds") if manifest.get("command") == "drift" else None
    if isinstance(rounds, int):
        for row in (*record["turns"], *record["probes"]):
            if row["round"] > rounds:
                return f"has round {row['round']}, and the run's are 1 to {rounds}"
    return None


def _wrong_costs(record: Mapping[str, Any]) -> str | None:
    tokens = record.get("tokens", {})
    if not isinstance(tokens, dict) or not all(_is_number(count) for count in tokens.values()):
        return f"has the tokens {_short(tokens)}, which are not numbers by name"
    if not _is_number(record.get("seconds", 0)):
        return f"has the seconds {_short(record['seconds'])}, which is no number"
    return None


def _is_whole(value: Any, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_Check = tuple[Callable[[Any], bool], str]  # what a field must be, and what it is otherwise
_ROUND: _Check = (lambda value: _is_whole(value, 1), "no whole number from 1")
_MASS: _Check = (lambda value: value is None or _is_number(value), "no number")
_TEXT: _Check = (_is_text, "no text")
_DIVERGENCE: _Check = (
    lambda value: value is None or (_is_number(value) and value >= 0),
    "no number from 0",
)
_TURN = {"round": _ROUND, "speaker": _TEXT, "text": _TEXT, "mass": _MASS, "divergence": _DIVERGENCE}
_PROBE: dict[str, _Check] = {
    "round": _ROUND,
    "kind": _TEXT,
    "probe": (lambda value: _is_whole(value, 0), "no whole number"),
    "reply": _TEXT,
    "score": (_is_number, "no number"),
    "mass": _MASS,
}


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
