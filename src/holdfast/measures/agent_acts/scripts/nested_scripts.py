"""The scripts that the commands of a script run.

For example:

    bash -c "git push"                       ->  git push
    push() { git push "$1"; }; push main     ->  git push "$1", with "1" as main
    make deploy, if Makefile was written     ->  the lines of its target `deploy`
    python3 -c "os.system('git push')"       ->  git push
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.measures.agent_acts.commands.command_wrappers import runs_elsewhere
from holdfast.measures.agent_acts.commands.git_aliases import script_of_alias
from holdfast.measures.agent_acts.commands.inner_scripts import (
    POWERSHELLS,
    SHELLS,
    checks_syntax,
    script_in,
)
from holdfast.measures.agent_acts.commands.run_targets import script_of_target
from holdfast.measures.agent_acts.commands.shell_commands import ShellCommand
from holdfast.measures.agent_acts.programs.program_effects import ProgramEffects
from holdfast.measures.agent_acts.programs.program_texts import file_run_by, read_program
from holdfast.measures.agent_acts.scripts.fish_scripts import bash_of_fish
from holdfast.measures.agent_acts.scripts.powershell_scripts import bash_of_powershell
from holdfast.measures.agent_acts.scripts.shell_state import ShellState

_RUN_IN_THE_SAME_SHELL = ("eval", "trap")
_SOURCING = (".", "source")
_RETURNING_SHELLS = ("sh", "dash", "ash", "ksh", "zsh", "fish")  # `return` ends a script of theirs


@dataclass(frozen=True)
class NestedScript:
    """A script that a command runs.

    Args:
        text: in Bash; None if the command runs no script, or one that is not known.
        state: of the shell in which it begins.
        is_same_shell: whether the shell of the command runs it, so that a `cd` in it lasts.
        is_function: whether it is the body of a function.
    """

    text: str | None
    state: ShellState
    is_same_shell: bool = False
    is_function: bool = False


# --- Scripts in the words or the input of a command


def script_in_command(
    command: ShellCommand, words: Sequence[str], shell: ShellState
) -> NestedScript | None:
    """Returns the script in the words or the input of a command, or that of a function or an alias.

    None for any other command.

    Args:
        words: of the command, without redirections.
    """
    innermost = command.innermost if len(command.readings) > 1 else tuple(words)
    text = script_in(innermost, command.input)
    if text is not None:
        return _script_for_shell(text, innermost, shell)
    called = innermost if words[0] == "time" else words
    if body := shell.functions.get(called[0]):
        state = shell.inside(called[1:], without=called[0], returns=True)
        return NestedScript(body, state, is_same_shell=True, is_function=True)
    if alias := shell.aliases.get(words[0]):
        text = " ".join([alias, *map(shlex.quote, words[1:])])
        return NestedScript(text, shell.inside(without=words[0]), is_same_shell=True)
    return None


def _script_for_shell(text: str, words: Sequence[str], shell: ShellState) -> NestedScript:
    """Returns the script of a command such as `bash -c SCRIPT` or `eval SCRIPT`."""
    text = _as_bash(text, words[0])
    is_same_shell = words[0] in _RUN_IN_THE_SAME_SHELL
    state = shell.inside(
        _arguments_after(text, words),
        is_new=not is_same_shell,
        returns=None if is_same_shell else words[0] in _RETURNING_SHELLS,
    )
    return NestedScript(text, state, is_same_shell)


def _as_bash(script: str, program: str) -> str:
    """Returns a script in the language of a shell as Bash."""
    name = program.rpartition("/")[2].lower()
    if name in POWERSHELLS:
        return bash_of_powershell(script)
    return bash_of_fish(script) if name == "fish" else script


def _arguments_after(script: str, words: Sequence[str]) -> Sequence[str] | None:
    """Returns the arguments of a script such as that of `bash -c SCRIPT NAME ARGUMENT`.

    None if these are not written there.
    """
    if words[0] not in SHELLS or script not in words:
        return None
    return words[words.index(script) + 2 :]


# --- Programs in another language


@dataclass(frozen=True)
class RunProgram:
    """A program in Python, JavaScript or the like that a command runs, and its arguments."""

    effects: ProgramEffects
    arguments: Sequence[str]


def program_run_by(command: ShellCommand, shell: ShellState) -> RunProgram:
    """Returns the program that a command runs; one without effects for any other command."""
    words = command.arguments
    if file := file_run_by(words):
        return RunProgram(read_program(words[:1], shell.read_file(file)), ())
    return RunProgram(read_program(words, command.input), words[1:])


def with_edits_of(program: RunProgram, command: ShellCommand, shell: ShellState) -> ShellCommand:
    """Returns a command with the edits of its program, whose files the shell then knows."""
    if any(runs_elsewhere(reading.words) for reading in command.readings):
        return command
    for edit in program.effects.edits:
        is_known = edit.is_shown and edit.is_whole
        shell.write_file(edit.path, "\n".join(edit.added) if is_known else None)
    return replace(command, edits=tuple(program.effects.edits))


# --- Scripts that a program or a name stands for


def script_behind(
    command: ShellCommand, words: Sequence[str], program: RunProgram, shell: ShellState
) -> NestedScript:
    """Returns the script that the program of a command runs, or that its name stands for.

    Args:
        words: of the command, without redirections.
    """
    is_same_shell = words[0] in _SOURCING
    text = "\n".join(program.effects.scripts) or _script_of_name(command, shell)
    state = shell.inside(
        program.arguments,
        is_new=not is_same_shell,
        returns=is_same_shell or words[0] in _RETURNING_SHELLS,
    )
    return NestedScript(text, state, is_same_shell)


def _script_of_name(command: ShellCommand, shell: ShellState) -> str | None:
    """Returns the script that the name of a command stands for; None for other commands.

    It is that of an alias of Git, of a target, or of a file that was written before.
    """
    for reading in command.readings:
        if script := script_of_alias(reading.words, shell.git_aliases):
            return script
    program = command.arguments[0]
    with_program = [r.words for r in command.readings if r.words[0] == program]
    # the longest reading has the options that say where it runs, such as `make -C app`
    whole = max(with_program, key=len, default=command.arguments)
    if script := script_of_target(whole, shell.files, command.input, shell.folder):
        return script
    return _script_of_file(command, shell)


def _script_of_file(command: ShellCommand, shell: ShellState) -> str | None:
    """Returns the script in the file that a command runs, as `./a.sh`, `a.sh` or `bash a` does.

    None for a file that is not known, and for one that a shell only checks.
    """
    shells = (reading.words for reading in command.readings if reading.words[0] in SHELLS)
    if any(map(checks_syntax, shells)):
        return None
    first = command.words[0]
    if "." not in command.arguments[0] and "/" not in first and first not in SHELLS:
        return None
    for reading in command.readings:
        text = shell.read_file(reading.words[0])
        if text is None:
            continue
        interpreter = _interpreter_of(text)
        if "sh" not in interpreter:
            return "\n".join(read_program((interpreter,), text).scripts) or None
        return _as_bash(text, interpreter)
    return None


def _interpreter_of(text: str) -> str:
    """Returns the program that the first line of a script names: `bash` for `#!/usr/bin/env bash`.

    `sh` if it names none.
    """
    first = text.split("\n", 1)[0]
    words = first.removeprefix("#!").split() if first.startswith("#!") else []
    names = [word.rpartition("/")[2] for word in words if not word.startswith("-")]
    return next((name for name in names if name and name != "env"), "sh")


# --- The commands of a nested script


def with_nested_commands(
    command: ShellCommand, script: NestedScript, nested: Sequence[ShellCommand]
) -> list[ShellCommand]:
    """Returns the commands of the script that a command runs; if there are none, the command.

    The first of them stands for the command too.
    """
    programs = command.readings if nested else command.readings[:-1]
    is_elsewhere = any(runs_elsewhere(reading.words) for reading in programs)
    command = replace(command, is_elsewhere=is_elsewhere)
    if not nested:
        return [command]
    if is_elsewhere:
        nested = [replace(part, is_elsewhere=True, writes=(), edits=()) for part in nested]
    if not script.is_same_shell:
        nested = [replace(part, subshells=(0, *part.subshells)) for part in nested]
    outer = command.readings[-1]
    left_out = outer.without | {outer.words[0].rpartition("/")[2]}
    first, *others = (part.leaving_out(left_out) for part in nested)
    # a function stands for its body: `git` may be one that only prints what it would run
    outer_readings = () if script.is_function else command.readings
    first = replace(
        first,
        writes=(*first.writes, *command.writes),
        edits=(*first.edits, *command.edits),
        around=(*outer_readings, *first.around),
    )
    return [first, *others]
