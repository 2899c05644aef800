"""Drift runs side by side: what differs between them, and the differences of their scores.

The first run is the one that the others are compared with. Rules are the same if prompt, id, kind,
polarity and judge are the same; only rounds that were scored in both runs count. Conversations that
began alike (the same seed, number, agent and starter) are compared in pairs, and all others
as two independent samples. The verdict on all rules together is as likely to be wrong as that of
any run; the verdicts on kinds and rules share the same error (Bonferroni), so that one of them is
wrong no more often.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from holdfast.analysis import statistics
from holdfast.analysis.check_file import read_check
from holdfast.analysis.series import NO_FIX, Series, label_runs, read_series
from holdfast.analysis.statistics import NOTHING, Estimate, cell_means
from holdfast.analysis.truncation import has_lost_prompt
from holdfast.analysis.verdicts import MIN_SAMPLES, Verdict, verdict_on
from holdfast.common.plurals import plural
from holdfast.errors import RecordsError, UsageError
from holdfast.records import Conversation, Probe, Run, read_run
from holdfast.records.identity import ConversationsIdentity

Grouping = Literal["all", "kind", "rule", "adoption"]

# settings that change how many conversations there are, or how fast they are made
_NO_MATTER = ("settings.conversations", "settings.batch", "settings.trace")
_ABSENT = "–"


@dataclass(frozen=True)
class Contrast:
    """A fact that is not the same in all runs.

    Attributes:
        name: of the setting as manifests have it, such as "settings.rounds", or "prompt of CASE".
        cause: what it belongs to, such as "model": the possible cause of a difference; "" if it
            changes nothing but rounding.
        values: one for each run; "–" where a run does not have it.
    """

    name: str
    cause: str
    values: tuple[str, ...]


@dataclass(frozen=True, order=True)
class RuleKey:
    """A rule as both runs have it; the id is "" if it is the only one of its prompt."""

    prompt: str
    rule: str
    kind: str = ""
    polarity: str = ""
    judge: str = ""

    @property
    def name(self) -> str:
        return f"{self.prompt}, {self.rule}" if self.rule else self.prompt


@dataclass(frozen=True, eq=False)
class RowComparison:
    """A group of rules in one run and in the first.

    Attributes:
        grouping, group: such as "kind" and "closing"; the group of all rules is "".
        before, now: the means over the rounds that both have, in the first run and in this one.
        over_rounds: this run minus the first, over these rounds.
        last_round: the same in the last of them.
        shared_by: how many verdicts share the error of this one.
    """

    grouping: Grouping
    group: str
    before: Estimate
    now: Estimate
    over_rounds: Estimate
    last_round: Estimate
    shared_by: int = 1

    def verdict(self, difference: Estimate) -> Verdict:
        """The verdict on one of the two differences."""
        verdict = verdict_on(difference)
        beyond = difference.excludes_zero and difference.n >= MIN_SAMPLES
        if verdict.sign or self.shared_by == 1 or not beyond or difference.deciding is None:
            return verdict
        low, high = difference.deciding
        return Verdict(
            0,
            f"one of {self.shared_by} comparisons needs a wider interval, [{low:+.3f},"
            f" {high:+.3f}], and that includes 0",
        )


@dataclass(frozen=True, eq=False)
class MethodComparison:
    """One run compared with the first, under one method.

    Attributes:
        before, now: the conversations that are compared, of the rules that are compared; their
            stability is over the rounds that both have, and NaN in others.
        pairs: how many pairs of conversations began alike; 0 if the runs are independent samples.
        rows: all rules, kinds, rules and adoption, in this order.
    """

    before: Series
    now: Series
    pairs: int
    rounds: tuple[int, ...]  # those compared, from 1
    rows: tuple[RowComparison, ...]

    @property
    def overall(self) -> RowComparison:
        """The row of all rules together."""
        return self.rows[0]

    @property
    def prompts(self) -> int:
        """How many prompts of the agent are compared."""
        return len({record.agent.id for record in self.now.records})

    def of(self, grouping: Grouping) -> list[RowComparison]:
        """The rows of one grouping."""
        return [row for row in self.rows if row.grouping == grouping]


@dataclass(frozen=True, eq=False)
class RunComparison:
    """Runs compared with the first of them.

    Attributes:
        labels: short names of the runs, in the order given.
        contrasts: what differs between the runs.
        limits: sentences on what is therefore not compared, or needs care.
        methods: for each other run and each method that is compared.
    """

    runs: tuple[Run, ...]
    labels: tuple[str, ...]
    contrasts: tuple[Contrast, ...]
    limits: tuple[str, ...]
    methods: tuple[MethodComparison, ...]

    def causes(self, item: MethodComparison) -> list[str]:
        """The possible causes of a difference between the two runs of a comparison."""
        at = self.labels.index(item.now.run)
        causes = [one.cause for one in self.contrasts if one.values[at] != one.values[0]]
        methods = ["method"] * (item.before.method != item.now.method)
        return [cause for cause in dict.fromkeys([*methods, *causes]) if cause]

    @cached_property
    def series(self) -> list[Series]:
        """The series that a figure shows: the first run's first, and each once."""
        shown: dict[tuple[str, str], Series] = {}
        for item in self.methods:
            shown.setdefault((item.before.run, item.before.method), item.before)
        for item in self.methods:
            shown.setdefault((item.now.run, item.now.method), item.now)
        return list(shown.values())


def compare_folders(folders: Sequence[Path | str]) -> RunComparison:
    """Reads runs of `holdfast drift` or `check` and compares them with the first.

    Raises:
        UsageError: fewer than two folders, or one twice.
        RecordsError: a folder is not such a run, has no finished conversation, or has nothing in
            common with the first.
    """
    paths = [Path(folder) for folder in folders]
    if len(paths) < 2:
        raise UsageError(
            f"Only {paths[0]} is given; name a second run to compare it with."
            if paths
            else "No run is given; name two or more.",
            option="folders",
            value=[str(path) for path in paths],
        )
    labels = label_runs(paths)
    runs = [read_run(path) for path in paths]
    for run in runs:
        if (command := run.manifest.command) != "drift":
            raise RecordsError(
                f"{run.folder} holds a run of `holdfast {command}`; give runs of `holdfast drift`"
                " or `holdfast check`, whose conversations can be compared.",
                option="folders",
                value=run.folder,
                allowed="drift",
            )
    return compare_runs_side_by_side(runs, labels)


def compare_runs_side_by_side(runs: Sequence[Run], labels: Sequence[str]) -> RunComparison:
    """Compares drift runs with the first of them."""
    series = [read_series(run, label) for run, label in zip(runs, labels, strict=True)]
    _refuse_other_places(runs)
    limits = [
        line for run, label in zip(runs, labels, strict=True) for line in _state_of(run, label)
    ]
    for items, label in zip(series, labels, strict=True):
        if has_lost_prompt(items):
            limits.append(
                f"The server of {label} cut the system prompt off in some rounds, so a fall there"
                " says nothing about the model; its own report says where."
            )
    methods: list[MethodComparison] = []
    for run, items, label in zip(runs[1:], series[1:], labels[1:], strict=True):
        found, lines = _compare(runs[0], series[0], run, items, (labels[0], label))
        methods += found
        limits += lines
    contrasts = tuple(_contrasts(runs, series))
    return RunComparison(tuple(runs), tuple(labels), contrasts, tuple(limits), tuple(methods))


def _refuse_other_places(runs: Sequence[Run]) -> None:
    places = [_identity(run).settings.probe_at for run in runs]
    for run, place in zip(runs, places, strict=True):
        if place != places[0]:
            raise RecordsError(
                f"{runs[0].folder} probes {places[0]} and {run.folder} {place}, so no round means"
                " the same in both; compare runs with the same --probe-at.",
                option="probe_at",
                value=place,
                allowed=places[0],
            )


def _state_of(run: Run, label: str) -> list[str]:
    """The meaning of the state of a run for its numbers."""
    identity = _identity(run)
    if read_check(run) is not None:
        return [
            f"{label} is a check, which stops a prompt as soon as its verdict is certain; that"
            " moves its means a little towards the verdict, so take runs of `holdfast drift` where"
            " a small difference matters."
        ]
    wanted = (identity.settings.conversations or 0) * max(1, len(identity.methods))
    if len(run.conversations) >= wanted:
        return []
    return [
        f"{label} is not finished: it has {len(run.conversations):,} of {wanted:,} conversations."
        " Verdicts hold for a run that is read when it is finished; repeat its command first."
    ]


def _identity(run: Run) -> ConversationsIdentity:
    return run.identity_as(ConversationsIdentity)


# --- What differs


def _contrasts(runs: Sequence[Run], series: Sequence[Sequence[Series]]) -> Iterable[Contrast]:
    """The facts that differ: the identities', the prompts' texts, and the versions."""
    for name, values in _differing([_flat(run.manifest.identity.to_json()) for run in runs]):
        if name not in _NO_MATTER:
            yield Contrast(name, _cause_of(name), values)
    prompts = [
        {f"prompt of {r.agent.id}": r.agent.system_prompt for item in items for r in item.records}
        for items in series
    ]
    for name, values in _differing(prompts):
        if _ABSENT not in values:  # prompts of one run alone are not compared
            yield Contrast(name, "prompts", values)
    facts = [{**run.manifest.versions, "dtype": run.manifest.dtype or _ABSENT} for run in runs]
    for name, values in _differing(facts):
        yield Contrast(f"versions.{name}" if name != "dtype" else name, _library(name), values)


def _library(name: str) -> str:
    return "the version of Holdfast" if name == "holdfast" else ""


def _differing(facts: Sequence[Mapping[str, str]]) -> Iterable[tuple[str, tuple[str, ...]]]:
    for name in dict.fromkeys(name for one in facts for name in one):
        values = tuple(one.get(name, _ABSENT) for one in facts)
        if len(set(values)) > 1:
            yield name, values


def _flat(value: Mapping[str, Any], path: str = "") -> dict[str, str]:
    """Nested settings by dotted name."""
    flat: dict[str, str] = {}
    for name, item in value.items():
        full = f"{path}.{name}" if path else str(name)
        if isinstance(item, Mapping):
            flat |= _flat(item, full)
        elif isinstance(item, list):
            flat[full] = ", ".join(map(str, item)) or "none"
        else:
            flat[full] = _ABSENT if item is None or item == "" else str(item)
    return flat


def _cause_of(name: str) -> str:
    first, _, rest = name.partition(".")
    if first == "settings":
        return rest.rpartition(".")[2].replace("_", " ")
    return {
        "runtime": "",
        "model_fingerprint": "model",
        "suite_fingerprint": "suite",
        "user_model": "user model",
        "user_turns": "user turns",
        "methods": "",  # methods are aligned
    }.get(first, first)


# --- Differences


def _compare(
    first_run: Run,
    first: Sequence[Series],
    run: Run,
    others: Sequence[Series],
    names: tuple[str, str],
) -> tuple[list[MethodComparison], list[str]]:
    """A run compared with the first by method, and what is not compared."""
    limits: list[str] = []
    found: list[MethodComparison] = []
    for before, now in _aligned_methods(first_run, first, run, others, limits, names):
        pairing = _Pairing.of(before, now, _identity(first_run), _identity(run))
        shared = _shared_rules(before, now, names, limits)
        if not shared:
            raise RecordsError(
                f"{run.folder} and {first_run.folder} have no rule in common: the prompts of the"
                f" first are {_some(_prompts(now))}, those of the other {_some(_prompts(before))};"
                " compare runs that share prompts and rules.",
                option="folders",
                value=str(run.folder),
                allowed=_prompts(before),
            )
        found.append(_compare_method(before, now, shared, pairing, limits))
    return found, list(dict.fromkeys(limits))


def _aligned_methods(
    first_run: Run,
    first: Sequence[Series],
    run: Run,
    others: Sequence[Series],
    limits: list[str],
    names: tuple[str, str],
) -> list[tuple[Series, Series]]:
    by_method = {item.method: item for item in first}
    pairs = [(by_method[item.method], item) for item in others if item.method in by_method]
    if not pairs and len(first) == len(others) == 1:
        limits.append(
            f"{names[0]} was made with {first[0].method} and {names[1]} with {others[0].method}, so"
            " the difference is also that of the methods."
        )
        return [(first[0], others[0])]
    if not pairs:
        raise RecordsError(
            f"{first_run.folder} has the methods {_some([item.method for item in first])} and"
            f" {run.folder} has {_some([item.method for item in others])}; compare runs with a"
            " method in common, or with one method each.",
            option="folders",
            value=[item.method for item in others],
            allowed=[item.method for item in first],
        )
    for label, items, theirs in ((names[0], first, others), (names[1], others, first)):
        there = {item.method for item in theirs}
        if alone := [item.method for item in items if item.method not in there]:
            limits.append(f"Only {label} has {_some(alone)}, which is not compared.")
    return pairs


def _prompts(series: Series) -> list[str]:
    return list(dict.fromkeys(record.agent.id for record in series.records))


def _some(names: Sequence[str], most: int = 5) -> str:
    listed = ", ".join(names[:most])
    return f"{listed} and {len(names) - most} more" if len(names) > most else listed


def _key(record: Conversation, probe: Probe) -> RuleKey:
    return RuleKey(
        record.agent.id,
        probe.rule or "",
        probe.rule_kind or "",
        probe.polarity or "",
        probe.judge or "",
    )


def _probes(record: Conversation) -> list[Probe]:
    return [probe for probe in record.probes if probe.kind == "stability"]


def _keys(series: Series) -> dict[RuleKey, set[str]]:
    """The rules that have a score, each with the questions that were asked."""
    keys: dict[RuleKey, set[str]] = {}
    for record in series.records:
        for probe in _probes(record):
            keys.setdefault(_key(record, probe), set()).add(probe.question)
    return keys


def _shared_rules(
    before: Series, now: Series, names: tuple[str, str], limits: list[str]
) -> list[RuleKey]:
    """The rules of both; what either has alone, or differently, goes into `limits`."""
    old, new = _keys(before), _keys(now)
    shared = [key for key in old if key in new]
    changed = {(key.prompt, key.rule) for key in old} & {(key.prompt, key.rule) for key in new}
    changed -= {(key.prompt, key.rule) for key in shared}
    if changed and shared:
        rules = [RuleKey(*pair).name for pair in sorted(changed)]
        limits.append(f"Not compared, as kind, polarity or judge is another: {'; '.join(rules)}.")
    for label, ours, theirs in ((names[0], old, new), (names[1], new, old)):
        there = {(key.prompt, key.rule) for key in theirs}
        alone = [key.name for key in ours if (key.prompt, key.rule) not in there]
        if alone and shared:
            limits.append(
                f"Only {label} has a score of {'; '.join(alone[:8])}"
                f"{f' and {len(alone) - 8} more rules' if len(alone) > 8 else ''}."
            )
    asked = [key.name for key in shared if not old[key] & new[key]]
    if asked:
        limits.append(
            f"Asked with other questions in each run, which may be harder or easier:"
            f" {'; '.join(asked)}."
        )
    return shared


@dataclass(frozen=True, eq=False)
class _Pairing:
    """The rows of two series that are compared: pairs in the same order, or all of both."""

    before: np.ndarray  # [n] indices of the rows
    now: np.ndarray
    pairs: int

    @classmethod
    def of(
        cls,
        before: Series,
        now: Series,
        first: ConversationsIdentity,
        other: ConversationsIdentity,
    ) -> "_Pairing":
        """Pairs, if the draws are the same and half of the smaller run's conversations have one."""
        prompts = {record.agent.id for record in before.records} & {
            record.agent.id for record in now.records
        }
        old, new = (
            {
                _start(record): row
                for row, record in enumerate(series.records)
                if record.agent.id in prompts
            }
            for series in (before, now)
        )
        both = [start for start in old if start in new]
        if first.settings.seed == other.settings.seed and 2 * len(both) >= min(len(old), len(new)):
            rows = [[side[start] for start in both] for side in (old, new)]
            return cls(np.array(rows[0], dtype=int), np.array(rows[1], dtype=int), len(both))
        return cls(
            np.array(list(old.values()), dtype=int), np.array(list(new.values()), dtype=int), 0
        )


def _start(record: Conversation) -> tuple[int, str, str | None]:
    """The number, the agent and the user's first words, which a pair shares."""
    starter = record.turns[0].text if record.turns else None
    return record.conversation, record.agent.id, starter


def _compare_method(
    before: Series, now: Series, shared: Sequence[RuleKey], pairing: _Pairing, limits: list[str]
) -> MethodComparison:
    sides = before.rows(_mask(before, pairing.before)), now.rows(_mask(now, pairing.now))
    order = [np.argsort(np.argsort(rows)) for rows in (pairing.before, pairing.now)]
    if not pairing.pairs:
        limits.append(
            f"The conversations of {before.run} and {now.run} did not begin alike, so they are not"
            " compared in pairs but as two samples, which shows less."
        )
    elif left := [
        f"{plural(len(series.records) - pairing.pairs, 'conversation')} of {series.run}"
        for series in (before, now)
        if len(series.records) > pairing.pairs
    ]:
        limits.append(
            f"{' and '.join(left)} have no partner that began alike, and so are left out."
        )
    error = min(before.error, now.error)
    width = min(before.rounds, now.rounds)
    if before.rounds != now.rounds:
        longer = max((before, now), key=lambda series: series.rounds)
        limits.append(f"Rounds after {width} are only in {longer.run}, and are not compared.")
    differ = _Differ(sides, order, bool(pairing.pairs), width, error)

    whole = differ.row("all", "", set(shared), prompts=True)
    kinds = sorted({key.kind for key in shared if key.kind})
    groups: list[tuple[Grouping, str, set[RuleKey]]] = [
        ("kind", kind, {key for key in shared if key.kind == kind}) for kind in kinds
    ]
    if len(shared) > 1:
        groups += [("rule", key.name, {key}) for key in shared]
    # of rows with fewer conversations there is no verdict to be wrong about
    verdicts = 2 * sum(differ.conversations(keys) >= MIN_SAMPLES for _, _, keys in groups)
    rows = [differ.row(grouping, group, keys, max(1, verdicts)) for grouping, group, keys in groups]
    if all(side.measured("adoption") for side in sides):
        rows.append(differ.adoption())
    rounds = differ.rounds(set(shared))
    old, new = (differ.shown(at, set(shared), rounds) for at in (0, 1))
    return MethodComparison(old, new, pairing.pairs, rounds, (whole, *rows))


def _mask(series: Series, rows: np.ndarray) -> np.ndarray:
    keep = np.zeros(len(series.records), dtype=bool)
    keep[rows] = True
    return keep


# by the rule, the row, the column and the score of each probe
_Cells = dict[RuleKey, list[tuple[int, int, float]]]


@dataclass(frozen=True, eq=False)
class _Differ:
    """Makes the rows of one comparison.

    Attributes:
        sides: the series that are compared, with only the conversations that are.
        order: of each side, the rows of `sides` such that pairs have the same index.
        width: how many rounds both have.
        error: that a verdict may be wrong with.
    """

    sides: tuple[Series, Series]
    order: Sequence[np.ndarray]
    paired: bool
    width: int
    error: float
    _values: dict[frozenset[RuleKey], list[np.ndarray]] = field(default_factory=dict)

    def values(self, keys: set[RuleKey]) -> list[np.ndarray]:
        """The mean scores of some rules on both sides, [conversation, round], in their order."""
        if (known := self._values.get(frozenset(keys))) is None:
            known = [self._scores(at, keys) for at in (0, 1)]
            self._values[frozenset(keys)] = known
        return known

    def _scores(self, at: int, keys: set[RuleKey]) -> np.ndarray:
        cells = (cell for key in keys for cell in self._cells[at].get(key, ()))
        size = len(self.sides[at].records), self.width
        scores: np.ndarray = cell_means(cells, size)[self.order[at]]
        return scores

    @cached_property
    def _cells(self) -> list[dict[RuleKey, list[tuple[int, int, float]]]]:
        """Of each side, the row, the column and the score of each probe, by its rule."""
        cells: list[dict[RuleKey, list[tuple[int, int, float]]]] = [
            defaultdict(list),
            defaultdict(list),
        ]
        for found, side in zip(cells, self.sides, strict=True):
            for row, record in enumerate(side.records):
                for probe in _probes(record):
                    if probe.round <= self.width:
                        found[_key(record, probe)].append((row, probe.round - 1, probe.score))
        return cells

    def conversations(self, keys: set[RuleKey]) -> int:
        """How many conversations the comparison of some rules rests on."""
        scored = [~np.isnan(side) for side in self.values(keys)]
        if self.paired:
            return int((scored[0] & scored[1]).any(axis=1).sum())
        return min(int(side.any(axis=1).sum()) for side in scored)

    def rounds(self, keys: set[RuleKey]) -> tuple[int, ...]:
        """The rounds, from 1, that were scored on both sides."""
        old, new = (~np.isnan(side).all(axis=0) for side in self.values(keys))
        return tuple(int(column) + 1 for column in np.flatnonzero(old & new))

    def shown(self, at: int, keys: set[RuleKey], rounds: tuple[int, ...]) -> Series:
        """A side as the figure shows it: the rules and rounds that are compared."""
        values = np.full((len(self.sides[at].records), self.width), np.nan)
        columns = np.array(rounds, dtype=int) - 1
        values[:, columns] = self.values(keys)[at][:, columns]
        side, order = self.sides[at], self.order[at]
        return replace(
            side,
            records=tuple(side.records[row] for row in order),
            conversations=side.conversations[order],
            matrices={
                "stability": values,
                "adoption": np.full_like(values, np.nan),
                "mass": np.full_like(values, np.nan),
            },
        )

    def row(
        self,
        grouping: Grouping,
        group: str,
        keys: set[RuleKey],
        shared_by: int = 1,
        prompts: bool = False,
    ) -> RowComparison:
        """The comparison of a group of rules."""
        return self._row(grouping, group, self.values(keys), shared_by, prompts)

    def adoption(self) -> RowComparison:
        """The comparison of how far the agent takes on the user's prompt."""
        values = [
            side.adoption[order, : self.width]
            for side, order in zip(self.sides, self.order, strict=True)
        ]
        return self._row("adoption", "", values, 1, prompts=True)

    def _row(
        self,
        grouping: Grouping,
        group: str,
        values: Sequence[np.ndarray],
        shared_by: int,
        prompts: bool,
    ) -> RowComparison:
        old, new = values
        both = ~np.isnan(old).all(axis=0) & ~np.isnan(new).all(axis=0)
        old, new = old[:, both], new[:, both]
        if self.paired:
            missing = np.isnan(old) | np.isnan(new)
            old, new = np.where(missing, np.nan, old), np.where(missing, np.nan, new)
        if not both.any():
            return RowComparison(grouping, group, NOTHING, NOTHING, NOTHING, NOTHING, shared_by)
        error, means = self.error / shared_by, [statistics.row_means(side) for side in (old, new)]
        names = self.sides[1].prompts
        drawn = [names[row] for row in self.order[1]] if prompts and self.paired else None
        return RowComparison(
            grouping,
            group,
            statistics.estimate(means[0], statistics.SCORES),
            statistics.estimate(means[1], statistics.SCORES),
            self._difference(means[0], means[1], error, drawn),
            self._difference(old[:, -1], new[:, -1], error, drawn),
            shared_by,
        )

    def _difference(
        self, old: np.ndarray, new: np.ndarray, error: float, prompts: Sequence[str] | None
    ) -> Estimate:
        if self.paired:
            return statistics.paired_difference(new, old, prompts=prompts, error=error)
        old, new = old[~np.isnan(old)], new[~np.isnan(new)]
        if not len(old) or not len(new):
            return NOTHING
        return statistics.unpaired_difference(new, old, error=error)


def unsteered(comparison: RunComparison) -> MethodComparison:
    """The comparison that a title is about: of no method if there is one, else the first."""
    plain = [item for item in comparison.methods if item.now.method == NO_FIX]
    return (plain or list(comparison.methods))[0]
