"""Facts in which runs differ: model, suite, settings, prompts' texts and versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from holdfast.analysis.series import Series, read_series
from holdfast.records import Run
from holdfast.records.identity import (
    ConversationsIdentity,
    Manifest,
    ProtocolSettings,
    flat,
)

# settings that change how many conversations there are, or how fast they are made
_NO_MATTER = ("settings.conversations", "settings.batch", "settings.trace")
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
        return [item.method for item in self.series]

    @property
    def prompts(self) -> dict[str, str]:
        """The agents' prompts, by id."""
        agents = [record.agent for item in self.series for record in item.records]
        return {agent.id: agent.system_prompt for agent in agents}


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


def contrasts_of(runs: Sequence[ComparedRun]) -> Iterable[Contrast]:
    """The facts that differ: the identities', the prompts' texts, and the versions."""
    manifests = [item.run.manifest for item in runs]
    for name, values in _differing([_settings(item) for item in manifests]):
        if name not in _NO_MATTER:
            yield Contrast(name, _cause_of(name), values)
    for name, values in _differing([item.prompts for item in runs]):
        if _ABSENT not in values:  # prompts of one run alone are not compared
            yield Contrast(f"prompt of {name}", "prompts", values)
    facts = [{**item.versions, "dtype": item.dtype or _ABSENT} for item in manifests]
    for name, values in _differing(facts):
        yield Contrast(f"versions.{name}" if name != "dtype" else name, _library(name), values)


def _settings(manifest: Manifest) -> dict[str, str]:
    """The settings of a run by dotted name; an empty one counts as absent."""
    settings = flat(manifest.identity.to_json())
    return {name: value or _ABSENT for name, value in settings.items()}


def _library(name: str) -> str:
    return "the version of Holdfast" if name == "holdfast" else ""


def _differing(facts: Sequence[Mapping[str, str]]) -> Iterable[tuple[str, tuple[str, ...]]]:
    for name in dict.fromkeys(name for of_run in facts for name in of_run):
        values = tuple(of_run.get(name, _ABSENT) for of_run in facts)
        if len(set(values)) > 1:
            yield name, values


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
