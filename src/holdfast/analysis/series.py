"""Turns records into matrices, [conversation, round]: one `Series` per run and method."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from holdfast.analysis.statistics import ByProbe, MatrixEntry, matrix_of, means_over_probes
from holdfast.analysis.verdicts import MIN_SAMPLES, error_at
from holdfast.errors import RecordsError, UsageError
from holdfast.records import Conversation, Probe, Run
from holdfast.records.identity import ConversationsIdentity

KINDS = ("stability", "adoption")  # what probes score
MEASURED = (*KINDS, "mass")  # what may be measured in a round
NO_FIX = "none"


class ProbeId(NamedTuple):
    """A question about a rule, which is the same in all rounds of a conversation."""

    rule: str | None  # None if it is the only one of its prompt
    number: int  # among the questions about this rule, from 0


@dataclass(frozen=True, eq=False)
class Series:
    """All conversations of one method in one run, ordered by conversation.

    Several probes of a round are averaged; the mass is that of the agent's turns.

    Args:
        run: the label of its folder; "" where the report shows a single run.
        method: its spec string.
        records: the conversations, in the order of the rows of the matrices.
        conversations: [conversation], their numbers.
        matrices: by measure, [conversation, round], NaN where not measured.
        short: the method without its parameters; "" if another method of the run has the same name.
        look: how often verdicts on this run can have been read, this time included.
        by_probe: by kind of score, the scores of each probe, in matrices like `matrices`.
    """

    run: str
    method: str
    records: tuple[Conversation, ...]
    conversations: np.ndarray
    matrices: Mapping[str, np.ndarray]
    short: str = ""
    look: int = 1
    by_probe: Mapping[str, ByProbe] = field(default_factory=dict)

    @property
    def error(self) -> float:
        """The probability with which a verdict on this series may be wrong."""
        return error_at(self.look)

    @property
    def label(self) -> str:
        """The name in tables, after that of its run if there are several runs."""
        method = self.short or self.method
        return f"{self.run} · {method}" if self.run else method

    @property
    def legend(self) -> str:
        """The label in charts, which must be clear to a reader who does not know the command."""
        method = f"{self.method} (no fix)" if self.method == NO_FIX else self.method
        return f"{self.run} · {method}" if self.run else method

    @property
    def rounds(self) -> int:
        """How many rounds the longest conversation has."""
        return int(self.stability.shape[1])

    @property
    def stability(self) -> np.ndarray:
        """[conversation, round]: mean scores of the agent's own probes."""
        return self.matrices["stability"]

    @property
    def adoption(self) -> np.ndarray:
        """[conversation, round]: mean scores of the user's probes."""
        return self.matrices["adoption"]

    @property
    def mass(self) -> np.ndarray:
        """[conversation, round]: mean attention mass of the agent's turns."""
        return self.matrices["mass"]

    def values(self, measure: str) -> np.ndarray:
        """Returns the matrix of a measure, one of `MEASURED`: [conversation, round]."""
        return self.matrices[measure]

    def scores(self, measure: str) -> ByProbe:
        """Returns the scores of each probe; a measure that has none counts as a single probe."""
        return self.by_probe.get(measure) or {ProbeId(None, 0): self.matrices[measure]}

    def measured(self, measure: str) -> bool:
        """Whether any conversation has a value of this measure."""
        return not bool(np.isnan(self.matrices[measure]).all())

    @property
    def prompts(self) -> list[str]:
        """The agent's system prompt in each conversation."""
        return [record.agent.system_prompt for record in self.records]

    @property
    def shared_rounds(self) -> int:
        """The last round in which at least half of the conversations have a stability."""
        num_scored = (~np.isnan(self.stability)).sum(axis=0)
        common_rounds = np.flatnonzero(2 * num_scored >= len(self.records))
        return int(common_rounds[-1]) + 1 if len(common_rounds) else self.rounds

    def until(self, rounds: int) -> Series:
        """Returns the series without rounds after this one."""
        return self._select((slice(None), slice(rounds)))

    def rows(self, rows: np.ndarray) -> Series:
        """Returns the series of some conversations, given an [n] bool mask or their row numbers."""
        return replace(
            self._select((rows,)),
            records=tuple(self.records[row] for row in np.arange(len(self.records))[rows]),
            conversations=self.conversations[rows],
        )

    def _select(self, part: tuple[slice | np.ndarray, ...]) -> Series:
        """Returns the series with a part of every matrix."""
        return replace(
            self,
            matrices={name: matrix[part] for name, matrix in self.matrices.items()},
            by_probe={
                kind: {probe: matrix[part] for probe, matrix in scores.items()}
                for kind, scores in self.by_probe.items()
            },
        )


def read_series(run: Run, label: str = "") -> list[Series]:
    """Reads one series per method of a run: no fix first, the others in the manifest's order.

    Raises:
        RecordsError: the run has no finished conversation.
    """
    if not run.records:
        raise RecordsError(
            f"{run.folder} has no finished conversation yet; repeat its command to continue, then"
            " report again.",
            value=run.folder,
        )
    rounds = max(map(_last_round, run.conversations))
    return [_series_of_method(run, label, method, rounds) for method in _methods(run)]


def read_pooled_series(runs: Sequence[Run]) -> list[Series]:
    """Reads one series per method of all runs together, such as two seeds."""
    series_by_method: dict[str, list[Series]] = {}
    for run in runs:
        for series in read_series(run):
            series_by_method.setdefault(series.method, []).append(series)
    return list(map(pool_series, series_by_method.values()))


def pool_series(several: Sequence[Series]) -> Series:
    """Joins the conversations of one method in several runs, such as two seeds, into one series."""
    first, *others = several
    if not others:
        return first
    return replace(
        first,
        records=tuple(record for series in several for record in series.records),
        conversations=_continued_numbers(several),
        matrices={
            measure: _join_matrices(several, [series.matrices[measure] for series in several])
            for measure in first.matrices
        },
        by_probe={kind: _join_probes(several, kind) for kind in first.by_probe},
        look=max(series.look for series in several),
    )


def _continued_numbers(several: Sequence[Series]) -> np.ndarray:
    """Returns the numbers of all conversations, which each series counts from 0, as distinct
    numbers: those of a later series continue those of the one before.
    """
    numbers: list[np.ndarray] = []
    start = 0
    for series in several:
        numbers.append(series.conversations + start)
        start = 1 + int(numbers[-1].max())
    return np.concatenate(numbers)


def _join_probes(several: Sequence[Series], kind: str) -> ByProbe:
    """Joins the scores of each probe that any of the series has."""
    scores = [series.by_probe[kind] for series in several]
    probes = dict.fromkeys(probe for matrices in scores for probe in matrices)
    return {
        probe: _join_matrices(several, [matrices.get(probe) for matrices in scores])
        for probe in probes
    }


def _join_matrices(several: Sequence[Series], matrices: Sequence[np.ndarray | None]) -> np.ndarray:
    """Joins a matrix of each series, [conversation, round]; NaN in rounds that a series lacks.

    Args:
        matrices: one for each series; None for one without a value.
    """
    rounds = max(series.rounds for series in several)
    padded_matrices = []
    for series, matrix in zip(several, matrices, strict=True):
        padded_matrix = np.full((len(series.records), rounds), np.nan)
        if matrix is not None:
            padded_matrix[:, : series.rounds] = matrix
        padded_matrices.append(padded_matrix)
    return np.concatenate(padded_matrices)


def leave_out_rules(series: Series, rules: Sequence[tuple[str | None, str]]) -> Series:
    """Returns the series with a stability that does not count some rules, each given as (case,
    rule); a case of None stands for any case.
    """
    if not rules:
        return series
    agents = [record.agent for record in series.records]
    scores: dict[ProbeId, np.ndarray] = {}
    for probe, matrix in series.scores("stability").items():
        cases = [case for case, rule in rules if rule == probe.rule]
        is_left_out = [None in cases or agent.id in cases for agent in agents]
        scores[probe] = np.where(np.array(is_left_out)[:, None], np.nan, matrix)
    return replace(
        series,
        matrices={**series.matrices, "stability": means_over_probes(scores)},
        by_probe={**series.by_probe, "stability": scores},
    )


def label_runs(folders: list[Path]) -> list[str]:
    """Returns a short distinct label for each folder, the end of its path; "" for a single run."""
    paths = [Path(folder).resolve() for folder in folders]
    if len(paths) == 1:
        return [""]
    for depth in range(1, max(len(path.parts) for path in paths) + 1):
        labels = ["/".join(path.parts[-depth:]) for path in paths]
        if len(set(labels)) == len(labels):
            return labels
    raise UsageError(
        f"{folders[0]} is given more than once; give each run's folder once.",
        option="folders",
        value=folders[0],
    )


def category_of(record: Conversation, kind: str) -> str | None:
    """Returns the category of the prompt that probes of a kind are about: for adoption the user's,
    otherwise the agent's.
    """
    return (record.user if kind == "adoption" else record.agent).category


def scores_by_probe(
    records: Sequence[Conversation], rounds: int, is_counted: Callable[[Probe], bool]
) -> dict[ProbeId, np.ndarray]:
    """Returns the scores of the probes that count, [conversation, round] each."""
    entries = defaultdict[ProbeId, list[MatrixEntry]](list)
    for row, record in enumerate(records):
        for probe in filter(is_counted, record.probes):
            entry = MatrixEntry(row, probe.round - 1, probe.score)
            entries[ProbeId(probe.rule, probe.probe)].append(entry)
    shape = len(records), rounds
    return {probe: matrix_of(scores, shape) for probe, scores in entries.items()}


def _methods(run: Run) -> list[str]:
    """Returns the methods that have records: no fix first, then in the manifest's order."""
    methods = list(dict.fromkeys(record.method for record in run.conversations))
    order = run.identity_as(ConversationsIdentity).methods

    def sort_key(method: str) -> tuple[bool, int]:
        position = order.index(method) if method in order else len(order)
        return method != NO_FIX, position

    return sorted(methods, key=sort_key)


def _last_round(record: Conversation) -> int:
    rounds = [turn.round for turn in record.turns] + [probe.round for probe in record.probes]
    return max(rounds, default=0)


def _series_of_method(run: Run, label: str, method: str, rounds: int) -> Series:
    """Sorts the conversations of one method, and puts their scores into matrices."""
    records = [record for record in run.conversations if record.method == method]
    records.sort(key=lambda record: record.conversation)
    numbers = np.array([record.conversation for record in records])
    by_probe = {kind: scores_by_probe(records, rounds, _is_of_kind(kind)) for kind in KINDS}
    no_scores = {ProbeId(None, 0): np.full((len(records), rounds), np.nan)}
    matrices = {kind: means_over_probes(by_probe[kind] or no_scores) for kind in KINDS}
    matrices["mass"] = _masses_by_round(records, rounds)
    names = [other_method.partition(":")[0] for other_method in _methods(run)]
    name = method.partition(":")[0]
    return Series(
        run=label,
        method=method,
        records=tuple(records),
        conversations=numbers,
        matrices=matrices,
        short=name if names.count(name) == 1 else "",
        look=count_looks(run),
        by_probe=by_probe,
    )


def _is_of_kind(kind: str) -> Callable[[Probe], bool]:
    return lambda probe: probe.kind == kind


def count_looks(run: Run) -> int:
    """Counts how often someone can have read verdicts on a run: now, and before each time that
    conversations were added to it, if it then had enough of them for a verdict.
    """
    return 1 + sum(size >= MIN_SAMPLES for size in run.manifest.earlier_sizes)


def _masses_by_round(records: Sequence[Conversation], rounds: int) -> np.ndarray:
    """Returns the mass of the agent's turns, [conversation, round]; NaN where none was recorded."""
    values = np.full((len(records), rounds), np.nan)
    for row, record in enumerate(records):
        for turn in record.turns:
            if turn.speaker == "agent" and turn.mass is not None:
                values[row, turn.round - 1] = turn.mass
    return values
