"""A checked prompt or rule in detail: its stability by round, and its worst conversations."""

import textwrap

from holdfast.analysis.check_verdicts import PromptCheck
from holdfast.records import Conversation, Probe
from holdfast.records.run_summary import CheckedCell, RuleAgainstEarlierRun, RuleCheck
from holdfast.report.check_reasons import comparison_text, missing_text
from holdfast.report.wording import WIDTH, wrapped

_MAX_CONVERSATIONS_SHOWN = 3  # that JUnit shows per broken rule
_BLOCKS = "▁▂▃▄▅▆▇█"  # for scores from 0 to 1
_MARGIN = 10  # columns left of quoted text: two spaces, the speaker in seven, and a space


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
