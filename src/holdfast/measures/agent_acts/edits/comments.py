"""Tells comments from code, by the name of the file.

For example:

    x = 1  # any  ->  x = 1
"""

import posixpath
import re

# --- Texts in quotation marks, and the comments of languages

# """a""", '''a''', "a", 'a' and `a`; a backslash escapes a mark
_TEXTS = (
    r"""\"{3}.*?\"{3}|'{3}.*?'{3}"""
    r"""|(?<!\\)(?:"(?:\\.|[^"\\\n])*+"|'(?:\\.|[^'\\\n])*+'|`(?:\\.|[^`\\])*+`)"""
)
# /* a */; the text may begin within one, as in " * a\n */"
_STARS = r"/\*.*?(?:\*/|\Z)|\A(?:[ \t]*\*(?=[\s/])[^\n]*(?:\n|\Z))+"
_SLASHES = rf"//[^\n]*|{_STARS}"  # // a
_HASH = r"(?<!\$\{)(?<![^\s;,(){}\[\]])\#[^\n]*"  # "# a", not "a#b" and "${#a}"
_DASHES = r"--[^\n]*|/\*.*?(?:\*/|\Z)"  # -- a
_MARKUP = r"<!--.*?(?:-->|\Z)"  # <!-- a -->
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
