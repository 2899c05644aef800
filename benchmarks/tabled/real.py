"""Tables of a published chat model, from the records of on_smollm2.py, window.py and
decodable.py.
"""

from __future__ import annotations

import json
import re

from tabled.reading import interval, markdown, points, read

from holdfast import methods
from holdfast.analysis.verdicts import MIN_SAMPLES

MIN_CONVERSATIONS_SHOWN = 10  # minimum conversations for a category to be shown with an interval
SIDES = {
    "scripted": "scripted messages",
    "suite": "a user model under another prompt",
    "persona": "a user model with a persona",
    "empty": "a user model without a prompt",
}

PREDICTORS = {  # by predictor in the record
    "mass": "mass on the prompt where the reply begins",
    "mass of the turn before": "mass on the prompt in the agent's last turn",
    "mass of every head": "mass of every head there (fitted)",
    "outcome": "residual stream there, outcome (fitted)",
    "prompt": "residual stream there, prompt in force (fitted)",
    "round": "the round alone",
    "category and round": "the category's rate, and the round (fitted)",
    "score before": "the score of the probe a round before",
}


def fall(estimates: list[dict], digits: int = 2) -> str:
    """The first, a middle and the last of the estimates per round."""
    return " / ".join(f"{estimates[index]['mean']:.{digits}f}" for index in (0, 3, -1))


def without_collapsed(kept: dict | None) -> str:
    """The change over the dialogs that did not collapse, if they are enough for a verdict."""
    if not kept or kept["conversations"] < MIN_SAMPLES:
        return f"too few ({kept['conversations'] if kept else 0})"
    return f"{interval(kept['stability_change'])} (n = {kept['conversations']})"


def drift_summary() -> str:
    """The drift of both seeds, with scripted messages and with a user model."""
    record = read("smollm2_drift")
    rows = [["the user's side", "seed", "stability in rounds 1 / 4 / 8", "change"]]
    for run in record["runs"]:
        if run["user"] in ("scripted", "suite"):
            change = interval(run["stability_change"])
            rows.append([SIDES[run["user"]], str(run["seed"]), fall(run["stability"]), change])
    return "\n".join(
        [
            *markdown(rows),
            "",
            f"{record['runs'][0]['conversations']} conversations of {record['rounds']} rounds per"
            f" row, of {len(record['prompts'])} prompts; 95% intervals are over families of prompts"
            " ([other users, categories and attention mass](RESULTS/smollm2_drift.md)).",
        ]
    )


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
        rows.append(
            [
                SIDES[run["user"]],
                str(run["seed"]),
                fall(run["stability"]),
                interval(run["stability_change"]),
                without_collapsed(run["without_collapsed"]),
                fall(run["mass"], 3) if run["mass"] else "",
                f"{100 * run['cut']:.0f}%",
            ]
        )
    count = record["runs"][0]["conversations"]
    sides = {run["user"] for run in record["runs"]}
    only = f" --side {record['runs'][0]['user']}" if len(sides) == 1 else ""
    adopted = [
        f"{interval(run['adoption_change'])} (seed {run['seed']})"
        for run in record["runs"]
        if "adoption_change" in run
    ]
    lines = [
        (
            f"`python benchmarks/on_smollm2.py drift{only}`: {count} conversations of"
            f" {record['rounds']} rounds per row, of {len(record['prompts'])} prompts;"
            " intervals are over families of prompts."
        ),
        "",
        *markdown(rows),
    ]
    if adopted:
        lines += ["", f"Adoption of the other's prompt changes by {' and '.join(adopted)}."]
    return "\n".join([*lines, "", *by_category(record)])


def real_decay_table() -> str:
    """Whether the mass on the prompt falls within the agent's turns or between them."""
    runs = [run for run in read("smollm2_drift")["runs"] if "decay" in run]
    rows = [["the user's side", "seen in", "within turns", "between turns", "uniform attention"]]
    lines = []
    for run in runs:
        decay = run["decay"]
        layer, head = decay["shown_head"]
        for name, changes in (
            ("the average over heads", decay["average"]),
            (f"head {layer}.{head}, chosen on the same dialogs", decay["head"]),
        ):
            within = changes["within_turns"]
            between = changes["between_turns"]
            even = f"{within['uniform']['mean']:+.2f} and {between['uniform']['mean']:+.2f}"
            cells = [interval(within["real"]), interval(between["real"]), even]
            rows.append([SIDES[run["user"]], name, *cells])
        if run["user"] == "scripted":
            side = SIDES[run["user"]]
            lines += ["", by_turn(decay["curves"]["average"], side)]
            lines += ["", by_layer(decay["heads"], side)]
    head = (
        "The change of the logarithm of the mass over eight rounds, summed within the agent's turns"
        " and between them; uniform attention falls by the last column's two numbers."
    )
    return "\n".join([head, "", *markdown(rows), *lines])


def by_turn(curves: list[list[float]], side: str) -> str:
    """The mean mass at the second and at the last token of a turn; the first is the template's."""
    parts = [
        f"{curves[number - 1][1]:.3f} to {curves[number - 1][-1]:.3f} in round {number}"
        for number in (1, 2, 4, len(curves))
    ]
    return f"From a reply's second token to its last one, with {side}: {', '.join(parts)}."


def by_layer(heads: dict, side: str) -> str:
    """The mean mass of the layers' heads, in thirds of the layers."""
    first, drop = ([sum(layer) / len(layer) for layer in heads[name]] for name in heads)
    third = len(first) // 3
    parts = []
    for start in range(0, len(first), third):
        part = slice(start, start + third)
        then = sum(first[part]) / third
        now = then - sum(drop[part]) / third
        parts.append(f"{then:.3f} to {now:.3f} in layers {start} to {start + third - 1}")
    return f"From round 1 to round 8 with {side}, the mass goes from {', '.join(parts)}."


def by_category(record: dict) -> list[str]:
    """With scripted messages: the change of each category, and how many conversations it has."""
    runs = [run for run in record["runs"] if run["user"] == "scripted"]
    head = [f"seed {run['seed']}: rounds 1 / 4 / 8, change (n)" for run in runs]
    rows = [["category", *head]]
    categories = runs[0]["categories"]
    shown = [
        name for name in categories if categories[name]["conversations"] >= MIN_CONVERSATIONS_SHOWN
    ]
    for category in shown:
        cells = []
        for run in runs:
            cell = run["categories"][category]
            count = run["categories"][category]["conversations"]
            change = f", {interval(cell['change'])}" if count >= MIN_CONVERSATIONS_SHOWN else ""
            cells.append(f"{fall(cell['stability'])}{change} ({count})")
        rows.append([category, *cells])
    head = (
        "With scripted messages, by category, of those with at least"
        f" {MIN_CONVERSATIONS_SHOWN} conversations"
        " ([all](RESULTS/smollm2_drift.json)):"
    )
    return [head, "", *markdown(rows)]


def truncation_table() -> str:
    """The findings with a server that truncates prompts, and without it."""
    rows = [["the server reads at most", "canary known in rounds 1 to 8", "found"]]
    runs = read("truncation_smollm2")["runs"]
    for run in runs:
        cut = run["truncation"]
        finding = "nothing"
        if cut is not None:
            first = sorted(cut["from_round"].values())
            finding = f"{cut['verdict']}, from round {first[0]} to {first[-1]} on, in {len(first)}"
        limit = "everything" if run["limit"] is None else f"{run['limit']} tokens"
        rows.append(
            [limit, " / ".join(f"{share:.2f}" for share in run["canary_by_round"]), finding]
        )
    head = (
        "`python benchmarks/truncation.py`: 16 conversations with SmolLM2-135M-Instruct, through a"
        " server that cuts chats off, and without it."
    )
    return "\n".join([head, "", *markdown(rows)])


def explored_page() -> str:
    """Every setting of the exploring half."""
    head = "# Every setting tried on SmolLM2, on the exploring half of the prompts"
    return f"{head}\n\n{settings_table('smollm2_explored')}\n"


def confirmed_page() -> str:
    """Every setting of the confirming half."""
    head = "# The settings named in advance on SmolLM2, on the confirming half of the prompts"
    return f"{head}\n\n{settings_table('smollm2_confirmed')}\n"


def drift_page() -> str:
    """Everything on the drift of SmolLM2, and where its attention mass is lost."""
    parts = (
        "# Drift of SmolLM2",
        real_drift_table().replace("(RESULTS/", "("),
        "## Attention mass",
        real_decay_table(),
    )
    return "\n\n".join(parts) + "\n"


def settings_table(name: str) -> str:
    """The gain and cost of each setting of a stage."""
    record = read(name)
    lines = [
        (
            f"`python benchmarks/on_smollm2.py {record['stage']}`: {record['conversations']}"
            f" conversations per setting and seed with scripted messages, paired,"
            f" {record['facts']} facts; {len(record['prompts'])} prompts in"
            f" {record['families']} families; intervals are over families."
        )
    ]
    for seed in record["seeds"]:
        plain = seed["settings"][0]
        confirmed = "recall" in plain
        rows = [["setting", "stability, all rounds", "last round", "points of facts lost"]]
        rows[0].append("of known facts")
        rows[0] += ["points of recall lost", "log-probability of text"] if confirmed else []
        rows[0].append("broken replies")
        for row in seed["settings"][1:]:
            cells = [f"`{methods.spec_of(methods.parse(row['method']))}`", interval(row["gain"])]
            cells += [interval(row["gain_last_round"]), points(row["points_lost"])]
            cells.append(points(row["known_points_lost"]))
            if confirmed:
                nats = "log_probability_of_text"
                cells.append(points(row["recall_points_lost"]))
                cells.append(f"{row[nats]['mean'] - plain[nats]['mean']:+.3f}")
            rows.append([*cells, f"{100 * row['broken']['mean']:.0f}%"])
        recalled = f" {100 * plain['recall']['mean']:.1f}% recalled," if confirmed else ""
        lines += [
            "",
            (
                f"Seed {seed['seed']}: without a fix, stability {plain['stability']['mean']:.3f},"
                f" {100 * plain['facts']['mean']:.1f}% of the facts right,{recalled}"
                f" {100 * plain['broken']['mean']:.0f}% of replies broken."
            ),
            "",
            *markdown(rows),
        ]
    return "\n".join(lines)


def start_line() -> str:
    """The setting to start with: its gain and its cost on both seeds."""
    record = read("smollm2_confirmed")
    rows = [seed["settings"][1] for seed in record["seeds"]]

    name = methods.spec_of(methods.parse(rows[0]["method"]))
    heads = re.sub(r".*heads=(\d+)-(\d+)\.(\d+)-(\d+)", r"heads \3 to \4 of layers \1 to \2", name)
    guided = [
        next(row for row in seed["settings"] if row["method"].startswith("guidance"))
        for seed in record["seeds"]
    ]
    guided_gains = [interval(row["gain"]) for row in guided]
    guided_costs = [points(row["known_points_lost"]).replace("+", "") for row in guided]
    table = [["", *(f"seed {seed['seed']}" for seed in record["seeds"])]]
    table.append(["stability gained over eight rounds", *(interval(row["gain"]) for row in rows)])
    table.append(["in the last round alone", *(interval(row["gain_last_round"]) for row in rows)])
    for key, what in (
        ("points_lost", f"points lost on {record['facts']:,} facts, asked in mid-dialog"),
        ("known_points_lost", "points lost on facts that it answers correctly without a dialog"),
    ):
        table.append([what, *(points(row[key]).replace("+", "") for row in rows)])
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


def front_door(way: str) -> str:
    """A command of the README and its output; for a measurement, without most tables."""
    shown = read("front_door")[way]
    command = shown["command"]
    if way == "measure" and "--temperature" not in command:  # 1 was the default when it was made
        command = command.replace("--max-new-tokens", "--temperature 1 --max-new-tokens")
    parts = "\n".join(shown["printed"]).split("\n\n")
    if way == "measure":
        (rules,) = (part for part in parts if part.startswith("Rule by rule"))
        assert "round 8" in rules, "the table is no longer behind its title"
        parts = [f"{parts[0]}\n[...]\n{rules}\n[...]"]
    printed = "\n\n".join(parts)
    return "\n".join(["```", command, "```", "```text", printed, "```"])


def front_serve() -> str:
    """The README's server, with a request and its reply, and its playground."""
    record = read("front_door")
    served = record["serve"]
    kept = record["playground"]["kept"]
    address = "http://127.0.0.1:8000/v1/chat/completions"
    body = json.dumps(served["request"], ensure_ascii=False).replace("'", "\\u0027")
    request = f"curl {address} -H 'Content-Type: application/json' -d '{body}'"
    steering = json.dumps(served["holdfast"], ensure_ascii=False)
    steered, unsteered = (
        f'[...] "content": {json.dumps(served[reply], ensure_ascii=False)} [...]'
        for reply in ("reply", "reply_unsteered")
    )
    request_fields = json.dumps(served["unsteered"]).strip("{}")
    printed = [
        steered,
        f'[...] "holdfast": {steering} [...]',
        f"# with {request_fields}: {unsteered}",
    ]
    then = "# then, in another terminal:"
    shell = ["```", served["command"], then, request, "```"]
    picture = "![The playground, with two columns](RESULTS/front_door/playground.png)"
    other = kept.count([True, False]) or "none"
    caption = (
        "*The playground, at http://127.0.0.1:8000: one conversation without a fix (A) and with it"
        " (B). We picked the question above, and this conversation: we stopped at seed"
        f" {len(kept)}, the first at which only B still names the dish; at {other} of those"
        " before, only A does.*"
    )
    return "\n".join([*shell, "```text", *printed, "```", "", picture, "", caption])


def area(estimate: dict) -> str:
    return f"{estimate['mean']:.2f} [{estimate['low']:.2f}, {estimate['high']:.2f}]"


def decodable_summary() -> str:
    """How much better than the score before the residual stream predicts a lost probe."""
    record = read("decodable")
    models = record["models"]
    unseen = {name: row["unseen"]["family"]["predictors"] for name, row in models.items()}
    less = " and ".join(
        f"{interval(scores['outcome']['less']['score before'])} (`{name}`)"
        for name, scores in unseen.items()
    )
    return (
        "The AUC of the residual stream, fitted to predict the outcome, minus that of the score"
        f" before: {less} ({record['conversations']} conversations of 8 rounds on each of"
        f" {len(record['seeds'])} seeds; [every predictor](RESULTS/decodable.md))."
    )


def decodable_page() -> str:
    """Every comparison of the predictors."""
    return f"# Can a lost probe be predicted?\n\n{decodable_table()}\n"


def decodable_table() -> str:
    """Predictors of lost probes, one table per model."""
    record = read("decodable")
    lines = [
        (
            f"`python benchmarks/decodable.py`: {record['conversations']} conversations of 8 rounds"
            f" on each of {len(record['seeds'])} seeds, the probes from round 2 on; 95% bootstrap"
            " intervals over families of prompts. What is fitted is tested on other families. *Same"
            " kind*: over pairs of a kept and a lost probe of one category and round."
        )
    ]
    for name, row in record["models"].items():
        unseen = row["unseen"]
        scores = unseen["family"]["predictors"]
        rows = [["predictor of a lost probe", "AUC", "less that of mass", "AUC, same kind"]]
        for predictor, words in PREDICTORS.items():
            cell = scores[predictor]
            less = interval(cell["less"]["mass"]) if predictor != "mass" else ""
            rows.append([words, area(cell["auc"]), less, area(cell["auc_same_category_and_round"])])
        less = scores["outcome"]["less"]
        areas = {unit: area(unseen[unit]["predictors"]["outcome"]["auc"]) for unit in unseen}
        shares = {}
        for unit, split in unseen.items():
            decoded = split["decoded"]
            means = (decoded["kept"]["mean"], decoded["lost"]["mean"], decoded["chance"])
            shares[unit] = [round(100 * mean) for mean in means]
        lines += [
            "",
            (
                f"`{name}`: {row['lost']} of {row['probes']} probes lost,"
                f" {row['units']['family']} families in {row['units']['category']} categories."
            ),
            "",
            *markdown(rows),
            "",
            (
                "The AUC of the residual stream's outcome, less that of the category's rate and"
                f" the round: {interval(less['category and round'])}; less that of the score"
                f" before: {interval(less['score before'])}. Fitted on other conversations of the"
                f" same prompts, it is {areas['conversation']}; on other categories,"
                f" {areas['category']}."
            ),
            "",
            (
                "The prompt in force is the nearest one in {}% of the kept probes and {}% of the"
                " lost ones (by chance: {}%); fitted on other categories, in {}% and {}%"
                " (by chance: {}%).".format(*shares["family"], *shares["category"])
            ),
        ]
    return "\n".join(lines)
