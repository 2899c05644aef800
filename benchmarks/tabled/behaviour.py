"""Tables of models' behaviour: drift, the default model, other benchmarks, checks."""

from __future__ import annotations

from tabled.reading import FIX, ROOT, interval, markdown, read

# the rows shown on the pages; the records have more
CHECKED_MEANS = (1, 0.98, 0.95, 0.9, 0.85, 0.8, 0.5)
PROMPT_COUNTS = (5, 10, 20, 100)


def drift_table() -> str:
    """The default model's numbers, one column per seed."""
    record = read("default_model")
    seeds = record["seeds"]
    count = next(iter(seeds.values()))["none"]["conversations"]

    def row(name: str, cell) -> str:
        return "| " + " | ".join([name, *(cell(result) for result in seeds.values())]) + " |"

    def ends(series: str, kind: str):
        return lambda result: (
            f"{result[series][kind][0]['mean']:.3f} to {result[series][kind][-1]['mean']:.3f}"
        )

    together = record["all_seeds"]
    lines = [
        (
            f"`python benchmarks/default_model.py`: {count} conversations of 8 rounds between"
            " held-out prompts, temperature 1.0, top-p 0.9; paired by conversation, 95% bootstrap"
            " intervals. Target: round-1 stability 0.93, and a drop whose interval excludes 0."
        ),
        "",
        "| round 1 to round 8 | " + " | ".join(f"seed {seed}" for seed in seeds) + " |",
        "| --- " * (len(seeds) + 1) + "|",
        row("stability", ends("none", "stability")),
        row("drop", lambda result: interval(result["none"]["stability_change"])),
        row("stability, user model unprompted", ends("control", "stability")),
        row(
            "drop, user model unprompted",
            lambda result: interval(result["control"]["stability_change"]),
        ),
        row("adoption", ends("none", "adoption")),
        row("change of adoption", lambda result: interval(result["none"]["adoption_change"])),
        row("mass on the prompt", ends("none", "mass")),
        row(f"stability with `{FIX}`", ends(FIX, "stability")),
        row(
            "fix minus none, rounds 5 to 8",
            lambda result: interval(result["fix_minus_none_late_rounds"]["stability"]),
        ),
        row(
            "round 1, phrases seen / unseen in training",
            lambda result: (
                f"{result['none']['round_1_phrase_seen']['mean']:.3f} /"
                f" {result['none']['round_1_phrase_unseen']['mean']:.3f}"
            ),
        ),
        "",
        (
            f"Over all {count * len(seeds)} conversations stability changes by"
            f" {interval(together['stability'])} and adoption by {interval(together['adoption'])}."
        ),
    ]
    return "\n".join(lines)


def lengths_table() -> str:
    """How long the default model's replies are, and which are the longest."""
    seeds = read("default_model")["seeds"]

    def row(name: str, cell) -> str:
        return "| " + " | ".join([name, *(cell(seed["lengths"]) for seed in seeds.values())]) + " |"

    longest = [
        f"- seed {seed}, conversation {reply['conversation']}, round {reply['round']},"
        f" {reply['tokens']} tokens: “{' '.join(reply['text'].split())[:160]}…”"
        for seed, result in seeds.items()
        for reply in result["lengths"]["longest"][:2]
    ]
    return "\n".join(
        [
            "| replies in free self-chat | " + " | ".join(f"seed {seed}" for seed in seeds) + " |",
            "| --- " * (len(seeds) + 1) + "|",
            row("replies", lambda result: f"{result['replies']:,}"),
            row("that ran on to the limit of 400 tokens", lambda result: str(result["reached"])),
            row("median length in tokens", lambda result: f"{result['median']:.0f}"),
            row("99.9th percentile", lambda result: f"{result['99.9th percentile']:.0f}"),
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


def ablation_table() -> str:
    """The two models that differ in only one ingredient."""
    record = read("ablation")
    models = record["models"]
    difference = record["second_minus_first"]
    count = next(iter(models.values()))["conversations"]

    def row(name: str, cell) -> str:
        return "| " + " | ".join([name, *(cell(result) for result in models.values())]) + " |"

    def ends(kind: str):
        return lambda result: f"{result[kind][0]['mean']:.3f} to {result[kind][-1]['mean']:.3f}"

    return "\n".join(
        [
            f"| `python benchmarks/ablation.py`, {count} conversations of 8 rounds, seed"
            f" {record['seed']} | " + " | ".join(name.replace("-", " ") for name in models) + " |",
            "| --- " * (len(models) + 1) + "|",
            row("stability, round 1 to round 8", ends("stability")),
            row("change", lambda result: interval(result["stability_change"])),
            row("adoption, round 1 to round 8", ends("adoption")),
            row("change", lambda result: interval(result["adoption_change"])),
            row("mass on the prompt", ends("mass")),
            "",
            (
                f"Second minus first, change of stability {interval(difference['stability'])},"
                f" change of adoption {interval(difference['adoption'])}."
            ),
        ]
    )


def ifeval_table() -> str:
    """How our checkers of IFEval's instructions differ from the harness's."""
    record = read("ifeval")
    instructions = record["instructions"]
    count = record["replies"]
    same = [id for id, row in instructions.items() if set(row["agreed"].values()) == {count}]
    agreed = [row["agreed"]["strict"] for id, row in instructions.items() if id not in same]
    return (
        f"`python benchmarks/ifeval.py`, lm-evaluation-harness {record['harness']}:"
        f" {record['from_model']} replies of the default model, {record['by_hand']} by hand and"
        f" {record['edited']} edits of these. On all {count:,} the two agree for {len(same)} of"
        f" the {len(instructions)} instructions, strictly and loosely; for each of the others, on"
        f" {min(agreed)} to {max(agreed)} replies strictly. langdetect, which the harness uses to"
        " detect a reply's language, changes its answer with the seed on"
        f" {record['unsure_languages']} replies."
    )


def checking_table() -> str:
    """How often `holdfast check` errs, and how long it takes."""
    record = read("checking")
    errors = record["wrong"]
    settings = record["settings"]
    wrong = "; ".join(f"{name}: {100 * share:.1f}%" for name, share in errors.items())
    lines = [
        f"`python benchmarks/checking.py`: simulated, {settings['rounds']} rounds whose scores are"
        " independently 0 or 1, a look after every conversation (a check looks after a batch),"
        " a bar of"
        f" {settings['bar']:g}, an error of {settings['error']:g}, at most"
        f" {settings['budget']} conversations. Wrong verdicts in the worst cases, in"
        f" {settings['checks']:,} checks: {wrong}. Each row is of {settings['checks'] // 4:,} other"
        " checks.",
        "",
        "| true mean in every round | alone: pass / fail / undecided | conversations |"
        " among 10 prompts | conversations |",
        "| --- " * 5 + "|",
    ]
    alone, among = ([row for row in record["rows"] if row["prompts"] == n] for n in (1, 10))
    for single, several in zip(alone, among, strict=True):
        if single["mean"] not in CHECKED_MEANS:
            continue
        cells = [f"{single['mean']:g}"]
        for row in (single, several):
            shares = " / ".join(f"{row[name]:.0%}" for name in ("pass", "fail", "undecided"))
            cells += [shares, f"{row['conversations']:.0f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def coverage_table() -> str:
    """How often each interval covers the mean change of prompts that a run did not draw."""
    record = read("other_prompts")
    settings = record["settings"]
    rows = record["rows"]
    kinds = tuple(settings["concentrations"])
    names = ("over_conversations", "over_prompts")
    lines = [
        "`python benchmarks/other_prompts.py`: simulated, "
        f"{settings['conversations']} conversations"
        f" of prompts that are alike or unlike in how well they are followed, {settings['runs']:,}"
        " runs of each kind. Shares of runs whose 95% interval covers the mean change of all"
        " prompts: the lower of two shares, for no change and for a fall of 30 points.",
        "",
        "| prompts | "
        + " | ".join(f"conversations resampled, {kind}" for kind in kinds)
        + " | "
        + " | ".join(f"prompts resampled, {kind}" for kind in kinds)
        + " |",
        "| --- " * (1 + len(names) * len(kinds)) + "|",
    ]
    for prompts in PROMPT_COUNTS:
        cells = [str(prompts)]
        for name in names:
            for kind in kinds:
                coverages = [
                    row[name]
                    for row in rows
                    if row["prompts"] == prompts and row["prompts_are"] == kind
                ]
                cells.append(f"{100 * min(coverages):.0f}%")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def verdicts_table() -> str:
    """How often a verdict is wrong where there is no difference."""
    record = read("verdicts")
    settings = record["settings"]
    sizes = (20, 48, 200)
    rows = [row for row in record["one_look"] if row["n"] in sizes]
    lines = [
        f"`python benchmarks/verdicts.py`: simulated differences whose true mean is 0,"
        f" {settings['runs']:,} runs of each kind. Shares of runs called lower or higher, and in"
        " brackets those whose percentile bootstrap interval does not include 0"
        " ([more sizes](RESULTS/verdicts.json)).",
        "",
        "| differences | " + " | ".join(f"n = {size}" for size in sizes) + " |",
        "| --- " * (1 + len(sizes)) + "|",
    ]
    for name in dict.fromkeys(row["differences"] for row in rows):
        cells = [name]
        for row in rows:
            if row["differences"] == name:
                ours = row["lower"] + row["higher"]
                plain = row["bootstrap_lower"] + row["bootstrap_higher"]
                cells.append(f"{100 * ours:.1f}% ({100 * plain:.1f}%)")
        lines.append("| " + " | ".join(cells) + " |")
    followed = [
        f"{100 * (row['drifts'] + row['improves']):.1f}% ({row['differences']})"
        for row in record["followed"]
    ]
    lines += [
        "",
        f"Runs of {settings['first_look']} conversations that are extended as their next step says,"
        f" up to {settings['most']:,}, {settings['followed']} of each kind: ever called drifting or"
        f" improving {', '.join(followed)}.",
    ]
    return "\n".join(lines)


def two_digits(estimate: dict) -> str:
    return f"{estimate['mean']:+.2f} [{estimate['low']:+.2f}, {estimate['high']:+.2f}]"


def demo_caption() -> str:
    """The caption of the figure that `make demo` draws, with its cost."""
    record = read("demo")
    plain, fixed = (row["stability"] for row in record["methods"])
    gains = record["methods"][1]["against"]
    return (
        f"*{record['conversations']} conversations of {record['rounds']} rounds with the default"
        " model, which was trained to drift. In each round, a side question tests whether the model"
        " still follows its prompt; the mean score, from 0 to 1, is its stability. Without a fix it"
        f" falls from {plain[0]['mean']:.2f} to {plain[-1]['mean']:.2f}; with split-softmax, from"
        f" {fixed[0]['mean']:.2f} to {fixed[-1]['mean']:.2f}. The gain is"
        f" {two_digits(gains['over_all_rounds'])} over all rounds and"
        f" {two_digits(gains['last_round'])} in the last (95% intervals, for these prompts only)."
        f" `make demo` repeats this in {record['seconds'] / 60:.1f} minutes on two cores"
        " ([record](RESULTS/demo.json)).*"
    )


def demo_real_caption() -> str:
    """The caption of the figure that `make demo-real` draws: what falls, and what helps."""
    record = read("demo_real")
    rows = record["rules"]
    plain, *fixes = dict.fromkeys(row["method"] for row in rows)
    falls = [
        f"{_quoted(row)} falls from {row['by_round'][0]['mean']:.2f} to"
        f" {row['by_round'][-1]['mean']:.2f}"
        for row in rows
        if row["method"] == plain and row["change"]["verdict"] == "lower"
    ]
    lost = " and ".join(falls) or "no rule clearly falls"
    effects = "; ".join(
        f"`{method}` {effect}"
        if (effect := _effect(rows, method))
        else f"a run of this size cannot tell whether `{method}` helps"
        for method in fixes
    )
    return (
        "*Qwen2.5-Coder 0.5B as [the bot of an outdoor shop](ROOT/examples/outdoor-shop.yaml):"
        f" over {record['rounds']} rounds, {lost}.{_seen(record['quoted'])}"
        f" {_capitalised(effects)} ([all numbers and a dialog](DOCS/quickstart.md#a-real-model)).*"
    )


_MAX_QUOTED_CHARACTERS = 80  # characters of a reply in a caption


def _seen(quoted: dict | None) -> str:
    """The first and the last reply of a dialog without a fix, if they are short."""
    if quoted is None:
        return ""
    plain = next(iter(quoted["replies"].values()))
    first, last = (" ".join(reply.split()) for reply in (plain[0], plain[-1]))
    if max(len(first), len(last)) > _MAX_QUOTED_CHARACTERS:
        return ""
    stop = "" if last.endswith((".", "!", "?")) else "."
    return (
        f" In one dialog, which we picked, it first answers “{quoted['questions'][0]}” with"
        f" “{first}”, as the prompt demands, and in the last round with “{last}”{stop}"
    )


def _capitalised(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _effect(rows: list[dict], method: str) -> str:
    """The clear effects of a fix on some rules; "" if it has no clear effect."""
    gains = [(row, row["against"]["over_all_rounds"]) for row in rows if row["method"] == method]
    parts = []
    for verdict, verb in (("higher", "clearly helps"), ("lower", "clearly harms")):
        names = [_quoted(row) for row, gain in gains if gain["verdict"] == verdict]
        if names:
            parts.append(f"{verb} {' and '.join(names)}")
    return " and ".join(parts)


def _quoted(row: dict) -> str:
    return f"“{row['rule']}”"


def demo_real_table() -> str:
    """The scores of each rule of `make demo-real`, and what each fix changes."""
    record = read("demo_real")
    rows = {(row["rule"], row["method"]): row for row in record["rules"]}
    rules, methods = (list(dict.fromkeys(key[at] for key in rows)) for at in (0, 1))
    table = [["rule", "without a fix", *(f"with `{method}`" for method in methods[1:])]]
    for rule in rules:
        plain = rows[rule, methods[0]]
        ends = (plain["by_round"][at]["mean"] for at in (0, -1))
        cells = [f"**{rule}**", "{:.2f} → {:.2f}, ".format(*ends) + _change(plain["change"])]
        for method in methods[1:]:
            fixed = rows[rule, method]
            gain = fixed["against"]["over_all_rounds"]
            cells.append(
                f"→ {fixed['by_round'][-1]['mean']:.2f}; {two_digits(gain)}, {_gain(gain)}"
            )
        table.append(cells)
    note = (
        f"Scores from 0 to 1, round 1 → round {record['rounds']}; then the change over the rounds,"
        " or the gain over all rounds, with its 95% interval. `make demo-real` took"
        f" {record['seconds'] / 60:.0f} minutes on two cores ([record](RESULTS/demo_real.json),"
        " [page](RESULTS/demo_real/report.html))."
    )
    return "\n".join([*markdown(table), "", note])


def _change(change: dict) -> str:
    words = {"higher": "rises", "lower": "falls"}
    return f"{two_digits(change)}, {words.get(change['verdict'], 'cannot tell')}"


def _gain(gain: dict) -> str:
    words = {"higher": "helps", "lower": "harms"}
    return words.get(gain["verdict"], "cannot tell")


def quoted_dialog() -> str:
    """A dialog of `make demo-real`, before and after."""
    quoted = read("demo_real")["quoted"]
    if quoted is None:
        return ""
    plain, fixed = quoted["replies"].values()
    method = list(quoted["replies"])[1]
    rows = [[f"“{quoted['questions'][0]}”", "without a fix", f"with `{method}`"]]
    for number, *replies in zip(quoted["rounds"], plain, fixed, strict=True):
        cells = (" ".join(reply.split()).replace("|", "\\|") for reply in replies)
        rows.append([f"round {number}", *(f"“{cell}”" for cell in cells)])
    return "\n".join(
        [
            "The first of these conversations in which only the fix keeps the rule"
            f" {quoted['rule']!r} to the end (picked for that). The rule is about the form of the"
            " answer, so what is in the brackets does not matter:",
            "",
            *markdown(rows),
        ]
    )


# groups of files, the latest first, by the words for them; "{files}" is how many they are
_FIRST_SIGHT = {
    "drawn_later": "{files} drawn by their commits, after the errors in the next rows were mended",
    "drawn_after": "{files} drawn at random before, after the errors in the next row were mended",
    "drawn_before": "{files} drawn at random before",
    "with_blocks": "{files} before",
    "with_one_grammar": "{files} before, labelled without knowing the drafter",
}
_EARLIER = (
    "with_more_kinds",
    "with_never",
    "with_forms",
    "with_lists",
    "with_the_grammar",
    "before_the_grammar",  # an earlier version with fewer measures
)


def suite_init_table() -> str:
    """How many drafted rules were right at first sight, and how many lines were found."""
    groups = read("suite_init")["at_first_sight"]
    earlier = [groups[group] for group in _EARLIER]

    def shown(share: dict) -> str:
        return (
            f"{share['count']} of {share['of']}"
            f" ({share['share']:.2f} [{share['low']:.2f}, {share['high']:.2f}])"
        )

    def span(of: str) -> str:
        shares = [row[of]["share"] for row in earlier]
        return f"{min(shares):.2f} to {max(shares):.2f}"

    rows = [
        ["files", "drafted rules that are right", "decidable lines found"],
        *(
            [
                words.format(files=groups[group]["files"]),
                shown(groups[group]["precision"]),
                shown(groups[group]["recall"]),
            ]
            for group, words in _FIRST_SIGHT.items()
        ),
        [
            f"{len(earlier)} earlier groups, {sum(row['files'] for row in earlier)} files",
            span("precision"),
            span("recall"),
        ],
    ]
    return "\n".join(
        [
            *markdown(rows),
            "",
            "Files were labelled by hand before they were drafted; a line is decidable if a measure"
            " can decide it, and found if it became a right rule. The labels of the fourth row and"
            " the last leave out lines that a measure could decide. 95% intervals in brackets"
            " ([record](RESULTS/suite_init.json),"
            " [labels](ROOT/benchmarks/suite_init_labels.json)).",
        ]
    )
