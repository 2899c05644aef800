"""What the analysis of a drift run says, in sentences that page and terminal share."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.analysis.baseline import DOES_NOT, Baseline
from holdfast.analysis.comparisons import fixes, overall_change
from holdfast.analysis.rules import RuleRow, rule_rows
from holdfast.analysis.series import NO_FIX, Series
from holdfast.analysis.statistics import estimate_columns
from holdfast.analysis.verdicts import CANNOT_TELL, LEAST, tell
from holdfast.report.wording import (
    cannot_tell,
    count_of,
    percent,
    plain,
    points,
    signed,
    with_interval,
)

_MOST_NAMED = 4  # rules in one sentence


def opening(series: Sequence[Series], baseline: Baseline | None = None) -> list[str]:
    """The sentences that a run is told in: which rules were never kept or are kept less, where a
    prompt gives several; then what happened on average; then the best fix.

    Args:
        series: of a run, or of several.
        baseline: of the first; with it, no rule counts as kept less that tells nothing.
    """
    lines = (
        rules_headline(series, baseline),
        _left_out(series, baseline),
        headline(series, baseline),
        second_line(series, baseline),
    )
    return [line for line in lines if line]


def rules_headline(series: Sequence[Series], baseline: Baseline | None = None) -> str | None:
    """One sentence on the rules that the first series never kept, and those it came to keep less;
    None where there is no such rule that can be told.
    """
    item = series[0].until(series[0].shared_rounds)
    rows = rule_rows([item])
    never = [f"“{row.name}” (0 of {row.n} conversations)" for row in rows if row.never_kept]
    less = [_kept_less(row) for row in _lower(rows) if not _tells_nothing(row, baseline)]
    parts = []
    if never:
        parts.append(f"never keeps {_and(_first(never))}")
    if less:
        parts.append(f"keeps {_and(_first(less))}")
    return f"{_who(item)} {', and '.join(parts)}." if parts else None


def _lower(rows: Sequence[RuleRow]) -> list[RuleRow]:
    """Those that were kept once, and less in the end."""
    return [row for row in rows if row.lower_from and not row.never_kept]


def _tells_nothing(row: RuleRow, baseline: Baseline | None) -> bool:
    return baseline is not None and baseline.tells_nothing(row.case, row.rule)


def _left_out(series: Sequence[Series], baseline: Baseline | None) -> str | None:
    """Says of which rules the first sentence does not speak; None where there is none."""
    rows = _lower(rule_rows([series[0].until(series[0].shared_rounds)]))
    names = [f"“{row.name}”" for row in rows if _tells_nothing(row, baseline)]
    if not names:
        return None
    was, they = ("was", "it scores") if len(names) == 1 else ("were", "they score")
    return (
        f"That {_and(_first(names))} {was} kept less tells nothing, as {they} as well without the"
        " prompt."
    )


def _of_no_use(item: Series, baseline: Baseline | None) -> str:
    """', of which “brief” tells nothing,'; "" where all tell something, or it was not asked."""
    names = [f"“{row.name}”" for row in rule_rows([item]) if _tells_nothing(row, baseline)]
    if not names:
        return ""
    return f", of which {_and(_first(names))} {'tells' if len(names) == 1 else 'tell'} nothing,"


def _kept_less(row: RuleRow) -> str:
    """'“signs” less from round 2 on (95 % at round 1, 20 % at round 8)', or '... at round 8 (...)'
    of the last round alone.
    """
    first, last = row.points[0].mean, row.points[-1].mean
    assert first is not None and last is not None  # the last is told to be below the first
    rounds = len(row.points)
    since = f"from round {row.lower_from} on" if row.lower_from != rounds else f"at round {rounds}"
    return (
        f"“{row.name}” less {since} ({percent(first)} at round 1, {percent(last)} at round"
        f" {rounds})"
    )


def _first(names: Sequence[str]) -> list[str]:
    """The first few, and how many more."""
    more = len(names) - _MOST_NAMED
    return [*names[:_MOST_NAMED], *([f"{more} more"] if more > 0 else [])]


def _who(item: Series) -> str:
    return "Without a fix the agent" if item.method == NO_FIX else f"With {item.method} the agent"


def baseline_hint(rows: Sequence[RuleRow]) -> str:
    """Of a run with rules whose baseline was not asked: that some may tell nothing."""
    few = "Some rules" if len(rows) > 1 else "The rule"
    return (
        f"{few} may score the same without the system prompt, and then tell nothing of it;"
        " --baseline asks the probes without it and says which."
    )


def headline(series: Sequence[Series], baseline: Baseline | None = None) -> str:
    """One sentence: what the first series did from its first to its last round, and what it took
    on; or to the last that half of its conversations reached.
    """
    item = series[0].until(series[0].shared_rounds)
    who = _who(item)
    if rules_headline(series, baseline):
        who = f"On average over its {len(rule_rows([item]))} rules{_of_no_use(item, baseline)} it"
    rounds = estimate_columns(item.stability)
    first, last = rounds[0], rounds[-1]
    if last.mean is None or first.mean is None:
        return f"{who} was not probed in every round, so nothing can be said yet."
    few = _example_only(last.n)
    if item.rounds == 1:
        return f"{who} passes {with_interval(last, percent)} of its probes at round 1{few}."
    moved = _moved(item, "stability", first.mean)
    sentence = f"{who} passes {percent(last.mean)} of its probes at round {item.rounds}, {moved}"
    taken = estimate_columns(item.adoption)
    if taken[-1].mean is not None and taken[0].mean is not None:
        moved = _moved(item, "adoption", taken[0].mean)
        sentence += f"; of the other’s it passes {percent(taken[-1].mean)}, {moved}"
    if item.rounds < series[0].rounds:
        few += f"; fewer than half of the conversations have more than {item.rounds} rounds"
    return f"{sentence}{few}."


def _moved(item: Series, kind: str, first: float) -> str:
    """How the last round compares with the first: said to differ where it can be told, with the
    interval.
    """
    moved = overall_change(item, kind)
    if not (sign := tell(moved).sign):
        return f"{percent(first)} at round 1: {cannot_tell(moved, 'a change')}"
    way = "up" if sign > 0 else "down"
    return f"{way} from {percent(first)} at round 1 ({points(moved)})"


def _example_only(n: int) -> str:
    if n >= LEAST:
        return ""
    return (
        f"; {n} conversation{'' if n == 1 else 's'} only, an example and not a measurement (that"
        f" takes {LEAST})"
    )


def second_line(series: Sequence[Series], baseline: Baseline | None = None) -> str | None:
    """One sentence on the best fix on the same conversations, and one on the rules that are still
    lost with it; None where nothing was compared.
    """
    compared = fixes(series)
    if not compared:
        return None
    best = max(compared, key=lambda pair: pair.stability_mean.mean or 0.0)
    at_last = estimate_columns(best.series.stability)[-1].mean
    gain = best.stability_last
    if gain.mean is None or at_last is None:
        return None
    name = best.series.method
    if len(compared) > 1:
        name += f", the highest of {len(compared)} on average over all rounds,"
    passes = f"With {name} it passes {percent(at_last)} at round {best.series.rounds}"
    verdict = tell(gain)
    still = _still_lost(series[0], best.series, baseline)
    if not verdict.sign:
        unclear = cannot_tell(gain, "a difference")
        return f"{passes}; on the same {gain.n} conversations, {unclear}.{still}"
    return (
        f"{passes}: {verdict.word('more', 'less')}, by {points(gain)} on the same {gain.n}"
        f" conversations.{still}"
    )


def _still_lost(first: Series, fixed: Series, baseline: Baseline | None) -> str:
    """' Still lost with it: “signs” (20 % at round 8).', of rules that the first series never
    kept or came to keep less, and the fixed one too.
    """
    before, after = (
        [row for row in rule_rows([item]) if row.never_kept or row.lower_from]
        for item in (first, fixed)
    )
    lost = {
        (row.case, row.rule)
        for row in before
        if row.never_kept or not _tells_nothing(row, baseline)
    }
    names = [
        f"“{row.name}” ({percent(last)} at round {len(row.points)})"
        for row in after
        if (row.case, row.rule) in lost and (last := row.points[-1].mean) is not None
    ]
    if not names:
        return ""
    return f" Still lost with it: {_and(_first(names))}."


def counted(series: Sequence[Series]) -> str:
    """How many conversations of how many rounds, and under how many methods where there are
    several.
    """
    counts = sorted({len(item.records) for item in series})
    number = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    rounds, methods = series[0].rounds, len({item.method for item in series})
    under = f", under each of {methods} methods" if methods > 1 else ""
    return (
        f"{number} conversation{'' if counts[-1] == 1 else 's'} of {count_of(rounds, 'round')}"
        f"{under}"
    )


def fall(row: RuleRow) -> str:
    """That a rule was never kept; else from which round on its stability is below that of round 1,
    as far as the intervals tell.
    """
    if row.n < LEAST:
        return f"n = {row.n} is too few to tell a fall (that takes {LEAST})"
    if row.never_kept:
        return f"never kept (0 of {row.n} in any round)"
    if len(row.changes) < 2:
        return "one round cannot show a fall"
    if not row.lower_in:
        return "no fall that this run can tell"
    if row.lower_from is None:
        return f"below round 1 in {rounds_text(row.lower_in)} alone, that this run can tell"
    if row.lower_from == len(row.changes):
        return f"below round 1 in {rounds_text(row.lower_in)}"
    sentence = f"below round 1 from round {row.lower_from} on"
    if row.lower_in == tuple(range(row.lower_from, len(row.changes) + 1)):
        return sentence
    return f"{sentence} (certain in {rounds_text(row.lower_in)})"


def rounds_text(numbers: Sequence[int]) -> str:
    """'round 3', or 'rounds 2 and 5 to 8'."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    spans: list[str] = []
    for run in runs:
        spans += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else [str(number) for number in run]
    return f"round{'' if len(numbers) == 1 else 's'} {_and(spans)}"


def _and(parts: Sequence[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))


def broken_text(row: RuleRow) -> str:
    """'first broken in round 1: 2, round 3: 5; kept throughout: 33 of 40'."""
    numbered = enumerate(row.broken, start=1)
    counts = [f"round {number}: {count}" for number, count in numbered if count]
    start = f"first broken in {', '.join(counts)}; " if counts else ""
    return f"{start}kept throughout: {row.kept} of {row.n}"


def baseline_lines(baseline: Baseline) -> list[str]:
    """What the probes score without a system prompt, and which measures tell nothing; or which
    rules, where prompts have several.
    """
    every, asked = baseline.every, baseline.cases if baseline.by_rule else baseline.measures
    lines = [
        f"Without a system prompt the same probes score {plain(every.unprompted)} at round 1, with"
        f" it {plain(every.prompted)}: {signed(every.difference)},"
        f" {tell(every.difference).word('higher', 'lower')}."
    ]
    lines += [
        f"  {row.name} {DOES_NOT}: {plain(row.prompted)} with the prompt, {plain(row.unprompted)} "
        f"without (n = {row.n})."
        for row in asked
        if row.verdict == DOES_NOT
    ]
    unclear = [row for row in asked if row.verdict == CANNOT_TELL]
    if unclear:
        names = ", ".join(f"{row.name} (n = {row.n})" for row in unclear)
        lines.append(f"  Too few conversations to tell whether these discriminate: {names}.")
    return lines
