"""`holdfast logs`: every format gives the same dialog, and scores match hand-written labels."""

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
from fast_set import only_fast
from logged_dialogs import (
    ONLY_PROBED,
    PROBED,
    SHORT,
    asked_and_answered,
    chats,
    cities,
    lines_of,
    paths_in,
    replace_at,
)
from paths import ROOT
from refusals import refusal_in
from synthetic_run import as_json

from holdfast.analysis.adherence import adherence
from holdfast.analysis.sequential import UNDECIDED
from holdfast.analysis.statistics import unpaired_difference
from holdfast.cli import main
from holdfast.drift import load_suite
from holdfast.errors import AnotherRun, UsageError
from holdfast.logs import FORMATS, read_logs, score_logs
from holdfast.measures.agent_acts.actions import edits_of
from holdfast.records import read_run, write_csv
from holdfast.study.checking import earlier_conversations

DATA = ROOT / "tests" / "data" / "logs"
AGENT = yaml.safe_load((DATA / "agent_transcripts.yaml").read_text())
TYPES = "feat|fix|docs|style|refactor|perf|test|build|ci|chore|revert"
RULES = rf"""
cases:
  - id: shop
    system_prompt: Work on the shop.
    rules:
      - id: no-force-push
        measure: {{name: command_not_run, command: 'git push( \S+)* (--force|-f)(?!\S)'}}
      - id: uv-not-pip
        measure: {{name: command_not_run, command: '(?!python -m )pip\b'}}
      - id: migrations
        measure: {{name: file_not_touched, path: 'migrations/*'}}
      - id: test-before-commit
        measure: {{name: runs_before, first: 'make test(?!-)', then: 'git( -C \S+)? commit'}}
      - id: conventional
        measure: {{name: commit_message, pattern: '^({TYPES})(\(.+\))?!?: \S'}}
      - id: fenced-language
        when: {{reply: '```'}}
        measure: {{regex: '\A((?!```).)*(```\w[^\n]*\n((?!```).)*```((?!```).)*)*\Z', flags: s}}
      - id: price-lookup
        when: {{user: '\b(price|cost)s?\b'}}
        measure: {{name: tool_called, tool: lookup_price}}
      - id: no-emoji
        measure: {{regex: '\A[^\p{{Extended_Pictographic}}]*\Z'}}
"""
FORMATS_WITH_FIXTURES = sorted(set(FORMATS) - {"run"})
MARKDOWN = {"aider", "cursor"}
FILES = {
    name: f"{name.replace('-', '_')}.{'md' if name in MARKDOWN else 'jsonl'}"
    for name in FORMATS_WITH_FIXTURES
}
# these files do not have the system prompt, or do not have what the user said
WITHOUT_PROMPT = {"claude-code", "codex-exec", "gemini-cli", "claude-ai"}
WITHOUT_PROMPT |= {"aider", "copilot", "cursor", "google-adk", "sillytavern"}
WITHOUT_PROMPT |= {"gemini-cli-stream", "goose", "openai-agents"}
WITHOUT_USER = {"codex-exec"}
WITHOUT_TOOLS = {"cursor"}  # as it exports them


def test_a_codex_patch_counts_as_a_file_change():
    (dialog,) = read_logs([DATA / FILES["codex"]]).dialogs
    assert edits_of(dialog.turns[2].done.calls)
    assert not any("environment_context" in turn.user for turn in dialog.turns)


def test_every_format_has_a_fixture():
    fixtures = {path.name for path in DATA.iterdir()} - {"README.md", "agent_transcripts.yaml"}
    missing = {*FILES.values()} - fixtures
    assert not missing, f"write the dialog of tests/data/logs in the new format, as {missing}"
    assert not fixtures - {*FILES.values()}


def test_the_conversations_of_a_run_are_dialogs():
    folder = DATA.parent / "recorded" / "schema-3" / "drift"
    logs, records = read_logs([folder]), as_json(read_run(folder))
    assert logs.formats == {"run": len(records)} and not logs.problems
    texts = [turn["text"] for turn in records[0]["turns"] if turn["speaker"] == "agent"]
    assert [turn.done.text for turn in logs.dialogs[0].turns] == texts


@pytest.mark.parametrize("names_format", [True, False], ids=["named", "found out"])
@pytest.mark.parametrize("form", FILES)
def test_every_format_gives_the_same_dialog(form, names_format):
    logs = read_logs([DATA / FILES[form]], form if names_format else None)
    assert logs.formats == {form: 1} and not logs.problems
    (dialog,) = logs.dialogs  # Codex's continues with a patch
    system = "" if form in WITHOUT_PROMPT else "Answer in one sentence."
    assert dialog.system.startswith(system) and bool(dialog.system) == bool(system)
    first, second = dialog.turns[:2]
    questions = ["What is in the repository?", "Thanks! What does it cost to run?"]
    assert [first.user, second.user] == (["", ""] if form in WITHOUT_USER else questions)
    assert first.role == ("user" if form in WITHOUT_TOOLS else "tool")
    assert second.role == ("" if form in WITHOUT_USER else "user")
    assert first.done.text == "I will look.\n\nThere is one file, cart.py."
    calls = first.done.calls
    assert len(calls) == (form not in WITHOUT_TOOLS)
    assert all("ls src" in json.dumps(dict(call.arguments)) for call in calls)
    assert second.done.text == "Nothing." and second.done.earlier == calls
    assert 0 <= first.tokens < second.tokens


# The transcripts in four formats: of chat messages, of content blocks, and of typed events.


def _steps(turn):
    """An assistant's turn, as texts and as calls of tools."""
    for step in turn["does"]:
        ((kind, value),) = step.items()
        match kind:
            case "say":
                yield value
            case "run":
                yield "Bash", {"command": value}
            case "read":
                yield "Read", {"file_path": value}
            case "edit":
                yield "Edit", {"file_path": value, "old_string": "a", "new_string": "b"}
            case "patch":
                yield "apply_patch", {"input": value}
            case "call":
                yield value["name"], value["arguments"]


def as_openai(transcript):
    messages = []
    for turn in transcript["turns"]:
        messages.append({"role": "user", "content": turn["user"]})
        for step in _steps(turn):
            if isinstance(step, str):
                messages.append({"role": "assistant", "content": step})
                continue
            function = {"name": step[0], "arguments": json.dumps(step[1])}
            call = {"id": "1", "type": "function", "function": function}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": "1", "content": "ok"})
    return [{"messages": messages}]


def as_blocks(transcript):
    """Messages with content blocks, the form of Anthropic's API."""
    for turn in transcript["turns"]:
        yield {"role": "user", "content": turn["user"]}
        for step in _steps(turn):
            if isinstance(step, str):
                yield {"role": "assistant", "content": [{"type": "text", "text": step}]}
                continue
            use = {"type": "tool_use", "id": "t", "name": step[0], "input": step[1]}
            yield {"role": "assistant", "content": [use]}
            result = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}
            yield {"role": "user", "content": [result]}


def as_anthropic(transcript):
    return [{"system": "", "messages": list(as_blocks(transcript))}]


def as_claude_code(transcript):
    session = {"sessionId": f"s{transcript['id']}", "isSidechain": False}
    events = []
    for number, message in enumerate(as_blocks(transcript)):
        uuid = {"uuid": f"s{transcript['id']}-{number}"}
        parent = {"parentUuid": events[-1]["uuid"] if events else None}
        events.append({"type": message["role"], **session, **uuid, **parent, "message": message})
    return events


def as_codex(transcript):
    items = []
    for turn in transcript["turns"]:
        text = [{"type": "input_text", "text": turn["user"]}]
        items.append({"type": "message", "role": "user", "content": text})
        for step in _steps(turn):
            if isinstance(step, str):
                text = [{"type": "output_text", "text": step}]
                items.append({"type": "message", "role": "assistant", "content": text})
                continue
            name, arguments = step
            if name == "Bash":
                name, arguments = "shell", {"command": ["bash", "-lc", arguments["command"]]}
            call = {"type": "function_call", "name": name, "call_id": "c"}
            items.append({**call, "arguments": json.dumps(arguments)})
            items.append({"type": "function_call_output", "call_id": "c", "output": "ok"})
    return [{"type": "response_item", "payload": item} for item in items]


RENDERED = {"openai": as_openai, "anthropic": as_anthropic}
RENDERED |= {"claude-code": as_claude_code, "codex": as_codex}


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    return path


@pytest.mark.parametrize("form", RENDERED)
def test_hand_written_transcripts_score_as_their_labels_say(form, tmp_path, suite):
    """50 transcripts whose labels were written before any code read them."""
    assert len(AGENT) == 50
    folder = tmp_path / "logs"
    folder.mkdir()
    for transcript in AGENT:
        path = folder / f"{transcript['id']:02}.jsonl"
        path.write_text(lines_of(RENDERED[form](transcript)))
    logs = read_logs([folder])
    assert logs.formats == {form: 50} and not logs.problems
    run = score_logs(logs, load_suite(str(suite), probed=False), tmp_path / "run")
    wrong = []
    for transcript, record in zip(AGENT, as_json(run), strict=True):
        for number, turn in enumerate(transcript["turns"], start=1):
            probes = [probe for probe in record["probes"] if probe["round"] == number]
            passes = {probe["rule"] for probe in probes if probe["score"] == 1}
            failures = {probe["rule"] for probe in probes if probe["score"] < 1}
            if passes != set(turn.get("keeps") or ()) or failures != set(turn.get("breaks") or ()):
                wrong.append((transcript["id"], number, sorted(passes), sorted(failures)))
    assert not wrong


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


@pytest.mark.parametrize(
    "value",
    [
        {"messages": "no"},
        {"messages": [{"role": "alien", "content": "x"}]},
        {"messages": [{"role": "user", "content": 3}]},
        {"messages": [{"role": "assistant", "tool_calls": [{"function": {}}]}]},
        {"conversations": [{"from": "function_call", "value": "{"}]},
        {"input": 3, "output": []},
        {"type": "user", "sessionId": "s", "message": 3},
        {"type": "response_item", "payload": 3},
        {"type": "GENERATION", "traceId": "t", "input": {"a": 1}, "output": "x"},
        {"span_kind": "LLM", "context": 3, "attributes.llm": 1, "attributes.llm.x": 2},
        {"span_kind": "LLM", "context": 3, "attributes.llm.input_messages.²": {}},
    ],
)
def test_a_malformed_line_costs_only_itself(value, tmp_path):
    (path := tmp_path / "a.jsonl").write_text(lines_of([value, *chats(1, lambda n: 9)]))
    logs = read_logs([path])
    assert len(logs.dialogs) == 1
    assert any("line 1" in problem or "session" in problem for problem in logs.problems)


LONG = {"langsmith", "codex", "phoenix", "langfuse", "opencode"}  # files with many fields


@pytest.mark.parametrize(
    "form", only_fast(sorted(FILES.keys() - MARKDOWN), *(FILES.keys() - MARKDOWN - LONG))
)
def test_a_field_of_another_type_is_read_or_named(form, tmp_path):
    values = [json.loads(line) for line in (DATA / FILES[form]).read_text().splitlines()]
    path = tmp_path / "a.jsonl"
    for path_to_field in paths_in(values):
        for new in (3, {"a": 1}, [[]]):
            path.write_text(lines_of(replace_at(values, path_to_field, new)))
            try:
                logs = read_logs([path])
            except UsageError:  # in no format
                continue
            assert logs.dialogs or logs.problems, (path_to_field, new)


def test_a_suite_for_logs_is_refused_if_rules_are_probed(suite, short):
    with pytest.raises(UsageError, match="`holdfast logs`"):
        load_suite(str(short))
    short.write_text(SHORT.replace("one_sentence", "{name: tool_called, tool: x}, probe: Hi?"))
    with pytest.raises(UsageError, match="'tool_called'"):
        load_suite(str(short))


def test_the_file_of_junit_may_be_in_the_new_folder_of_the_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rules.yaml").write_text(SHORT)
    (tmp_path / "one.jsonl").write_text(lines_of(chats(1, lambda number: 3)))
    options = ["--junit", "run/logs.xml", "--export", "run/scores.csv", "--out", "run"]
    main(["logs", "one.jsonl", "--suite", "rules.yaml", "--min-adherence", "0.9", *options])
    assert {"logs.xml", "scores.csv", "report.html"} <= {
        path.name for path in Path("run").iterdir()
    }


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
