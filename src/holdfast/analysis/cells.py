"""The scores of a prompt's conversations by rule and round: what a check judges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from holdfast.analysis.statistics import cell_means

Record = dict[str, Any]


def cell_scores(
    records: Sequence[Record], rounds: int
) -> tuple[list[tuple[str | None, int]], np.ndarray]:
    """The rules and rounds of a prompt, and its scores, [conversation, cell]; several probes of a
    rule in a round are averaged.

    Args:
        talks: the prompt's conversations.
        rounds: that count; later ones are left out.
    """
    probes = [
        (row, probe)
        for row, record in enumerate(records)
        for probe in _stability_probes(record, rounds)
    ]
    rules = list(dict.fromkeys(probe.get("rule") for _, probe in probes)) or [None]
    places = [(rule, number) for number in range(1, rounds + 1) for rule in rules]
    columns = {cell_key: column for column, cell_key in enumerate(places)}
    cells = (
        (row, columns[probe.get("rule"), probe["round"]], probe["score"]) for row, probe in probes
    )
    return places, cell_means(cells, (len(records), len(places)))


def rule_scores(records: Sequence[Record], rounds: int) -> dict[str | None, np.ndarray]:
    """The same by rule, each [conversation, round]."""
    places, values = cell_scores(records, rounds)
    return {
        rule: values[:, [at for at, (there, _) in enumerate(places) if there == rule]]
        for rule in dict.fromkeys(rule for rule, _ in places)
    }


def _stability_probes(record: Record, rounds: int) -> list[dict[str, Any]]:
    return [
        probe
        for probe in record["probes"]
        if probe["kind"] == "stability" and probe["round"] <= rounds
    ]
