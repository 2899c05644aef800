"""The words of a shell script as Bash reads them: with quotes, variables and here-documents.

    f=a.txt; rm "$f" 'b c'  ->  `rm`, `a.txt`, `b c`

Variables have the values that the script gives them, if it gives any.
"""

import posixpath
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from holdfast.measures.agent_acts.run_targets import path_of_document

if TYPE_CHECKING:
    from tree_sitter import Node


@dataclass
class ShellState:
    """The state of the shell at a point of a script."""

    source: bytes
    depth: int  # how many other scripts the script is inside
    variables: dict[str, str] = field(default_factory=dict)
    # arrays, the values that a loop goes through, and the arguments of a function or script as "@"
    lists: dict[str, list[str]] = field(default_factory=dict)
    # the bodies of functions, the aliases of the shell and those of Git, by their names
    functions: dict[str, str] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    git_aliases: dict[str, str] = field(default_factory=dict)
    # the texts that were written to files, by the path of the file
    documents: dict[str, str] = field(default_factory=dict)
    folder: str = ""  # the working folder; relative to the script's first, if that is not known
    # whether `return` ends the script: that of a function, a file that is sourced, or a shell other
    # than Bash, which goes on
    returns: bool = False
    # how many more scripts may be read inside this one, in a list that all of them share
    left: list[int] = field(default_factory=lambda: [_MAX_INNER_SCRIPTS])

    def text(self, node: "Node") -> str:
        """Returns the text of a node as it is in the script."""
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def document_of(self, name: str) -> str | None:
        """Returns the text of a file that was written before; None if it is not known."""
        path = path_of_document(posixpath.join(self.folder, name), self.documents)
        return None if path is None else self.documents[path]

    def write(self, name: str, text: str | None) -> None:
        """Takes note of the text of a file, which is None if it is not known."""
        whole = posixpath.join(self.folder, name)
        path = path_of_document(whole, self.documents)
        if path is not None:
            del self.documents[path]
        if text is not None:
            self.documents[path or whole] = text

    def inside(
        self,
        arguments: Sequence[str] | None = None,
        *,
        without: str = "",
        is_new: bool = False,
        returns: bool | None = None,
    ) -> "ShellState":
        """Returns the state in which a script within this one begins.

        Args:
            arguments: of the function or the script; None for a script that has those around it.
            without: a function or an alias that means something else inside.
            is_new: whether another shell runs the script, which has the functions only.
            returns: whether `return` ends the script; None for one in which it does what it does
                around it.
        """
        variables = {} if is_new else dict(self.variables)
        lists = {} if is_new else dict(self.lists)
        if arguments is not None:
            lists["@"] = [*arguments]
            variables["@"] = variables["*"] = " ".join(arguments)
            values = [*arguments, *[""] * 9][:9]
            variables.update((str(number), value) for number, value in enumerate(values, 1))
        functions = {name: body for name, body in self.functions.items() if name != without}
        aliases = {name: text for name, text in self.aliases.items() if name != without}
        return replace(
            self,
            depth=self.depth + 1,
            variables=variables,
            lists=lists,
            functions=functions,
            aliases={} if is_new else aliases,
            returns=self.returns if returns is None else returns,
        )

    def take_over(self, inner: "ShellState") -> None:
        """Takes note of what a script defined that ran in the same shell."""
        self.variables |= inner.variables
        self.lists |= inner.lists
        self.functions |= inner.functions
        self.aliases |= inner.aliases


_MAX_INNER_SCRIPTS = 300  # that are read for one script: functions may call functions
_MAX_VALUE_CHARACTERS = 100_000  # of a variable: A=$A$A, again and again, doubles it


def assign(node: "Node", shell: ShellState) -> None:
    """Gives a variable the value of an assignment; a value that is too long is not kept."""
    name = node.child_by_field_name("name")
    value = node.child_by_field_name("value")
    if name is None or value is None:
        return
    key = shell.text(name)
    adds = shell.source[name.end_byte : value.start_byte].strip() == b"+="
    if value.type == "array":
        words = [word for child in value.named_children for word in words_of(child, shell)]
        for word in words:
            if item := _NAMED_ITEM.fullmatch(word):
                shell.variables[f"{key}[{item['name']}]"] = item["value"]
        before = shell.lists.get(key, []) if adds else []
        shell.lists[key] = [*before, *words][:MAX_LISTED]
        return
    shell.lists.pop(key, None)
    text = value_of(value, shell)
    before_text = shell.variables.pop(key, "")
    text = before_text + text if adds else text
    if len(text) <= _MAX_VALUE_CHARACTERS:
        shell.variables[key] = text


MAX_LISTED = 1000  # values of an array
_NAMED_ITEM = re.compile(r"\[(?P<name>[^\]]+)\]=(?P<value>.*)", re.DOTALL)
# a word that stands for all values of a list
_ALL_OF_LIST = re.compile(r'"?\$(?:\{(\w+)\[[@*]\]\}|\{?([@*]|\w+)\}?)"?')


def words_of(node: "Node", shell: ShellState) -> list[str]:
    """Returns the words that a node becomes, which are several for a variable without quotes."""
    if node.type == "command_name" and node.named_children:
        node = node.named_children[0]
    if listed := _ALL_OF_LIST.fullmatch(shell.text(node)):
        name = listed[1] or listed[2]
        if name == "*" and not shell.text(node).startswith('"'):
            name = "@"
        if name in shell.lists:
            return list(shell.lists[name])
    value = value_of(node, shell)
    if node.type in ("simple_expansion", "expansion") and value != shell.text(node):
        return value.split()
    is_short = len(value) <= _MAX_BRACED_CHARACTERS
    if "{" in value and is_short and not _QUOTES.search(shell.text(node)):
        return _expand_braces(value)
    return [value]


_LOCATED = re.compile(r"\$\((?:which|command -v) (\S+)\)")
_QUOTES = re.compile(r"""["'$`\\]""")
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_MAX_CHOICES = 64  # of a word with braces
_MAX_BRACED_CHARACTERS = 1000


def _expand_braces(word: str) -> list[str]:
    """Returns the words that `{a,b}` in a word stands for."""
    braces = _BRACES.search(word)
    if braces is None:
        return [word]
    choices = braces[1].split(",")[:_MAX_CHOICES]
    words = (word[: braces.start()] + choice + word[braces.end() :] for choice in choices)
    return [expanded for word in words for expanded in _expand_braces(word)][:_MAX_CHOICES]


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
            if item := re.fullmatch(r"\$\{(\w+)\[(\d+)\]\}", text):
                return "".join(shell.lists.get(item[1], [text])[int(item[2]) :][:1])
            if re.fullmatch(r"\$\{\w+\[[^\]@*]+\]\}", text):
                return shell.variables.get(re.sub(r"[${}\"']", "", text), text)
            name = re.fullmatch(r"\$\{?(\w+|[@*])(?::?-([^{}]*))?\}?", text)
            if name is None:
                return text
            default = text if name[2] is None else name[2].strip("\"'")
            return shell.variables.get(name[1], default)
        case "command_substitution":
            document = _document_in(node, shell)
            if located := _LOCATED.fullmatch(text):
                return located[1]
            if re.match(r"\$\(mktemp\b", text):
                return "/tmp/mktemp"
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
