"""Output of `holdfast check` for CI servers: JUnit as others read it, and the example's files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.analysis.check_verdicts import check_prompts
from holdfast.records import read_run
from holdfast.records.check_records import Check, Terms
from holdfast.report.check_junit import write_junit

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "check-prompts"
RUN = ROOT / "tests" / "data" / "recorded" / "schema-3" / "drift"


def test_junit_is_read_by_its_consumers(tmp_path):
    junitparser = pytest.importorskip("junitparser", reason="make integrations installs it")
    numbered = [_scored(at, 0.0 if at % 3 == 1 else 1.0) for at in range(60) if at % 3 < 2]
    terms = Terms(min_stability=0.5)
    checks = check_prompts(numbered, ["a", "b", "c"], 2, terms)
    path = write_junit(
        Check.of("none", terms, tuple(checks)), "recorded", tmp_path / "junit.xml", 9.0
    )
    (suite,) = junitparser.JUnitXml.fromfile(str(path))
    assert [case.name for case in suite] == ["a", "b", "c"]
    outcomes = {"pass": [], "fail": [junitparser.Failure], "undecided": [junitparser.Error]}
    for case, check in zip(suite, checks, strict=True):
        assert [type(result) for result in case.result] == outcomes[check.verdict]
    assert [check.verdict for check in checks] == ["pass", "fail", "undecided"]
    assert (suite.tests, suite.failures, suite.errors) == (3, 1, 1)


def _scored(number, score):
    """A recorded conversation under another number, with these scores."""
    record = read_run(RUN).conversations[0]
    probes = tuple(probe.model_copy(update={"score": score}) for probe in record.probes)
    return record.model_copy(update={"conversation": number, "probes": probes})


@pytest.mark.parametrize(
    ("file", "schema"),
    [
        (EXAMPLE / "action.yml", "github-actions"),
        (EXAMPLE / "workflow.yml", "github-workflows"),
        (ROOT / ".github" / "workflows" / "ci.yml", "github-workflows"),
        (ROOT / "CITATION.cff", "citation-file-format"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_files_match_the_schemas_of_their_readers(file, schema):
    pytest.importorskip("check_jsonschema", reason="make integrations installs it")
    words = ["--builtin-schema", f"vendor.{schema}", str(file)]
    command = [sys.executable, "-m", "check_jsonschema", *words]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout + result.stderr


ENDINGS = [(0, "fail", 0), (1, "warn", 1), (3, "fail", 3), (3, "warn", 0)]


@pytest.mark.parametrize(("code", "undecided", "ends"), ENDINGS)
def test_the_action_passes_the_inputs_on_and_exits_as_the_check(tmp_path, code, undecided, ends):
    """With a stand-in for the command, which prints its arguments and exits with `code`."""
    command = tmp_path / "bin" / "holdfast"
    command.parent.mkdir()
    command.write_text(f'#!/usr/bin/env bash\nprintf "%s\\n" "$@"\nexit {code}\n')
    command.chmod(0o755)
    (tmp_path / "main").mkdir()
    (tmp_path / "main" / "manifest.json").write_text("{}")
    inputs = {"PROMPTS": "my prompts.yaml", "MODEL": "http://there/v1", "ENDPOINT_MODEL": ""}
    inputs |= {"ROUNDS": "4", "MIN_STABILITY": "0.8", "ERROR": "0.1", "BUDGET": "50"}
    inputs |= {"BASELINE": "main", "UNDECIDED": undecided}
    inputs["GITHUB_OUTPUT"] = str(tmp_path / "output")
    inputs["GITHUB_STEP_SUMMARY"] = str(tmp_path / "summary")
    env = {**os.environ, **inputs, "PATH": f"{command.parent}:{os.environ['PATH']}"}
    captured = {"capture_output": True, "text": True, "timeout": 60}
    result = subprocess.run(["bash", str(EXAMPLE / "check.sh")], env=env, cwd=tmp_path, **captured)
    assert result.returncode == ends, result.stderr
    assert result.stdout.startswith("check\nmy prompts.yaml\n--model\nhttp://there/v1\n")
    for pair in ("--rounds\n4\n", "--error\n0.1\n", "--budget\n50\n", "--against\nmain\n"):
        assert pair in result.stdout
    assert "--min-stability\n0.8\n" in result.stdout and "--endpoint-model" not in result.stdout
    assert ("::warning" in result.stdout) == (code == 3 and undecided == "warn")
    assert f"code={code}\n" in (tmp_path / "output").read_text()
    assert "my prompts.yaml" in (tmp_path / "summary").read_text()


def test_the_prompts_of_the_example_are_a_suite():
    from holdfast.drift import load_suite

    suite = load_suite(str(EXAMPLE / "prompts.yaml"))
    assert [case.id for case in suite.cases] == ["tony", "french"] and len(suite.personas) == 2
