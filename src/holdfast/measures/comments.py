"""Tells comments and quoted code from code, by the name of the file.

x = 1  # any          ->  without comments: `x = 1`
say("call print(x)")  ->  without quoted code: `say("call      (x)")`
"""

import posixpath
import re

_TEXTS = r"""\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\.|[^`\\])*`"""
_STARS = r"/\*.*?(?:\*/|\Z)|\A(?:[ \t]*\*(?=[\s/])[^\n]*(?:\n|\Z))+"  # may begin within one
_SLASHES = rf"//[^\n]*|{_STARS}"
_HASH = r"(?<!\$\{)(?<![^\s;,(){}\[\]])\#[^\n]*"
_DASHES = r"--[^\n]*|/\*.*?(?:\*/|\Z)"
_MARKUP = r"<!--.*?(?:-->|\Z)"
_BY_SUFFIX = {
    **dict.fromkeys(
        "js jsx mjs cjs ts tsx mts cts java c h cc cpp cxx hpp cs go rs swift kt kts scala dart"
        " groovy proto scss less".split(),
        _SLASHES,
    ),
    **dict.fromkeys(
        "py pyi rb sh bash zsh fish pl r yml yaml toml cfg ini conf tf nix ex exs jl cmake".split(),
        _HASH,
    ),
    **dict.fromkeys("sql lua hs elm".split(), _DASHES),
    **dict.fromkeys("html htm xml svg md".split(), _MARKUP),
    **dict.fromkeys("vue svelte".split(), f"{_MARKUP}|{_SLASHES}"),
    "css": _STARS,
    "php": rf"{_SLASHES}|(?!\#\[){_HASH}",
}
_BY_NAME = dict.fromkeys(("Makefile", "Dockerfile", "Justfile", "justfile"), _HASH)
# what a regular expression has that is about comments: their marks, and the words for tools
_ABOUT_COMMENTS = re.compile(
    r"#|//|/\\?\*|--|@|comment|todo|fixme|\bxxx|\bhack|ignore|disable|noqa|nosec|nolint|pragma"
    r"|lint|spdx|copyright|licen[sc]e|generated",
    re.IGNORECASE,
)


def is_about_comments(pattern: str) -> bool:
    """Whether a regular expression is meant for comments, as `TODO` and `# type: ignore` are."""
    return _ABOUT_COMMENTS.search(pattern) is not None


def without_comments(text: str, path: str) -> str:
    """Returns a text of a file with spaces in place of its comments; texts in quotation marks stay.

    It stays as it is if the file's name does not tell its language.
    """
    name = posixpath.basename(path)
    comment = _BY_NAME.get(name) or _BY_SUFFIX.get(name.rpartition(".")[2].lower())
    if comment is None:
        return text
    texts = "(?!)" if comment is _MARKUP else _TEXTS
    parts = re.compile(rf"(?P<text>{texts})|{comment}", re.DOTALL)
    return parts.sub(lambda p: p[0] if p["text"] else re.sub(r"[^\n]", " ", p[0]), text)


# --- Code that a text in quotation marks only names

_PYTHON_FILES = ("py", "pyi")
_SCRIPT_FILES = ("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts")
# in these languages, ' is around a single character, or begins the name of a lifetime; in C#, texts
# with holes begin with $", and those without escapes with @"
_CHARACTER_FILES = tuple("java c h cc cpp cxx hpp cs go rs swift kt kts scala dart".split())
_QUOTED = r'"(?:\\.|[^"\\\n])*"'
_QUOTED_SINGLY = r"'(?:\\.|[^'\\\n])*'"
_TRIPLE_QUOTED = r'"{3}.*?"{3}'
_PREFIX = r"(?P<prefix>[rRbBuU]?[fF]?[rR]?)"
_QUOTED_IN_PYTHON = (
    rf"(?<!\w){_PREFIX}(?:{_TRIPLE_QUOTED}|'{{3}}.*?'{{3}}|{_QUOTED}|{_QUOTED_SINGLY})"
)
# in a part of a file, """ may end a text that began before: only those count that begin one
_QUOTED_IN_PART_OF_PYTHON = (
    rf"(?:\A[ \t]*(?=\"{{3}}[ \t]*\S)|:[ \t]*\n\s*(?=\")|[=(,\[][ \t]*(?=\")){_TRIPLE_QUOTED}"
    rf"|(?<!\w){_PREFIX}(?:{_QUOTED}|{_QUOTED_SINGLY})"
)
# an apostrophe after a letter is one of JSX, <p>Don't</p>, and a mark after / is one of /"/g
_QUOTED_IN_SCRIPT = rf"(?<!/)(?<!/\[)(?:{_QUOTED}|(?<!\w){_QUOTED_SINGLY})"
_QUOTED_BY_SUFFIX = {
    **dict.fromkeys(_PYTHON_FILES, _QUOTED_IN_PYTHON),
    **dict.fromkeys(_SCRIPT_FILES, rf"{_QUOTED_IN_SCRIPT}|`(?:\\.|[^`\\])*`"),
    **dict.fromkeys(
        _CHARACTER_FILES,
        rf"(?:\$?@|@\$)\"[^\"]*\"|\$?(?:{_TRIPLE_QUOTED}|{_QUOTED})|'(?:\\.|[^'\\\n])'",
    ),
}
# functions of CSS, in a text such as "translateX(4px)"
_OF_CSS = (
    r"rgba?|hsla?|hwb|okl(?:ab|ch)|url|var|calc|min|max|minmax|clamp|cubic-bezier"
    r"|(?:translate|rotate|scale|skew)(?:[XYZ]|3d)?|matrix(?:3d)?|perspective|drop-shadow|blur"
    r"|brightness|contrast|grayscale|saturate|sepia|hue-rotate"
)
# a query, as in "select now() from a"
_QUERY = re.compile(
    r"\A\W*(?:select\s+(?!from\b).+?\sfrom\s+\w|insert\s+into\s|update\s.+?\sset\s.+?="
    r"|delete\s+from\s|create\s+(?:table|view|(?:unique\s+)?index|trigger)\s|alter\s+table\s"
    r"|with\s+\w+\s+as\s*\()",
    re.IGNORECASE | re.DOTALL,
)
# a call, an import, or a member of what a program uses; `rgb(0, 0, 0)` and `NOW()` are none
_NAMED_CODE = re.compile(
    rf"(?<![\w$.!:-])(?!(?:{_OF_CSS}|[A-Z_]+)\()[.:]*+[\w$][\w$.:!]*+\("
    r"|^[ \t]*(?:import|from|export|using|package)\b[^\n]*"
    r"|(?<![\w$.])(?:console|process|os|sys|fmt|log|logging|Math|JSON|System|Console)\.\w+",
    re.MULTILINE,
)
# code within a text: f"{x}" and `${x}`, and in other languages "${x}" and "\(x)"
_HOLE = re.compile(r"(\$?\{[^{}]*\})")
_MARKED_HOLE = re.compile(r"(\$\{[^{}]*\}|\\\((?:[^()]|\([^()]*\))*\))")


def without_quoted_code(text: str, path: str, *, is_whole: bool) -> str:
    """Returns a text of a file without the names of functions that texts in it call, and the like.

    Other texts in quotation marks, such as URLs and colours, stay; so does the whole text if the
    file's name does not tell its language.

    Args:
        is_whole: whether the text is the whole file, and not a part of it.
    """
    suffix = posixpath.basename(path).rpartition(".")[2].lower()
    quoted = _QUOTED_BY_SUFFIX.get(suffix)
    if quoted is None:
        return text
    if suffix in _PYTHON_FILES and not is_whole:
        quoted = _QUOTED_IN_PART_OF_PYTHON
    elif suffix in _SCRIPT_FILES and not is_whole:
        quoted = _QUOTED_IN_SCRIPT  # ` may end a text that began before
    marks_holes = suffix in _CHARACTER_FILES
    return re.sub(quoted, lambda match: _blank_code(match, marks_holes), text, flags=re.DOTALL)


def _blank_code(quoted: re.Match[str], marks_holes: bool) -> str:
    """Puts spaces in place of the code that a quoted text names, except in the holes of it.

    Args:
        marks_holes: whether every text may have holes, which begin with a mark, such as `${`.
    """
    text = quoted[0]
    if _QUERY.match(text):
        return text
    prefix = quoted.groupdict().get("prefix") or ""
    if "f" in prefix.lower() or text.startswith(("`", "$", "@$")):
        parts = _HOLE.split(text)
    elif marks_holes:
        parts = _MARKED_HOLE.split(text)
    else:
        parts = [text]
    parts[::2] = [_NAMED_CODE.sub(lambda code: " " * len(code[0]), part) for part in parts[::2]]
    return "".join(parts)
