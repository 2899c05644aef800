"""Runs side by side in words: the title, and the sentences below it."""

from collections.abc import Sequence

from holdfast.analysis.run_comparison import MethodComparison, RunComparison, unsteered
from holdfast.analysis.series import Series
from holdfast.analysis.verdicts import INCLUDES_ZERO, MIN_SAMPLES
from holdfast.plurals import count_of, listing
from holdfast.report.score_phrases import join_phrases
from holdfast.report.wording import signed

_MAX_RULES_NAMED = 6


def compare_title(comparison: RunComparison) -> str:
    """The first comparison without a method, as a sentence."""
    return _overall(unsteered(comparison))


def compare_lines(comparison: RunComparison) -> list[str]:
    """The sentences below the title."""
    first = unsteered(comparison)
    lines = [_single_rules(first), _causes(comparison, first)]
    for item in comparison.methods:
        if item is first:
            continue
        if item.now.run == first.now.run:
            lines.append(_overall(item))
        else:
            lines.append(f"{_overall(item)} {_causes(comparison, item)}")
    return [line for line in lines if line]


def pair_name(item: MethodComparison) -> str:
    """'new against old, none, 24 pairs of conversations', for the head of a table."""
    if item.before.method == item.now.method:
        names = f"{item.now.run} against {item.before.run}, {item.now.method}"
    else:
        names = f"{side_name(item, item.now)} against {side_name(item, item.before)}"
    return f"{names}, {describe_sample(item)}"


def describe_sample(item: MethodComparison) -> str:
    """How many conversations are compared, and whether in pairs."""
    if item.pairs:
        return f"{count_of(item.pairs, 'pair')} of conversations"
    return f"{len(item.now.records):,} and {len(item.before.records):,} conversations, not in pairs"


def side_name(item: MethodComparison, side: Series) -> str:
    """The name of a run, with its method if that differs between the two."""
    if item.before.method == item.now.method:
        return side.run
    return f"{side.run} ({side.method})"


def _overall(item: MethodComparison) -> str:
    """Says which of the two runs keeps its prompts better, over the rounds that both have."""
    now = side_name(item, item.now)
    before = side_name(item, item.before)
    row = item.overall
    difference = row.over_rounds
    if difference.mean is None:
        return f"No reply that both {now} and {before} were asked for could be scored."
    is_steered = item.now.method == item.before.method != "none"
    under = f"under {item.now.method}" if is_steered else ""
    scores = (
        f"{row.now.mean:.2f} against {row.before.mean:.2f}, difference {signed(row.over_rounds)}"
    )
    if not difference.sign:
        question = join_phrases(f"whether {now} or {before} keeps its prompts better", under)
        if difference.why == INCLUDES_ZERO:  # the reader sees that the interval includes 0
            return f"Cannot tell {question}: {scores}."
        return f"Cannot tell {question}: {scores}, {difference.why}."
    word = "better" if difference.sign > 0 else "worse"
    others = difference.other_prompts
    if others is not None and others.excludes_zero:
        kept = join_phrases(f"{now} keeps its prompts {word} than {before}", under)
    elif item.prompts == 1:
        kept = join_phrases(f"{now} keeps its prompt {word} than {before}", under, "on this prompt")
    else:
        scope = f"on these {item.prompts} prompts"
        kept = join_phrases(f"{now} keeps its prompts {word} than {before}", under, scope)
    return f"{kept}: {scores}."


def _single_rules(item: MethodComparison) -> str:
    """Says which rules are clearly kept less or more; "" if no prompt has several rules."""
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
    parts = []
    if less:
        parts.append(f"clearly kept less: {_quoted_names(less)}")
    if more:
        parts.append(f"clearly kept more: {_quoted_names(more)}")
    if not parts:
        return f"Of {len(rows)} rules, none is clearly kept more or less over all rounds."
    return f"Of {len(rows)} rules, {'; '.join(parts)}."


def _quoted_names(rules: Sequence[str]) -> str:
    """Lists rules in quotation marks, as their names may have commas."""
    return listing([f"“{rule}”" for rule in rules], _MAX_RULES_NAMED)


def _causes(comparison: RunComparison, item: MethodComparison) -> str:
    """Says what differs between the two runs and could have caused a difference of scores."""
    causes = comparison.causes(item)
    if not causes:
        return "Model, prompts and settings are the same, so only chance or rounding can differ."
    if len(causes) == 1:
        return f"One thing differs between the two: {causes[0]}."
    return (
        f"{len(causes)} things differ between the two ({', '.join(causes)}), so a difference of"
        " scores cannot be put down to one of them."
    )
