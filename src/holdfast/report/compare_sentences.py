"""Runs side by side in words: the title, and the sentences below it."""

from collections.abc import Sequence

from holdfast.analysis.run_comparison import MethodComparison, RunComparison, unsteered
from holdfast.analysis.series import Series
from holdfast.analysis.verdicts import INCLUDES_ZERO, MIN_SAMPLES
from holdfast.plurals import count_of, listing
from holdfast.report.wording import signed

_MAX_NAMED = 6


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
        names = f"{side_name(item, item.now)} against {side_name(item, item.before)}"
    return f"{names}, {counted(item)}"


def counted(item: MethodComparison) -> str:
    """How many conversations are compared, and how."""
    if item.pairs:
        return f"{count_of(item.pairs, 'pair')} of conversations"
    return f"{len(item.now.records):,} and {len(item.before.records):,} conversations, not in pairs"


def side_name(item: MethodComparison, side: Series) -> str:
    """A run, with its method if that differs too."""
    if item.before.method == item.now.method:
        return side.run
    return f"{side.run} ({side.method})"


def _overall(item: MethodComparison) -> str:
    """Which of the two keeps its prompts better, over the rounds of both."""
    now = side_name(item, item.now)
    before = side_name(item, item.before)
    row = item.overall
    if row.over_rounds.mean is None:
        return f"No reply that both {now} and {before} were asked for could be scored."
    difference = row.over_rounds
    others = row.over_rounds.other_prompts
    under = f" under {item.now.method}" if item.now.method == item.before.method != "none" else ""
    scores = f"{row.now.mean:.2f} against {row.before.mean:.2f}"
    shown = f"{scores}, difference {signed(row.over_rounds)}"
    if not difference.sign:
        why = f", {difference.why}" if difference.why != INCLUDES_ZERO else ""
        return (
            f"Cannot tell whether {now} or {before} keeps its prompts better{under}: {shown}{why}."
        )
    few = others is None or not others.excludes_zero
    scope = f" on {'this prompt' if item.prompts == 1 else f'these {item.prompts} prompts'}"
    word = "better" if difference.sign > 0 else "worse"
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
    less = [row.group for row in rows if row.over_rounds.sign < 0]
    more = [row.group for row in rows if row.over_rounds.sign > 0]
    parts = [f"kept less: {_quoted(less)}"] if less else []
    parts += [f"kept more: {_quoted(more)}"] if more else []
    if not parts:
        return f"Of {len(rows)} rules, none is clearly kept more or less over all rounds."
    return f"Of {len(rows)} rules, clearly {'; clearly '.join(parts)}."


def _quoted(rules: Sequence[str]) -> str:
    """Rules in quotation marks, as their names have commas."""
    return listing([f"“{rule}”" for rule in rules], _MAX_NAMED)


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
