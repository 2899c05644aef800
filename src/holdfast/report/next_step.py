"""The one thing to do next, by what a run found."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.analysis.comparisons import overall_change
from holdfast.analysis.rules import rule_rows
from holdfast.analysis.series import Series
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.verdicts import MIN_SAMPLES, tell
from holdfast.records import RunData, command_of
from holdfast.report.collapse import collapse_cures
from holdfast.report.sentences import best_fix

_MATTERS = 0.1  # a smaller change is no drift worth a name
_MOST = 100  # times as many conversations: beyond, nobody wants to know how many
_FIRST_FIX = "split-softmax:exponent=0.5"
_LOADING = ("--device", "--device-map", "--dtype", "--trust-remote-code")


@dataclass(frozen=True)
class Finding:
    """A run as far as its next step depends on it.

    Attributes:
        model: the options that load it, each behind a space: " --model smollm2".
        suite: as a command takes it.
        endpoint: whether another program runs the model, which `holdfast serve` does not load.
        replayed: whether the conversations are recorded dialogs, whose number is given.
        scripted: whether the user's messages are given, so that no reply can derail them.
        conversations, rounds: of the first series.
        drifts: whether its stability clearly falls.
        is_steady: whether a fall of 10 points or more is ruled out.
        never_followed: rules that no method of the run makes the agent follow.
        fix: the best method of those tried; "" where none was.
        helps: whether it clearly does.
        needed: about how many conversations would tell what this run cannot; None where nobody
            would hold so many.
        cures: against conversations that break down; () where they do not.
    """

    model: str = ""
    suite: str = "starter"
    endpoint: bool = False
    replayed: bool = False
    scripted: bool = False
    conversations: int = MIN_SAMPLES
    rounds: int = 8
    drifts: bool = False
    is_steady: bool = False
    never_followed: tuple[str, ...] = ()
    fix: str = ""
    helps: bool = False
    needed: int | None = None
    cures: tuple[str, ...] = ()


def next_step(finding: Finding) -> str:
    """One sentence that says what to do next."""
    more = "replay {} dialogs" if finding.replayed else "repeat the command with --conversations {}"
    if finding.cures and not (finding.helps and finding.scripted):
        return f"Next: {', and '.join(finding.cures)}, so that the conversations do not break down."
    if finding.conversations < MIN_SAMPLES:
        return f"Next: {more.format(MIN_SAMPLES)}, the fewest for a verdict."
    if finding.rounds < 2:
        return "Next: use --rounds 8; one round cannot show drift."
    if finding.never_followed:
        names = " and ".join(f"“{name}”" for name in finding.never_followed[:2])
        rest = len(finding.never_followed) - 2
        names += f" and {rest} more" if rest > 0 else ""
        return f"Next: reword the prompt or use another model, for the agent never follows {names}."
    if finding.helps and finding.endpoint:
        return f"Next: send {finding.fix} with every request to your server (docs/serving.md)."
    if finding.helps:
        command = f"holdfast serve{finding.model} --default-method {shlex.quote(finding.fix)}"
        return f"Next: serve the model with this fix: {command}"
    if finding.drifts and not finding.fix and finding.endpoint:
        return "Next: try a fix; repeat the command with --method repetition:probability=1."
    if finding.drifts and not finding.fix:
        return (
            f"Next: try a fix with --method {_FIRST_FIX}, or search for one:"
            f" holdfast calibrate{finding.model} --suite {finding.suite}"
        )
    if finding.is_steady:
        return (
            f"Next: try a longer conversation with --rounds {2 * finding.rounds}, or hold the"
            f" prompts to a bar: holdfast check {finding.suite}{finding.model} --min-stability 0.9"
        )
    if finding.needed is None:
        return "Next: try other methods; holdfast methods lists them."
    what = "whether this fix helps" if finding.drifts else "whether it drifts"
    return f"Next: {more.format(finding.needed)}; about so many would tell {what}."


def finding_of(run: RunData, series: Sequence[Series]) -> Finding:
    """The facts that the next step of a run depends on.

    Args:
        run: whose manifest has the command.
        series: of the run.
    """
    words = _words(command_of(run.manifest))
    identity = run.manifest.get("identity", {})
    model = _option(words, "--model")
    first, best = series[0], best_fix(series)
    moved = overall_change(first, "stability")
    drifts = tell(moved).sign < 0
    never = [row.rule for row in rule_rows(series) if row.never_followed]
    return Finding(
        model=_options(words, ("--model", *_LOADING)),
        suite=shlex.quote(_option(words, "--suite") or "starter"),
        endpoint=model.startswith(("http://", "https://", "vllm:")),
        replayed="dialogs" in identity,
        scripted=any("scripted" in record for record in first.records),
        conversations=len(first.records),
        rounds=first.rounds,
        drifts=drifts,
        is_steady=moved.low is not None and moved.low > -_MATTERS and not drifts,
        never_followed=tuple(
            rule for rule in dict.fromkeys(never) if never.count(rule) >= len(series)
        ),
        fix=best.series.method if best else "",
        helps=best is not None and tell(best.stability_last).sign > 0,
        needed=_needed(best.stability_last, 0) if best and drifts else _needed(moved, -_MATTERS),
        cures=tuple(collapse_cures(series)),
    )


def _needed(value: Estimate, other: float) -> int | None:
    """How many conversations would tell the difference from 0 or from another value, whichever is
    farther, if mean and spread stay as they are; in tens, and more than there are.
    """
    if value.mean is None or not value.sd:
        return None
    apart = max(abs(value.mean), abs(value.mean - other))
    if tell(value).sign or 1.96 * value.sd > apart * math.sqrt(_MOST * value.n):
        return None
    count = (1.96 * value.sd / apart) ** 2
    return max(10 * math.ceil(count / 10), 10 * (value.n // 10 + 1))


def _words(command: str) -> list[str]:
    """The words of a command; none of a manifest whose command is no shell's."""
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _options(words: Sequence[str], names: Sequence[str]) -> str:
    """Those options of a command as they were given, each behind a space."""
    parts = []
    for name in names:
        value = _option(words, name)
        if value or name in words:
            parts += [name, *([shlex.quote(value)] if value else [])]
    return "".join(f" {part}" for part in parts)


def _option(words: Sequence[str], name: str) -> str:
    """The value of an option, given behind a space or an equals sign; "" where it has none."""
    for at, word in enumerate(words):
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
        if word == name and at + 1 < len(words) and not words[at + 1].startswith("--"):
            return words[at + 1]
    return ""
