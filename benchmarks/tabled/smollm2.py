"""SmolLM2, a published chat model: its drift and what fixes gain and cost, from the records of
on_smollm2.py and truncation.py.
"""

from __future__ import annotations

import re

from tabled.reading import difference, markdown, points, read

from holdfast.analysis.verdicts import MIN_SAMPLES
from holdfast.methods import parse, spec_of

MIN_CONVERSATIONS = 10  # of a category that is shown
SHOWN_ROUNDS = (1, 4, 8)
SIDES = {  # who plays the user, in words
    "scripted": "scripted messages",
    "suite": "a user model under another prompt",
    "persona": "a user model with a persona",
    "empty": "a user model without a prompt",
}


# Drift


def drift_summary() -> str:
    """The drift of both seeds, with scripted messages and with a user model."""
    record = read("smollm2_drift")
    rows = [["the user's side", "seed", "stability in rounds 1 / 4 / 8", "change"]]
    for run in record["runs"]:
        if run["user"] in ("scripted", "suite"):
            stability = shown_rounds(run["stability"])
            change = difference(run["stability_change"])
            rows.append([SIDES[run["user"]], str(run["seed"]), stability, change])
    return "\n".join(
        [
            *markdown(rows),
            "",
            f"{record['runs'][0]['conversations']} conversations of {record['rounds']} rounds per"
            f" row, of {len(record['prompts'])} prompts; 95% intervals are over families of prompts"
            " ([other users, categories and attention mass](RESULTS/smollm2_drift.md)).",
        ]
    )


def drift_page() -> str:
    """A page on the drift of SmolLM2, and on where its attention mass is lost."""
    parts = (
        "# Drift of SmolLM2",
        drift_tables().replace("(RESULTS/", "("),
        "## Attention mass",
        decay_table(),
    )
    return "\n\n".join(parts) + "\n"


def drift_tables() -> str:
    """Drift by who plays the user, and with scripted messages by category."""
    record = read("smollm2_drift")
    runs = record["runs"]
    rows = [
        [
            "the user's side",
            "seed",
            "stability in rounds 1 / 4 / 8",
            "change",
            "without collapsed conversations",
            "mass in rounds 1 / 4 / 8",
            "turns cut",
        ]
    ]
    for run in runs:
        rows.append(
            [
                SIDES[run["user"]],
                str(run["seed"]),
                shown_rounds(run["stability"]),
                difference(run["stability_change"]),
                change_without_collapsed(run["without_collapsed"]),
                shown_rounds(run["mass"], 3) if run["mass"] else "",
                f"{100 * run['cut']:.0f}%",
            ]
        )
    lines = [
        f"`python benchmarks/on_smollm2.py drift`: {runs[0]['conversations']} conversations of"
        f" {record['rounds']} rounds per row, of {len(record['prompts'])} prompts; intervals are"
        " over families of prompts.",
        "",
        *markdown(rows),
    ]
    adoption = [
        f"{difference(run['adoption_change'])} (seed {run['seed']})"
        for run in runs
        if "adoption_change" in run
    ]
    if adoption:
        lines += ["", f"Adoption of the other's prompt changes by {' and '.join(adoption)}."]
    return "\n".join([*lines, "", *category_table(runs)])


def shown_rounds(by_round: list[dict], digits: int = 2) -> str:
    """The means of `SHOWN_ROUNDS`: "0.79 / 0.71 / 0.66"."""
    return " / ".join(f"{by_round[number - 1]['mean']:.{digits}f}" for number in SHOWN_ROUNDS)


def change_without_collapsed(row: dict | None) -> str:
    """The change over the dialogs that did not collapse, if they are enough for a verdict."""
    if row is None or row["conversations"] < MIN_SAMPLES:
        return f"too few ({row['conversations'] if row else 0})"
    return f"{difference(row['stability_change'])} (n = {row['conversations']})"


def category_table(runs: list[dict]) -> list[str]:
    """With scripted messages, the change of each category that has enough conversations."""
    runs = [run for run in runs if run["user"] == "scripted"]
    rows = [
        ["category", *(f"seed {run['seed']}: rounds 1 / 4 / 8, change (n)" for run in runs)],
    ]
    for category, first in runs[0]["categories"].items():
        if first["conversations"] >= MIN_CONVERSATIONS:
            cells = [category_cell(run["categories"][category]) for run in runs]
            rows.append([category, *cells])
    title = (
        f"With scripted messages, by category, of those with at least {MIN_CONVERSATIONS}"
        " conversations ([all](RESULTS/smollm2_drift.json)):"
    )
    return [title, "", *markdown(rows)]


def category_cell(row: dict) -> str:
    """The stability of a category, its change if there are enough conversations, and how many."""
    count = row["conversations"]
    change = f", {difference(row['change'])}" if count >= MIN_CONVERSATIONS else ""
    return f"{shown_rounds(row['stability'])}{change} ({count})"


def decay_table() -> str:
    """Whether the mass on the prompt falls within the agent's turns or between them."""
    rows = [["the user's side", "seen in", "within turns", "between turns", "uniform attention"]]
    lines = []
    for run in read("smollm2_drift")["runs"]:
        if "decay" not in run:
            continue
        side = SIDES[run["user"]]
        decay = run["decay"]
        layer, head = decay["shown_head"]
        for name, changes in (
            ("the average over heads", decay["average"]),
            (f"head {layer}.{head}, chosen on the same dialogs", decay["head"]),
        ):
            within = changes["within_turns"]
            between = changes["between_turns"]
            uniform = f"{within['uniform']['mean']:+.2f} and {between['uniform']['mean']:+.2f}"
            changes_seen = [difference(within["real"]), difference(between["real"])]
            rows.append([side, name, *changes_seen, uniform])
        if run["user"] == "scripted":
            lines += ["", mass_by_turn(decay["curves"]["average"], side)]
            lines += ["", mass_by_layer(decay["heads"], side)]
    title = (
        "The change of the logarithm of the mass over eight rounds, summed within the agent's turns"
        " and between them; uniform attention falls by the last column's two numbers."
    )
    return "\n".join([title, "", *markdown(rows), *lines])


def mass_by_turn(curves: list[list[float]], side: str) -> str:
    """The mean mass at the second and at the last token of a turn; the first is the template's.

    Args:
        curves: the mass by token, for each round.
    """
    parts = [
        f"{curves[number - 1][1]:.3f} to {curves[number - 1][-1]:.3f} in round {number}"
        for number in (1, 2, 4, len(curves))
    ]
    return f"From a reply's second token to its last one, with {side}: {', '.join(parts)}."


def mass_by_layer(heads: dict, side: str) -> str:
    """The mean mass of the layers' heads in the first and the last round, in thirds of the layers.

    Args:
        heads: the mass in the first round and its drop, [layer][head] each.
    """
    first, drop = ([sum(layer) / len(layer) for layer in heads[name]] for name in heads)
    third = len(first) // 3
    parts = []
    for start in range(0, len(first), third):
        layers = slice(start, start + third)
        mass = sum(first[layers]) / third
        last_mass = mass - sum(drop[layers]) / third
        parts.append(f"{mass:.3f} to {last_mass:.3f} in layers {start} to {start + third - 1}")
    return f"From round 1 to round 8 with {side}, the mass goes from {', '.join(parts)}."


def truncation_table() -> str:
    """The findings with a server that truncates prompts, and without it."""
    rows = [["the server reads at most", "canary known in rounds 1 to 8", "found"]]
    for run in read("truncation_smollm2")["runs"]:
        limit = "everything" if run["limit"] is None else f"{run['limit']} tokens"
        known = " / ".join(f"{share:.2f}" for share in run["canary_by_round"])
        finding = "nothing"
        if run["truncation"] is not None:
            rounds = sorted(run["truncation"]["from_round"].values())
            verdict = run["truncation"]["verdict"]
            finding = f"{verdict}, from round {rounds[0]} to {rounds[-1]} on, in {len(rounds)}"
        rows.append([limit, known, finding])
    title = (
        "`python benchmarks/truncation.py`: 16 conversations with SmolLM2-135M-Instruct, through a"
        " server that cuts chats off, and without it."
    )
    return "\n".join([title, "", *markdown(rows)])


# Fixes


def explored_page() -> str:
    """A page with every setting of the exploring half."""
    title = "# Every setting tried on SmolLM2, on the exploring half of the prompts"
    return f"{title}\n\n{settings_tables('smollm2_explored')}\n"


def confirmed_page() -> str:
    """A page with every setting of the confirming half."""
    title = "# The settings named in advance on SmolLM2, on the confirming half of the prompts"
    return f"{title}\n\n{settings_tables('smollm2_confirmed')}\n"


def settings_tables(name: str) -> str:
    """The gain and cost of each setting of a stage, one table per seed."""
    record = read(name)
    lines = [
        f"`python benchmarks/on_smollm2.py {record['stage']}`: {record['conversations']}"
        f" conversations per setting and seed with scripted messages, paired,"
        f" {record['facts']} facts; {len(record['prompts'])} prompts in"
        f" {record['families']} families; intervals are over families."
    ]
    for seed in record["seeds"]:
        plain, *fixes = seed["settings"]
        recalled = f" {100 * plain['recall']['mean']:.1f}% recalled," if "recall" in plain else ""
        lines += [
            "",
            f"Seed {seed['seed']}: without a fix, stability {plain['stability']['mean']:.3f},"
            f" {100 * plain['facts']['mean']:.1f}% of the facts right,{recalled}"
            f" {100 * plain['broken']['mean']:.0f}% of replies broken.",
            "",
            *settings_table(plain, fixes),
        ]
    return "\n".join(lines)


def settings_table(plain: dict, fixes: list[dict]) -> list[str]:
    """The gain and cost of each fix; only confirmed ones have points of recall, and text."""
    is_confirmed = "recall" in plain
    header = ["setting", "stability, all rounds", "last round", "points of facts lost"]
    header.append("of known facts")
    if is_confirmed:
        header += ["points of recall lost", "log-probability of text"]
    rows = [[*header, "broken replies"]]
    for row in fixes:
        cells = [f"`{spec_of(parse(row['method']))}`", difference(row["gain"])]
        cells += [difference(row["gain_last_round"]), points(row["points_lost"])]
        cells.append(points(row["known_points_lost"]))
        if is_confirmed:
            log_probability, plain_log_probability = (
                setting["log_probability_of_text"]["mean"] for setting in (row, plain)
            )
            cells.append(points(row["recall_points_lost"]))
            cells.append(f"{log_probability - plain_log_probability:+.3f}")
        rows.append([*cells, f"{100 * row['broken']['mean']:.0f}%"])
    return markdown(rows)


def start_line() -> str:
    """The setting to start with: its gain and its cost on both seeds."""
    record = read("smollm2_confirmed")
    seeds = record["seeds"]
    rows = [seed["settings"][1] for seed in seeds]
    name = spec_of(parse(rows[0]["method"]))
    heads = re.sub(r".*heads=(\d+)-(\d+)\.(\d+)-(\d+)", r"heads \3 to \4 of layers \1 to \2", name)
    table = [
        ["", *(f"seed {seed['seed']}" for seed in seeds)],
        ["stability gained over eight rounds", *(difference(row["gain"]) for row in rows)],
        ["in the last round alone", *(difference(row["gain_last_round"]) for row in rows)],
        [
            f"points lost on {record['facts']:,} facts, asked in mid-dialog",
            *(points_without_plus(row["points_lost"]) for row in rows),
        ],
        [
            "points lost on facts that it answers correctly without a dialog",
            *(points_without_plus(row["known_points_lost"]) for row in rows),
        ],
    ]
    guided = [
        next(row for row in seed["settings"] if row["method"].startswith("guidance"))
        for seed in seeds
    ]
    guided_gains = [difference(row["gain"]) for row in guided]
    guided_costs = [points_without_plus(row["known_points_lost"]) for row in guided]
    return "\n".join(
        [
            f"**Start with split-softmax on the last third of the layers** (on SmolLM2: `{name}`,"
            f" which is {heads}). On prompts that were not used to choose it (95% intervals over"
            " families of prompts):",
            "",
            *markdown(table),
            "",
            "[Speed](DOCS/speed.md) says how much time steering adds."
            f" [Guidance](DOCS/methods.md), `{guided[0]['method']}`,"
            f" gained {' and '.join(guided_gains)}, and lost {' and '.join(guided_costs)} points on"
            " facts that it gets right without a dialog; it runs the model twice per token. Other"
            " models have other heads:"
            " [`holdfast calibrate`](DOCS/choosing.md#measure-gain-and-cost) measures both on"
            " yours.",
        ]
    )


def points_without_plus(estimate: dict) -> str:
    """Points lost, of which a plus sign would say the opposite."""
    return points(estimate).replace("+", "")
