"""Records -> matrices [conversation, round], one `Series` per run and method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.analysis.statistics import cell_means
from holdfast.errors import RecordsError
from holdfast.records import RunData

KINDS = ("stability", "adoption")  # what probes score
MEASURED = (*KINDS, "mass", "divergence")  # what a round can have
NO_FIX = "none"


@dataclass(frozen=True, eq=False)
class Series:
    """All conversations of one method in one run, ordered by conversation.

    Attributes:
        run: the label of its folder; empty where the report shows a single run.
        records: the records, in the order of the rows below.
        conversations: [n] conversation numbers.
        stability, adoption, mass, divergence: [n, rounds], NaN where not measured. Several probes
            of one round are averaged within their conversation; mass and divergence are those of
            the agent's turns in the dialog.
    """

    run: str
    method: str
    records: tuple[dict[str, Any], ...]
    conversations: np.ndarray
    stability: np.ndarray
    adoption: np.ndarray
    mass: np.ndarray
    divergence: np.ndarray

    @property
    def label(self) -> str:
        """How plots and tables call it."""
        return f"{self.run} · {self.method}" if self.run else self.method

    @property
    def rounds(self) -> int:
        return int(self.stability.shape[1])

    def values(self, kind: str) -> np.ndarray:
        """The matrix of one of `MEASURED`."""
        return {
            "stability": self.stability,
            "adoption": self.adoption,
            "mass": self.mass,
            "divergence": self.divergence,
        }[kind]

    def measured(self, kind: str) -> bool:
        """Whether any conversation has a value of this kind."""
        return not bool(np.isnan(self.values(kind)).all())

    @property
    def prompts(self) -> list[str]:
        """The agent's system prompt in each conversation."""
        return [record["agent"]["system_prompt"] for record in self.records]

    @property
    def shared_rounds(self) -> int:
        """The last round that at least half of the conversations reached with a stability."""
        reached = (~np.isnan(self.stability)).sum(axis=0)
        shared = np.flatnonzero(2 * reached >= len(self.records))
        return int(shared[-1]) + 1 if len(shared) else self.rounds

    def until(self, rounds: int) -> Series:
        """The series as far as a round."""
        return replace(
            self,
            stability=self.stability[:, :rounds],
            adoption=self.adoption[:, :rounds],
            mass=self.mass[:, :rounds],
            divergence=self.divergence[:, :rounds],
        )

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
            divergence=self.divergence[index],
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
    rounds = max(map(_last_round, run.records))
    return [_series(run, label, method, rounds) for method in _methods(run)]


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
    fixed, plain = series.rows(left), baseline.rows(right)
    for mine, theirs in zip(fixed.records, plain.records, strict=True):
        if mine["agent"]["system_prompt"] != theirs["agent"]["system_prompt"]:
            return None
    return fixed, plain


def category_of(record: dict[str, Any], kind: str) -> str | None:
    """The category whose measure scores this kind of probe: the agent's for stability, the user's
    for adoption.
    """
    category = record["user" if kind == "adoption" else "agent"]["category"]
    return None if category is None else str(category)


def judge_of(records: Sequence[dict[str, Any]], rule: str | None = None) -> str:
    """The model that judges the replies to the agent's probes, of a rule where one is named; ""
    where their scores are functions of the text.
    """
    return next(
        (
            str(probe["judge"])
            for record in records
            for probe in record["probes"]
            if probe["kind"] == "stability"
            and "judge" in probe
            and rule in (None, probe.get("rule"))
        ),
        "",
    )


def probe_means(
    records: Sequence[dict[str, Any]], rounds: int, counts: Callable[[dict[str, Any]], bool]
) -> np.ndarray:
    """[conversation, round]: the mean score of the probes that count; NaN where there are none."""
    cells: list[tuple[int, int, float]] = []
    for row, record in enumerate(records):
        probes = filter(counts, record["probes"])
        cells += [(row, probe["round"] - 1, probe["score"]) for probe in probes]
    return cell_means(cells, (len(records), rounds))


def _methods(run: RunData) -> list[str]:
    """The methods of a run, no fix first, then in the order of the manifest or of appearance."""
    methods = list(dict.fromkeys(record["method"] for record in run.records))
    named = run.manifest.get("identity", {}).get("methods")
    order = [str(method) for method in named] if isinstance(named, list) else []

    def sort_key(method: str) -> tuple[bool, int]:
        return method != NO_FIX, order.index(method) if method in order else len(order)

    return sorted(methods, key=sort_key)


def _last_round(record: dict[str, Any]) -> int:
    spoken = (*record["turns"], *record["probes"])
    return max((turn["round"] for turn in spoken), default=0)


def _series(run: RunData, label: str, method: str, rounds: int) -> Series:
    records = sorted(
        (record for record in run.records if record["method"] == method),
        key=lambda record: record["conversation"],
    )
    return Series(
        run=label,
        method=method,
        records=tuple(records),
        conversations=np.array([record["conversation"] for record in records]),
        stability=probe_means(records, rounds, lambda probe: probe["kind"] == "stability"),
        adoption=probe_means(records, rounds, lambda probe: probe["kind"] == "adoption"),
        mass=turn_values(records, rounds, "mass"),
        divergence=turn_values(records, rounds, "divergence"),
    )


def turn_values(records: Sequence[dict[str, Any]], rounds: int, name: str) -> np.ndarray:
    """[conversation, round]: a number of the agent's turn; NaN where none was recorded."""
    values = np.full((len(records), rounds), np.nan)
    for row, record in enumerate(records):
        for turn in record["turns"]:
            if turn["speaker"] == "agent" and turn.get(name) is not None:
                values[row, turn["round"] - 1] = turn[name]
    return values
