"""The calls in Codex's scripts: with its tool `exec`, the model writes JavaScript that calls tools.

Versions that log no events for these calls have them in the script only, such as
`const r = await tools.exec_command({cmd: "git push", workdir: "/x"});`. Arguments that are literals
are read, or names that are bound to one once; arguments that the script computes are not.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from holdfast.measures.turns import ToolCall

# tools that run commands or change files, and the name of an argument that is a text by itself
_TOOLS = {
    "exec_command": "cmd",
    "shell": "command",
    "shell_command": "command",
    "apply_patch": "input",
}
# "tools.exec_command("
_CALL = re.compile(rf"\btools\.({'|'.join(_TOOLS)})\s*\(\s*")
# the beginning of "const cmd = "git push";"
_BINDING = re.compile(r"\b(?:const|let|var)\s+([A-Za-z_$][\w$]*)\s*=\s*(?=[\"'`])")
# the name in "cmd = x", "cmd += x"; not in "cmd == x" or "cmd => x"
_CHANGED = re.compile(r"(?<![\w$.])([A-Za-z_$][\w$]*)\s*[-+*/%&|^?]{0,2}=(?![=>])")
# names with another value in a part of the script: parameters of functions, and names of loops,
# as in "x => ...", "(a, b) => ...", "(a, b) {" and "for (const x of ..."
_LOCAL = re.compile(
    r"(?<![\w$.])([A-Za-z_$][\w$]*)\s*=>|\(([^()]*)\)\s*(?:=>|\{)"
    r"|\b(?:const|let|var)\s++([\w$,{}\[\] ]{1,80}?)\s++of\b"
)
_NAME = re.compile(r"[A-Za-z_$][\w$]*")
_END_OF_CALL = re.compile(r"\s*,?\s*\)")  # "})", "},)"
_END_OF_STATEMENT = re.compile(r"\s*(?:[;\n]|\Z)")
# "cmd", "'cmd'", "\"cmd\"", before the colon in an object
_KEY = re.compile(r"\s*(?:([A-Za-z_$][\w$]*)|\"([^\"\\]*)\"|'([^'\\]*)')\s*")
# "true", "-1.5e3"
_WORD = re.compile(r"true|false|null|undefined|-?(?:0|[1-9]\d{0,300})(?:\.\d+)?(?:e[+-]?\d+)?")
# "git push" in any quotation marks, without "${...}"
_TEXT = re.compile(
    r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\$]|\\.|\$(?!\{))*`", re.DOTALL
)
# what has no calls: texts, also computed ones, comments, and regular expressions
_NO_CODE = re.compile(
    rf"{_TEXT.pattern}|`(?:[^`\\]|\\.)*`|//[^\n]*|/\*.*?\*/"
    r"|(?<=[=(,:\[!&|?{};])[ \t]*+/(?![/*])"
    r"(?:[^/\\\n\[]|\\.|\[(?:[^\]\\\n]|\\.){0,100}+\]){1,200}+/",
    re.DOTALL,
)
# "String.raw`C:\temp`"
_RAW_TEXT = re.compile(r"String\.raw\s*`([^`$]*)`")
# "\n", "\x41", "\u0041" and "\u{1F600}", or a line break that continues a text
_ESCAPE = re.compile(
    r"\\(?:u\{(?P<point>[0-9A-Fa-f]+)\}|u(?P<unit>[0-9A-Fa-f]{4})|x(?P<byte>[0-9A-Fa-f]{2})"
    r"|(?P<line_break>\n)|(?P<character>.))",
    re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0"}


class ScriptCalls(NamedTuple):
    """The calls in a script whose arguments can be read, and the tools of the other calls."""

    calls: tuple[ToolCall, ...]
    computed: tuple[str, ...]


class _NotLiteral(Exception):
    """An argument that the script computes."""


def calls_in_script(script: str) -> ScriptCalls:
    """Reads the calls of tools that run commands or change files."""
    code = _blank_out_texts(script)
    texts = _bound_texts(script, code)
    calls: list[ToolCall] = []
    computed: list[str] = []
    for match in _CALL.finditer(code):
        try:
            value, end = _read_value(script, match.end(), texts)
            if not _END_OF_CALL.match(script, end):
                raise _NotLiteral
        except (_NotLiteral, RecursionError):
            computed.append(match[1])
            continue
        arguments = value if isinstance(value, Mapping) else {_TOOLS[match[1]]: value}
        calls.append(ToolCall(match[1], arguments))
    return ScriptCalls(tuple(calls), tuple(computed))


def _blank_out_texts(script: str) -> str:
    """Returns a script with its texts and comments blanked out, so that positions stay the same."""
    return _NO_CODE.sub(lambda match: "_" * len(match[0]), script)


def _bound_texts(script: str, code: str) -> Mapping[str, str]:
    """Returns the texts that are bound to a name which the script never binds again."""
    texts: dict[str, str] = {}
    changes = Counter(_CHANGED.findall(script))
    for names in _LOCAL.findall(code):
        changes.update(_NAME.findall(" ".join(names)))
    for match in _BINDING.finditer(script):
        text = _TEXT.match(script, match.end())
        is_whole = text and _END_OF_STATEMENT.match(script, text.end())
        if text and is_whole and changes[match[1]] == 1:
            texts[match[1]] = _unescape(text[0])
    return texts


def _read_value(script: str, position: int, texts: Mapping[str, str]) -> tuple[Any, int]:
    """Reads a literal, or a name that is bound to one; returns its value and where it ends.

    Raises:
        _NotLiteral: it is neither.
    """
    if match := _TEXT.match(script, position):
        return _unescape(match[0]), match.end()
    if match := _RAW_TEXT.match(script, position):
        return match[1], match.end()
    if script.startswith("{", position):
        return _read_object(script, position + 1, texts)
    if script.startswith("[", position):
        return _read_list(script, position + 1, texts)
    if match := _WORD.match(script, position):
        word = "null" if match[0] == "undefined" else match[0]
        return json.loads(word), match.end()
    match = _NAME.match(script, position)
    if match and match[0] in texts:
        return texts[match[0]], match.end()
    raise _NotLiteral


def _read_object(
    script: str, position: int, texts: Mapping[str, str]
) -> tuple[dict[str, Any], int]:
    """Reads the rest of an object after its brace."""
    fields: dict[str, Any] = {}
    while True:
        position = _after_space(script, position)
        if script.startswith("}", position):
            return fields, position + 1
        key = _KEY.match(script, position)
        if key is None:
            raise _NotLiteral
        name = key[1] or key[2] or key[3] or ""
        position = key.end()
        if script.startswith(":", position):
            start = _after_space(script, position + 1)
            fields[name], position = _read_value(script, start, texts)
        elif name in texts:  # `{cmd}` is `{cmd: cmd}`
            fields[name] = texts[name]
        else:
            raise _NotLiteral
        position = _after_item(script, position, "}")


def _read_list(script: str, position: int, texts: Mapping[str, str]) -> tuple[list[Any], int]:
    """Reads the rest of a list after its bracket."""
    items: list[Any] = []
    while True:
        position = _after_space(script, position)
        if script.startswith("]", position):
            return items, position + 1
        item, position = _read_value(script, position, texts)
        items.append(item)
        position = _after_item(script, position, "]")


def _after_item(script: str, position: int, end: str) -> int:
    """Returns the position after an item's comma, or that of the end of the object or list."""
    position = _after_space(script, position)
    if script.startswith(",", position):
        return position + 1
    if script.startswith(end, position):
        return position
    raise _NotLiteral


def _after_space(script: str, position: int) -> int:
    while position < len(script) and script[position].isspace():
        position += 1
    return position


def _unescape(literal: str) -> str:
    """Returns the text of a literal in its quotation marks."""

    def character(match: re.Match[str]) -> str:
        if code := match["point"] or match["unit"] or match["byte"]:
            return chr(min(int(code, 16), 0x10FFFF))
        if match["line_break"]:
            return ""
        return _ESCAPES.get(match["character"], match["character"])

    text = _ESCAPE.sub(character, literal[1:-1])
    # JavaScript writes an emoji as two code units
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
