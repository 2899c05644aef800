"""Tables of the gains and costs of fixes."""

from __future__ import annotations

from tabled.reading import difference, markdown, points, read

LEFT_OUT = {  # methods of 0.2 that were removed, by name
    "directer": "forwarded each token again with the keys of the span multiplied"
    " ([arXiv 2603.06745](https://arxiv.org/abs/2603.06745))",
    "ada-seka": "amplified keys along a mixture of directions that the last query chose"
    " ([arXiv 2603.01281](https://arxiv.org/abs/2603.01281))",
    "gcad": "added to the output of attention what a system prompt adds on average"
    " ([arXiv 2605.10664](https://arxiv.org/abs/2605.10664))",
    "gate": "drew a token again with fewer steered layers if it was implausible (ours)",
}


def chosen_rows(record: dict) -> dict[str, str]:
    """Rows of the study of chosen heads: a setting's gain in free self-chats and after fixed
    histories, and its cost.
    """
    endings = {
        f",heads={'/'.join(f'{layer}.{head}' for layer, head in sorted(heads))}": (
            f", heads by {name}"
        )
        for name, heads in record["chosen"].items()
    }

    def method(row: dict) -> str:
        end = next((end for end in endings if row["method"].endswith(end)), "")
        star = " *" if row["front"] else ""
        return f"`{row['method'].removesuffix(end)}`{endings.get(end, '')}{star}"

    def row(setting: dict) -> str:
        ahead = "" if setting["all_heads"] else difference(setting["ahead_of_all_heads"])
        return (
            f"| {method(setting)} | {difference(setting['free_gain'])} |"
            f" {points(setting['points_lost'])} | {ahead} | {difference(setting['fixed_gain'])} |"
        )

    return {setting["method"]: row(setting) for setting in record["settings"][1:]}


def chosen_table() -> list[str]:
    """These rows, after an introduction."""
    record = read("chosen_heads")
    none = record["settings"][0]
    rows = chosen_rows(record)
    return [
        (
            f"`python benchmarks/chosen_heads.py`: {record['conversations']} conversations per"
            " setting, paired with those of the model as it is (stability"
            f" {none['free']['mean']:.3f} over 8 rounds of free self-chat,"
            f" {none['fixed']['mean']:.3f} in round 8 behind fixed histories;"
            f" {none['capability']['mean']:.1f}% of {record['questions']} knowledge questions"
            f" right). {len(record['chosen']['drop'])} of {sum(map(len, record['drop']))} heads,"
            " chosen on other prompts and seeds. A star marks the Pareto front."
        ),
        "",
        (
            "| method | stability, free self-chats | points lost | against split-softmax on all"
            " heads at that cost | stability, fixed histories |"
        ),
        "| --- | --- | --- | --- | --- |",
        *rows.values(),
    ]


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
            "What to take, chosen on one half of the conversations and tested on the other:",
            "",
            *(f"- {line}" for line in record["answers"].values()),
            "",
        ]
    )


def equal_cost_rows(record: dict) -> list[str]:
    """A table per seed: each setting's gain, its cost, and its lead at that cost."""

    def row(setting: dict) -> str:
        cells = [
            f"`{setting['method']}`{'' if setting['published'] else ' (ours)'}",
            difference(setting["gain"]),
            *(points(setting[f"points_lost_turn_{turn}"]) for turn in turns),
            *(difference(setting[f"lead_turn_{turn}"]) for turn in turns),
        ]
        if beside:
            recalled = setting.get("recall_points_lost")
            cells += [
                difference(setting["fixed_histories_gain"]),
                points(recalled) if recalled else "",
            ]
        return f"| {' | '.join(cells)} |"

    lines = []
    turns = record["turns"]
    beside = "fixed_histories_gain" in record["seeds"][0]["settings"][0]
    head = [
        "setting",
        "stability",
        *(f"points lost, turn {turn}" for turn in turns),
        *(f"lead, turn {turn}" for turn in turns),
        *(("last round, fixed histories", "points of recall lost") if beside else ()),
    ]
    for seed in record["seeds"]:
        none, *settings = seed["settings"]
        best_first = sorted(settings, key=lambda setting: -setting["lead_turn_4"]["mean"])
        lines += [
            "",
            (
                f"Seed {seed['seed']}: without a fix, stability"
                f" {none['stability']['mean']:.3f}, and of the questions "
                + ", ".join(
                    f"{none[f'capability_turn_{turn}']['mean']:.1f}% right at turn {turn}"
                    for turn in turns
                )
                + "."
            ),
            "",
            f"| {' | '.join(head)} |",
            "| --- " * len(head) + "|",
            *map(row, best_first),
        ]
    return lines


def by_prompt_rows(record: dict) -> list[str]:
    """A table per seed: each setting's gain for each of the agent's prompts, or for each category
    of prompts if there are many.
    """
    lines = []
    for seed in record["seeds"]:
        what = "category" if "gain_by_category" in seed["settings"][0] else "prompt"
        names = list(seed["settings"][0][f"gain_by_{what}"])
        agents = seed.get("agents")

        def head(name: str, agents: dict[str, int] | None = agents) -> str:
            return name if agents is None else f"{name} (n = {agents[name]})"

        lines += [
            "",
            f"Seed {seed['seed']}, gain of stability by the agent's {what}:",
            "",
            f"| setting | {' | '.join(map(head, names))} |",
            "| --- " * (len(names) + 1) + "|",
            *(
                f"| `{row['method']}` | "
                + " | ".join(f"{row[f'gain_by_{what}'][name]:+.2f}" for name in names)
                + " |"
                for row in seed["settings"][1:]
            ),
        ]
    return lines


def equal_cost_head(record: dict) -> str:
    """One paragraph about what was measured."""
    prompts = ", ".join(record["prompts"])
    families = record.get("families")
    drawn = (
        f"prompts {prompts}"
        if families is None
        else f"the prompts of each are drawn from {len(record['prompts'])} in {families} families,"
        " and intervals are over families"
    )
    return (
        f"`python benchmarks/equal_cost.py {record['stage']}`: {record['conversations']}"
        f" conversations per setting and seed, paired, {record['questions']} knowledge questions at"
        f" turn {' and '.join(map(str, record['turns']))}; {drawn}. Leads have"
        f" {100 * record['level']:.4g}% intervals, everything else 95%."
    )


def stage_tables(name: str) -> str:
    """All tables of a stage, given the name of its record."""
    record = read(name)
    return "\n".join([equal_cost_head(record), *equal_cost_rows(record), *by_prompt_rows(record)])


def left_out_table() -> str:
    """The setting with the best lead at its cost, for each method that was removed."""
    settings = read("equal_cost_explored")["seeds"][0]["settings"][1:]
    rows = [["method", "what it did", "setting", "stability", "points lost", "lead"]]
    for name, words in LEFT_OUT.items():
        tried = [setting for setting in settings if setting["method"].partition(":")[0] == name]
        best = max(tried, key=lambda setting: setting["lead_turn_4"]["mean"])
        cells = [difference(best["gain"]), points(best["points_lost_turn_4"])]
        cells.append(difference(best["lead_turn_4"]))
        rows.append([f"`{name}`", words, f"`{best['method']}`", *cells])
    return "\n".join(
        [
            "## Methods that were removed",
            "",
            "The setting with the best lead over the best published fix at its cost:",
            "",
            *markdown(rows),
        ]
    )


def stage_page(name: str) -> str:
    """A page with all tables of a stage."""
    removed = f"\n{left_out_table()}\n" if name == "equal_cost_explored" else ""
    return (
        f"# Every fix at the same cost, `{read(name)['stage']}`\n\n{stage_tables(name)}\n{removed}"
    )
