"""Removes the code that texts in quotation marks only name, so that patterns see what runs.

For example:

    say("call print(x)")     ->  say("call       x)")
    print(f"{len(x)} lines") ->  the same, as `len(x)` runs
"""

import posixpath
import re

# --- Texts in quotation marks, by the languages of files

_PYTHON_FILES = ("py", "pyi")
_SCRIPT_FILES = ("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts")
# In these languages, ' is around a single character, or begins the name of a lifetime. In C#, texts
# with holes begin with $", and those without escapes with @".
_CHARACTER_FILES = tuple("java c h cc cpp cxx hpp cs go rs swift kt kts scala dart".split())
_QUOTED = r'(?<!\\)"(?:\\.|[^"\\\n])*+"'  # "a", with \" in it
_QUOTED_SINGLY = r"(?<!\\)'(?:\\.|[^'\\\n])*+'"
_TRIPLE_QUOTED = r'"{3}.*?"{3}'
_PREFIX = r"(?P<prefix>[rRbBuU]?[fF]?[rR]?)"  # of a text in Python, as in f"{x}"
_QUOTED_IN_PYTHON = (
    rf"(?<!\w){_PREFIX}(?:{_TRIPLE_QUOTED}|'{{3}}.*?'{{3}}|{_QUOTED}|{_QUOTED_SINGLY})"
)
# In a part of a file, """ may end a text that began before: only those count that begin one, as in
# `"""Calls` in the first line, below `def f():`, and in `x = """a`.
_QUOTED_IN_PART_OF_PYTHON = (
    rf"(?:\A[ \t]*(?=\"{{3}}[ \t]*\S)|:[ \t]*\n\s*(?=\")|[=(,\[][ \t]*(?=\")){_TRIPLE_QUOTED}"
    rf"|(?<!\w){_PREFIX}(?:{_QUOTED}|{_QUOTED_SINGLY})"
)
# an apostrophe after a letter is one of JSX, <p>Don't</p>, and a mark after / is in a regular
# expression, /"/g
_QUOTED_IN_SCRIPT = rf"(?<!/)(?<!/\[)(?:{_QUOTED}|(?<!\w){_QUOTED_SINGLY})"
_QUOTED_BY_SUFFIX = {
    **dict.fromkeys(_PYTHON_FILES, _QUOTED_IN_PYTHON),
    **dict.fromkeys(_SCRIPT_FILES, rf"{_QUOTED_IN_SCRIPT}|(?<!\\)`(?:\\.|[^`\\])*+`"),
    **dict.fromkeys(
        _CHARACTER_FILES,
        rf"(?:\$?@|@\$)\"[^\"]*\"|\$?(?:{_TRIPLE_QUOTED}|{_QUOTED})|'(?:\\.|[^'\\\n])'",
    ),
}
# in a part of a file, ` may end a text that began before, as """ may
_QUOTED_IN_PARTS = {
    **dict.fromkeys(_PYTHON_FILES, _QUOTED_IN_PART_OF_PYTHON),
    **dict.fromkeys(_SCRIPT_FILES, _QUOTED_IN_SCRIPT),
}


def without_quoted_code(text: str, path: str, *, is_whole: bool) -> str:
    """Returns a text of a file without the names of functions that texts in it call, and the like.

    Other texts in quotation marks, such as URLs and colours, stay; so does the whole text if the
    file's name does not tell its language.

    Args:
        is_whole: whether the text is the whole file, and not a part of it.
    """
    suffix = posixpath.basename(path).rpartition(".")[2].lower()
    quoted = _QUOTED_BY_SUFFIX.get(suffix)
    if not is_whole:
        quoted = _QUOTED_IN_PARTS.get(suffix, quoted)
    if quoted is None:
        return text
    marks_holes = suffix in _CHARACTER_FILES
    return re.sub(quoted, lambda match: _blank_code(match, marks_holes), text, flags=re.DOTALL)


# --- The code in a text

# functions of CSS, in a text such as "translateX(4px)"
_CSS_FUNCTIONS = (
    r"rgba?|hsla?|hwb|okl(?:ab|ch)|url|var|calc|min|max|minmax|clamp|cubic-bezier"
    r"|(?:translate|rotate|scale|skew)(?:[XYZ]|3d)?|matrix(?:3d)?|perspective|drop-shadow|blur"
    r"|brightness|contrast|grayscale|saturate|sepia|hue-rotate"
)
# a query, as in "select now() from a"
_QUERY = re.compile(
    r"\A\W*(?:select\s++(?!from\b).+?\sfrom\s+\w|insert\s+into\s|update\s(?>.+?\sset\s).+?="
    r"|delete\s+from\s|create\s+(?:table|view|(?:unique\s+)?index|trigger)\s|alter\s+table\s"
    r"|with\s+\w+\s+as\s*\()",
    re.IGNORECASE | re.DOTALL,
)
# a call, an import, or a member of what a program uses: `print(`, `import os`, `console.log`;
# `rgb(0, 0, 0)` and `NOW()` are none
_NAMED_CODE = re.compile(
    rf"(?<![\w$.!:-])(?!(?:{_CSS_FUNCTIONS}|[A-Z_]+)\()[.:]*+[\w$][\w$.:!]*+\("
    r"|^[ \t]*(?:import|from|export|using|package)\b[^\n]*"
    r"|(?<![\w$.])(?:console|process|os|sys|fmt|log|logging|Math|JSON|System|Console)\.\w+",
    re.MULTILINE,
)
# code within a text: f"{x}" and `${x}`, and in other languages "${x}" and "\(x)"
_HOLE = re.compile(r"(\$?\{[^{}]*\})")
_MARKED_HOLE = re.compile(r"(\$\{[^{}]*\}|\\\((?:[^()]|\([^()]*\))*\))")


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
