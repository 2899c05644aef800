"""Replies that are no evidence: empty, refused, cut where the end counts, or with reasoning."""

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from chat_server import Server, completion, refusal
from fast_set import only_fast
from synthetic_run import as_json, conversation_of

from holdfast import drift, report
from holdfast.analysis.check_verdicts import check_prompts
from holdfast.analysis.drift_results import results_of
from holdfast.analysis.sequential import PASS, UNDECIDED
from holdfast.chat.messages import Message
from holdfast.cli import main
from holdfast.cli.shared.exit_codes import COULD_NOT, FAILED, PASSED, UNAVAILABLE
from holdfast.errors import RecordsError
from holdfast.models.connecting import connect
from holdfast.models.requests import Reply, Request
from holdfast.records import read_run
from holdfast.records.check_records import Terms
from holdfast.report.next_step import next_step
from holdfast.report.shortfalls import reply_shortfalls
from holdfast.report.terminal import table
from holdfast.study.checking import BATCHES_IN_OUTAGE, FIRST_BATCH

SUITE_FILE = """name: one
starters: [Bonjour !]
cases:
  - id: brief
    category: mine
    system_prompt: Answer in at most two sentences.
    probes: [Ça va ?]
    measure: {name: at_most_sentences, count: 2}
"""


@pytest.fixture
def serve():
    servers = []

    def start(answer):
        def respond(body, number):
            if body is None:
                return 200, {}, json.dumps({"object": "list", "data": [{"id": "tiny"}]})
            return answer(body, number)

        server = Server(respond).__enter__()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.__exit__()


@pytest.fixture
def suite(tmp_path):
    path = tmp_path / "one.yaml"
    path.write_text(SUITE_FILE)
    return path


def run_drift(server, suite, out, conversations=2):
    sizes = ["--rounds", "2", "--conversations", str(conversations), "--user-prompt", "empty"]
    words = ["drift", "--model", server.url, "--suite", str(suite), "--out", str(out)]
    return main([*words, *sizes])


def run_check(server, suite, tmp_path, *options, budget=30):
    sizes = ["--rounds", "2", "--budget", str(budget), "--user-turns", "none"]
    words = ["check", str(suite), "--model", server.url, *sizes]
    outputs = ["--out", str(tmp_path / "run"), "--junit", str(tmp_path / "junit.xml")]
    return main([*words, "--user-prompt", "empty", *outputs, *options])


def errors_in(path):
    root = ElementTree.parse(path).getroot()
    assert root.get("errors") == "1" and root.get("failures") == "0"
    (error,) = root.iter("error")
    return error.get("message")


# Reasoning

THOUGHTS = "I look. I think. I look again. Maybe in French."

REASONING = {
    "in the text": {"text": f"<think>\n{THOUGHTS}\n</think>\n\nOui."},
    "its end in the text": {"text": f"{THOUGHTS}\n</think>\n\nOui."},
    "reasoning_content": {"text": "Oui.", "reasoning_content": THOUGHTS},
    "reasoning": {"text": "Oui.", "reasoning": THOUGHTS},
    "parts": {
        "text": [
            {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHTS}]},
            {"type": "text", "text": "Oui."},
        ]
    },
}


@pytest.mark.parametrize("message", REASONING.values(), ids=REASONING)
def test_reasoning_is_recorded_and_neither_scored_nor_sent_back(serve, suite, tmp_path, message):
    server = serve(lambda body, number: completion(**message))
    assert run_drift(server, suite, tmp_path / "run") == 0
    for record in as_json(read_run(tmp_path / "run")):
        assert [probe["score"] for probe in record["probes"]] == [1.0, 1.0]
        replies = [*record["turns"][1:], *record["probes"]]
        assert {reply.get("text", reply.get("reply")) for reply in replies} == {"Oui."}
        assert {reply["reasoning"] for reply in replies} == {THOUGHTS}
    assert THOUGHTS not in json.dumps(server.bodies)


def test_the_output_says_once_that_replies_follow_reasoning(serve, suite, tmp_path, capsys):
    server = serve(lambda body, number: completion(f"<think>{THOUGHTS}</think>Oui."))
    run_drift(server, suite, tmp_path / "run")
    output = capsys.readouterr().out
    assert output.count("Replies after reasoning: 10 of 10;") == 1
    page = (tmp_path / "run" / "report.html").read_text()
    assert "10 of 10;" in page


CHAT: list[Message] = [{"role": "user", "content": "Ça va ?"}]


def test_a_streamed_reply_has_its_reasoning_apart(serve):
    pieces = []
    server = serve(lambda body, number: completion(f"<think>{THOUGHTS}</think>Oui."))
    model = connect(server.url)
    reply = model.stream(Request(CHAT), pieces.append)
    assert (reply.text, reply.reasoning) == ("Oui.", THOUGHTS)
    assert "".join(pieces) == f"<think>{THOUGHTS}</think>Oui."


def test_reasoning_that_a_local_model_wrote_is_moved_out_of_its_text():
    reply = Reply("<think>Hm.</think>Oui.", (1, 2, 3), "stop")
    assert reply.without_reasoning() == replace(reply, text="Oui.", reasoning="Hm.")
    plain = Reply("Oui.", (1,), "stop")
    assert plain.without_reasoning() is plain


CUT_WHILE_THINKING = {
    "null": completion(None, "length", reasoning_content=THOUGHTS),
    "an open block": completion(f"<think>{THOUGHTS}", "length"),
}


@pytest.mark.parametrize("answer", CUT_WHILE_THINKING.values(), ids=CUT_WHILE_THINKING)
def test_a_reply_cut_while_thinking_is_reported_as_cut(serve, suite, tmp_path, capsys, answer):
    server = serve(lambda body, number: answer)
    assert run_drift(server, suite, tmp_path / "run") == 1
    output = capsys.readouterr().out
    assert "4 of 4 replies" in output
    assert "10 of 10 (10 " in output
    assert "Next: raise --max-new-tokens" in output


# Replies without text

EMPTY = {
    "null": (completion(None), "empty"),
    "no characters": (completion(""), "empty"),
    "spaces": (completion(" \n "), "empty"),
    "an empty block of reasoning": (completion("<think>\n</think>\n"), "empty"),
    "a refusal": (completion(None, refusal="I can't help with that."), "refusal"),
    "a refusal and no characters": (completion("", refusal="I can't."), "refusal"),
    "a tool call": (completion(None, "tool_calls", tool_calls=[{"id": "1"}]), "tool_calls"),
}


@pytest.mark.parametrize(("answer", "why"), EMPTY.values(), ids=EMPTY)
def test_drift_prints_no_verdict_on_replies_without_text(
    serve, suite, tmp_path, capsys, answer, why
):
    server = serve(lambda body, number: answer)
    assert run_drift(server, suite, tmp_path / "run") == 1
    run = read_run(tmp_path / "run")
    assert all(record["probes"] == [] for record in as_json(run))
    assert {probe["why"] for record in as_json(run) for probe in record["unscored"]} == {why}
    output = capsys.readouterr().out
    assert "4 of 4 replies" in output
    assert "stability" not in output and "scores" not in output
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["results"][0]["unscored"] == {why: 4}


@pytest.mark.parametrize("empty", only_fast(EMPTY, "no characters", "a tool call"))
def test_check_does_not_blame_a_bot_for_replies_without_text(serve, suite, tmp_path, capsys, empty):
    answer, why = EMPTY[empty]
    (tmp_path / "junit.xml").write_text("earlier")
    server = serve(lambda body, number: answer)
    # empty replies may be those of a server that fails; calls of tools are the model's own
    code = COULD_NOT if "tool" in why else UNAVAILABLE
    assert run_check(server, suite, tmp_path) == code
    captured = capsys.readouterr()
    assert "FAIL" not in captured.out
    # an outage may end, so more conversations are run than of a model's own calls
    batches = 1 if "tool" in why else BATCHES_IN_OUTAGE
    assert f"none of {2 * FIRST_BATCH * batches} replies" in captured.err
    assert "Nothing could be checked" in errors_in(tmp_path / "junit.xml")
    assert len(read_run(tmp_path / "run").records) == FIRST_BATCH * batches  # not the whole budget


def test_check_judges_the_replies_that_have_text(serve, suite, tmp_path):
    long_reply = "One. Two. Three. Four."

    def answer(body, number):
        return completion("") if number % 3 == 0 else completion(long_reply)

    assert run_check(serve(answer), suite, tmp_path) == FAILED
    (check,) = json.loads((tmp_path / "run" / "summary.json").read_text())["check"]["prompts"]
    assert check["unanswered"] > 0
    text = (tmp_path / "junit.xml").read_text()
    assert "not judged: " in text and "were empty" in text


@pytest.mark.slow
def test_check_passes_with_some_empty_replies(serve, suite, tmp_path):
    def answer(body, number):
        return completion("") if number % 5 == 0 else completion("Oui.")

    options = ["--min-stability", "0.7"]
    assert run_check(serve(answer), suite, tmp_path, *options, budget=100) == PASSED


def test_a_rule_that_was_never_judged_does_not_pass_with_the_others():
    names = ("short", "signed")

    def record(number):
        return conversation_of(
            conversation=number,
            probes=[{"round": 1, "rule": names[0], "score": 1.0}],
            unscored=[{"round": 1, "rule": names[1], "why": "cut"}],
        )

    (bot,) = check_prompts([record(n) for n in range(60)], ["bot"], 1, Terms(0.8, budget=60))
    assert bot.verdict == UNDECIDED
    assert [rule.verdict for rule in bot.rules] == [PASS, UNDECIDED]


# Cut replies


def test_cut_replies_are_counted_and_left_out_of_the_means(serve, tmp_path, capsys):
    suite = tmp_path / "bye.yaml"
    suite.write_text(
        SUITE_FILE.replace("{name: at_most_sentences, count: 2}", "{name: ends_with, word: Bye}")
    )

    def answer(body, number):
        return completion("Well, that", "length") if number % 2 else completion("Well. Bye.")

    out = tmp_path / "run"
    assert run_drift(serve(answer), suite, out, conversations=6) == 0
    output = capsys.readouterr().out
    run = read_run(out)
    probes = [probe for record in as_json(run) for probe in record["probes"]]
    cut = [probe for record in as_json(run) for probe in record.get("unscored", ())]
    assert {probe["score"] for probe in probes} == {1.0}
    assert cut and {probe["reply"] for probe in cut} == {"Well, that"}
    count = f"{len(cut)} of {len(cut) + len(probes)} scores"
    assert f"Cut, not judged: {count}" in output
    assert "different rules" not in output  # it is the only rule
    page = (out / "report.html").read_text()
    assert count in page and "not judged" in page
    summary = json.loads((out / "summary.json").read_text())
    assert summary["results"][0]["unscored"] == {"cut": len(cut)}


def test_means_over_different_rules_are_pointed_out(serve, tmp_path):
    """Both rules score the same in both rounds, and yet the mean rises from 0.5 to 1."""
    rules = (
        drift.Rule("named", ("?",), {"name": "contains", "words": ["Well"]}),
        drift.Rule("bye", ("?",), {"name": "ends_with", "word": "Bye"}),
    )
    suite = drift.Suite("two", (drift.Case("two", None, "Say Bye.", rules=rules),), ("hi",))

    def answer(body, number):
        is_later = any(message["role"] == "assistant" for message in body["messages"])
        return completion("Well, that", "length" if is_later else "stop")

    settings = drift.Settings(rounds=2, conversations=2, user_prompt="empty")
    run = drift.run(connect(serve(answer).url), suite, tmp_path / "run", settings)
    (first, last) = results_of(run).series[0].stability.mean(axis=0)
    assert (first, last) == (0.5, 1)
    (line,) = [line for line in reply_shortfalls(run.conversations) if "not judged" in line.heading]
    assert "2 of 8 scores" in line.text and "different rules by round and method" in line.text


def test_every_rule_cut_leaves_nothing_measured(serve, tmp_path):
    case = drift.Case("bye", None, "Say Bye.", ("?",), {"name": "ends_with", "word": "Bye"})
    suite = drift.Suite("bye", (case,), ("hi",))
    server = serve(lambda body, number: completion("Well, that", "length"))
    settings = drift.Settings(rounds=1, conversations=2, user_prompt="empty")
    run = drift.run(connect(server.url), suite, tmp_path / "run", settings)
    assert table(run).count("\n") == 1 and "2 of 2 replies" in table(run)
    assert "raise --max-new-tokens" in next_step(results_of(run))
    with pytest.raises(RecordsError):
        report.write([tmp_path / "run"], tmp_path / "page.html")


# The JUnit file of a check that fails


@pytest.fixture
def junit(tmp_path):
    """The file that an earlier check has written, and that this one is to write."""
    junit = tmp_path / "junit.xml"
    junit.write_text("earlier")
    return junit


def test_a_check_that_meets_an_outage_leaves_no_file_of_an_earlier_run(
    serve, suite, tmp_path, junit
):
    server = serve(
        lambda body, number: completion("Oui.") if number < 20 else refusal(401, "key expired")
    )
    assert run_check(server, suite, tmp_path) == COULD_NOT
    assert "(401)" in errors_in(junit)


MALFORMED = {
    "an unknown option": ["--bogus"],
    "a bar that cannot be": ["--min-stability", "3"],
    "an unknown suite": None,
}


@pytest.mark.parametrize("options", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_check_leaves_no_file_of_an_earlier_run(serve, suite, tmp_path, junit, options):
    if options is None:
        suite, options = tmp_path / "absent.yaml", []
    assert run_check(serve(lambda body, number: completion("Oui.")), suite, tmp_path, *options) == 2
    assert errors_in(junit)


def test_an_interrupted_check_leaves_no_file_of_an_earlier_run(
    serve, suite, tmp_path, junit, monkeypatch
):

    def interrupt(*_):
        assert errors_in(junit) == "the command has not finished"  # even if it is killed now
        raise KeyboardInterrupt

    monkeypatch.setattr("holdfast.cli.measure.check._converse", interrupt)
    assert run_check(serve(lambda body, number: completion("Oui.")), suite, tmp_path) == 130
    assert errors_in(junit) == "the command was interrupted"


def test_a_dry_run_leaves_the_file_alone(serve, suite, tmp_path, junit):
    server = serve(lambda body, number: completion("Oui."))
    assert run_check(server, suite, tmp_path, "--dry-run") == PASSED
    assert junit.read_text() == "earlier"
