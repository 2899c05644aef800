"""The words of a shell script as Bash reads them: quotes, variables and here-documents."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node


@dataclass
class ShellState:
    """The state of the shell while a script is read."""

    source: bytes
    depth: int  # how many scripts this one is inside of
    variables: dict[str, str] = field(default_factory=dict)
    documents: dict[str, str] = field(default_factory=dict)  # here-documents by their file

    def text(self, node: "Node") -> str:
        """The text of a node, as it stands in the script."""
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")


_MAX_VALUE_CHARACTERS = 100_000  # characters: A=$A$A, again and again, doubles it


def assign(node: "Node", shell: ShellState) -> None:
    """Gives a variable the value of an assignment."""
    name = node.child_by_field_name("name")
    value = node.child_by_field_name("value")
    if name is not None and value is not None:
        text = value_of(value, shell)
        shell.variables.pop(shell.text(name), None)
        if len(text) <= _MAX_VALUE_CHARACTERS:
            shell.variables[shell.text(name)] = text


def words_of(node: "Node", shell: ShellState) -> list[str]:
    """The words that a node becomes: several for a variable without quotes."""
    if node.type == "command_name" and node.named_children:
        node = node.named_children[0]
    value = value_of(node, shell)
    if node.type in ("simple_expansion", "expansion") and value != shell.text(node):
        return value.split()
    return [value]


def value_of(node: "Node", shell: ShellState) -> str:
    """The text that Bash makes of a node: without quotes, with the values of known variables."""
    text = shell.text(node)
    match node.type:
        case "raw_string":
            return text[1:-1]
        case "ansi_c_string":
            return text[2:-1].replace("\\n", "\n").replace("\\'", "'")
        case "string":
            return _joined(node, shell, 1, lambda t: re.sub(r'\\(["\\$`\n])', _unescaped, t))
        case "concatenation":
            return _joined(node, shell, 0, lambda t: re.sub(r"(?s)\\(.)", _unescaped, t))
        case "word":
            return re.sub(r"(?s)\\(.)", _unescaped, text)
        case "simple_expansion" | "expansion":
            name = re.fullmatch(r"\$\{?(\w+)\}?", text)
            return shell.variables.get(name[1], text) if name else text
        case "command_substitution":
            document = _document_in(node, shell)
            return text if document is None else document
    return text


def _unescaped(match: re.Match[str]) -> str:
    return "" if match[1] == "\n" else match[1]


def _joined(node: "Node", shell: ShellState, quotes: int, plain: Callable[[str], str]) -> str:
    """The values of a node's parts, with the text between them; `quotes` at its ends are cut."""
    parts = []
    position = node.start_byte + quotes
    for child in node.named_children:
        if child.type == "string_content":
            continue
        parts.append(plain(shell.source[position : child.start_byte].decode("utf-8", "replace")))
        parts.append(value_of(child, shell))
        position = child.end_byte
    end = max(position, node.end_byte - quotes)
    parts.append(plain(shell.source[position:end].decode("utf-8", "replace")))
    return "".join(parts)


def _document_in(node: "Node", shell: ShellState) -> str | None:
    """The text of `$(cat <<EOF ...)`; None for another substitution."""
    inner = node.named_children[0] if len(node.named_children) == 1 else None
    body = inner.child_by_field_name("body") if inner is not None else None
    if inner is None or body is None or shell.text(body).split() not in (["cat"], ["cat", "-"]):
        return None
    documents = (document_text(child, shell) for child in inner.children)
    return next((document for document in documents if document is not None), None)


def document_text(redirect: "Node", shell: ShellState) -> str | None:
    """The text of a here-document or a here-string."""
    if redirect.type == "herestring_redirect":
        return "".join(value_of(child, shell) for child in redirect.named_children)
    if redirect.type != "heredoc_redirect":
        return None
    bodies = [child for child in redirect.children if child.type == "heredoc_body"]
    text = "".join(shell.text(body) for body in bodies)
    if shell.source[redirect.start_byte :].startswith(b"<<-"):
        text = re.sub(r"^\t+", "", text, flags=re.MULTILINE)
    return text.rstrip("\n")
