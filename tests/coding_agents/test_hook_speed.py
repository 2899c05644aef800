"""A hook answers in a fraction of a second, whatever the session, the rules and the commands."""

import json
import os
import subprocess
import sys
import time

import pytest
from agent_sessions import bash
from fast_set import only_fast
from hook_sessions import (
    BE_BRIEF,
    FORCE_PUSH,
    NO_FORCE_PUSH,
    RULES,
    THREE_SENTENCES,
    claude_turn,
)
from paths import ROOT

from holdfast.errors import UsageError
from holdfast.measures import build
from holdfast.measures.patterns import limit_search_time
from holdfast.measures.registry import REGISTRY
from holdfast.measures.turns import AssistantTurn, ToolCall

# Imports


def test_a_hook_imports_nothing_that_takes_long(rules, session):
    """Once its suite was checked, it does without Pydantic and YAML."""
    session.append(*claude_turn(1, "Done."))
    assert session.hook("UserPromptSubmit") == []
    session.append(*claude_turn(2, THREE_SENTENCES, FORCE_PUSH))
    payload = {"hook_event_name": "UserPromptSubmit", "transcript_path": str(session.log)}
    script = "import sys; from holdfast.cli import main; main(); print(*sorted(sys.modules))"
    words = ["-c", script, "remind", "--suite", str(rules)]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    piped = {"input": json.dumps(payload), "capture_output": True, "text": True, "env": env}
    job = subprocess.run([sys.executable, *words], **piped)
    answer, imported = job.stdout.splitlines()
    assert BE_BRIEF in answer and NO_FORCE_PUSH in answer
    imported = set(imported.split())
    assert {"holdfast.coding_agents.reminding", "holdfast.measures", "regex"} <= imported
    heavy = {"torch", "transformers", "numpy", "pandas", "scipy", "matplotlib", "jinja2", "asyncio"}
    heavy |= {"openai", "tqdm", "holdfast.records", "holdfast.methods", "holdfast.report"}
    assert not imported & (heavy | {"pydantic", "yaml"})


LEXICONS = ("py3langid", "wordfreq", "lemminflect", "vaderSentiment", "numpy")


def test_measures_load_lexicons_only_if_they_say_so(tmp_path):
    """Each is scored in a process of its own, on a text that gives all of them work."""
    script = f"""
import os, sys, typing
from holdfast.measures import build
from holdfast.measures.registry import REGISTRY
from holdfast.measures.turns import AssistantTurn, ToolCall
TEXT = "The dogs walked to the shop (les chiens dorment) yesterday, and 3 cats ran!"
for name, entry in REGISTRY.items():
    if entry.of_turn:
        continue
    given = {{
        key: field.examples[0] if field.examples else typing.get_args(field.annotation)[0]
        for key, field in entry.arguments.items() if field.is_required()
    }}
    measure = build({{"name": name, **given}})
    if measure.loads or "{"{"}" in str(given.get("measure", "")):
        continue
    child = os.fork()
    if not child:
        measure.score(TEXT); measure.score(TEXT.upper()); measure.score(TEXT.lower())
        loaded = set({LEXICONS!r}) & set(sys.modules)
        if loaded:
            print(name, *loaded, flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""
    job = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert job.stdout == ""
    assert sum(entry.loads for entry in REGISTRY.values()) > 10


# Searches that would take long

SLOW_PATTERN = "(a|aa)+$"


def test_a_pattern_that_would_run_for_ages_is_stopped_and_the_others_are_judged(rules, session):
    rules.write_text(
        RULES + f"      - {{id: slow, text: Slowly., measure: {{regex: '{SLOW_PATTERN}'}}}}\n"
        f"      - {{id: slower, text: Slower., when: {{reply: '{SLOW_PATTERN}'}},"
        " measure: {name: at_most_sentences, count: 1}}\n"
    )
    session.append(*claude_turn(1, f"{THREE_SENTENCES} {'a' * 5000}b"))
    started = time.process_time()
    assert session.hook("UserPromptSubmit") == [BE_BRIEF]
    assert time.process_time() - started < 2
    lines = session.errors.splitlines()
    assert len(lines) == 2 and "'slow'" in lines[0] and "'slower'" in lines[1]
    assert session.hook("UserPromptSubmit", "--strict", code=2) == []


def test_the_limit_of_searches_is_not_used_up_by_other_work(rules, session):
    rules.write_text(
        "cases: [{id: tests, system_prompt: Test., text: Run the tests before a commit.,"
        " measure: {name: runs_before, first: make test, then: git commit}}]"
    )
    commands = [bash(f"t{n}", f"cd part_{n} && sed -n 1,{n}p a.py | head") for n in range(2000)]
    session.append(*claude_turn(1, "Done.", *commands))
    assert session.hook("UserPromptSubmit", "--strict") == []
    session.append(*claude_turn(2, "Done.", bash("last", "git commit -m x")))
    assert session.hook("UserPromptSubmit", "--strict") == ["Run the tests before a commit."]


def test_searches_have_a_limit_together():
    measure = build({"regex": SLOW_PATTERN})
    started = time.process_time()
    with limit_search_time(0.05), pytest.raises(UsageError):
        measure.score("a" * 5000 + "b")
    with limit_search_time(0), pytest.raises(UsageError):
        measure.score("b")
    assert time.process_time() - started < 1
    assert measure.score("b").value == 0  # as before


SLOW_SCRIPTS = ["(" * 50_000, "a " * 50_000, "$(" * 5000, '"' * 50_001, "\0" * 50_000]
SLOW_SCRIPTS += ["a|" * 50_000, "A=aaaaaaaaaa;" + "A=$A$A;" * 40 + "echo $A"]


@pytest.mark.parametrize("script", only_fast(SLOW_SCRIPTS, *SLOW_SCRIPTS[:5], SLOW_SCRIPTS[6]))
def test_a_script_that_no_shell_could_run_is_judged_at_once(script):
    started = time.process_time()
    measure = build({"name": "command_not_run", "command": "git push"})
    measure.score_turn(AssistantTurn("", (ToolCall("Bash", {"command": script}),)))
    assert time.process_time() - started < 5


def test_what_takes_too_long_otherwise_is_given_up(rules, session, monkeypatch):
    monkeypatch.setattr("holdfast.coding_agents.hook_command._MAX_SECONDS", 0.5)
    rules.write_text("cases: [{id: a, system_prompt: Go., measure: {python: my_loop.loop}}]")
    (rules.parent / "my_loop.py").write_text("def loop(text):\n    while True:\n        pass\n")
    session.append(*claude_turn(1, THREE_SENTENCES))
    assert session.hook("UserPromptSubmit", "--allow-code") == []
    assert "gave up" in session.errors and "'a'" not in session.errors  # it is no failure of code
