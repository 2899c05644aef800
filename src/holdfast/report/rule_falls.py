"""When a rule is kept less, in the words of tables."""

from collections.abc import Sequence

from holdfast.analysis.estimates import EstimateRow
from holdfast.analysis.outcome import is_uninformative
from holdfast.analysis.prompt_effect import MADE_WORSE, NEVER_FOLLOWED, UNINFORMATIVE, Baseline
from holdfast.analysis.verdicts import MIN_SAMPLES
from holdfast.plurals import join_with_and


def fall(row: EstimateRow, baseline: Baseline | None = None) -> str:
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
        return f"followed less {since(row)}"
    return f"followed less {since(row)} (clear in {_rounds_text(row.lower_in_rounds)})"


def broken_text(row: EstimateRow) -> str:
    """'first broken in round 1: 2, round 3: 5; kept throughout: 33 of 40'."""
    kept = f"kept throughout: {row.kept_throughout} of {row.n}"
    numbered = enumerate(row.first_broken_by_round, start=1)
    counts = ", ".join(f"round {number}: {count}" for number, count in numbered if count)
    return f"first broken in {counts}; {kept}" if counts else kept


def since(row: EstimateRow) -> str:
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
