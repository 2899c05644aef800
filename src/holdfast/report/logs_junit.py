"""The JUnit file of `holdfast logs`."""

from __future__ import annotations

from pathlib import Path

from holdfast.analysis.adherence import Adherence
from holdfast.plurals import count_of
from holdfast.records import Run
from holdfast.records.identity import LogsIdentity
from holdfast.report.junit import JUnitCase, outcome_of, write_cases
from holdfast.report.logs_page import broken_turns
from holdfast.report.logs_sentences import Rows
from holdfast.report.wording import plain, signed

_MAX_TURNS_SHOWN = 3  # most turns that a test case shows


def _facts(row: Adherence, bar: float | None) -> list[str]:
    """The evidence behind the verdict on a rule."""
    if row.is_judged:
        facts = [f"kept {plain(row.overall)}, {row.applied} of {count_of(row.turns, 'turn')}"]
    else:
        facts = [
            "no turn could be judged: where the rule applies, replies were cut or the log does not"
            " show enough"
        ]
    if bar is not None:
        low, high = row.bounds
        facts.append(f"the bar is {bar:g}, the bounds that decide are [{low:.2f}, {high:.2f}]")
    if row.earlier:
        facts.append(f"against {plain(row.earlier.before)}: {signed(row.earlier.difference)}")
    if row.uncompared:
        facts.append(f"not compared, as {row.uncompared}")
    if row.for_probes:
        facts.append("made for the answers to probes, and no `when` says which turns it is for")
    return facts


def write_logs_junit(
    run: Run, rows: Rows, bar: float | None, path: Path | str, seconds: float
) -> Path:
    """Writes the verdicts as JUnit XML: a test case for each rule; undecided is an error."""
    suite = run.identity_as(LogsIdentity).suite
    cases = []
    for row in rows:
        prompt, _, rule = row.rule.partition("/")
        broken = broken_turns(run, row)[:_MAX_TURNS_SHOWN]
        text = "\n".join(f"{turn.where}: {turn.reason}" for turn in broken)
        classname = f"holdfast.{suite}.{prompt}"
        message = "; ".join(_facts(row, bar))
        cases.append(JUnitCase(classname, rule or prompt, outcome_of(row.verdict), message, text))
    return write_cases(f"holdfast logs {suite}", cases, path, seconds)
