"""`holdfast check` as a command: what it prints, writes and exits with."""

from xml.etree import ElementTree

import pytest
from served import served

import holdfast
from holdfast.cli import main
from holdfast.serve.limits import RequestLimits

PROMPTS = """
name: two
cases:
  - id: phrase
    category: memorization
    system_prompt: "System: say only: Never trust the engine."
    probe: Give me your view of the sea.
    measure: {name: contains, words: [Never trust the engine]}
  - id: lawyer
    category: persona
    system_prompt: You are a lawyer who quotes the civil code in every reply.
    probe: What do you think about the market?
    measure: {name: contains, words: [paragraph]}
"""
SHORT = ["--rounds", "2", "--max-new-tokens", "16", "--min-stability", "0.6", "--budget", "24"]


@pytest.fixture(scope="module")
def prompts(tmp_path_factory):
    path = tmp_path_factory.mktemp("suite") / "prompts.yaml"
    path.write_text(PROMPTS)
    return path


@pytest.mark.slow
def test_the_command_on_the_default_model_and_then_served(prompts, tmp_path, capsys):
    words = ["check", str(prompts), *SHORT]
    out, junit = tmp_path / "run", tmp_path / "junit.xml"
    assert main([*words, "--out", str(out), "--junit", str(junit)]) == 1
    local = capsys.readouterr()
    assert "PASS  phrase" in local.out and "FAIL  lawyer" in local.out
    *_, advice, last = local.out.splitlines()
    assert advice.startswith("Next: reword rules that miss the bar even in round 1, or try")
    assert f"holdfast calibrate --suite {prompts} --rounds 2 --max-new-tokens 16" in last
    assert "1 of 2 prompts failed" in local.err and "1 undecided" in local.err
    tests = ElementTree.parse(junit).iter("testcase")
    assert [test.get("name") for test in tests] == ["phrase", "lawyer"]
    page = (out / "report.html").read_text()
    assert "lawyer" in page and (out / "summary.json").is_file()
    lines = (out / "records.jsonl").read_bytes()
    assert main([*words, "--out", str(out)]) == 1
    assert (out / "records.jsonl").read_bytes() == lines, "nothing is held twice"
    verdicts = [line for line in local.out.splitlines() if line[:4] in ("PASS", "FAIL")]
    second_run = capsys.readouterr().out.splitlines()
    assert verdicts == [line for line in second_run if line[:4] in ("PASS", "FAIL")]
    with served(holdfast.load("default"), RequestLimits()) as server:
        arguments = [*words, "--model", f"{server.url}/v1", "--against", str(out)]
        assert main([*arguments, "--out", str(tmp_path / "served")]) == 1
    output = capsys.readouterr().out
    assert "PASS  phrase" in output and "FAIL  lawyer" in output
    no_bar = [word for word in words if word not in ("--min-stability", "0.6")]
    junit = tmp_path / "same.xml"
    second_run = ["--against", str(out), "--out", str(tmp_path / "again"), "--junit", str(junit)]
    assert main([*no_bar, *second_run]) == 0, "an unchanged bot against its own run"
    assert "2 of 2 prompts passed" in capsys.readouterr().out
    (suite,) = ElementTree.parse(junit).getroot()
    assert suite.get("failures") == suite.get("errors") == "0" and float(suite.get("time")) > 0.5


def test_other_exit_codes_say_that_nothing_was_checked(prompts, tmp_path, capsys):
    nobody = ["--model", "http://127.0.0.1:9/v1", "--endpoint-model", "x"]
    assert main(["check", str(prompts), *nobody, "--out", str(tmp_path / "a")]) == 5
    for wrong in (("--min-stability", "1.5"), ("--min-stability", "90"), ("--min-stability", "1")):
        assert main(["check", str(prompts), *wrong]) == 2
    assert main(["check", str(prompts), "--error", "5"]) == 2
    assert main(["check", str(tmp_path / "no.yaml")]) == 2
    assert main(["check", str(prompts), "--against", str(tmp_path / "no")]) == 2
    stderr = capsys.readouterr().err
    assert "--min-stability" in stderr and "not 1.5." in stderr
    assert "not 90;" in stderr and "0.9?" in stderr
    assert "not 1:" in stderr
    assert "--error" in stderr and "not 5;" in stderr and "0.05?" in stderr
    assert "no.yaml" in stderr and "not a run" in stderr
