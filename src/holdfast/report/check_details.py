"""The output of `holdfast check`: a verdict per prompt, and details of those that do not pass.

FAIL  bot  below 0.9 in round 3, rule brief: 0.42 [0.31, 0.55] (8 conversations)

FAIL bot
--------
stability by round:
  ▇▅▃  0.90 0.71 0.42  brief  fail
conversation 5, up to the probe of round 3:
...
"""

import textwrap
from collections.abc import Sequence

from holdfast.analysis.sequential import PASS
from holdfast.records import Conversation, Probe
from holdfast.records.check_records import (
    CheckedCell,
    PromptCheck,
    RuleAgainstEarlierRun,
    RuleCheck,
    Terms,
)
from holdfast.report.check_sentences import (
    caveat_lines,
    comparison_text,
    missing_text,
    totals_sentence,
    verdict_sentence,
    verdict_word,
)
from holdfast.report.wording import WIDTH, wrapped

_MAX_CONVERSATIONS_SHOWN = 3  # that JUnit shows per broken rule
_BLOCKS = "▁▂▃▄▅▆▇█"  # for scores from 0 to 1
_MARGIN = 10  # columns left of quoted text: two spaces, the speaker in seven, and a space


def verdict_lines(checks: Sequence[PromptCheck], terms: Terms) -> list[str]:
    """The verdicts, one per line, then details of prompts that do not pass, and the totals.

    The details of a smoke test are only on its page.
    """
    words = {prompt_check.id: verdict_word(prompt_check, terms) for prompt_check in checks}
    word_width = max(map(len, words.values()))
    id_width = max(map(len, words))
    lines = [
        f"{words[prompt_check.id].upper().ljust(word_width)}  {prompt_check.id.ljust(id_width)}"
        f"  {verdict_sentence(prompt_check, terms)}"
        for prompt_check in checks
    ]
    if not terms.smoke:
        for prompt_check in checks:
            if prompt_check.verdict != PASS:
                title = f"{words[prompt_check.id].upper()} {prompt_check.id}"
                lines += ["", title, "-" * len(title), *prompt_details(prompt_check)]
    return [*lines, "", totals_sentence(checks, terms), *caveat_lines(checks, terms)]


def prompt_details(prompt_check: PromptCheck) -> list[str]:
    """A prompt's stability by round, the comparison with an earlier run, and the worst dialog."""
    lines = ["stability by round:"]
    if prompt_check.rules:
        lines_by_round = [_stability_line(prompt_check, rule.rule) for rule in prompt_check.rules]
        width = max(map(len, lines_by_round))
        for line, rule in zip(lines_by_round, prompt_check.rules, strict=True):
            lines.append(f"{line.ljust(width)}  {rule.verdict}")
    else:
        lines.append(_stability_line(prompt_check, None))
    if prompt_check.comparison is not None:
        lines += wrapped([comparison_text(prompt_check.comparison)])
    if missing_scores := missing_text(prompt_check):
        lines += wrapped([f"{missing_scores}."])
    return lines + _worst_conversations(prompt_check, _cell_to_show(prompt_check), 1)


def _cell_to_show(prompt_check: PromptCheck) -> CheckedCell | None:
    """The cell that best explains the verdict; None if nothing was measured."""
    if prompt_check.first_failure is not None:
        return prompt_check.first_failure
    if prompt_check.comparison is not None and prompt_check.comparison.fell:
        return _cell_at(prompt_check, prompt_check.comparison.rules[0])
    return prompt_check.lowest


def rule_details(rule: RuleCheck, prompt_check: PromptCheck) -> list[str]:
    """The stability of a prompt's rule by round, and its worst conversations."""
    cell = rule.decided_by
    if rule.comparison is not None and rule.comparison.fell:
        cell = _cell_at(prompt_check, rule.comparison)
    worst = _worst_conversations(prompt_check, cell, _MAX_CONVERSATIONS_SHOWN)
    return ["stability by round:", _stability_line(prompt_check, rule.rule), *worst]


def _stability_line(prompt_check: PromptCheck, rule: str | None) -> str:
    """'  ▇▅▃  0.90 0.71 0.42  brief'; `rule` is None for a prompt without separate rules."""
    means = [cell.mean for cell in prompt_check.cells if cell.rule == rule]
    blocks = "".join(" " if mean is None else _BLOCKS[min(int(8 * mean), 7)] for mean in means)
    numbers = " ".join("–" if mean is None else f"{mean:.2f}" for mean in means)
    line = f"  {blocks}  {numbers}"
    return line if rule is None else f"{line}  {rule}"


def _worst_conversations(
    prompt_check: PromptCheck, cell: CheckedCell | None, max_shown: int
) -> list[str]:
    """Quotes the conversations that broke a cell's rule in its round, the lowest score first.

    Returns [] if there is no cell.
    """
    if cell is None:
        return []
    probe_of_cell = ("stability", cell.round, cell.rule)
    broken_probes = [
        (probe.score, index, probe)
        for index, record in enumerate(prompt_check.records)
        for probe in record.probes
        if (probe.kind, probe.round, probe.rule) == probe_of_cell and probe.score < 1
    ]
    lines: list[str] = []
    for _, index, probe in sorted(broken_probes, key=lambda item: item[:2])[:max_shown]:
        lines += _transcript(prompt_check.records[index], probe)
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


def _cell_at(prompt_check: PromptCheck, comparison: RuleAgainstEarlierRun) -> CheckedCell:
    """The cell in which a rule fell most."""
    key = (comparison.rule, comparison.round)
    return next(cell for cell in prompt_check.cells if (cell.rule, cell.round) == key)


def _quote(speaker: str, text: str) -> list[str]:
    """Wraps text into lines with a margin, where the first line names the speaker."""
    lines: list[str] = []
    for paragraph in text.splitlines() or [""]:
        lines += textwrap.wrap(paragraph, WIDTH - _MARGIN) or [""]
    names = [speaker] + [""] * (len(lines) - 1)
    return [f"  {name:>7} {line}".rstrip() for name, line in zip(names, lines, strict=True)]
