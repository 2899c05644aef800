"""Loads a suite by what `--suite` takes: `starter`, `li2024:hub`, `mine.yaml` and the like."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from holdfast.drift import li2024, sys_ifeval
from holdfast.drift.cases import Suite
from holdfast.drift.suite_file import parse_suite
from holdfast.errors import UnknownName, UsageError, type_in_words
from holdfast.files import ASSETS, read_text

_HAS_CASES = re.compile(r"""^\W*cases["']?[ \t]*:""", re.M)  # as every suite has
SHIPPED = ("starter", "core", "everyday", "bots", "bot", "luna")


@dataclass(frozen=True)
class Published:
    """A published benchmark, which is read from the user's file, given as `NAME:PATH`."""

    load: Callable[[str, str], Suite]  # takes the path and the scoring
    scorings: tuple[str, ...]  # the ways in which its replies can be scored
    forms: tuple[str, ...]  # the forms of its spec, for messages


PUBLISHED = {
    li2024.PREFIX: Published(li2024.load_li2024, li2024.SCORINGS, ("li2024:PATH", "li2024:hub")),
    "sys-ifeval": Published(sys_ifeval.load_sys_ifeval, sys_ifeval.SCORINGS, ("sys-ifeval:PATH",)),
}
SCORINGS = tuple(dict.fromkeys(name for kind in PUBLISHED.values() for name in kind.scorings))


def load_suite(
    spec: str | Path,
    *,
    scoring: str = "strict",
    allow_code: bool = False,
    probed: bool = True,
    check: bool = True,
) -> Suite:
    """Loads a suite.

    Args:
        spec: `starter` (the prompts that the default model was trained for), `core` (a hundred
            prompts of ours), `everyday` (languages, names, jobs, cities, personas and the like),
            `bots` (support, shops, tutors and others, with two to eight rules each), `bot` (one
            prompt of four rules, for the default model), `luna` (one prompt of three rules, for
            SmolLM2), a published benchmark as `NAME:PATH` (`PUBLISHED`), or a YAML file.
        scoring: how a published benchmark is scored: `strict`; `released` for `li2024` (as
            published, with its defects); `loose` for `sys-ifeval` (the best of eight readings).
        allow_code: whether a YAML file may name Python functions as measures, in a module beside
            the file or elsewhere on Python's path.
        probed: whether the rules are to be probed; False accepts rules that only score logs, too.
        check: whether the measures of a YAML file are tested on their examples.

    Raises:
        UnknownName: no suite or scoring has this name.
        UsageError: the file is missing or malformed.
        HoldfastError: the hub could not be reached.
    """
    if not isinstance(spec, (str, Path)):
        raise UsageError(
            f"A suite is given by its name or its file, not by {type_in_words(spec)}; build one of"
            " your own as drift.Suite(NAME, (CASE,)).",
            option="suite",
            value=spec,
        )
    spec = str(spec)
    name, _, path = spec.partition(":")
    published = PUBLISHED.get(name)
    _refuse_scoring(scoring, spec, published)
    if published:
        if not path:
            raise UsageError(
                f"The suite {name!r} needs the published file: write"
                f" {' or '.join(published.forms)}."
            )
        return published.load(path, scoring)
    if spec in SHIPPED:
        return load_shipped(spec)
    if Path(spec).suffix in (".yaml", ".yml") or Path(spec).is_file():
        return _load_file(spec, allow_code=allow_code, probed=probed, check=check)
    if Path(spec).is_dir():
        raise _folder_error(spec)
    forms = [form for kind in PUBLISHED.values() for form in kind.forms]
    raise UnknownName("suite", spec, [*SHIPPED, *forms, "FILE.yaml"])


def _refuse_scoring(scoring: str, spec: str, published: Published | None) -> None:
    """Refuses a scoring that is unknown, or that this suite does not have."""
    if scoring not in SCORINGS:
        raise UnknownName("scoring", scoring, SCORINGS)
    if scoring not in (published.scorings if published else ("strict",)):
        names = [name for name, kind in PUBLISHED.items() if scoring in kind.scorings]
        raise UsageError(
            f"The scoring {scoring!r} is for {', '.join(names)} suites, not for {spec!r}; leave it"
            " out."
        )


def _load_file(spec: str, *, allow_code: bool, probed: bool, check: bool) -> Suite:
    """Loads a suite of the user's own."""
    path = Path(spec)
    text = read_text(path)
    if path.suffix in (".txt", ".md") and not _HAS_CASES.search(text):
        raise _prompt_error(path)
    return parse_suite(
        text,
        spec,
        path.stem,
        allow_code=allow_code,
        folder=path.parent,
        check=check,
        probed=probed,
    )


def as_suite(suite: Suite | Path | str, *, probed: bool = True) -> Suite:
    """Returns a suite as it is, and loads one that is given by its name or file."""
    return suite if isinstance(suite, Suite) else load_suite(suite, probed=probed)


def _prompt_error(path: Path) -> UsageError:
    """Builds the error for a prompt, or another text, in place of a suite file."""
    return UsageError(
        f"{path} is not a suite, as it has no field 'cases'; if it is a prompt, `holdfast suite"
        f" init {path} --out {path.with_suffix('.yaml')}` drafts a suite from it, and `holdfast try"
        f" --prompt {path}` measures it at once.",
        option="suite",
        value=str(path),
        allowed="a YAML file",
    )


def _folder_error(spec: str) -> UsageError:
    """Builds the error for a folder in place of a suite file."""
    files = sorted(path for path in Path(spec).iterdir() if path.suffix in (".yaml", ".yml"))
    cure = f"one of its files, such as {files[0]}" if files else "a YAML file"
    return UsageError(
        f"The suite {spec!r} is a folder; give {cure}.",
        option="suite",
        value=spec,
        allowed="a YAML file",
    )


def load_shipped(name: str) -> Suite:
    """Loads a suite that is in the package."""
    file = ASSETS / "suites" / f"{name}.yaml"
    if not file.is_file():
        raise UsageError(
            f"The suite {name!r} is missing from this installation of Holdfast; install it again."
        )
    text = file.read_text(encoding="utf-8")
    return parse_suite(text, f"{name}.yaml", name, check=False)  # its tests check it
