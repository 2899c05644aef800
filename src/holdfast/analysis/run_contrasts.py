"""Finds the facts in which runs differ: model, suite, settings, prompts' texts and versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.analysis.series import Series, read_series
from holdfast.records import Run
from holdfast.records.comparison_summary import RunContrast
from holdfast.records.identity import (
    ConversationsIdentity,
    Manifest,
    ProtocolSettings,
    flatten,
)

# Settings that change how many conversations there are, or how fast they are made, but not scores.
_IRRELEVANT = ("settings.conversations", "settings.batch", "settings.trace")
_ABSENT = "–"


@dataclass(frozen=True, eq=False)
class ComparedRun:
    """A drift run, its short name, and a series for each of its methods."""

    run: Run
    label: str
    series: tuple[Series, ...]

    @classmethod
    def read(cls, run: Run, label: str) -> ComparedRun:
        """Reads the series of a run."""
        return cls(run, label, tuple(read_series(run, label)))

    @property
    def settings(self) -> ProtocolSettings:
        """The protocol of its conversations."""
        return self.run.identity_as(ConversationsIdentity).settings

    @property
    def methods(self) -> list[str]:
        """The methods of its series."""
        return [series.method for series in self.series]

    @property
    def prompts(self) -> dict[str, str]:
        """The agents' prompts, by id."""
        agents = [record.agent for series in self.series for record in series.records]
        return {agent.id: agent.system_prompt for agent in agents}


def contrasts_of(runs: Sequence[ComparedRun]) -> Iterable[RunContrast]:
    """Finds the facts that differ: in identities, in the texts of prompts, and in versions."""
    manifests = [item.run.manifest for item in runs]
    for name, values in _find_differences([_settings(item) for item in manifests]):
        if name not in _IRRELEVANT:
            yield RunContrast(name=name, cause=_cause_of(name), values=values)
    for name, values in _find_differences([item.prompts for item in runs]):
        if _ABSENT not in values:  # a prompt that some run lacks is not compared
            yield RunContrast(name=f"prompt of {name}", cause="prompts", values=values)
    for name, values in _find_differences([_environment(item) for item in manifests]):
        cause = "the version of Holdfast" if name == "versions.holdfast" else None
        yield RunContrast(name=name, cause=cause, values=values)


def _settings(manifest: Manifest) -> dict[str, str]:
    """Returns the settings of a run by dotted name; an empty value counts as absent."""
    settings = flatten(manifest.identity.to_json())
    return {name: value or _ABSENT for name, value in settings.items()}


def _environment(manifest: Manifest) -> dict[str, str]:
    """Returns the versions that made a run, by dotted name, and the type of its numbers."""
    versions = {f"versions.{name}": version for name, version in manifest.versions.items()}
    return {**versions, "dtype": manifest.dtype or _ABSENT}


def _find_differences(
    facts_by_run: Sequence[Mapping[str, str]],
) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Yields each fact that is not the same in all runs: its name, and its value in each run."""
    for name in dict.fromkeys(name for facts in facts_by_run for name in facts):
        values = tuple(facts.get(name, _ABSENT) for facts in facts_by_run)
        if len(set(values)) > 1:
            yield name, values


def _cause_of(name: str) -> str | None:
    """Returns the `RunContrast.cause` of a setting, given its dotted name."""
    first, _, rest = name.partition(".")
    if first == "settings":
        return rest.rpartition(".")[2].replace("_", " ")
    causes: dict[str, str | None] = {
        "runtime": None,
        "model_fingerprint": "model",
        "suite_fingerprint": "suite",
        "user_model": "user model",
        "user_turns": "user turns",
        "methods": None,  # series are paired by their method
    }
    return causes.get(first, first)
