"""The tables of fixes: rules kept, from the records of fixes.py, and points lost, from those of
edit_costs.py.
"""

from __future__ import annotations

import re

from tabled.reading import difference, markdown, read_all

NO_FIX = "none"
HELPING = "check-and-retry:n=2"  # the fix that the README names
MIN_CONVERSATIONS = 10  # with a kind of rule, for a verdict on it
_IN_WORDS = {2: "two", 3: "three", 4: "four", 5: "five"}


# Rules kept


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
        none, *fixes = record["rows"]
        tokens = none["read_per_conversation"]
        rows.append([f"`{record['model']}`", "no fix", _kept(none), "", "", "", f"{tokens:,}"])
        for row in fixes:
            more = row["read_per_conversation"] / tokens - 1
            rows.append(
                [
                    f"`{record['model']}`",
                    f"`{_shortened(row['method'])}`",
                    _kept(row),
                    _gain(row["gain"]["all"]),
                    _clear_kinds(row["gain"]),
                    _gain(row.get("against_repetition")),
                    f"{row['read_per_conversation']:,} ({more:+.0%})",
                ]
            )
    return "\n".join(markdown(rows))


def _shortened(method: str) -> str:
    """A spec string without a list of heads too long for a table."""
    return re.sub(r"heads=[\d./-]{40,}", "heads=...", method)


def _kept(row: dict) -> str:
    """The share of rules kept; "" without any score."""
    return "" if row["kept"]["mean"] is None else f"{row['kept']['mean']:.2f}"


def _gain(estimate: dict | None) -> str:
    """A gain with its interval; "" if there are too few scores."""
    if estimate is None or None in (estimate["mean"], estimate["low"]):
        return ""
    return difference(estimate, 2)


def _clear_kinds(gain: dict[str, dict]) -> str:
    """The kinds of rules whose gain or loss is clear: "+ format, − gate"."""
    by_kind = {kind: estimate for kind, estimate in gain.items() if kind != "all"}
    gaining = [f"+ {kind}" for kind, estimate in by_kind.items() if _clear_sign(estimate) > 0]
    losing = [f"− {kind}" for kind, estimate in by_kind.items() if _clear_sign(estimate) < 0]
    return ", ".join([*gaining, *losing])


def _clear_sign(estimate: dict) -> int:
    """1 for a gain and -1 for a loss whose interval excludes 0, if enough conversations have it;
    else 0.
    """
    if estimate["n"] < MIN_CONVERSATIONS or estimate["low"] is None:
        return 0
    return (estimate["low"] > 0) - (estimate["high"] < 0)


def conversations_line(records: list[dict]) -> str:
    """The conversations behind the table of fixes."""
    return "\n".join(
        f"`{record['model']}`: {record['rows'][0]['conversations']} conversations,"
        f" {'seed' if len(record['seeds']) == 1 else 'seeds'}"
        f" {' and '.join(map(str, record['seeds']))}."
        for record in records
    )


def helping_sentence() -> str:
    """The gain of `HELPING` over no fix on the models where it is clear, and where it is clearly
    more than that of repetition.

    Raises:
        ValueError: it clearly helps on no model.
    """
    rows = {
        record["model"]: row
        for record in read_all("message_edits")
        for row in record["rows"]
        if row["method"] == HELPING
    }
    helped = {model: row for model, row in rows.items() if _clear_sign(row["gain"]["all"]) > 0}
    if not helped:
        raise ValueError(
            f"{HELPING} certainly helps on no model, so README cannot say that it does"
        )
    gains = [row["gain"]["all"]["mean"] for row in helped.values()]
    models = f"all {_in_words(len(rows))}"
    if len(helped) < len(rows):
        models = f"{_in_words(len(helped))} of {_in_words(len(rows))}"
    more = ""
    if beating := [model for model, row in helped.items() if row["against_repetition"]["certain"]]:
        names = " and ".join(f"`{model}`" for model in beating)
        more = f"; on {names}, clearly more than repeating the whole prompt does"
    return (
        "Where a program can check the rules, redrawing each reply that breaks one"
        f" (`--method {HELPING}`, with any API) raises the share of rules kept on {models} models"
        f" measured, by {min(gains):.2f} to {max(gains):.2f}{more}."
    )


def _in_words(count: int) -> str:
    return _IN_WORDS.get(count, str(count))


# Points lost


def edit_costs_table(records: list[dict]) -> str:
    """Points lost on questions about facts, asked in the middle of a dialog, by model and fix."""
    rows = [["model", "method", "points lost"]]
    for record in records:
        model = f"`{record['model']}`"
        none = [model, "no fix", f"({record['right_without_a_fix']['mean']:.0f}% right)"]
        if none not in rows:  # a model may have two records, with different fixes
            rows.append(none)
        for row in record["rows"]:
            lost = row["points_lost"]
            interval = f"{lost['mean']:.1f} [{lost['low']:.1f}, {lost['high']:.1f}]"
            rows.append([model, f"`{row['method']}`", interval])
    return "\n".join(markdown(rows))


def edit_costs_line(records: list[dict]) -> str:
    """The questions behind the table of costs."""
    return "\n".join(
        f"`{record['model']}`: {record['questions']} questions in {record['conversations']}"
        " conversations."
        for record in records
    )
