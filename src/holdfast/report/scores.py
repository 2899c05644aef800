"""Records -> matrices [conversation, round], one `Series` per run and method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.errors import RecordsError
from holdfast.records import RunData

KINDS = ("stability", "adoption")
NO_FIX = "none"


@dataclass(frozen=True, eq=False)
class Series:
    """All conversations of one method in one run, ordered by conversation.

    Attributes:
        run: the label of its folder; empty where the report shows a single run.
        records: the records, in the order of the rows below.
        conversations: [n] conversation numbers.
        stability, adoption, mass: [n, rounds], NaN where not measured. Several probes of one round
            are averaged within their conversation; mass is that of the agent's turns in the dialog.
    """

    run: str
    method: str
    records: tuple[dict[str, Any], ...]
    conversations: np.ndarray
    stability: np.ndarray
    adoption: np.ndarray
    mass: np.ndarray

    @property
    def label(self) -> str:
        """How plots and tables call it."""
        return f"{self.run} · {self.method}" if self.run else self.method

    @property
    def rounds(self) -> int:
        return int(self.stability.shape[1])

    def values(self, kind: str) -> np.ndarray:
        """The matrix named 'stability', 'adoption' or 'mass'."""
        return {"stability": self.stability, "adoption": self.adoption, "mass": self.mass}[kind]

    def measured(self, kind: str) -> bool:
        """Whether any conversation has a value of this kind."""
        return not bool(np.isnan(self.values(kind)).all())

    def rows(self, keep: np.ndarray) -> Series:
        """The series of the conversations where keep, [n] bool or indices."""
        index = np.flatnonzero(keep) if keep.dtype == bool else keep
        return replace(
            self,
            records=tuple(self.records[i] for i in index),
            conversations=self.conversations[index],
            stability=self.stability[index],
            adoption=self.adoption[index],
            mass=self.mass[index],
        )


def read_series(run: RunData, label: str = "") -> list[Series]:
    """One series per method of a run, no fix first and the others in the order of the manifest or
    their appearance.

    Raises:
        RecordsError: the run has no finished conversation yet.
    """
    if not run.records:
        raise RecordsError(
            f"{run.folder} has no finished conversation yet; repeat its command to go on, then"
            " report again."
        )
    methods = list(dict.fromkeys(record["method"] for record in run.records))
    planned = run.manifest.get("identity", {}).get("methods")
    order = [str(method) for method in planned] if isinstance(planned, list) else []
    methods.sort(
        key=lambda method: (
            method != NO_FIX,
            order.index(method) if method in order else len(order),
        )
    )
    rounds = max(
        (item["round"] for record in run.records for item in (*record["turns"], *record["probes"])),
        default=0,
    )
    return [_series(run, label, method, rounds) for method in methods]


def counted(series: Sequence[Series]) -> str:
    """How many conversations of how many rounds, and under how many methods where there are
    several.
    """
    counts = sorted({len(item.records) for item in series})
    number = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    rounds, methods = series[0].rounds, len({item.method for item in series})
    under = f", under each of {methods} methods" if methods > 1 else ""
    return (
        f"{number} conversation{'' if counts[-1] == 1 else 's'} of {rounds} "
        f"round{'' if rounds == 1 else 's'}{under}"
    )


def label_runs(folders: list[Path]) -> list[str]:
    """A short unlike label per folder: none for one run, else the end of its path that tells it
    from the others.
    """
    paths = [Path(folder).resolve() for folder in folders]
    if len(paths) == 1:
        return [""]
    for depth in range(1, max(len(path.parts) for path in paths) + 1):
        labels = ["/".join(path.parts[-depth:]) for path in paths]
        if len(set(labels)) == len(labels):
            return labels
    raise RecordsError(f"{folders[0]} is given more than once; give each run's folder once.")


def same_pairs(series: Series, baseline: Series) -> tuple[Series, Series] | None:
    """Both series on the conversations they share, in one order; None where these differ in the
    agent's prompt.

    The user's prompt may differ: it is what a control with an unprompted user changes.
    """
    shared, left, right = np.intersect1d(
        series.conversations, baseline.conversations, return_indices=True
    )
    if not len(shared):
        return None
    one, other = series.rows(left), baseline.rows(right)
    for mine, theirs in zip(one.records, other.records, strict=True):
        if mine["agent"]["system_prompt"] != theirs["agent"]["system_prompt"]:
            return None
    return one, other


def category_of(record: dict[str, Any], kind: str) -> str | None:
    """The category whose measure scores this kind of probe: the agent's for stability, the user's
    for adoption.
    """
    category = record["user" if kind == "adoption" else "agent"]["category"]
    return None if category is None else str(category)


def _series(run: RunData, label: str, method: str, rounds: int) -> Series:
    records = sorted(
        (r for r in run.records if r["method"] == method), key=lambda r: r["conversation"]
    )
    shape = (len(records), rounds)
    matrices = {kind: _probe_means(records, kind, shape) for kind in KINDS}
    mass = np.full(shape, np.nan)
    for row, record in enumerate(records):
        for turn in record["turns"]:
            if turn["speaker"] == "agent" and turn.get("mass") is not None:
                mass[row, turn["round"] - 1] = turn["mass"]
    numbers = np.array([record["conversation"] for record in records])
    return Series(
        label, method, tuple(records), numbers, matrices["stability"], matrices["adoption"], mass
    )


def _probe_means(records: list[dict[str, Any]], kind: str, shape: tuple[int, int]) -> np.ndarray:
    sums, counts = np.zeros(shape), np.zeros(shape)
    for row, record in enumerate(records):
        for probe in record["probes"]:
            if probe["kind"] == kind:
                sums[row, probe["round"] - 1] += probe["score"]
                counts[row, probe["round"] - 1] += 1
    means: np.ndarray = np.divide(sums, counts, out=np.full(shape, np.nan), where=counts > 0)
    return means
