"""The scores of a prompt's conversations by rule and round.

For example, two conversations of two rounds, whose prompt has the rules "brief" and "polite":

    cells       (brief, 1)  (polite, 1)  (brief, 2)  (polite, 2)
    values  0          1.0          1.0         0.5          NaN
            1          1.0          0.0         1.0          1.0
    lost    0        False        False       False         True   the server gave no reply
            1        False        False       False        False
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from holdfast.analysis.statistics import MatrixEntry, matrix_of
from holdfast.records import Conversation, ProbeKey

# The reasons for a missing score that are the server's fault: it failed, or withheld the reply.
_OUTAGES = ("failure", "filter", "empty", "refusal")


class RuleRound(NamedTuple):
    """A cell: a rule, or None if it is the prompt's only one, in a round."""

    rule: str | None
    round: int


@dataclass(frozen=True, eq=False)
class CellScores:
    """The mean scores of a prompt's conversations by rule and round.

    Attributes:
        cells: every rule in every round, by round.
        values: [conversation, cell], NaN where no probe has a score.
        lost: [conversation, cell] bool, True where the score is missing because the server gave no
            reply.
    """

    cells: tuple[RuleRound, ...]
    values: np.ndarray
    lost: np.ndarray

    @property
    def at_best(self) -> np.ndarray:
        """The values with the best score, 1, in place of each reply that was lost.

        Verdicts that let a prompt fail use these, so that an outage cannot cause a failure.
        """
        return np.where(self.lost, 1.0, self.values)

    @property
    def rules(self) -> tuple[str | None, ...]:
        """The rules of the prompt."""
        return tuple(dict.fromkeys(cell.rule for cell in self.cells))

    def of_rule(self, rule: str | None) -> "CellScores":
        """Returns the scores of one rule."""
        columns = [column for column, cell in enumerate(self.cells) if cell.rule == rule]
        cells = tuple(self.cells[column] for column in columns)
        return CellScores(cells, self.values[:, columns], self.lost[:, columns])


def cell_scores(records: Sequence[Conversation], rounds: int) -> CellScores:
    """Collects the scores of a prompt's conversations in their first `rounds` rounds."""
    probes = [
        (row, probe)
        for row, record in enumerate(records)
        for probe in record.stability_probes
        if probe.round <= rounds
    ]
    # a rule that has no score at all still counts as a rule of the prompt
    all_probes: list[ProbeKey] = [probe for _, probe in probes]
    all_probes += [probe for record in records for probe in record.without_score]
    rules = dict.fromkeys(probe.rule for probe in all_probes if probe.kind == "stability")
    cells = [RuleRound(rule, number) for number in range(1, rounds + 1) for rule in rules or [None]]
    columns = {cell: column for column, cell in enumerate(cells)}
    scores = [
        MatrixEntry(row, columns[RuleRound(probe.rule, probe.round)], probe.score)
        for row, probe in probes
    ]
    values = matrix_of(scores, (len(records), len(cells)))
    lost = np.array([[_is_lost(record, cell) for cell in cells] for record in records], dtype=bool)
    return CellScores(tuple(cells), values, lost.reshape(values.shape) & np.isnan(values))


def _is_lost(record: Conversation, cell: RuleRound) -> bool:
    """Whether the server gave no reply to the cell's probe, or failed and so ended the dialog
    before it.
    """
    if (
        record.ended is not None
        and record.ended.why in _OUTAGES
        and cell.round >= record.ended.round
    ):
        return True
    return any(
        probe.why in _OUTAGES and (probe.kind, probe.rule, probe.round) == ("stability", *cell)
        for probe in record.without_score
    )
