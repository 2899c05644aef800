"""The output of `holdfast check`: a verdict per prompt with its reason, details and totals."""

import math
import textwrap
from collections import Counter
from collections.abc import Sequence

from holdfast.analysis.check_verdicts import cell_verdict
from holdfast.analysis.sequential import FAIL, PASS, UNDECIDED
from holdfast.analysis.unscored import WITHOUT_SCORE
from holdfast.plurals import count_of
from holdfast.records import Conversation, Probe
from holdfast.records.check_records import (
    CheckedCell,
    PromptAgainstEarlierRun,
    PromptCheck,
    RuleAgainstEarlierRun,
    RuleCheck,
    Terms,
)
from holdfast.report.run_title import nothing_measured
from holdfast.report.wording import WIDTH, wrapped

NO_CLEAR_FAILURE = "no clear failure"
UNAVAILABLE = "unavailable"
_MAX_CONVERSATIONS_SHOWN = 3  # that JUnit shows per broken rule
_BLOCKS = "▁▂▃▄▅▆▇█"  # for scores from 0 to 1
_MARGIN = 10  # columns left of quoted text: two spaces, the speaker in seven, and a space
_ROUNDING = 1e-6  # in hundredths


def verdict_word(checked: PromptCheck, terms: Terms) -> str:
    """The verdict on a prompt in a word.

    An undecided verdict has a word of its own after an outage or a smoke test.
    """
    if checked.verdict == PASS and terms.smoke and terms.min_stability is None:
        return NO_CLEAR_FAILURE  # the few pairs of a smoke test cannot show that nothing fell
    if checked.verdict != UNDECIDED:
        return checked.verdict
    if checked.unavailable:
        return UNAVAILABLE
    return NO_CLEAR_FAILURE if terms.smoke and checked.lowest is not None else UNDECIDED


def lines_of(checks: Sequence[PromptCheck], terms: Terms) -> list[str]:
    """The verdicts, one per line, then details of prompts that do not pass, and the totals."""
    words = {checked.id: verdict_word(checked, terms) for checked in checks}
    word_width = max(map(len, words.values()))
    id_width = max(map(len, words))
    lines = [
        f"{words[checked.id].upper().ljust(word_width)}  {checked.id.ljust(id_width)}"
        f"  {sentence(checked, terms)}"
        for checked in checks
    ]
    for checked in checks:
        if checked.verdict != PASS and words[checked.id] != NO_CLEAR_FAILURE:
            title = f"{words[checked.id].upper()} {checked.id}"
            lines += ["", title, "-" * len(title), *details(checked)]
    return [*lines, "", totals(checks, terms), *caveats(checks, terms)]


def caveats(checks: Sequence[PromptCheck], terms: Terms) -> list[str]:
    """Says what undecided verdicts do not show after an outage or a smoke test; [] otherwise."""
    sentences = []
    if unavailable := [checked for checked in checks if checked.unavailable]:
        lost = sum(checked.lost for checked in unavailable)
        asked = sum(len(checked.records) * len(checked.cells) for checked in unavailable)
        sentences.append(
            f"Unavailable: {lost:,} of {asked:,} replies were lost, as the server failed or a"
            " filter withheld them. This says nothing about the prompts; repeat the check with"
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
    verdicts: list[str] = [checked.verdict for checked in checks]
    words = {FAIL: "failed", UNDECIDED: "undecided", PASS: "passed"}
    if terms is not None:
        verdicts = [verdict_word(checked, terms) for checked in checks]
        words |= {NO_CLEAR_FAILURE: "without a clear failure", UNAVAILABLE: "unavailable"}
    counts = [
        (verdicts.count(verdict), word) for verdict, word in words.items() if verdict in verdicts
    ]
    (count, word), *others = counts
    first = f"{count} of {count_of(len(checks), 'prompt')} {word}"
    return ", ".join([first, *(f"{count} {word}" for count, word in others)])


def totals(checks: Sequence[PromptCheck], terms: Terms) -> str:
    """How many prompts fail, are undecided and pass, and by which criterion."""
    counts = count_verdicts(checks, terms)
    error = percentage(terms.error)
    if terms.min_stability is None:
        return (
            f"{counts} (each rule compared with an earlier run; chance of any false alarm at most"
            f" {error})."
        )
    if all(checked.verdict == UNDECIDED for checked in checks):
        return f"{counts} (bar: {terms.min_stability:g} for every rule in every round)."
    return (
        f"{counts} (bar: {terms.min_stability:g} for every rule in every round; chance of any wrong"
        f" verdict at most {error})."
    )


def percentage(share: float) -> str:
    """'5%', '0.5%'."""
    return f"{100 * share:g}%"


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


def details(checked: PromptCheck) -> list[str]:
    """A prompt's stability by round, the comparison with an earlier run, and the worst dialog."""
    lines = ["stability by round:"]
    if checked.rules:
        by_round = [_by_round(checked, rule.rule) for rule in checked.rules]
        width = max(map(len, by_round))
        for line, rule in zip(by_round, checked.rules, strict=True):
            lines.append(f"{line.ljust(width)}  {rule.verdict}")
    else:
        lines.append(_by_round(checked, None))
    if checked.comparison is not None:
        lines += wrapped([comparison_text(checked.comparison)])
    if missing := missing_text(checked):
        lines += wrapped([f"{missing}."])
    return lines + _worst_conversations(checked, _cell_to_show(checked), 1)


def _cell_to_show(checked: PromptCheck) -> CheckedCell | None:
    """The cell that best explains the verdict; None if nothing was measured."""
    if checked.first_failure is not None:
        return checked.first_failure
    if checked.comparison is not None and checked.comparison.fell:
        return _cell_at(checked, checked.comparison.rules[0])
    return checked.lowest


def rule_details(rule: RuleCheck, checked: PromptCheck) -> list[str]:
    """The stability of a prompt's rule by round, and its worst conversations."""
    cell = rule.decided_by
    if rule.comparison is not None and rule.comparison.fell:
        cell = _cell_at(checked, rule.comparison)
    worst = _worst_conversations(checked, cell, _MAX_CONVERSATIONS_SHOWN)
    return ["stability by round:", _by_round(checked, rule.rule), *worst]


def _by_round(checked: PromptCheck, rule: str | None) -> str:
    """'  ▇▅▃  0.90 0.71 0.42  brief'; `rule` is None for a prompt without separate rules."""
    means = [cell.mean for cell in checked.cells if cell.rule == rule]
    blocks = "".join(" " if mean is None else _BLOCKS[min(int(8 * mean), 7)] for mean in means)
    numbers = " ".join("–" if mean is None else f"{mean:.2f}" for mean in means)
    line = f"  {blocks}  {numbers}"
    return line if rule is None else f"{line}  {rule}"


def _worst_conversations(checked: PromptCheck, cell: CheckedCell | None, most: int) -> list[str]:
    """Quotes the conversations that broke a cell's rule in its round, the lowest score first.

    Returns [] if there is no cell.
    """
    if cell is None:
        return []
    place = ("stability", cell.round, cell.rule)
    broken = [
        (probe.score, index, probe)
        for index, record in enumerate(checked.records)
        for probe in record.probes
        if (probe.kind, probe.round, probe.rule) == place and probe.score < 1
    ]
    lines: list[str] = []
    for _, index, probe in sorted(broken, key=lambda item: item[:2])[:most]:
        lines += _transcript(checked.records[index], probe)
    return lines


def _transcript(record: Conversation, probe: Probe) -> list[str]:
    lines = [f"conversation {record.conversation}, up to the probe of round {probe.round}:"]
    lines += _quote("system", record.agent.system_prompt)
    for turn in record.turns:
        if turn.round < probe.round:
            lines += _quote(turn.speaker, turn.text)
    lines += _quote("probe", probe.question)
    lines += _quote("reply", probe.reply)
    lines += _quote("score", f"{probe.score:.2f}: {probe.reason}")
    return lines


def _cell_at(checked: PromptCheck, comparison: RuleAgainstEarlierRun) -> CheckedCell:
    """The cell in which a rule fell most."""
    place = (comparison.rule, comparison.round)
    return next(cell for cell in checked.cells if (cell.rule, cell.round) == place)


def _quote(speaker: str, text: str) -> list[str]:
    """Wraps text into lines with a margin, where the first line names the speaker."""
    lines: list[str] = []
    for paragraph in text.splitlines() or [""]:
        lines += textwrap.wrap(paragraph, WIDTH - _MARGIN) or [""]
    names = [speaker] + [""] * (len(lines) - 1)
    return [f"  {name:>7} {line}".rstrip() for name, line in zip(names, lines, strict=True)]
