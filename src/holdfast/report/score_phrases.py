"""Phrases that the sentences and tables on a drift run share. None begins or ends with a space."""

import re
from collections.abc import Sequence

from holdfast.analysis.estimate_rows import EstimateRow, row_of
from holdfast.analysis.outcome import is_uninformative
from holdfast.analysis.prompt_effect import MADE_WORSE, NEVER_FOLLOWED, UNINFORMATIVE
from holdfast.analysis.series import NO_FIX, Series
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.verdicts import INCLUDES_ZERO, MIN_SAMPLES, verdict_on
from holdfast.plurals import count_of, from_to, join_with_and
from holdfast.records.drift_summary import Baseline
from holdfast.report.wording import needs_note, percent, points


def join_phrases(*phrases: str) -> str:
    """Joins phrases with spaces and leaves out empty ones: 'the agent drifts on this prompt'."""
    return " ".join(phrase for phrase in phrases if phrase)


def with_fix(series: Series) -> str:
    """'with boost:factor=4'; "" without a fix."""
    return "" if series.method == NO_FIX else f"with {series.method}"


def scope_of(series: Series) -> str:
    """'on this prompt' or 'on these 5 prompts'; "" if the change holds for other prompts too."""
    count = len(set(series.prompts))
    if count == 1:
        return "on this prompt"
    change = row_of(series, "stability").change
    others = change.other_prompts
    holds_for_others = others and (others.excludes_zero or not change.excludes_zero)
    has_rules = any(probe.rule for record in series.records for probe in record.probes)
    return "" if holds_for_others and not has_rules else f"on these {count} prompts"


def capitalise(text: str) -> str:
    """The text with a capital first letter.

    The other letters stay as they are, and so does a path or an identifier at its start.
    """
    first_word = text.partition(" ")[0]
    return text if re.search(r"[\w.][/_.]\w|\(", first_word) else text[:1].upper() + text[1:]


def scores_text(row: EstimateRow, *, on_probes: bool = False) -> str:
    """'75% in round 8, down from 95% in round 1', for a row with a mean in both rounds.

    If their difference would not be that of the change, they are the means of what was judged in
    both rounds.

    Args:
        on_probes: whether to say that these are scores on probes: '75% on probes in round 8, ...'.
    """
    first = row.points[0].mean
    last = row.points[-1].mean
    assert first is not None and last is not None
    if needs_note(row.change, last, first):
        first, last = row.compared
    sign = verdict_on(row.change).sign
    before = percent(first)
    now = percent(last)
    is_hidden = sign and before == now
    # rounded, 64.2% and 67.5% are 4 points apart, beside a change of 3 points
    apart = abs(int(now.removesuffix("%")) - int(before.removesuffix("%")))
    is_inexact = row.change.mean is not None and apart != round(100 * abs(row.change.mean))
    if is_hidden or is_inexact:
        before = f"{100 * first:.1f}%"
        now = f"{100 * last:.1f}%"
    direction = {1: "up from ", -1: "down from ", 0: ""}[sign]
    score = f"{now} on probes" if on_probes else now
    return f"{score} in round {row.series.rounds}, {direction}{before} in round 1"


def judged_in_both(row: EstimateRow) -> str:
    """', counting only what was judged in both rounds', if the change is then visibly another.

    "" otherwise.
    """
    if needs_note(row.change, row.points[-1].mean, row.points[0].mean):
        return ", counting only what was judged in both rounds"
    return ""


def could_be_chance(change: Estimate) -> str:
    """'-10 points (95% interval -28 to +8) could be chance', for a change that is no finding."""
    why = verdict_on(change).why
    if change.excludes_zero:
        return f"{points(change)} rests on too little data: {why}"
    if why == INCLUDES_ZERO:  # the reader sees that the interval includes 0
        return f"{points(change)} could be chance"
    return f"{points(change)} could be chance: {why}"


def fall_text(row: EstimateRow, baseline: Baseline | None = None) -> str:
    """Whether a rule is followed at all, and from which round on it is followed less."""
    if row.n < MIN_SAMPLES:
        return f"n = {row.n}, too few to tell (that takes {MIN_SAMPLES})"
    if baseline and baseline.verdict_on(row.case, row.rule) == MADE_WORSE:
        return f"{MADE_WORSE} by the prompt"
    if row.never_followed:
        if row.kept_in_any_round:
            return f"{NEVER_FOLLOWED} (less than 20% everywhere)"
        return f"{NEVER_FOLLOWED} (0 of {row.n} conversations)"
    if is_uninformative(row, baseline):
        return f"{UNINFORMATIVE}: as good without the prompt"
    if row.series.rounds < 2:
        return "one round cannot show a fall"
    if not row.lower_in_rounds and row.change.n < MIN_SAMPLES:
        return (
            f"scored in both the first round and the last in {row.change.n} of {row.n}"
            f" conversations, too few to tell (that takes {MIN_SAMPLES})"
        )
    if not row.lower_in_rounds:
        return "no clear fall"
    if row.lower_from_round is None:
        return f"followed less in {_rounds_text(row.lower_in_rounds)} only"
    if row.lower_in_rounds == tuple(range(row.lower_from_round, row.series.rounds + 1)):
        return f"followed less {since_text(row)}"
    return f"followed less {since_text(row)} (clear in {_rounds_text(row.lower_in_rounds)})"


def broken_text(row: EstimateRow) -> str:
    """'first broken in round 1: 2, round 3: 5; kept throughout: 33 of 40'."""
    kept_text = f"kept throughout: {row.kept_throughout} of {row.n}"
    numbered = enumerate(row.first_broken_by_round, start=1)
    counts = ", ".join(f"round {number}: {count}" for number, count in numbered if count)
    return f"first broken in {counts}; {kept_text}" if counts else kept_text


def since_text(row: EstimateRow) -> str:
    """'from round 3', or 'in round 8' if that is the last."""
    if row.lower_from_round == row.series.rounds:
        return f"in round {row.lower_from_round}"
    return f"from round {row.lower_from_round}"


def _rounds_text(numbers: Sequence[int]) -> str:
    """'round 3', or 'rounds 2 and 5 to 8'."""
    return f"round {numbers[0]}" if len(numbers) == 1 else f"rounds {_ranges(numbers)}"


def _ranges(numbers: Sequence[int]) -> str:
    """'3', or '2 and 5 to 8'; two rounds in a row are listed, '5 and 6'."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    spans: list[str] = []
    for run in runs:
        if len(run) > 2:
            spans.append(f"{run[0]} to {run[-1]}")
        else:
            spans += map(str, run)
    return join_with_and(spans)


def describe_conversations(all_series: Sequence[Series]) -> str:
    """'24 conversations of 8 rounds, under each of 3 methods'; one method is not mentioned."""
    counts = sorted({len(series.records) for series in all_series})
    number = from_to(counts[0], counts[-1])
    noun = "conversation" if counts[-1] == 1 else "conversations"
    rounds = count_of(all_series[0].rounds, "round")
    methods = len({series.method for series in all_series})
    if methods > 1:
        return f"{number} {noun} of {rounds}, under each of {methods} methods"
    return f"{number} {noun} of {rounds}"
