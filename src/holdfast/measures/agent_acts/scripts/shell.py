"""Finds the commands that a shell script runs, also in other commands, loops and substitutions.

    cd app && sudo git push  ->  `cd app`; `sudo git push`, which is also read as `git push`
    bash -c "make test"      ->  `make test`

The script is parsed as Bash, not run. Variables have the values that the script gives them, if it
gives any. A command counts even if the condition of its `if` may not hold, but not if it cannot
hold, as `false` cannot.
"""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.measures.agent_acts.commands.command_readings import readings_of
from holdfast.measures.agent_acts.commands.shell_commands import Reading, ShellCommand
from holdfast.measures.agent_acts.scripts.bash_syntax import (
    DEFINITIONS,
    parse_bash,
    redirect_nodes_in,
    statements_in,
)
from holdfast.measures.agent_acts.scripts.command_input import input_of, with_texts_of_files
from holdfast.measures.agent_acts.scripts.command_output import group_output, note_written_files
from holdfast.measures.agent_acts.scripts.command_parts import CommandParts, parts_of
from holdfast.measures.agent_acts.scripts.grammar_gaps import (
    backticks_in,
    commands_without_parser,
    with_here_strings,
)
from holdfast.measures.agent_acts.scripts.nested_scripts import (
    program_run_by,
    script_behind,
    script_in_command,
    with_edits_of,
    with_nested_commands,
)
from holdfast.measures.agent_acts.scripts.shell_definitions import MAX_LISTED, define, note_aliases
from holdfast.measures.agent_acts.scripts.shell_state import ShellState
from holdfast.measures.agent_acts.scripts.unreachable_code import unreachable_nodes

if TYPE_CHECKING:
    from tree_sitter import Node

# A text with more is no script; parsing is quadratic if no command follows the last pipe.
_MAX_PIPES = 10_000
_REMOVES_TRAP = re.compile(r"trap (?:-- )?(?:- |''|\"\")")  # trap - EXIT
_LIST_VARIABLE = re.compile(r'"?\$\{?(?P<name>\w+)\}?"?(?=\s|\Z)')  # $c, "${c}"
_UNKNOWN_FOLDER = re.compile("[-~$`]")  # how a folder begins that is not known
_SAME_SHELL = ("eval", ".", "source")  # what their scripts define lasts


def read_script(
    script: str, files: Sequence[tuple[str, str]] = (), folder: str = ""
) -> list[ShellCommand]:
    """Returns the commands of a script, in the order in which they end.

    Args:
        files: the paths and texts of files that were written before, which it may run.
        folder: the absolute path of the folder that it begins in; "" if that is not known.
    """
    return _read(script, ShellState(files=dict(files), folder=folder))


def _read(script: str, shell: ShellState) -> list[ShellCommand]:
    """Returns the commands of a script that begins in a state, which it changes."""
    script = with_here_strings(script.replace("\0", ""))  # as Bash does
    source = script.encode("utf-8", "replace")
    if source.count(b"|") > _MAX_PIPES:
        return list(commands_without_parser(script))
    shell.source = source
    root = parse_bash(source)
    commands = _read_statements(root, shell)
    if root.has_error:  # an unclosed quote, or no Bash: adds the commands that the parser skipped
        parsed = {command.words for command in commands}
        others = commands_without_parser(script)
        commands += [command for command in others if command.words not in parsed]
    return commands


def _read_statements(root: "Node", shell: ShellState) -> list[ShellCommand]:
    """Returns the commands of a parsed script; those of a `trap` run last."""
    commands: list[ShellCommand] = []
    at_exit: list[ShellCommand] = []
    folders: dict[tuple[int, ...], str] = {(): shell.folder}  # of each subshell
    unreachable = unreachable_nodes(root, returns=shell.returns)
    redirects = redirect_nodes_in(root, unreachable)
    for statement in statements_in(root, unreachable):
        node = statement.node
        if node.type in DEFINITIONS:
            define(node, shell)
            continue
        text = shell.text(node)
        if _REMOVES_TRAP.match(text):
            at_exit.clear()
            continue
        shell.folder = _folder_in(statement.subshells, folders)
        run_here = _commands_at(node, redirects.by_command.get(node.id, []), shell)
        if node.id in redirects.last_in_groups:
            output = group_output(node, shell)
            run_here = [replace(c, is_in_group=True, group_output=output) for c in run_here]
        collected = at_exit if text.startswith("trap ") else commands
        collected += [_in_subshells(command, node, statement.subshells) for command in run_here]
        folders[statement.subshells] = shell.folder
    return commands + at_exit


def _folder_in(subshells: tuple[int, ...], folders: dict[tuple[int, ...], str]) -> str:
    """Returns the folder of a subshell, which begins in that of the shell around it."""
    while subshells not in folders:
        subshells = subshells[:-1]
    return folders[subshells]


def _in_subshells(command: ShellCommand, node: "Node", subshells: tuple[int, ...]) -> ShellCommand:
    """Returns a command at a node with the subshells around it; a script in it is one more."""
    if command.subshells:
        subshells = (*subshells, node.start_byte)
    return replace(command, subshells=(*subshells, *command.subshells))


def _commands_at(node: "Node", outer: Sequence["Node"], shell: ShellState) -> list[ShellCommand]:
    """Returns the command at a node, or the commands of the script that it runs; [] for none.

    Args:
        outer: the redirections that the grammar puts around the node.
    """
    if looped := _with_each_value(shell.text(node), shell):
        return _read_nested(looped, shell.inside())
    parts = parts_of(node, outer, shell)
    if not parts.words:
        return []
    text_read = input_of(node, parts, shell)
    note_written_files(parts, text_read, shell)
    words = parts.words
    if words[0] == "xargs" and text_read and not any(re.match("-[Ii]", word) for word in words):
        words = [*words, *text_read.split()[:MAX_LISTED]]
    words = list(with_texts_of_files(words, text_read, shell))
    note_aliases(words, shell)
    _change_folder(words, shell)
    backticks = "\n".join(backticks_in(parts.redirect_nodes, shell))
    substituted = _read_nested(backticks, shell.inside()) if backticks else []
    return [*substituted, *_run(_command_of(parts, words, text_read), words, shell)]


def _command_of(parts: CommandParts, words: Sequence[str], text_read: str | None) -> ShellCommand:
    """Returns a command as it is written, with these words in place of those of the script."""
    reading = Reading((*words, *parts.redirections))
    with_assignments = Reading((*parts.assignments, *reading.words))
    return ShellCommand(
        (reading,),
        parts.writes,
        around=(with_assignments,) if parts.assignments else (),
        input=text_read,
        redirections=parts.redirections,
        source=parts.source,
    )


def _with_each_value(command: str, shell: ShellState) -> str | None:
    """Returns a script that runs each value of the list that a command begins with.

    `git push; git pull` for `$c` in `for c in "git push" "git pull"; do $c; done`

    None for other commands, and for values that are single words.
    """
    variable = _LIST_VARIABLE.match(command)
    values = shell.lists.get(variable["name"], []) if variable else []
    if variable is None or not any(" " in value for value in values):
        return None
    rest = command[variable.end() :]
    return "\n".join(value + rest for value in values)


def _change_folder(words: Sequence[str], shell: ShellState) -> None:
    if words[0] in ("cd", "pushd") and len(words) == 2 and not _UNKNOWN_FOLDER.match(words[1]):
        shell.folder = posixpath.normpath(posixpath.join(shell.folder, words[1]))


def _run(command: ShellCommand, words: Sequence[str], shell: ShellState) -> list[ShellCommand]:
    """Returns a command with all its readings, or the commands of the script that it runs.

    Args:
        words: of the command, without redirections.
    """
    command = replace(command, readings=readings_of(command.readings[0]))
    script = script_in_command(command, words, shell)
    if script is None:
        program = program_run_by(command, shell)
        command = with_edits_of(program, command, shell)
        script = script_behind(command, words, program, shell)
    nested = _read_nested(script.text, script.state)
    if words[0] in _SAME_SHELL:
        shell.take_over(script.state)
    return with_nested_commands(command, script, nested)


def _read_nested(script: str | None, state: ShellState) -> list[ShellCommand]:
    """Returns the commands of a script within another; [] for none, or for too many."""
    if not script or not state.take_from_budget(script):
        return []
    return _read(script, state)
