"""The parts of a command in a script: its words, assignments and redirections.

For example:

    A=1 make "$f" > log 2>&1
    -> words ["make", "a.txt"], assignments ["A=1"], redirections (">", "log", "2>&1"),
       writes ("log",)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.measures.agent_acts.scripts.bash_syntax import is_bare_redirection
from holdfast.measures.agent_acts.scripts.shell_state import ShellState
from holdfast.measures.agent_acts.scripts.shell_words import document_text, words_of

if TYPE_CHECKING:
    from tree_sitter import Node

_OUTPUT_OPERATORS = (">", ">>", "&>", "&>>", ">|")


@dataclass(frozen=True)
class CommandParts:
    """A command as a script has it.

    Args:
        words: the program and its arguments; [] for none.
        assignments: those before the program, such as `A=1`.
        redirect_nodes: the nodes of its redirections.
        redirections: the words of these, such as `2>` and `log`, without here-documents.
        writes: the files that its output goes to.
        source: the command as it is written.
    """

    words: list[str]
    assignments: tuple[str, ...]
    redirect_nodes: Sequence["Node"]
    redirections: tuple[str, ...]
    writes: tuple[str, ...]
    source: str

    @property
    def appends(self) -> bool:
        """Whether its output is added to a file."""
        return any(word.endswith(">>") for word in self.redirections)


def parts_of(node: "Node", outer: Sequence["Node"], shell: ShellState) -> CommandParts:
    """Returns the parts of the command at a node.

    Args:
        outer: the redirections that the grammar puts around the node.
    """
    words = _words_at(node, outer, shell)
    redirect_nodes = [*outer, *(n for n in node.children if n.type.endswith("_redirect"))]
    redirections, writes = _read_redirections(redirect_nodes, shell)
    assignments = (child for child in node.children if child.type == "variable_assignment")
    return CommandParts(
        words=words,
        assignments=tuple(map(shell.text, assignments)) if node.type == "command" else (),
        redirect_nodes=redirect_nodes,
        redirections=redirections,
        writes=writes,
        source=_source_of(node, outer, shell),
    )


def _words_at(node: "Node", outer: Sequence["Node"], shell: ShellState) -> list[str]:
    words: list[str] = [":"] if is_bare_redirection(node) else []
    if node.type == "test_command":  # `[ -n "$a" ]`
        words = shell.text(node).split()
    for child in node.children if node.type != "test_command" else ():
        if child.type == "variable_assignment":
            words += [shell.text(child)] if node.type == "declaration_command" else []
        elif not child.type.endswith("_redirect"):
            words += words_of(child, shell)
    if words[:1] == ["{"]:  # of a group with `!` before it, which the grammar does not have
        words = words[1:]
    if words and outer and shell.text_between(node.end_byte, outer[0].start_byte).strip() == "-":
        words.append("-")  # the grammar drops it in front of a here-document
    return words


def _read_redirections(
    nodes: Sequence["Node"], shell: ShellState
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the words of redirections, and the files that output is written to."""
    words: list[str] = []
    writes: list[str] = []
    for node in nodes:
        if node.type != "file_redirect":
            continue
        targets = node.children_by_field_name("destination")
        end = targets[0].start_byte if targets else node.end_byte
        operator = shell.text_between(node.start_byte, end).strip()
        names = [word for target in targets for word in words_of(target, shell)]
        words += [operator, *names]
        is_output = operator.lstrip("0123456789") in _OUTPUT_OPERATORS
        if is_output and names and not names[0].startswith("/dev/"):
            writes.append(names[0])
    return tuple(words), tuple(writes)


def _source_of(node: "Node", outer: Sequence["Node"], shell: ShellState) -> str:
    """Returns a command as it is written, with the redirections that follow it."""
    end = node.end_byte
    for redirect in outer:
        is_next = redirect.start_byte >= end and not shell.source[end : redirect.start_byte].strip()
        if is_next and redirect.type == "file_redirect":
            end = redirect.end_byte
    return shell.text_between(node.start_byte, end)


def first_document(redirect_nodes: Sequence["Node"], shell: ShellState) -> str | None:
    """Returns the first here-document or here-string among redirections; None without one."""
    texts = (document_text(node, shell) for node in redirect_nodes)
    return next((text for text in texts if text is not None), None)
