"""The package as it is built: everything that is needed at run time is in the wheel, nothing else
is, and the pins agree with the ranges.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PINS = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))


EXTRAS = PROJECT["optional-dependencies"]


def requirements() -> list[Requirement]:
    extras = [text for group in EXTRAS.values() for text in group]
    required = [Requirement(text) for text in PROJECT["dependencies"] + extras]
    return [each for each in required if each.name != PROJECT["name"]]  # an extra of its own


def integrations() -> set[str]:
    """The packages that `make integrations` installs, and `make test` does not."""
    (everything,) = map(Requirement, EXTRAS["integrations"])
    return {Requirement(text).name for extra in everything.extras for text in EXTRAS[extra]}


@pytest.mark.parametrize("requirement", requirements(), ids=str)
def test_the_pin_and_the_installed_version_are_inside_the_range(requirement):
    pins = {name.lower().replace("_", "-"): version for name, version in PINS.items()}
    assert requirement.specifier.contains(pins[requirement.name.lower().replace("_", "-")])
    if requirement.name in integrations() and not importlib.util.find_spec(requirement.name):
        pytest.skip(f"{requirement.name} is not installed; `make integrations` installs it")
    assert requirement.specifier.contains(metadata.version(requirement.name).split("+")[0])


def test_the_wheel_holds_the_model_the_suites_and_the_page(tmp_path):
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--disable-pip-version-check",
            "--wheel-dir",
            str(tmp_path),
            str(ROOT),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    names = zipfile.ZipFile(next(tmp_path.glob("holdfast-*.whl"))).namelist()
    for wanted in (
        "assets/model/model.safetensors",
        "assets/model/tokenizer.json",
        "assets/model/MODEL_CARD.md",
        "assets/suites/core.yaml",
        "assets/suites/starter.yaml",
        "assets/suites/li2024.json",
        "report/templates/skeleton.html.j2",
        "report/page.js",
    ):
        assert f"holdfast/{wanted}" in names
    assert not [
        name for name in names if name.startswith(("tests", "training")) or name.endswith(".pyc")
    ]
