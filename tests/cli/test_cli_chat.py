"""`holdfast chat`: driven by lines, by signals, and by a terminal."""

import fcntl
import io
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from chat_server import Server, as_steered, completion, steering
from refusals import refusal_in
from tiny import chat, model, tokenizer

from holdfast.cli import main
from holdfast.cli.serve.chat import completions
from holdfast.cli.serve.terminal_chat import COMMANDS
from holdfast.cli.shared.notes import printable
from holdfast.drift.dialog_records import least_tokens
from holdfast.errors import UsageError
from holdfast.generation.sampling import Sampling
from holdfast.methods import parse
from holdfast.models.requests import Request
from holdfast.models.stepped_model import SteppedModel
from holdfast.models.streaming import TextDecoder
from holdfast.seeds import seed_of

SYSTEM = "always talk about cheese"
SHORT = Sampling(temperature=0.7, max_new_tokens=8)


@pytest.fixture
def say(folder, monkeypatch, capsys):
    """say(line, ..., options=[...]) -> (exit code, output, error output)."""

    def run(*lines, options=("--system", SYSTEM), to=None):
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        command = ["chat", "--model", to or str(folder), "--max-new-tokens", "8", *options]
        code = main(command)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def exchanges(monkeypatch):
    """All chats that a session has answered, each with its reply."""
    pairs, reply_of = [], SteppedModel._reply

    def note_reply(self, chat, row):
        pairs.append((chat, reply_of(self, chat, row)))
        return pairs[-1][1]

    monkeypatch.setattr(SteppedModel, "_reply", note_reply)
    return pairs


def expected(messages, method="none", round=1, attempt=0):
    """The reply that the model itself gives."""
    seeds = seed_of("chat", 0, round, attempt), seed_of("chat methods", 0)
    return model().generate_batch([Request(messages, method, SHORT, *seeds)])[0].text


@pytest.fixture(autouse=True)
def heeds_interrupts():
    """Makes Ctrl-C work even if the tests run in the background, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


# Replies


def test_lines_are_answered_as_the_model_answers_the_dialog(say):
    code, out, _ = say("the old town", "and the river")
    session, messages, replies = model().session(), chat(SYSTEM), []
    for number, text in enumerate(("the old town", "and the river"), 1):
        messages += ({"role": "user", "content": text},)
        seed = seed_of("chat", 0, number, 0)
        request = Request(messages, (), SHORT, seed, thread="a", keep=True)
        replies += [session.generate_batch([request])[0].text]
        messages += ({"role": "assistant", "content": replies[-1]},)
    assert (code, out) == (0, printable("".join(f"{reply}\n" for reply in replies)))


def test_no_token_is_forwarded_twice(say, exchanges):
    say("the old town", "and the river", "and rain", "/method boost:factor=4", "and bread", "and")
    replies = [reply for _, reply in exchanges]
    views = ["none"] * 3 + ["boost"] * 2
    prompts = [
        (view, reply.prompt_ids + reply.token_ids[: -1 if reply.stop_reason == "length" else None])
        for view, reply in zip(views, replies, strict=True)
    ]
    assert sum(reply.forwarded for reply in replies) == least_tokens(prompts)


def test_a_method_steers_all_later_replies(say):
    _, out, err = say("the old town", "/method boost:factor=8", "and the river")
    first = expected(chat(SYSTEM, "the old town"))
    later = chat(SYSTEM, "the old town", first, "and the river")
    steered_reply = expected(later, "boost:factor=8", round=2)
    assert out.splitlines()[1] == printable(steered_reply)
    assert steered_reply != expected(later, round=2) and "method: boost:factor=8" in err


def test_replies_are_compared_outside_the_dialog(say, exchanges):
    code, out, err = say("/compare none boost:factor=8", "the old town", "and the river")
    none, boost = (
        expected(chat(SYSTEM, "the old town"), method) for method in ("none", "boost:factor=8")
    )
    assert none != boost and code == 0 and "/method SPEC" in err
    assert out.startswith(printable(f"1 none\n{none}\n2 boost:factor=8\n{boost}\n"))
    assert exchanges[2][0].request.messages == chat(SYSTEM, "and the river")


def test_a_retry_replaces_the_reply(say, exchanges):
    say("the old town", "/retry", "and the river")
    first = chat(SYSTEM, "the old town")
    replies = [reply.text for _, reply in exchanges[:2]]
    assert replies == [expected(first, attempt=attempt) for attempt in (0, 1)]
    later = chat(SYSTEM, "the old town", replies[1], "and the river")
    assert exchanges[2][0].request.messages == later


def test_the_mass_is_drawn_by_round(say, exchanges):
    _, out, _ = say("the old town", "/method boost:factor=8", "and the river", "/mass")
    masses = [reply.token_masses for _, reply in exchanges]
    means = [sum(round_masses) / len(round_masses) for round_masses in masses]
    rows = re.findall(r"^ +(\d)  (\S+) +(0\.\d{3})  (█+)$", out, re.MULTILINE)
    means = [f"{mean:.3f}" for mean in means]
    assert [row[:3] for row in rows] == [("1", "none", means[0]), ("2", "boost:factor=8", means[1])]
    assert len(rows[0][3]) < len(rows[1][3]) == 40


# The dialog


def test_the_prompt_and_the_emphasis_can_change_during_a_chat(say, exchanges):
    lines = ("the old town", "/emphasis old town", "/emphasis river", "and the river")
    _, _, err = say(*lines, "/system be brief", "and rain", "/system", "and bread")
    requests = [pending.request for pending, _ in exchanges]
    assert [request.emphasis for request in requests] == [(), ((1, 4, 12), (3, 8, 13)), (), ()]
    assert "emphasised: old town" in err and "next message: river" in err
    assert "system prompt: be brief\n" in err and "nothing is emphasised any longer" in err
    systems = [[m["content"] for m in r.messages if m["role"] == "system"] for r in requests]
    assert systems == [[SYSTEM], [SYSTEM], ["be brief"], []]
    say("/emphasis rain", "/compare none boost:factor=8", "and rain", "and bread")  # not in bread
    assert [pending.request.emphasis for pending, _ in exchanges[4:]] == [((1, 4, 8),)] * 2


def test_a_dialog_is_saved_loaded_and_read_by_generate(say, folder, tmp_path, capsys, exchanges):
    file = str(tmp_path / "dialog.json")
    say("/method boost:factor=8", "the old town", "/emphasis old", f"/save {file}")
    saved = json.loads(Path(file).read_text())
    first = expected(chat(SYSTEM, "the old town"), "boost:factor=8")
    assert saved["messages"] == list(chat(SYSTEM, "the old town", first))
    assert saved["method"] == "boost:factor=8" and saved["emphasis"] == [[1, 4, 7]]
    del exchanges[:]
    say("and rain", options=("--messages", file))
    request = exchanges[0][0].request
    assert request.emphasis == ((1, 4, 7),) and request.methods == parse("boost:factor=8")
    assert request.messages == chat(SYSTEM, "the old town", first, "and rain")
    arguments = ["generate", "--model", str(folder), "--messages", file]
    assert main(arguments) == 2  # it ends with the assistant's message
    assert "--continue-final-message." in refusal_in(capsys)
    assert main([*arguments, "--max-new-tokens", "2", "--continue-final-message"]) == 0
    assert capsys.readouterr().err == f"holdfast: loading {folder} ...\n"


# Help and refusals


def test_help_lists_every_command(say):
    _, out, _ = say("/help")
    for name, (takes, line) in COMMANDS.items():
        assert f"/{name} {takes}" in out and line in out


def test_every_completed_method_can_be_parsed():
    words, of_files = completions(), 0
    assert {"/method", "boost:factor=4", "none"} <= set(words)
    for spec in words:
        try:
            assert spec.startswith("/") or parse(spec) is not None
        except UsageError as error:  # a fitted method names a file that does not exist
            assert "The fitted file" in str(error)
            of_files += 1
    assert len(words) - len(COMMANDS) - of_files > 8


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["/methd none"], ["'/methd'", "did you mean '/method'"]),
        (["/method bost:factor=2"], ["'bost'", "'boost'"]),
        (["/mass"], ["No reply has a mass yet"]),
        (["/retry"], ["type one first"]),
        (["/compare none"], ["/compare", "'none'"]),
        (["/save"], ["name of a file"]),
        (["/save /dev/null/dialog.json"], ["/dev/null/dialog.json"]),
        (["/emphasis cheese", "/emphasis moon", "hello"], ["'moon'"]),
        (["/system a b a", "/emphasis a"], ["2 times"]),
        (["word " * 600], ["leaves no room"]),
    ],
)
def test_a_refusal_ends_a_chat_without_a_terminal(say, lines, words):
    code, _, err = say(*lines, "/help")
    message = err.splitlines()[-1]
    assert code in (1, 2) and message.startswith("holdfast: "), err
    assert all(word in message for word in words), message


@pytest.mark.parametrize("text", ("[", '{"messages": 3}', '[{"role": "user", "content": "hi"}]'))
def test_a_file_that_is_not_a_dialog_is_refused(say, tmp_path, text):
    (tmp_path / "dialog.json").write_text(text)
    code, _, err = say(options=("--messages", str(tmp_path / "dialog.json")))
    assert code == 2 and err.splitlines()[-1].startswith("holdfast: --messages")


def test_without_its_packages_it_says_how_to_install_them(say, monkeypatch):
    find = __import__("importlib.util").util.find_spec
    monkeypatch.setattr(
        "importlib.util.find_spec", lambda name: None if name == "prompt_toolkit" else find(name)
    )
    code, _, err = say("hello")
    message = "holdfast: `holdfast chat` needs prompt_toolkit; pip install 'holdfast-llm[chat]'.\n"
    assert (code, err) == (2, message)


# An endpoint


def test_an_endpoint_that_steers_is_steered_and_reports_the_mass(say):
    with Server(as_steered, steering()) as server:
        lines = ("hello", "/method boost:factor=2", "and you", "/mass")
        code, out, _ = say(*lines, "/compare none spotlight:target=0.2", "why", to=server.url)
    bodies = [body for body in server.bodies if body]
    assert code == 0 and out.startswith("Oui, bien.\nOui, bien.\n")
    specs = ["none", "boost:factor=2", "none", "spotlight:target=0.2"]
    assert [body["steering"] for body in bodies] == specs and "0.500" in out


def test_an_ordinary_endpoint_chats_and_refuses_what_it_cannot_do(say):
    def answer(body, number):
        return as_steered(None, number) if body is None else completion("Arr, \x1b[2J mate.")

    with Server(answer) as server:
        assert say("hello", "you", to=server.url)[:2] == (0, "Arr,  [2J mate.\n" * 2)
        messages = list(chat(SYSTEM, "hello", "Arr, \x1b[2J mate.", "you"))
        assert server.bodies[-1]["messages"] == messages
        for line, exit_code in (("/mass", 1), ("/method boost:factor=2", 2)):
            code, _, err = say(line, to=server.url)
            assert code == exit_code and "attention" in err


# Ctrl-C


def test_ctrl_c_stops_the_reply_and_not_the_chat(say, monkeypatch, exchanges):
    add, drawn_tokens, cancel, cancelled = TextDecoder.add, [], SteppedModel.cancel, []

    def interrupt(self, token):
        decoded = add(self, token)
        drawn_tokens.append(token.token_id)
        if len(drawn_tokens) == 5:
            os.kill(os.getpid(), signal.SIGINT)
        return decoded

    def note_row(self, row):
        cancel(self, row)
        cancelled.append(row.cancelled)

    monkeypatch.setattr(TextDecoder, "add", interrupt)
    monkeypatch.setattr(SteppedModel, "cancel", note_row)
    code, out, err = say("the old town", "and the river")
    assert code == 0 and "(stopped)" in err and cancelled == [True] and len(exchanges) == 1
    messages = exchanges[0][0].request.messages
    part = messages[2]["content"]
    assert messages == chat(SYSTEM, "the old town", part, "and the river")
    assert tokenizer().decode(drawn_tokens[:5]).startswith(part) and part
    assert out.startswith(printable(part) + "\n")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_hangs_up_on_an_endpoint(say):
    def answer(body, number):
        if body is not None and body["messages"][-1]["content"] == "slow":
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.5)
        return as_steered(None, number) if body is None else completion("Arr.")

    with Server(answer) as server:
        code, out, err = say("slow", "quick", to=server.url)
    assert (code, out) == (0, "\nArr.\n") and "(stopped)" in err
    assert server.bodies[-1]["messages"] == list(chat(SYSTEM, "quick"))


# A terminal


def test_control_characters_do_not_reach_a_terminal():
    assert printable("a\x1b[2J\x07b\n\tc\ud83d\u202e") == "a [2J b\n\tc? "


CURSOR_SHOWN = r"\?25h"  # the cursor is shown after the prompt


class Terminal:
    """A chat in a pseudo-terminal."""

    def __init__(self, *command: str, columns: int = 120):
        self.process, self.screen = None, ""
        self._fd, child = pty.openpty()
        fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        variables = {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "chat", *command],
            stdin=child,
            stdout=child,
            stderr=child,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables},
        )
        os.close(child)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self._fd)

    def type(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def wait_for(self, pattern: str, seconds: float = 120) -> str:
        """Reads until the pattern is on the screen; returns what was read up to its end."""
        end = time.monotonic() + seconds
        while not (match := re.search(pattern, self.screen)):
            assert time.monotonic() < end, f"no {pattern!r} in {self.screen!r}"
            if select.select([self._fd], [], [], 0.2)[0]:
                self.screen += os.read(self._fd, 65536).decode(errors="replace")
        output, self.screen = self.screen[: match.end()], self.screen[match.end() :]
        return output


@pytest.mark.slow
def test_a_terminal_shows_completes_compares_and_stops(folder):
    long = ("--model", str(folder), "--system", SYSTEM, "--temperature", "0")  # up to 400 tokens
    with Terminal(*long) as terminal:
        terminal.wait_for("/help lists the commands")
        terminal.wait_for(CURSOR_SHOWN)
        terminal.type("/meth\t")
        terminal.wait_for("od")  # only new characters may be drawn
        terminal.type(" bo\t")
        terminal.wait_for("ost:factor=4")
        terminal.type("\r")
        terminal.wait_for("method: boost:factor=4")
        terminal.type("/compare none boost:factor=4\r")
        terminal.wait_for("answered under each")
        terminal.type("hello\r")
        compared = terminal.wait_for("/method SPEC")
        assert re.search("1 none.*2 boost:factor=4", compared, re.DOTALL), compared
        terminal.type("/methd\r")
        terminal.wait_for(r"did you mean '/method'")
        terminal.type("/method none\r")
        terminal.wait_for("method: none")
        terminal.wait_for(CURSOR_SHOWN)
        terminal.type("the old town\r")
        terminal.wait_for("talk")
        terminal.type("\x03")
        terminal.wait_for(r"\(stopped\)")
        terminal.wait_for(CURSOR_SHOWN)
        terminal.type("half a line\x03")
        terminal.type("/help\r")
        terminal.wait_for("like Ctrl-D")
        terminal.wait_for(CURSOR_SHOWN)
        terminal.type("\x04")
        assert terminal.process.wait(30) == 0
