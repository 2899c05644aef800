"""How often verdicts, checks, intervals and checkers are wrong, from simulations and comparisons:
the records of verdicts.py, checking.py, other_prompts.py and ifeval.py.
"""

from __future__ import annotations

from tabled.reading import markdown, read

# the rows and columns that the pages show; the records have more
CHECKED_MEANS = (1, 0.98, 0.95, 0.9, 0.85, 0.8, 0.5)
PROMPT_COUNTS = (5, 10, 20, 100)
RUN_SIZES = (20, 48, 200)  # conversations


def verdicts_table() -> str:
    """How often a verdict is wrong where there is no difference."""
    record = read("verdicts")
    settings = record["settings"]
    cells_by_name: dict[str, list[str]] = {}
    for row in record["one_look"]:
        if row["n"] in RUN_SIZES:
            wrong = row["lower"] + row["higher"]
            wrong_by_bootstrap = row["bootstrap_lower"] + row["bootstrap_higher"]
            cell = f"{100 * wrong:.1f}% ({100 * wrong_by_bootstrap:.1f}%)"
            cells_by_name.setdefault(row["differences"], []).append(cell)
    rows = [
        ["differences", *(f"n = {size}" for size in RUN_SIZES)],
        *([name, *cells] for name, cells in cells_by_name.items()),
    ]
    extended = [
        f"{100 * (row['drifts'] + row['improves']):.1f}% ({row['differences']})"
        for row in record["followed"]
    ]
    return "\n".join(
        [
            f"`python benchmarks/verdicts.py`: simulated differences whose true mean is 0,"
            f" {settings['runs']:,} runs of each kind. Shares of runs called lower or higher, and"
            " in brackets those whose percentile bootstrap interval does not include 0"
            " ([more sizes](RESULTS/verdicts.json)).",
            "",
            *markdown(rows),
            "",
            f"Runs of {settings['first_look']} conversations that are extended as their next step"
            f" says, up to {settings['most']:,}, {settings['followed']} of each kind: ever called"
            f" drifting or improving {', '.join(extended)}.",
        ]
    )


def checking_table() -> str:
    """How often `holdfast check` errs, and how many conversations it takes."""
    record = read("checking")
    settings = record["settings"]
    wrong = "; ".join(f"{name}: {100 * share:.1f}%" for name, share in record["wrong"].items())
    rows = [
        [
            "true mean in every round",
            "alone: pass / fail / undecided",
            "conversations",
            "among 10 prompts",
            "conversations",
        ]
    ]
    alone, among_ten = ([row for row in record["rows"] if row["prompts"] == n] for n in (1, 10))
    for row_alone, row_among_ten in zip(alone, among_ten, strict=True):
        if row_alone["mean"] in CHECKED_MEANS:
            cells = [*_checking_cells(row_alone), *_checking_cells(row_among_ten)]
            rows.append([f"{row_alone['mean']:g}", *cells])
    return "\n".join(
        [
            f"`python benchmarks/checking.py`: simulated, {settings['rounds']} rounds whose scores"
            " are independently 0 or 1, a look after every conversation (a check looks after a"
            f" batch), a bar of {settings['bar']:g}, an error of {settings['error']:g}, at most"
            f" {settings['budget']} conversations. Wrong verdicts in the worst cases, in"
            f" {settings['checks']:,} checks: {wrong}. Each row is of {settings['checks'] // 4:,}"
            " other checks.",
            "",
            *markdown(rows),
        ]
    )


def _checking_cells(row: dict) -> list[str]:
    """The shares of each verdict, and the mean number of conversations."""
    shares = " / ".join(f"{row[verdict]:.0%}" for verdict in ("pass", "fail", "undecided"))
    return [shares, f"{row['conversations']:.0f}"]


def coverage_table() -> str:
    """How often each interval covers the mean change of prompts that a run did not draw."""
    record = read("other_prompts")
    settings = record["settings"]
    columns = [
        (interval, kind, f"{resampled} resampled, {kind}")
        for interval, resampled in (
            ("over_conversations", "conversations"),
            ("over_prompts", "prompts"),
        )
        for kind in settings["concentrations"]
    ]
    rows = [["prompts", *(header for _, _, header in columns)]]
    for count in PROMPT_COUNTS:
        cells = []
        for interval, kind, _ in columns:
            coverages = [
                row[interval]
                for row in record["rows"]
                if (row["prompts"], row["prompts_are"]) == (count, kind)
            ]
            cells.append(f"{100 * min(coverages):.0f}%")
        rows.append([str(count), *cells])
    return "\n".join(
        [
            f"`python benchmarks/other_prompts.py`: simulated, {settings['conversations']}"
            " conversations of prompts that are alike or unlike in how well they are followed,"
            f" {settings['runs']:,} runs of each kind. Shares of runs whose 95% interval covers the"
            " mean change of all prompts: the lower of two shares, for no change and for a fall of"
            " 30 points.",
            "",
            *markdown(rows),
        ]
    )


def ifeval_table() -> str:
    """How our checkers of IFEval's instructions differ from lm-evaluation-harness's."""
    record = read("ifeval")
    instructions = record["instructions"]
    count = record["replies"]
    agreeing = [row for row in instructions.values() if set(row["agreed"].values()) == {count}]
    agreed_elsewhere = [
        row["agreed"]["strict"] for row in instructions.values() if row not in agreeing
    ]
    return (
        f"`python benchmarks/ifeval.py`, lm-evaluation-harness {record['harness']}:"
        f" {record['from_model']} replies of the default model, {record['by_hand']} by hand and"
        f" {record['edited']} edits of these. On all {count:,} the two agree for {len(agreeing)} of"
        f" the {len(instructions)} instructions, strictly and loosely; for each of the others, on"
        f" {min(agreed_elsewhere)} to {max(agreed_elsewhere)} replies strictly. langdetect, which"
        " the harness uses to detect a reply's language, changes its answer with the seed on"
        f" {record['unsure_languages']} replies."
    )
