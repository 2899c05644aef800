"""Runs side by side in tables, for a terminal and as Markdown."""

from collections.abc import Sequence

from holdfast.analysis.run_comparison import RunComparison
from holdfast.analysis.verdicts import INCLUDES_ZERO, MIN_SAMPLES
from holdfast.errors import cut
from holdfast.plurals import rounds_from_to
from holdfast.records.comparison_summary import (
    MethodComparison,
    RuleGroupComparison,
    RuleGrouping,
    RunContrast,
)
from holdfast.records.mean_estimate import Judged
from holdfast.report.compare_sentences import compare_lines, compare_title, pair_name, run_names
from holdfast.report.wording import WIDTH, aligned, mean_text, other_prompts, signed, wrapped

MAX_ROWS = 30  # of a table in the terminal and in Markdown; the page and the JSON have all
_MAX_VALUE_CHARACTERS = 40  # of the value of a setting
_CONTEXT = 12  # characters before the first one in which two values differ
_MAX_REASONS = 3  # below a table in the terminal
_TITLES: dict[RuleGrouping, str] = {
    "all": "all rules",
    "kind": "kind of rule",
    "rule": "rule",
    "adoption": "the user’s rules (adoption)",
}


def row_name(row: RuleGroupComparison) -> str:
    """The name of a row in a table."""
    return row.group or _TITLES[row.grouping]


def contrast_rows(comparison: RunComparison) -> list[tuple[str, ...]]:
    """A row for each setting that differs and a column for each run; the header comes first."""
    header = ("", *comparison.labels)
    rows = [(contrast.name, *_distinct_parts(contrast)) for contrast in comparison.contrasts]
    return [header, *rows]


def _distinct_parts(contrast: RunContrast) -> list[str]:
    """The values of a setting; long ones are cut around the first place where they differ."""
    values = [" ".join(value.split()) for value in contrast.values]
    if max(map(len, values)) <= _MAX_VALUE_CHARACTERS:
        return values
    columns = enumerate(zip(*values, strict=False))
    shortest = min(map(len, values))
    first_difference = next((index for index, column in columns if len(set(column)) > 1), shortest)
    start = max(0, first_difference - _CONTEXT)
    ellipsis = "…" if start else ""
    return [ellipsis + cut(value[start:], _MAX_VALUE_CHARACTERS) for value in values]


def header_of(method_comparison: MethodComparison) -> tuple[str, ...]:
    """The header of the table of a comparison."""
    return (
        "stability",
        *run_names(method_comparison),
        f"difference over {_rounds_text(method_comparison.rounds)}",
        f"in round {method_comparison.rounds[-1]}" if method_comparison.rounds else "last round",
    )


def _rounds_text(rounds: Sequence[int]) -> str:
    """'rounds 1 to 8', '4 rounds from 1 to 10' or 'round 1'."""
    if not rounds:
        return "no round"
    if len(rounds) == rounds[-1] - rounds[0] + 1:
        return rounds_from_to(rounds[0], rounds[-1])
    return f"{len(rounds)} rounds from {rounds[0]} to {rounds[-1]}"


def open_reasons(method_comparison: MethodComparison) -> list[str]:
    """Why verdicts are open, other than that an interval includes 0, which the reader sees."""
    differences = [
        value for row in method_comparison.rows for value in (row.over_rounds, row.last_round)
    ]
    has_few = any(0 < value.n < MIN_SAMPLES for value in differences)
    why_open = dict.fromkeys(value.why for value in differences if value.n >= MIN_SAMPLES)
    sentences = [why for why in why_open if why and why != INCLUDES_ZERO]
    return [*sentences, f"fewer than {MIN_SAMPLES} conversations"] if has_few else sentences


def compare_text(comparison: RunComparison) -> str:
    """The text that `holdfast compare` prints."""
    blocks = [wrapped([compare_title(comparison), *compare_lines(comparison)])]
    if comparison.contrasts:
        blocks.append(["What differs:", *aligned(contrast_rows(comparison), "  ")])
    if comparison.limits:
        blocks.append(["Keep in mind:", *wrapped(comparison.limits, "  ", "    ")])
    blocks += map(_method_lines, comparison.methods)
    return "\n\n".join("\n".join(lines) for lines in blocks)


def _method_lines(method_comparison: MethodComparison) -> list[str]:
    """The table of one method in two runs, and why some verdicts are open."""
    cells = _row_cells(method_comparison)
    lines = [
        f"{pair_name(method_comparison)}:",
        *_fit_table(header_of(method_comparison), cells[:MAX_ROWS]),
    ]
    if len(cells) > MAX_ROWS:
        lines.append(f"  {len(cells) - MAX_ROWS} more rows are on the page.")
    if other_interval := other_prompts(method_comparison.overall.over_rounds):
        lines.append(f"  For {other_interval} over all rounds.")
    why_open = [f"cannot tell: {why}" for why in open_reasons(method_comparison)[:_MAX_REASONS]]
    return lines + wrapped(why_open, "  ", "    ")


def _fit_table(names: Sequence[str], cells: Sequence[Sequence[str]]) -> list[str]:
    """A table; if it is wider than a terminal, each row's differences go on a line of their own."""
    lines = aligned([names, *cells], "  ")
    if max(map(len, lines)) <= WIDTH:
        return lines
    means = [tuple(row[:3]) for row in (names, *cells)]
    differences = [("", *row[3:]) for row in (names, *cells)]
    mean_lines = aligned(means, "  ")
    difference_lines = aligned(differences, "    ")
    return [line for pair in zip(mean_lines, difference_lines, strict=True) for line in pair]


def compare_markdown(comparison: RunComparison) -> str:
    """The same as Markdown, for a comment on a pull request."""
    lines = [f"### {_escape(compare_title(comparison))}", ""]
    lines += [f"{_escape(line)}\n" for line in compare_lines(comparison)]
    for method_comparison in comparison.methods:
        lines += [f"**{_escape(pair_name(method_comparison))}**", ""]
        rows = _row_cells(method_comparison)
        lines += [*_markdown_table(header_of(method_comparison), rows[:MAX_ROWS]), ""]
        if len(rows) > MAX_ROWS:
            lines += [f"{len(rows) - MAX_ROWS} more rows are on the page.", ""]
    if comparison.limits:
        lines += [*(f"- {_escape(line)}" for line in comparison.limits), ""]
    if comparison.contrasts:
        head, *rows = contrast_rows(comparison)
        lines += ["What differs:", "", *_markdown_table(head, rows), ""]
    lines.append(
        "Brackets: 95% intervals. “Cannot tell” means that the data do not decide, not that there"
        " is no difference."
    )
    return "\n".join(lines)


def _difference_text(value: Judged) -> str:
    """'-0.09 [-0.15, -0.02] lower', or '... cannot tell'."""
    if value.mean is None:
        return "–"
    return f"{signed(value)} {value.verdict}"


def _row_cells(method_comparison: MethodComparison) -> list[tuple[str, ...]]:
    """The cells of each row: its name, the means of both runs, and the two differences."""
    return [
        (
            row_name(row),
            mean_text(row.before),
            mean_text(row.now),
            _difference_text(row.over_rounds),
            _difference_text(row.last_round),
        )
        for row in method_comparison.rows
    ]


def _markdown_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [
        f"| {' | '.join(map(_escape, names))} |",
        f"|{' --- |' * len(names)}",
        *(f"| {' | '.join(map(_escape, row))} |" for row in rows),
    ]


def _escape(text: str) -> str:
    """Escapes text from suites and prompts, so that Markdown displays it as it is."""
    text = " ".join(text.split())
    for mark in "\\`*_<>|[]#@":
        text = text.replace(mark, f"&#{ord(mark)};" if mark in "<>@#|" else f"\\{mark}")
    return text
