"""The packages that only some environments of the Makefile install."""

import tomllib
from importlib import metadata

from packaging.requirements import Requirement
from paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


def optional() -> dict[str, str]:
    """The packages that `make test` does not install, with the command that does."""
    (everything,) = map(Requirement, EXTRAS["integrations"])
    commands = {extra: "make integrations" for extra in everything.extras} | {"docs": "make docs"}
    rows = [(text, command) for extra, command in commands.items() for text in EXTRAS[extra]]
    return {Requirement(text).name: command for text, command in rows}


def is_installed(name: str) -> bool:
    try:
        return bool(metadata.version(name))
    except metadata.PackageNotFoundError:
        return False
