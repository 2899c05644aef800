"""`holdfast remind`: a hook for coding agents, and the settings that install it.

When an agent calls the hook, `main` uses `coding_agents/hook_command.py` directly, which imports
less than this module.
"""

import contextlib
import io
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from holdfast.cli.shared.command import Arg, Command, Options
from holdfast.cli.shared.json_output import write_document
from holdfast.cli.shared.notes import naming_new_folders
from holdfast.coding_agents.settings_files import (
    AGENTS,
    CodingAgent,
    format_settings,
    hook_settings,
    install,
    start_command,
)
from holdfast.errors import UsageError

EXAMPLES = """examples:
  holdfast remind --suite rules.yaml --install  # show the lines for the agent that you use here
  holdfast remind --suite rules.yaml --install --agent claude-code --yes  # write them

Exit codes:
  0  success; without --strict, also if the input, the session or the suite cannot be read
  1  the command line is malformed, or the hooks cannot be written
  2  with --strict, one of these cannot be read, which blocks the agent; or --install is refused"""


class RemindArguments(Options):
    suite: Annotated[str, Arg("FILE.yaml")]
    """the rules: a suite with one case, whose rules need neither probes nor judges"""
    allow_code: bool = False
    """allow the suite to use Python functions as measures"""
    strict: bool = False
    """fail if the input, the session or the suite cannot be read, which blocks the agent"""
    install: bool = False
    """show the lines for the settings of coding agents, instead of answering a hook"""
    agent: Annotated[
        list[str] | None, Arg(choices=("claude-code", "codex", "gemini-cli"), metavar="NAME")
    ] = None
    """with --install: claude-code, codex or gemini-cli; repeatable (default: those that are
    installed or have settings in this folder)"""
    settings: Annotated[Path | None, Arg("FILE.json")] = None
    """with --install: the settings file (default: that of the project in this folder)"""
    yes: bool = False
    """with --install: write the lines into the settings of the agents named by --agent"""


def _run(arguments: RemindArguments) -> int:
    if arguments.install:
        return _install(arguments)
    for name in ("agent", "settings", "yes"):
        if not arguments.is_default(name):
            raise UsageError(f"--{name} has no effect without --install; add it.", option=name)
    from holdfast.coding_agents.hook_command import HookCall, answer_on_stdin

    answer = io.StringIO()
    with contextlib.redirect_stdout(answer):
        code = answer_on_stdin(HookCall(arguments.suite, arguments.allow_code, arguments.strict))
    print(answer.getvalue(), end="")
    if not code:  # the answer is empty if no rule was broken
        write_document(json.loads(answer.getvalue() or "{}"))
    return code


def _install(arguments: RemindArguments) -> int:
    """Shows the settings that call this command, or writes them."""
    from holdfast.coding_agents.hook_rules import load_hook_rules

    load_hook_rules(arguments.suite, arguments.allow_code, check=True)  # refuses one that fails
    agents = _agents(arguments)
    command = _hook_command(arguments)
    hooks = {agent.name: hook_settings(agent, command) for agent in agents}
    written: list[Path] = []
    if arguments.yes:
        for agent in agents:
            file = arguments.settings or agent.settings
            _write_hooks(agent, command, file)
            written.append(file)
    else:
        _show_hooks(agents, hooks, arguments)
    program = start_command()[0]
    if program != "holdfast":
        print(f"The hooks call {program} by its whole path; install them again if you move it.")
    if "codex" in hooks:
        print("Codex runs a hook only once it is trusted: open /hooks in Codex.")
    write_document({"hooks": hooks, "written": written})
    return 0


def _show_hooks(
    agents: Sequence[CodingAgent],
    hooks: Mapping[str, Mapping[str, Any]],
    arguments: RemindArguments,
) -> None:
    """Prints the lines for one agent or those named; of several others, only the events."""
    shows_lines = arguments.agent is not None or len(agents) == 1
    for agent in agents:
        file = arguments.settings or agent.settings
        if shows_lines:
            print(f"{agent.name}, {file}:\n{format_settings(hooks[agent.name])}")
        else:
            print(f"{agent.name}: hooks for {', '.join(agent.events)} in {file}")
    if not shows_lines:
        print("Nothing was written; --agent NAME shows the lines, and with --yes adds them.")
        return
    print("Nothing was written; --agent NAME --yes adds these lines to the file.")
    if others := [name for name in AGENTS if name not in hooks]:
        print(f"For another agent: --agent {' or '.join(others)}.")


def _agents(arguments: RemindArguments) -> list[CodingAgent]:
    """The agents of --agent; without it, those that are used here, or else all."""
    if arguments.yes and not arguments.agent:
        raise UsageError(
            "--yes needs --agent; name the agents whose settings are to be written.",
            option="agent",
            allowed=tuple(AGENTS),
        )
    agents = [AGENTS[name] for name in dict.fromkeys(arguments.agent or ())]
    if not agents:
        agents = [agent for agent in AGENTS.values() if agent.is_used_here] or [*AGENTS.values()]
    if arguments.settings and len(agents) > 1:
        raise UsageError("--settings is the file of one agent; name it with --agent.")
    return agents


def _write_hooks(agent: CodingAgent, command: str, file: Path) -> None:
    """Adds the hooks that an agent's settings lack, and prints which."""
    with naming_new_folders(file):
        added = install(agent, command, file)
    if added:
        print(f"{file} has the hooks {', '.join(added)} now.")
    else:
        print(f"{file} had these hooks already.")


def _hook_command(arguments: RemindArguments) -> str:
    """The command line that the settings of an agent call, from any folder."""
    suite = Path(arguments.suite)
    path = suite.resolve() if suite.exists() else suite
    words = [*start_command(), "remind", "--suite", str(path)]
    if arguments.allow_code:
        words.append("--allow-code")
    if arguments.strict:
        words.append("--strict")
    return shlex.join(words)


COMMAND = Command(
    "remind",
    _run,
    RemindArguments,
    description=(
        "A hook for Claude Code, Codex and Gemini CLI: reads the hook's JSON from standard input"
        " and the session that it names, and prints the rules that were just broken, or after a"
        " compaction all rules, in the form that these agents pass on to the model. No model is"
        " needed."
    ),
    examples=EXAMPLES,
    malformed=1,  # agents take 2 as a block
)
