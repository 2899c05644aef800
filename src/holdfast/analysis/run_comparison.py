"""Compares drift runs: what differs between them, and the differences of their scores.

All runs are compared with the first. Two rules are the same if prompt, id, kind, polarity and judge
are; only rounds that were scored in both runs count. If conversations began alike (the same seed,
number, agent and starter), they are compared in pairs; otherwise the runs are compared as two
independent samples. The verdict on all rules together has the same error as one on a single run.
The verdicts on kinds and rules share that error (Bonferroni), so that the probability that any of
them is wrong is no larger.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from holdfast.analysis.comparison_limits import (
    lost_prompt,
    methods_alone,
    other_method,
    rules_left_out,
    samples_left_out,
    state_caveats,
)
from holdfast.analysis.comparison_rows import compare_series
from holdfast.analysis.drift_results import DriftResults, results_of
from holdfast.analysis.series import NO_FIX, Series, label_runs
from holdfast.analysis.shared_series import SharedSeries, prompts_of
from holdfast.errors import AnotherRun, UsageError, option
from holdfast.plurals import listing
from holdfast.records import Run, read_run
from holdfast.records.comparison_summary import MethodComparison, RunContrast
from holdfast.records.identity import Manifest, flatten

# Settings that change how many conversations there are, or how fast they are made, but not scores.
_IRRELEVANT = ("settings.conversations", "settings.batch", "settings.trace")
_ABSENT = "–"


@dataclass(frozen=True, eq=False)
class RunComparison:
    """Runs compared with the first of them.

    Attributes:
        labels: short names of the runs, in the order given.
        contrasts: what differs between the runs.
        limits: sentences on what is not compared, or needs care.
        methods: a comparison for each run after the first and each method.
        figures: for each run after the first, the series of a figure: the first run's, then its
            own. A figure compares only two runs, as the rules and conversations that are shared
            depend on both.
    """

    runs: tuple[Run, ...]
    labels: tuple[str, ...]
    contrasts: tuple[RunContrast, ...]
    limits: tuple[str, ...]
    methods: tuple[MethodComparison, ...]
    figures: tuple[list[Series], ...]

    def causes(self, method_comparison: MethodComparison) -> list[str]:
        """Returns the possible causes of a difference between the two runs of a comparison."""
        number = self.labels.index(method_comparison.run)
        causes: list[str | None] = [] if method_comparison.has_same_method else ["method"]
        causes += [
            contrast.cause
            for contrast in self.contrasts
            if contrast.values[number] != contrast.values[0]
        ]
        return [cause for cause in dict.fromkeys(causes) if cause]

    @property
    def unsteered(self) -> MethodComparison:
        """The comparison that titles are about: of runs without a method, or else the first."""
        return next((item for item in self.methods if item.method == NO_FIX), self.methods[0])


@dataclass(frozen=True, eq=False)
class _ComparedRun:
    """A run compared with the first one; the fields are as in `RunComparison`."""

    methods: list[MethodComparison]
    figure: list[Series]
    limits: list[str]


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
    return _compare_runs([results_of(run, name) for run, name in zip(runs, labels, strict=True)])


def _compare_runs(runs: Sequence[DriftResults]) -> RunComparison:
    """Compares drift runs with the first of them."""
    first, *later_runs = runs
    _refuse_other_places(runs)
    compared = [_compare_with_first(first, run) for run in later_runs]
    limits = [limit for run in runs for limit in state_caveats(run)]
    limits += [limit for run in runs for limit in lost_prompt(run)]
    limits += [limit for run in compared for limit in run.limits]
    return RunComparison(
        runs=tuple(run.run for run in runs),
        labels=tuple(run.label for run in runs),
        contrasts=tuple(_contrasts_of(runs)),
        limits=tuple(dict.fromkeys(limits)),
        methods=tuple(method for run in compared for method in run.methods),
        figures=tuple(run.figure for run in compared),
    )


def _compare_with_first(first: DriftResults, run: DriftResults) -> _ComparedRun:
    """Compares the methods of a run with those of the first run."""
    same_seed = run.settings.seed == first.settings.seed
    pairs = _pair_series(first, run)
    limits = [*(methods_alone(first, run) or other_method(*pairs[0]))]
    methods: list[MethodComparison] = []
    figure_before: list[Series] = []
    figure_now: list[Series] = []
    for before, now in pairs:
        shared = SharedSeries.of(before, now, same_seed=same_seed)
        if not shared.rules:
            raise _no_shared_rule(first, before, run, now)
        methods.append(compare_series(shared))
        drawn_before, drawn_now = shared.drawn()
        figure_before.append(drawn_before)
        figure_now.append(drawn_now)
        limits += rules_left_out(before, now)
        limits += samples_left_out(before, now, shared.pairs)
    return _ComparedRun(methods, [*figure_before, *figure_now], limits)


def _refuse_other_places(runs: Sequence[DriftResults]) -> None:
    """Refuses runs that probe at different places of a round."""
    first = runs[0]
    for run in runs:
        if run.settings.probe_at != first.settings.probe_at:
            raise AnotherRun(
                f"{first.run.folder} probes {first.settings.probe_at} and {run.run.folder}"
                f" {run.settings.probe_at}, so no round means the same in both; compare runs with"
                f" the same {option('probe_at')}.",
                option="probe_at",
                value=run.settings.probe_at,
                allowed=first.settings.probe_at,
            )


def _pair_series(first: DriftResults, run: DriftResults) -> list[tuple[Series, Series]]:
    """Pairs the series of two runs by their method.

    If they have no method in common but one each, pairs these two.
    """
    series_by_method = {series.method: series for series in first.series}
    pairs = [
        (series_by_method[series.method], series)
        for series in run.series
        if series.method in series_by_method
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
    first: DriftResults, before: Series, run: DriftResults, now: Series
) -> AnotherRun:
    return AnotherRun(
        f"{first.run.folder} and {run.run.folder} have no rule in common: the prompts of the first"
        f" are {listing(prompts_of(before))}, and those of the second {listing(prompts_of(now))};"
        " compare runs that share prompts and rules.",
        option="folders",
        value=str(run.run.folder),
        allowed=prompts_of(before),
    )


class _DifferingFact(NamedTuple):
    """A fact about the runs, and its value in each of them."""

    name: str
    values: tuple[str, ...]


def _contrasts_of(runs: Sequence[DriftResults]) -> Iterable[RunContrast]:
    """Finds the facts that differ: in identities, in the texts of prompts, and in versions."""
    manifests = [item.run.manifest for item in runs]
    for name, values in _find_differences([_settings_of(item) for item in manifests]):
        if name not in _IRRELEVANT:
            yield RunContrast(name=name, cause=_cause_of(name), values=values)
    for name, values in _find_differences([_prompts_of(item) for item in runs]):
        if _ABSENT not in values:  # a prompt that some run lacks is not compared
            yield RunContrast(name=f"prompt of {name}", cause="prompts", values=values)
    for name, values in _find_differences([_environment_of(item) for item in manifests]):
        cause = "the version of Holdfast" if name == "versions.holdfast" else None
        yield RunContrast(name=name, cause=cause, values=values)


def _prompts_of(results: DriftResults) -> dict[str, str]:
    """Returns the agents' prompts in a run, by id."""
    agents = [record.agent for series in results.series for record in series.records]
    return {agent.id: agent.system_prompt for agent in agents}


def _settings_of(manifest: Manifest) -> dict[str, str]:
    """Returns the settings of a run by dotted name; an empty value counts as absent."""
    settings = flatten(manifest.identity.to_json())
    return {name: value or _ABSENT for name, value in settings.items()}


def _environment_of(manifest: Manifest) -> dict[str, str]:
    """Returns the versions that made a run, by dotted name, and the type of its numbers."""
    versions = {f"versions.{name}": version for name, version in manifest.versions.items()}
    return {**versions, "dtype": manifest.dtype or _ABSENT}


def _find_differences(
    facts_by_run: Sequence[Mapping[str, str]],
) -> Iterable[_DifferingFact]:
    """Yields each fact that is not the same in all runs."""
    for name in dict.fromkeys(name for facts in facts_by_run for name in facts):
        values = tuple(facts.get(name, _ABSENT) for facts in facts_by_run)
        if len(set(values)) > 1:
            yield _DifferingFact(name, values)


def _cause_of(name: str) -> str | None:
    """Returns the `RunContrast.cause` of a setting, given its dotted name."""
    first, _, field = name.partition(".")
    if first == "settings":
        return field.rpartition(".")[2].replace("_", " ")
    causes: dict[str, str | None] = {
        "runtime": None,
        "model_fingerprint": "model",
        "suite_fingerprint": "suite",
        "user_model": "user model",
        "user_turns": "user turns",
        "methods": None,  # series are paired by their method
    }
    return causes.get(first, first)
