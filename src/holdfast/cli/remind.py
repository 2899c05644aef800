"""`holdfast remind`: a hook of a coding agent, called after every message and every tool.

It has a fifth of a second, so that what it imports matters: `tests/test_remind.py` holds that.
"""

import json
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

from holdfast.cli.command import Arg, Command, Options
from holdfast.cli.progress import note
from holdfast.errors import HoldfastError, UsageError

_LONGEST = 2.0  # seconds, after which it gives up

EXAMPLES = """examples:
  holdfast remind --suite rules.yaml --install  # show the lines for the settings of agents
  holdfast remind --suite rules.yaml --install --agent claude-code --yes  # write them

Exit codes:
  0  success; also if the input, the session or the suite cannot be read, unless --strict is given
  1  the command line is malformed, or the hooks cannot be written
  2  with --strict, one of them cannot be read, which blocks the agent; --install was refused"""


class RemindArguments(Options):
    suite: Annotated[str, Arg("FILE.yaml")]
    """the rules; a suite of one case, whose rules need neither probes nor judges"""
    allow_code: bool = False
    """allow the suite to use Python functions as measures"""
    strict: bool = False
    """fail if the input, the session or the suite cannot be read, which blocks the agent"""
    install: bool = False
    """show the lines for the settings of coding agents, in place of answering a hook"""
    agent: Annotated[
        list[str] | None, Arg(choices=("claude-code", "codex", "gemini-cli"), metavar="NAME")
    ] = None
    """with --install: claude-code, codex or gemini-cli; repeatable (default: all three)"""
    settings: Annotated[Path | None, Arg("FILE.json")] = None
    """with --install: the settings file (default: that of the project in this folder)"""
    yes: bool = False
    """with --install: write the lines into the settings of the agents named by --agent"""


def _run(arguments: RemindArguments) -> int:
    if arguments.install:
        return _install(arguments)
    for name in ("agent", "settings", "yes"):
        if not arguments.is_default(name):
            raise UsageError(f"--{name} goes with --install; add it.", option=name)
    if sys.stdin.isatty():
        raise UsageError(
            "`holdfast remind` answers the hook of a coding agent, whose JSON it reads from"
            " standard input; see `holdfast remind --suite rules.yaml --install`."
        )
    try:
        _answer(arguments)
    except HoldfastError as error:
        if arguments.strict:
            raise UsageError(str(error), value=error.value, allowed=error.allowed) from error
        note(str(error))
    return 0


def _answer(arguments: RemindArguments) -> None:
    """Prints the answer to a hook, if there is one."""
    from holdfast.coding_agents.hook_input import read_hook_input
    from holdfast.coding_agents.hook_rules import load_hook_rules
    from holdfast.coding_agents.reminding import answer_hook
    from holdfast.coding_agents.session_state import state_file, states_folder

    with _giving_up_after(_LONGEST):
        hook = read_hook_input(sys.stdin.buffer.read().decode("utf-8", "replace"))
        rules = load_hook_rules(arguments.suite, arguments.allow_code)
        path = hook.transcript
        file = state_file(states_folder(), path, arguments.suite) if path else None
        answer = answer_hook(hook, rules, file)
    if answer.output:
        print(answer.output)
    if answer.problems and arguments.strict:
        raise UsageError(answer.problems[0])
    for problem in answer.problems:
        note(problem)


@contextmanager
def _giving_up_after(seconds: float) -> Iterator[None]:
    """Ends what takes too long, where the system has timers: no text may hold up an agent.

    The user's regular expressions have limits of their own; this is for everything else.
    """
    if not hasattr(signal, "setitimer"):
        yield
        return

    def give_up(*_: object) -> NoReturn:
        raise HoldfastError(f"`holdfast remind` took more than {seconds:g} s, and gave up.")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _install(arguments: RemindArguments) -> int:
    """Shows the settings that call this command, or writes them."""
    from holdfast.coding_agents.hook_rules import load_hook_rules
    from holdfast.coding_agents.settings_files import AGENTS, install, program, settings_of

    load_hook_rules(arguments.suite, arguments.allow_code, check=True)  # refuses one that fails
    if arguments.yes and not arguments.agent:
        raise UsageError(
            "--yes needs --agent; name the agents whose settings are to be written.",
            option="agent",
            allowed=tuple(AGENTS),
        )
    agents = [AGENTS[name] for name in dict.fromkeys(arguments.agent or AGENTS)]
    if arguments.settings and len(agents) > 1:
        raise UsageError("--settings is the file of one agent; name it with --agent.")
    suite = Path(arguments.suite)
    words = [*program(), "remind", "--suite", str(suite.resolve() if suite.exists() else suite)]
    words += ["--allow-code"] * arguments.allow_code + ["--strict"] * arguments.strict
    command = shlex.join(words)
    for agent in agents:
        file = arguments.settings or agent.settings
        if arguments.yes:
            added = install(agent, command, file)
            events = f"has the hooks {', '.join(added)} now" if added else "had these hooks already"
            print(f"{file} {events}.")
        else:
            print(f"{agent.name}, {file}:")
            print(json.dumps(settings_of(agent, command), indent=2))
    if not arguments.yes:
        print("Nothing was written; --agent NAME --yes adds these lines to the file.")
    if any(agent.name == "codex" for agent in agents):
        print("Codex runs a hook once it is trusted: open /hooks in Codex.")
    return 0


COMMAND = Command(
    "remind",
    "remind a coding agent of the rules that it just broke",
    _run,
    RemindArguments,
    description=(
        "A hook for Claude Code, Codex and Gemini CLI: reads the hook's JSON on standard input and"
        " the session that it names, and prints the rules that were just broken, or all after a"
        " compaction, in the form that these agents hand on to the model. No model is needed."
    ),
    examples=EXAMPLES,
    malformed=1,  # agents take 2 as a block
)
