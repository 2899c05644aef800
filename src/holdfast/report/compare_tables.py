"""Runs side by side in tables, for a terminal and as Markdown."""

import textwrap
from collections.abc import Sequence

from holdfast.analysis.run_comparison import MethodComparison, RunComparison
from holdfast.analysis.run_contrasts import Contrast
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.verdicts import INCLUDES_ZERO, MIN_SAMPLES
from holdfast.errors import cut
from holdfast.records.comparison_summary import ComparedRow, RuleGrouping
from holdfast.records.mean_estimate import Judged
from holdfast.report.compare_sentences import compare_lines, compare_title, pair_name, side_name
from holdfast.report.wording import WIDTH, aligned, other_prompts, signed

SHOWN_ROWS = 30  # rules in the terminal and in Markdown; the page and the JSON have all
_MAX_VALUE_CHARACTERS = 40  # characters of a setting's value
_TITLES: dict[RuleGrouping, str] = {
    "all": "all rules",
    "kind": "kind of rule",
    "rule": "rule",
    "adoption": "the user’s rules (adoption)",
}


def contrast_rows(comparison: RunComparison) -> list[tuple[str, ...]]:
    """The contrasts of the runs, a row for each setting and a column for each run; heads first."""
    heads = ("", *comparison.labels)
    return [heads, *((item.name, *_apart(item)) for item in comparison.contrasts)]


def _apart(item: Contrast) -> list[str]:
    """The values cut to what shows where they differ."""
    values = [" ".join(value.split()) for value in item.values]
    if max(map(len, values)) <= _MAX_VALUE_CHARACTERS:
        return values
    same = 0
    while all(same < len(value) for value in values) and len({v[same] for v in values}) == 1:
        same += 1
    start = max(0, same - 12)
    return [("…" if start else "") + cut(value[start:], _MAX_VALUE_CHARACTERS) for value in values]


def _difference(value: Judged) -> str:
    """'-0.09 [-0.15, -0.02] lower', or '... cannot tell'."""
    if value.mean is None:
        return "–"
    return f"{signed(value)} {value.verdict}"


def row_name(row: ComparedRow) -> str:
    """The name of a row in a table."""
    return row.group or _TITLES[row.grouping]


def _cells(item: MethodComparison) -> list[tuple[str, ...]]:
    """The cells of each row: its name, the means of both runs, and the two differences."""
    return [
        (
            row_name(row),
            _mean(row.before),
            _mean(row.now),
            _difference(row.over_rounds),
            _difference(row.last_round),
        )
        for row in item.rows
    ]


def _mean(value: Estimate) -> str:
    return "–" if value.mean is None else f"{value.mean:.2f}"


def heads(item: MethodComparison) -> tuple[str, ...]:
    """The heads of the columns of a comparison."""
    return (
        "stability",
        side_name(item, item.before),
        side_name(item, item.now),
        f"difference over {_rounds_text(item.rounds)}",
        f"in round {item.rounds[-1]}" if item.rounds else "last round",
    )


def _rounds_text(rounds: Sequence[int]) -> str:
    """'rounds 1 to 8', '4 rounds from 1 to 10' or 'round 1'."""
    if not rounds:
        return "no round"
    if len(rounds) == 1:
        return f"round {rounds[0]}"
    whole = len(rounds) == rounds[-1] - rounds[0] + 1
    return f"{'rounds' if whole else f'{len(rounds)} rounds from'} {rounds[0]} to {rounds[-1]}"


def reasons(item: MethodComparison) -> list[str]:
    """Why verdicts are open although their intervals do not show it."""
    differences = [value for row in item.rows for value in (row.over_rounds, row.last_round)]
    few = any(0 < value.n < MIN_SAMPLES for value in differences)
    why_open = dict.fromkeys(value.why for value in differences if value.n >= MIN_SAMPLES)
    sentences = [why for why in why_open if why and why != INCLUDES_ZERO]
    return [*sentences, f"fewer than {MIN_SAMPLES} conversations"] if few else sentences


def compare_text(comparison: RunComparison) -> str:
    """All that `holdfast compare` prints."""
    blocks = [_wrapped([compare_title(comparison), *compare_lines(comparison)])]
    if comparison.contrasts:
        rows = contrast_rows(comparison)
        blocks.append(["What differs:", *aligned(rows, "  ")])
    if comparison.limits:
        blocks.append(["Keep in mind:", *_wrapped(comparison.limits, "  ")])
    for item in comparison.methods:
        cells = _cells(item)
        blocks.append([f"{pair_name(item)}:", *_stacked(heads(item), cells[:SHOWN_ROWS])])
        if len(cells) > SHOWN_ROWS:
            blocks[-1].append(f"  {len(cells) - SHOWN_ROWS} more rows are on the page.")
        if others := other_prompts(item.overall.over_rounds):
            blocks[-1].append(f"  For {others} over all rounds.")
        blocks[-1] += _wrapped([f"cannot tell: {why}" for why in reasons(item)[:3]], "  ")
    return "\n\n".join("\n".join(lines) for lines in blocks)


def _stacked(names: Sequence[str], cells: Sequence[Sequence[str]]) -> list[str]:
    """A table; if it is wider than a terminal, the differences stand below each row's means."""
    lines = aligned([names, *cells], "  ")
    if max(map(len, lines)) <= WIDTH:
        return lines
    means = [tuple(row[:3]) for row in (names, *cells)]
    differences = [("", *row[3:]) for row in (names, *cells)]
    first = aligned(means, "  ")
    second = aligned(differences, "    ")
    return [line for pair in zip(first, second, strict=True) for line in pair]


def _wrapped(lines: Sequence[str], left: str = "") -> list[str]:
    return [
        part
        for line in lines
        for part in textwrap.wrap(
            line, WIDTH, initial_indent=left, subsequent_indent=left + "  " * bool(left)
        )
    ]


def compare_markdown(comparison: RunComparison) -> str:
    """The same as Markdown, for the comment on a pull request."""
    lines = [f"### {_escaped(compare_title(comparison))}", ""]
    lines += [f"{_escaped(line)}\n" for line in compare_lines(comparison)]
    for item in comparison.methods:
        lines += [f"**{_escaped(pair_name(item))}**", ""]
        rows = _cells(item)
        lines += [*_markdown_table(heads(item), rows[:SHOWN_ROWS]), ""]
        if len(rows) > SHOWN_ROWS:
            lines += [f"{len(rows) - SHOWN_ROWS} more rows are on the page.", ""]
    if comparison.limits:
        lines += [*(f"- {_escaped(line)}" for line in comparison.limits), ""]
    if comparison.contrasts:
        head, *rows = contrast_rows(comparison)
        lines += ["What differs:", "", *_markdown_table(head, rows), ""]
    lines.append(
        "Brackets: 95% intervals. “Cannot tell” means that the data do not decide, and not that"
        " there is no difference."
    )
    return "\n".join(lines)


def _markdown_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(map(_escaped, names))} |",
        f"|{' --- |' * len(names)}",
        *(f"| {' | '.join(map(_escaped, row))} |" for row in rows),
    ]


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is: it comes from suites and prompts of others."""
    text = " ".join(text.split())
    for mark in "\\`*_<>|[]#@":
        text = text.replace(mark, f"&#{ord(mark)};" if mark in "<>@#|" else f"\\{mark}")
    return text
