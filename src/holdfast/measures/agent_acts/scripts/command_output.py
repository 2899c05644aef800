"""The output of commands, as far as the script shows it, and the files that it goes to.

For example:

    echo 'git push' > s.sh    ->  s.sh has the text "git push"
    printf '%s\\n' a b         ->  "a\\nb\\n"
    date > log                ->  the text of log is not known
"""

import re
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.measures.agent_acts.scripts.command_parts import CommandParts
from holdfast.measures.agent_acts.scripts.shell_state import ShellState
from holdfast.measures.agent_acts.scripts.shell_words import words_of

if TYPE_CHECKING:
    from tree_sitter import Node

_ECHO_OPTION = re.compile("-[neE]+")
_FORMAT_FIELD = re.compile("%[-0-9.]*[sbdq]")  # of `printf`: %s, %-10s
# arguments of `echo` whose text is not known: substitutions, and a variable at the end
_UNKNOWN_TEXT = re.compile(r"\$\(|`|\$\{?\w+\}?\Z")
# commands that change the files which they name, in a way that is not read
_CHANGES_FILES = ("rm", "ln", "install", "truncate", "dd", "patch", "curl", "wget")
_IN_PLACE_EDITORS = ("sed", "perl")  # which change files with `-i` only
_IN_PLACE = re.compile("-[a-z0-9]*i")
_GIT_CHANGES_FILES = frozenset(("checkout", "restore", "reset", "stash"))


def known_output(words: Sequence[str], from_input: str | None) -> str | None:
    """Returns the output of `echo`, `printf`, `cat` or `tee`; None if the script does not show it.

    Args:
        words: the command.
        from_input: the text of its input; None if that is not known.
    """
    match list(words):
        case ["tee", *_]:
            return from_input
        case ["cat", *files] if set(files) <= {"-"}:
            return from_input
        case ["echo", *arguments]:
            return _echoed(arguments)
        case ["printf", *arguments] if not any(map(_UNKNOWN_TEXT.search, arguments)):
            return _formatted(arguments).replace("\\n", "\n").replace("\\t", "\t")
    return None


def _echoed(arguments: list[str]) -> str | None:
    options = ""
    while arguments and _ECHO_OPTION.fullmatch(arguments[0]):
        options += arguments.pop(0)
    if any(map(_UNKNOWN_TEXT.search, arguments)):
        return None
    text = " ".join(arguments).replace("\\n", "\n")
    return text.replace("\\t", "\t") if "e" in options else text


def _formatted(arguments: Sequence[str]) -> str:
    """Returns the output of `printf`, which repeats its format until all arguments are used."""
    if not arguments or (len(arguments) > 1 and not _FORMAT_FIELD.search(arguments[0])):
        return "\n".join(arguments)
    form = arguments[0]
    values = deque(arguments[1:])
    text = _FORMAT_FIELD.sub(lambda _: values.popleft() if values else "", form)
    while values:
        text += _FORMAT_FIELD.sub(lambda _: values.popleft() if values else "", form)
    return text.replace("%%", "%")


def group_output(last: "Node", shell: ShellState) -> str | None:
    """Returns the output of `{ echo a; echo b; }`, whose last command is given.

    None if it is not known.
    """
    group = last.parent
    if group is None or group.type not in ("compound_statement", "subshell"):
        return None
    lines: list[str] = []
    for child in group.named_children:
        if child.type != "command":
            return None
        words = [word for part in child.children for word in words_of(part, shell)]
        output = known_output(words, None)
        if output is None:
            return None
        lines.append(output)
    return "\n".join(lines)


# --- The texts of files


def note_written_files(command: CommandParts, from_input: str | None, shell: ShellState) -> None:
    """Takes note of the texts of the files that a command writes or changes.

    Args:
        from_input: the text of its input; None if that is not known.
    """
    words = command.words
    output = known_output(words, from_input) if command.writes else None
    for path in command.writes:
        is_added = command.appends and output is not None
        before = shell.read_file(path) if is_added else None
        shell.write_file(path, output if not before else f"{before}\n{output}")
    if from_input is not None and words[0] == "tee":
        for path in words[1:]:
            shell.write_file(path, from_input)
    elif shell.files:
        _note_changed_files(words, shell)


def _note_changed_files(words: Sequence[str], shell: ShellState) -> None:
    """Takes note of what a command does to files whose texts are known."""
    program = words[0]
    paths = [word for word in words[1:] if not word.startswith("-")]
    if program in ("cp", "mv") and len(paths) == 2:
        source, target = paths
        shell.write_file(target, shell.read_file(source))
        if program == "mv":
            shell.write_file(source, None)
    elif _changes_files(words):
        for path in paths:
            shell.write_file(path, None)


def _changes_files(words: Sequence[str]) -> bool:
    """Whether a command changes the files that it names."""
    if words[0] in _IN_PLACE_EDITORS:
        return any(map(_IN_PLACE.match, words[1:]))
    if words[0] == "git":
        return not _GIT_CHANGES_FILES.isdisjoint(words[1:2])
    return words[0] in _CHANGES_FILES
