"""The page of `holdfast logs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.analysis.rule_context import count_causes
from holdfast.analysis.rule_scores import label_of
from holdfast.plurals import count_of
from holdfast.records import BreachStep, Run
from holdfast.records.log_scores import rule_of
from holdfast.records.logs_summary import LoggedRule
from holdfast.report.logs_causes import BreachReason, breach_reason, causes_of_rule, causes_section
from holdfast.report.logs_sentences import (
    LoggedRules,
    headline,
    lines_below_headline,
    unscored_notes,
    worst_first,
)
from holdfast.report.logs_strips import strip_figures
from holdfast.report.logs_table import (
    drop_empty_columns,
    first_broken,
    rule_cells,
    verdict_cell,
    verdict_head,
)
from holdfast.report.logs_words import rule_id, rule_title, rule_words
from holdfast.report.page import render_study
from holdfast.report.wording import plain, signed

_MAX_PROBLEMS = 200  # listed on the page; `summary.json` has all
_MAX_BROKEN_TURNS = 50  # on the page, per rule
_UNFOLDED_TURNS = 3  # of these, the ones that are visible at once


@dataclass(frozen=True)
class RuleRow:
    """A row of a table of rules.

    Attributes:
        words: the rule in words, or its id if the suite has no words for it.
        id: "" if `words` already is the id.
        cells: the other cells, in the order of the table's head.
    """

    words: str
    id: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class RulesTable:
    """A table with a row for each rule; `head` has no entry for the column of the rule itself."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[RuleRow, ...]


@dataclass(frozen=True)
class TurnDetails:
    """A turn that broke a rule, as the page shows it."""

    number: int
    where: str  # its dialog and number
    score: float
    reason: str
    user: str  # the user's message before it
    step: BreachStep | None  # the tool call that broke the rule; None if the calls do not show it
    reply: str  # "" beside a step
    tools: str  # the names of the tools that it called
    why: BreachReason | None


@dataclass(frozen=True)
class RuleBreaches:
    """A rule with the turns that broke it, the worst first.

    Attributes:
        words: the rule in words, or its id if the suite has no words for it.
        id: "" if `words` already is the id.
        summary: how many turns broke it, in how many dialogs, and why.
        first: the turns that are visible at once.
        rest: the turns that are folded away.
        hidden: how many more turns broke it than the page shows.
    """

    words: str
    id: str
    summary: str
    first: tuple[TurnDetails, ...]
    rest: tuple[TurnDetails, ...]
    hidden: int


def logs_page(run: Run, rows: LoggedRules, visible_rows: LoggedRules, bar: float | None) -> str:
    """The HTML of the page.

    Args:
        rows: every rule.
        visible_rows: the rules or categories of the figures, which also come first in the overview.
        bar: the mean that every rule must reach; None without a bar.
    """
    causes = count_causes(run)
    content = {
        "broken": [
            _broken_rule(run, row, causes.get(row.rule)) for row in worst_first(rows) if row.broken
        ],
        "why": causes_section(run),
        "overview": _overview(run, list(dict.fromkeys([*visible_rows, *rows])), bar),
        "against": _comparison_table(run, rows),
        "notes": unscored_notes(run, rows),
        "figures": strip_figures(run, visible_rows),
        "problems": _first_problems(run.manifest.problems),
    }
    return render_study(
        "logs",
        headline(run, rows, rule_title),
        content,
        runs={run.folder.name: run},
        facts=(_dialogs_by_format(run),),
        lines=lines_below_headline(run, rows, bar),
    )


def _dialogs_by_format(run: Run) -> str:
    """'3 dialogs in codex', or '5 dialogs: 3 in codex, 2 in claude-code'."""
    dialogs = count_of(len(run.records), "dialog")
    formats = run.manifest.formats
    if len(formats) == 1 and sum(formats.values()) == len(run.records):
        return f"{dialogs} in {next(iter(formats))}"
    counts = ", ".join(f"{count} in {name}" for name, count in formats.items())
    return f"{dialogs}: {counts}" if counts else dialogs


def _overview(run: Run, rules: LoggedRules, bar: float | None) -> RulesTable | None:
    head = (
        "turns kept",
        "kept",
        "dialogs",
        "first to last turn",
        "first broken",
        verdict_head(bar),
    )
    cells = [(*rule_cells(row), first_broken(row), verdict_cell(row, bar)) for row in rules]
    return _rules_table(run, "How well each rule is kept", rules, head, cells)


def _comparison_table(run: Run, rows: LoggedRules) -> RulesTable | None:
    """The comparison with earlier logs; None if no rule was compared."""
    comparisons = [(row, row.against) for row in rows if row.against]
    head = ("before", "now", "difference")
    cells = [
        (plain(earlier.before), plain(row.adherence), signed(earlier.difference))
        for row, earlier in comparisons
    ]
    rules = [row for row, _ in comparisons]
    return _rules_table(run, "Against the earlier logs", rules, head, cells)


def _rules_table(
    run: Run,
    caption: str,
    rules: LoggedRules,
    head: Sequence[str],
    cells: Sequence[Sequence[str]],
) -> RulesTable | None:
    """A table of rules without columns that are empty throughout; None without rules."""
    if not rules:
        return None
    head, *cells = drop_empty_columns([head, *cells])
    rows = [
        RuleRow(rule_words(run, row.rule), rule_id(run, row.rule), tuple(cells_of_rule))
        for row, cells_of_rule in zip(rules, cells, strict=True)
    ]
    return RulesTable(caption, tuple(head), tuple(rows))


def _first_problems(problems: Sequence[str]) -> list[str]:
    """The first problems with the files, and how many more there are."""
    num_more = len(problems) - _MAX_PROBLEMS
    rest = [f"and {num_more:,} more, which `summary.json` lists"] if num_more > 0 else []
    return [*problems[:_MAX_PROBLEMS], *rest]


def _broken_rule(run: Run, row: LoggedRule, causes: Mapping[str, int] | None) -> RuleBreaches:
    """A rule that some turn broke; `causes` is None if no causes were looked for."""
    turns = broken_turns(run, row)
    dialogs = f"{row.first_broken.broken} of {count_of(row.adherence.n, 'dialog')}"
    summary = f"Broken in {len(row.broken):,} of {count_of(row.applied, 'turn')}, in {dialogs}"
    if why := causes_of_rule(causes):
        summary = f"{summary}; why: {why}"
    return RuleBreaches(
        words=rule_words(run, row.rule),
        id=rule_id(run, row.rule),
        summary=summary,
        first=tuple(turns[:_UNFOLDED_TURNS]),
        rest=tuple(turns[_UNFOLDED_TURNS:]),
        hidden=len(row.broken) - len(turns),
    )


def broken_turns(run: Run, row: LoggedRule) -> list[TurnDetails]:
    """The turns that broke a rule, the worst first, as many as the page shows."""
    turns = []
    for breach in row.broken[:_MAX_BROKEN_TURNS]:
        record = run.dialogs[breach.dialog]
        probe = next(
            probe
            for probe in record.probes
            if probe.round == breach.turn and label_of(rule_of(record, probe)) == row.rule
        )
        turn = next(turn for turn in record.turns if turn.round == breach.turn)
        step = None if probe.cause is None else probe.cause.step
        turns.append(
            TurnDetails(
                number=breach.turn,
                where=f"{record.source}, turn {breach.turn}",
                score=breach.score,
                reason=probe.reason,
                user=probe.question,
                step=step,
                reply="" if step else turn.text,
                tools=", ".join(dict.fromkeys(turn.tools)),
                why=breach_reason(probe.cause, rule_words(run, row.rule), run.manifest.loaded),
            )
        )
    return turns
