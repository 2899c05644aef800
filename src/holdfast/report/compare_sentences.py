"""Runs side by side in words: the title, and the sentences below it."""

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.analysis.run_comparison import RunComparison
from holdfast.analysis.series import NO_FIX
from holdfast.analysis.verdicts import INCLUDES_ZERO, MIN_SAMPLES
from holdfast.plurals import count_of, listing
from holdfast.records.comparison_summary import MethodComparison
from holdfast.report.score_phrases import join_phrases
from holdfast.report.wording import mean_text, signed

_MAX_RULES_NAMED = 6


def compare_title(comparison: RunComparison) -> str:
    """Says which run keeps its prompts better without a method, or else under the first one."""
    return _overall(comparison.unsteered)


def compare_lines(comparison: RunComparison) -> list[str]:
    """The sentences below the title: on single rules, causes, and each further comparison."""
    first = comparison.unsteered
    lines = [_single_rules(first), _causes(comparison, first)]
    for method_comparison in comparison.methods:
        if method_comparison is first:
            continue
        if method_comparison.run == first.run:
            lines.append(_overall(method_comparison))
        else:
            lines.append(f"{_overall(method_comparison)} {_causes(comparison, method_comparison)}")
    return [line for line in lines if line]


def pair_name(method_comparison: MethodComparison) -> str:
    """'new against old, none, 24 pairs of conversations', for the head of a table."""
    runs = run_names(method_comparison)
    names = f"{runs.now} against {runs.before}"
    if method_comparison.has_same_method:
        names = f"{names}, {method_comparison.method}"
    return f"{names}, {describe_sample(method_comparison)}"


def describe_sample(method_comparison: MethodComparison) -> str:
    """How many conversations are compared, and whether in pairs."""
    if method_comparison.pairs:
        return f"{count_of(method_comparison.pairs, 'pair')} of conversations"
    counts = f"{method_comparison.conversations:,} and {method_comparison.conversations_before:,}"
    return f"{counts} conversations, not in pairs"


class RunNames(NamedTuple):
    """The names of the first run and of the one that is compared with it."""

    before: str
    now: str


def run_names(method_comparison: MethodComparison) -> RunNames:
    """The names of the two runs, with their methods if these differ."""
    if method_comparison.has_same_method:
        return RunNames(method_comparison.against, method_comparison.run)
    return RunNames(
        f"{method_comparison.against} ({method_comparison.against_method})",
        f"{method_comparison.run} ({method_comparison.method})",
    )


def _overall(method_comparison: MethodComparison) -> str:
    """Says which of the two runs keeps its prompts better, over the rounds that both have."""
    runs = run_names(method_comparison)
    row = method_comparison.overall
    difference = row.over_rounds
    if difference.mean is None:
        return f"No reply that both {runs.now} and {runs.before} were asked for could be scored."
    method = method_comparison.method
    is_steered = method_comparison.has_same_method and method != NO_FIX
    condition = f"under {method}" if is_steered else ""
    scores = f"{mean_text(row.now)} against {mean_text(row.before)}"
    scores = f"{scores}, difference {signed(difference)}"
    if difference.sign:
        return f"{_finding(method_comparison, condition)}: {scores}."
    question = f"whether {runs.now} or {runs.before} keeps its prompts better"
    answer = f"Cannot tell {join_phrases(question, condition)}: {scores}"
    if difference.why == INCLUDES_ZERO:  # the reader sees that the interval includes 0
        return f"{answer}."
    return f"{answer}, {difference.why}."


def _finding(method_comparison: MethodComparison, condition: str) -> str:
    """'new keeps its prompts worse than old on these 3 prompts', for a certain difference.

    Args:
        condition: the method of both runs, such as 'under hold'; "" without one.
    """
    runs = run_names(method_comparison)
    difference = method_comparison.overall.over_rounds
    better = "better" if difference.sign > 0 else "worse"
    others = difference.other_prompts
    if others is not None and others.excludes_zero:
        return join_phrases(f"{runs.now} keeps its prompts {better} than {runs.before}", condition)
    if method_comparison.prompts == 1:
        finding = f"{runs.now} keeps its prompt {better} than {runs.before}"
        return join_phrases(finding, condition, "on this prompt")
    finding = f"{runs.now} keeps its prompts {better} than {runs.before}"
    return join_phrases(finding, condition, f"on these {method_comparison.prompts} prompts")


def _single_rules(method_comparison: MethodComparison) -> str:
    """Says which rules are clearly kept less or more; "" if no prompt has several rules."""
    rows = method_comparison.of("rule")
    if not rows:
        return ""
    if max(row.over_rounds.n for row in rows) < MIN_SAMPLES:
        return (
            f"Each rule has fewer than {MIN_SAMPLES} conversations, so only all of them together"
            " have a verdict."
        )
    rules_kept_less = [row.group for row in rows if row.over_rounds.sign < 0]
    rules_kept_more = [row.group for row in rows if row.over_rounds.sign > 0]
    parts = []
    if rules_kept_less:
        parts.append(f"clearly kept less: {_quoted_names(rules_kept_less)}")
    if rules_kept_more:
        parts.append(f"clearly kept more: {_quoted_names(rules_kept_more)}")
    if not parts:
        return f"Of {len(rows)} rules, none is clearly kept more or less over all rounds."
    return f"Of {len(rows)} rules, {'; '.join(parts)}."


def _quoted_names(rules: Sequence[str]) -> str:
    """Lists rules in quotation marks, as their names may have commas."""
    return listing([f"“{rule}”" for rule in rules], _MAX_RULES_NAMED)


def _causes(comparison: RunComparison, method_comparison: MethodComparison) -> str:
    """Says what differs between the two runs and could have caused a difference of scores."""
    causes = comparison.causes(method_comparison)
    if not causes:
        return "Model, prompts and settings are the same, so only chance or rounding can differ."
    if len(causes) == 1:
        return f"One thing that can change scores differs between the two: {causes[0]}."
    return (
        f"{len(causes)} things that can change scores differ between the two"
        f" ({', '.join(causes)}), so a difference cannot be put down to one of them."
    )
