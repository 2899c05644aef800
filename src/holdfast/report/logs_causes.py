"""Why rules were broken: the lines of the terminal and the section of the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.analysis.adherence import TOKEN_BINS, label_of
from holdfast.analysis.rule_context import (
    CALL_BINS,
    COMPACTION_BINS,
    AroundCompactions,
    Breach,
    context_effects,
    count_causes,
    first_breaches,
    total_causes,
)
from holdfast.analysis.statistics import Estimate
from holdfast.records import BreachCause, Evidence, Run
from holdfast.report.page import Table
from holdfast.report.wording import aligned, count_of, plain, signed

if TYPE_CHECKING:
    from holdfast.logs.recalled_causes import Asked

_MOST_SHOWN = 5  # breaches that the page shows for each cause
_NAMES = {
    "never_sent": "never sent",
    "removed": "removed",
    "outweighed": "outweighed",
    "present": "present",
    "unknown": "not shown",
    "present_recalled": "present, recalled",
    "present_not_recalled": "present, not recalled",
}
_MEANINGS = {
    "never_sent": "nothing before the breach says the rule, and the log shows everything sent",
    "removed": "it was in the context, and left it",
    "outweighed": "the user, or a file that was read later, ordered otherwise",
    "present": "it was in the context",
    "unknown": "the transcript does not show it",
    "present_recalled": "it was in the context, and the model states it there when asked",
    "present_not_recalled": "it was in the context, and the model does not state it when asked",
}
_VERBS = {"said": "Said in", "left": "Left the context in", "ordered": "Ordered otherwise in"}


def why_table(run: Run) -> str:
    """The text for the terminal: how many breaches have each cause, all together and by rule; ""
    if nothing was broken.
    """
    by_rule = count_causes(run)
    if not by_rule:
        return ""
    counts = total_causes(by_rule)
    total = sum(counts.values())
    listed = ", ".join(f"{_NAMES[cause]} {counts[cause]}" for cause in counts)
    lines = ["", f"Why: {total:,} {'breach' if total == 1 else 'breaches'}: {listed}."]
    if len(by_rule) > 1:
        cells = [["rule", *(_NAMES[cause] for cause in counts)]]
        cells += [[rule, *map(str, of_rule.values())] for rule, of_rule in by_rule.items()]
        lines += ["", *aligned(cells)]
    around = context_effects(run).around
    return "\n".join([*lines, *_compactions(around)])


def asked_sentence(asked: Asked) -> str:
    """How many breaches the model was asked about, and how these were chosen."""
    sentence = f"{asked.model} was asked for its rules at {asked.asked:,} of {asked.present:,}"
    sentence += " breaches whose rule was present"
    if asked.asked < asked.present:
        sentence += ", drawn at random (the same ones each time)"
    if asked.undecided:
        sentence += f"; {asked.undecided:,} gave no whole answer, and stay present"
    return f"{sentence}."


def _compactions(around: AroundCompactions) -> list[str]:
    if not around.compactions:
        return []
    kept = sum(item.in_summary for item in around.kept.values())
    total = sum(item.compactions for item in around.kept.values())
    dialogs = count_of(around.dialogs, "dialog")
    sentence = f"{count_of(around.compactions, 'compaction')} in {dialogs}"
    sentence += f"; summaries kept {kept} of {total} rules that were in the context"
    if around.change.n:
        sentence += f"; kept {plain(around.before)} before and {plain(around.after)} after"
        sentence += f", a change of {signed(around.change)}"
    return ["", f"{sentence}."]


@dataclass(frozen=True)
class ShownBreach:
    """A breach as the page shows it."""

    where: str  # its rule, file, line and turn
    reason: str  # of its score
    why: str
    evidence: tuple[tuple[str, str], ...]  # where it is, and its words


@dataclass(frozen=True)
class ShownCause:
    """The breaches of one cause, the first ones in full."""

    name: str
    meaning: str
    count: int
    shown: tuple[ShownBreach, ...]


@dataclass(frozen=True)
class CausesSection:
    """The section of the page."""

    by_rule: Table
    causes: tuple[ShownCause, ...]
    tables: tuple[Table, ...]


def causes_section(run: Run) -> CausesSection | None:
    """The section of the page; None if nothing was broken, or no cause was looked for."""
    counts = count_causes(run)
    if not counts:
        return None
    totals = total_causes(counts)
    rows: list[tuple[str, ...]] = [("rule", *(_NAMES[cause] for cause in totals))]
    rows += [(rule, *map(str, of_rule.values())) for rule, of_rule in counts.items()]
    causes = []
    for cause, count in totals.items():
        if count:
            found = first_breaches(run, cause, _MOST_SHOWN)
            shown = tuple(_shown(run, breach) for breach in found)
            causes.append(ShownCause(_NAMES[cause], _MEANINGS[cause], count, shown))
    by_rule = Table("Turns that broke a rule, by cause", rows)
    return CausesSection(by_rule, tuple(causes), tuple(_tables(run)))


def _shown(run: Run, breach: Breach) -> ShownBreach:
    record = run.dialogs[breach.dialog]
    probe = next(
        probe
        for probe in record.probes
        if probe.round == breach.turn and probe.rule == breach.rule.rule
    )
    cause = probe.cause
    assert isinstance(cause, BreachCause)
    return ShownBreach(
        where=f"{label_of(breach.rule)}, {record.source}, turn {breach.turn}",
        reason=probe.reason,
        why=cause.why,
        evidence=tuple((_where(item), item.quote) for item in cause.evidence),
    )


def _where(item: Evidence) -> str:
    turn = f", turn {item.turn}" if item.turn else ""
    event = f", event {item.event}" if item.event else ""
    return f"{_VERBS[item.what]} {item.source}{turn}{event}"


def _tables(run: Run) -> list[Table]:
    """Adherence by what was in the context, where there is something to compare."""
    effects = context_effects(run)
    tables = [
        _by_bin("Kept, by tokens since the rule was said", TOKEN_BINS, effects.by_tokens_since),
        _by_bin("Kept, by tool calls so far", CALL_BINS, effects.by_calls),
        _by_bin("Kept, by compactions so far", COMPACTION_BINS, effects.by_compactions),
        _by_name("Kept, by kind of rule", "kind", effects.by_kind),
        _by_name("Kept, by polarity of rule", "polarity", effects.by_polarity),
    ]
    around = effects.around
    if around.change.n:
        cells = (plain(around.before), plain(around.after), signed(around.change))
        rows = [("dialogs", "before", "after", "change"), (str(around.change.n), *cells)]
        tables.append(Table("Kept before and after compactions", rows))
    if around.kept:
        kept: list[tuple[str, ...]] = [
            ("rule", "compactions", "said by the summary", "still in the context")
        ]
        kept += [(rule, *map(str, counts)) for rule, counts in around.kept.items()]
        tables.append(Table("What compactions kept of each rule", kept))
    return [table for table in tables if table is not None]


def _by_bin(title: str, bins: tuple[int, ...], values: tuple[Estimate, ...]) -> Table | None:
    rows: list[tuple[str, ...]] = [("from", "kept", "dialogs")]
    for start, value in zip(bins, values, strict=False):  # none in an earlier version
        if value.n:
            rows.append((f"{start:,}", plain(value), str(value.n)))
    return Table(title, rows) if len(rows) > 2 else None


def _by_name(title: str, head: str, values: Mapping[str, Estimate]) -> Table | None:
    rows: list[tuple[str, ...]] = [(head, "kept", "dialogs")]
    rows += [(name, plain(value), str(value.n)) for name, value in values.items()]
    return Table(title, rows) if len(rows) > 2 else None
