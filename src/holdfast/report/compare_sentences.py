"""Runs side by side in words: the title, the sentences below it, and tables for a terminal."""

import textwrap
from collections.abc import Sequence

from holdfast.analysis.compared_scores import Grouping, RowComparison
from holdfast.analysis.run_comparison import MethodComparison, RunComparison, unsteered
from holdfast.analysis.run_contrasts import Contrast
from holdfast.analysis.series import Series
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.verdicts import INCLUDES_ZERO, MIN_SAMPLES
from holdfast.errors import cut
from holdfast.report.wording import aligned, count_of, other_prompts, signed

WIDTH = 100
SHOWN_ROWS = 30  # rules in the terminal and in Markdown; the page and the JSON have all
_MOST_NAMED = 6
_LONGEST = 40  # characters of a setting's value
_TITLES: dict[Grouping, str] = {
    "all": "all rules",
    "kind": "kind of rule",
    "rule": "rule",
    "adoption": "the user’s rules (adoption)",
}


def compare_title(comparison: RunComparison) -> str:
    """The first comparison without a method, as a sentence."""
    return _overall(unsteered(comparison))


def compare_lines(comparison: RunComparison) -> list[str]:
    """The sentences below the title."""
    first = unsteered(comparison)
    lines = [_single_rules(first), _causes(comparison, first)]
    for item in comparison.methods:
        if item is not first:
            lines.append(_overall(item))
            if item.now.run != first.now.run:
                lines[-1] += f" {_causes(comparison, item)}"
    return [line for line in lines if line]


def pair_name(item: MethodComparison) -> str:
    """'new against old, none, 24 pairs', for the head of a table."""
    if item.before.method == item.now.method:
        names = f"{item.now.run} against {item.before.run}, {item.now.method}"
    else:
        names = f"{_name(item, item.now)} against {_name(item, item.before)}"
    return f"{names}, {counted(item)}"


def counted(item: MethodComparison) -> str:
    """How many conversations are compared, and how."""
    if item.pairs:
        return f"{count_of(item.pairs, 'pair')} of conversations"
    return f"{len(item.now.records):,} and {len(item.before.records):,} conversations, not in pairs"


def _name(item: MethodComparison, side: Series) -> str:
    """A run, with its method if that differs too."""
    if item.before.method == item.now.method:
        return side.run
    return f"{side.run} ({side.method})"


def _overall(item: MethodComparison) -> str:
    """Which of the two keeps its prompts better, over the rounds of both."""
    now, before, row = _name(item, item.now), _name(item, item.before), item.overall
    if row.over_rounds.mean is None:
        return f"No reply that both {now} and {before} were asked for could be scored."
    verdict, others = row.verdict(row.over_rounds), row.over_rounds.other_prompts
    under = f" under {item.now.method}" if item.now.method == item.before.method != "none" else ""
    scores = f"{row.now.mean:.2f} against {row.before.mean:.2f}"
    shown = f"{scores}, difference {signed(row.over_rounds)}"
    if not verdict.sign:
        why = f", {verdict.why}" if verdict.why != INCLUDES_ZERO else ""
        return (
            f"Cannot tell whether {now} or {before} keeps its prompts better{under}: {shown}{why}."
        )
    few = others is None or not others.excludes_zero
    scope = f" on {'this prompt' if item.prompts == 1 else f'these {item.prompts} prompts'}"
    word = "better" if verdict.sign > 0 else "worse"
    prompts = "prompt" if item.prompts == 1 and few else "prompts"
    kept = f"{now} keeps its {prompts} {word} than {before}{under}"
    return f"{kept}{scope if few else ''}: {shown}."


def _single_rules(item: MethodComparison) -> str:
    """The rules that are clearly kept more or less over all rounds, or that none is."""
    rows = item.of("rule")
    if not rows:
        return ""
    if max(row.over_rounds.n for row in rows) < MIN_SAMPLES:
        return (
            f"Each rule has fewer than {MIN_SAMPLES} conversations, so only all of them together"
            " have a verdict."
        )
    signs = [row.verdict(row.over_rounds).sign for row in rows]
    parts = [
        f"{word}: {_listing([row.group for row, s in zip(rows, signs, strict=True) if s == sign])}"
        for word, sign in (("kept less", -1), ("kept more", 1))
        if sign in signs
    ]
    if not parts:
        return f"Of {len(rows)} rules, none is clearly kept more or less over all rounds."
    return f"Of {len(rows)} rules, clearly {'; clearly '.join(parts)}."


def _listing(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{'; '.join(names[:_MOST_NAMED])}{more}"


def _causes(comparison: RunComparison, item: MethodComparison) -> str:
    """The possible causes of a difference."""
    causes = comparison.causes(item)
    if not causes:
        return "Model, prompts and settings are the same, so only chance or rounding can differ."
    if len(causes) == 1:
        return f"One thing differs between the two: {causes[0]}."
    return (
        f"{len(causes)} things differ between the two ({', '.join(causes)}), so a difference of"
        " scores cannot be put down to one of them."
    )


# --- Tables


def contrast_rows(comparison: RunComparison) -> list[tuple[str, ...]]:
    """The contrasts of the runs, a row for each setting and a column for each run; heads first."""
    heads = ("", *comparison.labels)
    return [heads, *((item.name, *_apart(item)) for item in comparison.contrasts)]


def _apart(item: Contrast) -> list[str]:
    """The values cut to what shows where they differ."""
    values = [" ".join(value.split()) for value in item.values]
    if max(map(len, values)) <= _LONGEST:
        return values
    same = 0
    while all(same < len(value) for value in values) and len({v[same] for v in values}) == 1:
        same += 1
    start = max(0, same - 12)
    return [("…" if start else "") + cut(value[start:], _LONGEST) for value in values]


def _difference(row: RowComparison, value: Estimate) -> str:
    """'-0.09 [-0.15, -0.02] lower', or '... cannot tell'."""
    if value.mean is None:
        return "–"
    return f"{signed(value)} {row.verdict(value).word('higher', 'lower')}"


def row_name(row: RowComparison) -> str:
    """The name of a row in a table."""
    return row.group or _TITLES[row.grouping]


def _cells(item: MethodComparison) -> list[tuple[str, ...]]:
    """The cells of each row: its name, the means of both runs, and the two differences."""
    return [
        (
            row_name(row),
            _mean(row.before),
            _mean(row.now),
            _difference(row, row.over_rounds),
            _difference(row, row.last_round),
        )
        for row in item.rows
    ]


def _mean(value: Estimate) -> str:
    return "–" if value.mean is None else f"{value.mean:.2f}"


def heads(item: MethodComparison) -> tuple[str, ...]:
    """The heads of the columns of a comparison."""
    return (
        "stability",
        _name(item, item.before),
        _name(item, item.now),
        f"difference over {rounds_text(item.rounds)}",
        f"in round {item.rounds[-1]}" if item.rounds else "last round",
    )


def rounds_text(rounds: Sequence[int]) -> str:
    """'rounds 1 to 8', '4 rounds from 1 to 10' or 'round 1'."""
    if not rounds:
        return "no round"
    if len(rounds) == 1:
        return f"round {rounds[0]}"
    whole = len(rounds) == rounds[-1] - rounds[0] + 1
    return f"{'rounds' if whole else f'{len(rounds)} rounds from'} {rounds[0]} to {rounds[-1]}"


def reasons(item: MethodComparison) -> list[str]:
    """Why verdicts are open although their intervals do not show it."""
    values = [(row, value) for row in item.rows for value in (row.over_rounds, row.last_round)]
    few = any(0 < value.n < MIN_SAMPLES for _, value in values)
    found = [row.verdict(value).why for row, value in values if value.n >= MIN_SAMPLES]
    return [
        *(why for why in dict.fromkeys(found) if why not in ("", INCLUDES_ZERO)),
        *([f"fewer than {MIN_SAMPLES} conversations"] if few else []),
    ]


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
    first, second = aligned(means, "  "), aligned(differences, "    ")
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
