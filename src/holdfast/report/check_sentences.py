"""Sentences on the verdicts of `holdfast check`: reasons, comparisons and totals.

A `PromptCheck` of the prompt "bot" becomes, among others,

    verdict_word       "fail"
    verdict_sentence   "below 0.9 in round 3, rule brief: 0.42 [0.31, 0.55] (8 conversations)"
    totals_sentence    "1 of 3 prompts failed, 2 passed (bar: 0.9 for every rule in ...)."
"""

import math
from collections import Counter
from collections.abc import Sequence

from holdfast.analysis.check_verdicts import cell_verdict
from holdfast.analysis.sequential import FAIL, PASS, UNDECIDED
from holdfast.analysis.unscored import WITHOUT_SCORE
from holdfast.plurals import count_of
from holdfast.records.check_records import (
    CheckedCell,
    PromptAgainstEarlierRun,
    PromptCheck,
    RuleAgainstEarlierRun,
    RuleCheck,
    Terms,
)
from holdfast.report.run_title import nothing_measured
from holdfast.report.wording import wrapped

NO_CLEAR_FAILURE = "no clear failure"
UNAVAILABLE = "unavailable"
_ROUNDING = 1e-6  # in hundredths


def verdict_word(prompt_check: PromptCheck, terms: Terms) -> str:
    """The verdict on a prompt in a word.

    An undecided verdict has a word of its own after an outage or a smoke test.
    """
    if prompt_check.verdict == PASS and terms.smoke and terms.min_stability is None:
        return NO_CLEAR_FAILURE  # the few pairs of a smoke test cannot show that nothing fell
    if prompt_check.verdict != UNDECIDED:
        return prompt_check.verdict
    if prompt_check.unavailable:
        return UNAVAILABLE
    return NO_CLEAR_FAILURE if terms.smoke and prompt_check.lowest is not None else UNDECIDED


def caveat_lines(checks: Sequence[PromptCheck], terms: Terms) -> list[str]:
    """Says what undecided verdicts do not show after an outage or a smoke test; [] otherwise."""
    sentences = []
    if unavailable_prompts := [prompt_check for prompt_check in checks if prompt_check.unavailable]:
        lost = sum(prompt_check.lost for prompt_check in unavailable_prompts)
        expected_replies = sum(
            len(prompt_check.records) * len(prompt_check.cells)
            for prompt_check in unavailable_prompts
        )
        sentences.append(
            f"Unavailable: {lost:,} of {expected_replies:,} replies were lost, as the server failed"
            " or a filter withheld them. This says nothing about the prompts; repeat the check with"
            " another --out."
        )
    if terms.smoke and any(verdict_word(item, terms) == NO_CLEAR_FAILURE for item in checks):
        sentences.append(
            "A smoke test finds only clear failures, so this does not show that the prompts hold;"
            " the check without --smoke can."
        )
    return wrapped(sentences)


def count_verdicts(checks: Sequence[PromptCheck], terms: Terms | None = None) -> str:
    """'1 of 3 prompts failed, 2 passed'.

    Args:
        terms: tells undecided verdicts of an outage or a smoke test apart; None counts them all as
            undecided.
    """
    verdicts: list[str] = [prompt_check.verdict for prompt_check in checks]
    words = {FAIL: "failed", UNDECIDED: "undecided", PASS: "passed"}
    if terms is not None:
        verdicts = [verdict_word(prompt_check, terms) for prompt_check in checks]
        words |= {NO_CLEAR_FAILURE: "without a clear failure", UNAVAILABLE: "unavailable"}
    counts = [
        (verdicts.count(verdict), word) for verdict, word in words.items() if verdict in verdicts
    ]
    (count, word), *more_counts = counts
    first_count = f"{count} of {count_of(len(checks), 'prompt')} {word}"
    return ", ".join([first_count, *(f"{count} {word}" for count, word in more_counts)])


def totals_sentence(checks: Sequence[PromptCheck], terms: Terms) -> str:
    """How many prompts fail, are undecided and pass, and by which criterion."""
    counts = count_verdicts(checks, terms)
    error = percentage(terms.error)
    if terms.min_stability is None:
        return (
            f"{counts} (each rule compared with an earlier run; chance of any false alarm at most"
            f" {error})."
        )
    if all(prompt_check.verdict == UNDECIDED for prompt_check in checks):
        return f"{counts} (bar: {terms.min_stability:g} for every rule in every round)."
    return (
        f"{counts} (bar: {terms.min_stability:g} for every rule in every round; chance of any wrong"
        f" verdict at most {error})."
    )


def percentage(share: float) -> str:
    """'5%', '0.5%'."""
    return f"{100 * share:g}%"


def verdict_sentence(prompt_check: PromptCheck, terms: Terms) -> str:
    """The reason for a verdict and its cost: '... (decided after 3 of 8 conversations)'."""
    evidence = verdict_reason(prompt_check, terms)
    is_incomplete = any(cell.mean is None for cell in prompt_check.cells)
    if prompt_check.verdict == UNDECIDED and is_incomplete and prompt_check.lowest:
        evidence = f"{evidence}; {missing_text(prompt_check)}"
    conversations = count_of(len(prompt_check.records), "conversation")
    if prompt_check.decided_after < len(prompt_check.records):
        return f"{evidence} (decided after {prompt_check.decided_after} of {conversations})"
    return f"{evidence} ({conversations})"


def verdict_reason(prompt_check: PromptCheck, terms: Terms) -> str:
    """The evidence behind the verdict on a prompt."""
    comparison = prompt_check.comparison
    if prompt_check.first_failure is not None:
        return _failure_reason(prompt_check.first_failure, prompt_check, terms)
    if comparison is not None and (comparison.fell or terms.min_stability is None):
        return comparison_text(comparison)
    if prompt_check.lowest is None:
        return nothing_measured(prompt_check.records) or "no probe was answered"
    lowest = _cell_text(prompt_check.lowest, prompt_check, terms)
    if terms.min_stability is None:
        return f"not in the earlier run, so there is nothing to compare; lowest in {lowest}"
    return f"lowest in {lowest}"


def _failure_reason(first_failure: CheckedCell, prompt_check: PromptCheck, terms: Terms) -> str:
    """How a prompt fails its bar: 'below 0.9 in round 3, rule brief: ...; also below: polite'."""
    failure = _cell_text(first_failure, prompt_check, terms)
    failing_rules = [rule.rule for rule in prompt_check.rules if rule.fails_bar]
    if prompt_check.rules and not failing_rules:
        return (
            f"below {terms.min_stability:g}, though no rule certainly by itself; most clearly in"
            f" {failure}"
        )
    other_rules = [rule for rule in failing_rules if rule != first_failure.rule]
    if other_rules:
        return f"below {terms.min_stability:g} in {failure}; also below: {', '.join(other_rules)}"
    return f"below {terms.min_stability:g} in {failure}"


def _cell_text(
    cell: CheckedCell, prompt_check: PromptCheck, terms: Terms, *, name_rule: bool = True
) -> str:
    """'round 3, rule brief: 0.42 [0.31, 0.55], low since round 2'."""
    name = f"round {cell.round}"
    if name_rule and cell.rule is not None:
        name += f", rule {cell.rule}"
    text = f"{name}: {numbers_text(cell)}"
    if (since := _low_since(cell, prompt_check, terms)) is not None:
        text += f", low since round {since}"
    bar = terms.min_stability
    if bar is not None and prompt_check.verdict == UNDECIDED and cell_verdict(cell, bar) == FAIL:
        text += (
            f" (below {bar:g} on its own, but not yet certain as one of {len(prompt_check.cells)}"
            " comparisons)"
        )
    return text


def _low_since(cell: CheckedCell, prompt_check: PromptCheck, terms: Terms) -> int | None:
    """The first of the rounds in a row, up to a failing cell, whose mean is below the bar.

    None if the cell does not fail, or is the first of them itself.
    """
    if terms.min_stability is None or cell_verdict(cell, terms.min_stability) != FAIL:
        return None
    start = cell.round
    cells_of_rule = [other for other in prompt_check.cells if other.rule == cell.rule]
    for earlier in reversed(cells_of_rule[: cells_of_rule.index(cell)]):
        if earlier.mean is None or earlier.mean >= terms.min_stability:
            break
        start = earlier.round
    return start if start < cell.round else None


def missing_text(prompt_check: PromptCheck, rule: str | None = None) -> str:
    """'not judged: 3 were cut at the token limit, 2 were not asked or not answered'.

    Args:
        rule: counts only the probes of this rule; None counts those of the whole prompt.

    Returns:
        "" if no score is missing.
    """
    probes = [
        (row, probe)
        for row, record in enumerate(prompt_check.records)
        for probe in record.unscored
        if probe.kind == "stability" and rule in (None, probe.rule)
    ]
    reasons = Counter(probe.why for _, probe in probes)
    parts = [f"{count:,} {WITHOUT_SCORE[why]}" for why, count in reasons.most_common()]
    if rule is None:
        cells = {(row, probe.rule, probe.round) for row, probe in probes}
        unanswered = prompt_check.unanswered - len(cells)
        if unanswered > 0:
            parts.append(f"{unanswered:,} were not asked or not answered")
    return f"not judged: {', '.join(parts)}" if parts else ""


def rule_text(rule: RuleCheck, prompt_check: PromptCheck, terms: Terms) -> str:
    """The evidence behind the verdict on one rule of a prompt."""
    if rule.decided_by is None:
        return missing_text(prompt_check, rule.rule) or "no probe was answered"
    text = _cell_text(rule.decided_by, prompt_check, terms, name_rule=False)
    if rule.comparison is None or not rule.comparison.fell:
        return text
    return f"{text}; fell against the earlier run, {_fall_text(rule.comparison)}"


def rule_sentence(rule: RuleCheck, prompt_check: PromptCheck, terms: Terms) -> str:
    """One line on a rule of a prompt: the evidence and the number of conversations."""
    bar = terms.min_stability
    evidence = rule_text(rule, prompt_check, terms)
    conversations = count_of(len(prompt_check.records), "conversation")
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
    if fallen_rules := [rule for rule in comparison.rules if rule.fell]:
        rules = "; ".join(map(_rule_comparison_text, fallen_rules))
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
        count_alike = "all"
    else:
        count_alike = f"{comparison.alike:,}" if comparison.alike else "none"
    pairs = count_of(comparison.pairs, "pair")
    return f"over {pairs} of conversations, {count_alike} of them with the same draws"


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
