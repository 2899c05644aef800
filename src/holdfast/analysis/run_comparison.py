"""Compares drift runs: what differs between them, and the differences of their scores.

All runs are compared with the first. Two rules are the same if prompt, id, kind, polarity and judge
are; only rounds that were scored in both runs count. If conversations began alike (the same seed,
number, agent and starter), they are compared in pairs; otherwise the runs are compared as two
independent samples. The verdict on all rules together has the same error as one on a single run.
The verdicts on kinds and rules share that error (Bonferroni), so that the probability that any of
them is wrong is no larger.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from holdfast.analysis.comparison_limits import (
    lost_prompt,
    methods_alone,
    other_method,
    rules_left_out,
    samples_left_out,
    state_caveats,
)
from holdfast.analysis.run_contrasts import ComparedRun, contrasts_of
from holdfast.analysis.series import NO_FIX, Series, label_runs
from holdfast.analysis.shared_series import SharedSeries, compare_rows, prompts_of
from holdfast.errors import AnotherRun, UsageError
from holdfast.plurals import listing
from holdfast.records import Run, read_run
from holdfast.records.comparison_summary import (
    RuleGroupComparison,
    RuleGrouping,
    RunContrast,
)


@dataclass(frozen=True, eq=False)
class MethodComparison:
    """One run compared with the first, under one method.

    Attributes:
        before, now: the conversations that are compared, in the first run and in this one. Their
            stability is over the rules that are compared, and NaN in rounds that are not.
        pairs: how many pairs of conversations began alike; 0 if the runs are independent samples.
        rounds: the rounds that are compared, from 1.
        rows: all rules, kinds, rules and adoption, in this order.
    """

    before: Series
    now: Series
    pairs: int
    rounds: tuple[int, ...]
    rows: tuple[RuleGroupComparison, ...]

    @property
    def overall(self) -> RuleGroupComparison:
        """The row of all rules together."""
        return self.rows[0]

    @property
    def prompts(self) -> int:
        """How many prompts of the agent are compared."""
        return len({record.agent.id for record in self.now.records})

    def of(self, grouping: RuleGrouping) -> list[RuleGroupComparison]:
        """Returns the rows of one grouping."""
        return [row for row in self.rows if row.grouping == grouping]


@dataclass(frozen=True, eq=False)
class RunComparison:
    """Runs compared with the first of them.

    Attributes:
        labels: short names of the runs, in the order given.
        contrasts: what differs between the runs.
        limits: sentences on what is not compared, or needs care.
        methods: a comparison for each run after the first and each method.
    """

    runs: tuple[Run, ...]
    labels: tuple[str, ...]
    contrasts: tuple[RunContrast, ...]
    limits: tuple[str, ...]
    methods: tuple[MethodComparison, ...]

    def causes(self, comparison: MethodComparison) -> list[str]:
        """Returns the possible causes of a difference between the two runs of a comparison."""
        number = self.labels.index(comparison.now.run)
        is_other_method = comparison.before.method != comparison.now.method
        causes: list[str | None] = ["method"] if is_other_method else []
        causes += [
            contrast.cause
            for contrast in self.contrasts
            if contrast.values[number] != contrast.values[0]
        ]
        return [cause for cause in dict.fromkeys(causes) if cause]

    @property
    def figures(self) -> list[list[Series]]:
        """For each run after the first, the series of a figure: the first run's, then its own.

        A figure compares only two runs, as the rules and conversations that are shared depend on
        both.
        """
        by_run: dict[str, list[MethodComparison]] = {}
        for comparison in self.methods:
            by_run.setdefault(comparison.now.run, []).append(comparison)
        return [
            [*(pair.before for pair in of_run), *(pair.now for pair in of_run)]
            for of_run in by_run.values()
        ]


def compare_folders(folders: Sequence[Path | str]) -> RunComparison:
    """Reads runs of `holdfast drift` or `check` and compares them with the first.

    Raises:
        UsageError: there are fewer than two folders, or one is given twice.
        AnotherRun: a folder is not such a run, or has nothing in common with the first.
        RecordsError: a run is damaged, or has no finished conversation.
    """
    paths = [Path(folder) for folder in folders]
    if len(paths) < 2:
        if paths:
            message = f"Only {paths[0]} is given; name a second run to compare it with."
        else:
            message = "No run is given; name two or more."
        raise UsageError(message, option="folders", value=[str(path) for path in paths])
    labels = label_runs(paths)
    runs = [read_run(path) for path in paths]
    for run in runs:
        if (command := run.manifest.command) != "drift":
            raise AnotherRun(
                f"{run.folder} holds a run of `holdfast {command}`; give runs of `holdfast drift`"
                " or `holdfast check`, whose conversations can be compared.",
                option="folders",
                value=run.folder,
                allowed="drift",
            )
    return _compare_runs(
        [ComparedRun.read(run, name) for run, name in zip(runs, labels, strict=True)]
    )


def _compare_runs(runs: Sequence[ComparedRun]) -> RunComparison:
    """Compares drift runs with the first of them."""
    first, *others = runs
    _refuse_other_places(runs)
    limits = [limit for run in runs for limit in state_caveats(run)]
    limits += [limit for run in runs for limit in lost_prompt(run)]
    methods: list[MethodComparison] = []
    for run in others:
        pairs = _pair_series(first, run)
        limits += methods_alone(first, run) or other_method(*pairs[0])
        for before, now in pairs:
            same_seed = run.settings.seed == first.settings.seed
            shared = SharedSeries.of(before, now, same_seed=same_seed)
            if not shared.rules:
                raise _no_shared_rule(first, before, run, now)
            methods.append(_compare_method(shared))
            limits += rules_left_out(before, now)
            limits += samples_left_out(before, now, shared.pairs)
    return RunComparison(
        runs=tuple(run.run for run in runs),
        labels=tuple(run.label for run in runs),
        contrasts=tuple(contrasts_of(runs)),
        limits=tuple(dict.fromkeys(limits)),
        methods=tuple(methods),
    )


def _refuse_other_places(runs: Sequence[ComparedRun]) -> None:
    """Refuses runs that probe at different places of a round."""
    first = runs[0]
    for run in runs:
        if run.settings.probe_at != first.settings.probe_at:
            raise AnotherRun(
                f"{first.run.folder} probes {first.settings.probe_at} and {run.run.folder}"
                f" {run.settings.probe_at}, so no round means the same in both; compare runs with"
                " the same --probe-at.",
                option="probe_at",
                value=run.settings.probe_at,
                allowed=first.settings.probe_at,
            )


def _pair_series(first: ComparedRun, run: ComparedRun) -> list[tuple[Series, Series]]:
    """Pairs the series of two runs by their method; if they have no method in common but one each,
    pairs these two.
    """
    by_method = {series.method: series for series in first.series}
    pairs = [
        (by_method[series.method], series) for series in run.series if series.method in by_method
    ]
    if not pairs and len(first.series) == len(run.series) == 1:
        return [(first.series[0], run.series[0])]
    if not pairs:
        raise AnotherRun(
            f"{first.run.folder} has the methods {listing(first.methods)} and {run.run.folder} has"
            f" {listing(run.methods)}; compare runs with a method in common, or with one method"
            " each.",
            option="folders",
            value=run.methods,
            allowed=first.methods,
        )
    return pairs


def _no_shared_rule(
    first: ComparedRun, before: Series, run: ComparedRun, now: Series
) -> AnotherRun:
    return AnotherRun(
        f"{run.run.folder} and {first.run.folder} have no rule in common: the prompts of the first"
        f" are {listing(prompts_of(now))}, and those of the second {listing(prompts_of(before))};"
        " compare runs that share prompts and rules.",
        option="folders",
        value=str(run.run.folder),
        allowed=prompts_of(before),
    )


def _compare_method(shared: SharedSeries) -> MethodComparison:
    overall = shared.scores_of("all", "", shared.rules)
    return MethodComparison(
        before=_with_scores(shared.before, overall.before, overall.scored_rounds),
        now=_with_scores(shared.now, overall.now, overall.scored_rounds),
        pairs=shared.pairs,
        rounds=tuple(int(number) + 1 for number in overall.scored_rounds),
        rows=tuple(compare_rows(shared)),
    )


def _with_scores(series: Series, scores: np.ndarray, rounds: np.ndarray) -> Series:
    """Returns the series with only the scores that are compared, in these rounds."""
    nothing = np.full_like(scores, np.nan)
    stability = nothing.copy()
    stability[:, rounds] = scores[:, rounds]
    matrices = {"stability": stability, "adoption": nothing, "mass": nothing}
    return replace(series, matrices=matrices, by_probe={})


def unsteered(comparison: RunComparison) -> MethodComparison:
    """Returns the comparison that titles are about: of runs without a method, or else the first."""
    plain = [of_method for of_method in comparison.methods if of_method.now.method == NO_FIX]
    return (plain or list(comparison.methods))[0]
