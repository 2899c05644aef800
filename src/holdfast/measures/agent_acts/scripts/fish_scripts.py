"""Writes scripts of fish as Bash, as far as the commands that they run go.

    set flags --force; git push $flags  ->  flags=(--force); git push $flags
    if test -d .git; git push; end      ->  if test -d .git; then git push; fi

The result is parsed, never run.
"""

import re
from typing import NamedTuple

# a text in quotation marks, a comment, the end of a statement, a parenthesis, or other text
_TOKEN = re.compile(
    r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|(?<!\S)\#[^\n]*|[;\n]|[()]|(?:[^'";\n()#]|(?<=\S)#)+""",
    re.DOTALL,
)


class _Block(NamedTuple):
    """The words of a block in Bash: before its head, after it, and at the end."""

    start: str
    after_head: str
    end: str


_BLOCKS = {
    "if": _Block("if ", "; then", "fi"),
    "while": _Block("while ", "; do", "done"),
    "for": _Block("for ", "; do", "done"),
    "begin": _Block("{ ", "", "}"),
    "function": _Block("", "() {", "}"),
}
_JOINS = {"and": "&&", "or": "||"}  # a statement to the one before
_BEGINS_BLOCK = ("; then", "; do", "{ ")  # how a line ends that has no statement before it


def bash_of_fish(script: str) -> str:
    """Returns a script of fish as Bash."""
    lines: list[str] = []
    ends: list[str] = []  # of the blocks that are open, innermost last
    for statement in _statements_in(script):
        word, _, rest = statement.partition(" ")
        rest = rest.strip()
        if block := _BLOCKS.get(word):
            head = rest.split(" ")[0] if word == "function" else rest
            lines.append(f"{block.start}{head}{block.after_head}")
            ends.append(block.end)
        elif word == "end" and ends:
            lines.append(f"{ends.pop()} {rest}".rstrip())
        elif word == "else":
            lines.append(f"elif {rest[3:]}; then" if rest.startswith("if ") else "else")
        elif word == "set":
            lines.append(_assignment(rest))
        elif word in _JOINS and lines and not lines[-1].endswith(_BEGINS_BLOCK):
            lines[-1] += f" {_JOINS[word]} {rest}"
        elif word in _JOINS:
            lines.append(rest)
        else:
            lines.append(f"! {rest}" if word == "not" else statement)
    return "\n".join([*lines, *reversed(ends)])


def _assignment(words: str) -> str:
    """Returns the assignment of `set -x flags a b`, flags=(a b); `:` if it sets nothing."""
    names = [word for word in words.split(" ") if word and not word.startswith("-")]
    if not names:
        return ":"
    values = re.search(rf"(?<!\S){re.escape(names[0])}\s+(.*)", words)
    return f"{names[0]}=({values[1]})" if values else ":"


def _statements_in(script: str) -> list[str]:
    """Returns the statements of a script, with `$(...)` in place of `(...)`."""
    statements = [""]
    depth = 0  # of parentheses
    for token in _TOKEN.findall(script):
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token in (";", "\n") and depth <= 0:
            statements.append("")
        elif not token.startswith("#"):
            statements[-1] += "$(" if token == "(" else token
    return [statement.strip() for statement in statements if statement.strip()]
