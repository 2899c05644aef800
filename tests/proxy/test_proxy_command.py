"""`holdfast proxy` as a process, and what it refuses."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx2
import openai
import pytest
from fake_upstream import SUITE, SYSTEM, FakeUpstream, chunks, completion, reply_json, wait_until
from logged_dialogs import SHORT
from paths import ROOT

from holdfast.cli import main
from holdfast.drift.suite_file import parse_suite
from holdfast.drift.suites import load_suite
from holdfast.errors import Unreachable, UsageError
from holdfast.measures import Measure
from holdfast.methods import parse
from holdfast.proxy.chat_requests import Api, request_from_body
from holdfast.proxy.suite_middleware import SuiteMiddleware
from holdfast.proxy.suite_rules import NotScored, which_are_scored
from holdfast.proxy.upstream import Upstream

SEVERAL = (
    SUITE
    + """
  - id: longer
    system_prompt: Reply in one sentence and sign as Tony. Today is Friday.
    measure: one_sentence
  - id: french
    system_prompt: Answer in French.
    rules:
      - id: language
        measure: {name: language, code: fr}
      - id: polite
        measure: {judge: "Is it polite?", model: "http://localhost:9/v1"}
        follows: [a, b, c, d, e, f, g, h, i, j]
        breaks: [k, l, m, n, o, p, q, r, s, t]
"""
)


def suite_of(text: str):
    return parse_suite(text, "bot.yaml", "bot", probed=False)


CHAT = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": "Hi."}]


@contextlib.contextmanager
def proxy_process(folder: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A process of Python in a folder, which begins by printing the address of its proxy."""
    process = subprocess.Popen(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def refuses(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/models").status_code == 503
    except httpx2.TransportError:
        return True


def test_the_process_finishes_streams_when_it_is_stopped(tmp_path):
    (tmp_path / "bot.yaml").write_text(SUITE)
    go_on = threading.Event()

    def answer(request, writer):
        if request.line.startswith("GET"):
            return reply_json(b"{}")(request, writer)
        writer.head("200 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")
        first, *later = chunks("Fine, ", "Tony")
        writer.chunk(first)
        go_on.wait(20)
        for event in later:
            writer.chunk(event)
        return writer.raw(b"0\r\n\r\n")

    words = ["-m", "holdfast", "proxy", "--port", "0", "--suite", "bot.yaml"]
    words += ["--method", "reminder:every=1", "--upstream"]
    with (
        FakeUpstream(answer) as upstream,
        proxy_process(tmp_path, *words, f"{upstream.url}/v1") as process,
    ):
        output = process.stdout.readline()
        url = output.split()[2]
        client = openai.OpenAI(base_url=url, api_key="sk-secret", max_retries=0)
        stream = client.chat.completions.create(model="m", messages=CHAT, stream=True)
        text = next(stream).choices[0].delta.content
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: refuses(url))
        go_on.set()
        text += "".join(chunk.choices[0].delta.content or "" for chunk in stream)
        assert text == "Fine, Tony"
        assert process.wait(20) == 0
        output += process.stdout.read()
    assert "Finishing 1 request" in output
    assert "sk-secret" not in output and "Traceback" not in output
    # `refuses` may still be answered before the signal takes effect, as the last request
    (chat,) = [request for request in upstream.requests if request.line.startswith("POST")]
    assert chat.json["messages"][-1]["content"] == f"[Reminder: {SYSTEM}]\n\nHi."


ENDLESS_MEASURE = """
def measure(reply):
    while "sir" in reply:
        pass
    return 1.0
"""
IMPATIENT_PROXY = """
import sys
from holdfast.cli import main
from holdfast.proxy import forwarding, measure_threads
forwarding._MAX_SECONDS = measure_threads._MAX_SECONDS_AT_END = 0.2
sys.exit(main(sys.argv[1:]))
"""


def test_the_process_ends_although_a_measure_does_not(tmp_path):
    own_rule = "      - id: own\n        measure: {python: endless.measure}\n"
    (tmp_path / "bot.yaml").write_text(SUITE + own_rule)
    (tmp_path / "endless.py").write_text(ENDLESS_MEASURE)
    words = ["-c", IMPATIENT_PROXY, "proxy", "--port", "0", "--suite", "bot.yaml", "--allow-code"]
    words += ["--method", "check-and-retry", "--upstream"]
    with (
        FakeUpstream(reply_json(completion("Fine, sir"))) as upstream,
        proxy_process(tmp_path, *words, f"{upstream.url}/v1") as process,
    ):
        url = process.stdout.readline().split()[2]
        reply = httpx2.post(f"{url}/chat/completions", json={"messages": CHAT}, timeout=20)
        assert reply.json()["choices"][0]["message"]["content"] == "Fine, sir"
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        output = process.stdout.read()
    assert "Not scored: 1 reply" in output and "Traceback" not in output


def test_an_upstream_that_cannot_be_reached_is_named():
    with FakeUpstream(reply_json(completion())) as upstream:
        url = upstream.url
    with pytest.raises(Unreachable) as excinfo:
        Upstream(f"{url}/v1", 1).check()
    assert url in str(excinfo.value)


def test_an_upstream_that_answers_with_an_error_can_be_reached():
    with FakeUpstream(lambda request, writer: writer.whole("401 Unauthorized", b"{}")) as upstream:
        Upstream(upstream.url, 1).check()


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://x/v1", "http://", "", "http://[::1/v1"])
def test_an_upstream_that_is_no_url_is_refused(url):
    with pytest.raises(UsageError) as excinfo:
        Upstream(url, 1)
    assert excinfo.value.option == "upstream" and excinfo.value.value == url


def test_credentials_in_the_url_are_in_no_message():
    upstream = Upstream("http://me:secret@127.0.0.1:9/v1?key=secret", 1)
    assert upstream.name == "http://127.0.0.1:9/v1"
    with pytest.raises(Unreachable) as excinfo:
        upstream.check()
    assert "secret" not in str(excinfo.value)


@pytest.mark.parametrize("spec", ["boost:factor=2", "repetition:probability=1+guidance:scale=2"])
def test_a_method_that_acts_inside_the_model_is_refused(spec):
    with pytest.raises(UsageError) as excinfo:
        SuiteMiddleware(suite_of(SUITE), parse(spec))
    assert excinfo.value.option == "method" and excinfo.value.value == spec.split("+")[-1]


def test_a_suite_whose_rules_need_probes_or_judges_is_refused():
    with pytest.raises(UsageError) as excinfo:
        SuiteMiddleware(load_suite("bot"))
    assert excinfo.value.option == "suite" and excinfo.value.value == "bot"


def test_rules_that_need_a_judge_or_a_when_are_named():
    text = SEVERAL.replace("text: Sign as Tony.", "text: Sign as Tony.\n        probes: [Hi.]")
    rules = SuiteMiddleware(suite_of(text)).rules
    assert [(rule.name, rule.not_scored) for rule in rules] == [
        ("brief/signs", NotScored.NO_WHEN),
        ("brief/short", None),
        ("longer", None),
        ("french/language", None),
        ("french/polite", NotScored.JUDGE),
    ]
    assert which_are_scored(rules) == (
        "3 of 5 rules are scored. Rules that need a judge are not scored: french/polite. Rules"
        " without `when:` are not scored (with `when: {user: '.'}`, a rule is scored in every"
        " turn): brief/signs."
    )
    assert which_are_scored(rules[1:2]) == "1 of 1 rule is scored."


def test_lexicons_are_loaded_before_the_first_chat(monkeypatch):
    scored = []
    monkeypatch.setattr(Measure, "judge_turn", lambda measure, turn: scored.append(measure.name))
    SuiteMiddleware(suite_of(SEVERAL)).load_lexicons()
    assert scored == ["language"]


def test_rules_without_texts_are_said_by_their_prompt(tmp_path):
    (tmp_path / "short.yaml").write_text(SHORT)
    suite = load_suite(str(tmp_path / "short.yaml"), probed=False)
    middleware = SuiteMiddleware(suite, parse("reminder:every=1,text=rules"))
    request = request_from_body(Api.CHAT, {"messages": [{"role": "user", "content": "Hi."}]})
    assert middleware.chat_of(request).edit().added == ["[Reminder: Answer in one sentence.]\n\n"]
    with pytest.raises(UsageError) as excinfo:
        SuiteMiddleware(suite, parse("reminder:every=1,text=rules,kinds=length"))
    assert excinfo.value.option == "kinds"


@pytest.mark.parametrize(
    ("system", "case"),
    [
        ("Answer in French.", "french"),
        ("You are a bot. Answer in French. Be kind.", "french"),
        ("Reply in one sentence and sign as Tony.", "brief"),
        ("Reply in one sentence and sign as Tony. Today is Friday.", "longer"),
        ("Something else.", None),
        ("", None),
    ],
)
def test_a_chats_system_prompt_selects_its_case(system, case):
    case_rules = SuiteMiddleware(suite_of(SEVERAL)).case_of(system)
    assert (case_rules.case.id if case_rules else None) == case


def test_a_single_case_applies_to_every_chat():
    assert SuiteMiddleware(suite_of(SUITE)).case_of("").case.id == "brief"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("port", "70000"),
        ("timeout", "0"),
        ("method", "bost:factor=2"),
        ("suite", "nowhere.yaml"),
        ("host", "203.0.113.7"),
    ],
)
def test_bad_options_are_refused_in_one_sentence(option, value, capsys):
    options = {"upstream": "http://127.0.0.1:9/v1", "port": "0", "suite": "luna", option: value}
    assert main(["proxy", *(f"--{name}={text}" for name, text in options.items())]) == 2
    stderr = capsys.readouterr().err
    assert stderr.count("\n") == 1 and value.partition(":")[0] in stderr
