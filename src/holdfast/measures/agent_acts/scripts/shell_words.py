"""The words of a shell script as Bash reads them: with quotes, variables and here-documents.

    f=a.txt; rm "$f" 'b c' {d,e}  ->  `rm`, `a.txt`, `b c`, `d`, `e`

Variables have the values that the script gives them; an expansion whose value is not known stays as
it is written.
"""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from holdfast.measures.agent_acts.scripts.shell_state import ShellState

if TYPE_CHECKING:
    from tree_sitter import Node

# "${files[@]}", $@ and $files, which stand for all values of a list
_WHOLE_LIST = re.compile(r'"?\$(?:\{(?P<array>\w+)\[[@*]\]\}|\{?(?P<name>[@*]|\w+)\}?)"?')
_QUOTES = re.compile(r"""["'$`\\]""")
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")  # {a,b}
_MAX_WORDS_OF_BRACES = 64
_MAX_BRACED_CHARACTERS = 1000
_NUMBERED_ITEM = re.compile(r"\$\{(?P<array>\w+)\[(?P<number>\d+)\]\}")  # ${files[0]}
_NAMED_ITEM = re.compile(r"\$\{\w+\[[^\]@*]+\]\}")  # ${ports["web"]}
# $name, ${name}, ${name:-default} and ${name-default}
_VARIABLE = re.compile(r"\$\{?(?P<name>\w+|[@*])(?::?-(?P<default>[^{}]*))?\}?")
# $(which git) and `command -v git`
_LOCATED = re.compile(r"(?:\$\(|`)(?:which|command -v|type -p) (?P<program>[^\s)`]+)\s*[)`]")
_TEMPORARY_FILE = re.compile(r"\$\(mktemp\b")
_PATH_OF_TEMPORARY_FILE = "/tmp/mktemp"


def words_of(node: "Node", shell: ShellState) -> list[str]:
    """Returns the words that a node becomes: several for `$files` or `{a,b}` without quotes."""
    if node.type == "command_name" and node.named_children:
        node = node.named_children[0]
    text = shell.text(node)
    if whole_list := _WHOLE_LIST.fullmatch(text):
        name = whole_list["array"] or whole_list["name"]
        if name == "*" and not text.startswith('"'):
            name = "@"
        if name in shell.lists:
            return list(shell.lists[name])
    value = value_of(node, shell)
    if node.type in ("simple_expansion", "expansion") and value != text:
        return value.split()
    is_short = len(value) <= _MAX_BRACED_CHARACTERS
    if "{" in value and is_short and not _QUOTES.search(text):
        return _expand_braces(value)
    return [value]


def _expand_braces(word: str) -> list[str]:
    """Returns the words that a word with braces stands for: `a.py`, `a.js` for `a.{py,js}`."""
    braces = _BRACES.search(word)
    if braces is None:
        return [word]
    choices = braces[1].split(",")[:_MAX_WORDS_OF_BRACES]
    words = (word[: braces.start()] + choice + word[braces.end() :] for choice in choices)
    expanded = [part for word in words for part in _expand_braces(word)]
    return expanded[:_MAX_WORDS_OF_BRACES]


def value_of(node: "Node", shell: ShellState) -> str:
    """Returns the text of a node without quotes, with the values of the variables known."""
    text = shell.text(node)
    match node.type:
        case "raw_string":
            return text[1:-1]
        case "ansi_c_string":
            return text[2:-1].replace("\\n", "\n").replace("\\'", "'")
        case "string":
            return _join_parts(node, shell, _unescape_quoted, num_quotes=1)
        case "concatenation":
            return _join_parts(node, shell, _unescape)
        case "word":
            return _unescape(text)
        case "simple_expansion" | "expansion":
            return _value_of_expansion(text, shell)
        case "command_substitution":
            return _value_of_substitution(node, shell)
    return text


def _value_of_expansion(text: str, shell: ShellState) -> str:
    """Returns the value of `$name`, `${name:-default}` or `${list[0]}`."""
    if item := _NUMBERED_ITEM.fullmatch(text):
        return "".join(shell.lists.get(item["array"], [text])[int(item["number"]) :][:1])
    if _NAMED_ITEM.fullmatch(text):
        return shell.variables.get(re.sub(r"[${}\"']", "", text), text)
    variable = _VARIABLE.fullmatch(text)
    if variable is None:
        return text
    default = text if variable["default"] is None else variable["default"].strip("\"'")
    return shell.variables.get(variable["name"], default)


def _value_of_substitution(node: "Node", shell: ShellState) -> str:
    """Returns the value of `$(cat <<EOF ...)`, `$(which git)` or `$(mktemp)`."""
    text = shell.text(node)
    if located := _LOCATED.fullmatch(text):
        return located["program"]
    if _TEMPORARY_FILE.match(text):
        return _PATH_OF_TEMPORARY_FILE
    document = _document_in(node, shell)
    return text if document is None else document


def _unescape(text: str) -> str:
    """Returns a text outside quotes without backslashes: `a b` for `a\\ b`."""
    return re.sub(r"(?s)\\(.)", _unescape_character, text)


def _unescape_quoted(text: str) -> str:
    """Returns a text in double quotes, in which a backslash escapes these characters only."""
    return re.sub(r'\\(["\\$`\n])', _unescape_character, text)


def _unescape_character(escape: re.Match[str]) -> str:
    return "" if escape[1] == "\n" else escape[1]


def _join_parts(
    node: "Node", shell: ShellState, unescape: Callable[[str], str], num_quotes: int = 0
) -> str:
    """Joins the values of a node's parts, and the text between them.

    Args:
        unescape: is applied to the text between the parts.
        num_quotes: how many characters at either end are quotation marks.
    """
    parts = []
    position = node.start_byte + num_quotes
    for child in node.named_children:
        if child.type == "string_content":
            continue
        parts.append(unescape(shell.text_between(position, child.start_byte)))
        parts.append(value_of(child, shell))
        position = child.end_byte
    end = max(position, node.end_byte - num_quotes)
    parts.append(unescape(shell.text_between(position, end)))
    return "".join(parts)


# --- Here-documents


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
