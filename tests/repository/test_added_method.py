"""A method is added as docs/contributing.md says: one class, one row, one oracle."""

import os
import re
import shutil
import subprocess
import sys

import pytest
from code_blocks import ROOT, blocks_of

PAGE = ROOT / "docs" / "contributing.md"
SCRIPT = """
import holdfast
from holdfast.cli import main
(made,) = holdfast.methods.parse("lift:by=2")
assert made == holdfast.Lift(by=2) and "Lift" in holdfast.__all__
main(["methods"])
"""


@pytest.fixture
def run(tmp_path):
    """Runs Python in a copy of the package and its tests, to which the page's method was added."""
    package, tests = tmp_path / "src" / "holdfast", tmp_path / "tests"
    leave = shutil.ignore_patterns("assets", "data", "__pycache__", "integrations")
    shutil.copytree(ROOT / "src" / "holdfast", package, ignore=leave)
    (package / "assets").symlink_to(ROOT / "src" / "holdfast" / "assets")
    shutil.copytree(ROOT / "tests", tests, ignore=leave)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (example,) = (block for block in blocks_of(PAGE, "python") if "class Lift" in block.text)
    row, oracle = (block.text for block in blocks_of(PAGE, "text") if "lift" in block.text)
    (package / "methods" / "lift.py").write_text(example.text)
    for path, added in (
        (package / "methods/method_classes.py", row),
        (tests / "oracles.py", oracle),
    ):
        path.write_text(f"{path.read_text()}\n\n{added}")
    env = os.environ | {"PYTHONPATH": f"{tmp_path / 'src'}{os.pathsep}{tests}"}

    def start(*words):
        command = [sys.executable, *words]
        return subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)

    return start


@pytest.mark.slow
def test_an_added_method_is_known_exported_and_listed(run):
    result = run("-c", SCRIPT)
    assert not result.returncode, result.stderr
    assert re.search(r"^ *lift\b.*Adds a number to the log-odds", result.stdout, re.MULTILINE)


@pytest.mark.slow
def test_the_tests_take_an_added_method_from_its_row(run):
    files = ("tests/methods/test_methods.py", "tests/methods/test_steering_table.py")
    result = run(
        "-m", "pytest", "-p", "no:cacheprovider", *files, "-k", "Lift or oracle or exported"
    )
    assert not result.returncode, result.stdout
    assert int(re.search(r"(\d+) passed", result.stdout)[1]) > 8
