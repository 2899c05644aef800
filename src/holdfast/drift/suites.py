"""Which suite a run uses, by the name that `--suite` takes."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from holdfast.drift.cases import CATEGORIES, Case, Suite, generic_starters
from holdfast.drift.li2024 import PREFIX, SCORINGS, load_li2024
from holdfast.drift.suite_file import parse_suite
from holdfast.errors import UnknownName, UsageError

__all__ = ["CATEGORIES", "SHIPPED", "Case", "Suite", "generic_starters", "load_suite"]

SHIPPED = ("starter", "core")


def load_suite(spec: str, *, scoring: str = "strict", allow_code: bool = False) -> Suite:
    """Loads a suite.

    Args:
        spec: `starter` (the prompts the default model was trained for), `core` (a hundred of our
            own), `li2024:PATH` or `li2024:hub` (the published hundred), or a YAML file.
        scoring: for `li2024` only: `strict`, or `released` (as published, defects included).
        allow_code: whether a YAML file may name measures that are Python functions of its own, in a
            module that stands beside it or that Python finds elsewhere.

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
    if spec == PREFIX or spec.startswith(f"{PREFIX}:"):
        return load_li2024(spec.removeprefix(PREFIX).removeprefix(":"), scoring)
    if scoring != "strict":
        raise UsageError(
            f"The scoring {scoring!r} is for li2024 suites, not for {spec!r}; leave it out."
        )
    if spec in SHIPPED:
        return load_shipped(spec)
    if Path(spec).suffix in (".yaml", ".yml") or Path(spec).is_file():
        path = Path(spec)
        return parse_suite(read_text(path), spec, path.stem, allow_code, path.parent)
    raise UnknownName("suite", spec, [*SHIPPED, f"{PREFIX}:PATH", f"{PREFIX}:hub", "FILE.yaml"])


def load_shipped(name: str) -> Suite:
    """A suite that comes with the package."""
    asset = files("holdfast") / "assets" / "suites" / f"{name}.yaml"
    if not asset.is_file():
        raise UsageError(
            f"The suite {name!r} is missing from this installation of Holdfast; install it again."
        )
    text = asset.read_text(encoding="utf-8")
    return parse_suite(text, f"{name}.yaml", name, check=False)  # its tests check it


def read_text(path: Path) -> str:
    """The text of a user's file."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path} is not UTF-8 text (byte {error.start}); save it as UTF-8."
        ) from error
    except OSError as error:
        raise UsageError(
            f"The suite file {path} cannot be read ({error.strerror}); check the path."
        ) from error
