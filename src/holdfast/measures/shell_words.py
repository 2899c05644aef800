"""Reads the words of a shell script as Bash does, with quotes, variables and here-documents."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node


@dataclass
class ShellState:
    """The state of the shell at a point of a script."""

    source: bytes
    depth: int  # how many other scripts the script is inside
    variables: dict[str, str] = field(default_factory=dict)
    # the texts of here-documents, by the file that they were written to
    documents: dict[str, str] = field(default_factory=dict)

    def text(self, node: "Node") -> str:
        """Returns the text of a node as it is in the script."""
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")


_MAX_VALUE_CHARACTERS = 100_000  # of a variable: A=$A$A, again and again, doubles it


def assign(node: "Node", shell: ShellState) -> None:
    """Gives a variable the value of an assignment; a value that is too long is not kept."""
    name = node.child_by_field_name("name")
    value = node.child_by_field_name("value")
    if name is not None and value is not None:
        text = value_of(value, shell)
        shell.variables.pop(shell.text(name), None)
        if len(text) <= _MAX_VALUE_CHARACTERS:
            shell.variables[shell.text(name)] = text


def words_of(node: "Node", shell: ShellState) -> list[str]:
    """Returns the words that a node becomes, which are several for a variable without quotes."""
    if node.type == "command_name" and node.named_children:
        node = node.named_children[0]
    value = value_of(node, shell)
    if node.type in ("simple_expansion", "expansion") and value != shell.text(node):
        return value.split()
    return [value]


def value_of(node: "Node", shell: ShellState) -> str:
    """Returns the text of a node without quotes, with the values of the variables known."""
    text = shell.text(node)
    match node.type:
        case "raw_string":
            return text[1:-1]
        case "ansi_c_string":
            return text[2:-1].replace("\\n", "\n").replace("\\'", "'")
        case "string":
            return _join_parts(node, shell, 1, lambda t: re.sub(r'\\(["\\$`\n])', _unescape, t))
        case "concatenation":
            return _join_parts(node, shell, 0, lambda t: re.sub(r"(?s)\\(.)", _unescape, t))
        case "word":
            return re.sub(r"(?s)\\(.)", _unescape, text)
        case "simple_expansion" | "expansion":
            name = re.fullmatch(r"\$\{?(\w+)\}?", text)
            return shell.variables.get(name[1], text) if name else text
        case "command_substitution":
            document = _document_in(node, shell)
            return text if document is None else document
    return text


def _unescape(match: re.Match[str]) -> str:
    return "" if match[1] == "\n" else match[1]


def _join_parts(
    node: "Node", shell: ShellState, quotes: int, unescape: Callable[[str], str]
) -> str:
    """Joins the values of a node's parts, and the text between them.

    Args:
        quotes: how many characters at either end are quotation marks.
        unescape: is applied to the text between the parts.
    """
    parts = []
    position = node.start_byte + quotes
    for child in node.named_children:
        if child.type == "string_content":
            continue
        between = shell.source[position : child.start_byte].decode("utf-8", "replace")
        parts.append(unescape(between))
        parts.append(value_of(child, shell))
        position = child.end_byte
    end = max(position, node.end_byte - quotes)
    parts.append(unescape(shell.source[position:end].decode("utf-8", "replace")))
    return "".join(parts)


def _document_in(node: "Node", shell: ShellState) -> str | None:
    """Returns the text of `$(cat <<EOF ...)`; None for any other substitution."""
    inner = node.named_children[0] if len(node.named_children) == 1 else None
    body = inner.child_by_field_name("body") if inner is not None else None
    if inner is None or body is None or shell.text(body).split() not in (["cat"], ["cat", "-"]):
        return None
    documents = (document_text(child, shell) for child in inner.children)
    return next((document for document in documents if document is not None), None)


def document_text(redirect: "Node", shell: ShellState) -> str | None:
    """Returns the text of a here-document or a here-string; None for any other redirection."""
    if redirect.type == "herestring_redirect":
        return "".join(value_of(child, shell) for child in redirect.named_children)
    if redirect.type != "heredoc_redirect":
        return None
    bodies = [child for child in redirect.children if child.type == "heredoc_body"]
    text = "".join(shell.text(body) for body in bodies)
    if shell.source[redirect.start_byte :].startswith(b"<<-"):
        text = re.sub(r"^\t+", "", text, flags=re.MULTILINE)
    return text.rstrip("\n")
