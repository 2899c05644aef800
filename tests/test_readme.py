"""What the README shows works: its Python runs, its suite loads, its commands parse, its links and
figures lead somewhere.
"""

from __future__ import annotations

import importlib.util
import re
import shlex
from pathlib import Path

import pytest

from holdfast.cli import parser
from holdfast.drift import load_suite
from holdfast.methods import parse, write_heads

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```", README, re.DOTALL | re.MULTILINE)
    return [block for named, block in found if named == language]


def test_the_two_commands_stand_on_top_and_exist():
    first = blocks("")[0].split("\n")
    targets = (ROOT / "Makefile").read_text()
    assert [line.split("#")[0].strip() for line in first if line] == ["make demo", "make test"]
    assert "\ndemo:" in targets and "\ntest:" in targets
    assert "make test" in (ROOT / ".ci" / "run").read_text()
    assert (
        README.count("\nholdfast ")
        >= 5
        == sum(block.count("holdfast ") for block in blocks("")[1:2])
    )


def test_python_blocks_run(capsys):
    code = blocks("python")
    assert code
    for block in code:
        exec(compile(block, "README.md", "exec"), {})
    printed = capsys.readouterr().out.strip()
    promised = [
        line[2:] for block in code for line in block.splitlines() if line.startswith('# {"')
    ]
    assert len(promised) == 2 and all(line in printed.splitlines() for line in promised)


def test_the_suite_loads(tmp_path):
    for index, text in enumerate(blocks("yaml")):
        (tmp_path / f"{index}.yaml").write_text(text)
        suite = load_suite(str(tmp_path / f"{index}.yaml"))
        (case,) = suite.cases
        scores = {
            rule.id: rule.measure.score("Calzone, half a meter. It is 9 euros. Tony").value
            for rule in case.rules
        }
        assert scores == {"signs": 1, "no-discount": 1, "brief": 1, "special": 1}
        scores = {
            rule.id: rule.measure.score("For you, with a discount: 8." + " Bye!" * 40).value
            for rule in case.rules
        }
        assert scores == {"signs": 0, "no-discount": 0, "brief": 0, "special": 0}
        assert suite.personas


@pytest.mark.parametrize(
    "line",
    [line for block in blocks("") for line in block.splitlines() if line.startswith("holdfast ")],
)
def test_commands_parse(line, tmp_path, monkeypatch):
    """An empty list of commands would be skipped, so the first test counts them."""
    monkeypatch.chdir(tmp_path)
    write_heads("runs/heads/heads.json", [(0, 1)])  # what an earlier command of the README leaves
    arguments = parser().parse_args(shlex.split(line, comments=True)[1:])
    given = getattr(arguments, "method", None) or ()
    for spec in [given] if isinstance(given, str) else given:
        parse(spec)


def test_links_lead_to_files():
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_the_tables_are_those_of_the_records():
    code = ROOT / "benchmarks" / "tables.py"
    spec = importlib.util.spec_from_file_location("tables", code)
    tables = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tables)
    for path, text in tables.documents().items():
        assert path.read_text() == text, (
            f"{path.name} is not what its records say; run python benchmarks/tables.py"
        )
        assert any(
            told in text
            for told in (
                "| drop | -",
                "steered exactly",
                "**supported**",
                "| points lost |",
                "GPU hours",
                "agree, strict",
                "pass / fail / undecided",
            )
        ), f"{path.name} tells nothing"
