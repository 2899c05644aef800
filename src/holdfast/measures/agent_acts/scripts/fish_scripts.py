"""Writes scripts of fish as Bash, as far as the commands that they run go.

    set flags --force; git push $flags  ->  flags=(--force); git push $flags
    if test -d .git; git push; end      ->  if test -d .git; then git push; fi

The result is parsed, never run.
"""

import re

_TOKEN_OF_FISH = re.compile(
    r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|(?<!\S)\#[^\n]*|[;\n]|[()]|(?:[^'";\n()#]|(?<=\S)#)+""",
    re.DOTALL,
)
# what a block begins and ends with in Bash
_BLOCKS_OF_FISH = {
    "if": ("if ", "; then", "fi"),
    "while": ("while ", "; do", "done"),
    "for": ("for ", "; do", "done"),
    "begin": ("{ ", "", "}"),
    "function": ("", "() {", "}"),
}


def bash_of_fish(script: str) -> str:
    """Returns a script of fish as Bash."""
    lines: list[str] = []
    ends: list[str] = []
    for statement in _statements_of_fish(script):
        word, _, rest = statement.partition(" ")
        rest = rest.strip()
        if word in _BLOCKS_OF_FISH:
            start, after, end = _BLOCKS_OF_FISH[word]
            rest = rest.split(" ")[0] if word == "function" else rest
            lines.append(f"{start}{rest}{after}")
            ends.append(end)
        elif word == "end" and ends:
            lines.append(" ".join(filter(None, [ends.pop(), rest])))
        elif word == "else":
            lines.append(f"elif {rest[3:]}; then" if rest.startswith("if ") else "else")
        elif word == "set":
            names = [part for part in rest.split(" ") if part and not part.startswith("-")]
            named = re.search(rf"(?<!\S){re.escape(names[0])}\s+(.*)", rest) if names else None
            lines.append(f"{names[0]}=({named[1]})" if named else ":")
        elif word in ("and", "or") and lines and not lines[-1].endswith(("; then", "; do", "{ ")):
            lines[-1] += f" {'&&' if word == 'and' else '||'} {rest}"
        elif word in ("and", "or"):
            lines.append(rest)
        else:
            lines.append(f"! {rest}" if word == "not" else statement)
    return "\n".join([*lines, *reversed(ends)])


def _statements_of_fish(script: str) -> list[str]:
    """Returns the statements of a script of fish, with `$(...)` in place of `(...)`."""
    statements = [""]
    depth = 0
    for token in _TOKEN_OF_FISH.findall(script):
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token in (";", "\n") and depth <= 0:
            statements.append("")
        elif not token.startswith("#"):
            statements[-1] += "$(" if token == "(" else token
    return [statement.strip() for statement in statements if statement.strip()]
