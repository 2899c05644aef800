"""Plausible mistakes in calls of the Python API: each error names the value, and what to give."""

import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast import drift, study
from holdfast.errors import UsageError

SETTINGS = drift.Settings(rounds=2, conversations=1)
SCRIPTED = drift.Cast(user_turns="everyday")
CHAT = [{"role": "user", "content": "Hello!"}]


def bot(messages):
    return "Certainly!"


def case(id="polite"):
    measure = {"name": "starts_with", "word": "Certainly"}
    return drift.Case(id, "style", "Begin with Certainly!", ("Hello?",), measure)


def suite(**fields):
    return drift.Suite("polite", **{"cases": (case(),), "starters": ("Hi!",), **fields})


def model():
    return holdfast.from_function(bot, "my bot")


def client():
    openai = pytest.importorskip("openai")
    return openai.OpenAI(api_key="x", base_url="http://localhost:1/v1")


def measured(**fields):
    """A run of a conversation, with some arguments replaced."""
    arguments = {"suite": suite(), "out": "run", "settings": SETTINGS, "cast": SCRIPTED}
    return drift.run(**{"model": model(), **arguments, **fields})


WRONG = {
    "a client as a model": (
        lambda: measured(model=client()),
        "holdfast.connect('http://localhost:1/v1')",
    ),
    "a function as a model": (lambda: measured(model=bot), 'holdfast.from_function(bot, "my bot")'),
    "a name as a model": (lambda: measured(model="default"), "holdfast.load('default')"),
    "an address as a model": (
        lambda: measured(model="http://a/v1"),
        "holdfast.connect('http://a/v1')",
    ),
    "nothing as a model": (lambda: measured(model=None), "None is not a chat model"),
    "a function, checked": (lambda: study.check(bot, suite(), "run"), "holdfast.from_function(bot"),
    "a function, calibrated": (
        lambda: study.calibrate(bot, suite(), None, "run"),
        "holdfast.from_function(bot",
    ),
    "a function, fitted": (
        lambda: study.fit("seka", bot, "a.safetensors"),
        "holdfast.from_function(bot",
    ),
    "a function's baseline": (lambda: drift.ask_baseline(bot, suite(), "run"), "from_function(bot"),
    "a function's tasks": (lambda: holdfast.tasks.run(bot, None, "run"), "from_function(bot"),
    "a case as a suite": (lambda: measured(suite=case()), "drift.Suite(NAME, (CASE,))"),
    "cases as a suite": (lambda: drift.load_suite({"cases": []}), "not by a dict"),
    "no case": (lambda: suite(cases=()), "'polite' has no case"),
    "two cases of an id": (lambda: suite(cases=(case(), case())), "two cases with the id 'polite'"),
    "a text as starters": (lambda: suite(starters="Hello!"), "'Hello!' as its starters"),
    "a text as probes": (
        lambda: drift.Case("a", "b", "c", "Hi?", "one_word"),
        "'Hi?' as its probes",
    ),
    "more rounds than messages": (
        lambda: measured(settings=drift.Settings(rounds=20, conversations=1)),
        "give rounds=8",
    ),
    "two users": (
        lambda: measured(cast=drift.Cast(user_turns="everyday", dialogs="logs.jsonl")),
        "dialogs='logs.jsonl' and user_turns='everyday'",
    ),
    "a user prompt beside scripts": (
        lambda: measured(settings=drift.Settings(rounds=2, user_prompt="suite")),
        "user_prompt='suite' is for a user model",
    ),
    "recall without a measure": (
        lambda: measured(settings=drift.Settings(rounds=2, conversations=1, recall=True)),
        "leave out recall",
    ),
    "a slide without a window": (lambda: drift.Settings(context="slide"), "context='slide'"),
    "code as a measure": (lambda: holdfast.measures.build({"python": "a.b"}), "allow_code=True"),
    "a reply as a function": (
        lambda: holdfast.from_function(bot([]), "bot"),
        "give the function itself",
    ),
    "a name as an address": (lambda: holdfast.connect("gpt-4o"), "'gpt-4o' is not the web address"),
    "an address as a client": (lambda: holdfast.wrap("http://a/v1", suite="bots"), "not a str"),
    "a text as a chat": (lambda: model().generate("Hello!"), "not a list of messages"),
    "max_tokens": (lambda: model().generate(CHAT, max_tokens=9), "did you mean 'max_new_tokens'?"),
    "a class as a method": (lambda: model().generate(CHAT, holdfast.Boost), "as in Boost(...)"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_call_says_what_to_give(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call, words = WRONG[name]
    with pytest.raises(UsageError) as caught:
        call()
    message = str(caught.value)
    assert words in message and "\n" not in message, message
    assert "--" not in message.replace("--force-judge", ""), message


def test_a_suite_without_starters_takes_those_that_suit_any_prompt(tmp_path):
    plain = drift.Suite("polite", (case(),))
    (tmp_path / "bot.yaml").write_text(
        "cases: [{id: a, system_prompt: x, probe: Hi?, measure: one_word}]"
    )
    assert plain.starters == drift.load_suite(tmp_path / "bot.yaml").starters


def test_a_misspelt_name_is_suggested():
    process = subprocess.run(
        [sys.executable, "-c", "import holdfast; holdfast.read_runs"],
        capture_output=True,
        text=True,
    )
    assert "Did you mean: 'read_run'?" in process.stderr


def test_a_check_takes_the_name_of_a_suite(tmp_path):
    terms = study.Terms(budget=4)
    settings = drift.Settings(rounds=2)
    options = study.CheckOptions(cast=SCRIPTED)
    checked = study.check(model(), Path("luna"), tmp_path / "run", settings, terms, options)
    assert [prompt.id for prompt in checked.checks] == [
        case.id for case in drift.load_suite("luna").cases
    ]
