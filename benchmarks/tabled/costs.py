"""The gains and costs of fixes on the default model, from the records of chosen_heads.py and
equal_cost.py.
"""

from __future__ import annotations

from tabled.reading import difference, markdown, points, read

REMOVED = {  # methods of 0.2 that were removed, by name
    "directer": "forwarded each token again with the keys of the span multiplied"
    " ([arXiv 2603.06745](https://arxiv.org/abs/2603.06745))",
    "ada-seka": "amplified keys along a mixture of directions that the last query chose"
    " ([arXiv 2603.01281](https://arxiv.org/abs/2603.01281))",
    "gcad": "added to the output of attention what a system prompt adds on average"
    " ([arXiv 2605.10664](https://arxiv.org/abs/2605.10664))",
    "gate": "drew a token again with fewer steered layers if it was implausible (ours)",
}


# Chosen heads


def chosen_page() -> str:
    """A page with all settings of the study of chosen heads, and its figures."""
    record = read("chosen_heads")
    heads = [f"- by {name}: {_heads(chosen, ', ')}" for name, chosen in record["chosen"].items()]
    return "\n".join(
        [
            "# Must stability cost capability?",
            "",
            *_chosen_table(record),
            "",
            "![stability against points lost](trade_off.png)",
            "",
            "![stability by round](by_round.png)",
            "",
            "Heads (layer.head): by the drop of their mass over self-chats, by the gain of the"
            " probe's score when split-softmax moves that head alone, and at random:",
            "",
            *heads,
            "",
            "What to take, chosen on one half of the conversations and tested on the other:",
            "",
            *(f"- {line}" for line in record["answers"].values()),
            "",
        ]
    )


def _heads(heads: list[list[int]], separator: str) -> str:
    """Heads in order: "0.3/1.7"."""
    return separator.join(f"{layer}.{head}" for layer, head in sorted(heads))


def _chosen_table(record: dict) -> list[str]:
    """A setting's gain in free self-chats and after fixed histories, and its cost."""
    none, *settings = record["settings"]
    names = {f",heads={_heads(heads, '/')}": name for name, heads in record["chosen"].items()}
    rows = [
        [
            "method",
            "stability, free self-chats",
            "points lost",
            "against split-softmax on all heads at that cost",
            "stability, fixed histories",
        ]
    ]
    for setting in settings:
        star = " *" if setting["front"] else ""
        ahead = "" if setting["all_heads"] else difference(setting["ahead_of_all_heads"])
        rows.append(
            [
                _named_heads(setting["method"], names) + star,
                difference(setting["free_gain"]),
                points(setting["points_lost"]),
                ahead,
                difference(setting["fixed_gain"]),
            ]
        )
    return [
        f"`python benchmarks/chosen_heads.py`: {record['conversations']} conversations per"
        " setting, paired with those of the model as it is (stability"
        f" {none['free']['mean']:.3f} over 8 rounds of free self-chat,"
        f" {none['fixed']['mean']:.3f} in round 8 behind fixed histories;"
        f" {none['capability']['mean']:.1f}% of {record['questions']} knowledge questions"
        f" right). {len(record['chosen']['drop'])} of {sum(map(len, record['drop']))} heads,"
        " chosen on other prompts and seeds. A star marks the Pareto front.",
        "",
        *markdown(rows),
    ]


def _named_heads(method: str, names: dict[str, str]) -> str:
    """A spec string whose list of heads is replaced by its name: "`boost:factor=4`, heads by drop".

    Args:
        names: the name of each list, by its part of a spec string.
    """
    for heads, name in names.items():
        if method.endswith(heads):
            return f"`{method.removesuffix(heads)}`, heads by {name}"
    return f"`{method}`"


# Equal cost


def stage_page(name: str) -> str:
    """A page with all tables of a stage, given the name of its record."""
    record = read(name)
    lines = [_stage_introduction(record)]
    for seed in record["seeds"]:
        lines += _seed_table(seed, record["turns"])
    for seed in record["seeds"]:
        lines += _gains_table(seed)
    tables = "\n".join(lines)
    removed = f"\n{removed_table()}\n" if name == "equal_cost_explored" else ""
    return f"# Every fix at the same cost, `{record['stage']}`\n\n{tables}\n{removed}"


def _stage_introduction(record: dict) -> str:
    """The conversations, questions and prompts of a stage."""
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


def _seed_table(seed: dict, turns: list[int]) -> list[str]:
    """Each setting's gain, its cost and its lead at that cost, on one seed.

    Args:
        turns: the user turns that are knowledge questions.
    """
    none, *settings = seed["settings"]
    has_readings = "fixed_histories_gain" in none
    header = ["setting", "stability", *(f"points lost, turn {turn}" for turn in turns)]
    header += [f"lead, turn {turn}" for turn in turns]
    if has_readings:
        header += ["last round, fixed histories", "points of recall lost"]
    rows = [header]
    for setting in sorted(settings, key=lambda setting: -setting["lead_turn_4"]["mean"]):
        cells = [f"`{setting['method']}`{'' if setting['published'] else ' (ours)'}"]
        cells.append(difference(setting["gain"]))
        cells += [points(setting[f"points_lost_turn_{turn}"]) for turn in turns]
        cells += [difference(setting[f"lead_turn_{turn}"]) for turn in turns]
        if has_readings:
            recall = setting.get("recall_points_lost")
            cells += [difference(setting["fixed_histories_gain"]), points(recall) if recall else ""]
        rows.append(cells)
    right = ", ".join(
        f"{none[f'capability_turn_{turn}']['mean']:.1f}% right at turn {turn}" for turn in turns
    )
    return [
        "",
        f"Seed {seed['seed']}: without a fix, stability {none['stability']['mean']:.3f}, and of the"
        f" questions {right}.",
        "",
        *markdown(rows),
    ]


def _gains_table(seed: dict) -> list[str]:
    """Each setting's gain for each of the agent's prompts, or for each category of prompts if there
    are many.
    """
    none, *settings = seed["settings"]
    kind = "category" if "gain_by_category" in none else "prompt"
    names = list(none[f"gain_by_{kind}"])
    agents = seed.get("agents")  # how many conversations each name has
    header = names if agents is None else [f"{name} (n = {agents[name]})" for name in names]
    rows = [["setting", *header]]
    for setting in settings:
        gains = setting[f"gain_by_{kind}"]
        rows.append([f"`{setting['method']}`", *(f"{gains[name]:+.2f}" for name in names)])
    title = f"Seed {seed['seed']}, gain of stability by the agent's {kind}:"
    return ["", title, "", *markdown(rows)]


def removed_table() -> str:
    """The setting with the best lead at its cost, for each method that was removed."""
    settings = read("equal_cost_explored")["seeds"][0]["settings"][1:]
    rows = [["method", "what it did", "setting", "stability", "points lost", "lead"]]
    for name, words in REMOVED.items():
        tried = [setting for setting in settings if setting["method"].partition(":")[0] == name]
        best = max(tried, key=lambda setting: setting["lead_turn_4"]["mean"])
        rows.append(
            [
                f"`{name}`",
                words,
                f"`{best['method']}`",
                difference(best["gain"]),
                points(best["points_lost_turn_4"]),
                difference(best["lead_turn_4"]),
            ]
        )
    return "\n".join(
        [
            "## Methods that were removed",
            "",
            "The setting with the best lead over the best published fix at its cost:",
            "",
            *markdown(rows),
        ]
    )
