"""Writes the tables of README.md, of docs/, of the model card and of the pages beside the records
from the records in benchmarks/results/, and the tables of methods from their classes, between their
markers.

    python benchmarks/tables.py

A test holds that the documents say what the records say.
"""

from __future__ import annotations

import json
import re
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from holdfast.methods.kinds import EVERY_MODEL
from holdfast.methods.knob import knobs_of, required_knobs
from holdfast.methods.registry import METHODS, summary

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAPERS = tuple(
    paper for paper in ("li2024", "zhang2024") if (RESULTS / paper / "findings.json").exists()
)
FIX = "split-softmax:exponent=0.5"


def read(name: str) -> dict:
    return json.loads((RESULTS / f"{name}.json").read_text())


def versions(record: dict) -> dict[str, str]:
    """Of the packages that a record was measured with."""
    return record["measured_on"]["versions"]


def interval(estimate: dict) -> str:
    return f"{estimate['mean']:+.3f} [{estimate['low']:+.3f}, {estimate['high']:+.3f}]"


def drift_table() -> str:
    """The default model's numbers, one column per seed."""
    record = read("default_model")
    seeds = record["seeds"]
    count = next(iter(seeds.values()))["none"]["conversations"]

    def row(name: str, cell) -> str:
        return "| " + " | ".join([name, *(cell(one) for one in seeds.values())]) + " |"

    def ends(series: str, kind: str):
        return lambda one: (
            f"{one[series][kind][0]['mean']:.3f} to {one[series][kind][-1]['mean']:.3f}"
        )

    together = record["all_seeds"]
    lines = [
        (
            f"`python benchmarks/default_model.py`: {count} conversations of 8 rounds between"
            " held-out prompts, temperature 1.0, top-p 0.9; paired by conversation, 95 % bootstrap"
            " intervals. Target: round-1 stability 0.93, and a drop whose interval excludes 0."
        ),
        "",
        "| round 1 to round 8 | " + " | ".join(f"seed {seed}" for seed in seeds) + " |",
        "| --- " * (len(seeds) + 1) + "|",
        row("stability", ends("none", "stability")),
        row("drop", lambda one: interval(one["none"]["stability_change"])),
        row("stability, user model unprompted", ends("control", "stability")),
        row(
            "drop, user model unprompted", lambda one: interval(one["control"]["stability_change"])
        ),
        row("adoption", ends("none", "adoption")),
        row("change of adoption", lambda one: interval(one["none"]["adoption_change"])),
        row("mass on the prompt", ends("none", "mass")),
        row(f"stability with `{FIX}`", ends(FIX, "stability")),
        row(
            "fix minus none, rounds 5 to 8",
            lambda one: interval(one["fix_minus_none_late_rounds"]["stability"]),
        ),
        row(
            "round 1, phrases seen / unseen in training",
            lambda one: (
                f"{one['none']['round_1_phrase_seen']['mean']:.3f} /"
                f" {one['none']['round_1_phrase_unseen']['mean']:.3f}"
            ),
        ),
        "",
        (
            f"Over all {count * len(seeds)} conversations stability changes by"
            f" {interval(together['stability'])} and adoption by {interval(together['adoption'])}."
        ),
    ]
    return "\n".join(lines)


def speed_table() -> str:
    """The drift loop against two ways of writing it, tokens forwarded, and what the batch size
    changes.
    """
    loop, batching = read("drift_loop"), read("batching")
    excess = max(row["forwarded_over_least"] for row in loop["repetitions"])
    played = (
        f"{loop['conversations']} conversations of {loop['rounds']} rounds with probes,"
        f" {loop['threads']} threads, ours in {loop['replicas']} replicas, median of"
        f" {len(loop['repetitions'])}"
    )

    def times(peer: str) -> str:
        medians = loop["medians"][peer]
        return (
            f"{medians['ratio_per_token']:.1f} times as fast per generated token "
            f"({medians['ratio']:.1f} per conversation)"
        )

    return "\n".join(
        [
            "| what | measured | command |",
            "| --- | --- | --- |",
            (
                "| the drift loop against all conversations of a round in one left-padded"
                f" `generate` batch, history encoded again: {played} | {times('lock_step')} |"
                " `python benchmarks/drift_loop.py` |"
            ),
            (
                "| the same against one conversation at a time through the `transformers` pipeline"
                f" | {times('pipeline')} | the same |"
            ),
            f"| tokens forwarded, over each token of each view once | {excess:.3f} | the same |",
            (
                "| conversations in which the batch size (48 or 5) changed a reply |"
                f" {batching['conversations_that_differ']} of {batching['conversations']}"
                f" ({batching['replies_compared']:,} replies compared) | `python"
                " benchmarks/batching.py` |"
            ),
        ]
    )


def serve_table() -> str:
    """The server under load: lost and mixed-up replies, memory, and speed beside its peer."""
    record = read("serve")
    exact, single = record["soak"]
    medians = record["speed"]["medians"]
    many = medians["16"]

    def milliseconds(figures: dict) -> str:
        return f"{figures['p50'] * 1e3:.0f} and {figures['p99'] * 1e3:.0f} ms"

    def times(peer: str) -> str:
        return ", ".join(
            f"{each[f'tokens_per_second_over_{peer}']:.1f}" for each in medians.values()
        )

    stayed = exact["requests"] - exact["left"]
    return "\n".join(
        [
            "| `holdfast serve`, default model | measured |",
            "| --- | --- |",
            (
                f"| {exact['requests']:,} requests with mixed steering from {exact['clients']}"
                f" clients, of whom {exact['left']} went away in mid-reply: answered of those who"
                f" stayed | {exact['answered']:,} of {stayed:,} |"
            ),
            (
                "| replies other than `generate_batch`'s with the same seed, float64; float32 |"
                f" {exact['other_than_twin']}; {single['other_than_twin']} |"
            ),
            (
                "| the server's memory after a fifth of them, and at the end, float32 |"
                f" {single['megabytes_after_a_fifth']:,} and"
                f" {single['megabytes_at_the_end']:,} MiB |"
            ),
            (
                "| tokens per second over `transformers serve`, at"
                f" {', '.join(medians)} clients | {times('transformers')} times |"
            ),
            (
                "| the same over its continuous batching |"
                f" {times('transformers_continuous')} times |"
            ),
            (
                f"| at 16 clients: requests per second; first piece of text, median and 99 %; from"
                f" piece to piece | {many['requests_per_second']:.1f};"
                f" {milliseconds(many['first_piece_seconds'])};"
                f" {milliseconds(many['piece_seconds'])} |"
            ),
        ]
    )


def scaling_table() -> str:
    """What many conversations take: tokens, and GPU hours between two bounds."""
    record = read("scaling")
    count, lengths = record["conversations"], record["tokens"]

    def millions(length: str, name: str) -> str:
        return f"{lengths[length][name] * count / 1e6:,.0f} M"

    def hours(row: dict, name: str) -> str:
        best, worst = row[name]["best"], row[name]["worst"]
        return f"{best:,.1f} to {worst:,.1f}"

    lines = [
        (
            f"{count:,} conversations of {record['rounds']} rounds, with a stability and an"
            f" adoption probe a round: {lengths['50']['replies']:.0f} replies each, on the suite"
            f" `{record['suite']}`."
        ),
        "",
        "| replies of | " + " | ".join(f"{length} tokens" for length in lengths) + " |",
        "| --- " * (len(lengths) + 1) + "|",
    ]
    for name, told in (
        ("generated", "tokens drawn"),
        ("read", "tokens of prompts, where nothing is reused"),
        ("least", "tokens forwarded in all, where every prefix is reused"),
    ):
        lines.append(f"| {told} | " + " | ".join(millions(each, name) for each in lengths) + " |")
    lines += ["", "| model, GPUs | replies of | GPU hours | without reuse of prefixes |"]
    lines.append("| --- | --- | --- | --- |")
    lines += [
        f"| {row['model']} on {row['gpus']} x {row['gpu']} | {row['reply_tokens']} tokens |"
        f" {hours(row, 'gpu_hours')} | {hours(row, 'gpu_hours_without_reuse')} |"
        for row in record["estimates"]
    ]
    return "\n".join(lines)


def excess_line() -> str:
    """What the engine forwards beside the least possible."""
    told = read("scaling")["forwarded_over_least"]
    return (
        f"The engine forwards {told['mean']:.3f} [{told['low']:.3f}, {told['high']:.3f}] times the"
        f" least possible, on {told['conversations']} conversations of the default model."
    )


def ray_table() -> str:
    """What replicas on Ray cost beside those without."""
    record = read("ray")
    medians = {
        name: statistics.median(row[name] for row in record["repetitions"])
        for name in record["repetitions"][0]
    }
    lines = [
        (
            f"`python benchmarks/on_ray.py`: {record['conversations']} conversations of"
            f" {record['rounds']} rounds, default model, one machine, medians of"
            f" {len(record['repetitions'])} in alternation, with the range of the ratio."
        ),
        "",
        "| | seconds | over the one above |",
        "| --- | --- | --- |",
    ]
    for name, seconds in medians.items():
        ratio = record["ratios"].get(name)
        told = "" if ratio is None else "{median:.2f} [{low:.2f}, {high:.2f}]".format(**ratio)
        lines.append(f"| {name} | {seconds:.1f} | {told} |")
    start = record["start"]
    actors = ", ".join(f"{each['seconds']:.0f} s for {each['actors']}" for each in start["actors"])
    lines += [
        "",
        f"Before that, once: {start['cluster_seconds']:.0f} s to start Ray, and for the actors"
        f" {actors}. Conversations in which any way gave another reply than any other:"
        f" {record['conversations_that_differ']}.",
    ]
    return "\n".join(lines)


def growth_table() -> str:
    """How time and memory grow, with the exponents."""
    lines = ["| varied | from | to | time per token | memory | per generated token |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for row in read("growth")["series"]:
        first, last = row["points"][0], row["points"][-1]

        def told(name: str, factor: float, unit: str, ends=(first, last), slopes=row["exponents"]):
            if name not in slopes:
                return ""
            least, most = (f"{point[name] * factor:,.2f}" for point in ends)
            return f"{least} to {most} {unit} (exponent {slopes[name]:.2f})"

        varied = row["varied"]
        lines.append(
            f"| {varied} ({row['held']}) | {first[varied]:,} | {last[varied]:,}"
            f" | {told('seconds_per_token', 1e3, 'ms')} | {told('bytes', 2**-20, 'MiB')}"
            f" | {told('decode_seconds_per_token', 1e3, 'ms')} |"
        )
    return "\n".join(lines)


def modern_table() -> str:
    """Our loop against lock-step `generate` on each kind of cache."""
    record = read("modern")
    rows = record["conversations"] * (1 + record["forks"])
    lines = [f"| {rows} rows, {record['rounds']} rounds | times as fast per generated token |"]
    lines.append("| --- | --- |")
    for row in record["rows"]:
        ratio, note = row["ratio"], "" if row["goes_on"] else " (encodes its history again)"
        lines.append(
            f"| `{row['type']}`{note} | {ratio['median']:.2f} [{ratio['low']:.2f},"
            f" {ratio['high']:.2f}] |"
        )
    return "\n".join(lines)


def lengths_table() -> str:
    """How long the default model's replies are, and which are the longest."""
    seeds = read("default_model")["seeds"]

    def row(name: str, cell) -> str:
        return "| " + " | ".join([name, *(cell(seed["lengths"]) for seed in seeds.values())]) + " |"

    longest = [
        f"- seed {seed}, conversation {reply['conversation']}, round {reply['round']},"
        f" {reply['tokens']} tokens: “{' '.join(reply['text'].split())[:160]}…”"
        for seed, told in seeds.items()
        for reply in told["lengths"]["longest"][:2]
    ]
    return "\n".join(
        [
            "| replies in free self-chat | " + " | ".join(f"seed {seed}" for seed in seeds) + " |",
            "| --- " * (len(seeds) + 1) + "|",
            row("replies", lambda told: f"{told['replies']:,}"),
            row("that ran on to the limit of 400 tokens", lambda told: str(told["reached"])),
            row("median length in tokens", lambda told: f"{told['median']:.0f}"),
            row("99.9th percentile", lambda told: f"{told['99.9th percentile']:.0f}"),
            "",
            "The longest:",
            "",
            *longest,
        ]
    )


def following_line() -> str:
    """How well held-out instructions are followed in round 1, from the output of
    training/evaluate.py.
    """
    rows = [
        line.split("  ", 1)
        for line in (ROOT / "training" / "evaluation.txt").read_text().splitlines()
    ]
    scores = {name: float(score) for score, name in rows}

    def score(name: str) -> str:
        return f"{next(value for key, value in scores.items() if key.startswith(name)):.3f}"

    families = [
        (value, name.split(" (")[0])
        for name, value in scores.items()
        if "(" in name and "phrase" not in name
    ]
    weak = ", ".join(name.replace("_", " ") for value, name in sorted(families) if value < 0.7)
    return (
        "By `python training/evaluate.py` (`training/evaluation.txt`), held-out instructions are"
        f" followed in round 1 with a mean score of {score('mean')}, {score('phrase seen')} where"
        f" the phrase was seen in training and {score('phrase unseen')} where it was not; the"
        f" families below 0.7 are {weak}. After three rounds of talk, open knowledge questions are"
        f" answered right {score('knowledge, open')} of the time, and questions with four choices"
        f" {score('knowledge, choices')} (chance: 0.25)."
    )


def attention_table() -> str:
    """What each kind of steering costs, as medians of ratios to plain SDPA."""
    record = read("attention")
    names = list(
        dict.fromkeys(
            name
            for row in record["rows"]
            for name in row.get("ratios", row)
            if name not in ("work", "bytes", "plain_seconds", "plain", "unsteered")
        )
    )

    def cell(row: dict, name: str) -> str:
        value = row["ratios"].get(name) if "ratios" in row else row.get(name, {}).get("median")
        return "" if value is None else f"{value:.2f}"

    return "\n".join(
        [
            (
                f"`python benchmarks/attention.py`: {record['shape']}, random weights, a span of"
                f" {record['span']} tokens, {record['threads']} threads, torch"
                f" {versions(record)['torch']}; medians of ratios to plain SDPA in the same"
                " repetition."
            ),
            "",
            "| " + " | ".join(["work", *names]) + " |",
            "| --- " * (len(names) + 1) + "|",
            *(
                "| " + " | ".join([row["work"], *(cell(row, name) for name in names)]) + " |"
                for row in record["rows"]
            ),
        ]
    )


def ablation_table() -> str:
    """The two models that differ in one ingredient alone."""
    record = read("ablation")
    models, difference = record["models"], record["second_minus_first"]
    count = next(iter(models.values()))["conversations"]

    def row(name: str, cell) -> str:
        return "| " + " | ".join([name, *(cell(one) for one in models.values())]) + " |"

    def ends(kind: str):
        return lambda one: f"{one[kind][0]['mean']:.3f} to {one[kind][-1]['mean']:.3f}"

    return "\n".join(
        [
            f"| `python benchmarks/ablation.py`, {count} conversations of 8 rounds, seed"
            f" {record['seed']} | " + " | ".join(name.replace("-", " ") for name in models) + " |",
            "| --- " * (len(models) + 1) + "|",
            row("stability, round 1 to round 8", ends("stability")),
            row("change", lambda one: interval(one["stability_change"])),
            row("adoption, round 1 to round 8", ends("adoption")),
            row("change", lambda one: interval(one["adoption_change"])),
            row("mass on the prompt", ends("mass")),
            "",
            (
                f"Second minus first, change of stability {interval(difference['stability'])},"
                f" change of adoption {interval(difference['adoption'])}."
            ),
        ]
    )


def reproduction_line(paper: str) -> str:
    """Where a paper's figures on the default model are, and how many of its claims this run bears
    out.
    """
    figures = findings(paper)
    opened = [
        f"[{figure['kind']} {figure['number']}{part}](RESULTS/{paper}/{image})"
        for figure in figures
        for part, image in named(figure)
    ]
    counts = Counter(claim["verdict"] for figure in figures for claim in figure["claims"])
    told = ", ".join(
        f"{counts[verdict]} {verdict}" for verdict in ("supported", "contradicted", "undecided")
    )
    return (
        f"`holdfast reproduce {paper}` on the default model, at the scale `small`:"
        f" {', '.join(opened)}. Claims of the paper: {told}; [each with its"
        f" numbers](RESULTS/{paper}/claims.md)."
    )


def claims_page(paper: str) -> str:
    """A paper's claims on the default model, each figure and table with them."""
    lines = [
        f"# The claims of {paper} on the default model",
        "",
        (
            "Written by `python benchmarks/tables.py` from the `findings.json` of `holdfast"
            f" reproduce {paper} --scale small`."
        ),
    ]
    for figure in findings(paper):
        lines += [
            "",
            f"## {figure['kind']} {figure['number']}: {figure['title']}",
            "",
            figure["how"],
            "",
        ]
        if figure["rows"]:
            lines += [*markdown(figure["rows"]), ""]
        lines += [f"![{figure['title']}{part}]({image})" for part, image in named(figure)]
        lines += ["", "| the paper's claim | this run |", "| --- | --- |"]
        lines += [
            f"| {claim['text']} | **{claim['verdict']}**: {claim['evidence']} |"
            for claim in figure["claims"]
        ]
    return "\n".join(lines) + "\n"


def findings(paper: str) -> list[dict]:
    return read(f"{paper}/findings")["figures"]


def named(figure: dict) -> list[tuple[str, str]]:
    """Each image of a figure, with what tells it from the others: its folder's name without the
    number.
    """
    several = len(figure["images"]) > 1
    return [
        (
            " " + Path(image).parent.name.partition("-")[2].replace("-", " ") if several else "",
            image,
        )
        for image in figure["images"]
    ]


def markdown(rows: list[list[str]]) -> list[str]:
    head, *body = ("| " + " | ".join(row) + " |" for row in rows)
    return [head, "| --- " * len(rows[0]) + "|", *body]


def methods_table() -> str:
    """Table 1 of Zhang et al. 2024 on the default model."""
    (rows,) = (
        figure["rows"]
        for figure in findings("zhang2024")
        if (figure["kind"], figure["number"]) == ("Table", "1")
    )
    return "\n".join(markdown(rows))


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


def profiling_table() -> str:
    """Head profiling against one head at a time."""
    record = read("profiling")
    return "\n".join(
        [
            (
                f"`python benchmarks/profiling.py`: {record['shape']}, random weights,"
                f" {record['samples']} samples ({record['questions']} where replies are written),"
                f" {record['threads']} threads, torch {versions(record)['torch']}; medians of"
                f" {len(next(iter(record['repetitions'].values())))} ratios, in alternation."
            ),
            "",
            "| samples | times as fast as one head at a time | target |",
            "| --- | --- | --- |",
            *(
                f"| {name} | {found['ratio']:.1f} | {record['targets'][name]} |"
                for name, found in record["medians"].items()
            ),
        ]
    )


def census_page() -> str:
    """Which classes of transformers are steered."""
    record = read("census")
    outcomes = {
        "exact": "steered exactly",
        "refused": "refused by name",
        "not built": "not built small, so not examined",
    }
    return "\n".join(
        [
            "# Which classes of transformers are steered",
            "",
            (
                "Written by `python benchmarks/tables.py` from the record of `python"
                f" benchmarks/census.py`, transformers {versions(record)['transformers']}, torch"
                f" {versions(record)['torch']}: of {len(record['rows'])} causal model types"
                f" {record['counts']['exact']} are steered exactly, {record['counts']['refused']}"
                f" refused by name, {record['counts']['not built']} could not be built small."
                f" {record['reaching']} reach transformers' attention interface; {record['exact']}"
                " of these are exact. Exact means: logits of a steered pass and of a steered"
                " decoding step equal those of the paper's formula on the attention matrix that"
                " the class's own eager function returns."
            ),
            "",
            "| type | class | outcome | because |",
            "| --- | --- | --- | --- |",
            *(
                f"| {row['type']} | {row.get('class', '')} | {outcomes[row['outcome']]} |"
                f" {row['because'].replace('|', '/')} |"
                for row in record["rows"]
            ),
            "",
        ]
    )


def census_line() -> str:
    """How many classes of transformers are steered."""
    counts = read("census")["counts"]
    return (
        f"Of the causal classes of transformers that can be built small, {counts['exact']} of"
        f" {counts['exact'] + counts['refused']} are steered, each compared with the paper's"
        " formula on its own attention matrix; the others are refused by name"
        " ([the list](RESULTS/census.md))."
    )


def filled(text: str, tables: dict[str, str]) -> str:
    """`text` with every table between its markers."""
    for name, table in tables.items():
        text = re.sub(
            rf"<!-- {name} -->.*?<!-- /{name} -->",
            lambda _, t=table, n=name: f"<!-- {n} -->\n{t}\n<!-- /{n} -->",
            text,
            flags=re.DOTALL,
        )
    return text


def catalogue_table() -> str:
    """Every method with its knobs, from what its class declares."""
    lines = ["| method | what it does | knobs | works on | source |", "| --- " * 5 + "|"]
    for method in METHODS:
        knobs = {name: told for name, told in knobs_of(method).items() if name != "heads"}
        told = "<br>".join(
            f"`{name}` {knob.values.words()}: {knob.description}" for name, knob in knobs.items()
        )
        lines.append(
            row_of(example(method), summary(method), told, works_on(method), linked(method.source))
        )
    return "\n".join(lines)


def short_catalogue() -> str:
    """Every method on one line."""
    lines = ["| method | what it does | works on | source |", "| --- " * 4 + "|"]
    for method in METHODS:
        does = summary(method).partition(":")[0].removesuffix(".")
        source = linked(method.source.split(";")[0])
        lines.append(row_of(f"`{method.name}`", f"{does}.", works_on(method), source))
    return "\n".join(lines)


def row_of(*cells: str) -> str:
    """A row of a table of methods, in whose cells an asterisk is an asterisk."""
    return "| " + " | ".join(cell.replace("*", r"\*") for cell in cells) + " |"


def example(method: type) -> str:
    """How a method is spelled, with the knobs that it needs."""
    required = [f"{name}={knobs_of(method)[name].example}" for name in required_knobs(method)]
    return f"`{':'.join([method.name, *filter(None, [','.join(required)])])}`"


def works_on(method: type) -> str:
    """Which models a method can be used on."""
    if method.needs <= EVERY_MODEL:
        return "any model or endpoint"
    return "local models" + (", once fitted" if "file" in knobs_of(method) else "")


def linked(source: str) -> str:
    """A source with its arXiv numbers as links."""
    return re.sub(r"arXiv (\d{4}\.\d{5})", r"[arXiv \1](https://arxiv.org/abs/\1)", source)


def ifeval_table() -> str:
    """Where our checkers of IFEval's instructions and the harness's differ."""
    record = read("ifeval")
    told = record["instructions"]
    count = record["replies"]
    same = [id for id, row in told.items() if set(row["agreed"].values()) == {count}]
    lines = [
        (
            f"`python benchmarks/ifeval.py`, lm-evaluation-harness {record['harness']}:"
            f" {record['from_model']} replies of the default model, {record['by_hand']} by hand and"
            f" {record['edited']} edits of these. On all {count:,} the two agree for {len(same)} of"
            f" the {len(told)} instructions, strictly and loosely; the others:"
        ),
        "",
        "| instruction | replies that the harness passes | agree, strict | agree, loose |",
        "| --- " * 4 + "|",
    ]
    for id, row in told.items():
        if id not in same:
            cells = [row["followed"], row["agreed"]["strict"], row["agreed"]["loose"]]
            lines.append(f"| `{id}` | " + " | ".join(f"{cell:,}" for cell in cells) + " |")
    lines += [
        "",
        (
            "langdetect, which the harness asks for a reply's language, names another one from seed"
            f" to seed for {record['unsure_languages']} of the {count:,}."
        ),
    ]
    return "\n".join(lines)


def checking_table() -> str:
    """How often `holdfast check` errs, and how long it takes."""
    record = read("checking")
    told, settings = record["wrong"], record["settings"]
    wrong = "; ".join(f"{name}: {100 * share:.1f} %" for name, share in told.items())
    lines = [
        f"`python benchmarks/checking.py`: simulated, {settings['rounds']} rounds whose scores are"
        " 0 or 1 and drawn each by itself, a bar of"
        f" {settings['bar']:g}, an error of {settings['error']:g}, at most"
        f" {settings['budget']} conversations. Wrong verdicts where they are likeliest, in"
        f" {settings['checks']:,} checks: {wrong}.",
        "",
        "| true mean in every round | alone: pass / fail / undecided | conversations |"
        " among 10 prompts | conversations |",
        "| --- " * 5 + "|",
    ]
    alone, among = ([row for row in record["rows"] if row["prompts"] == n] for n in (1, 10))
    for one, ten in zip(alone, among, strict=True):
        cells = [f"{one['mean']:g}"]
        for row in (one, ten):
            shares = " / ".join(f"{row[name]:.0%}" for name in ("pass", "fail", "undecided"))
            cells += [shares, f"{row['conversations']:.0f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def divergence_table() -> str:
    """How divergence moves beside stability and mass, and what foretells a lost probe."""
    record = read("divergence")
    seeds = record["seeds"]
    count = next(iter(seeds.values()))["conversations"]
    cost = record["cost"]
    ratios = [row["ratio"] for row in cost["repetitions"]]
    more = [100 * seed["tokens_for_divergence_over_others"] for seed in seeds.values()]
    columns = [*seeds.values(), record["all_seeds"]]
    names = {"mass": "low mass", "divergence": "high divergence", "both": "both together"}

    def row(name: str, cell) -> str:
        cells = (cell(each) for each in columns)
        return f"| {name} | " + " | ".join(cells) + " |"

    def by_round(kind: str, *rounds: int):
        return lambda each: (
            " / ".join(f"{each[kind][number - 1]['mean']:.3f}" for number in rounds)
            if kind in each
            else ""
        )

    def area(sign: str, where: str):
        def cell(each: dict) -> str:
            told = each["foretelling"]["areas"][sign][where]
            return f"{told['mean']:.3f} [{told['low']:.3f}, {told['high']:.3f}]"

        return cell

    def gain(sign: str, where: str):
        return lambda each: interval(each["foretelling"]["gains"][sign][where])

    def change(kind: str):
        return lambda each: interval(each[f"{kind}_change"]) if f"{kind}_change" in each else ""

    lines = [
        (
            f"`python benchmarks/divergence.py`: the default model on the starter suite, {count}"
            f" conversations of {record['rounds']} rounds per seed, no method; 95 % bootstrap"
            " intervals over conversations. A run takes"
            f" {cost['median_ratio']:.2f} times as long with divergences as without (median of"
            f" {len(ratios)}, from {min(ratios):.2f} to {max(ratios):.2f},"
            f" {cost['conversations']} conversations, {record['replicas']} replicas), and forwards"
            f" {max(more):.0f} % more tokens."
        ),
        "",
        "| | " + " | ".join(f"seed {seed}" for seed in seeds) + " | both seeds |",
        "| --- " * (len(columns) + 1) + "|",
        row("divergence in rounds 2 / 4 / 8, nats per token", by_round("divergence", 2, 4, 8)),
        row("its change from round 2 to 8", change("divergence")),
        row("stability in rounds 1 / 8", by_round("stability", 1, 8)),
        row("mass in rounds 1 / 8", by_round("mass", 1, 8)),
        row(
            "turns followed by a lost probe",
            lambda each: f"{each['foretelling']['lost']:,} of {each['foretelling']['turns']:,}",
        ),
    ]
    for where, title in (("over_all", "over all"), ("within_rounds", "within rounds")):
        lines += [row(f"area, {name}, {title}", area(sign, where)) for sign, name in names.items()]
        lines += [
            row(f"{names[sign]} − low mass, {title}", gain(sign, where))
            for sign in ("divergence", "both")
        ]
    return "\n".join(lines)


def demo_caption() -> str:
    """What the picture of `make demo` shows, and what it took."""
    record = read("demo")
    plain, fixed = (row["stability"] for row in record["methods"])
    return (
        f"*What `make demo` measures: {record['conversations']} conversations of"
        f" {record['rounds']} rounds on the default model. Without a fix, stability falls from"
        f" {plain[0]['mean']:.2f} to {plain[-1]['mean']:.2f}; with"
        f" `{record['methods'][1]['method']}`, from {fixed[0]['mean']:.2f} to"
        f" {fixed[-1]['mean']:.2f}. It took {record['processor_seconds'] / 60:.1f} minutes of"
        " processor time ([record](RESULTS/demo.json), by `python benchmarks/demo.py`).*"
    )


def headline() -> str:
    """Three numbers for a reader who reads no more."""
    drift, speed, chosen = read("default_model"), read("drift_loop"), read("chosen_heads")
    fell = drift["all_seeds"]["stability"]
    count = sum(seed["none"]["conversations"] for seed in drift["seeds"].values())
    (boost,) = (row for row in chosen["settings"] if row["method"] == "boost:factor=4")
    lost = boost["points_lost"]
    faster = speed["medians"]["lock_step"]["ratio_per_token"]
    return "\n".join(
        [
            (
                f"- **Drift is there**: over {count} conversations of eight rounds, the default"
                f" model's stability changes by **{interval(fell)}**"
                " ([all numbers](DOCS/default_model.md))."
            ),
            (
                f"- **A fix need not cost much**: `boost:factor=4` changes stability by"
                f" **{interval(boost['free_gain'])}**, at a cost of {lost['mean']:.1f}"
                f" [{lost['low']:+.1f}, {lost['high']:+.1f}] percentage points on"
                f" {chosen['questions']} knowledge questions"
                " ([every fix at equal cost](DOCS/choosing.md))."
            ),
            (
                f"- **It is fast**: the benchmark generates a token **{faster:.1f} times** as fast"
                " as the same conversations in one left-padded `generate` batch"
                " ([speed](DOCS/speed.md))."
            ),
        ]
    )


def seen_from(page: Path, tables: dict[str, str]) -> dict[str, str]:
    """Tables whose links to RESULTS/ and DOCS/ lead there from a page."""
    up = "../" * (len(page.relative_to(ROOT).parts) - 1)
    docs = "" if page.parent == ROOT / "docs" else f"{up}docs/"
    return {
        name: table.replace("(RESULTS/", f"({up}benchmarks/results/").replace("(DOCS/", f"({docs}")
        for name, table in tables.items()
    }


def documents() -> dict[Path, str]:
    """What each document should say."""
    tables = {
        "numbers": drift_table(),
        "lengths": lengths_table(),
        "following": following_line(),
        "speed": speed_table(),
        "attention": attention_table(),
        "ablation": ablation_table(),
        "profiling": profiling_table(),
        "chosen": chosen_summary(),
        "methods": catalogue_table(),
        "methods-short": short_catalogue(),
        "headline": headline(),
        "ifeval": ifeval_table(),
        "scaling": scaling_table(),
        "checking": checking_table(),
        "census": census_line(),
        "excess": excess_line(),
        **{paper: reproduction_line(paper) for paper in PAPERS},
    }
    for name, table in (
        ("modern", modern_table),
        ("serve", serve_table),
        ("ray", ray_table),
        ("growth", growth_table),
        ("demo", demo_caption),
        ("divergence", divergence_table),
    ):
        if (RESULTS / f"{name}.json").exists():
            tables[name] = table()
    if "zhang2024" in PAPERS:
        tables["pasta"] = methods_table()
    quoting = (
        ROOT / "README.md",
        *sorted((ROOT / "docs").glob("*.md")),
        ROOT / "src/holdfast/assets/model/MODEL_CARD.md",
    )
    return {
        **{path: filled(path.read_text(), seen_from(path, tables)) for path in quoting},
        RESULTS / "census.md": census_page(),
        RESULTS / "chosen_heads" / "settings.md": chosen_page(),
    } | {RESULTS / paper / "claims.md": claims_page(paper) for paper in PAPERS}


if __name__ == "__main__":
    for path, text in documents().items():
        path.write_text(text)
        print(path.relative_to(ROOT))
