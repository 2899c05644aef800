"""Why rules were broken: the lines of the terminal and the section of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.analysis.rule_context import context_effects, count_causes, total_causes
from holdfast.analysis.statistics import Estimate
from holdfast.logs.unrecorded_prompts import AGENTS, AUTOMATIC_FILES
from holdfast.plurals import count_of, join_with_and
from holdfast.records import BreachCause, Evidence, Run
from holdfast.records.logs_summary import CompactionEffect
from holdfast.records.mean_estimate import EstimateFrom
from holdfast.report.logs_words import (
    CAUSE_WORDS,
    IN_A_COLUMN,
    IN_A_TABLE,
    rule_words,
    said_to_be_loaded,
)
from holdfast.report.page import Table
from holdfast.report.wording import aligned, plain, signed

if TYPE_CHECKING:
    from holdfast.logs.recalled_causes import RecallSample

_EVENTS = {  # by `Evidence.what`
    "said": "Said in",
    "left": "Left the context in",
    "ordered": "Ordered otherwise in",
}


@dataclass(frozen=True)
class CausesSection:
    """The section of the page.

    Attributes:
        by_rule: how many breaches of each rule have each cause.
        meanings: the name of each cause that occurs, and its meaning.
        hint: how to find the causes that the logs do not show; "" if they show most.
        tables: how well rules are kept, by what was in the context.
    """

    by_rule: Table
    meanings: tuple[tuple[str, str], ...]
    hint: str
    tables: tuple[Table, ...]


@dataclass(frozen=True)
class BreachReason:
    """Why a turn broke a rule, as the page shows it."""

    name: str
    why: str  # "" if the name says everything
    evidence: tuple[tuple[str, str], ...]  # for each piece, where it is, and a quotation or ""


# The text for the terminal


def why_table(run: Run) -> str:
    """Says how many breaches have each cause, in total and by rule; "" if nothing was broken."""
    counts_by_rule = count_causes(run)
    if not counts_by_rule:
        return ""
    totals = total_causes(counts_by_rule)
    breakdown = ", ".join(
        f"{CAUSE_WORDS[cause].name} {count}" for cause, count in totals.items() if count
    )
    lines = ["", f"Why: {count_of(sum(totals.values()), 'breach')}: {breakdown}."]
    has_several_causes = sum(map(bool, totals.values())) > 1
    if len(counts_by_rule) > 1 and has_several_causes:
        lines += ["", *aligned(_cause_rows(run, counts_by_rule, IN_A_COLUMN))]
    if effect := context_effects(run).compactions:
        lines += ["", _compactions_sentence(effect)]
    if hint := _hint(run, totals):
        lines += ["", hint]
    return "\n".join(lines)


def _compactions_sentence(effect: CompactionEffect) -> str:
    """How many rules the summaries kept, and how adherence changed from before to after them."""
    num_kept = sum(rule.in_summary for rule in effect.kept)
    total = sum(rule.compactions for rule in effect.kept)
    dialogs = count_of(effect.dialogs, "dialog")
    sentence = f"{count_of(effect.compactions, 'compaction')} in {dialogs}"
    if total:
        sentence += f"; summaries kept {num_kept} of {total} rules that were in the context"
        in_context = sum(rule.in_context for rule in effect.kept)
        # the others are in the system prompt, or in what was kept beside the summary
        if in_context > num_kept:
            sentence += f" ({in_context} are still in it)"
    if effect.change.n:
        sentence += f"; from before to after, the share kept changed by {signed(effect.change)}"
    return f"{sentence}."


def recall_sentence(sample: RecallSample) -> str:
    """How many breaches the model was asked about, and how these were chosen."""
    sentence = (
        f"{sample.model} was asked for its rules at {sample.asked:,} of {sample.present:,}"
        " breaches whose rule was present"
    )
    if sample.asked < sample.present:
        sentence += ", drawn at random (the same ones each time)"
    if sample.undecided:
        sentence += f"; {sample.undecided:,} gave no complete answer, and still count as present"
    return f"{sentence}."


# The section of the page


def causes_section(run: Run) -> CausesSection | None:
    """The section of the page; None if nothing was broken, or no cause was looked for."""
    counts_by_rule = count_causes(run)
    if not counts_by_rule:
        return None
    totals = total_causes(counts_by_rule)
    words = [CAUSE_WORDS[cause] for cause, count in totals.items() if count]
    return CausesSection(
        by_rule=Table("Breaches by cause", _cause_rows(run, counts_by_rule, IN_A_TABLE)),
        meanings=tuple((cause.name, cause.meaning) for cause in words),
        hint=_hint(run, totals),
        tables=tuple(_context_tables(run)),
    )


def _context_tables(run: Run) -> list[Table]:
    """How well rules are kept by what was in the context, where there are groups to compare."""
    effects = context_effects(run)
    tables = [
        _table_by_start("Kept, by tokens since the rule was said", effects.by_tokens_since),
        _table_by_start("Kept, by tool calls so far", effects.by_calls),
        _table_by_start("Kept, by compactions so far", effects.by_compactions),
        _table_by_name("Kept, by kind of rule", "kind", effects.by_kind),
        _table_by_name("Kept, by polarity of rule", "polarity", effects.by_polarity),
    ]
    if effect := effects.compactions:
        tables += [_change_table(effect), _kept_table(run, effect)]
    return [table for table in tables if table is not None]


def _change_table(effect: CompactionEffect) -> Table | None:
    if not effect.change.n:
        return None
    rows = [("dialogs", "change"), (str(effect.change.n), signed(effect.change))]
    return Table("Kept after compactions, compared with before", rows)


def _kept_table(run: Run, effect: CompactionEffect) -> Table | None:
    if not effect.kept:
        return None
    rows: list[tuple[str, ...]] = [
        ("rule", "compactions", "said by the summary", "still in the context")
    ]
    for rule in effect.kept:
        counts = (rule.compactions, rule.in_summary, rule.in_context)
        rows.append((rule_words(run, rule.rule, IN_A_TABLE), *map(str, counts)))
    return Table("What compactions kept of each rule", rows)


def _table_by_start(title: str, values: Sequence[EstimateFrom]) -> Table | None:
    rows: list[tuple[str, ...]] = [("from", "kept", "dialogs")]
    rows += [(f"{value.start:,}", plain(value), str(value.n)) for value in values]
    return Table(title, rows) if len(rows) > 2 else None


def _table_by_name(title: str, head: str, values: Mapping[str, Estimate]) -> Table | None:
    rows: list[tuple[str, ...]] = [(head, "kept", "dialogs")]
    rows += [(name, plain(value), str(value.n)) for name, value in values.items()]
    return Table(title, rows) if len(rows) > 2 else None


def causes_of_rule(counts: Mapping[str, int] | None) -> str:
    """'outweighed 1, not shown 2', for the breaches of a rule; "" if no cause was looked for."""
    return ", ".join(
        f"{CAUSE_WORDS[name].name} {count:,}" for name, count in (counts or {}).items() if count
    )


def breach_reason(
    cause: BreachCause | None, words: str, loaded: Sequence[str] = ()
) -> BreachReason | None:
    """The cause of a breach for the page; None if none was looked for.

    Args:
        words: the rule, which the page shows above; evidence does not quote it again.
        loaded: the files of --loaded.
    """
    if cause is None:
        return None
    why = "" if cause.cause in ("unknown", "present") else cause.why
    evidence = tuple(
        (_where(item, loaded), "" if item.quote == words else item.quote) for item in cause.evidence
    )
    return BreachReason(CAUSE_WORDS[cause.cause].name, why, evidence)


def _where(item: Evidence, loaded: Sequence[str]) -> str:
    """'Said in AGENTS.md, turn 3'."""
    event = f"{_EVENTS[item.what]} {item.source}"
    if item.source in loaded:
        return f"{event}, which you said was loaded"
    return f"{event}, turn {item.turn}" if item.turn else event


# For both


def _cause_rows(
    run: Run, counts_by_rule: Mapping[str, Mapping[str, int]], max_characters: int
) -> list[tuple[str, ...]]:
    """A row for each rule, and a column for each cause that occurs; the header comes first.

    Args:
        counts_by_rule: how many breaches of each rule have each cause.
        max_characters: the length in characters to which a rule's words are cut.
    """
    totals = total_causes(counts_by_rule)
    causes = [cause for cause in totals if totals[cause]]
    rows: list[tuple[str, ...]] = [("rule", *(CAUSE_WORDS[cause].name for cause in causes))]
    for rule, counts in counts_by_rule.items():
        words = rule_words(run, rule, max_characters)
        rows.append((words, *(str(counts[cause]) for cause in causes)))
    return rows


def _hint(run: Run, totals: Mapping[str, int]) -> str:
    """How to find causes that an agent's transcripts do not show; "" if they show most of them.

    With --loaded, says on whose word the causes rest.

    Args:
        totals: how many breaches have each cause.
    """
    if files := said_to_be_loaded(run):
        were = "was" if len(files) == 1 else "were"
        return (
            f"You said that {join_with_and(files)} {were} in the context; the logs do not show it."
        )
    unknown = totals["unknown"]
    total = sum(totals.values())
    agents = [name for name in run.manifest.formats if name in AUTOMATIC_FILES]
    if not agents or 2 * unknown <= total:
        return ""
    file = AUTOMATIC_FILES[agents[0]]
    return (
        f"The log does not show why for {unknown:,} of {total:,} breaches: {AGENTS[agents[0]]}"
        " transcripts omit the rule files it loads. If it loads them into every"
        f" session from a file, add `--loaded {file}`, with the file's path (and another `--out`,"
        " if you gave one)."
    )
