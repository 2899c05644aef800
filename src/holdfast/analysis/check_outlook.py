"""Ways to settle a check that ended undecided: more conversations, or another bar."""

from collections.abc import Sequence

from holdfast.analysis.cell_scores import cell_scores
from holdfast.analysis.check_terms import Terms
from holdfast.analysis.check_verdicts import PromptCheck
from holdfast.analysis.sequential import UNDECIDED, conversations_needed

MAX_CONVERSATIONS_FORECAST = 2000  # larger needs are not reported: nobody waits that long


def budget_needed(checks: Sequence[PromptCheck], terms: Terms) -> int | None:
    """Returns how many conversations per prompt would settle the check if scores stay as they are;
    None if nothing is undecided, if there is no bar, or if it would take too many.
    """
    bar = terms.min_stability
    needed = 0
    for checked in checks:
        rules: list[str | None] = [*checked.undecided_rules(terms)]
        if bar is None or (checked.verdict != UNDECIDED and not rules):
            continue
        scores = cell_scores(checked.records, max(cell.round for cell in checked.cells))
        for rule in rules or [None]:
            values = scores.values if rule is None else scores.of_rule(rule).values
            count = conversations_needed(values, bar, checked.error, MAX_CONVERSATIONS_FORECAST)
            if count is None:
                return None
            needed = max(needed, count)
    return needed or None


def closest_mean(checks: Sequence[PromptCheck], terms: Terms) -> float | None:
    """Returns the mean closest to the bar among the cells of the prompts, or of their undecided
    rules if every rule is to be decided; None if there are none, or no bar.
    """
    means: list[float] = []
    for checked in checks:
        rules = checked.undecided_rules(terms)
        cells = [cell for cell in checked.cells if not rules or cell.rule in rules]
        means += [cell.mean for cell in cells if cell.mean is not None]
    bar = terms.min_stability
    return None if bar is None else min(means, key=lambda mean: abs(mean - bar), default=None)
