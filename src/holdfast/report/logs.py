"""The table, the figures, the page and the JUnit file of `holdfast logs`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.analysis.adherence import TOKEN_BINS, TURN_BINS, Adherence, label_of
from holdfast.analysis.sequential import FAIL, PASS, UNDECIDED
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.summary import estimated, write_results
from holdfast.analysis.verdicts import MIN_SAMPLES, verdict_on
from holdfast.records import Run
from holdfast.records.identity import LogsIdentity
from holdfast.records.run_summary import (
    AgainstEarlierLogs,
    EstimateFrom,
    FirstBroken,
    LoggedRule,
    LogsResult,
)
from holdfast.report.figures import legend_below, look, means, panels, save, styled, whiskers
from holdfast.report.junit import JUnitCase, outcome_of, write_cases
from holdfast.report.page import Table, pictures, render_study
from holdfast.report.wording import aligned, count_of, plain, signed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Rows = Sequence[Adherence]

_MOST_BROKEN = 50  # most turns that the page shows per rule
_MOST_DRAWN = 12  # most rules in a figure: those kept least
_MOST_NAMED = 3  # most rules that a sentence names, and turns that a test case shows


def table(run: Run, rows: Rows, shown: Rows, bar: float | None) -> str:
    """The text for the terminal: the opening sentences of the page, then a row for each rule or
    category that is shown.
    """
    compared = any(row.earlier for row in rows)
    head = ["rule", "kept [95%]", "dialogs", "turns", "first to last turn", "median first break"]
    cells = [
        [
            *head,
            *(["against"] if compared else []),
            *([_verdict_head(bar)] if _judged(rows) else []),
        ]
    ]
    for row in shown:
        line = [*_cells(row), _median(row)]
        if compared:
            line.append(signed(row.earlier.difference) if row.earlier else "–")
        if _judged(rows):
            line.append(_verdict(row, bar))
        cells.append(line)
    return "\n".join([headline(run, rows), *lines(run, rows, bar), "", *aligned(cells)])


def _verdict(row: Adherence, bar: float | None) -> str:
    """'fail [0.41, 0.78]', with the bounds that decide it if there is a bar."""
    low, high = row.bounds
    return row.verdict if bar is None else f"{row.verdict} [{low:.2f}, {high:.2f}]"


def _verdict_head(bar: float | None) -> str:
    return "verdict" if bar is None else "verdict [bounds that decide it]"


def headline(run: Run, rows: Rows) -> str:
    """The first line, on the rule that fell most against earlier logs, or is kept least."""
    rows = [row for row in rows if row.is_judged]
    if not rows and cut_rules(run):
        return f"No rule could be judged on any turn of {count_of(len(run.records), 'dialog')}."
    if not rows:
        return f"No rule applied to any turn of {count_of(len(run.records), 'dialog')}."
    rows = [row for row in rows if not row.for_probes]
    if not rows:
        return "No rule says which turns it is for, so these logs do not show how well it is kept."
    falls = {row.rule: row.earlier.difference for row in rows if row.earlier is not None}
    falls = {rule: change for rule, change in falls.items() if verdict_on(change).sign < 0}
    if falls:
        rule, change = min(falls.items(), key=lambda item: item[1].mean or 0)
        mean, low, high = (
            f"{-100 * (value or 0):.0f}" for value in (change.mean, change.high, change.low)
        )
        return (
            f"{rule} is kept less than in the earlier logs: by {mean} points (95% interval {low} to"
            f" {high})."
        )
    if all(row.overall.mean == 1 for row in rows) and len(rows) > 1:
        return f"All {len(rows)} rules are kept in every turn that they apply to."
    least, kept = _least(rows), _least(rows).overall
    share, dialogs = _share(kept), count_of(kept.n, "dialog")
    if len(rows) == 1:
        return (
            f"The rule {least.rule} is kept in {share} of the turns it applies to, over {dialogs}."
        )
    return (
        f"Of {len(rows)} rules, {least.rule} is kept least: in {share} of the turns it applies to,"
        f" over {dialogs}."
    )


def _share(kept: Estimate) -> str:
    """'74% (95% interval 69 to 79)'; only the mean if there is no interval."""
    mean = f"{100 * (kept.mean or 0):.0f}%"
    if kept.low is None or kept.high is None:
        return mean
    return f"{mean} (95% interval {100 * kept.low:.0f} to {100 * kept.high:.0f})"


def _least(rows: Rows) -> Adherence:
    """The rule that is kept least, preferring rules with enough dialogs for a verdict."""
    enough = [row for row in rows if row.overall.n >= MIN_SAMPLES] or rows
    return min(enough, key=lambda row: row.overall.mean or 0)


def cut_rules(run: Run) -> dict[str, int]:
    """How often each rule was not judged, as the turn was cut and the rule needs its end."""
    return Counter(label_of(record, probe) for record in run.dialogs for probe in record.unscored)


def lines(run: Run, rows: Rows, bar: float | None) -> list[str]:
    """The lines below the headline: when its rule is lost, verdicts, and what was left out."""
    return [*_on_least(rows), *_on_rules(run, rows), *_on_verdicts(rows, bar), *_left_out(run)]


def _on_least(rows: Rows) -> list[str]:
    """When the rule of the headline is lost, and whether other dialogs would lose it too."""
    if not (tested := [row for row in rows if row.is_judged and not row.for_probes]):
        return []
    least, sentences = _least(tested), []
    if least.survival.broken:
        sentences.append(_first_breaks(least))
    if least.overall.n < MIN_SAMPLES:
        sentences.append(
            f"Fewer than {MIN_SAMPLES} dialogs are too few to speak for other dialogs."
        )
    return sentences


def _on_rules(run: Run, rows: Rows) -> list[str]:
    """The rules that the headline leaves out, and why."""
    sentences = []
    if names := [row.rule for row in rows if row.for_probes]:
        sentences.append(
            f"Made for the answers to probes, and scored in every turn: {_listed(names)}. A turn"
            " that has no occasion for them breaks them, so the first line leaves them out; say"
            " with `when` which turns they are for ({user: '.'} for all)."
        )
    judged, cut = {row.rule for row in rows if row.is_judged}, cut_rules(run)
    if judged and (rare := [name for name in run.manifest.rules if name not in judged | set(cut)]):
        sentences.append(f"Rules that apply to no turn: {_listed(rare)}.")
    if cut:
        sentences.append(
            f"Cut, not judged: {count_of(sum(cut.values()), 'score')}, as the turns were cut at the"
            f" token limit and the rules need the end ({_listed(list(cut))})."
        )
    return sentences


def _on_verdicts(rows: Rows, bar: float | None) -> list[str]:
    """How many rules pass, fail or are undecided, and which could not be compared."""
    sentences = []
    if _judged(rows):
        verdicts = [row.verdict for row in rows]
        counts = ", ".join(
            f"{verdicts.count(name)} {name}" for name in (PASS, FAIL, UNDECIDED) if name in verdicts
        )
        undecided = [row for row in rows if row.verdict == UNDECIDED and not row.for_probes]
        if bar is not None:
            sentences.append(f"Rules: {counts}, at a bar of {bar:g}.")
        elif any(row.is_judged and row.overall.n < MIN_SAMPLES for row in undecided):
            sentences.append(f"Rules: {counts}, as a comparison takes {MIN_SAMPLES} dialogs.")
        else:
            sentences.append(f"Rules: {counts}.")
    for why in dict.fromkeys(row.uncompared for row in rows if row.uncompared):
        names = ", ".join(row.rule for row in rows if row.uncompared == why)
        sentences.append(f"Not compared: {names}, as {why}.")
    return sentences


def _left_out(run: Run) -> list[str]:
    """The dialogs, turns and parts of the files that were not scored."""
    manifest, sentences = run.manifest, []
    if manifest.unmatched:
        dialogs = count_of(manifest.dialogs, "dialog")
        sentences.append(
            f"Under none of the suite's prompts, and not scored: {manifest.unmatched} of {dialogs}."
        )
    if manifest.other_prompts:
        sentences.append(
            f"Under another system prompt, and scored by the rules of the suite's only prompt:"
            f" {count_of(manifest.other_prompts, 'dialog')}."
        )
    if manifest.reasoning_turns:
        sentences.append(
            "Begin with reasoning (such as <think>), which is recorded and not scored:"
            f" {count_of(manifest.reasoning_turns, 'turn')}."
        )
    if manifest.problems:
        parts = count_of(len(manifest.problems), "part")
        sentences.append(f"Not read or left out: {parts} of the files.")
    return sentences


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return f"{', '.join(names[:_MOST_NAMED])}{more}"


def _first_breaks(row: Adherence) -> str:
    """How many dialogs break a rule, and when half have; an estimate if some ended before that."""
    survival, total = row.survival, row.overall.n
    if total == 1:
        return f"The dialog breaks it first in turn {survival.turns[0]}."
    verb = "breaks" if survival.broken == 1 else "break"
    broken = f"{survival.broken} of {total} dialogs {verb} it at least once"
    if survival.median is None:
        return f"{broken}; the others had not when they ended."
    if survival.estimated:
        return (
            f"{broken}; if none ended early, half would have by turn {survival.median} (an"
            " estimate)."
        )
    return f"{broken}; half of all dialogs have broken it by turn {survival.median}."


def _cells(row: Adherence) -> tuple[str, str, str, str, str]:
    change = signed(row.change) if row.change.n else "–"
    return row.rule, plain(row.overall), str(row.overall.n), f"{row.applied} of {row.turns}", change


def _judged(rows: Rows) -> bool:
    return any(row.verdict for row in rows)


def _median(row: Adherence) -> str:
    if not row.is_judged:
        return "–"
    if not row.survival.broken:
        return "never broken"
    return f"turn {row.survival.median}" if row.survival.median else "–"


def _first_broken(row: Adherence) -> str:
    """'3 of 40 dialogs', with the turn by which half had broken the rule, if half did."""
    if not row.is_judged:
        return "–"
    broken = f"{row.survival.broken} of {count_of(row.overall.n, 'dialog')}"
    if not row.survival.median:
        return broken
    about = " (estimated)" if row.survival.estimated else ""
    if row.overall.n == 1:
        return f"{broken}; in {_median(row)}{about}"
    return f"{broken}; half by {_median(row)}{about}"


def write_logs_summary(run: Run, rows: Rows, bar: float | None, error: float) -> Path:
    """Writes `summary.json` into the run's folder."""
    results = LogsResult(
        min_adherence=bar,
        error=error,
        rules=tuple(map(_logged_rule, rows)),
        unmatched=run.manifest.unmatched,
        problems=run.manifest.problems,
    )
    return write_results(
        run.folder, "logs", run.manifest.identity.to_json(), len(run.records), results
    )


def _logged_rule(row: Adherence) -> LoggedRule:
    earlier, survival = row.earlier, row.survival
    return LoggedRule(
        rule=row.rule,
        applied=row.applied,
        turns=row.turns,
        adherence=estimated(row.overall),
        bounds=_rounded(row.bounds),
        change=estimated(row.change),
        by_turn=_binned(TURN_BINS, row.by_turn),
        by_tokens=_binned(TOKEN_BINS, row.by_tokens),
        first_broken=FirstBroken(
            dialogs=row.overall.n,
            broken=survival.broken,
            median_turn=survival.median,
            turns=survival.turns,
            unbroken=_rounded(survival.share),
            low=_rounded(survival.low),
            high=_rounded(survival.high),
        ),
        broken_turns=len(row.broken),
        verdict=row.verdict or None,
        for_probes=row.for_probes,
        against=None
        if earlier is None
        else AgainstEarlierLogs(
            before=estimated(earlier.before),
            difference=estimated(earlier.difference),
            certain=earlier.certain,
        ),
    )


def _rounded(values: Sequence[float]) -> tuple[float, ...]:
    return tuple(round(value, 6) for value in values)


def _binned(bins: Sequence[int], estimates: Sequence[Estimate]) -> tuple[EstimateFrom, ...]:
    return tuple(
        EstimateFrom(**{"from": start}, **dict(estimated(item)))
        for start, item in zip(bins, estimates, strict=True)
        if item.n
    )


def write_logs_figures(rows: Rows, folder: Path) -> list[Path]:
    """Writes `by_turn`, `by_tokens` and `survival` as SVG and PNG; returns the files."""
    judged = [row for row in rows if row.is_judged]
    drawn = sorted(judged, key=lambda row: row.overall.mean or 0)[:_MOST_DRAWN]
    with styled():
        return save(
            {
                "by_turn": _binned_figure(drawn, "by_turn", TURN_BINS, "turn of the dialog"),
                "by_tokens": _binned_figure(
                    drawn, "by_tokens", TOKEN_BINS, "tokens before the turn (4 bytes each)"
                ),
                "survival": _survival_figure(drawn),
            },
            folder,
        )


def _binned_figure(rows: Rows, name: str, bins: Sequence[int], label: str) -> Figure:
    figure, (axis,) = panels(1, 1, 6.4, 3.6)
    last = 0
    for number, row in enumerate(rows):
        points = [(x, item) for x, item in enumerate(getattr(row, name)) if item.mean is not None]
        x, kept = [column for column, _ in points], [item for _, item in points]
        low, high = means(kept) + whiskers(kept) * [[-1], [1]]
        axis.plot(x, means(kept), marker="o", markersize=3, linewidth=1.4, **look(number))
        axis.fill_between(x, low, high, color=look(number)["color"], alpha=0.12, lw=0)
        last = max([last, *x])
    names = [_bin_name(bins, column) for column in range(last + 1)]
    axis.set_xticks(range(last + 1), names)
    _finish(figure, axis, rows, label, "share kept", "band: 95% bootstrap interval over dialogs")
    return figure


def _bin_name(bins: Sequence[int], column: int) -> str:
    start = bins[column]
    after = bins[column + 1] if column + 1 < len(bins) else None
    if bins is TOKEN_BINS:
        low = f"{start // 1000}k" if start else "0"
        return f"{low}+" if after is None else f"{low}–{after // 1000}k"
    if after is None:
        return f"{start}+"
    return str(start) if after == start + 1 else f"{start}–{after - 1}"


def _survival_figure(rows: Rows) -> Figure:
    figure, (axis,) = panels(1, 1, 6.4, 3.6)
    end = max([2, *(turn for row in rows for turn in row.survival.turns)]) + 1
    for number, row in enumerate(rows):
        curve = row.survival
        x = [0, *curve.turns, end]
        last = [curve.share[-1] if curve.share else 1.0]
        axis.step(x, [1.0, *curve.share, *last], where="post", linewidth=1.4, **look(number))
        if curve.share:
            low, high = [1.0, *curve.low, curve.low[-1]], [1.0, *curve.high, curve.high[-1]]
            colour = look(number)["color"]
            axis.fill_between(x, low, high, step="post", color=colour, alpha=0.12, lw=0)
    note = "Kaplan-Meier; band: 95% interval"
    _finish(figure, axis, rows, "turn of the dialog", "share of dialogs never broken so far", note)
    axis.set_xlim(0, end)
    return figure


def _finish(figure: Figure, axis: Axes, rows: Rows, x: str, y: str, note: str) -> None:
    from matplotlib.lines import Line2D

    axis.set(xlabel=x, ylabel=y, ylim=(-0.02, 1.02))
    handles = [Line2D([], [], **look(number)) for number in range(len(rows))]
    legend_below(figure, handles, [row.rule for row in rows], note)


def logs_page(run: Run, rows: Rows, shown: Rows, bar: float | None) -> str:
    """The HTML of the page; `shown` holds the rules or categories of the figures."""
    folder = run.folder / "figures"
    head = (
        "rule",
        "kept",
        "dialogs",
        "turns it applies to",
        "first to last turn",
        "first broken",
        _verdict_head(bar),
    )
    overview = [head]
    for row in dict.fromkeys([*shown, *rows]):
        verdict = _verdict(row, bar) if row.verdict else "–"
        overview.append((*_cells(row), _first_broken(row), verdict))
    against = [("rule", "before", "now", "difference")]
    against += [
        (row.rule, plain(row.earlier.before), plain(row.overall), signed(row.earlier.difference))
        for row in rows
        if row.earlier
    ]
    formats = ", ".join(f"{n} in {name}" for name, n in run.manifest.formats.items())
    return render_study(
        "logs",
        headline(run, rows),
        {run.folder.name: run},
        (count_of(len(run.records), "dialog"), formats),
        lines(run, rows, bar),
        overview=Table("Share of turns in which each rule is kept, over dialogs", overview),
        against=Table("Against the earlier logs", against) if len(against) > 1 else None,
        pictures=pictures(
            folder,
            by_turn="Kept, by turn",
            by_tokens="Kept, by length of the dialog",
            survival="Not yet broken, by turn",
        ),
        broken=[
            {
                "rule": row.rule,
                "count": len(row.broken),
                "counted": count_of(len(row.broken), "turn"),
                "turns": _broken_turns(run, row),
            }
            for row in rows
            if row.broken
        ],
        problems=run.manifest.problems,
    )


@dataclass(frozen=True)
class ShownTurn:
    """A turn that broke a rule, as the page shows it."""

    where: str  # its file, line and number
    score: float
    reason: str
    user: str  # the user's message before it
    reply: str
    tools: str  # the names of those it called


def _broken_turns(run: Run, row: Adherence) -> list[ShownTurn]:
    """The turns that broke a rule, worst first."""
    shown = []
    for broken in row.broken[:_MOST_BROKEN]:
        record = run.dialogs[broken.dialog]
        probe = next(
            probe
            for probe in record.probes
            if probe.round == broken.turn and label_of(record, probe) == row.rule
        )
        turn = next(turn for turn in record.turns if turn.round == broken.turn)
        shown.append(
            ShownTurn(
                where=f"{record.source}, turn {broken.turn}",
                score=broken.score,
                reason=probe.reason,
                user=probe.question,
                reply=turn.text,
                tools=", ".join(turn.tools),
            )
        )
    return shown


def _facts(row: Adherence, bar: float | None) -> list[str]:
    """The evidence behind the verdict on a rule."""
    if row.is_judged:
        facts = [f"kept {plain(row.overall)}, {row.applied} of {count_of(row.turns, 'turn')}"]
    else:
        facts = ["judged on no turn, as those that it applies to were cut at the token limit"]
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
    suite, cases = run.identity_as(LogsIdentity).suite, []
    for row in rows:
        prompt, _, rule = row.rule.partition("/")
        broken = _broken_turns(run, row)[:_MOST_NAMED]
        text = "\n".join(f"{turn.where}: {turn.reason}" for turn in broken)
        classname, message = f"holdfast.{suite}.{prompt}", "; ".join(_facts(row, bar))
        cases.append(JUnitCase(classname, rule or prompt, outcome_of(row.verdict), message, text))
    return write_cases(f"holdfast logs {suite}", cases, path, seconds)
