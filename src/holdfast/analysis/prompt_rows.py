"""The system prompts of a drift run: the stability of each, and its adoption from the user."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.analysis import statistics
from holdfast.analysis.estimates import EstimateRow
from holdfast.analysis.series import Series
from holdfast.records import Agent


@dataclass(frozen=True)
class PromptRow:
    """One system prompt as the agent's (stability) and as the user's (adoption) in one series."""

    id: str
    category: str
    text: str
    n: int  # conversations in which the agent had it
    by_round: tuple[float | None, ...]  # mean stability; None where not measured
    mean: float  # over all rounds
    adopted: float | None  # mean adoption in the last round of conversations whose user had it
    n_adopted: int  # the number of conversations in that mean
    judge: str  # the model that scores it, if one does

    @property
    def first(self) -> float:
        """The mean of the first round that was measured."""
        return next(mean for mean in self.by_round if mean is not None)

    @property
    def last(self) -> float:
        """The mean of the last round that was measured."""
        return next(mean for mean in reversed(self.by_round) if mean is not None)


def by_prompt(item: Series) -> list[PromptRow]:
    """A row per system prompt the agent had, least stable (mean over all rounds) first."""
    adopted: dict[str | None, list[float]] = {}
    for record, value in zip(item.records, item.adoption[:, -1], strict=True):
        if not np.isnan(value):
            adopted.setdefault(record.user.id, []).append(float(value))
    agents = {record.agent.id: record.agent for record in reversed(item.records)}
    ids = np.array([record.agent.id for record in item.records])
    rows = [
        _prompt_row(agents[name], item, ids == name, adopted.get(name, []))
        for name in dict.fromkeys(ids.tolist())
    ]
    return sorted(filter(None, rows), key=lambda row: (row.mean, row.last, row.id))


def _prompt_row(
    agent: Agent, item: Series, members: np.ndarray, adopted: Sequence[float]
) -> PromptRow | None:
    """The row of a prompt's conversations; None if none was measured."""
    stability = item.stability[members]
    if np.isnan(stability).all():
        return None
    return PromptRow(
        id=agent.id,
        category=agent.category or "",
        text=agent.system_prompt,
        n=len(stability),
        by_round=tuple(_mean(column[~np.isnan(column)]) for column in stability.T),
        mean=float(np.nanmean(statistics.row_means(stability))),
        adopted=_mean(np.array(adopted)),
        n_adopted=len(adopted),
        judge=EstimateRow(item, "stability", item.stability, members).judge,
    )


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None
