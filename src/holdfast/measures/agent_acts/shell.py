"""Finds the commands that a shell script runs, also in other commands, loops and substitutions.

    cd app && sudo git push  ->  `cd app`; `sudo git push`, which is also read as `git push`
    bash -c "make test"      ->  `make test`

The script is parsed as Bash, not run. Variables have the values that the script gives them, if it
gives any. A command counts even if the condition of its `if` may not hold, but not if it cannot
hold, as `false` cannot.
"""

import posixpath
import re
import shlex
from collections import deque
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

from holdfast.measures.agent_acts.command_readings import Reading, ShellCommand, readings_of
from holdfast.measures.agent_acts.command_wrappers import runs_elsewhere
from holdfast.measures.agent_acts.fish_scripts import bash_of_fish
from holdfast.measures.agent_acts.git_aliases import (
    alias_defined_by,
    alias_removed_by,
    script_of_alias,
)
from holdfast.measures.agent_acts.inner_scripts import POWERSHELLS, SHELLS, script_in
from holdfast.measures.agent_acts.powershell_scripts import bash_of_powershell
from holdfast.measures.agent_acts.program_effects import ProgramEffects
from holdfast.measures.agent_acts.program_texts import file_run_by, read_program
from holdfast.measures.agent_acts.run_targets import script_of_target
from holdfast.measures.agent_acts.shell_words import (
    MAX_LISTED,
    ShellState,
    assign,
    document_text,
    words_of,
)
from holdfast.measures.agent_acts.unreachable_code import unreachable_nodes

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

_CHARACTERS_OF_INNER_SCRIPT = 100  # a longer one counts as several
_MAX_DEPTH = 8  # of scripts within scripts, as in bash -c "bash -c ..."
# A text with more is no script; parsing is quadratic if no command follows the last pipe.
_MAX_PIPES = 10_000
_COMMANDS = ("command", "declaration_command", "unset_command", "test_command")
_SUBSHELLS = ("subshell", "command_substitution", "process_substitution")
_MAX_SUBSHELLS = 20  # that are told apart, one in another
_GROUPS = ("compound_statement", "subshell", "for_statement", "while_statement", "if_statement")
# options whose argument is a file with a text, such as a commit's message or a pull request's body
_TEXT_FILES = ("-F", "--file", "--body-file", "--notes-file", "--template")
# words of commands that read what is piped into them
_READ_INPUT = frozenset(
    (
        *("tee", "-", "--file=-", "--body-file=-", "apply", "patch", "ssh", "su", "sudo", "xargs"),
        *("at", "batch"),
        *SHELLS,
    )
)
_DEFINITIONS = ("variable_assignment", "for_statement", "function_definition")
_OUTPUT = (">", ">>", "&>", "&>>", ">|")
_OPTION_OF_ECHO = re.compile("-[neE]+")
_PLACE = re.compile("%[-0-9.]*[sbdq]")  # of an argument in the format of `printf`
# arguments of `echo` whose text is not known: substitutions, and a variable at the end
_UNKNOWN_TEXT = re.compile(r"\$\(|`|\$\{?\w+\}?\Z")


def read_script(
    script: str, documents: Sequence[tuple[str, str]] = (), folder: str = ""
) -> list[ShellCommand]:
    """Returns the commands of a script, in the order in which they end.

    Args:
        documents: the paths and texts of files that were written before, which it may run.
        folder: the absolute path of the folder that it begins in; "" if that is not known.
    """
    return _read(script, ShellState(b"", 0, documents=dict(documents), folder=folder))


def _read(script: str, shell: ShellState) -> list[ShellCommand]:
    """Returns the commands of a script that begins in a state, which it changes."""
    script = _with_here_strings(script.replace("\0", ""))  # as Bash does
    source = script.encode("utf-8", "replace")
    if source.count(b"|") > _MAX_PIPES:
        return list(_read_without_parser(script))
    root = _parser().parse(source).root_node
    shell.source = source
    commands: list[ShellCommand] = []
    at_exit: list[ShellCommand] = []
    folders: dict[tuple[int, ...], str] = {(): shell.folder}
    unreachable = unreachable_nodes(root, returns=shell.returns)
    redirects, last_of_groups = _redirects_by_command(root, unreachable)
    statements = _statements(root, unreachable)
    for node, subshells in sorted(statements, key=lambda statement: _end_of(statement[0])):
        if node.type in _DEFINITIONS:
            _define(node, shell)
            continue
        around = subshells
        while around not in folders:
            around = around[:-1]
        shell.folder = folders[around]
        collected = at_exit if shell.text(node).startswith("trap ") else commands
        if collected is at_exit and _REMOVES_TRAP.match(shell.text(node)):
            at_exit.clear()
            continue
        for command in _commands_at(node, redirects.get(node.id, []), shell):
            around = (*subshells, node.start_byte) if command.subshells else subshells
            collected.append(
                replace(
                    command,
                    is_in_group=command.is_in_group or node.id in last_of_groups,
                    group_output=_output_of_group(node, shell)
                    if node.id in last_of_groups
                    else command.group_output,
                    subshells=(*around, *command.subshells),
                )
            )
        folders[subshells] = shell.folder
    commands += at_exit
    if root.has_error:  # an unclosed quote, or no Bash: adds the commands that the parser skipped
        parsed = {command.words for command in commands}
        others = _read_without_parser(script)
        commands += [command for command in others if command.words not in parsed]
    return commands


_REMOVES_TRAP = re.compile(r"trap (?:--? |''|\"\")")


def _output_of_group(last: "Node", shell: ShellState) -> str | None:
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


def _end_of(node: "Node") -> int:
    """Returns the place at which a statement has its effect: of a loop, where its body begins."""
    body = node.child_by_field_name("body") if node.type == "for_statement" else None
    return node.end_byte if body is None else body.start_byte


def _define(node: "Node", shell: ShellState) -> None:
    """Takes note of a variable, of the values that a loop goes through, or of a function."""
    if node.type == "variable_assignment":
        assign(node, shell)
        return
    is_loop = node.type == "for_statement"
    name = node.child_by_field_name("variable" if is_loop else "name")
    body = node.child_by_field_name("body")
    if name is None or body is None:
        return
    if is_loop:
        values = node.children_by_field_name("value")
        words = [word for value in values for word in words_of(value, shell)]
        shell.lists[shell.text(name)] = words[:MAX_LISTED]
    else:
        text = shell.text(body)
        is_group = body.type == "compound_statement"
        shell.functions[shell.text(name)] = text[1:-1] if is_group else text


@cache
def _parser() -> "Parser":
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def _statements(
    root: "Node", unreachable: Container[int]
) -> Iterator[tuple["Node", tuple[int, ...]]]:
    """Yields all commands that may run, and the assignments that are not part of a command; each
    with the places of the subshells that it is in.
    """
    nodes: list[tuple[Node, str | None, tuple[int, ...]]] = [(root, None, ())]
    while nodes:
        node, parent_type, subshells = nodes.pop()  # `node.parent` would search from the root
        if node.id in unreachable:
            continue
        is_alone = parent_type not in (None, "command")
        if node.type in _COMMANDS or (node.type == "variable_assignment" and is_alone):
            yield node, subshells
        if node.type in ("for_statement", "function_definition") or _is_bare(node):
            yield node, subshells
        if node.type == "function_definition":
            continue  # its body is read where it is called
        is_inner = node.type in _SUBSHELLS and len(subshells) < _MAX_SUBSHELLS
        inner = (*subshells, node.start_byte) if is_inner else subshells
        nodes += [(child, node.type, inner) for child in node.children]


def _is_bare(node: "Node") -> bool:
    """Whether a node is a redirection without a command, which empties a file."""
    return node.type == "redirected_statement" and node.child_by_field_name("body") is None


def _descendants(root: "Node") -> Iterator["Node"]:
    nodes = [root]
    while nodes:
        node = nodes.pop()
        yield node
        nodes += node.children


def _redirects_by_command(
    root: "Node", unreachable: Container[int]
) -> tuple[dict[int, list["Node"]], set[int]]:
    """Returns the redirections of each command by its node's id, and the ids of the commands that
    are the last of a group, to which the redirections of the group are given.
    """
    redirects: dict[int, list[Node]] = {}
    last_of_groups: set[int] = set()
    for node in _descendants(root):
        body = node.child_by_field_name("body") if node.type == "redirected_statement" else None
        is_group = False
        while body is not None and body.type not in _COMMANDS:
            is_group = is_group or body.type in _GROUPS
            parts = [child for child in body.named_children if child.id not in unreachable]
            body = parts[-1] if parts else None
        if body is None:
            continue
        if is_group:
            last_of_groups.add(body.id)
        of_command = redirects.setdefault(body.id, [])
        for child in node.children:
            if child.type.endswith("_redirect"):
                inner = child.children if child.type == "heredoc_redirect" else ()
                of_command += [child, *(n for n in inner if n.type == "file_redirect")]
    return redirects, last_of_groups


def _commands_at(node: "Node", outer: Sequence["Node"], shell: ShellState) -> list[ShellCommand]:
    """Returns the command at a node, or the commands of the script that it runs; [] for none.

    Args:
        outer: the redirections that the grammar puts around the node.
    """
    if chosen := _LOOPED.match(shell.text(node)):
        commands = shell.lists.get(chosen["name"], [])
        if any(" " in command for command in commands):
            rest = shell.text(node)[chosen.end() :]
            return _read_inside("\n".join(c + rest for c in commands), shell.inside())
    words, redirects = _words_at(node, outer, shell)
    if not words:
        return []
    redirections, writes = _read_redirects(redirects, shell)
    document = _input_of(node, words, redirects, redirections, shell)
    _note_written_files(words, redirections, writes, document, shell)
    if words[0] == "xargs" and document and not any(re.match("-[Ii]", word) for word in words):
        words += document.split()[:MAX_LISTED]
    words = list(_with_documents(words, document, shell))
    reading = Reading((*words, *redirections))
    source = _source_of(node, outer, shell)
    assigned = [shell.text(n) for n in node.children if n.type == "variable_assignment"]
    around = (Reading((*assigned, *reading.words)),) if assigned and node.type == "command" else ()
    command = ShellCommand(
        (reading,), writes, around, input=document, redirects=redirections, source=source
    )
    _note_aliases(words, shell)
    if words[0] in ("cd", "pushd") and len(words) == 2 and not re.match("[-~$`]", words[1]):
        shell.folder = posixpath.normpath(posixpath.join(shell.folder, words[1]))
    substituted = "\n".join(_backticks_in(redirects, shell))
    substitutes = _read_inside(substituted, shell.inside()) if substituted else []
    return [*substitutes, *_unwrap(command, words, shell)]


def _words_at(
    node: "Node", outer: Sequence["Node"], shell: ShellState
) -> tuple[list[str], list["Node"]]:
    """Returns the words of a command, without assignments before it, and its redirections."""
    words: list[str] = [":"] if _is_bare(node) else []
    redirects = list(outer)
    if node.type == "test_command":
        words = shell.text(node).split()
    for child in node.children:
        if child.type.endswith("_redirect"):
            redirects.append(child)
        elif node.type != "test_command" and child.type != "variable_assignment":
            words += words_of(child, shell)
        elif node.type == "declaration_command":
            words.append(shell.text(child))
    if words[:1] == ["{"]:  # of a group with `!` before it, which the grammar does not have
        words = words[1:]
    if words and outer and shell.source[node.end_byte : outer[0].start_byte].strip() == b"-":
        words.append("-")  # the grammar drops it in front of a here-document
    return words, redirects


def _input_of(
    node: "Node",
    words: Sequence[str],
    redirects: Sequence["Node"],
    redirections: Sequence[str],
    shell: ShellState,
) -> str | None:
    """Returns the text that a command reads: of a here-document, a pipe, a file, or a patch that it
    names; None if it is not known.
    """
    document = _first_document(redirects, shell)
    if document is None and not _READ_INPUT.isdisjoint(words):
        document = _piped_into(node, shell)
    if document is None and redirections[:1] == ("<",):
        document = shell.document_of(redirections[1])
    if document is None and (words[0] == "patch" or words[:2] == ["git", "apply"]):
        files = (shell.document_of(word) for word in words[1:])
        document = next((text for text in files if text is not None), None)
    return document


def _note_written_files(
    words: Sequence[str],
    redirections: Sequence[str],
    writes: Sequence[str],
    document: str | None,
    shell: ShellState,
) -> None:
    """Takes note of the texts of the files that a command writes.

    Args:
        writes: the files that its output goes to.
        document: its input.
    """
    output = known_output(words, document) if writes else None
    for path in writes:
        adds = any(word.endswith(">>") for word in redirections)
        before = shell.document_of(path) if adds and output is not None else None
        shell.write(path, output if not before else f"{before}\n{output}")
    if document is not None and words[0] == "tee":
        for path in words[1:]:
            shell.write(path, document)
    elif shell.documents:
        _note_changed_files(words, shell)


_HERE_DOCUMENT = re.compile(r"<<(?P<dash>-?)[ \t]*(?P<quote>['\"\\]?)(?P<end>\w+)(?P=quote)?(?!<)")


def _with_here_strings(script: str) -> str:
    """Returns a script with here-strings in place of several here-documents that one line begins,
    which the grammar does not have.
    """
    if "<<" not in script:
        return script
    lines = script.split("\n")
    read: list[str] = []
    while lines:
        line = lines.pop(0)
        starts = [*_HERE_DOCUMENT.finditer(line)]
        if len(starts) > 1:
            for start in starts:
                ends = (n for n, text in enumerate(lines) if text.lstrip("\t") == start["end"])
                end = next(ends, len(lines))
                text = "\n".join(lines[:end])
                escaped = '"{}"'.format(re.sub(r'(["\\])', r"\\\1", text))
                quoted = shlex.quote(text) if start["quote"] else escaped
                line = line.replace(start[0], f"<<< {quoted}", 1)
                del lines[: end + 1]
        read.append(line)
    return "\n".join(read)


_BACKTICKS = re.compile(r"(?<!\\)`([^`]*)`")


def _backticks_in(redirects: Sequence["Node"], shell: ShellState) -> Iterator[str]:
    """Yields the scripts between backticks in here-documents whose end is not quoted, which the
    grammar does not have.
    """
    for redirect in redirects:
        starts = [child for child in redirect.children if child.type == "heredoc_start"]
        if redirect.type == "heredoc_redirect" and starts and shell.text(starts[0]).isidentifier():
            yield from _BACKTICKS.findall(document_text(redirect, shell) or "")


def _source_of(node: "Node", outer: Sequence["Node"], shell: ShellState) -> str:
    """Returns a command as it is written, with the redirections that follow it."""
    end = node.end_byte
    for redirect in outer:
        is_next = redirect.start_byte >= end and not shell.source[end : redirect.start_byte].strip()
        if is_next and redirect.type == "file_redirect":
            end = redirect.end_byte
    return shell.source[node.start_byte : end].decode("utf-8", "replace")


_LOOPED = re.compile(r'"?\$\{?(?P<name>\w+)\}?"?(?=\s|\Z)')  # each value of a loop in turn
_CHANGES_FILES = ("sed", "perl", "rm", "ln", "install", "truncate", "dd", "patch", "curl", "wget")


def _note_changed_files(words: Sequence[str], shell: ShellState) -> None:
    """Takes note of what a command does to files whose texts are known."""
    paths = [word for word in words[1:] if not word.startswith("-")]
    if words[0] in ("cp", "mv") and len(paths) == 2:
        text = shell.document_of(paths[0])
        shell.write(paths[1], text)
        if words[0] == "mv":
            shell.write(paths[0], None)
    elif words[0] in ("sed", "perl") and not any(re.match("-[a-z0-9]*i", w) for w in words[1:]):
        return
    elif words[0] in _CHANGES_FILES or (
        words[0] == "git" and {"checkout", "restore", "reset", "stash"} & {*words[1:2]}
    ):
        for path in paths:
            shell.write(path, None)


def _note_aliases(words: Sequence[str], shell: ShellState) -> None:
    """Takes note of the aliases and functions that a command defines or removes."""
    if words[:1] == ["unalias"]:
        for name in words[1:]:
            shell.aliases.pop(name, None)
    if words[:2] == ["unset", "-f"]:
        for name in words[2:]:
            shell.functions.pop(name, None)
    shell.git_aliases.pop(alias_removed_by(words), None)
    if words[0] == "alias":
        pairs = (word.partition("=") for word in words[1:])
        shell.aliases.update((name, text) for name, equals, text in pairs if equals)
    elif defined := alias_defined_by(words):
        shell.git_aliases.update([defined])


def _first_document(redirects: Sequence["Node"], shell: ShellState) -> str | None:
    """Returns the first here-document or here-string among redirections, or None."""
    texts = (document_text(redirect, shell) for redirect in redirects)
    return next((text for text in texts if text is not None), None)


def _with_documents(
    words: Sequence[str], from_input: str | None, shell: ShellState
) -> Iterator[str]:
    """Yields the words, with the texts of here-documents in place of the files that are read.

    Args:
        from_input: the text of the command's input.
        shell: knows the texts that were written to files.
    """
    before = ""
    for word in words:
        option, equals, value = word.partition("=")
        name = ""
        start = ""
        if equals and option in _TEXT_FILES:
            name = value
            start = f"{option}="
        elif before in _TEXT_FILES:
            name = word
        elif attached := re.fullmatch(r"(-[a-zA-Z]*F)(-|/dev/stdin)", word):
            start, name = f"{attached[1]}", attached[2]
        text = from_input if name in ("-", "/dev/stdin") else shell.document_of(name)
        yield word if not name or text is None else start + text
        before = word


def _read_redirects(
    redirects: Sequence["Node"], shell: ShellState
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the words of redirections, and the files that output is written to."""
    words: list[str] = []
    writes: list[str] = []
    for redirect in redirects:
        if redirect.type != "file_redirect":
            continue
        targets = redirect.children_by_field_name("destination")
        start = targets[0].start_byte if targets else redirect.end_byte
        operator = shell.source[redirect.start_byte : start].decode("utf-8", "replace").strip()
        names = [word for target in targets for word in words_of(target, shell)]
        words += [operator, *names]
        if operator.lstrip("0123456789") in _OUTPUT and names and not names[0].startswith("/dev/"):
            writes.append(names[0])
    return tuple(words), tuple(writes)


def _piped_into(node: "Node", shell: ShellState) -> str | None:
    """Returns the text that the command before pipes into this one; None if it is not known."""
    if node.parent is not None and node.parent.type == "redirected_statement":
        node = node.parent
    if node.parent is None or node.parent.type != "pipeline":
        return None
    pipeline = node.parent
    before = [child for child in pipeline.named_children if child.end_byte <= node.start_byte]
    source: Node | None = None
    if before:
        source = before[-1]
    elif pipeline.parent is not None and pipeline.parent.type == "heredoc_redirect":
        source = pipeline.parent.parent  # the grammar has the pipeline inside the redirection
    if source is None:
        return None
    document = None
    if source.type == "redirected_statement":
        redirects = [child for child in source.children if child.type.endswith("_redirect")]
        document = _first_document(redirects, shell)
        if any(redirect.type == "file_redirect" for redirect in redirects):
            return None  # its output goes to a file
        source = source.children[0]
    if source.type != "command":
        return None
    words = [word for child in source.children for word in words_of(child, shell)]
    return known_output(words, document)


def known_output(words: Sequence[str], text: str | None) -> str | None:
    """Returns the output of `echo`, `printf`, `cat` or `tee`; None if the script does not show it.

    Args:
        words: the command.
        text: its input; None if that is not known.
    """
    program = words[0] if words else ""
    if program in ("cat", "tee") and (program == "tee" or set(words[1:]) <= {"-"}):
        return text
    if program in ("printf", "echo"):
        lines = [*words[1:]]
        options = ""
        while program == "echo" and lines and _OPTION_OF_ECHO.fullmatch(lines[0]):
            options += lines.pop(0)
        if any(map(_UNKNOWN_TEXT.search, lines)):
            return None
        text = _formatted(lines) if program == "printf" else " ".join(lines)
        text = text.replace("\\n", "\n")
        return text.replace("\\t", "\t") if program == "printf" or "e" in options else text
    return None


def _formatted(words: Sequence[str]) -> str:
    """Returns the output of `printf`, which repeats its format until all arguments are used."""
    if not words or (len(words) > 1 and not _PLACE.search(words[0])):
        return "\n".join(words)
    values = deque(words[1:])
    text = _PLACE.sub(lambda _: values.popleft() if values else "", words[0])
    while values:
        text += _PLACE.sub(lambda _: values.popleft() if values else "", words[0])
    return text.replace("%%", "%")


def _read_without_parser(script: str) -> Iterator[ShellCommand]:
    """Yields the commands of a script that is no valid Bash, split at operators and lines."""
    for part in re.split(r"[;&|\n()]+", script):
        try:
            words = shlex.split(part)
        except ValueError:
            words = part.split()
        words = [word for word in words if not re.match(r"\w+=", word)]
        while words and words[0] in ("then", "do", "else", "!"):
            words.pop(0)
        if words:
            yield ShellCommand(readings_of(Reading(tuple(words))))


@dataclass(frozen=True)
class _InnerScript:
    """A script that a command runs.

    Args:
        text: None if the command runs none, or one that is not known.
        state: of the shell in which it begins.
        is_same_shell: whether the shell of the command runs it, so that a `cd` in it lasts.
        is_function: whether it is the body of a function.
    """

    text: str | None
    state: ShellState
    is_same_shell: bool = False
    is_function: bool = False


def _unwrap(command: ShellCommand, words: Sequence[str], shell: ShellState) -> list[ShellCommand]:
    """Returns a command with all its readings, or the commands of the script that it runs."""
    command = replace(command, readings=readings_of(command.readings[0]))
    script = _script_in_shell(command, words, shell)
    if script is None:
        program, arguments = _program_of(command, shell)
        if not any(runs_elsewhere(reading.words) for reading in command.readings):
            command = replace(command, edits=tuple(program.edits))
            for edit in program.edits:
                is_known = edit.is_shown and edit.is_whole
                shell.write(edit.path, "\n".join(edit.added) if is_known else None)
        is_same_shell = words[0] in (".", "source")
        script = _InnerScript(
            "\n".join(program.scripts) or _script_run_by(command, shell),
            shell.inside(
                arguments,
                is_new=not is_same_shell,
                returns=is_same_shell or words[0] in _RETURNING_SHELLS,
            ),
            is_same_shell,
        )
    inner = _read_inside(script.text, script.state)
    if words[0] in ("eval", ".", "source"):
        shell.take_over(script.state)
    return _with_inner_commands(command, inner, script)


_IN_THE_SAME_SHELL = ("eval", "trap")
_RETURNING_SHELLS = ("sh", "dash", "ash", "ksh", "zsh", "fish")  # `return` ends a script of theirs


def _script_in_shell(
    command: ShellCommand, words: Sequence[str], shell: ShellState
) -> _InnerScript | None:
    """Returns the script in the words or the input of a command, or that of a function or an alias.

    None for any other command.
    """
    innermost = command.innermost if len(command.readings) > 1 else tuple(words)
    text = script_in(innermost, command.input)
    if text is not None:
        text = _as_bash(text, innermost[0])
        is_same_shell = innermost[0] in _IN_THE_SAME_SHELL
        state = shell.inside(
            _arguments_of(innermost, text),
            is_new=not is_same_shell,
            returns=None if is_same_shell else innermost[0] in _RETURNING_SHELLS,
        )
        return _InnerScript(text, state, is_same_shell)
    called = innermost if words[0] == "time" else words
    if body := shell.functions.get(called[0]):
        state = shell.inside(called[1:], without=called[0], returns=True)
        return _InnerScript(body, state, is_same_shell=True, is_function=True)
    if alias := shell.aliases.get(words[0]):
        text = " ".join([alias, *map(shlex.quote, words[1:])])
        return _InnerScript(text, shell.inside(without=words[0]), is_same_shell=True)
    return None


def _program_of(command: ShellCommand, shell: ShellState) -> tuple[ProgramEffects, Sequence[str]]:
    """Returns the Python or JavaScript program that a command runs, and the command's arguments."""
    words = command.arguments
    if file := file_run_by(words):
        return read_program(words[:1], shell.document_of(file)), ()
    return read_program(words, command.input), words[1:]


def _with_inner_commands(
    command: ShellCommand, inner: Sequence[ShellCommand], script: _InnerScript
) -> list[ShellCommand]:
    """Returns the commands of the script that a command runs, of which the first stands for the
    command too; the command itself if there are none.
    """
    programs = command.readings if inner else command.readings[:-1]
    is_elsewhere = any(runs_elsewhere(reading.words) for reading in programs)
    command = replace(command, is_elsewhere=is_elsewhere)
    if not inner:
        return [command]
    if is_elsewhere:
        inner = [replace(part, is_elsewhere=True, writes=(), edits=()) for part in inner]
    outer = command.readings[-1]
    around = outer.without | {outer.words[0].rpartition("/")[2]}
    if not script.is_same_shell:
        inner = [replace(part, subshells=(0, *part.subshells)) for part in inner]
    first, *others = (_inside(part, around) for part in inner)
    # a function stands for its body: `git` may be one that only prints what it would run
    outer_readings = () if script.is_function else command.readings
    first = replace(
        first,
        writes=(*first.writes, *command.writes),
        edits=(*first.edits, *command.edits),
        around=(*outer_readings, *first.around),
    )
    return [first, *others]


def _read_inside(script: str | None, state: ShellState) -> list[ShellCommand]:
    """Returns the commands of a script within another; [] for none, or for too many."""
    if not script or state.depth > _MAX_DEPTH or state.left[0] <= 0:
        return []
    state.left[0] -= 1 + len(script) // _CHARACTERS_OF_INNER_SCRIPT
    return _read(script, state)


def _as_bash(script: str, program: str) -> str:
    """Returns a script in the language of a shell as Bash."""
    name = program.rpartition("/")[2].lower()
    if name in POWERSHELLS:
        return bash_of_powershell(script)
    return bash_of_fish(script) if name == "fish" else script


def _arguments_of(words: Sequence[str], script: str) -> Sequence[str] | None:
    """Returns the arguments of a script such as that of `bash -c SCRIPT NAME ARGUMENT`.

    None if these are not written there.
    """
    if words[0] not in SHELLS or script not in words:
        return None
    return words[words.index(script) + 2 :]


def _script_run_by(command: ShellCommand, shell: ShellState) -> str | None:
    """Returns the script that a command runs by a name: an alias of Git, a target whose file is
    known, or a file that was written before; None for other commands.
    """
    words = command.arguments
    for reading in command.readings:
        if script := script_of_alias(reading.words, shell.git_aliases):
            return script
    same = [reading.words for reading in command.readings if reading.words[0] == words[0]]
    whole = max(same, key=len, default=words)  # with the options that say where it runs
    if script := script_of_target(whole, shell.documents, command.input, shell.folder):
        return script
    if any(_only_checks(reading.words) for reading in command.readings):
        return None
    if "." not in words[0] and "/" not in command.words[0] and command.words[0] not in SHELLS:
        return None
    for reading in command.readings:
        text = shell.document_of(reading.words[0])
        if text is None:
            continue
        interpreter = _interpreter_of(text)
        if "sh" not in interpreter:
            return "\n".join(read_program((interpreter,), text).scripts) or None
        return _as_bash(text, interpreter)
    return None


def _only_checks(words: Sequence[str]) -> bool:
    """Whether a command is a shell that only checks the syntax of a script, as `bash -n` does."""
    return words[0] in SHELLS and any(re.fullmatch("-[a-z]*n[a-z]*", word) for word in words[1:2])


def _interpreter_of(text: str) -> str:
    """Returns the program that the first line of a script names: `bash` for `#!/usr/bin/env bash`.

    `sh` if it names none.
    """
    first = text.split("\n", 1)[0]
    words = first.removeprefix("#!").split() if first.startswith("#!") else []
    names = [word.rpartition("/")[2] for word in words if not word.startswith("-")]
    return next((name for name in names if name and name != "env"), "sh")


def _inside(command: ShellCommand, around: frozenset[str]) -> ShellCommand:
    """Returns a command of a script, whose readings leave out the programs around the script."""
    readings = [replace(reading, without=reading.without | around) for reading in command.readings]
    return replace(command, readings=tuple(readings))
