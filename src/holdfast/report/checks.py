"""What `holdfast check` says of prompts: a line each, and of those that fail, where and how."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from holdfast.analysis.checks import (
    FAIL,
    PASS,
    UNDECIDED,
    Cell,
    Fall,
    PromptCheck,
    RuleFall,
    Terms,
)
from holdfast.analysis.rule_checks import RuleCheck, rules_of
from holdfast.report.wording import count_of

_WIDTH = 100
_NOISE = 1e-6  # of a hundredth
_MARKS = {PASS: "PASS", FAIL: "FAIL", UNDECIDED: "UNDECIDED"}
_BLOCKS = "▁▂▃▄▅▆▇█"  # a score from 0 to 1


def lines_of(checks: Sequence[PromptCheck], terms: Terms) -> list[str]:
    """The verdicts, one line each, and below them what does not pass, in full."""
    width = max(len(checked.id) for checked in checks)
    room = max(len(_MARKS[checked.verdict]) for checked in checks)
    lines = [
        f"{_MARKS[checked.verdict].ljust(room)}  {checked.id.ljust(width)}"
        f"  {sentence(checked, terms)}"
        for checked in checks
    ]
    for checked in checks:
        if checked.verdict != PASS:
            title = f"{_MARKS[checked.verdict]} {checked.id}"
            lines += ["", title, "-" * len(title), *details(checked, terms)]
    return [*lines, "", totals(checks, terms)]


def totals(checks: Sequence[PromptCheck], terms: Terms) -> str:
    """How many prompts pass, fail and are undecided, and by what; the page begins with it too."""
    counts = [
        (sum(checked.verdict == verdict for checked in checks), word)
        for verdict, word in ((PASS, "pass"), (FAIL, "fail"), (UNDECIDED, "undecided"))
    ]
    told = ", ".join(f"{count} {word}" for count, word in counts if count)
    said = f"{told}: {count_of(len(checks), 'prompt')}"
    if terms.min_stability is None:
        return (
            f"{said} compared with an earlier run, rule by rule; the probability that any is said"
            f" to have fallen and has not is at most {terms.error:g}."
        )
    said += f", stability of at least {terms.min_stability:g} in every round"
    if all(checked.verdict == UNDECIDED for checked in checks):
        return f"{said}."
    return f"{said}; any verdict wrong with a probability of at most {terms.error:g}."


def sentence(checked: PromptCheck, terms: Terms) -> str:
    """One line on a prompt: the verdict's reason, and the conversations that it took."""
    return f"{when_decided(checked)}: {reason(checked, terms)}"


def when_decided(checked: PromptCheck) -> str:
    """'decided after 3 conversations; numbers are of all 8', or '8 conversations' where the verdict
    took all, or there is none.
    """
    return f"{'decided after ' if _decided_early(checked) else ''}{spent(checked)}"


def spent(checked: PromptCheck) -> str:
    """'3 conversations; numbers are of all 8': what a verdict took, and what is described."""
    count = checked.decided_after
    of_all = f"; numbers are of all {len(checked.records)}" if _decided_early(checked) else ""
    return f"{count_of(count, 'conversation')}{of_all}"


def _decided_early(checked: PromptCheck) -> bool:
    return checked.decided_after < len(checked.records)


def reason(checked: PromptCheck, terms: Terms) -> str:
    """What decides on a prompt."""
    if checked.let_go is not None:
        low_before = already_low(checked, checked.let_go, terms)
        others = [
            rule.rule
            for rule in rules_of(checked, terms.min_stability)
            if rule.verdict == FAIL and rule.rule != checked.let_go.rule
        ]
        too = f"; also below it: {', '.join(others)}" if others else ""
        return f"below {terms.min_stability:g} in {cell_text(checked.let_go)}{low_before}{too}"
    if checked.fall is not None and (checked.fall.fell or terms.min_stability is None):
        return fall_text(checked.fall)
    if checked.lowest is None:
        return "no probe was answered"
    lowest = f"lowest in {cell_text(checked.lowest)}{by_itself(checked, checked.lowest, terms)}"
    if terms.min_stability is None:
        return f"the earlier run does not have it, so nothing is compared; {lowest}"
    return lowest


def already_low(checked: PromptCheck, cell: Cell, terms: Terms) -> str:
    """', already low from round 5' where the rule of a cell has a mean below the bar in the rounds
    just before it too, which are not certain by themselves; "" of any other cell.
    """
    if terms.min_stability is None or cell.verdict(terms.min_stability) != FAIL:
        return ""
    first = cell.round
    before = [there for there in checked.cells if there.rule == cell.rule]
    for earlier in reversed(before[: before.index(cell)]):
        if not earlier.mean < terms.min_stability:
            break
        first = earlier.round
    return f", already low from round {first}" if first < cell.round else ""


def by_itself(checked: PromptCheck, cell: Cell, terms: Terms) -> str:
    """Why an interval below the bar does not decide: it is that of one cell alone, and a prompt
    fails where all of its cells together are certain; "" where it decides or holds the bar.
    """
    bar, count = terms.min_stability, len(checked.cells)
    if bar is None or checked.verdict != UNDECIDED or cell.verdict(bar) != FAIL:
        return ""
    return f" (below {bar:g} if it were the only one, but not yet certain as one of {count})"


def cure(checked: PromptCheck | RuleCheck, lowest: Cell | None, terms: Terms) -> str:
    """What would decide on an undecided prompt or rule whose lowest mean is this; "" of any other,
    and without a bar.
    """
    if checked.verdict != UNDECIDED or terms.min_stability is None or lowest is None:
        return ""
    return (
        f"To decide, give a --budget above {terms.budget}, or a --min-stability further from"
        f" {lowest.mean:.2f}."
    )


def rule_text(rule: RuleCheck, checked: PromptCheck, terms: Terms) -> str:
    """What decides on one rule of a prompt."""
    if rule.cell is None:
        return "no probe was answered"
    told = f"round {rule.cell.round}: {numbers_text(rule.cell)}"
    told += already_low(checked, rule.cell, terms)
    told += by_itself(checked, rule.cell, terms)
    if rule.fall is None or not rule.fall.fell:
        return told
    most = rule_fall_text(replace(rule.fall, rule=None))
    return f"{told}; fell against the earlier run, {most}"


def rule_sentence(rule: RuleCheck, checked: PromptCheck, terms: Terms) -> str:
    """One line on a rule of a prompt: what decides, and the conversations that its numbers are
    of.
    """
    bar, where = terms.min_stability, ""
    if rule.cell is not None:
        below = bar is not None and rule.verdict == FAIL == rule.cell.verdict(bar)
        where = f"below {bar:g} in " if below else "lowest in "
    conversations = count_of(len(checked.records), "conversation")
    return f"{conversations}: {where}{rule_text(rule, checked, terms)}"


def cell_text(cell: Cell) -> str:
    """A cell with its mean and interval."""
    of_rule = f", rule {cell.rule}" if cell.rule is not None else ""
    return f"round {cell.round}{of_rule}: {numbers_text(cell)}"


def numbers_text(cell: Cell) -> str:
    """'0.86 [0.71, 0.94]'; the ends are rounded outwards, for a verdict says no more than they."""
    if math.isnan(cell.mean):
        return "not answered"
    low, high = math.floor(100 * cell.low + _NOISE), math.ceil(100 * cell.high - _NOISE)
    return f"{cell.mean:.2f} [{low / 100:.2f}, {high / 100:.2f}]"


def fall_text(fall: Fall) -> str:
    """What the comparison with an earlier run says."""
    if not fall.rules:
        return f"nothing to compare with the earlier run{_not_compared(fall)}"
    compared = count_of(fall.pairs, "pair")
    pairs = f"({compared}, {fall.alike} of them with the same draws){_not_compared(fall)}"
    named = [rule_fall_text(rule) for rule in fall.rules if rule.fell]
    if named:
        return f"fell against the earlier run, {'; '.join(named)} {pairs}"
    most = rule_fall_text(fall.rules[0])
    if fall.fell:
        return f"fell against the earlier run, no rule certainly by itself, {most} {pairs}"
    if fall.rules[0].now >= fall.rules[0].before:
        return f"no mean is lower than in the earlier run {pairs}"
    return f"no certain fall against the earlier run, {most} {pairs}"


def rule_fall_text(fall: RuleFall) -> str:
    """'rule brief, most in round 3: 0.86 to 0.40'."""
    of_rule = f"rule {fall.rule}, " if fall.rule is not None else ""
    return f"{of_rule}most in round {fall.round}: {fall.before:.2f} to {fall.now:.2f}"


def _not_compared(fall: Fall) -> str:
    return f"; not compared: {', '.join(fall.not_compared)}" if fall.not_compared else ""


def details(checked: PromptCheck, terms: Terms) -> list[str]:
    """Of a prompt: what would decide, stability by round, the comparison, and a conversation in
    which it let go.
    """
    lines = [line for line in (cure(checked, checked.lowest, terms),) if line]
    lines.append("stability by round:")
    rules = dict.fromkeys(cell.rule for cell in checked.cells)
    lines += [_by_round(checked, rule) for rule in rules]
    if checked.fall is not None:
        lines += textwrap.wrap(fall_text(checked.fall), _WIDTH)
    if checked.unanswered:
        lines.append(f"{checked.unanswered} probes were not asked or not answered.")
    return lines + _transcript(checked, _told_cell(checked))


def rule_details(rule: RuleCheck, checked: PromptCheck, terms: Terms) -> list[str]:
    """Of one rule of a prompt: what would decide, stability by round, and a conversation in which
    it let go.
    """
    lines = [line for line in (cure(rule, rule.cell, terms),) if line]
    cell = rule.cell
    if rule.fall is not None and rule.fall.fell:
        cell = _cell_at(checked, rule.fall)
    return [
        *lines,
        "stability by round:",
        _by_round(checked, rule.rule),
        *_transcript(checked, cell),
    ]


def _by_round(checked: PromptCheck, rule: str | None) -> str:
    means = [cell.mean for cell in checked.cells if cell.rule == rule]
    name = "" if rule is None else f"  {rule}"
    return f"  {_spark(means)}  {' '.join(f'{mean:.2f}' for mean in means)}{name}"


def _transcript(checked: PromptCheck, cell: Cell | None) -> list[str]:
    """The first conversation that scores least in a cell, up to that probe."""
    asked = [
        (probe["score"], place, probe)
        for place, record in enumerate(checked.records)
        for probe in record["probes"]
        if cell is not None
        and (probe["kind"], probe["round"], probe.get("rule"))
        == ("stability", cell.round, cell.rule)
    ]
    if not asked:
        return []
    score, place, probe = min(asked, key=lambda item: item[:2])
    record = checked.records[place]
    lines = [f"conversation {record['conversation']}, up to the probe of round {probe['round']}:"]
    lines += _said("system", record["agent"].get("system_prompt", ""))
    for turn in record["turns"]:
        if turn["round"] < probe["round"]:
            lines += _said(turn["speaker"], turn["text"])
    lines += [*_said("probe", probe["question"]), *_said("reply", probe["reply"])]
    return [*lines, *_said("score", f"{score:.2f}: {probe['reason']}")]


def _told_cell(checked: PromptCheck) -> Cell | None:
    """The cell that fails, or fell most; else the lowest."""
    if checked.let_go is None and checked.fall is not None and checked.fall.fell:
        return _cell_at(checked, checked.fall.rules[0])
    return checked.let_go or checked.lowest


def _cell_at(checked: PromptCheck, fall: RuleFall) -> Cell:
    """Where a rule fell most."""
    return next(
        cell for cell in checked.cells if (cell.rule, cell.round) == (fall.rule, fall.round)
    )


def _said(who: str, text: Any) -> list[str]:
    """A turn, wrapped behind who speaks."""
    lines: list[str] = []
    for paragraph in str(text).splitlines() or [""]:
        lines += textwrap.wrap(paragraph, _WIDTH - 10) or [""]
    return [f"  {who if not row else '':>7} {line}".rstrip() for row, line in enumerate(lines)]


def _spark(means: Sequence[float]) -> str:
    return "".join(
        " " if mean != mean else _BLOCKS[min(int(mean * len(_BLOCKS)), len(_BLOCKS) - 1)]
        for mean in means
    )
