"""The JUnit file of `holdfast logs`."""

from __future__ import annotations

from pathlib import Path

from holdfast.plurals import count_of
from holdfast.records import Run
from holdfast.records.identity import LogsIdentity
from holdfast.records.logs_summary import LoggedRule
from holdfast.report.junit import JUnitCase, outcome_of, write_cases
from holdfast.report.logs_page import TurnDetails, broken_turns
from holdfast.report.logs_sentences import LoggedRules
from holdfast.report.wording import plain, signed

_MAX_TURNS_SHOWN = 3  # in a test case


def write_logs_junit(
    run: Run, rows: LoggedRules, bar: float | None, path: Path | str, seconds: float
) -> Path:
    """Writes the verdicts as JUnit XML: a test case for each rule; an undecided one is an error."""
    suite = run.identity_as(LogsIdentity).suite
    cases = []
    for row in rows:
        prompt, _, rule = row.rule.partition("/")
        turns = [*map(_sentence, broken_turns(run, row)[:_MAX_TURNS_SHOWN])]
        if (hidden := len(row.broken) - len(turns)) > 0:
            turns.append(f"and {count_of(hidden, 'more turn')}")
        cases.append(
            JUnitCase(
                classname=f"holdfast.{suite}.{prompt}",
                name=rule or prompt,
                outcome=outcome_of(row.verdict),
                message="; ".join(_facts(row, bar)),
                text="\n".join(turns),
            )
        )
    return write_cases(f"holdfast logs {suite}", cases, path, seconds)


def _sentence(turn: TurnDetails) -> str:
    """Says how a turn broke the rule, and why if that was examined."""
    why = f" (why: {turn.why.name})" if turn.why else ""
    return f"{turn.where}: {turn.reason}{why}"


def _facts(row: LoggedRule, bar: float | None) -> list[str]:
    """The evidence behind the verdict on a rule, in parts that semicolons join."""
    if row.is_judged:
        facts = [
            f"mean score {plain(row.adherence)}; the rule applies to {row.applied} of"
            f" {count_of(row.turns, 'turn')}"
        ]
    else:
        facts = [
            "no turn could be judged: where the rule applies, replies were cut or the log does not"
            " show enough"
        ]
    if bar is not None:
        low, high = row.bounds
        facts.append(f"the bar is {bar:g}, and the bounds that decide are [{low:.2f}, {high:.2f}]")
    if row.against:
        facts.append(
            f"the earlier logs score {plain(row.against.before)}, a difference of"
            f" {signed(row.against.difference)}"
        )
    if row.uncompared:
        facts.append(f"not compared with the earlier logs, as {row.uncompared}")
    if row.for_probes:
        facts.append(
            "the rule is made for the answers to probes, and no `when` says which turns it is for"
        )
    return facts
