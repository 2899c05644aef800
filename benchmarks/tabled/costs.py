"""Tables of what fixes give and cost."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tabled.common import interval, read


def chosen_rows(record: dict) -> dict[str, str]:
    """Rows of the study of chosen heads: what a setting gives in free self-chats and behind fixed
    histories, and what it costs.
    """
    spelled = {
        f",heads={'/'.join(f'{layer}.{head}' for layer, head in sorted(heads))}": (
            f", heads by {name}"
        )
        for name, heads in record["chosen"].items()
    }

    def method(row: dict) -> str:
        end = next((end for end in spelled if row["method"].endswith(end)), "")
        star = " *" if row["front"] else ""
        return f"`{row['method'].removesuffix(end)}`{spelled.get(end, '')}{star}"

    def points(estimate: dict) -> str:
        return f"{estimate['mean']:+.1f} [{estimate['low']:+.1f}, {estimate['high']:+.1f}]"

    def row(one: dict) -> str:
        ahead = "" if one["all_heads"] else interval(one["ahead_of_all_heads"])
        return (
            f"| {method(one)} | {interval(one['free_gain'])} | {points(one['points_lost'])} |"
            f" {ahead} | {interval(one['fixed_gain'])} |"
        )

    return {one["method"]: row(one) for one in record["settings"][1:]}


def chosen_table(names: Sequence[str] | None = None) -> list[str]:
    """Some of these rows, or all, below what they are."""
    record = read("chosen_heads")
    none, rows = record["settings"][0], chosen_rows(record)
    return [
        (
            f"`python benchmarks/chosen_heads.py`: {record['conversations']} conversations per"
            " setting, paired with those of the model as it is (stability"
            f" {none['free']['mean']:.3f} over 8 rounds of free self-chat,"
            f" {none['fixed']['mean']:.3f} in round 8 behind fixed histories;"
            f" {none['capability']['mean']:.1f} % of {record['questions']} knowledge questions"
            f" right). {len(record['chosen']['drop'])} of {sum(map(len, record['drop']))} heads,"
            " chosen on other prompts and seeds. A star marks the Pareto front."
        ),
        "",
        (
            "| method | stability, free self-chats | points lost | against split-softmax on all"
            " heads at that cost | stability, fixed histories |"
        ),
        "| --- | --- | --- | --- | --- |",
        *(rows[name] for name in names or rows),
    ]


def chosen_summary() -> str:
    """The front, and of every other kind of fix the setting that costs least."""
    settings = read("chosen_heads")["settings"][1:]
    kinds: dict[str, list[dict]] = {}
    for one in settings:
        kinds.setdefault(re.sub(r"[0-9.]+(?=,heads=|$)", "", one["method"], count=1), []).append(
            one
        )
    shown = [
        one["method"]
        for some in kinds.values()
        for one in [one for one in some if one["front"]]
        or [min(some, key=lambda one: one["points_lost"]["mean"])]
    ]
    return "\n".join(chosen_table(shown))


def chosen_page() -> str:
    """All settings of the study of chosen heads, with its figures."""
    record = read("chosen_heads")
    heads = [
        f"- by {name}: {', '.join(f'{layer}.{head}' for layer, head in sorted(some))}"
        for name, some in record["chosen"].items()
    ]
    return "\n".join(
        [
            "# Must stability cost capability?",
            "",
            *chosen_table(),
            "",
            "![stability against points lost](trade_off.png)",
            "",
            "![stability by round](by_round.png)",
            "",
            (
                "Heads (layer.head): by the drop of their mass over self-chats, by the gain of the"
                " probe's score when split-softmax moves that head alone, and at random:"
            ),
            "",
            *heads,
            "",
            "What to take, chosen on one half of the conversations and told from the other:",
            "",
            *(f"- {line}" for line in record["answers"].values()),
            "",
        ]
    )
