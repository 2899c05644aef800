"""The results of a drift run, computed once for the terminal, the page and `summary.json`."""

from dataclasses import dataclass
from functools import cached_property

from holdfast.analysis.check_file import read_check
from holdfast.analysis.outcome import Findings, findings_of
from holdfast.analysis.prompt_effect import baseline_beside
from holdfast.analysis.series import Series, read_series
from holdfast.analysis.truncation import until_prompt_lost
from holdfast.records import Run
from holdfast.records.check_records import Check
from holdfast.records.drift_summary import Baseline
from holdfast.records.identity import ConversationsIdentity, ProtocolSettings


@dataclass(frozen=True, eq=False)
class DriftResults:
    """The results of a drift run, from which its title, its next step and its summary follow.

    Args:
        series: one per method, the unsteered one first.
    """

    run: Run
    series: tuple[Series, ...]

    @property
    def label(self) -> str:
        """The name that tells the run from others; "" if it is the only one."""
        return self.series[0].run

    @property
    def settings(self) -> ProtocolSettings:
        """The protocol of its conversations."""
        return self.run.identity_as(ConversationsIdentity).settings

    @property
    def methods(self) -> list[str]:
        """The methods of its series."""
        return [series.method for series in self.series]

    @cached_property
    def baseline(self) -> Baseline | None:
        """The first series without a system prompt; None if that was not measured."""
        return baseline_beside(self.run, self.series[0])

    @cached_property
    def findings(self) -> Findings:
        """On the first series, over the rounds in which the model read the whole prompt."""
        return findings_of(until_prompt_lost(self.series)[0], self.baseline)

    @cached_property
    def check(self) -> Check | None:
        """The verdicts of `holdfast check`; None for a run of another command."""
        return read_check(self.run)


def results_of(run: Run, label: str = "") -> DriftResults:
    """Reads the results of a drift run; the label tells it from other runs on the same page.

    Raises:
        RecordsError: the run has no finished conversation.
    """
    return DriftResults(run, tuple(read_series(run, label)))
