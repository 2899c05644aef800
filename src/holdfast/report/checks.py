"""What `holdfast check` says of prompts: a line each, and of those that fail, where and how."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

from holdfast.analysis.checks import FAIL, PASS, UNDECIDED, Cell, Fall, PromptCheck, Terms

_WIDTH = 100
_NOISE = 1e-6  # of a hundredth
_MARKS = {PASS: "PASS", FAIL: "FAIL", UNDECIDED: "????"}
_BLOCKS = "▁▂▃▄▅▆▇█"  # a score from 0 to 1


def lines_of(checks: Sequence[PromptCheck], terms: Terms) -> list[str]:
    """The verdicts, one line each, and below them what does not pass, in full."""
    width = max(len(checked.id) for checked in checks)
    lines = [
        f"{_MARKS[checked.verdict]}  {checked.id.ljust(width)}  {sentence(checked, terms)}"
        for checked in checks
    ]
    for checked in checks:
        if checked.verdict != PASS:
            title = f"{_MARKS[checked.verdict]} {checked.id}"
            lines += ["", title, "-" * len(title), *details(checked)]
    return [*lines, "", totals(checks, terms)]


def totals(checks: Sequence[PromptCheck], terms: Terms) -> str:
    """How many prompts pass, fail and are undecided, and by what; the page begins with it too."""
    counts = [
        (sum(checked.verdict == verdict for checked in checks), word)
        for verdict, word in ((PASS, "pass"), (FAIL, "fail"), (UNDECIDED, "undecided"))
    ]
    told = ", ".join(f"{count} {word}" for count, word in counts if count)
    return (
        f"{told}: {_prompts(len(checks))}, stability of at least {terms.min_stability:g} in every"
        f" round; any verdict wrong with a probability of at most {terms.error:g}."
    )


def sentence(checked: PromptCheck, terms: Terms) -> str:
    """One line on a prompt: the verdict's reason, and the conversations that it took."""
    count = len(checked.records)
    after = f"{count} conversation{'' if count == 1 else 's'}"
    if checked.let_go is not None:
        return f"{after}: below {terms.min_stability:g} in {cell_text(checked.let_go)}"
    if checked.fall is not None and checked.fall.fell:
        return f"{after}: {fall_text(checked.fall)}"
    if checked.lowest is None:
        return f"{after}: no probe was answered"
    extent = f"lowest in {cell_text(checked.lowest)}"
    return f"{after}: {extent}"


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
    if fall.round is None:
        return "nothing to compare with the earlier run"
    word = "fell" if fall.fell else "has not certainly fallen"
    return (
        f"{word} against the earlier run, most in round {fall.round}: {fall.before:.2f} to"
        f" {fall.now:.2f} ({fall.pairs} pairs, {fall.alike} of them with the same draws)"
    )


def details(checked: PromptCheck) -> list[str]:
    """Of a prompt: stability by round, the comparison, and a conversation in which it let go."""
    lines = ["stability by round:"]
    rules = list(dict.fromkeys(cell.rule for cell in checked.cells))
    for rule in rules:
        means = [cell.mean for cell in checked.cells if cell.rule == rule]
        name = "" if rule is None else f"  {rule}"
        lines.append(f"  {_spark(means)}  {' '.join(f'{mean:.2f}' for mean in means)}{name}")
    if checked.fall is not None:
        lines += textwrap.wrap(fall_text(checked.fall), _WIDTH)
    if checked.unanswered:
        lines.append(f"{checked.unanswered} probes were not asked or not answered.")
    return lines + _transcript(checked)


def _transcript(checked: PromptCheck) -> list[str]:
    """The first conversation that scores least where the prompt is weakest, up to that probe."""
    cell = checked.let_go or checked.lowest
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


def _prompts(count: int) -> str:
    return f"{count} prompt{'' if count == 1 else 's'}"
