"""Causes of broken rules: in the labelled transcripts, in records, in the page and the summary."""

import json
import sys

import pytest
from paths import ROOT

from holdfast.analysis.rule_context import context_effects, count_causes
from holdfast.cli import main
from holdfast.drift import load_suite
from holdfast.drift.cases import Case, Rule
from holdfast.drift.rule_texts import sentence_of_rule, text_of_rule
from holdfast.logs import read_logs, score_logs
from holdfast.records import LogDialog, read_run, to_line
from holdfast.report.logs_causes import why_table

sys.path.insert(0, str(ROOT / "benchmarks"))
import labelled_transcripts as labelled  # isort: skip

FILE = labelled.load()  # the first two sets
BLIND = labelled.load_blind()  # the third set
FRESH = labelled.load_fresh()  # the fourth set


def score_dialog(tmp_path, dialog, file=FILE):
    """The run of a labelled dialog, under its suite."""
    suite = dict(file["suites"][dialog["suite"]])
    suite["rules"] = [
        {name: value for name, value in rule.items() if name != "unless"} for rule in suite["rules"]
    ]
    path = tmp_path / "suite.yaml"
    path.write_text(labelled.suite_file(suite, dialog["suite"]))
    logs = read_logs([labelled.write(dialog, tmp_path)])
    assert not logs.problems
    return score_logs(logs, load_suite(str(path), probed=False), tmp_path / "run")


def causes_of(run):
    """The cause of each breach, by its record, turn and rule."""
    return {
        (number, probe.round, probe.rule): probe.cause.cause
        for number, record in enumerate(run.dialogs)
        for probe in record.probes
        if probe.cause is not None
    }


def labelled_breaches(dialog):
    """The record, turn and rule of each labelled breach, in order."""
    return sorted((label.record, label.turn, label.rule) for label in labelled.labels(dialog))


def agreements(dialogs, file, folder):
    """Whether each labelled breach has the cause that its label names."""
    for dialog in dialogs:
        (folder / dialog["id"]).mkdir()
        causes = causes_of(score_dialog(folder / dialog["id"], dialog, file))
        for label in labelled.labels(dialog):
            yield causes[label.record, label.turn, label.rule] == label.cause


@pytest.mark.parametrize("dialog", FILE["dialogs"], ids=lambda dialog: dialog["id"])
def test_every_breach_of_the_labelled_transcripts_has_a_label(dialog, tmp_path):
    assert sorted(causes_of(score_dialog(tmp_path, dialog))) == labelled_breaches(dialog)


def test_there_are_enough_labels_and_half_of_the_dialogs_are_held_out():
    assert sum(len([*labelled.labels(dialog)]) for dialog in FILE["dialogs"]) >= 200
    halves = [dialog["half"] for dialog in FILE["dialogs"]]
    assert abs(halves.count("develop") - halves.count("held-out")) <= 4


@pytest.mark.parametrize("half", ["develop", "held-out"])  # `later` is harder, and not tuned to
def test_causes_agree_with_the_labels(half, tmp_path):
    """The record of the benchmark has the first run on the half that was held out."""
    dialogs = [dialog for dialog in FILE["dialogs"] if dialog["half"] == half]
    agree = [*agreements(dialogs, FILE, tmp_path)]
    assert len(agree) > 100 and sum(agree) / len(agree) >= 0.95


@pytest.mark.parametrize("half", ["hand", "real"])
def test_causes_agree_with_the_third_set(half, tmp_path):
    """It was committed before its first run, which tests/data/causes/first_run.json has."""
    dialogs = [dialog for dialog in BLIND["dialogs"] if dialog["half"] == half]
    agree = [*agreements(dialogs, BLIND, tmp_path)]
    assert len(agree) >= 40 and sum(agree) / len(agree) >= 0.8


@pytest.mark.parametrize("dialog", FRESH["dialogs"], ids=lambda dialog: dialog["id"])
def test_every_breach_of_the_fourth_set_has_a_label(dialog, tmp_path):
    if any("drop" in event for event in dialog["events"]):
        pytest.skip("the repeated part of a cut request is not labelled again")
    assert sorted(causes_of(score_dialog(tmp_path, dialog, FRESH))) == labelled_breaches(dialog)


def test_causes_agree_with_the_fourth_set(tmp_path):
    agree = [*agreements(FRESH["dialogs"], FRESH, tmp_path)]
    assert len(agree) >= 40 and sum(agree) / len(agree) >= 0.8


def dialog_named(name):
    return next(dialog for dialog in FILE["dialogs"] if dialog["id"] == name)


def causes_in(run, turn):
    probes = [probe for record in run.dialogs for probe in record.probes if probe.round == turn]
    return {probe.rule: probe.cause for probe in probes if probe.cause}


def test_a_cause_has_its_evidence(tmp_path):
    run = score_dialog(tmp_path, dialog_named("web-compacted-summary-drops-some"))
    causes = causes_in(run, 2)
    log = f"{tmp_path}/web-compacted-summary-drops-some.jsonl, line 5"
    rule, loss = causes["tests"].evidence
    assert (rule.what, rule.turn, rule.quote) == ("said", 1, "Run `make test` before every commit.")
    assert (loss.what, loss.turn, loss.source) == ("left", 2, log)
    (summary,) = causes["push"].evidence
    assert "main branch must never be pushed to" in summary.quote


def test_an_order_is_evidence_beside_the_rule(tmp_path):
    causes = causes_in(score_dialog(tmp_path, dialog_named("shop-user-overrides-some")), 1)
    statement, order = causes["metric"].evidence
    assert (statement.what, order.what) == ("said", "ordered")
    assert "forget about centimetres" in order.quote


def test_what_a_compaction_kept_is_recorded_rule_by_rule(tmp_path):
    run = score_dialog(tmp_path, dialog_named("data-codex-compacted"))
    (compaction,) = run.dialogs[0].compactions
    rules = {item.rule: (item.in_summary, item.in_context) for item in compaction.rules}
    assert rules == {
        "uv": (True, True),
        "force": (False, True),  # in the AGENTS.md, which stays
        "ruff": (False, True),
        "dotenv": (False, False),
        "code": (False, False),
    }
    assert compaction.turn == 2
    said = "summaries kept 1 of 5 rules that were in the context (3 are still in it)"
    assert said in " ".join(why_table(run).split())


def test_a_score_says_where_its_rule_was(tmp_path):
    run = score_dialog(tmp_path, dialog_named("web-compacted-summary-drops-some"))
    contexts = {probe.rule: probe.context for probe in run.dialogs[0].probes if probe.round == 2}
    assert contexts["push"].in_context and contexts["push"].tokens < 40
    assert not contexts["tests"].in_context and contexts["tests"].tokens is None
    assert (contexts["push"].calls, contexts["push"].compactions) == (1, 1)


def test_a_rule_without_a_text_is_the_sentence_that_its_id_names():
    rules = tuple(Rule(id, (), "one_sentence") for id in ("no-emoji", "prices", "tone"))
    case = Case(
        "shop", "mine", "You sell bikes. Do not use emoji.\nLook up every price.", rules=rules
    )
    assert [sentence_of_rule(case, rule) for rule in rules] == [
        "Do not use emoji.",
        "Look up every price.",
        "",
    ]
    assert text_of_rule(case, rules[2]) == case.system_prompt


@pytest.fixture
def web(tmp_path):
    """The logs of the suite `web`, and the suite."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for dialog in FILE["dialogs"]:
        if dialog["suite"] == "web":
            labelled.write(dialog, folder)
    suite = tmp_path / "web.yaml"
    suite.write_text(labelled.suite_file(FILE["suites"]["web"], "web"))
    return folder, suite


def test_the_command_says_why_and_the_summary_counts(web, tmp_path, capsys):
    folder, suite = web
    out = tmp_path / "run"
    dialogs = [dialog for dialog in FILE["dialogs"] if dialog["suite"] == "web"]
    count = sum(len([*labelled.labels(dialog)]) for dialog in dialogs)
    events = [event for dialog in dialogs for event in dialog["events"]]
    assert main(["logs", str(folder), "--suite", str(suite), "--out", str(out)]) == 0
    output = capsys.readouterr().out
    assert f"Why: {count} breaches: never sent 2, removed " in output
    results = json.loads((out / "summary.json").read_text())["results"]
    assert sum(results["context"]["why"].values()) == count
    rules = {rule["rule"]: rule["why"] for rule in results["rules"]}
    assert all(sum(why.values()) for why in rules.values())
    around = results["context"]["compactions"]
    assert around["compactions"] == sum("compact" in event for event in events)
    change = around["after"]["mean"] - around["before"]["mean"]
    assert around["change"]["mean"] == pytest.approx(change, abs=1e-5)
    assert [entry["from"] for entry in results["context"]["by_compactions"]] == [0, 1, 2]
    page = (out / "report.html").read_text()
    assert "Why rules were broken" in page and "Left the context in" in page
    assert "Ordered otherwise in" in page


def test_a_folder_of_an_earlier_version_has_no_causes(web, tmp_path):
    folder, suite = web
    run = score_logs(read_logs(folder), load_suite(str(suite), probed=False), tmp_path / "run")
    lines = (tmp_path / "run" / "records.jsonl").read_text().splitlines()
    old = []
    for line in lines:
        record = json.loads(line)
        record.pop("crc32")
        record.pop("compactions", None)
        for probe in record["probes"]:
            probe.pop("context", None)
            probe.pop("cause", None)
        old.append(to_line(LogDialog.model_validate(record).to_json()))
    (tmp_path / "run" / "records.jsonl").write_bytes(b"".join(old))
    reread = read_run(run.folder)
    assert len(reread.dialogs) == len(run.dialogs)
    assert count_causes(reread) == {} and why_table(reread) == ""
    assert context_effects(reread).by_calls == ()


def test_codex_repeats_what_the_user_said_after_a_compaction_that_logs_only_a_summary(tmp_path):
    dialog = dialog_named("data-codex-compacted")
    lines = labelled.as_codex(dialog)
    for line in lines:
        if line["type"] == "compacted":
            del line["payload"]["replacement_history"]
    suite = tmp_path / "suite.yaml"
    suite.write_text(labelled.suite_file(FILE["suites"]["data"], "data"))
    path = tmp_path / "rollout.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = score_logs(read_logs(path), load_suite(str(suite), probed=False), tmp_path / "run")
    causes = {rule: cause.cause for rule, cause in causes_in(run, 2).items()}
    assert set(causes.values()) == {"present"}


def score_messages(folder, rule, measure, messages):
    """The run of one dialog under a prompt with one rule."""
    log, suite = folder / "log.jsonl", folder / "suite.yaml"
    log.write_text(json.dumps({"messages": messages}) + "\n")
    case = {"id": "c", "system_prompt": rule, "rules": [{"id": "rule", "measure": measure}]}
    suite.write_text(json.dumps({"cases": [case]}))
    return score_logs(read_logs([log]), load_suite(str(suite), probed=False), folder / "run")


@pytest.mark.parametrize(
    ("offer", "answer", "cause"),
    [
        ("It works. Shall I push it?", "Yes, go ahead.", "outweighed"),
        ("It works.\n\nDo you want me to push it now?", "ok", "outweighed"),
        ("It works. Shall I push it?", "No.", "present"),
        ("It works. Shall I push it?", "Yes, but don't push yet.", "present"),
        ("It works. Shall I commit it?", "Yes.", "present"),
        ("Shall I push it?\n\nIt works now.", "Yes, it does.", "present"),
        ("It works.", "> please push it\n\nWhat does he mean?", "present"),
    ],
)
def test_a_yes_to_an_offer_is_an_order(offer, answer, cause, tmp_path):
    rule = "Never push."
    call = {"function": {"name": "Bash", "arguments": {"command": "git push"}}}
    messages = [
        {"role": "system", "content": rule},
        {"role": "user", "content": "Fix it."},
        {"role": "assistant", "content": offer},
        {"role": "user", "content": answer},
        {"role": "assistant", "content": "Done.", "tool_calls": [call]},
    ]
    measure = {"name": "command_not_run", "command": r"git push\b"}
    run = score_messages(tmp_path, rule, measure, messages)
    assert [*causes_of(run).values()] == [cause]


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ('"fix: don\'t crash on empty input (#12)"', "present"),
        ("'fix: don't crash on `None` (#12)'", "present"),
        ("“fix: the user’s name (#12)”", "present"),
        ('"fix: don\'t crash"', "outweighed"),
        ("'wip'", "outweighed"),
        ("`wip`", "outweighed"),
    ],
)
def test_an_ordered_commit_message_is_read_up_to_its_own_quotation_mark(message, cause, tmp_path):
    rule = "Commit messages end with the issue, such as (#12)."
    arguments = json.dumps({"command": "git commit -m 'no issue'"})
    call = {"id": "1", "type": "function", "function": {"name": "Bash", "arguments": arguments}}
    messages = [
        {"role": "system", "content": rule},
        {"role": "user", "content": f"Commit it with the message {message}."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "ok"},
        {"role": "assistant", "content": "Done."},
    ]
    measure = {"name": "commit_message", "pattern": r"\(#\d+\)$"}
    run = score_messages(tmp_path, rule, measure, messages)
    assert [probe.cause.cause for probe in run.dialogs[0].probes] == [cause]
