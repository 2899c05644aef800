"""Facts in which runs differ: model, suite, settings, prompts' texts and versions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.analysis.series import Series
from holdfast.records import Run

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


def contrasts_of(runs: Sequence[Run], series: Sequence[Sequence[Series]]) -> Iterable[Contrast]:
    """The facts that differ: the identities', the prompts' texts, and the versions.

    Args:
        series: of each run, one for each of its methods.
    """
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
