"""`holdfast logs`: adherence by turn, verdicts, and what the command prints and writes."""

import csv
import io
import json
import re
import shutil
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from logged_dialogs import ONLY_PROBED, PROBED, SHORT, asked_and_answered, chats, cities, lines_of
from paths import ROOT
from refusals import refusal_in
from synthetic_run import as_json

from holdfast.analysis.adherence import adherence
from holdfast.analysis.sequential import UNDECIDED
from holdfast.analysis.statistics import unpaired_difference
from holdfast.cli import main
from holdfast.drift import load_suite
from holdfast.errors import AnotherRun, UsageError
from holdfast.logs import read_logs, score_logs
from holdfast.records import read_run, write_csv
from holdfast.study.checking import earlier_conversations

DATA = ROOT / "tests" / "data" / "logs"


@pytest.fixture
def short(tmp_path):
    path = tmp_path / "short.yaml"
    path.write_text(SHORT)
    return path


def score(tmp_path, short, name, dialogs):
    path = tmp_path / f"{name}.jsonl"
    path.write_text(lines_of(dialogs))
    suite = load_suite(str(short), probed=False)
    return score_logs(read_logs([path]), suite, tmp_path / f"run-{name}")


# Adherence, survival and verdicts


def test_adherence_by_turn_and_survival_match_what_was_planted(tmp_path, short):
    # of 40 dialogs 10 break from turn 3 on, 10 from turn 5 on, 20 never
    planted = [3] * 10 + [5] * 10 + [9] * 20
    run = score(tmp_path, short, "a", chats(40, planted.__getitem__))
    (rule,) = adherence(run, min_adherence=0.5)
    assert [item.start for item in rule.by_turn] == [1, 2, 3, 4, 5, 6]
    means = [item.mean for item in rule.by_turn]
    assert means == pytest.approx([1, 1, 0.75, 0.75, 0.5, 0.5])
    assert (rule.applied, rule.turns) == (240, 240)
    assert rule.adherence.mean == pytest.approx(0.75) and rule.change.mean == pytest.approx(-0.5)
    assert rule.bounds[0] <= 0.75 <= rule.bounds[1]
    assert rule.first_broken.turns == (3, 5)
    assert rule.first_broken.unbroken == pytest.approx((0.75, 0.5))
    assert (rule.first_broken.broken, rule.first_broken.median_turn) == (20, 5)
    assert rule.verdict == "pass" and len(rule.broken) == 10 * 4 + 10 * 2


def test_survival_counts_dialogs_that_end_early_as_long_as_they_last(tmp_path, short):
    """By hand: one of 4 ends after turn 1, and 2 of the other 3 break in turn 2: 1/3 is left."""
    rows = list(chats(4, [2, 2, 9, 9].__getitem__))
    rows[2]["messages"] = rows[2]["messages"][:3]  # ends after turn 1
    (rule,) = adherence(score(tmp_path, short, "a", rows))
    assert rule.first_broken.turns == (2,) and rule.first_broken.unbroken == pytest.approx((1 / 3,))
    (rule,) = adherence(score(tmp_path, short, "b", list(chats(3, [2, 2, 2].__getitem__))))
    curve = rule.first_broken
    assert (*curve.unbroken, *curve.low, *curve.high) == (0, 0, 1)


def test_verdicts_need_certainty(tmp_path, short):
    for name, count, broken_from, verdict in (
        ("a", 60, 9, "pass"),
        ("b", 60, 2, "fail"),
        ("c", 3, 9, "undecided"),
    ):
        run = score(tmp_path, short, name, chats(count, lambda n, turn=broken_from: turn))
        assert adherence(run, 0.8)[0].verdict == verdict
    assert adherence(run)[0].verdict is None


def test_against_earlier_logs_a_certain_fall_fails(tmp_path, short):
    before = score(tmp_path, short, "a", chats(40, lambda n: 9 if n % 2 else 6))
    unchanged = score(tmp_path, short, "b", chats(40, lambda n: 6 if n % 2 else 9))
    worse = score(tmp_path, short, "c", chats(40, lambda n: 3 if n % 2 else 6))
    (rule,) = adherence(unchanged, before=before)
    assert (rule.verdict, rule.against.certain) == ("pass", 0)
    (rule,) = adherence(worse, before=before)
    assert (rule.verdict, rule.against.certain) == ("fail", -1)
    (row,) = adherence(worse, 0.5, before=before)
    assert row.bounds[0] < rule.bounds[0], "the bar and the comparison share the error"
    fall = rule.adherence.mean - rule.against.before.mean
    assert rule.against.difference.mean == pytest.approx(fall)
    short.write_text(SHORT.replace("one_sentence}", "{name: at_most_words, count: 3}}"))
    (rule,) = adherence(score(tmp_path, short, "d", chats(40, lambda n: 9)), before=before)
    assert rule.verdict == "undecided" and "another measure" in rule.uncompared


def test_logs_scored_by_two_suites_have_a_folder_each(tmp_path, short, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (path := tmp_path / "a.jsonl").write_text(lines_of(chats(2, lambda n: 3)))
    shutil.copy(short, other_suite := tmp_path / "other.yaml")
    assert main(["logs", str(path), "--suite", str(short)]) in (0, 3)
    assert main(["logs", str(path), "--suite", str(other_suite)]) in (0, 3)
    assert {run.name for run in (tmp_path / "runs").iterdir()} == {
        "logs-other",
        f"logs-{short.stem}",
    }
    assert main(["logs", "nowhere", "--suite", str(short)]) == 2
    assert "nowhere" in refusal_in(capsys)


@pytest.mark.slow
def test_the_interval_covers_the_difference_of_separate_sets():
    """95% intervals of a true difference of 0 exclude 0 in about 1 of 20 cases."""
    rng = np.random.default_rng(1)
    wrong = 0
    for _ in range(200):
        item = unpaired_difference(rng.random(40), rng.random(40))
        wrong += not item.low <= 0 <= item.high
    assert wrong <= 22  # binomial(200, 0.05): mean 10; the bound is far from chance


# What the command prints


def test_the_command_prints_writes_and_exits(tmp_path, short, capsys):
    (path := tmp_path / "a.jsonl").write_text(
        lines_of(chats(40, lambda n: 3)) + "not json\n" + '{"foo": 1}\n'
    )
    words = ["logs", str(path), "--suite", str(short), "--out", str(tmp_path / "run")]
    junit = tmp_path / "logs.xml"
    assert main([*words, "--min-adherence", "0.9", "--junit", str(junit)]) == 1
    out, err = capsys.readouterr()
    assert "40 of 40 dialogs" in out and "by turn 3." in out
    assert "line 41" in err and "{'foo': 1}" in err
    results = json.loads((tmp_path / "run" / "summary.json").read_text())["results"]
    (rule,), problems = results["rules"], results["problems"]
    assert (rule["verdict"], rule["first_broken"]["median_turn"], len(problems)) == ("fail", 3, 2)
    root = ElementTree.parse(junit).getroot()
    assert (root.get("tests"), root.get("failures")) == ("1", "1")
    assert "turn 3" in root.find(".//failure").text
    page = (tmp_path / "run" / "report.html").read_text()
    assert "And more. And more." in page and "line 41" in page
    assert len(read_run(tmp_path / "run").records) == 40
    assert main(words) == 0  # the same run again, without a minimum
    assert main(["export", str(tmp_path / "run"), "--csv", str(tmp_path / "a.csv")]) == 0
    assert len((tmp_path / "a.csv").read_text().splitlines()) == 1 + 240


def test_rules_for_probes_that_name_no_turns_are_left_out_of_the_first_line(tmp_path, capsys):
    (suite := tmp_path / "luna.yaml").write_text(PROBED)
    (path := tmp_path / "a.jsonl").write_text(lines_of(cities(40)))
    words = ["logs", str(path), "--suite", str(suite), "--out", str(tmp_path / "run")]
    junit = tmp_path / "logs.xml"
    assert main([*words, "--min-adherence", "0.3", "--junit", str(junit)]) == 3
    out = capsys.readouterr().out
    page = (tmp_path / "run" / "report.html").read_text()
    first = out.splitlines()[0]
    assert re.search(r"\bBoth rules\b.*luna/city", first) and first in page
    (warning,) = (line for line in out.splitlines() if "luna/name and luna/job" in line)
    assert warning.replace("`when`", "when") in unescape(re.sub("</?code>", "", page))
    cases = {case.get("name"): case for case in ElementTree.parse(junit).iter("testcase")}
    for name in ("name", "job"):
        assert "for the answers to" in cases[name].find("error").get("message")
    assert cases["city"].find("error") is None and cases["short"].find("error") is None
    suite.write_text(PROBED.replace("probes: [Who", "when: {user: '.'}, probes: [Who"))
    assert main([*words[:-1], str(tmp_path / "all")]) == 0
    assert re.search(r"\b3 rules\b.*luna/name.* all 40 turns", capsys.readouterr().out)


def test_if_no_rule_names_its_turns_the_first_line_says_so(tmp_path, short, capsys):
    short.write_text(ONLY_PROBED)
    (path := tmp_path / "a.jsonl").write_text(lines_of(chats(2, lambda n: 2)))
    assert main(["logs", str(path), "--suite", str(short), "--out", str(tmp_path / "run")]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert "short" not in first and "%" not in first
    assert first in (tmp_path / "run" / "report.html").read_text()


def test_one_dialog_is_no_half_of_all_dialogs(tmp_path, short, capsys):
    (path := tmp_path / "a.jsonl").write_text(lines_of(list(chats(1, lambda n: 3))))
    assert main(["logs", str(path), "--suite", str(short), "--out", str(tmp_path / "run")]) == 0
    out = capsys.readouterr().out
    page = (tmp_path / "run" / "report.html").read_text()
    page = page.replace("\N{NO-BREAK SPACE}", " ")
    assert "in 4 of the 6 turns" in out and "first in turn 3" in out
    assert "by turn" not in out and "half by" not in out
    assert "in turn 3" in page and "1 dialogs" not in page and "half by" not in page
    (path := tmp_path / "b.jsonl").write_text(lines_of(list(chats(1, lambda n: 6))))
    assert main(["logs", str(path), "--suite", str(short), "--out", str(tmp_path / "b")]) == 0
    page = (tmp_path / "b" / "report.html").read_text()
    assert "Broken in 1 of 6 turns, in 1 of 1 dialog" in page


def test_dialogs_under_other_prompts_are_counted(tmp_path, capsys):
    two = tmp_path / "two.yaml"
    case = {"measure": "one_sentence"}
    cases = [{**case, "id": name, "system_prompt": f"You are {name}."} for name in ("ada", "bob")]
    two.write_text(yaml.safe_dump({"cases": cases}))
    prompts = ("You are ada.", "You are bob. Be kind.", "You are carl.")
    systems = [{"role": "system", "content": prompt} for prompt in prompts]
    dialogs = [{"messages": [system, *asked_and_answered("Hi", "Hello.")]} for system in systems]
    (path := tmp_path / "a.jsonl").write_text(lines_of(dialogs))
    words = ["logs", str(path), "--suite", str(two), "--out", str(tmp_path / "run")]
    assert main(words) == 0
    assert "1 of 3 dialogs" in capsys.readouterr().out
    assert read_run(tmp_path / "run").manifest.unmatched == 1
    assert [r["agent"]["id"] for r in as_json(read_run(tmp_path / "run"))] == ["ada", "bob"]
    path.write_text(lines_of(dialogs[2:]))
    assert main([*words[:-1], str(tmp_path / "other")]) == 2
    assert re.search(r"\b2 system prompts.*'two'", capsys.readouterr().err)


# Tables and folders


FORMULAS = {
    '=HYPERLINK("http://x","y")': "'",
    "@SUM(A1)": "'",
    "+1+cmd": "'",
    "- an item": "'",
    "\tx": "'",
    "\r=1": "'",
    "-5": "",
    "+3.5e2": "",
    "Yes = no": "",
    "'quoted'": "",
}


def test_no_text_of_a_table_is_a_formula_to_a_spreadsheet(tmp_path, short):
    dialogs = [{"messages": asked_and_answered("=1+1", reply)} for reply in FORMULAS]
    run = score(tmp_path, short, "a", dialogs)
    path = write_csv(run, tmp_path / "a.csv")
    with open(path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["reply"] for row in rows] == [f"{mark}{text}" for text, mark in FORMULAS.items()]
    assert {row["question"] for row in rows} == {"'=1+1"}
    assert all(float(row["score"]) in (0, 1) for row in rows)
    assert list(run.to_columns()["reply"]) == list(FORMULAS)


def test_a_case_id_with_a_slash_is_not_taken_for_a_rule(tmp_path, short):
    short.write_text(SHORT.replace("id: short", "id: bots/short"))
    (path := tmp_path / "a.jsonl").write_text(lines_of(chats(2, lambda n: 2)))
    assert main(["logs", str(path), "--suite", str(short), "--out", str(tmp_path / "run")]) == 0
    assert "And more." in (tmp_path / "run" / "report.html").read_text()


def test_without_out_changed_rules_or_logs_get_a_folder_of_their_own(
    tmp_path, short, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    (path := tmp_path / "a.jsonl").write_text(lines_of(chats(3, lambda n: 9)))
    command = ["logs", str(path), "--suite", str(short)]
    assert main(command) == main(command) == 0
    assert capsys.readouterr().out.count(f"Report: runs/logs-{short.stem}/report.html") == 2
    short.write_text(short.read_text().replace("id: short", "id: brief"))
    assert main(command) == 0
    assert f"Report: runs/logs-{short.stem}-2/report.html" in capsys.readouterr().out
    path.write_text(lines_of(chats(4, lambda n: 9)))
    assert main(command) == main(command) == 0
    output = capsys.readouterr()
    assert output.out.count(f"Report: runs/logs-{short.stem}-3/report.html") == 2
    assert "-2 holds the scores of other logs or rules; these are in" in output.err
    assert main([*command, "--out", f"runs/logs-{short.stem}"]) == 2


def test_other_logs_are_another_run(tmp_path, short):
    run = score(tmp_path, short, "a", chats(3, lambda n: 9))
    (path := tmp_path / "b.jsonl").write_text(lines_of(chats(4, lambda n: 9)))
    suite, logs = load_suite(str(short), probed=False), read_logs([path])
    with pytest.raises(AnotherRun, match="other logs"):
        score_logs(logs, suite, run.folder, command="holdfast logs b.jsonl")
    with pytest.raises(AnotherRun, match="holdfast logs"):
        earlier_conversations(run.folder, suite, "none")
    assert adherence(run, before=run)[0].verdict == UNDECIDED, "3 dialogs show no fall"


def test_the_file_of_junit_may_be_in_the_new_folder_of_the_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.yaml").write_text(SHORT)
    (tmp_path / "one.jsonl").write_text(lines_of(chats(1, lambda number: 3)))
    options = ["--junit", "run/logs.xml", "--export", "run/scores.csv", "--out", "run"]
    main(["logs", "one.jsonl", "--suite", "rules.yaml", "--min-adherence", "0.9", *options])
    assert {"logs.xml", "scores.csv", "report.html"} <= {
        path.name for path in Path("run").iterdir()
    }


# Refusals


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["logs"], "needs FILE, --suite"),
        (["logs", "nowhere.jsonl", "--suite", "SHORT"], "nowhere.jsonl"),
        (["logs", "DATA", "--suite", "SHORT", "--format", "opena"], "did you mean 'openai'"),
        (["logs", "DATA", "--suite", "SHORT", "--min-adherence", "90"], "not 90"),
        (["logs", "DATA", "--suite", "SHORT", "--error", "0"], "not 0"),
        (["logs", "EMPTY", "--suite", "SHORT"], "no file that ends in .jsonl"),
        (["logs", "BEGUN", "--suite", "SHORT"], "has no finished conversation yet"),
    ],
)
def test_bad_input_is_refused_with_a_reason(words, message, tmp_path, short, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "manifest.json").write_text("{}")
    folders = {"EMPTY": tmp_path / "empty", "BEGUN": tmp_path / "begun"}
    files = {"SHORT": short, "DATA": DATA / "openai.jsonl", **folders}
    assert main([str(files.get(word, word)) for word in words]) == 2
    assert message in capsys.readouterr().err


def test_a_suite_for_logs_is_refused_if_rules_are_probed(suite, short):
    with pytest.raises(UsageError, match="`holdfast logs`"):
        load_suite(str(short))
    short.write_text(SHORT.replace("one_sentence", "{name: tool_called, tool: x}, probe: Hi?"))
    with pytest.raises(UsageError, match="'tool_called'"):
        load_suite(str(short))


@pytest.mark.parametrize("name", ["AGENTS.md", ".cursorrules", "api.mdc"])
@pytest.mark.parametrize("command", [["logs", "one.jsonl"], ["remind", "--strict"]])
def test_a_file_for_the_agent_is_no_suite(command, name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path(name).write_text("- Use `pnpm`, not `npm`.")
    Path("one.jsonl").write_text(lines_of(chats(1, lambda number: 3)))
    event = b'{"transcript_path": "one.jsonl", "hook_event_name": "UserPromptSubmit"}'
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(event)))
    assert main([*command, "--suite", name]) != 0
    assert f"holdfast suite init {name} --out rules.yaml" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["rules", "suite.txt"])
def test_a_suite_may_be_named_like_a_file_for_the_agent(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rule = {"id": "short", "measure": {"name": "at_most_sentences", "count": 2}}
    case = {"id": "bot", "system_prompt": "Be short.", "rules": [rule]}
    Path(name).write_text(f"# rules\ncases: {json.dumps([case])}\n")
    Path("one.jsonl").write_text(lines_of(chats(1, lambda number: 3)))
    assert main(["logs", "one.jsonl", "--suite", name, "--out", "scores"]) == 0
