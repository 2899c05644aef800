"""The statements of a Bash script in the order in which they take effect, and their redirections.

    { date; ls; } > log  ->  statements `date`, `ls`; the redirection `> log` belongs to `ls`,
                             which is the last command of its group
    a; (b; c)            ->  statements `a`, `b`, `c`, of which the last two are in a subshell

Tree-sitter parses the script; its nodes have the names of its grammar, such as "command" or
"for_statement".
"""

from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

DEFINITIONS = ("variable_assignment", "for_statement", "function_definition")
_COMMANDS = ("command", "declaration_command", "unset_command", "test_command")
_SUBSHELLS = ("subshell", "command_substitution", "process_substitution")
_GROUPS = ("compound_statement", "subshell", "for_statement", "while_statement", "if_statement")
_MAX_NESTED_SUBSHELLS = 20  # deeper ones are not told apart


def parse_bash(source: bytes) -> "Node":
    """Returns the root of the syntax tree of a script."""
    return _parser().parse(source).root_node


@cache
def _parser() -> "Parser":
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


# --- Statements


@dataclass(frozen=True)
class Statement:
    """A command, an assignment, a loop or the definition of a function.

    Args:
        node: its node in the syntax tree.
        subshells: the subshells that it is in, outermost first, by the bytes at which they begin.
    """

    node: "Node"
    subshells: tuple[int, ...]


def statements_in(root: "Node", unreachable: Container[int]) -> list[Statement]:
    """Returns the statements of a script in the order in which they take effect.

    Args:
        unreachable: the ids of the nodes that never run.
    """
    return sorted(
        _walk_statements(root, unreachable), key=lambda statement: _effect_position(statement.node)
    )


def _effect_position(node: "Node") -> int:
    """Returns the byte at which a statement takes effect, which is its end.

    A loop takes effect where its body begins, as the variable has its values there.
    """
    body = node.child_by_field_name("body") if node.type == "for_statement" else None
    return node.end_byte if body is None else body.start_byte


def _walk_statements(root: "Node", unreachable: Container[int]) -> Iterator[Statement]:
    """Yields the statements that may run, in no order.

    An assignment in front of a command, as in `A=1 make`, is a part of the command.
    """
    nodes: list[tuple[Node, str | None, tuple[int, ...]]] = [(root, None, ())]
    while nodes:
        node, parent_type, subshells = nodes.pop()  # `node.parent` would search from the root
        if node.id in unreachable:
            continue
        is_assignment = node.type == "variable_assignment" and parent_type not in (None, "command")
        is_definition = node.type in ("for_statement", "function_definition")
        if node.type in _COMMANDS or is_assignment or is_definition or is_bare_redirection(node):
            yield Statement(node, subshells)
        if node.type == "function_definition":
            continue  # its body is read where it is called
        is_subshell = node.type in _SUBSHELLS and len(subshells) < _MAX_NESTED_SUBSHELLS
        inner = (*subshells, node.start_byte) if is_subshell else subshells
        nodes += [(child, node.type, inner) for child in node.children]


def is_bare_redirection(node: "Node") -> bool:
    """Whether a node is a redirection without a command, as `> log`, which empties the file."""
    return node.type == "redirected_statement" and node.child_by_field_name("body") is None


# --- Redirections


@dataclass
class RedirectNodes:
    """The nodes of the redirections of a script.

    Args:
        by_command: those of each command, by the id of the command's node.
        last_in_groups: the ids of the commands that are the last of a group such as
            `{ date; ls; } > log`; these have the redirections of the group too.
    """

    by_command: dict[int, list["Node"]] = field(default_factory=dict)
    last_in_groups: set[int] = field(default_factory=set)


def redirect_nodes_in(root: "Node", unreachable: Container[int]) -> RedirectNodes:
    """Returns the nodes of the redirections of a script.

    Args:
        unreachable: the ids of the nodes that never run.
    """
    redirects = RedirectNodes()
    nodes = [root]
    while nodes:
        node = nodes.pop()
        nodes += node.children
        if node.type != "redirected_statement":
            continue
        command, is_in_group = _redirected_command(node, unreachable)
        if command is None:
            continue
        if is_in_group:
            redirects.last_in_groups.add(command.id)
        of_command = redirects.by_command.setdefault(command.id, [])
        for child in node.children:
            if child.type.endswith("_redirect"):
                inner = child.children if child.type == "heredoc_redirect" else ()
                of_command += [child, *(n for n in inner if n.type == "file_redirect")]
    return redirects


def _redirected_command(node: "Node", unreachable: Container[int]) -> tuple["Node | None", bool]:
    """Returns the command that a redirection belongs to, and whether that is the last of a group.

    None if the redirection has no command.
    """
    is_in_group = False
    body = node.child_by_field_name("body")
    while body is not None and body.type not in _COMMANDS:
        is_in_group = is_in_group or body.type in _GROUPS
        parts = [child for child in body.named_children if child.id not in unreachable]
        body = parts[-1] if parts else None
    return body, is_in_group
