"""Tables of a published chat model, from the records of on_smollm2.py and window.py."""

from __future__ import annotations

from tabled.reading import interval, markdown, read

SIDES = {
    "scripted": "scripted messages",
    "suite": "a user model under another prompt",
    "persona": "a user model with a persona",
    "empty": "a user model without a prompt",
}


def points(estimate: dict) -> str:
    return f"{estimate['mean']:+.1f} [{estimate['low']:+.1f}, {estimate['high']:+.1f}]"


def fall(estimates: list[dict]) -> str:
    """Of an estimate per round: the first, the middle and the last one."""
    return " / ".join(f"{estimates[place]['mean']:.2f}" for place in (0, 3, -1))


def real_drift_table() -> str:
    """Drift by who plays the user, and by category."""
    record = read("smollm2_drift")
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
    for run in record["runs"]:
        kept = run["without_collapsed"]
        rows.append(
            [
                SIDES[run["user"]],
                str(run["seed"]),
                fall(run["stability"]),
                interval(run["stability_change"]),
                (
                    f"{interval(kept['stability_change'])} (n = {kept['conversations']})"
                    if kept
                    else "none is left"
                ),
                fall(run["mass"]) if run["mass"] else "",
                f"{100 * run['cut']:.0f} %",
            ]
        )
    count = record["runs"][0]["conversations"]
    adopted = [
        f"{interval(run['adoption_change'])} (seed {run['seed']})"
        for run in record["runs"]
        if "adoption_change" in run
    ]
    lines = [
        (
            f"`python benchmarks/on_smollm2.py drift`: {count} conversations of"
            f" {record['rounds']} rounds per row, between {len(record['prompts'])} prompts;"
            " intervals are over families of prompts."
        ),
        "",
        *markdown(rows),
    ]
    if adopted:
        lines += ["", f"Adoption of the other's prompt changes by {' and '.join(adopted)}."]
    return "\n".join([*lines, "", *by_category(record)])


def by_category(record: dict) -> list[str]:
    """With scripted messages: the change of each category, and how many conversations it has."""
    runs = [run for run in record["runs"] if run["user"] == "scripted"]
    head = [f"seed {run['seed']}: rounds 1 / 4 / 8, change (n)" for run in runs]
    rows = [["category", *head]]
    for category in sorted({name for run in runs for name in run["categories"]}):
        cells = []
        for run in runs:
            cell = run["categories"].get(category)
            cells.append(
                f"{fall(cell['stability'])}, {interval(cell['change'])} ({cell['conversations']})"
                if cell
                else ""
            )
        rows.append([category, *cells])
    return ["With scripted messages, by category:", "", *markdown(rows)]


def settings_table(name: str) -> str:
    """What each setting of a stage gives and costs."""
    record = read(name)
    lines = [
        (
            f"`python benchmarks/on_smollm2.py {record['stage']}`: {record['conversations']}"
            f" conversations per setting and seed with scripted messages, paired,"
            f" {record['facts']} facts; {len(record['prompts'])} prompts in"
            f" {record['families']} families, which intervals are over."
        )
    ]
    for seed in record["seeds"]:
        plain = seed["settings"][0]
        rows = [
            [
                "setting",
                "stability, all rounds",
                "last round",
                "points of facts lost",
                "points of recall lost",
                "log-probability of text per token",
                "broken replies",
            ]
        ]
        for row in seed["settings"][1:]:
            text = row["log_probability_of_text"]["mean"] - plain["log_probability_of_text"]["mean"]
            rows.append(
                [
                    f"`{row['method']}`",
                    interval(row["gain"]),
                    interval(row["gain_last_round"]),
                    points(row["points_lost"]),
                    points(row["recall_points_lost"]),
                    f"{text:+.3f}",
                    f"{100 * row['broken']['mean']:.0f} %",
                ]
            )
        lines += [
            "",
            (
                f"Seed {seed['seed']}: without a fix, stability {plain['stability']['mean']:.3f},"
                f" {100 * plain['facts']['mean']:.1f} % of the facts right,"
                f" {100 * plain['recall']['mean']:.1f} % recalled,"
                f" {100 * plain['broken']['mean']:.0f} % of replies broken."
            ),
            "",
            *markdown(rows),
        ]
    return "\n".join(lines)


def window_table() -> str:
    """Mass and preference by round, of both models."""
    record = read("window")
    lines = [
        f"`python benchmarks/window.py`: {record['dialogs']} dialogs, the same for both models."
    ]
    for model in record["models"]:
        local = bool(model["windowed_layers"])
        rows = [["round", "tokens since the prompt", "mass, layers that see all (even)"]]
        rows[0] += ["mass, windowed layers (even)"] if local else []
        rows[0] += ["the reply that keeps the rule is likelier"]
        for row in model["rounds"]:
            cells = [str(row["round"]), f"{row['distance']:.0f}"]
            for kind in ("full", "windowed") if local else ("full",):
                cells.append(f"{row[f'mass_{kind}']['mean']:.4f} ({row[f'even_{kind}']:.4f})")
            keeps = row["keeps"]
            cells.append(
                f"{100 * keeps['mean']:.0f} % [{100 * keeps['low']:.0f}, {100 * keeps['high']:.0f}]"
            )
            rows.append(cells)
        lines += ["", f"`{model['model']}`:", "", *markdown(rows)]
    return "\n".join(lines)
