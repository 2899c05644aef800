"""The sentences of `holdfast logs`, for terminal and page.

For example:

    “Greet the customer.” (shop/greet) is kept less than in the earlier logs: by 12 points (95%
    interval 4 to 20).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from holdfast.analysis.rule_context import count_causes
from holdfast.analysis.rule_scores import label_of
from holdfast.analysis.sequential import FAIL, PASS, UNDECIDED
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.verdicts import MIN_SAMPLES
from holdfast.drift.probe_outcomes import NOT_SHOWN
from holdfast.plurals import count_of, join_with_and, listing
from holdfast.records import Run
from holdfast.records.logs_summary import LoggedRule
from holdfast.report.logs_words import CAUSE_WORDS, rule_name, said_to_be_loaded

LoggedRules = Sequence[LoggedRule]
RuleNaming = Callable[[Run, str], str]


def have_verdicts(rows: LoggedRules) -> bool:
    """Whether the rules were held to a bar, or compared with earlier logs."""
    return any(row.verdict for row in rows)


def headline(run: Run, rows: LoggedRules, name_of: RuleNaming = rule_name) -> str:
    """The first line: on the rule that fell most since earlier logs, or else is kept least.

    Args:
        name_of: names a rule in it.
    """
    dialogs = count_of(len(run.records), "dialog")
    judged_rows = [row for row in rows if row.is_judged]
    if not judged_rows and unjudged_rules(run):
        return f"No rule could be judged on any turn of {dialogs}."
    if not judged_rows:
        return f"No rule applied to any turn of {dialogs}."
    tested_rows = [row for row in judged_rows if not row.for_probes]
    if not tested_rows:
        return "No rule says which turns it is for, so these logs do not show how well it is kept."
    largest_fall = _largest_fall_sentence(run, tested_rows, name_of)
    return largest_fall or _worst_rule_sentence(run, tested_rows, name_of)


def _largest_fall_sentence(run: Run, rows: LoggedRules, name_of: RuleNaming) -> str | None:
    """The rule that fell most since the earlier logs; None if none certainly fell."""
    comparisons = [(row.rule, row.against) for row in rows if row.against is not None]
    falls = [(rule, earlier.difference) for rule, earlier in comparisons if earlier.certain < 0]
    if not falls:
        return None
    rule, change = min(falls, key=lambda item: item[1].mean or 0)
    mean, low, high = (
        f"{-100 * (value or 0):.0f}" for value in (change.mean, change.high, change.low)
    )
    return (
        f"{name_of(run, rule)} is kept less than in the earlier logs: by {mean} points (95%"
        f" interval {low} to {high})."
    )


def _worst_rule_sentence(run: Run, rows: LoggedRules, name_of: RuleNaming) -> str:
    """The rule that is kept least, and how often and how early it is broken."""
    if all(row.adherence.mean == 1 for row in rows) and len(rows) > 1:
        return f"All {len(rows)} rules are kept in every turn that they apply to."
    worst = worst_first(rows)[0]
    applied = count_of(worst.applied, "turn")
    if not worst.broken and worst.adherence.mean == 1:
        name = name_of(run, worst.rule)
        return f"The rule {name} is kept in every turn that it applies to: {applied}."
    subject = _worst_rule_subject(name_of(run, worst.rule), worst, rows)
    if not worst.broken:
        return f"{subject} never broken, but kept only in part: {_share_text(worst.adherence)}."
    cause = _commonest_cause_clause(run, worst)
    ending = f"; {cause}." if cause else "."
    if worst.applied == 1:
        return f"{subject} broken in the only turn it applies to{ending}"
    first = min(turn.turn for turn in worst.broken)
    earliest = f"as early as turn {first}" if worst.adherence.n > 1 else f"first in turn {first}"
    share = f"{len(worst.broken):,} of the {applied}"
    if len(worst.broken) == worst.applied:
        share = "both turns" if worst.applied == 2 else f"all {applied}"
    return f"{subject} broken in {share} it applies to, {earliest}{ending}"


def _worst_rule_subject(name: str, worst: LoggedRule, rows: LoggedRules) -> str:
    """'Of 3 rules, “Greet.” (shop/greet) is kept least: it is', for the start of a sentence."""
    num_tied = sum(row.adherence.mean == worst.adherence.mean for row in rows)
    if len(rows) == 1:
        return f"The rule {name} is"
    if num_tied == len(rows):
        all_rules = "Both rules" if len(rows) == 2 else f"All {len(rows)} rules"
        return f"{all_rules} are kept equally often; one of them, {name}, is"
    if num_tied > 1:
        return f"Of {len(rows)} rules, {num_tied} are kept least; one of them, {name}, is"
    return f"Of {len(rows)} rules, {name} is kept least: it is"


def _commonest_cause_clause(run: Run, row: LoggedRule) -> str:
    """'the log does not show why in 3 of them'; "" if no cause was looked for."""
    counts = count_causes(run).get(row.rule)
    if not counts:
        return ""
    total = sum(counts.values())
    cause = max(counts, key=lambda name: counts[name])
    clause = CAUSE_WORDS[cause].clause
    if cause == "present" and (files := said_to_be_loaded(run)):
        loaded = "was loaded" if len(files) == 1 else "were loaded"
        clause = f"if {join_with_and(files)} {loaded}, as you said, {clause}"
    return f"{clause} in {counts[cause]:,} of them" if counts[cause] < total else clause


def _share_text(adherence: Estimate) -> str:
    """'74% (95% interval 69 to 79)'; only the mean if there is no interval."""
    mean = f"{100 * (adherence.mean or 0):.0f}%"
    if adherence.low is None or adherence.high is None:
        return mean
    return f"{mean} (95% interval {100 * adherence.low:.0f} to {100 * adherence.high:.0f})"


def worst_first(rows: LoggedRules) -> list[LoggedRule]:
    """Sorts rules by how well they are kept, the worst first.

    Rules with too few dialogs for a verdict come after the others, and rules that are made for
    probes come last.
    """

    def rank(row: LoggedRule) -> tuple[bool, bool, float, int]:
        mean = 1.0 if row.adherence.mean is None else row.adherence.mean
        return row.for_probes, row.adherence.n < MIN_SAMPLES, mean, -len(row.broken)

    return sorted(rows, key=rank)


def unjudged_rules(run: Run, why: str = "") -> dict[str, int]:
    """By rule, how many turns that it applies to could not be judged.

    Args:
        why: counts only the turns that could not be judged for this reason; "" counts all.
    """
    counts = Counter[str]()
    for (rule, reason), count in run.log_scores.unscored.items():
        if why in ("", reason):
            counts[label_of(rule)] += count
    return counts


def lines_below_headline(run: Run, rows: LoggedRules, bar: float | None) -> list[str]:
    """The lines below the headline: more on its rule, and the verdicts."""
    return [*_worst_rule_details(rows), *_verdict_sentences(rows, bar)]


def unscored_notes(run: Run, rows: LoggedRules) -> list[str]:
    """Sentences on the rules that the headline leaves out, and on what was not scored."""
    return [*_unscored_rule_sentences(run, rows), *_left_out_sentences(run)]


def _worst_rule_details(rows: LoggedRules) -> list[str]:
    """When the rule of the headline is first broken, and whether that holds for other dialogs."""
    tested_rows = [row for row in rows if row.is_judged and not row.for_probes]
    if not tested_rows:
        return []
    worst = worst_first(tested_rows)[0]
    sentences = []
    if worst.adherence.n > 1:
        sentences.append(
            f"On average over {count_of(worst.adherence.n, 'dialog')}, each counting once however"
            f" long it is, {_share_text(worst.adherence)} of its turns keep it."
        )
    if worst.first_broken.broken and worst.adherence.n > 1:
        sentences.append(_breaks_sentence(worst))
    if worst.adherence.n < MIN_SAMPLES:
        sentences.append(
            f"Fewer than {MIN_SAMPLES} dialogs are too few to speak for other dialogs."
        )
    return sentences


def _unscored_rule_sentences(run: Run, rows: LoggedRules) -> list[str]:
    """The rules that the headline leaves out, and why."""
    sentences = []
    if names := [row.rule for row in rows if row.for_probes]:
        sentences.append(
            f"Rules for the answers to probes, scored here in every turn: {listing(names)}. A turn"
            " that gives no reason to follow them counts as broken, so the first line leaves them"
            " out; `when` says which turns a rule is for ({user: '.'} for all)."
        )
    judged_rules = {row.rule for row in rows if row.is_judged}
    unjudged = unjudged_rules(run)
    triggered_rules = judged_rules | set(unjudged)
    if judged_rules and (
        rare := [name for name in run.manifest.rules if name not in triggered_rules]
    ):
        sentences.append(f"Rules that apply to no turn: {listing(rare)}.")
    if cut_rules := unjudged_rules(run, "cut"):
        sentences.append(
            f"Not judged: {count_of(sum(cut_rules.values()), 'score')} of turns that were cut at"
            f" the token limit, by rules that need the end of a reply ({listing(list(cut_rules))})."
        )
    if hidden_rules := unjudged_rules(run, NOT_SHOWN):
        sentences.append(
            f"Not judged: {count_of(sum(hidden_rules.values()), 'score')}, as the logs do not show"
            f" enough, such as the text of a file ({listing(list(hidden_rules))})."
        )
    return sentences


def _verdict_sentences(rows: LoggedRules, bar: float | None) -> list[str]:
    """How many rules pass, fail or are undecided, and which could not be compared."""
    sentences = []
    if have_verdicts(rows):
        verdicts = [row.verdict for row in rows]
        counts = ", ".join(
            f"{verdicts.count(name)} {name}" for name in (PASS, FAIL, UNDECIDED) if name in verdicts
        )
        undecided_rows = [row for row in rows if row.verdict == UNDECIDED and not row.for_probes]
        if bar is not None:
            sentences.append(f"Rules: {counts}, at a bar of {bar:g}.")
        elif any(row.is_judged and row.adherence.n < MIN_SAMPLES for row in undecided_rows):
            sentences.append(f"Rules: {counts}, as a comparison takes {MIN_SAMPLES} dialogs.")
        else:
            sentences.append(f"Rules: {counts}.")
    for why in dict.fromkeys(row.uncompared for row in rows if row.uncompared):
        names = ", ".join(row.rule for row in rows if row.uncompared == why)
        sentences.append(f"Not compared: {names}, as {why}.")
    return sentences


def _left_out_sentences(run: Run) -> list[str]:
    """The dialogs, turns and parts of the files that were not scored."""
    manifest = run.manifest
    sentences = []
    if manifest.unmatched:
        dialogs = count_of(manifest.dialogs, "dialog")
        sentences.append(
            f"Not scored: {manifest.unmatched} of {dialogs}, whose system prompt is not in the"
            " suite."
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
    if manifest.refused_calls:
        sentences.append(
            "Refused or blocked before they ran, and so not scored:"
            f" {count_of(manifest.refused_calls, 'tool call')}."
        )
    if manifest.problems:
        parts = count_of(len(manifest.problems), "part")
        sentences.append(f"Not read or left out: {parts} of the files.")
    return sentences


def _breaks_sentence(row: LoggedRule) -> str:
    """How many dialogs break a rule, and when half have; an estimate if some ended before that."""
    breaks = row.first_broken
    total = row.adherence.n
    verb = "breaks" if breaks.broken == 1 else "break"
    breach_text = f"{breaks.broken} of {total} dialogs {verb} it at least once"
    if breaks.median_turn is None:
        return f"{breach_text}; the others had not when they ended."
    if breaks.estimated:
        return (
            f"{breach_text}; an estimated half break it by turn {breaks.median_turn} (some dialogs"
            " ended before that)."
        )
    return f"{breach_text}; half of all dialogs have broken it by turn {breaks.median_turn}."
