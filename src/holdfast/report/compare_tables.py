"""Runs side by side in tables, for a terminal and as Markdown."""

import re
from collections.abc import Mapping, Sequence

from holdfast.analysis.run_comparison import RunComparison
from holdfast.analysis.verdicts import CANNOT_TELL, INCLUDES_ZERO, MIN_SAMPLES
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
_INTERVAL = re.compile(r", \[[^]]*](?=,)")  # of one row: ', [-0.004, +0.215]'
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


# --- The text for a terminal


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
    """The table of one method in two runs, and notes on why some of its verdicts are open."""
    rows = method_comparison.rows[:MAX_ROWS]
    notes = _notes_of(rows)
    lines = [
        f"{pair_name(method_comparison)}:",
        *_fit_table(header_of(method_comparison), _row_cells(rows, notes)),
    ]
    if unseen := len(method_comparison.rows) - len(rows):
        lines.append(f"  {unseen} more rows are on the page.")
    if other_interval := other_prompts(method_comparison.overall.over_rounds):
        lines.append(f"  For {other_interval} over all rounds.")
    return lines + wrapped(_note_lines(notes), "  ", "    ")


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


# --- Markdown


def compare_markdown(comparison: RunComparison) -> str:
    """The same as Markdown, for a comment on a pull request."""
    lines = [f"### {_escape(compare_title(comparison))}", ""]
    lines += [f"{_escape(line)}\n" for line in compare_lines(comparison)]
    for method_comparison in comparison.methods:
        lines += [f"**{_escape(pair_name(method_comparison))}**", ""]
        rows = method_comparison.rows[:MAX_ROWS]
        notes = _notes_of(rows)
        cells = _row_cells(rows, notes)
        lines += [*_markdown_table(header_of(method_comparison), cells), ""]
        if unseen := len(method_comparison.rows) - len(rows):
            lines += [f"{unseen} more rows are on the page.", ""]
        lines += [f"{_escape(line)}\n" for line in _note_lines(notes)]
    if comparison.limits:
        lines += [*(f"- {_escape(line)}" for line in comparison.limits), ""]
    if comparison.contrasts:
        head, *contrasts = contrast_rows(comparison)
        lines += ["What differs:", "", *_markdown_table(head, contrasts), ""]
    lines.append(
        "Brackets: 95% intervals. “Cannot tell” means that the data do not decide, not that there"
        " is no difference."
    )
    return "\n".join(lines)


def _markdown_table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table in Markdown."""
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


# --- The rows of a comparison, and the notes on its open verdicts


def _row_cells(
    rows: Sequence[RuleGroupComparison], notes: Mapping[str, str]
) -> list[tuple[str, ...]]:
    """The cells of each row: its name, the means of both runs, and the two differences."""
    return [
        (
            row_name(row),
            mean_text(row.before),
            mean_text(row.now),
            _difference_text(row.over_rounds, notes),
            _difference_text(row.last_round, notes),
        )
        for row in rows
    ]


def _difference_text(value: Judged, notes: Mapping[str, str]) -> str:
    """'-0.09 [-0.15, -0.02] lower', or '... cannot tell (1)' with the mark of a note."""
    if value.mean is None:
        return "–"
    mark = notes.get(_reason_of(value), "")
    return f"{signed(value)} {value.verdict} {mark}".rstrip()


def _notes_of(rows: Sequence[RuleGroupComparison]) -> dict[str, str]:
    """The marks of the notes below a table, such as '(1)', by the reason that each states."""
    differences = [value for row in rows for value in (row.over_rounds, row.last_round)]
    reasons = dict.fromkeys(filter(None, map(_reason_of, differences)))
    return {reason: f"({number})" for number, reason in enumerate(reasons, start=1)}


def _note_lines(notes: Mapping[str, str]) -> list[str]:
    """The notes below a table: '(1) cannot tell: fewer than 20 conversations'."""
    return [f"{mark} {CANNOT_TELL}: {reason}" for reason, mark in notes.items()]


def _reason_of(value: Judged) -> str:
    """Why a verdict is open, without the numbers of its row; "" if the reader sees that its
    interval includes 0.

        'one of 8 comparisons needs a wider interval, and that includes 0'
    """
    if not value.why or value.mean is None or value.why == INCLUDES_ZERO:
        return ""
    if value.n < MIN_SAMPLES:
        return f"fewer than {MIN_SAMPLES} conversations"
    return _INTERVAL.sub("", value.why)
