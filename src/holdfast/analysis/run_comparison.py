"""Drift runs side by side: what differs between them, and the differences of their scores.

The first run is the one that the others are compared with. Rules are the same if prompt, id, kind,
polarity and judge are the same; only rounds that were scored in both runs count. Conversations that
began alike (the same seed, number, agent and starter) are compared in pairs, and all others
as two independent samples. The verdict on all rules together is as likely to be wrong as that of
any run; the verdicts on kinds and rules share the same error (Bonferroni), so that one of them is
wrong no more often.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from holdfast.analysis.compared_scores import (
    ComparedConversations,
    Grouping,
    GroupScores,
    RowComparison,
    RuleKey,
    rules_of,
    scores_by_rule,
)
from holdfast.analysis.comparison_limits import (
    listing,
    lost_prompt,
    methods_alone,
    other_method,
    prompts_of,
    rules_left_out,
    samples_left_out,
    state_of,
)
from holdfast.analysis.run_contrasts import Contrast, contrasts_of
from holdfast.analysis.series import NO_FIX, Series, label_runs, read_series
from holdfast.analysis.statistics import cell_means
from holdfast.analysis.verdicts import MIN_SAMPLES
from holdfast.errors import RecordsError, UsageError
from holdfast.records import Run, read_run
from holdfast.records.identity import ConversationsIdentity


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

    @property
    def figures(self) -> list[list[Series]]:
        """For each run after the first, the series of a figure: the first run's, then its own.

        A figure has one other run, as the rules and conversations that two runs share depend on
        both.
        """
        by_run: dict[str, list[MethodComparison]] = {}
        for item in self.methods:
            by_run.setdefault(item.now.run, []).append(item)
        return [
            [*(item.before for item in items), *(item.now for item in items)]
            for items in by_run.values()
        ]


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
    limits: list[str] = []
    for run, label in zip(runs, labels, strict=True):
        limits += state_of(run, label)
    for items, label in zip(series, labels, strict=True):
        limits += lost_prompt(items, label)
    methods: list[MethodComparison] = []
    for run, items in zip(runs[1:], series[1:], strict=True):
        aligned = _aligned(runs[0], series[0], run, items)
        limits += methods_alone(series[0], items) or other_method(*aligned[0])
        for before, now in aligned:
            shared = _shared_rules(before, now, runs[0], run)
            conversations = ComparedConversations.of(before, now, _has_seed_of(run, runs[0]))
            methods.append(_compare_method(before, now, shared, conversations))
            limits += rules_left_out(before, now)
            limits += samples_left_out(before, now, conversations)
    return RunComparison(
        tuple(runs),
        tuple(labels),
        tuple(contrasts_of(runs, series)),
        tuple(dict.fromkeys(limits)),
        tuple(methods),
    )


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


def _has_seed_of(run: Run, other: Run) -> bool:
    return _identity(run).settings.seed == _identity(other).settings.seed


def _identity(run: Run) -> ConversationsIdentity:
    return run.identity_as(ConversationsIdentity)


def _aligned(
    first_run: Run, first: Sequence[Series], run: Run, others: Sequence[Series]
) -> list[tuple[Series, Series]]:
    """The series of two runs that are compared: those of a method in common, or the only ones."""
    by_method = {item.method: item for item in first}
    pairs = [(by_method[item.method], item) for item in others if item.method in by_method]
    if not pairs and len(first) == len(others) == 1:
        return [(first[0], others[0])]
    if not pairs:
        raise RecordsError(
            f"{first_run.folder} has the methods {listing([item.method for item in first])} and"
            f" {run.folder} has {listing([item.method for item in others])}; compare runs with a"
            " method in common, or with one method each.",
            option="folders",
            value=[item.method for item in others],
            allowed=[item.method for item in first],
        )
    return pairs


def _shared_rules(before: Series, now: Series, first_run: Run, run: Run) -> list[RuleKey]:
    """The rules that have scores in both series."""
    new = rules_of(now)
    shared = [key for key in rules_of(before) if key in new]
    if not shared:
        raise RecordsError(
            f"{run.folder} and {first_run.folder} have no rule in common: the prompts of the"
            f" first are {listing(prompts_of(now))}, those of the other"
            f" {listing(prompts_of(before))}; compare runs that share prompts and rules.",
            option="folders",
            value=str(run.folder),
            allowed=prompts_of(before),
        )
    return shared


def _compare_method(
    before: Series, now: Series, shared: Sequence[RuleKey], conversations: ComparedConversations
) -> MethodComparison:
    sides = before.rows(conversations.before), now.rows(conversations.now)
    error = min(before.error, now.error)
    rounds = min(before.rounds, now.rounds)
    paired = bool(conversations.pairs)
    by_rule = [scores_by_rule(side, rounds) for side in sides]

    def scores(grouping: Grouping, group: str, keys: Sequence[RuleKey]) -> GroupScores:
        old, new = (
            cell_means([cell for key in keys for cell in cells[key]], (len(side.records), rounds))
            for side, cells in zip(sides, by_rule, strict=True)
        )
        return GroupScores(grouping, group, old, new, paired)

    every = scores("all", "", shared)
    groups = [
        scores("kind", kind, [key for key in shared if key.kind == kind])
        for kind in sorted({key.kind for key in shared if key.kind})
    ]
    if len(shared) > 1:
        groups += [scores("rule", key.name, [key]) for key in shared]
    # of rows with fewer conversations there is no verdict to be wrong about
    verdicts = 2 * sum(group.conversations >= MIN_SAMPLES for group in groups)
    prompts = sides[1].prompts if paired else None
    rows = [
        every.compare(error, prompts=prompts),
        *(group.compare(error, max(1, verdicts)) for group in groups),
    ]
    if all(side.measured("adoption") for side in sides):
        old, new = (side.adoption[:, :rounds] for side in sides)
        adoption = GroupScores("adoption", "", old, new, paired)
        rows.append(adoption.compare(error, prompts=prompts))
    return MethodComparison(
        _with_scores(sides[0], every.before, every.columns),
        _with_scores(sides[1], every.now, every.columns),
        conversations.pairs,
        tuple(int(column) + 1 for column in every.columns),
        tuple(rows),
    )


def _with_scores(side: Series, scores: np.ndarray, columns: np.ndarray) -> Series:
    """A series as the figure shows it: only the scores that are compared, in these rounds."""
    nothing = np.full_like(scores, np.nan)
    compared = nothing.copy()
    compared[:, columns] = scores[:, columns]
    matrices = {"stability": compared, "adoption": nothing, "mass": nothing}
    return replace(side, matrices=matrices)


def unsteered(comparison: RunComparison) -> MethodComparison:
    """The comparison that a title is about: of no method if there is one, else the first."""
    plain = [item for item in comparison.methods if item.now.method == NO_FIX]
    return (plain or list(comparison.methods))[0]
