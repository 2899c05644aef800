"""The results of a drift run on each system prompt of the agent.

For example:

    32 conversations with 4 prompts -> PromptSummary(id="baker", n=8, stability=0.61, ...), ...
"""

import math
from collections.abc import Sequence

import numpy as np

from holdfast.analysis import statistics
from holdfast.analysis.estimate_rows import EstimateRow
from holdfast.analysis.series import Series
from holdfast.records import Agent
from holdfast.records.drift_summary import PromptSummary


def prompt_rows(series: Series) -> list[PromptSummary]:
    """Returns the results on each system prompt of the agent, the least stable first."""
    adopted: dict[str | None, list[float]] = {}
    for record, value in zip(series.records, series.adoption[:, -1], strict=True):
        if not np.isnan(value):
            adopted.setdefault(record.user.id, []).append(float(value))
    agents = {record.agent.id: record.agent for record in reversed(series.records)}
    ids = np.array([record.agent.id for record in series.records])
    rows = [
        _prompt_row(agents[name], series, ids == name, adopted.get(name, []))
        for name in dict.fromkeys(ids.tolist())
    ]
    return sorted(filter(None, rows), key=lambda row: (row.stability or 0.0, row.last, row.id))


def _prompt_row(
    agent: Agent, series: Series, members: np.ndarray, adopted: Sequence[float]
) -> PromptSummary | None:
    """Returns the results of a prompt; None if its stability was not measured.

    Args:
        members: whether the agent had the prompt, [conversation] bool.
        adopted: its adoption scores in the last round, in conversations whose user had it.
    """
    stability = series.stability[members]
    measured_rounds = np.flatnonzero(~np.isnan(stability).all(axis=0))
    if not len(measured_rounds):
        return None
    row = EstimateRow(
        series, "stability", series.stability, members, by_probe=series.scores("stability")
    )
    first, last = statistics.compared_means(*row.shared(measured_rounds[0], measured_rounds[-1]))
    change = last - first
    return PromptSummary(
        id=agent.id,
        category=agent.category or "",
        n=len(stability),
        stability_by_round=tuple(_mean(column[~np.isnan(column)]) for column in stability.T),
        stability=float(np.nanmean(statistics.row_means(stability))),
        change=None if math.isnan(change) else change,
        adopted_last_round=_mean(np.array(adopted)),
        n_adopted=len(adopted),
        text=agent.system_prompt,
        judge=row.judge,
    )


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None
