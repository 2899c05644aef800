"""The page of `holdfast logs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.analysis.adherence import Adherence, label_of
from holdfast.analysis.rule_context import count_causes
from holdfast.plurals import count_of
from holdfast.records import BreachStep, Run
from holdfast.records.log_scores import rule_of
from holdfast.report.logs_causes import ShownReason, causes_of_rule, causes_section, reason_of
from holdfast.report.logs_sentences import Rows, headline, lines, notes, worst_first
from holdfast.report.logs_strips import strip_figures
from holdfast.report.logs_table import (
    first_broken,
    rule_cells,
    verdict_cell,
    verdict_head,
    without_empty,
)
from holdfast.report.logs_wording import rule_id, rule_words
from holdfast.report.page import render_study
from holdfast.report.wording import plain, signed

_MAX_PROBLEMS = 200  # with the files that the page shows
_MAX_BROKEN_TURNS = 50  # most turns that the page shows per rule
_AT_ONCE = 3  # of these, those that are shown without unfolding


def logs_page(run: Run, rows: Rows, shown: Rows, bar: float | None) -> str:
    """The HTML of the page; `shown` holds the rules or categories of the figures."""
    formats = ", ".join(f"{n} in {name}" for name, n in run.manifest.formats.items())
    counts = count_causes(run)
    return render_study(
        "logs",
        headline(run, rows),
        {run.folder.name: run},
        (count_of(len(run.records), "dialog"), formats),
        lines(run, rows, bar),
        broken=[_broken_rule(run, row, counts.get(row.rule)) for row in worst_first(rows)],
        why=causes_section(run),
        overview=_overview(run, list(dict.fromkeys([*shown, *rows])), bar),
        against=_against(run, rows),
        notes=notes(run, rows),
        figures=strip_figures(run, shown),
        problems=_shown_problems(run.manifest.problems),
    )


@dataclass(frozen=True)
class ShownRule:
    """A row of the table of rules: its words, its id ("" if these are the same), and its cells."""

    words: str
    id: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class RulesTable:
    """A table of rules; `head` names the cells, without the rule itself."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[ShownRule, ...]


def _rules_table(
    run: Run, caption: str, rules: Rows, cells: Sequence[Sequence[str]]
) -> RulesTable | None:
    """A table whose first row of cells is the head; None without a rule."""
    if not rules:
        return None
    head, *filled = without_empty(cells)
    rows = [
        ShownRule(rule_words(run, row.rule), rule_id(run, row.rule), tuple(line))
        for row, line in zip(rules, filled, strict=True)
    ]
    return RulesTable(caption, tuple(head), tuple(rows))


def _overview(run: Run, rules: Rows, bar: float | None) -> RulesTable | None:
    names = ("turns kept", "kept", "dialogs", "first to last turn", "first broken")
    cells: list[tuple[str, ...]] = [(*names, verdict_head(bar))]
    for row in rules:
        verdict = verdict_cell(row, bar) if row.verdict else "–"
        cells.append((*rule_cells(row), first_broken(row), verdict))
    return _rules_table(run, "How well each rule is kept", rules, cells)


def _against(run: Run, rows: Rows) -> RulesTable | None:
    compared = [row for row in rows if row.earlier]
    cells: list[tuple[str, ...]] = [("before", "now", "difference")]
    for row in compared:
        assert row.earlier is not None
        difference = signed(row.earlier.difference)
        cells.append((plain(row.earlier.before), plain(row.overall), difference))
    return _rules_table(run, "Against the earlier logs", compared, cells)


def _shown_problems(problems: Sequence[str]) -> list[str]:
    """The first problems with the files, and how many more there are."""
    more = len(problems) - _MAX_PROBLEMS
    rest = [f"and {more:,} more, which `summary.json` lists"] if more > 0 else []
    return [*problems[:_MAX_PROBLEMS], *rest]


@dataclass(frozen=True)
class ShownTurn:
    """A turn that broke a rule, as the page shows it."""

    number: int
    where: str  # its dialog and number
    score: float
    reason: str
    user: str  # the user's message before it
    step: BreachStep | None  # the tool call that broke the rule, if its calls show it
    reply: str  # "" beside a step
    tools: str  # the names of those it called
    why: ShownReason | None


@dataclass(frozen=True)
class BrokenRule:
    """A rule with the turns that broke it, the worst first.

    Args:
        id: "" if there are no words but the id.
        summary: how many turns broke it, in how many dialogs, and why.
        first, rest: the turns that are shown at once, and those that are folded.
        hidden: how many more there are than the page has.
    """

    words: str
    id: str
    summary: str
    first: tuple[ShownTurn, ...]
    rest: tuple[ShownTurn, ...]
    hidden: int


def _broken_rule(run: Run, row: Adherence, causes: Mapping[str, int] | None) -> BrokenRule | None:
    """None if no turn broke the rule."""
    if not row.broken:
        return None
    shown = broken_turns(run, row)
    dialogs = f"{row.survival.broken} of {count_of(row.overall.n, 'dialog')}"
    summary = f"Broken in {len(row.broken):,} of {count_of(row.applied, 'turn')}, in {dialogs}"
    why = causes_of_rule(causes)
    return BrokenRule(
        rule_words(run, row.rule),
        rule_id(run, row.rule),
        f"{summary}; why: {why}" if why else summary,
        tuple(shown[:_AT_ONCE]),
        tuple(shown[_AT_ONCE:]),
        len(row.broken) - len(shown),
    )


def broken_turns(run: Run, row: Adherence) -> list[ShownTurn]:
    """The turns that broke a rule, worst first."""
    shown = []
    for broken in row.broken[:_MAX_BROKEN_TURNS]:
        record = run.dialogs[broken.dialog]
        probe = next(
            probe
            for probe in record.probes
            if probe.round == broken.turn and label_of(rule_of(record, probe)) == row.rule
        )
        turn = next(turn for turn in record.turns if turn.round == broken.turn)
        step = None if probe.cause is None else probe.cause.step
        shown.append(
            ShownTurn(
                number=broken.turn,
                where=f"{record.source}, turn {broken.turn}",
                score=broken.score,
                reason=probe.reason,
                user=probe.question,
                step=step,
                reply="" if step else turn.text,
                tools=", ".join(dict.fromkeys(turn.tools)),
                why=reason_of(probe.cause, rule_words(run, row.rule)),
            )
        )
    return shown
