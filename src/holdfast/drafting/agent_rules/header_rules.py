"""Rules of what new files begin with: a notice, a line of code or a docstring.

Every new file needs a licence header. -> code_written(pattern="copyright|licen[cs]e|SPDX")
"""

import re
from collections.abc import Sequence

from holdfast.drafting.agent_rules.code_tokens import code_token
from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.clauses import Clause, codes_in
from holdfast.drafting.grammar.forms import CODE, form, literal, one_of, whole_match, word_pattern
from holdfast.drafting.grammar.named_files import (
    DOCUMENTS,
    PYTHON,
    files_of_language,
    glob_argument,
)


def header_rule(clause: Clause) -> list[Draft]:
    """Reads "every new file must have a licence header" and "use `x` in all PHP files"."""
    if clause.is_prohibited:
        return []
    if match := whole_match(_WITH_CODE, clause.text):
        return _code_rule(match, clause)
    return _docstring_rule(clause) or _notice_rule(clause)


def _begin_files(pattern: str, files: Sequence[str]) -> Draft:
    """The rule that a new file has what a pattern finds."""
    spec = measure("code_written", pattern=pattern, files=glob_argument(files), whole=True)
    return Draft("code", "requirement", spec)


# --- A line of code

_WITH_CODE = (
    form(
        "Always use `declare(strict_types=1)` in all PHP files",
        rf"(?:always |please )?(?:use|add|include|put|start with) (?P<code>{CODE})"
        r"(?: (?:directive|declaration|statement|comment|line))?"
        r" (?:in|to|(?:at|to) (?:the )?top of) (?:all|every|each|any) (?P<of>[\w#+. ]*?)"
        r" ?(?:source )?(?P<noun>files?|modules?|scripts?)",
    )
    + form(
        "`declare(strict_types=1)` at the top of every PHP file",
        rf"(?P<code>{CODE}) (?:at (?:the )?top of|in) (?:all|every|each) (?P<of>[\w#+. ]*?)"
        r" ?(?:source )?(?P<noun>files?|modules?|scripts?)",
    )
    + form(
        "All PHP files start with `declare(strict_types=1)`",
        r"(?:all|every|each|new)(?: new)? (?P<of>[\w#+. ]*?) ?(?:source )?"
        r"(?P<noun>files?|modules?|scripts?)"
        r" (?:must |should |always )*(?:start|begin|have|include|contain)s?(?: with)?"
        rf" (?P<code>{CODE})(?: (?:directive|declaration|statement|comment|line|header))?",
    )
)


def _code_rule(match: re.Match[str], clause: Clause) -> list[Draft]:
    """The rule that files have the code of a match of `_WITH_CODE`; [] if the language is not
    known.
    """
    code = match["code"].strip("`")
    files: Sequence[str]
    if of_language := match["of"].strip():
        files = files_of_language(of_language)
    elif match["noun"].lower().startswith(("module", "script")):
        files = _files_of_header(code)
    else:
        token = code_token(code)
        files = (token and token.files) or ("*", DOCUMENTS)
    pattern = _place_in_file(re.sub(r"`[^`]*`", "", clause.text), code) + literal(code)
    return [_begin_files(pattern, files)] if files else []


# what may come before the first statement of a file: `<?php`, comments, a docstring
_BEFORE_CODE = (
    r"\A(?:\s|<\?php\b|(?:#|//|--)[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/"
    r"|\"{3}(?:[^\"]|\"(?!\"{2}))*\"{3}|'{3}(?:[^']|'(?!'{2}))*'{3})*"
)
_COMMENT = re.compile(r"#|//|/\*|--|<!--|;")
_STARTS = re.compile(r"\b(?:start|begin)s?\b", re.I)
_AT_THE_TOP = re.compile(r"\btop of\b", re.I)


def _place_in_file(text: str, code: str) -> str:
    """The pattern of what may come before some code, by the words around it: "start with" a comment
    leaves only a line such as `#!/bin/sh`, and "contain" anything.
    """
    if _STARTS.search(text) and _COMMENT.match(code):
        return r"\A(?:#!.*\n)?"
    return _BEFORE_CODE if _STARTS.search(text) or _AT_THE_TOP.search(text) else ""


# the first line of files of one language
_HEADERS = ((re.compile(r"from __future__ "), PYTHON), (re.compile(r"set -|#!"), ("*.{sh,bash}",)))


def _files_of_header(code: str) -> Sequence[str]:
    """The globs of the modules or scripts that begin with some code; () if they are not known."""
    return next((files for pattern, files in _HEADERS if pattern.match(code)), ())


# --- A docstring

_WITH_DOCSTRING = form(
    "Every Python module must start with a docstring",
    r"(?:all|every|each)(?: new)? (?:(?P<python>python|`?\.py`?) )?(?P<noun>files?|modules?)"
    r" (?:must |should |need to |needs to )?(?:start|begin|have|has|include|need)s?(?: with)? an?"
    r" (?:(?:module|file)(?:-level)? )?docstrings?(?: at the top)?",
)
_DOCSTRING = r"\A(?:[ \t]*(?:#[^\n]*)?\n)*[rRuU]?(?:\"{3}|'{3})"


def _docstring_rule(clause: Clause) -> list[Draft]:
    """Reads "every Python module must start with a docstring"; empty files need none."""
    match = whole_match(_WITH_DOCSTRING, clause.text)
    if match is None or not (match["python"] or match["noun"].lower().startswith("module")):
        return []
    return [_begin_files(_DOCSTRING, (*PYTHON, "!*__init__.py"))]


# --- A notice

_FILES = (
    r"(?:(?:all|any|each|every|new|source|code|the) )*(?P<files>[\w#+.]+ )?"
    r"(?:(?:source|code) )*files?(?: \([^()]*\))?"
)
_HEADER = (
    r"(?:the |an? )?(?:[\w.-]+ ){0,3}(?:licen[cs]e|copyright|SPDX)(?:[- ](?:licen[cs]e|identifier"
    r"|copyright))*(?: (?:header|notice|comment|line|statement|banner|block))s?\b.*"
)
_NEED = one_of(*"include have need require contain begin start carry get".split())
_WITH_HEADER = (
    form(
        "For all new source files, include the licence header",
        rf"(?:for|in|to|at the top of) {_FILES},? (?:always )?(?:include|add|put|use) {_HEADER}",
    )
    + form(
        "Every new file must have a licence header",
        rf"{_FILES} (?:must |should |always )*{_NEED}s?(?: with)? {_HEADER}",
    )
    + form(
        "Add the licence header to every new file",
        r"(?:always )?(?:include|add|put) (?:the |an? )?(?:[\w.-]+ ){0,3}"
        r"(?:licen[cs]e|copyright|SPDX)"
        rf"(?: \w+){{0,2}} (?:to|in|at the top of) {_FILES}",
    )
)
# a header of some files only, or one that the files have anyway
_LIMITED = word_pattern(*"unless except if when where only already but may need not".split())
_NOTICE = r"(?i)copyright|licen[cs]e|SPDX"


def _notice_rule(clause: Clause) -> list[Draft]:
    """Reads "every new file must have a licence header"."""
    if whole_match(_WITH_HEADER, clause.text) is None or _LIMITED.search(clause.text):
        return []
    text = clause.statement.text
    endings = [code for code in codes_in(text) if re.fullmatch(r"\*?\.\w{1,5}", code)]
    files = [f"*{ending.lstrip('*')}" for ending in endings]
    files = files or files_of_language(text) or ["*", DOCUMENTS]
    return [_begin_files(_NOTICE, files)]
