"""Which suite a run uses, by the name that `--suite` takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from holdfast.common.files import ASSETS, read_text
from holdfast.drift import li2024, sys_ifeval
from holdfast.drift.cases import CATEGORIES, Case, Suite, generic_starters
from holdfast.drift.suite_file import parse_suite
from holdfast.errors import UnknownName, UsageError

__all__ = ["CATEGORIES", "SHIPPED", "Case", "Suite", "generic_starters", "load_suite"]

SHIPPED = ("starter", "core", "everyday", "bot")


@dataclass(frozen=True)
class Published:
    """A published benchmark, which is read from the user's file as `NAME:PATH`."""

    load: Callable[[str, str], Suite]  # from the path, and one of the scorings
    scorings: tuple[str, ...]  # how its replies can be scored
    spellings: tuple[str, ...]  # what `--suite` takes, for messages


PUBLISHED = {
    li2024.PREFIX: Published(li2024.load_li2024, li2024.SCORINGS, ("li2024:PATH", "li2024:hub")),
    "sys-ifeval": Published(sys_ifeval.load_sys_ifeval, sys_ifeval.SCORINGS, ("sys-ifeval:PATH",)),
}
SCORINGS = tuple(dict.fromkeys(name for kind in PUBLISHED.values() for name in kind.scorings))


def load_suite(
    spec: str, *, scoring: str = "strict", allow_code: bool = False, probed: bool = True
) -> Suite:
    """Loads a suite.

    Args:
        spec: `starter` (the prompts the default model was trained for), `core` (a hundred of our
            own), `everyday` (languages, names, jobs, cities, personas and the like), `bot` (one
            prompt of four rules), a published benchmark as `NAME:PATH` (`PUBLISHED`), or a YAML
            file.
        scoring: of published benchmarks: `strict`; `released` for `li2024` (as published, defects
            included); `loose` for `sys-ifeval` (the best of eight readings).
        allow_code: whether a YAML file may name measures that are Python functions of its own, in a
            module that stands beside it or that Python finds elsewhere.
        probed: whether its rules are to be probed; False also takes rules that only logs are scored
            by.

    Raises:
        UnknownName: no suite or scoring has this name.
        UsageError: the file is missing or malformed.
        HoldfastError: the hub could not be reached.
    """
    if not isinstance(spec, (str, Path)):
        raise UsageError(f"A suite is loaded by its name or path, not from {type(spec).__name__}.")
    spec = str(spec)
    if scoring not in SCORINGS:
        raise UnknownName("scoring", scoring, SCORINGS)
    name, _, where = spec.partition(":")
    published = PUBLISHED.get(name)
    if scoring not in (published.scorings if published else ("strict",)):
        names = [name for name, kind in PUBLISHED.items() if scoring in kind.scorings]
        raise UsageError(
            f"The scoring {scoring!r} is for {', '.join(names)} suites, not for {spec!r}; leave it"
            " out."
        )
    if published:
        if not where:
            raise UsageError(
                f"The suite {name!r} needs the published file: write"
                f" {' or '.join(published.spellings)}."
            )
        return published.load(where, scoring)
    if spec in SHIPPED:
        return load_shipped(spec)
    if Path(spec).suffix in (".yaml", ".yml") or Path(spec).is_file():
        path = Path(spec)
        text = read_text(path)
        return parse_suite(text, spec, path.stem, allow_code, path.parent, probed=probed)
    spellings = [spelling for kind in PUBLISHED.values() for spelling in kind.spellings]
    raise UnknownName("suite", spec, [*SHIPPED, *spellings, "FILE.yaml"])


def load_shipped(name: str) -> Suite:
    """A suite that comes with the package."""
    file = ASSETS / "suites" / f"{name}.yaml"
    if not file.is_file():
        raise UsageError(
            f"The suite {name!r} is missing from this installation of Holdfast; install it again."
        )
    text = file.read_text(encoding="utf-8")
    return parse_suite(text, f"{name}.yaml", name, check=False)  # its tests check it
