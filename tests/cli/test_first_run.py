"""`holdfast try`: the suite of a prompt, the run, and what is printed about it."""

import asyncio
import json
import shlex
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from command_lines import changed
from pilots import pilot_of
from refusals import refusal_in
from scripted_model import ScriptedModel

from holdfast import drift
from holdfast.analysis.drift_results import results_of
from holdfast.cli import main
from holdfast.cli.main_parser import read_command
from holdfast.cli.measure import first_run, timed_run
from holdfast.cli.measure.pilot import Pilot
from holdfast.cli.measure.prompt_suite import draft_rules, write_suite
from holdfast.cli.measure.time_box import Deadlines, TimeBox
from holdfast.cli.shared import browser
from holdfast.drafting.drafted_files import draft_lines
from holdfast.drafting.probing import ONLY_IN_LOGS, PROBES, probed
from holdfast.drafting.suite_text import suite_text
from holdfast.drift import Settings, load_suite
from holdfast.models.requests import Reply, TokenUsage
from holdfast.records import read_run
from holdfast.records.identity import ConversationsIdentity
from holdfast.report.first_run_table import first_table
from holdfast.report.next_step import next_step

PROMPT = """You are the assistant of Nordwind.

- Always reply in French.
- Keep replies under 60 words.
- Be friendly.
- Never edit files in `vendor/`.
"""


class FirstGroup(TimeBox):
    """A time box that is over after its first group."""

    def groups(self, missing):
        yield missing[: self.first]


@pytest.fixture
def bot(tmp_path, monkeypatch, folder):
    """A working folder with a prompt, and the words that try it on a tiny model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(first_run, "MAX_CONVERSATIONS", 3)
    monkeypatch.setattr(first_run, "has_display", lambda: False)
    (tmp_path / "bot.txt").write_text(PROMPT)
    slow = pilot_of(488)  # the shortest conversations, one at first
    monkeypatch.setattr(first_run, "time_replies", lambda *_: slow)
    monkeypatch.setattr(timed_run, "TimeBox", FirstGroup)
    options = "--prompt bot.txt --max-new-tokens 8 --minutes 1 --out runs/mine"
    return ["try", "--model", str(folder), *options.split()]


class Stuck(ScriptedModel):
    """A model that has become so slow that it ends no reply."""

    async def generate(self, request):
        await asyncio.sleep(3600)


# The suite


def test_only_rules_that_a_reply_shows_are_probed(tmp_path):
    (tmp_path / "bot.txt").write_text(PROMPT)
    file = probed(draft_lines(tmp_path / "bot.txt"))
    assert [rule.draft.kind for rule in file.rules] == ["language", "length"]
    reasons = [line[1] for line in file.lines if isinstance(line, tuple)]
    assert ONLY_IN_LOGS in reasons and len(reasons) == 3
    (tmp_path / "suite.yaml").write_text(suite_text([file]))
    (case,) = load_suite(str(tmp_path / "suite.yaml")).cases
    assert case.system_prompt == PROMPT.rstrip()
    assert {rule.probes for rule in case.rules} == {PROBES}
    assert all(rule.text for rule in case.rules)


def test_a_prompt_without_rules_says_what_to_do(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bot.txt").write_text("You are a friendly assistant.\n")
    assert main(["try", "--prompt", "bot.txt"]) == 2
    captured = capsys.readouterr()
    assert "not an instruction" in captured.out
    assert "bot.txt" in captured.err and "Always reply in German" in captured.err
    assert not (tmp_path / "runs").exists()


def test_a_prompt_that_has_changed_gets_a_suite_with_the_next_number(tmp_path):
    prompt, names = tmp_path / "bot.txt", []
    for text in (PROMPT, PROMPT, PROMPT.replace("60", "40"), PROMPT):
        prompt.write_text(text)
        names.append(write_suite(draft_rules(prompt), tmp_path).name)
    assert names == ["bot", "bot", "bot-2", "bot"]


@pytest.mark.slow
def test_an_edited_suite_is_kept(bot, capsys):
    assert main(bot[:-2]) == 0
    (suite,) = Path("runs").glob("try-bot*.yaml")
    suite.write_text(suite.read_text().replace("count: 59", "count: 40"))
    assert main(bot[:-2]) == 0
    assert "used unchanged" in capsys.readouterr().out
    assert "count: 40" in suite.read_text()
    folders = sorted(path.name for path in Path("runs").iterdir() if path.is_dir())
    assert len(folders) == 2 and folders[0].endswith("-bot-0")
    assert folders[1].endswith("-bot_edited-0")


# The table of the first results


class Cut(ScriptedModel):
    """A model whose replies are all cut."""

    async def generate(self, request):
        await asyncio.sleep(0)
        return Reply("Bonjour, voici une longue", None, "length")


def test_a_rule_of_which_no_reply_can_be_judged_is_in_the_table(tmp_path):
    (suite := tmp_path / "bot.yaml").write_text(
        "cases:\n- id: bot\n  system_prompt: Reply in French, and end with Merci!\n  rules:\n"
        "  - {id: closing, measure: {name: ends_with, word: Merci}, probe: 'Hello?'}\n"
        "  - {id: opening, measure: {name: starts_with, word: Bonjour}, probe: 'Hello?'}\n"
    )
    settings = Settings(rounds=2, conversations=2, adoption=False)
    run = drift.run(Cut(), load_suite(suite), tmp_path / "run", settings)
    opening, closing = first_table(results_of(run)).splitlines()[-2:]
    why = "not judged: 4 replies cut before the end (--max-new-tokens raises the limit)"
    assert closing.split("–")[-1].strip() == why and "opening" in opening


class Truncating(ScriptedModel):
    """A model behind a server that never reads more than 50 tokens of a chat."""

    async def generate(self, request):
        await asyncio.sleep(0)
        return Reply("Bonjour!", None, "stop", billed=TokenUsage(50, 2))


def test_a_server_that_cuts_the_chats_off_is_named_above_the_table(tmp_path):
    settings = Settings(rounds=4, conversations=6, adoption=False)
    run = drift.run(Truncating(), load_suite("luna"), tmp_path / "run", settings)
    text = " ".join(first_table(results_of(run)).split())
    assert text.startswith("The server reads no more of the dialog from round 2 on.")
    assert "add --canary to `holdfast drift`" in text


def test_what_a_cutting_server_means_is_said_once_for_all_methods(tmp_path):
    settings = Settings(rounds=4, conversations=6, adoption=False)
    methods = ["none", "reminder:every=1,text=Oui."]
    run = drift.run(Truncating(), load_suite("luna"), tmp_path / "run", settings, methods=methods)
    text = " ".join(first_table(results_of(run)).split())
    finding, counts = text.split(" from round 2 on. ")
    assert finding == "The server reads no more of the dialog" and "reads no more" not in counts
    assert counts.startswith("Its count of prompt tokens stays at or below 50 while")
    assert counts.count("in 6 of 6 conversations. ") == 2
    assert counts.index("With reminder") < counts.index("It may have cut off")
    assert counts.count("It may have cut off") == counts.count("add --canary") == 1


# The run, on a model of the tests


@pytest.mark.parametrize("minutes", ["0", "-1", "inf"])
def test_an_invalid_time_is_refused(minutes, capsys):
    assert main(["try", f"--minutes={minutes}"]) == 2
    assert f"{float(minutes):g}" in refusal_in(capsys)


@pytest.mark.slow
def test_a_run_can_be_gone_on_with_by_its_own_command(bot, capsys, monkeypatch):
    assert main(bot) == 0
    captured = capsys.readouterr()
    assert "n = 1, too few to tell (that takes 20)" in captured.out
    assert "Always reply in French." in captured.out and "needs a judge" in captured.out
    run = read_run("runs/mine")
    step = next_step(results_of(run))  # the page's too
    assert captured.out.rstrip().endswith(step) and "--conversations 20" in step
    settings = run.identity_as(ConversationsIdentity).settings
    assert len(run.conversations) == 1 and settings.rounds == 2
    assert settings.sampling.temperature == 0.7 and settings.user_prompt == "scripted"
    words = shlex.split(run.manifest.argv)
    assert words[:2] == ["holdfast", "drift"] and read_command(words[1:])
    # the drift command that it prints has the settings of the run, so that it adds to it
    assert main(words[1:]) == 0
    assert len(read_run("runs/mine").conversations) == 3
    capsys.readouterr()
    assert main([*bot, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["folder"].endswith("runs/mine") and document["page"].endswith("report.html")
    assert document["summary"]["results"][0]["conversations"] == 3


class SometimesCut(ScriptedModel):
    """A model whose replies are cut every second time."""

    replies = 0

    async def generate(self, request):
        await asyncio.sleep(0)
        self.replies += 1
        stop_reason = "length" if self.replies % 2 else "stop"
        return Reply("Bonjour, voici une longue réponse", None, stop_reason)


def test_scores_that_are_left_out_are_counted(bot, capsys, monkeypatch):
    monkeypatch.setattr(first_run, "load_model", lambda *_: SometimesCut())
    assert main(bot) == 0
    output = capsys.readouterr().out
    assert "Cut, not judged: " in output
    assert output.index("Cut, not judged: ") < output.index("\nPage: ")


class CallsTools(ScriptedModel):
    """A model that calls a tool instead of replying."""

    async def generate(self, request):
        await asyncio.sleep(0)
        return Reply("", None, "tool_calls")


def test_a_model_without_a_reply_to_score_is_explained(bot, capsys, monkeypatch):
    monkeypatch.setattr(first_run, "load_model", lambda *_: CallsTools())
    assert main(bot) == 1
    captured = capsys.readouterr()
    assert "Nothing was measured" in captured.out
    assert "called a tool" in captured.out and "called a tool" in captured.err


def test_an_interrupted_run_says_that_nothing_was_finished(bot, capsys, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(first_run, "time_replies", interrupt)
    monkeypatch.setattr(first_run, "load_model", lambda *_: Stuck())
    assert main(bot) == 130
    stderr = capsys.readouterr().err
    assert "nothing was finished" in stderr and f"`{shlex.join(['holdfast', *bot])}`" in stderr


# Models that are too slow


def test_a_model_that_ends_no_conversation_is_given_up(bot, capsys, monkeypatch):
    monkeypatch.setattr(first_run, "load_model", lambda *_: Stuck())
    monkeypatch.setattr(first_run, "time_replies", lambda *_: pilot_of(0.01))
    assert main(changed(bot, "--minutes", "0.004")) == 1
    assert "--minutes 1" in refusal_in(capsys)


class StuckInTheOthers(ScriptedModel):
    """A model that ends the replies of the first conversation only."""

    async def generate(self, request):
        await asyncio.sleep(3600 if request.thread.conversation else 0)
        return Reply("Bonjour, voici une réponse.", None, "stop")


class TimeIsUp(FirstGroup):
    """The time is up at once, and a first result is waited for."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        now = self.clock()
        self.deadlines = Deadlines(self.deadlines.end, now, now + 300)


def test_what_has_ended_in_time_is_shown(bot, capsys, monkeypatch):
    monkeypatch.setattr(first_run, "load_model", lambda *_: StuckInTheOthers())
    monkeypatch.setattr(first_run, "time_replies", lambda *_: pilot_of(0.01))
    monkeypatch.setattr(timed_run, "TimeBox", TimeIsUp)
    assert main(bot) == 0
    printed = capsys.readouterr()
    assert "1 conversation recorded, of at most 3" in printed.err
    assert "2 more had not ended when the time was up" in printed.err
    assert "n = 1" in printed.out


class StuckBeforeTheTime(ScriptedModel):
    """A model whose conversations from a number on end only after the time of the run."""

    def __init__(self, first_late, monkeypatch):
        self.first_late = first_late
        self.is_late = True

        class Over(FirstGroup):
            """The time is up after one conversation; the model is fast from then on."""

            def groups(box, missing):
                yield from super().groups(missing)
                self.is_late = False

        monkeypatch.setattr(timed_run, "TimeBox", Over)

    async def generate(self, request):
        late = self.is_late and request.thread.conversation >= self.first_late
        await asyncio.sleep(3600 if late else 0)
        return Reply("Bonjour, voici une réponse.", None, "stop")


@pytest.mark.parametrize(("first_late", "recorded"), [(17, 20), (10, 10)])
def test_conversations_that_lack_for_a_verdict_are_held_if_that_is_quick(
    bot, capsys, monkeypatch, first_late, recorded
):
    model = StuckBeforeTheTime(first_late, monkeypatch)
    monkeypatch.setattr(first_run, "load_model", lambda *_: model)
    monkeypatch.setattr(first_run, "MAX_CONVERSATIONS", 24)
    monkeypatch.setattr(first_run, "time_replies", lambda *_: pilot_of(0.01))
    assert main(changed(bot, "--minutes", "0.2")) == 0
    stderr = capsys.readouterr().err
    assert f"{recorded} conversations recorded, of at most 24" in stderr
    assert f"{24 - recorded} more had not ended" in stderr
    goes_on = "17 conversations recorded, and a verdict takes 20: going on with 3 more, for about"
    assert (goes_on in stderr) == (recorded == 20)
    assert ("at most 3 seconds" in stderr) == (recorded == 20)  # a quarter of 12


def test_a_model_that_would_end_nothing_in_time_is_refused_at_once(bot, capsys, monkeypatch):
    monkeypatch.setattr(first_run, "load_model", lambda *_: Stuck())
    monkeypatch.setattr(first_run, "time_replies", lambda *_: pilot_of(5000))
    assert main(bot) == 1
    assert "repeat the command with --minutes 16." in refusal_in(capsys)
    assert not Path("runs/mine").exists()


def test_a_model_whose_pace_is_not_known_gets_twice_the_time_at_most(bot, capsys, monkeypatch):
    monkeypatch.setattr(first_run, "load_model", lambda *_: Stuck())
    first_token_only = Pilot(4, start=0, per_token=3600, limit=1)
    monkeypatch.setattr(first_run, "time_replies", lambda *_: first_token_only)
    start = time.monotonic()
    assert main(changed(bot, "--minutes", "0.02")) == 1
    assert time.monotonic() - start < 30  # the estimate is days
    stderr = capsys.readouterr().err
    assert "no more than its first token" in stderr and "--minutes 1." in stderr
    assert "an hour" not in stderr


# The page


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, False),
        ("linux", {"DISPLAY": ":0"}, True),
        ("linux", {"WAYLAND_DISPLAY": "wayland-0"}, True),
        ("darwin", {}, True),
        ("darwin", {"SSH_CONNECTION": "1"}, False),
    ],
)
def test_a_page_opens_only_where_there_is_a_display(monkeypatch, platform, variables, expected):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(browser.sys, "platform", platform)
    assert browser.has_display() is expected


def test_a_browser_that_fails_does_not_fail_the_run(monkeypatch, tmp_path):
    def fail(url):
        raise browser.webbrowser.Error("no browser")

    stand_in = SimpleNamespace(open=fail, Error=browser.webbrowser.Error)
    monkeypatch.setattr(browser, "webbrowser", stand_in)
    browser.open_in_browser(tmp_path / "report.html")


# Without a command


def test_without_a_command_it_says_where_to_start(capsys):
    assert main([]) == 0
    assert "holdfast try" in capsys.readouterr().out
