"""Tables of a published chat model, from the records of on_smollm2.py, window.py and
decodable.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from tabled.reading import interval, markdown, points, read

from holdfast import methods
from holdfast.analysis.verdicts import MIN_SAMPLES

BEST = 3  # settings of the exploring half to show
FEW = 10  # minimum conversations for a category to be shown with an interval
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
    return " / ".join(f"{estimates[place]['mean']:.{digits}f}" for place in (0, 3, -1))


def without_collapsed(kept: dict | None) -> str:
    """The change over the dialogs that did not collapse, if they are enough for a verdict."""
    if not kept or kept["conversations"] < MIN_SAMPLES:
        return f"too few ({kept['conversations'] if kept else 0})"
    return f"{interval(kept['stability_change'])} (n = {kept['conversations']})"


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
    count, sides = record["runs"][0]["conversations"], {run["user"] for run in record["runs"]}
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
    rows = [["the user's side", "seen in", "within turns", "between turns", "even attention"]]
    lines = []
    for run in runs:
        decay = run["decay"]
        layer, head = decay["shown_head"]
        for name, changes in (
            ("the average over heads", decay["average"]),
            (f"head {layer}.{head}, whose mass falls most", decay["head"]),
        ):
            within, between = changes["within_turns"], changes["between_turns"]
            even = f"{within['uniform']['mean']:+.2f} and {between['uniform']['mean']:+.2f}"
            cells = [interval(within["real"]), interval(between["real"]), even]
            rows.append([SIDES[run["user"]], name, *cells])
        if run["user"] == "scripted":
            side = SIDES[run["user"]]
            lines += ["", by_turn(decay["curves"]["average"], side)]
            lines += ["", by_layer(decay["heads"], side)]
    head = (
        "The change of the logarithm of the mass over eight rounds, summed within the agent's turns"
        " and between them; even attention falls by the last column's two numbers."
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
    shown = [name for name in categories if categories[name]["conversations"] >= FEW]
    for category in shown:
        cells = []
        for run in runs:
            cell, count = run["categories"][category], run["categories"][category]["conversations"]
            change = f", {interval(cell['change'])}" if count >= FEW else ""
            cells.append(f"{fall(cell['stability'])}{change} ({count})")
        rows.append([category, *cells])
    head = (
        f"With scripted messages, by category, of those with at least {FEW} conversations"
        " ([all](RESULTS/smollm2_drift.json)):"
    )
    return [head, "", *markdown(rows)]


def logs_table() -> str:
    """How many turns of ordinary dialogs follow each kind of rule."""
    record = read("logs_smollm2")
    rows = [["kind of rule", "dialogs", "turns and rules", "kept"]]
    for category, row in record["categories"].items():
        kept = row["adherence"]
        cells = [str(row["dialogs"]), str(row["turns"])]
        alike = kept["low"] == kept["high"]
        within = "(all alike)" if alike else f"[{kept['low']:.2f}, {kept['high']:.2f}]"
        rows.append([category, *cells, f"{kept['mean']:.2f} {within}"])
    head = (
        f"`python benchmarks/logs_smollm2.py`: {record['dialogs']} dialogs of 8 turns, scored"
        " without `when:`; intervals are over dialogs."
    )
    return "\n".join([head, "", *markdown(rows)])


def truncation_table() -> str:
    """The findings with a server that truncates prompts, and without it."""
    rows = [["the server reads at most", "canary known in rounds 1 to 8", "found"]]
    runs = read("truncation_smollm2")["runs"]
    for run in runs:
        cut = run["truncation"]
        found = "nothing"
        if cut is not None:
            first = sorted(cut["from_round"].values())
            found = f"{cut['verdict']}, from round {first[0]} to {first[-1]} on, in {len(first)}"
        limit = "everything" if run["limit"] is None else f"{run['limit']} tokens"
        rows.append([limit, " / ".join(f"{share:.2f}" for share in run["canary_by_round"]), found])
    head = (
        "`python benchmarks/truncation.py`: 16 conversations with SmolLM2-135M-Instruct, through a"
        " server that cuts chats off, and without it."
    )
    return "\n".join([head, "", *markdown(rows)])


def explored_table() -> str:
    """The settings of the exploring half that gain most, and those that lose stability."""
    settings = read("smollm2_explored")["seeds"][0]["settings"][1:]
    best = sorted(settings, key=lambda row: -row["gain"]["mean"])[:BEST]
    losing = [row for row in settings if row["gain"]["mean"] < 0]
    shown = [row["method"] for row in (*best, *losing)]
    note = (
        f" Shown are the {BEST} of {len(settings)} settings that gain most, and all that lose"
        " stability ([every setting](RESULTS/smollm2_explored.md))."
    )
    head, _, rest = settings_table("smollm2_explored", shown).partition("\n")
    return f"{head}{note}\n{rest}"


def explored_page() -> str:
    """Every setting of the exploring half."""
    head = "# Every setting tried on SmolLM2, on the exploring half of the prompts"
    return f"{head}\n\n{settings_table('smollm2_explored')}\n"


def settings_table(name: str, shown: Sequence[str] | None = None) -> str:
    """The gain and cost of each setting of a stage, or of selected ones."""
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
        confirmed = "recall" in plain
        rows = [["setting", "stability, all rounds", "last round", "points of facts lost"]]
        rows[0].append("of known facts")
        rows[0] += ["points of recall lost", "log-probability of text"] if confirmed else []
        rows[0].append("broken replies")
        for row in seed["settings"][1:]:
            if shown is not None and row["method"] not in shown:
                continue
            cells = [f"`{methods.spell(methods.parse(row['method']))}`", interval(row["gain"])]
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
    gains = " and ".join(interval(row["gain"]) for row in rows)
    costs = " and ".join(points(row["points_lost"]).replace("+", "") for row in rows)
    name = methods.spell(methods.parse(rows[0]["method"]))
    known = " and ".join(points(row["known_points_lost"]).replace("+", "") for row in rows)
    clear = sum(row["gain_last_round"]["low"] > 0 for row in rows)
    heads = re.sub(r".*heads=(\d+)-(\d+)\.(\d+)-(\d+)", r"heads \3 to \4 of layers \1 to \2", name)
    return (
        f"**Start with split-softmax on the last third of the layers** (SmolLM2: `{name}`,"
        f" that is {heads}). On"
        " prompts that it was not chosen on, stability over eight rounds is higher by"
        f" {gains} (two seeds, 95% intervals over families of prompts); in the last round alone it"
        f" is clearly higher on {clear} of the two seeds. It costs {costs} points of accuracy on"
        f" {record['facts']:,} facts that the model completes, and {known} points on those of them"
        " that it also completes without a dialog."
    )


def front_door(way: str) -> str:
    """A command of the README and its output; for a measurement, without most tables."""
    told = read("front_door")[way]
    parts = "\n".join(told["printed"]).split("\n\n")
    if way == "measure":
        (rules,) = (part for part in parts if part.startswith("Rule by rule"))
        parts = [f"{parts[0]}\n[...]\n{rules}\n[...]"]
    printed = "\n\n".join(parts)
    return "\n".join(["```", told["command"], "```", "", "```text", printed, "```"])


def front_serve() -> str:
    """The README's server, with a request and its reply, and its playground."""
    record = read("front_door")
    told, seed = record["serve"], record["playground"]["seed"]
    address = "http://127.0.0.1:8000/v1/chat/completions"
    body = json.dumps(told["request"], ensure_ascii=False).replace("'", "\\u0027")
    request = f"curl {address} -H 'Content-Type: application/json' -d '{body}'"
    steering = json.dumps(told["holdfast"], ensure_ascii=False)
    content = json.dumps(told["reply"], ensure_ascii=False)
    printed = [f'[...] "content": {content} [...]', f'[...] "holdfast": {steering} [...]']
    then = "# then, in another terminal:"
    shell = ["```", told["command"], then, request, "```"]
    picture = (
        f"![The playground, at the first seed ({seed}) at which only the column with the fix still"
        " says that it is a pilot](RESULTS/front_door/playground.png)"
    )
    return "\n".join([*shell, "", "```text", *printed, "```", "", picture])


def window_table() -> str:
    """Mass and preference by round, for both models."""
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
                f"{100 * keeps['mean']:.0f}% [{100 * keeps['low']:.0f}, {100 * keeps['high']:.0f}]"
            )
            rows.append(cells)
        change = interval(model["change_of_keeps"])
        lines += ["", f"`{model['model']}`, whose last column changes by {change}:", ""]
        lines += markdown(rows)
    return "\n".join(lines)


def area(estimate: dict) -> str:
    return f"{estimate['mean']:.2f} [{estimate['low']:.2f}, {estimate['high']:.2f}]"


def decodable_summary() -> str:
    """The AUC of each predictor of lost probes on every model, and how much the best one adds."""
    record = read("decodable")
    models = record["models"]
    unseen = {name: row["unseen"]["family"]["predictors"] for name, row in models.items()}
    rows = [["predictor of a lost probe: AUC [95% interval]", *(f"`{name}`" for name in models)]]
    for predictor, words in PREDICTORS.items():
        cells = [area(scores[predictor]["auc"]) for scores in unseen.values()]
        rows.append([words, *cells])
    less = " and ".join(
        f"{interval(scores['outcome']['less']['score before'])} (`{name}`)"
        for name, scores in unseen.items()
    )
    return "\n".join(
        [
            f"`python benchmarks/decodable.py`: {record['conversations']} conversations of 8"
            f" rounds on each of {len(record['seeds'])} seeds. Fitted predictors are tested on"
            " other families of prompts, over which the intervals are"
            " ([all comparisons](RESULTS/decodable.md)).",
            "",
            *markdown(rows),
            "",
            f"The AUC of the residual stream's outcome, less that of the score before: {less}.",
        ]
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
