"""The worked examples of docs/contributing.md, done as the page says in a copy of the repository.

`test_documents.py` runs the method and the engine that need no change of the package, and
`test_transcripts.py` the format of logs.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from code_blocks import ROOT, blocks_of

PAGE = ROOT / "docs" / "contributing.md"
METHOD = """
import holdfast
from holdfast.cli import main
(made,) = holdfast.methods.parse("lift:by=2")
assert made == holdfast.Lift(by=2) and "Lift" in holdfast.__all__
main(["methods"])
"""
pytestmark = pytest.mark.slow


@pytest.fixture
def copy(tmp_path) -> Path:
    """A copy of the package and its tests, which a test may change."""
    package = tmp_path / "src" / "holdfast"
    leave = shutil.ignore_patterns("assets", "data", "__pycache__", "integrations")
    shutil.copytree(ROOT / "src" / "holdfast", package, ignore=leave)
    (package / "assets").symlink_to(ROOT / "src" / "holdfast" / "assets")
    shutil.copytree(ROOT / "tests", tmp_path / "tests", ignore=leave)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def run(copy: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs Python in the copy."""
    env = os.environ | {"PYTHONPATH": str(copy / "src")}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=copy, env=env, capture_output=True, text=True)


def count_passed(copy: Path, *words: str) -> int:
    """How many tests pass in the copy; all of them have to."""
    result = run(copy, "-m", "pytest", "-p", "no:cacheprovider", *words)
    assert not result.returncode, result.stdout
    return int(re.search(r"(\d+) passed", result.stdout)[1])


def append(path: Path, text: str) -> None:
    path.write_text(f"{path.read_text()}{text}")


@pytest.fixture
def with_method(copy) -> Path:
    """The copy with the page's method: a class, a row and an oracle."""
    (example,) = (block for block in blocks_of(PAGE, "python") if "class Lift" in block.text)
    row, oracle = (block.text for block in blocks_of(PAGE, "py") if "lift" in block.text)
    methods = copy / "src" / "holdfast" / "methods"
    (methods / "lift.py").write_text(example.text)
    append(methods / "method_classes.py", f"\n{row}")
    append(copy / "tests" / "oracles.py", f"\n\n{oracle}")
    return copy


def test_an_added_method_is_known_exported_and_listed(with_method):
    result = run(with_method, "-c", METHOD)
    assert not result.returncode, result.stderr
    assert re.search(r"^ *lift\b.*Adds a number to the log-odds", result.stdout, re.MULTILINE)


def test_the_tests_take_an_added_method_from_its_row(with_method):
    names = ("methods", "method_specs", "message_methods", "steering_table")
    files = [f"tests/methods/test_{name}.py" for name in names]
    assert count_passed(with_method, *files, "-k", "Lift or oracle or exported") > 8
    assert "pytest tests/methods -k lift" in PAGE.read_text()
    assert count_passed(with_method, "tests/methods", "-k", "lift") > 3


def test_the_tests_take_an_added_measure_from_its_rows(copy):
    (example,) = (block for block in blocks_of(PAGE, "py") if "@measure" in block.text)
    measures = copy / "src" / "holdfast" / "measures"
    (measures / "prices.py").write_text(example.text)
    package = measures / "__init__.py"
    package.write_text(
        package.read_text().replace("    procedure,\n", "    prices,\n    procedure,\n", 1)
    )
    (copy / "tests" / "data").mkdir()
    for file in (ROOT / "tests" / "data").glob("*.jsonl"):
        shutil.copy(file, copy / "tests" / "data")
    rows = re.findall(r'^ *(\{"measure": "names_price".*\})$', PAGE.read_text(), re.MULTILINE)
    examples, hand_scored = rows
    append(copy / "tests" / "data" / "measures.jsonl", f"{examples}\n")
    append(copy / "tests" / "data" / "hand_scored.jsonl", f"{hand_scored}\n")
    names = "names_price or every_measure or careful_reader"
    assert count_passed(copy, "tests/measures/test_measures.py", "-k", names) == 4
    assert count_passed(copy, "tests/measures/test_measure_examples.py", "-k", "names_price") == 1
    result = run(copy, "-m", "holdfast", "measures", "names_price")
    assert "names a price in euros" in result.stdout
