"""Why a prompt or a rule got its verdict in `holdfast check`, in a sentence."""

import math
from collections import Counter

from holdfast.analysis.check_verdicts import PromptCheck, Terms, cell_verdict
from holdfast.analysis.sequential import FAIL, UNDECIDED
from holdfast.analysis.unscored import WITHOUT_SCORE
from holdfast.plurals import count_of
from holdfast.records.run_summary import (
    CheckedCell,
    PromptAgainstEarlierRun,
    RuleAgainstEarlierRun,
    RuleCheck,
)
from holdfast.report.opening_sentences import nothing_measured

_ROUNDING = 1e-6  # in hundredths


def sentence(checked: PromptCheck, terms: Terms) -> str:
    """The reason for a verdict and its cost: '... (decided after 3 of 8 conversations)'."""
    evidence = reason(checked, terms)
    is_incomplete = any(cell.mean is None for cell in checked.cells)
    if checked.verdict == UNDECIDED and is_incomplete and checked.lowest:
        evidence = f"{evidence}; {missing_text(checked)}"
    conversations = count_of(len(checked.records), "conversation")
    if checked.decided_after < len(checked.records):
        return f"{evidence} (decided after {checked.decided_after} of {conversations})"
    return f"{evidence} ({conversations})"


def reason(checked: PromptCheck, terms: Terms) -> str:
    """The evidence behind the verdict on a prompt."""
    if checked.first_failure is not None:
        others = [
            rule.rule
            for rule in checked.rules
            if rule.verdict == FAIL and rule.rule != checked.first_failure.rule
        ]
        failure = _cell_text(checked.first_failure, checked, terms)
        if others:
            return f"below {terms.min_stability:g} in {failure}; also below: {', '.join(others)}"
        return f"below {terms.min_stability:g} in {failure}"
    if checked.comparison is not None and (checked.comparison.fell or terms.min_stability is None):
        return comparison_text(checked.comparison)
    if checked.lowest is None:
        return nothing_measured(checked.records) or "no probe was answered"
    lowest = _cell_text(checked.lowest, checked, terms)
    if terms.min_stability is None:
        return f"not in the earlier run, so there is nothing to compare; lowest in {lowest}"
    return f"lowest in {lowest}"


def _cell_text(
    cell: CheckedCell, checked: PromptCheck, terms: Terms, *, with_rule: bool = True
) -> str:
    """'round 3, rule brief: 0.42 [0.31, 0.55], low since round 2'."""
    place = f"round {cell.round}"
    if with_rule and cell.rule is not None:
        place += f", rule {cell.rule}"
    text = f"{place}: {numbers_text(cell)}"
    if (since := _low_since(cell, checked, terms)) is not None:
        text += f", low since round {since}"
    bar = terms.min_stability
    if bar is not None and checked.verdict == UNDECIDED and cell_verdict(cell, bar) == FAIL:
        text += (
            f" (below {bar:g} on its own, but not yet certain as one of {len(checked.cells)}"
            " comparisons)"
        )
    return text


def _low_since(cell: CheckedCell, checked: PromptCheck, terms: Terms) -> int | None:
    """The first of the rounds in a row, up to a failing cell, whose mean is below the bar.

    None if the cell does not fail, or is the first of them itself.
    """
    if terms.min_stability is None or cell_verdict(cell, terms.min_stability) != FAIL:
        return None
    first = cell.round
    cells_of_rule = [other for other in checked.cells if other.rule == cell.rule]
    for earlier in reversed(cells_of_rule[: cells_of_rule.index(cell)]):
        if earlier.mean is None or earlier.mean >= terms.min_stability:
            break
        first = earlier.round
    return first if first < cell.round else None


def missing_text(checked: PromptCheck, rule: str | None = None) -> str:
    """'not judged: 3 were cut at the token limit, 2 were not asked or not answered'.

    Args:
        rule: counts only the probes of this rule; None counts those of the whole prompt.

    Returns:
        "" if no score is missing.
    """
    probes = [
        (row, probe)
        for row, record in enumerate(checked.records)
        for probe in record.unscored
        if probe.kind == "stability" and rule in (None, probe.rule)
    ]
    reasons = Counter(probe.why for _, probe in probes)
    parts = [f"{count:,} {WITHOUT_SCORE[why]}" for why, count in reasons.most_common()]
    if rule is None:
        cells = {(row, probe.rule, probe.round) for row, probe in probes}
        unanswered = checked.unanswered - len(cells)
        if unanswered > 0:
            parts.append(f"{unanswered:,} were not asked or not answered")
    return f"not judged: {', '.join(parts)}" if parts else ""


def rule_text(rule: RuleCheck, checked: PromptCheck, terms: Terms) -> str:
    """The evidence behind the verdict on one rule of a prompt."""
    if rule.decided_by is None:
        return missing_text(checked, rule.rule) or "no probe was answered"
    text = _cell_text(rule.decided_by, checked, terms, with_rule=False)
    if rule.comparison is None or not rule.comparison.fell:
        return text
    return f"{text}; fell against the earlier run, {_fall_text(rule.comparison)}"


def rule_sentence(rule: RuleCheck, checked: PromptCheck, terms: Terms) -> str:
    """One line on a rule of a prompt: the evidence and the number of conversations."""
    bar = terms.min_stability
    evidence = rule_text(rule, checked, terms)
    conversations = count_of(len(checked.records), "conversation")
    if rule.decided_by is None:
        return f"{evidence} ({conversations})"
    if bar is not None and rule.verdict == FAIL == cell_verdict(rule.decided_by, bar):
        return f"below {bar:g} in {evidence} ({conversations})"
    return f"lowest in {evidence} ({conversations})"


def numbers_text(cell: CheckedCell) -> str:
    """'0.86 [0.71, 0.94]'; the ends are rounded outwards, so as not to overstate a verdict."""
    if cell.mean is None:
        return "not answered"
    low = math.floor(100 * cell.low + _ROUNDING)
    high = math.ceil(100 * cell.high - _ROUNDING)
    return f"{cell.mean:.2f} [{low / 100:.2f}, {high / 100:.2f}]"


def comparison_text(comparison: PromptAgainstEarlierRun) -> str:
    """The result of the comparison with an earlier run."""
    result = _comparison_result(comparison)
    if comparison.not_compared:
        return f"{result}; not compared: {', '.join(comparison.not_compared)}"
    return result


def _comparison_result(comparison: PromptAgainstEarlierRun) -> str:
    if not comparison.rules:
        return "nothing to compare with the earlier run"
    sample = _sample_text(comparison)
    if fallen := [rule for rule in comparison.rules if rule.fell]:
        rules = "; ".join(map(_rule_comparison_text, fallen))
        return f"fell against the earlier run: {rules}, {sample}"
    largest_fall = comparison.rules[0]
    rule = _rule_comparison_text(largest_fall)
    if comparison.fell:
        return f"fell against the earlier run, though no rule certainly by itself: {rule}, {sample}"
    if largest_fall.now >= largest_fall.before:
        return f"no mean is lower than in the earlier run, {sample}"
    return f"no certain fall against the earlier run: {rule}, {sample}"


def _sample_text(comparison: PromptAgainstEarlierRun) -> str:
    """'over 30 pairs of conversations, 12 of them with the same draws'."""
    if comparison.pairs == 1:
        draws = "the same draws" if comparison.alike else "different draws"
        return f"over 1 pair of conversations with {draws}"
    if comparison.alike == comparison.pairs:
        same = "all"
    else:
        same = f"{comparison.alike:,}" if comparison.alike else "none"
    pairs = count_of(comparison.pairs, "pair")
    return f"over {pairs} of conversations, {same} of them with the same draws"


def _rule_comparison_text(comparison: RuleAgainstEarlierRun) -> str:
    """'rule brief, most in round 3, from 0.86 to 0.40'."""
    fall = _fall_text(comparison)
    return fall if comparison.rule is None else f"rule {comparison.rule}, {fall}"


def _fall_text(comparison: RuleAgainstEarlierRun) -> str:
    means = f"from {comparison.before:.2f} to {comparison.now:.2f}"
    return f"most in round {comparison.round}, {means}"


def how_to_decide(verdict: str, lowest: CheckedCell | None, terms: Terms) -> str | None:
    """How to decide a verdict that is undecided under a bar; None for any other.

    Args:
        lowest: the cell with the lowest mean; None if nothing was measured.
    """
    if verdict != UNDECIDED or terms.min_stability is None or lowest is None or terms.smoke:
        return None
    return (
        f"Undecided after at most {terms.budget} conversations: raise --budget, or give a"
        f" --min-stability further from {lowest.mean:.2f}."
    )
