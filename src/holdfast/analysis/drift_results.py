"""The results of a drift run, computed once for the terminal, the page and `summary.json`."""

from dataclasses import dataclass
from functools import cached_property

from holdfast.analysis.check_file import Check, read_check
from holdfast.analysis.outcome import Findings, findings_of
from holdfast.analysis.prompt_effect import Baseline, baseline_beside
from holdfast.analysis.series import Series, read_series
from holdfast.analysis.truncation import until_prompt_lost
from holdfast.records import Run


@dataclass(frozen=True, eq=False)
class DriftResults:
    """The results of a drift run, from which its title, its next step and its summary follow.

    Args:
        series: one per method, the unsteered one first.
        baseline: the first series without a system prompt; None if that was not measured.
        findings: on the first series, over the rounds in which the model read the whole prompt.
    """

    run: Run
    series: tuple[Series, ...]
    baseline: Baseline | None
    findings: Findings

    @cached_property
    def check(self) -> Check | None:
        """The verdicts of `holdfast check`; None for a run of another command."""
        return read_check(self.run)


def results_of(run: Run, label: str = "") -> DriftResults:
    """Computes the results of a drift run; the label tells it from other runs on the same page."""
    series = tuple(read_series(run, label))
    baseline = baseline_beside(run, series[0])
    return DriftResults(run, series, baseline, findings_of(until_prompt_lost(series)[0], baseline))
