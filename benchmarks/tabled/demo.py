"""The captions and tables of `make demo` and `make demo-real`, from the records of demo.py."""

from __future__ import annotations

from tabled.reading import difference, markdown, read

_MAX_QUOTED_CHARACTERS = 80  # characters of a reply in a caption
_WORDS_FOR_CHANGE = {"higher": "rises", "lower": "falls"}  # by verdict
_WORDS_FOR_GAIN = {"higher": "helps", "lower": "harms"}
_CANNOT_TELL = "cannot tell"


# make demo


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
        f" {difference(gains['over_all_rounds'], 2)} over all rounds and"
        f" {difference(gains['last_round'], 2)} in the last (95% intervals, for these prompts"
        f" only). `make demo` repeats this in {record['seconds'] / 60:.1f} minutes on two cores"
        " ([record](RESULTS/demo.json)).*"
    )


# make demo-real


def demo_real_caption() -> str:
    """The caption of the figure that `make demo-real` draws: the rules that fall, the fixes that
    help, and a dialog.
    """
    record = read("demo_real")
    rows = record["rules"]
    plain, *fixes = dict.fromkeys(row["method"] for row in rows)
    falls = [
        f"“{row['rule']}” falls from {row['by_round'][0]['mean']:.2f} to"
        f" {row['by_round'][-1]['mean']:.2f}"
        for row in rows
        if row["method"] == plain and row["change"]["verdict"] == "lower"
    ]
    lost = " and ".join(falls) or "no rule clearly falls"
    effects = "; ".join(_effect(rows, method) for method in fixes)
    return (
        "*Qwen2.5-Coder 0.5B as [the bot of an outdoor shop](ROOT/examples/outdoor-shop.yaml):"
        f" over {record['rounds']} rounds, {lost}.{_quoted_replies(record['quoted'])}"
        f" {effects[:1].upper()}{effects[1:]}"
        " ([all numbers and a dialog](DOCS/quickstart.md#a-real-model)).*"
    )


def _effect(rows: list[dict], method: str) -> str:
    """The rules that a fix clearly helps or harms: "`check-and-retry` clearly helps “short”"."""
    gains = [(row, row["against"]["over_all_rounds"]) for row in rows if row["method"] == method]
    effects = []
    for verdict, verb in _WORDS_FOR_GAIN.items():
        rules = [f"“{row['rule']}”" for row, gain in gains if gain["verdict"] == verdict]
        if rules:
            effects.append(f"clearly {verb} {' and '.join(rules)}")
    if not effects:
        return f"a run of this size cannot tell whether `{method}` helps"
    return f"`{method}` {' and '.join(effects)}"


def _quoted_replies(quoted: dict | None) -> str:
    """A sentence with the first and the last reply of a dialog without a fix; "" if there is no
    such dialog, or if a reply is long.
    """
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


def demo_real_table() -> str:
    """The scores of each rule of `make demo-real`, and how much each fix gains."""
    record = read("demo_real")
    by_rule: dict[str, dict[str, dict]] = {}  # then by method, no fix first
    for row in record["rules"]:
        by_rule.setdefault(row["rule"], {})[row["method"]] = row
    _, *fixes = dict.fromkeys(row["method"] for row in record["rules"])
    rows = [["rule", "without a fix", *(f"with `{method}`" for method in fixes)]]
    for rule, by_method in by_rule.items():
        plain, *fixed = by_method.values()
        rows.append([f"**{rule}**", _plain_cell(plain), *map(_fixed_cell, fixed)])
    note = (
        f"Scores from 0 to 1, round 1 → round {record['rounds']}; then the change over the rounds,"
        " or the gain over all rounds, with its 95% interval. `make demo-real` took"
        f" {record['seconds'] / 60:.0f} minutes on two cores ([record](RESULTS/demo_real.json),"
        " [page](RESULTS/demo_real/report.html))."
    )
    return "\n".join([*markdown(rows), "", note])


def _plain_cell(row: dict) -> str:
    """A rule's scores without a fix: "0.98 → 0.60, -0.38 [-0.52, -0.24], falls"."""
    first, last = row["by_round"][0]["mean"], row["by_round"][-1]["mean"]
    words = _WORDS_FOR_CHANGE.get(row["change"]["verdict"], _CANNOT_TELL)
    return f"{first:.2f} → {last:.2f}, {difference(row['change'], 2)}, {words}"


def _fixed_cell(row: dict) -> str:
    """A rule's last score with a fix, and its gain: "→ 0.90; +0.25 [+0.14, +0.36], helps"."""
    gain = row["against"]["over_all_rounds"]
    words = _WORDS_FOR_GAIN.get(gain["verdict"], _CANNOT_TELL)
    return f"→ {row['by_round'][-1]['mean']:.2f}; {difference(gain, 2)}, {words}"


def quoted_dialog() -> str:
    """A dialog of `make demo-real`, before and after; "" if the record quotes none."""
    quoted = read("demo_real")["quoted"]
    if quoted is None:
        return ""
    _, fix = quoted["replies"]
    plain_replies, fixed_replies = quoted["replies"].values()
    rows = [[f"“{quoted['questions'][0]}”", "without a fix", f"with `{fix}`"]]
    for number, *replies in zip(quoted["rounds"], plain_replies, fixed_replies, strict=True):
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
