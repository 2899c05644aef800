"""A checked prompt or rule in detail: its stability by round, and its worst conversations."""

import textwrap

from holdfast.analysis.check_verdicts import PromptCheck, RuleCheck
from holdfast.records import Conversation, Probe
from holdfast.records.run_summary import CheckedCell, RuleComparison
from holdfast.report.check_reasons import comparison_text, missing_text
from holdfast.report.wording import WIDTH

_MAX_CONVERSATIONS_SHOWN = 3  # most conversations that JUnit shows per broken rule
_BLOCKS = "▁▂▃▄▅▆▇█"  # for scores from 0 to 1


def details(checked: PromptCheck) -> list[str]:
    """A prompt's stability by round, the comparison, and the worst conversation."""
    names: list[str | None] = [rule.rule for rule in checked.rules] or [None]
    lines = ["stability by round:", *(_by_round(checked, name) for name in names)]
    width = max(map(len, lines[1:]))
    for index, rule in enumerate(checked.rules, start=1):
        lines[index] = f"{lines[index].ljust(width)}  {rule.verdict}"
    if checked.comparison is not None:
        lines += textwrap.wrap(comparison_text(checked.comparison), WIDTH)
    if missing := missing_text(checked):
        lines += textwrap.wrap(f"{missing}.", WIDTH)
    cell = checked.first_failure or checked.lowest
    if checked.first_failure is None and checked.comparison is not None and checked.comparison.fell:
        cell = _cell_at(checked, checked.comparison.rules[0])
    return lines + _worst(checked, cell, 1)


def rule_details(rule: RuleCheck, checked: PromptCheck) -> list[str]:
    """The stability of a prompt's rule by round, and its worst conversations."""
    fell = rule.comparison is not None and rule.comparison.fell
    cell = _cell_at(checked, rule.comparison) if fell and rule.comparison else rule.cell
    by_round = ["stability by round:", _by_round(checked, rule.rule)]
    return by_round + _worst(checked, cell, _MAX_CONVERSATIONS_SHOWN)


def _by_round(checked: PromptCheck, rule: str | None) -> str:
    means = [cell.mean for cell in checked.cells if cell.rule == rule]
    name = "" if rule is None else f"  {rule}"
    blocks = (" " if mean is None else _BLOCKS[min(int(8 * mean), 7)] for mean in means)
    numbers = ("–" if mean is None else f"{mean:.2f}" for mean in means)
    return f"  {''.join(blocks)}  {' '.join(numbers)}{name}"


def _worst(checked: PromptCheck, cell: CheckedCell | None, most: int) -> list[str]:
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


def _cell_at(checked: PromptCheck, comparison: RuleComparison) -> CheckedCell:
    place = comparison.rule, comparison.round
    return next(cell for cell in checked.cells if (cell.rule, cell.round) == place)


def _quoted(who: str, text: str) -> list[str]:
    lines: list[str] = []
    for paragraph in text.splitlines() or [""]:
        lines += textwrap.wrap(paragraph, WIDTH - 10) or [""]
    return [f"  {who if not row else '':>7} {line}".rstrip() for row, line in enumerate(lines)]
