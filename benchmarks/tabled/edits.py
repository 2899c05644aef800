"""The tables of fixes: those that edit messages, from the records in results/message_edits, and
those that steer the model, from results/steering_fixes.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from tabled.reading import RESULTS, markdown

FOLDER = RESULTS / "message_edits"
STEERING = RESULTS / "steering_fixes"
COSTS = RESULTS / "edit_costs"
STEERING_COSTS = RESULTS / "steering_costs"
HELPING = "check-and-retry:n=2"
NO_FIX = "none"
FEWEST = 10  # conversations with a kind of rule, for which an interval is read
_IN_WORDS = {2: "two", 3: "three", 4: "four", 5: "five"}


def edits_table() -> str:
    """Rules kept in the last round, the gain over no fix, and tokens read, by model and method."""
    return _fixes_table(FOLDER)


def steering_table() -> str:
    """The same for methods that steer a model, beside two that edit messages."""
    return _fixes_table(STEERING)


def _fixes_table(folder: Path) -> str:
    rows = [
        [
            "model",
            "method",
            "rules kept",
            "gain over no fix",
            "kinds of rules that clearly gain (+) or lose (−)",
            "against repetition",
            "tokens read",
        ]
    ]
    for record in _records(folder):
        none, *_ = record["rows"]
        for row in record["rows"]:
            is_none = row["method"] == NO_FIX
            kept = row["kept"]
            read = row["read_per_conversation"]
            more = "" if is_none else f" ({read / none['read_per_conversation'] - 1:+.0%})"
            rows.append(
                [
                    f"`{record['model']}`",
                    "no fix" if is_none else f"`{_short(row['method'])}`",
                    f"{kept['mean']:.2f}",
                    "" if is_none else _difference(row["gain"]["all"]),
                    "" if is_none else _kinds(row["gain"]),
                    "" if is_none else _difference(row["against_repetition"]),
                    f"{read:,}{more}",
                ]
            )
    return "\n".join(markdown(rows))


def _short(method: str) -> str:
    """A spec string without a list of heads too long for a table."""
    return re.sub(r"heads=[\d./-]{40,}", "heads=...", method)


def _kinds(gain: dict[str, dict]) -> str:
    """The kinds whose interval excludes 0."""
    gaining = [kind for kind, of in gain.items() if kind != "all" and _is_certain(of, 1)]
    losing = [kind for kind, of in gain.items() if kind != "all" and _is_certain(of, -1)]
    return ", ".join([*(f"+ {kind}" for kind in gaining), *(f"− {kind}" for kind in losing)])


def _is_certain(of: dict, sign: int) -> bool:
    """Whether an interval lies on one side of 0. Below 10 conversations it is not read."""
    low, high = of["low"], of["high"]
    return of["n"] >= FEWEST and low is not None and (low > 0 if sign > 0 else high < 0)


def _records(folder: Path) -> list[dict]:
    return [json.loads(file.read_text()) for file in sorted(folder.glob("*.json"))]


def edit_costs_table() -> str:
    """Points lost on questions about facts, asked in the middle of a dialog, by model and fix."""
    rows = [["model", "method", "points lost"]]
    for record in [*_records(COSTS), *_records(STEERING_COSTS)]:
        right = record["right_without_a_fix"]
        none = [f"`{record['model']}`", "no fix", f"({right['mean']:.0f}% right)"]
        rows += [none] if none not in rows else []
        for row in record["rows"]:
            lost = row["points_lost"]
            interval = f"{lost['mean']:.1f} [{lost['low']:.1f}, {lost['high']:.1f}]"
            rows.append([f"`{record['model']}`", f"`{row['method']}`", interval])
    return "\n".join(markdown(rows))


def edit_costs_line() -> str:
    """The questions behind the table of costs."""
    records = _records(COSTS)
    return "\n".join(
        f"`{record['model']}`: {record['questions']} questions in {record['conversations']}"
        " conversations."
        for record in records
    )


def edits_line() -> str:
    """The conversations behind the table of message edits."""
    return _conversations_line(FOLDER)


def steering_line() -> str:
    """The conversations behind the table of steering."""
    return _conversations_line(STEERING)


def _conversations_line(folder: Path) -> str:
    return "\n".join(
        f"`{record['model']}`: {record['rows'][0]['conversations']} conversations,"
        f" {'seed' if len(record['seeds']) == 1 else 'seeds'}"
        f" {' and '.join(map(str, record['seeds']))}."
        for record in _records(folder)
    )


def helping_sentence() -> str:
    """A method's gain over no fix on each model, and where it is certainly more than repetition's;
    a `ValueError` if it is not certain on every model.
    """
    records = _records(FOLDER)
    rows = {
        record["model"]: row
        for record in records
        for row in record["rows"]
        if row["method"] == HELPING
    }
    if not all(row["gain"]["all"]["low"] > 0 for row in rows.values()):
        raise ValueError(f"{HELPING} does not help on every model, so README cannot say so")
    gains = [row["gain"]["all"]["mean"] for row in rows.values()]
    beaten = [f"`{model}`" for model, row in rows.items() if row["against_repetition"]["certain"]]
    more = (
        f"; on {' and '.join(beaten)}, clearly more than repeating the whole prompt does"
        if beaten
        else ""
    )
    count = _IN_WORDS.get(len(rows), str(len(rows)))
    return (
        "Where a program can check the rules, redrawing each reply that breaks one"
        f" (`--method {HELPING}`, with any API) raises the share of rules kept on all"
        f" {count} models measured, by {min(gains):.2f} to {max(gains):.2f}{more}."
    )


def _difference(estimate: dict) -> str:
    return f"{estimate['mean']:+.2f} [{estimate['low']:+.2f}, {estimate['high']:+.2f}]"
