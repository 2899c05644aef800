"""The package as it is built: the wheel holds what is needed, and the pins agree."""

import re
import subprocess
import sys
import zipfile
from importlib import metadata

import pytest
from optional_packages import EXTRAS, PROJECT, is_installed, optional
from packaging.requirements import Requirement
from paths import ROOT

import holdfast
from holdfast.cli.look_up.docs import pages

PINS = dict(re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE))


def requirements() -> list[Requirement]:
    extras = [text for group in EXTRAS.values() for text in group]
    required = [Requirement(text) for text in PROJECT["dependencies"] + extras]
    ours = PROJECT["name"], "holdfast-llama"  # its own extras, and the plug-in of this repository
    return [requirement for requirement in required if requirement.name not in ours]


def test_the_version_agrees_everywhere():
    version = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert "version" in PROJECT["dynamic"] and version[1] == holdfast.__version__
    release = holdfast.__version__.partition(".dev")[0]
    assert f"\n## {release}" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("requirement", requirements(), ids=str)
def test_the_pin_and_the_installed_version_are_inside_the_range(requirement):
    pins = {name.lower().replace("_", "-"): version for name, version in PINS.items()}
    assert requirement.specifier.contains(pins[requirement.name.lower().replace("_", "-")])
    if requirement.name in optional() and not is_installed(requirement.name):
        pytest.skip(f"{requirement.name} is not installed; `{optional()[requirement.name]}` does")
    assert requirement.specifier.contains(metadata.version(requirement.name).split("+")[0])


def cited_pages() -> set[str]:
    """The pages that messages and docstrings tell the reader to open."""
    source = "".join(
        path.read_text()
        for path in (ROOT / "src").rglob("*")
        if path.suffix in (".py", ".yaml", ".j2", ".js", ".html")
    )
    # a line of code may end inside the command
    pages = re.findall(r"`holdfast(?:\s|\"|\\n)+docs(?:\s|\"|\\n)+(\w+)`", source)
    assert not re.search(r"\bin the(\s|\")+documentation", source), "cite `holdfast docs PAGE`"
    return set(pages)


def test_every_cited_page_exists():
    assert {"logs", "methods", "serving", "steering"} <= cited_pages() <= {*pages()}


# the programs by which `.ci/package` tries an extra, in a folder with a run called `run`
PACKAGE_CHECKS = re.findall(r'python -c "([^"]+)"', (ROOT / ".ci/package").read_text())


@pytest.mark.parametrize("program", PACKAGE_CHECKS)
def test_the_check_of_the_package_uses_names_that_exist(program, tmp_path):
    (tmp_path / "run").symlink_to(ROOT / "tests/data/recorded/schema-3/drift")
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    missing = re.search(r"ModuleNotFoundError: No module named '(?!holdfast\b)(\w+)", done.stderr)
    if missing:
        pytest.skip(f"{missing[1]} is not installed")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_the_wheel_holds_the_model_the_suites_and_the_page(tmp_path):
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
    command += ["--disable-pip-version-check", "--wheel-dir", str(tmp_path), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    names = zipfile.ZipFile(next(tmp_path.glob("holdfast_llm-*.whl"))).namelist()
    for path in (
        "assets/model/model.safetensors",
        "assets/model/tokenizer.json",
        "assets/model/MODEL_CARD.md",
        "assets/suites/core.yaml",
        "assets/suites/starter.yaml",
        "assets/suites/li2024.json",
        "report/templates/skeleton.html.j2",
        "report/page.js",
    ):
        assert f"holdfast/{path}" in names
    for page in cited_pages():
        assert f"holdfast/assets/docs/{page}.md" in names
    assert not [name for name in names if name.startswith(("tests", "training", "docs", "src"))]
    assert not [name for name in names if name.endswith(".pyc")]
