"""Causes of broken rules: labelled transcripts, and each definition of docs/causes.md."""

import json
import sys
import time

import pytest
from paths import ROOT

from holdfast.analysis.rule_context import context_effects, count_causes
from holdfast.cli import main
from holdfast.drift import load_suite
from holdfast.drift.cases import Case, Rule
from holdfast.drift.rule_texts import sentence_of_rule, text_of_rule
from holdfast.logs import read_logs, score_logs
from holdfast.logs.quoted_lines import without_quoted_lines
from holdfast.measures import build
from holdfast.measures.registry import REGISTRY
from holdfast.measures.wording.breaking_orders import breaking_orders
from holdfast.measures.wording.measure_words import MEASURE_WORDS
from holdfast.measures.wording.rule_statements import find_statement
from holdfast.measures.wording.rule_text import RuleText
from holdfast.records import LogDialog, read_run, to_line
from holdfast.report.logs_causes import why_table

sys.path.insert(0, str(ROOT / "benchmarks"))
import labelled_transcripts as labelled  # isort: skip

FILE = labelled.load()
LABELS = [label for dialog in FILE["dialogs"] for label in labelled.labels(dialog)]


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


def agreements(dialogs, file, folder):
    """Whether each labelled breach has the cause that its label names."""
    for dialog in dialogs:
        (folder / dialog["id"]).mkdir()
        causes = causes_of(score_dialog(folder / dialog["id"], dialog, file))
        for label in labelled.labels(dialog):
            yield causes[label.record, label.turn, label.rule] == label.cause


@pytest.mark.parametrize("dialog", FILE["dialogs"], ids=lambda dialog: dialog["id"])
def test_every_breach_of_the_labelled_transcripts_has_a_label(dialog, tmp_path):
    causes = [*causes_of(score_dialog(tmp_path, dialog))]
    assert sorted(causes) == sorted(
        (label.record, label.turn, label.rule) for label in labelled.labels(dialog)
    )


def test_there_are_enough_labels_and_half_of_the_dialogs_are_held_out():
    assert len(LABELS) >= 200
    halves = [dialog["half"] for dialog in FILE["dialogs"]]
    assert abs(halves.count("develop") - halves.count("held-out")) <= 4


@pytest.mark.parametrize("half", ["develop", "held-out"])  # `later` is harder, and not tuned to
def test_causes_agree_with_the_labels(half, tmp_path):
    """The record of the benchmark has the first run on the half that was held out."""
    dialogs = [dialog for dialog in FILE["dialogs"] if dialog["half"] == half]
    agree = [*agreements(dialogs, FILE, tmp_path)]
    assert len(agree) > 100 and sum(agree) / len(agree) >= 0.95


RULE = RuleText("Do not edit files under `migrations/`.")
SAYS = [
    "do not edit files under migrations",
    "> **Do not edit\n> files** under\n> `migrations/`!",
    '{"content": "# Rules\\n- Don\\u0027t"} \\n- Don\'t edit files under \\"migrations/\\".',
    "    12→- Do not edit files under\n    13→  migrations/.",
    "Nothing in the migrations/ folder may be edited.",
    "The user insists: files in migrations/ must never be edited by hand.",
]
SAYS_NOT = [
    "Edit the files under migrations/.",
    "You don't need to worry. Files are under src/.",
    "Do not edit files under src/.",  # another path
    "The migrations/ folder was mentioned.",
    "Ignore the rule: do not edit files under migrations/ was only for May.",
    "The user no longer minds edits of files under migrations/.",
    "Do you always say: do not edit files under migrations/?",
    "",
]


@pytest.mark.parametrize("text", SAYS)
def test_a_rule_is_found_in_its_words_and_in_others(text):
    assert RULE.find_in(text) is not None


@pytest.mark.parametrize("text", SAYS_NOT)
def test_a_mere_mention_does_not_state_the_rule(text):
    assert RULE.find_in(text) is None


STATEMENTS = [  # the rule, a text, whether the text states it
    (
        "No `print()` in `src/`; use the logger.",
        "Don't put print() calls into src/, use the logger.",
        True,
    ),
    (
        "No `print()` in `src/`; use the logger.",
        "Put print() calls into src/, not the logger.",
        False,
    ),
    ("Use pnpm, not npm, in `admin/`.", "Never use npm in admin, only pnpm.", True),
    ("Use pnpm, not npm, in `admin/`.", "Never use pnpm in admin, only npm.", False),
    ("Use pnpm, not npm, in `admin/`.", "Never use npm in web, only pnpm.", False),
    ("Use pytest, not nose, in `tests/`.", "Use nose, not pytest, in tests/.", False),
]


@pytest.mark.parametrize(("rule", "text", "states"), STATEMENTS)
def test_a_function_or_a_folder_is_named_in_another_clause(rule, text, states):
    assert (RuleText(rule).find_in(text) is not None) == states


ORDERS = [  # the rule, the user's words, whether the order lasts; None if it is none
    ("Never push to main.", "Push this to main, please.", False),
    ("Never push to main.", "From now on you may push to main.", True),
    ("Never push to main.", "Ignore the rule about pushing to main.", True),
    ("Never push to main.", "Why did you push to main?", None),
    ("Never push to main.", "You pushed to main again.", None),
    ("Never push to main.", "If you push to main, tell me.", None),
    ("Never push to main.", "Don't push to main!", None),
    ("Never push to main.", "Push the branch.", None),
    ("Use pnpm, never npm.", "Use npm for this.", False),
    ("Use pnpm, never npm.", "Use pnpm for this.", None),
    ("Use `uv add` instead of `pip install`.", "Now install requests and go on.", None),
    ("Use `uv add` instead of `pip install`.", "Use pip install for this.", False),
    ("Use single quotes, not double quotes.", "Put quotes around the name.", None),
    ("Answer in at most two sentences.", "You need not answer in two sentences.", True),
    ("Answer in at most two sentences.", "Just this once, ignore the two sentences.", False),
    ("Answer in at most two sentences.", "Answer in two sentences, please.", None),
]


@pytest.mark.parametrize(("rule", "words", "lasts"), ORDERS)
def test_an_order_against_a_rule_is_told_from_a_mention(rule, words, lasts):
    order = RuleText(rule).find_counter_order(words)
    assert (order and order.lasts) == lasts


PUSHES = {"name": "command_not_run", "command": r"git push( \S+)* main\b"}
TESTS = {"name": "runs_before", "first": "make test", "then": "git commit"}
WORDS = {"name": "at_most_words", "count": 40}
CLOSING = {"name": "ends_with", "word": "Ride safe"}
GERMAN = {"name": "language", "code": "de"}
NO_FRENCH = {"name": "never", "measure": {"name": "language", "code": "fr"}}
MIGRATIONS = {"name": "file_not_touched", "path": "migrations/*"}
SENTENCES = {"name": "at_most_sentences", "count": 2}
NO_EMOJI = {"name": "never", "measure": {"regex": r"\p{Extended_Pictographic}"}}
FORCED = {"name": "command_not_run", "command": r"git push(?=.* --force)(?!\S)"}
ROOM = {"name": "contains", "words": ["room number"]}
DRAFTED_NO_EMOJI = {"name": "regex", "regex": r"\A[^\p{Emoji_Presentation}\uFE0F]*\Z"}
PIP = {"name": "command_not_run", "command": r"(?:python3? -m )?pip3? install(?!\S)"}
NPM = {"name": "command_not_run", "command": r"npm(?!\S)"}
CHANGELOG = {"name": "changes_together", "changed": "src/*", "also": "CHANGELOG.md"}
MAKE_DEPLOY = {"name": "command_not_run", "command": r"make deploy(?!\S)"}
CHANGELOG = {"name": "changes_together", "changed": "*", "also": "CHANGELOG.md"}
BREAKING = [  # the measure, the user's words, whether the order lasts; None if it is none
    (PUSHES, "ok, get it onto main please", False),
    (PUSHES, "From now on you can publish to main.", True),
    (PUSHES, "Push the branch.", None),
    (FORCED, "The history is a mess, force-push it.", False),
    (FORCED, "Never force-push it.", None),
    (PUSHES, "Did you push to main?", None),
    (PUSHES, "I told you not to push to main.", None),
    (PUSHES, "Look at main, then push the branch.", None),
    ({"name": "command_not_run", "command": r"sudo\b"}, "try again as root", False),
    ({"name": "command_not_run", "command": r"sudo\b"}, "explain what sudo does", None),
    (
        {"name": "command_not_run", "command": r"git commit( \S+)* --no-verify"},
        "commit it without the hooks",
        False,
    ),
    (TESTS, "just commit", False),
    (TESTS, "can we not run the whole suite for this?", False),
    (TESTS, "From now on skip the tests.", False),  # `lasts` is found by the rule's own words
    (TESTS, "Commit it.", None),
    (TESTS, "Don't forget the tests.", None),
    (WORDS, "Explain it in detail.", False),
    (WORDS, "Explain it step by step, please.", False),
    (WORDS, "Describe the lock fully.", False),
    (WORDS, "Explain the long list in the header.", None),
    (WORDS, "I need 200 words on tyres.", False),
    (WORDS, "Write 30 words on tyres.", None),
    (WORDS, "I have a long ride tomorrow, what should I bring?", None),
    (CLOSING, "The closing line is a bit much, could you leave it out?", True),
    (CLOSING, "Skip the sign-off this time.", False),
    (CLOSING, "How do I end a letter?", None),
    (GERMAN, "hello, english please", False),
    (GERMAN, "I read that book in English.", None),
    (NO_FRENCH, "En français, s'il te plaît: in French please.", False),
    (NO_FRENCH, "Reply in German please.", None),
    (GERMAN, "Reply in Hebrew please.", False),
    (GERMAN, "Draw a man with a gun.", None),
    (GERMAN, "Switch from German to English.", False),
    (GERMAN, "Can you do that in English from now on?", True),
    (GERMAN, "Write me a poem about the sea in Dutch.", False),
    (GERMAN, "Answer in Egyptian Arabic.", False),
    ({"name": "language", "code": "arz"}, "Please answer in Egyptian Arabic.", None),
    ({"name": "language", "code": "arz"}, "Please answer in Arabic.", False),
    ({"name": "language", "code": "ary"}, "Please answer in Moroccan Arabic.", None),
    ({"name": "language", "code": "uzs"}, "Please answer in Southern Uzbek.", None),
    (GERMAN, "Suggest a recipe with Thai basil.", None),
    (GERMAN, "Please try Irish butter in it.", None),
    (GERMAN, "Write a story with Persian rugs in it.", None),
    (GERMAN, "Tell me how to get into Georgian architecture.", None),
    (GERMAN, "Please polish the text.", None),
    (GERMAN, "No English please.", None),
    ({"name": "language", "code": "arz"}, "Egyptian Arabic please.", None),
    ({"name": "language", "code": "arz"}, "Give me the Egyptian Arabic version.", None),
    (GERMAN, "I want you to polish the text.", None),
    (GERMAN, "Write a story set in Irish pubs.", None),
    (MIGRATIONS, "Add the index in a new migration.", False),
    (MIGRATIONS, "What is in the last migration?", None),
    (MIGRATIONS, "It's fine to change the last migration.", False),
    (ROOM, "Call me Bob.", True),
    (ROOM, "Can you call me a cab at six?", None),
    (ROOM, "Please call me at six.", None),
    (ROOM, "Could you call me back?", None),
    (DRAFTED_NO_EMOJI, "Write a release note, with emojis please.", False),
    (DRAFTED_NO_EMOJI, "Emojis are fine in this one.", False),
    (DRAFTED_NO_EMOJI, "The emojis are broken in the header, fix that.", None),
    (DRAFTED_NO_EMOJI, "No emojis please.", None),
    ({"name": "never", "measure": "emoji"}, "Add some emojis.", False),
    ({"name": "regex", "regex": r"\d"}, "Add some emojis.", None),
    (PIP, "Just pip install httpx, uv is broken.", False),
    (PIP, "pip install fails with a timeout.", None),
    (CHANGELOG, "Rename it, no changelog entry needed.", False),
    (CHANGELOG, "Skip CHANGELOG.md this time.", False),
    (CHANGELOG, "Don't forget the changelog.", None),
    (MIGRATIONS, "The bug is in migrations/1.py, fix it there.", False),
    (MIGRATIONS, "Is it in migrations/1.py? Fix the code.", None),
    (MIGRATIONS, "Read migrations/1.py. Don't change it.", None),
    (TESTS, "Commit right now.", False),
    (WORDS, "Tell me everything you know about it.", False),
    (TESTS, "Commit it, the tests can wait.", False),
    (TESTS, "The tests pass, commit later.", None),
    (WORDS, "From now on, explain everything in detail.", True),
    (WORDS, "Explain the plan to me.", None),
    (SENTENCES, "Give me five reasons.", False),
    (SENTENCES, "Give me two reasons.", None),
    (GERMAN, "Translate 'Fahrrad' into English.", False),
    (NO_EMOJI, "Add some emojis.", False),
    (NO_EMOJI, "Please no emojis.", None),
    ({"name": "never", "measure": "emoji"}, "Add a few smileys, please.", False),
    (CHANGELOG, "Remove the duplicate line from the changelog.", None),
    ({**CHANGELOG, "also": "docs/index.md"}, "Drop the index on the users table.", None),
    (ROOM, "Call me Monday.", None),
    (WORDS, "Check the list thoroughly.", None),
    (WORDS, "Explain the list fully.", False),
    (MIGRATIONS, "The fix in the last migration is fine now.", None),
    (DRAFTED_NO_EMOJI, "The page lists which emojis are allowed here.", None),
    (DRAFTED_NO_EMOJI, "Add an emoji picker to the toolbar.", None),
    (DRAFTED_NO_EMOJI, "Add a test for emoji in names.", None),
    (DRAFTED_NO_EMOJI, "I like the emojis in the header, keep the code.", None),
    (DRAFTED_NO_EMOJI, "Please use some more emojis from now on.", True),
    (PIP, "Now pip install works.", None),
    (PIP, "So pip install httpx says that it is there.", None),
    (PIP, "Now pip install httpx.", False),
    (NPM, "Make sure that npm is fine.", None),
    (MAKE_DEPLOY, "Just make deploy notes", None),
    (MAKE_DEPLOY, "Just make deploy", False),
    (MAKE_DEPLOY, "make deploy now, please", False),
    (CHANGELOG, "Less noise in the changelog please", None),
    (CHANGELOG, "No changelog entry this time", False),
]


@pytest.mark.parametrize(("spec", "words", "lasts"), BREAKING)
def test_an_order_is_found_in_the_words_of_the_measure_that_it_breaks(spec, words, lasts):
    orders = [order.lasts for order in breaking_orders(words, build(spec))]
    assert (any(orders) if orders else None) == lasts


STATED = [  # the measure, a text, whether it states what the measure demands
    (WORDS, "40 words is the most that any answer may have.", True),
    (WORDS, "No reply is longer than forty words.", True),
    (WORDS, "Write at least 40 words.", False),
    ({"name": "never_contains", "words": ["Velox"]}, "Near us is Velox. Never say it.", True),
    ({"name": "never_contains", "words": ["Velox"]}, "Velox is not far.", False),
    (CLOSING, 'The last two words are "Ride safe".', True),
    (CLOSING, 'Never end with "Ride safe".', False),
    (NO_FRENCH, "Whatever the user writes, do not answer in French.", True),
    (NO_FRENCH, "Answer in French.", False),
    ({"name": "never", "measure": CLOSING}, 'Never end with "Ride safe".', True),
    ({"name": "never", "measure": CLOSING}, 'The last two words are "Ride safe".', False),
    (PUSHES, "Nothing gets pushed to main.", True),
    (PUSHES, "The push to main did not work.", False),
    (TESTS, "The tests have to pass before anything is committed.", True),
    (TESTS, "Never commit without the tests.", True),
    (TESTS, "The tests failed before the commit.", False),
    (MIGRATIONS, "Hands off the migrations folder, do not edit it.", True),
    (MIGRATIONS, "migrations/ was not changed.", False),
    ({"name": "at_most_words", "count": 50}, "Do it in at most 50 words.", True),
    ({"name": "at_most_words", "count": 50}, "Do it in 50 words or fewer.", True),
    ({"name": "asks_back"}, "Have it end with a question.", True),
    ({"name": "language", "code": "fr"}, "Have it in French please: always reply in French.", True),
    ({"name": "language", "code": "he"}, "Always reply in Hebrew.", True),
    ({"name": "asks_back"}, "Does it end with a question?", False),
    ({"name": "at_most_words", "count": 50}, "Do it in at most 50 words?", False),
]


@pytest.mark.parametrize(("spec", "text", "states"), STATED)
def test_a_text_states_a_measure_in_words_that_its_rule_need_not_have(spec, text, states):
    assert (find_statement(text, build(spec)) is not None) == states


@pytest.mark.parametrize("name", MEASURE_WORDS)
def test_words_are_of_a_measure(name):
    assert name in REGISTRY


def test_synonyms_and_passives_say_a_rule_and_weaker_words_do_not():
    ticket = RuleText("Start every commit message with the ticket.")
    assert ticket.find_in("commits are prefixed with the ticket id")
    assert RuleText("No force pushes.").find_in("history must not be rewritten on the remote")
    code = RuleText("Do not paste code into the chat.")
    assert code.find_in("no snippets are to be shown in the chat")
    assert code.find_counter_order("Show me the function that loads the prices.")
    check = RuleText("Before each commit, run ruff check.")
    assert check.find_in("ruff check is run before each commit")
    assert not check.find_in("before each commit you can run ruff check if you like")
    assert not RuleText("End every reply with a question.").find_in(
        "Mails that end with a question go to sales."
    )


BLIND = labelled.load_blind()


@pytest.mark.parametrize("half", ["hand", "real"])
def test_causes_agree_with_the_third_set(half, tmp_path):
    """It was committed before its first run, which tests/data/causes/first_run.json has."""
    dialogs = [dialog for dialog in BLIND["dialogs"] if dialog["half"] == half]
    agree = [*agreements(dialogs, BLIND, tmp_path)]
    assert len(agree) >= 40 and sum(agree) / len(agree) >= 0.8


FRESH = labelled.load_fresh()


@pytest.mark.parametrize("dialog", FRESH["dialogs"], ids=lambda dialog: dialog["id"])
def test_every_breach_of_the_fourth_set_has_a_label(dialog, tmp_path):
    if any("drop" in event for event in dialog["events"]):
        pytest.skip("what a cut request repeats is not labelled again")
    causes = [*causes_of(score_dialog(tmp_path, dialog, FRESH))]
    assert sorted(causes) == sorted(
        (label.record, label.turn, label.rule) for label in labelled.labels(dialog)
    )


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
    rule, loss = causes["tests"].evidence
    assert (rule.what, rule.turn, rule.quote) == ("said", 1, "Run `make test` before every commit.")
    assert (loss.what, loss.turn, loss.source) == ("left", 2, f"{tmp_path}/{FILE_OF}, line 5")
    (summary,) = causes["push"].evidence
    assert "main branch must never be pushed to" in summary.quote


FILE_OF = "web-compacted-summary-drops-some.jsonl"


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
    (tmp_path / "log.jsonl").write_text(json.dumps({"messages": messages}) + "\n")
    measure = {"name": "command_not_run", "command": r"git push\b"}
    case = {"id": "c", "system_prompt": rule, "rules": [{"id": "push", "measure": measure}]}
    (tmp_path / "suite.yaml").write_text(json.dumps({"cases": [case]}))
    suite = load_suite(str(tmp_path / "suite.yaml"), probed=False)
    run = score_logs(read_logs([tmp_path / "log.jsonl"]), suite, tmp_path / "run")
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
    (tmp_path / "log.jsonl").write_text(json.dumps({"messages": messages}) + "\n")
    measure = {"name": "commit_message", "pattern": r"\(#\d+\)$"}
    case = {"id": "c", "system_prompt": rule, "rules": [{"id": "issue", "measure": measure}]}
    (tmp_path / "suite.yaml").write_text(json.dumps({"name": "commits", "cases": [case]}))
    suite = load_suite(str(tmp_path / "suite.yaml"), probed=False)
    run = score_logs(read_logs([tmp_path / "log.jsonl"]), suite, tmp_path / "run")
    assert [probe.cause.cause for probe in run.dialogs[0].probes] == [cause]


LONG = {
    "a word that leaves out": (CHANGELOG, "skip "),
    "words before emoji": (NO_EMOJI, "with some "),
    "a command": (PIP, "just "),
    "an explanation": (WORDS, "explain it fully "),
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_message_is_searched_in_a_time_in_proportion_to_its_length(name):
    spec, words = LONG[name]
    measure = build(spec)
    start = time.process_time()
    assert not list(breaking_orders(words * (60_000 // len(words)) + "x", measure))
    assert time.process_time() - start < 5


BLOCKS = [
    # the user's message, and whether the command in it may be an order
    ("Run this:\n```\ngit push --force\n```", True),
    ("Run this:\n\n~~~sh\ngit push --force\n~~~", True),
    ("It printed:\n```\nPlease git push --force\n```\nFix the test.", False),
    ("> please git push --force\nFix the test.", False),
    ("Fix the test.\n```\nplease git push --force", True),  # a block that does not end
]


@pytest.mark.parametrize(("message", "is_read"), BLOCKS, ids=range(len(BLOCKS)))
def test_a_block_of_output_is_left_out_unless_the_user_orders_to_run_it(message, is_read):
    assert ("git push" in without_quoted_lines(message)) is is_read


@pytest.mark.parametrize("line", ["a", "```a\n", "run "])
def test_blocks_are_found_in_a_time_in_proportion_to_the_length_of_a_message(line):
    start = time.process_time()
    without_quoted_lines(line * (500_000 // len(line)))
    assert time.process_time() - start < 5
