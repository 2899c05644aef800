"""Takes note of what a script defines: variables, lists, functions and aliases.

For example:

    F=--force            ->  variables {"F": "--force"}
    for t in a b; do     ->  lists {"t": ["a", "b"]}
    push() { git push; } ->  functions {"push": " git push; "}
    alias p='git push'   ->  aliases {"p": "git push"}
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.measures.agent_acts.commands.git_aliases import alias_defined_by, alias_removed_by
from holdfast.measures.agent_acts.scripts.shell_state import ShellState
from holdfast.measures.agent_acts.scripts.shell_words import value_of, words_of

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_LISTED = 1000  # values of an array, or words that `xargs` adds
_MAX_VALUE_CHARACTERS = 100_000  # of a variable: A=$A$A, again and again, doubles it
_NAMED_ITEM = re.compile(r"\[(?P<name>[^\]]+)\]=(?P<value>.*)", re.DOTALL)  # [web]=80


def define(node: "Node", shell: ShellState) -> None:
    """Takes note of an assignment, of the values that a loop goes through, or of a function."""
    match node.type:
        case "variable_assignment":
            _assign(node, shell)
        case "for_statement":
            _define_list(node, shell)
        case "function_definition":
            _define_function(node, shell)


def _assign(node: "Node", shell: ShellState) -> None:
    """Gives a variable the value of an assignment; a value that is too long is not kept."""
    name_node = node.child_by_field_name("name")
    value_node = node.child_by_field_name("value")
    if name_node is None or value_node is None:
        return
    name = shell.text(name_node)
    operator = shell.text_between(name_node.end_byte, value_node.start_byte).strip()
    is_added = operator == "+="
    if value_node.type == "array":
        _assign_array(name, value_node, shell, is_added=is_added)
        return
    shell.lists.pop(name, None)
    value = value_of(value_node, shell)
    before = shell.variables.pop(name, "")
    if is_added:
        value = before + value
    if len(value) <= _MAX_VALUE_CHARACTERS:
        shell.variables[name] = value


def _assign_array(name: str, array: "Node", shell: ShellState, *, is_added: bool) -> None:
    words = [word for child in array.named_children for word in words_of(child, shell)]
    for word in words:
        if item := _NAMED_ITEM.fullmatch(word):
            shell.variables[f"{name}[{item['name']}]"] = item["value"]
    before = shell.lists.get(name, []) if is_added else []
    shell.lists[name] = [*before, *words][:MAX_LISTED]


def _define_list(loop: "Node", shell: ShellState) -> None:
    variable = loop.child_by_field_name("variable")
    if variable is None or loop.child_by_field_name("body") is None:
        return
    values = loop.children_by_field_name("value")
    words = [word for value in values for word in words_of(value, shell)]
    shell.lists[shell.text(variable)] = words[:MAX_LISTED]


def _define_function(definition: "Node", shell: ShellState) -> None:
    name = definition.child_by_field_name("name")
    body = definition.child_by_field_name("body")
    if name is None or body is None:
        return
    text = shell.text(body)
    has_braces = body.type == "compound_statement"
    shell.functions[shell.text(name)] = text[1:-1] if has_braces else text


def note_aliases(words: Sequence[str], shell: ShellState) -> None:
    """Takes note of the aliases that a command defines or removes, and the functions it removes."""
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
