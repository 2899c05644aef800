"""The sentences of `holdfast check`: verdicts, reasons and the worst conversations."""

import math
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from holdfast.analysis.check_verdicts import Cell, PromptCheck, RuleCheck, Terms
from holdfast.analysis.prompt_comparison import PromptComparison, RuleComparison
from holdfast.analysis.sequential import FAIL, PASS, UNDECIDED
from holdfast.analysis.unscored import WITHOUT_SCORE
from holdfast.records import Conversation, Probe
from holdfast.report.sentences import nothing_measured
from holdfast.report.wording import count_of

_WIDTH = 100
_MOST_SHOWN = 3  # most conversations that JUnit shows per broken rule
_NOISE = 1e-6  # rounding tolerance, in hundredths
_BLOCKS = "▁▂▃▄▅▆▇█"  # for scores from 0 to 1

# the mean of a rule in a round, and what its interval says
_MEAN = "{where}: {mean}"
_LOW_SINCE = "{where}: {mean}, low since round {since}"
_LOW_ALONE = (
    "{where}: {mean} (below {bar:g} on its own, but not yet certain as one of {count} comparisons)"
)
_LOW_ALONE_SINCE = (
    "{where}: {mean}, low since round {since} (below {bar:g} on its own, but not yet certain as one"
    " of {count} comparisons)"
)

# a prompt compared with an earlier run
_SAME_DRAWS = "with the same draws"
_PAIRS = f"({{pairs}} of conversations, {{alike}} {_SAME_DRAWS})"
_FELL = f"fell against the earlier run: {{rules}} {_PAIRS}"
_FELL_TOGETHER = (
    f"fell against the earlier run, though no rule certainly by itself: {{rules}} {_PAIRS}"
)
_NOT_LOWER = f"no mean is lower than in the earlier run {_PAIRS}"
_NO_CERTAIN_FALL = f"no certain fall against the earlier run: {{rules}} {_PAIRS}"

NO_CLEAR_FAILURE, UNAVAILABLE = "no clear failure", "unavailable"
_UNAVAILABLE = (
    "Unavailable: {lost} of {asked} replies were lost, as the server failed or a filter withheld"
    " them. This says nothing about the prompts; repeat the check with another --out."
)
_SMOKE = (
    "A smoke test finds only clear failures, so this does not show that the prompts hold; the check"
    " without --smoke can."
)
_HOW_TO_DECIDE = (
    "Undecided after at most {budget} conversations: raise --budget, or give a --min-stability"
    " further from {mean:.2f}."
)


def verdict_word(checked: PromptCheck, terms: Terms) -> str:
    """The verdict on a prompt in a word: an open one of an outage or a smoke test says which."""
    if checked.verdict == PASS and terms.smoke and terms.min_stability is None:
        return NO_CLEAR_FAILURE  # the few pairs of a smoke test cannot show that nothing fell
    if checked.verdict != UNDECIDED:
        return checked.verdict
    if checked.unavailable:
        return UNAVAILABLE
    return NO_CLEAR_FAILURE if terms.smoke and checked.lowest is not None else UNDECIDED


def lines_of(checks: Sequence[PromptCheck], terms: Terms) -> list[str]:
    """The verdicts, one per line, then details of prompts that do not pass, and the totals."""
    width = max(len(checked.id) for checked in checks)
    words = {checked.id: verdict_word(checked, terms) for checked in checks}
    room = max(map(len, words.values()))
    lines = [
        f"{words[checked.id].upper().ljust(room)}  {checked.id.ljust(width)}"
        f"  {sentence(checked, terms)}"
        for checked in checks
    ]
    for checked in checks:
        if checked.verdict != PASS and words[checked.id] != NO_CLEAR_FAILURE:
            title = f"{words[checked.id].upper()} {checked.id}"
            lines += ["", title, "-" * len(title), *details(checked)]
    return [*lines, "", totals(checks, terms), *caveats(checks, terms)]


def caveats(checks: Sequence[PromptCheck], terms: Terms) -> list[str]:
    """The limits of open verdicts: those of an outage, and those of a smoke test."""
    lines = []
    if gone := [checked for checked in checks if checked.unavailable]:
        lost = sum(checked.lost for checked in gone)
        asked = sum(len(checked.records) * len(checked.cells) for checked in gone)
        lines.append(_UNAVAILABLE.format(lost=f"{lost:,}", asked=f"{asked:,}"))
    if terms.smoke and any(verdict_word(one, terms) == NO_CLEAR_FAILURE for one in checks):
        lines.append(_SMOKE)
    return [part for line in lines for part in textwrap.wrap(line, _WIDTH)]


def counted(checks: Sequence[PromptCheck], terms: Terms | None = None) -> str:
    """'1 of 3 prompts failed, 2 passed'."""
    verdicts = [checked.verdict for checked in checks]
    words = {FAIL: "failed", UNDECIDED: "undecided", PASS: "passed"}
    if terms is not None:
        verdicts = [verdict_word(checked, terms) for checked in checks]
        words |= {NO_CLEAR_FAILURE: "without a clear failure", UNAVAILABLE: "unavailable"}
    counts = {word: verdicts.count(verdict) for verdict, word in words.items()}
    first, *others = ((count, word) for word, count in counts.items() if count)
    parts = [f"{count} {word}" for count, word in others]
    return ", ".join([f"{first[0]} of {count_of(len(checks), 'prompt')} {first[1]}", *parts])


def totals(checks: Sequence[PromptCheck], terms: Terms) -> str:
    """How many prompts fail, are undecided and pass, and by which criterion."""
    counts, error = counted(checks, terms), percentage(terms.error)
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
    """The reason for a verdict and its cost: '(decided after 3 of 8 conversations)'."""
    evidence = reason(checked, terms)
    if checked.verdict == UNDECIDED and any(math.isnan(cell.mean) for cell in checked.cells):
        evidence = f"{evidence}; {missing_text(checked)}" if checked.lowest else evidence
    conversations = count_of(len(checked.records), "conversation")
    if checked.decided_after < len(checked.records):
        conversations = f"decided after {checked.decided_after} of {conversations}"
    if evidence.endswith(f"{_SAME_DRAWS})"):
        return f"{evidence.removesuffix(')')}; {conversations})"
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


def _cell_text(cell: Cell, checked: PromptCheck, terms: Terms, with_rule: bool = True) -> str:
    """'round 3, rule brief: 0.42 [0.31, 0.55], low since round 2'."""
    where = f"round {cell.round}"
    if with_rule and cell.rule is not None:
        where = f"round {cell.round}, rule {cell.rule}"
    bar, since = terms.min_stability, _low_since(cell, checked, terms)
    alone = bar is not None and checked.verdict == UNDECIDED and cell.verdict(bar) == FAIL
    if alone:
        template = _LOW_ALONE if since is None else _LOW_ALONE_SINCE
    else:
        template = _MEAN if since is None else _LOW_SINCE
    mean = numbers_text(cell)
    return template.format(where=where, mean=mean, since=since, bar=bar, count=len(checked.cells))


def _low_since(cell: Cell, checked: PromptCheck, terms: Terms) -> int | None:
    """The round from which the mean was below the bar, if that is before it was certain."""
    if terms.min_stability is None or cell.verdict(terms.min_stability) != FAIL:
        return None
    first = cell.round
    before = [other for other in checked.cells if other.rule == cell.rule]
    for earlier in reversed(before[: before.index(cell)]):
        if not earlier.mean < terms.min_stability:
            break
        first = earlier.round
    return first if first < cell.round else None


def missing_text(checked: PromptCheck, rule: str | None = None) -> str:
    """How many scores of a prompt, or of one of its rules, there are not, and why; "" if none."""
    probes = [
        (row, probe)
        for row, record in enumerate(checked.records)
        for probe in record.unscored
        if probe.kind == "stability" and rule in (None, probe.rule)
    ]
    reasons = Counter(probe.why for _, probe in probes)
    parts = [f"{count:,} {WITHOUT_SCORE[why]}" for why, count in reasons.most_common()]
    cells = {(row, probe.rule, probe.round) for row, probe in probes}
    others = checked.unanswered - len(cells) if rule is None else 0
    if others > 0:
        parts.append(f"{others:,} were not asked or not answered")
    return f"not judged: {', '.join(parts)}" if parts else ""


def rule_text(rule: RuleCheck, checked: PromptCheck, terms: Terms) -> str:
    """The evidence behind the verdict on one rule of a prompt."""
    if rule.cell is None:
        return missing_text(checked, rule.rule) or "no probe was answered"
    text = _cell_text(rule.cell, checked, terms, with_rule=False)
    if rule.comparison is None or not rule.comparison.fell:
        return text
    most = _rule_comparison_text(replace(rule.comparison, rule=None))
    return f"{text}; fell against the earlier run, {most}"


def rule_sentence(rule: RuleCheck, checked: PromptCheck, terms: Terms) -> str:
    """One line on a rule of a prompt: the evidence and the number of conversations."""
    bar, evidence = terms.min_stability, rule_text(rule, checked, terms)
    conversations = count_of(len(checked.records), "conversation")
    if rule.cell is None:
        return f"{evidence} ({conversations})"
    if bar is not None and rule.verdict == FAIL == rule.cell.verdict(bar):
        return f"below {bar:g} in {evidence} ({conversations})"
    return f"lowest in {evidence} ({conversations})"


def numbers_text(cell: Cell) -> str:
    """'0.86 [0.71, 0.94]'; the ends are rounded outwards, so as not to overstate a verdict."""
    if math.isnan(cell.mean):
        return "not answered"
    low, high = math.floor(100 * cell.low + _NOISE), math.ceil(100 * cell.high - _NOISE)
    return f"{cell.mean:.2f} [{low / 100:.2f}, {high / 100:.2f}]"


def comparison_text(comparison: PromptComparison) -> str:
    """The result of the comparison with an earlier run."""
    result = _result_of(comparison)
    if comparison.not_compared:
        return f"{result}; not compared: {', '.join(comparison.not_compared)}"
    return result


def _result_of(comparison: PromptComparison) -> str:
    if not comparison.rules:
        return "nothing to compare with the earlier run"
    shown = [rule for rule in comparison.rules if rule.fell]
    if shown:
        template = _FELL
    else:
        shown = [comparison.rules[0]]  # the largest fall
        if comparison.fell:
            template = _FELL_TOGETHER
        elif shown[0].now >= shown[0].before:
            template = _NOT_LOWER
        else:
            template = _NO_CERTAIN_FALL
    return template.format(
        rules="; ".join(map(_rule_comparison_text, shown)),
        pairs=count_of(comparison.pairs, "pair"),
        alike=comparison.alike,
    )


def _rule_comparison_text(comparison: RuleComparison) -> str:
    """'rule brief, most in round 3, from 0.86 to 0.40'."""
    means = f"from {comparison.before:.2f} to {comparison.now:.2f}"
    most = f"most in round {comparison.round}, {means}"
    return most if comparison.rule is None else f"rule {comparison.rule}, {most}"


def how_to_decide(verdict: str, lowest: Cell | None, terms: Terms) -> str | None:
    """How to decide an undecided verdict with this lowest mean; None otherwise or without a bar."""
    if verdict != UNDECIDED or terms.min_stability is None or lowest is None or terms.smoke:
        return None
    return _HOW_TO_DECIDE.format(budget=terms.budget, mean=lowest.mean)


def details(checked: PromptCheck) -> list[str]:
    """A prompt's stability by round, the comparison, and the worst conversation."""
    names: list[str | None] = [rule.rule for rule in checked.rules] or [None]
    lines = ["stability by round:", *(_by_round(checked, name) for name in names)]
    width = max(map(len, lines[1:]))
    for index, rule in enumerate(checked.rules, start=1):
        lines[index] = f"{lines[index].ljust(width)}  {rule.verdict}"
    if checked.comparison is not None:
        lines += textwrap.wrap(comparison_text(checked.comparison), _WIDTH)
    if missing := missing_text(checked):
        lines += textwrap.wrap(f"{missing}.", _WIDTH)
    cell = checked.first_failure or checked.lowest
    if checked.first_failure is None and checked.comparison is not None and checked.comparison.fell:
        cell = _cell_at(checked, checked.comparison.rules[0])
    return lines + _worst(checked, cell, 1)


def rule_details(rule: RuleCheck, checked: PromptCheck) -> list[str]:
    """The stability of a prompt's rule by round, and its worst conversations."""
    fell = rule.comparison is not None and rule.comparison.fell
    cell = _cell_at(checked, rule.comparison) if fell and rule.comparison else rule.cell
    by_round = ["stability by round:", _by_round(checked, rule.rule)]
    return by_round + _worst(checked, cell, _MOST_SHOWN)


def _by_round(checked: PromptCheck, rule: str | None) -> str:
    means = [cell.mean for cell in checked.cells if cell.rule == rule]
    name = "" if rule is None else f"  {rule}"
    blocks = (" " if mean != mean else _BLOCKS[min(int(8 * mean), 7)] for mean in means)
    numbers = ("–" if mean != mean else f"{mean:.2f}" for mean in means)
    return f"  {''.join(blocks)}  {' '.join(numbers)}{name}"


def _worst(checked: PromptCheck, cell: Cell | None, most: int) -> list[str]:
    """The conversations that broke the rule of a cell in its round, lowest score first."""
    broken = [
        (probe.score, index, probe)
        for index, record in enumerate(checked.records)
        for probe in record.probes
        if cell is not None
        and (probe.kind, probe.round, probe.rule) == ("stability", cell.round, cell.rule)
        and probe.score < 1
    ]
    lines: list[str] = []
    for _, index, probe in sorted(broken, key=lambda item: item[:2])[:most]:
        lines += _transcript(checked.records[index], probe)
    return lines


def _transcript(record: Conversation, probe: Probe) -> list[str]:
    lines = [f"conversation {record.conversation}, up to the probe of round {probe.round}:"]
    lines += _quoted("system", record.agent.system_prompt)
    for turn in record.turns:
        if turn.round < probe.round:
            lines += _quoted(turn.speaker, turn.text)
    lines += [*_quoted("probe", probe.question), *_quoted("reply", probe.reply)]
    return [*lines, *_quoted("score", f"{probe.score:.2f}: {probe.reason}")]


def _cell_at(checked: PromptCheck, comparison: RuleComparison) -> Cell:
    place = comparison.rule, comparison.round
    return next(cell for cell in checked.cells if (cell.rule, cell.round) == place)


def _quoted(who: str, text: str) -> list[str]:
    lines: list[str] = []
    for paragraph in text.splitlines() or [""]:
        lines += textwrap.wrap(paragraph, _WIDTH - 10) or [""]
    return [f"  {who if not row else '':>7} {line}".rstrip() for row, line in enumerate(lines)]
