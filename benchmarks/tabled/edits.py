"""The tables of fixes: rules kept, from the records of fixes.py, and points lost, from those of
edit_costs.py.
"""

from __future__ import annotations

import re

from tabled.reading import markdown, read_all

HELPING = "check-and-retry:n=2"
NO_FIX = "none"
FEWEST = 10  # conversations with a kind of rule, for which an interval is read
_IN_WORDS = {2: "two", 3: "three", 4: "four", 5: "five"}


def fixes_table(records: list[dict]) -> str:
    """Rules kept in the last round, the gain over no fix, and tokens read, by model and method."""
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
    for record in records:
        none, *_ = record["rows"]
        for row in record["rows"]:
            is_none = row["method"] == NO_FIX
            read = row["read_per_conversation"]
            more = "" if is_none else f" ({read / none['read_per_conversation'] - 1:+.0%})"
            rows.append(
                [
                    f"`{record['model']}`",
                    "no fix" if is_none else f"`{_short(row['method'])}`",
                    "" if row["kept"]["mean"] is None else f"{row['kept']['mean']:.2f}",
                    "" if is_none else _difference(row["gain"]["all"]),
                    "" if is_none else _kinds(row["gain"]),
                    "" if is_none else _difference(row.get("against_repetition")),
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


def edit_costs_table(records: list[dict]) -> str:
    """Points lost on questions about facts, asked in the middle of a dialog, by model and fix."""
    rows = [["model", "method", "points lost"]]
    for record in records:
        right = record["right_without_a_fix"]
        none = [f"`{record['model']}`", "no fix", f"({right['mean']:.0f}% right)"]
        rows += [none] if none not in rows else []
        for row in record["rows"]:
            lost = row["points_lost"]
            interval = f"{lost['mean']:.1f} [{lost['low']:.1f}, {lost['high']:.1f}]"
            rows.append([f"`{record['model']}`", f"`{row['method']}`", interval])
    return "\n".join(markdown(rows))


def edit_costs_line(records: list[dict]) -> str:
    """The questions behind the table of costs."""
    return "\n".join(
        f"`{record['model']}`: {record['questions']} questions in {record['conversations']}"
        " conversations."
        for record in records
    )


def conversations_line(records: list[dict]) -> str:
    """The conversations behind the table of fixes."""
    return "\n".join(
        f"`{record['model']}`: {record['rows'][0]['conversations']} conversations,"
        f" {'seed' if len(record['seeds']) == 1 else 'seeds'}"
        f" {' and '.join(map(str, record['seeds']))}."
        for record in records
    )


def helping_sentence() -> str:
    """A method's gain over no fix on the models where it is certain, and where it is certainly more
    than repetition's.
    """
    rows = {
        record["model"]: row
        for record in read_all("message_edits")
        for row in record["rows"]
        if row["method"] == HELPING
    }
    helped = {model: row for model, row in rows.items() if _is_certain(row["gain"]["all"], 1)}
    if not helped:
        raise ValueError(
            f"{HELPING} certainly helps on no model, so README cannot say that it does"
        )
    gains = [row["gain"]["all"]["mean"] for row in helped.values()]
    beaten = [f"`{model}`" for model, row in helped.items() if row["against_repetition"]["certain"]]
    more = (
        f"; on {' and '.join(beaten)}, clearly more than repeating the whole prompt does"
        if beaten
        else ""
    )
    count, of = (_IN_WORDS.get(len(models), str(len(models))) for models in (helped, rows))
    on = f"all {of}" if len(helped) == len(rows) else f"{count} of {of}"
    return (
        "Where a program can check the rules, redrawing each reply that breaks one"
        f" (`--method {HELPING}`, with any API) raises the share of rules kept on {on} models"
        f" measured, by {min(gains):.2f} to {max(gains):.2f}{more}."
    )


def _difference(estimate: dict | None) -> str:
    if estimate is None or None in (estimate["mean"], estimate["low"]):  # too few scores
        return ""
    return f"{estimate['mean']:+.2f} [{estimate['low']:+.2f}, {estimate['high']:+.2f}]"
