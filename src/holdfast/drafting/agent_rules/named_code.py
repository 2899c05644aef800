"""Finds the code that the words of an instruction name.

    "`any`, unsafe casts or `@ts-ignore`" -> tokens_named -> `any`, `@ts-ignore`
    "hard-coded hex values"               -> tokens_named -> a hex value

`code_tokens` has the patterns of the pieces of code.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from holdfast.drafting.agent_rules.code_tokens import (
    CodeToken,
    code_token,
    marker_token,
    named_token,
    token_of_kind,
)
from holdfast.drafting.grammar.clauses import codes_in
from holdfast.drafting.grammar.commands import is_command
from holdfast.drafting.grammar.forms import CODE, form, literal, one_of, whole_match
from holdfast.drafting.grammar.instructions import Instruction
from holdfast.drafting.grammar.named_files import (
    PYTHON,
    SCRIPT,
    file_endings,
    files_of_language,
)
from holdfast.drafting.rules_file import Statement

# what people write without backticks
_WORDS = frozenset(
    "semicolons tabs enums emojis emoji todos em-dashes console.log console.logs innerhtml commonjs"
    " print goto var eval".split()
)
_NOUNS = one_of(
    *("types?", "casts?", "casting", "calls?", "statements?", "assertions?", "comments?"),
    *("imports?", "exports?", "blocks?", "hooks?", "keyword", "declarations?", "clauses?"),
    *("loops?", "directives?", "annotations?", "classes", "macro", "functions?", "methods?"),
    *("API", "fields?", "syntax", "operator", "suppressions?", "attributes?", "utilities"),
    *("tags?", "chains?", "chaining", "elements?", "components?", "decorators?", "interface"),
    *("expressions?", "modules?", "librar(?:y|ies)", "conditionals?", "literals?", "values?"),
    *("selectors?", "wrappers?", "generics", "variables?", "properties", "props?", "globals?"),
    *("packages?", "queries", "keywords?", "macros?", "modifiers?", "decorators?"),
    *("usages?", "use", "access", "references?"),
)
_ADJECTIVES = re.compile(
    r"^(?:(?:bare|raw|plain|direct|global|the|TypeScript(?:'s)?|explicit|native|any|new|more"
    r"|further|additional) )+",
    re.I,
)
_CODE_IN_BRACKETS = re.compile(rf"[A-Za-z -]+ \(({CODE}(?:(?:, | or | and ){CODE})*)\)")
_OF_SCHEMA = re.compile(r"(?:Prisma|GraphQL|SQL|Postgres(?:QL)?|MySQL|Drizzle|database) `")
_NAME_OF_LIBRARY = re.compile(r"^[A-Z][\w.]+(?:['’]s)? (?=`)")
_KIND = one_of(
    *"deprecated raw bare global plain direct legacy native debug stray leftover hardcoded".split()
)
_TOKENS = form(
    "`any`, `unknown` or bare `Object` types",
    rf"(?:{_KIND} )?(?P<codes>{CODE}"
    r"(?:(?:, (?:or |and |nor |no |never )*| or | and | nor |/| / )"
    rf"(?:{_KIND} )?{CODE})*)"
    rf"(?P<nouns>(?: (?:[a-z]+-)?{_NOUNS})*)"
    r"(?:,? etc\.?|,? (?:or|nor) (?:[a-z]+[ -]?){1,4})?",
)


def is_named_word(word: str) -> bool:
    """Whether a word names a piece of code without backticks: "semicolons"."""
    return word.lower() in _WORDS


def tokens_named(objects: str, statement: Statement) -> list[CodeToken]:
    """The pieces of code in a list; [] if something in it may not be code."""
    plain = _known_part(_ADJECTIVES.sub("", objects))
    if markers := marker_token(plain):
        return [markers]
    if bracketed := _CODE_IN_BRACKETS.fullmatch(plain):
        if named := _named_in_any_form(plain[: bracketed.start(1) - 2]):  # "star imports (`x`)"
            return [named] if _may_be_of(named, statement) else []
        plain = bracketed[1]
    elif _OF_SCHEMA.match(plain):
        return []  # a Prisma `enum` is none of TypeScript
    plain = _NAME_OF_LIBRARY.sub("", plain)
    if spans := whole_match(_TOKENS, plain):
        return _tokens_in_spans(spans, statement)
    parts = re.split(r",? or |,? nor |,? and |, ", plain)
    if len(parts) > 1:  # "`any`, unsafe casts or `@ts-ignore`", "TODOs, placeholders or gaps"
        return _tokens_in_parts(parts, statement)
    return _token_in_words(plain, statement)


def _tokens_in_spans(spans: re.Match[str], statement: Statement) -> list[CodeToken]:
    """The pieces of code in code spans such as "`any` or `Object` types"; spans that may not be
    code are left to the reader.
    """
    kind = spans["nouns"].strip()
    codes = codes_in(spans["codes"])
    if codes == ["prompt"]:
        return []  # a dialog of the browser only beside the others
    tokens = [_token_beside(code, statement.text) or token_of_kind(code, kind) for code in codes]
    known = [_in_its_language(token, statement) for token in tokens if token]
    return [token for token in known if _is_of_language(token, statement)]


def _token_in_words(plain: str, statement: Statement) -> list[CodeToken]:
    """The piece of code that words such as "inline imports" name; [] if they name none."""
    words = re.sub(r"^typescript ", "", plain.replace("`", "").lower())
    if " " not in words and not is_named_word(words):
        return []
    token = _named_in_any_form(words)
    if token and token.files == PYTHON and _CODE_OF_SCRIPT.search(statement.text):
        token = named_token("dynamic imports") if "import" in words else None
    return [token] if token and _may_be_of(token, statement) else []


_DESCRIBED = re.compile(r"\(no \w+, `[^`]+`\)")  # "the endpoint (no auth, `format=json`)"
# a part of a list that is left to the reader: "unsafe casts"
_OTHER_PART = re.compile(r"[A-Za-z][A-Za-z /-]{2,40}")


def _tokens_in_parts(parts: Sequence[str], statement: Statement) -> list[CodeToken]:
    """The pieces of code among the parts of a list; [] if a part may limit the others."""
    tokens: list[CodeToken] = []
    if _DESCRIBED.search(statement.text):
        return []
    for part in parts:
        if "`" in part and not whole_match(_TOKENS, part):
            return []
        found = tokens_named(part, statement)
        if not found and not _OTHER_PART.fullmatch(part.replace("`", "")):
            return []
        tokens += found
    return tokens


_AS_HARDCODED = re.compile(
    r"^(?:hardcoded )?(?:hard-coded|ad[ -]hoc|arbitrary|inline)(?= (?:hex|colou?r))"
)


def _named_in_any_form(words: str) -> CodeToken | None:
    """The code with a name such as "hex values", also as "a hex value" or "hard-coded hex values";
    None if there is none.
    """
    plain = re.sub(r"^(?:an?|any) ", "", words.lower())
    plain = _AS_HARDCODED.sub("hardcoded", plain)
    plain = plain.replace("hard-coded", "hardcoded").replace("colour", "color")
    forms_of_name = (plain, f"{plain}s", plain.removesuffix("s"), plain.removeprefix("hardcoded "))
    return next(filter(None, map(named_token, forms_of_name)), None)


# code of JavaScript or TypeScript, beside "inline imports"
_CODE_OF_SCRIPT = re.compile(r"`[^`]*(?:\bimport\(|\brequire\(|\.[jt]sx?\b)[^`]*`")
_OPERATOR = re.compile(r"(?:[a-z-]+ ){0,4}\(?`(?P<sign>[^\w\s`]{1,4})`\)?(?: operators?)?", re.I)


def operator_tokens(instruction: Instruction) -> list[CodeToken]:
    """`%>%` in "use `|>`, not `%>%`": of two operators, the one that is rejected; [] for another
    instruction.
    """
    wanted = _OPERATOR.fullmatch(instruction.object)
    rejected = _OPERATOR.fullmatch(instruction.rejected_object or "")
    if wanted is None or rejected is None:
        return []
    files = SCRIPT if wanted["sign"] in ("===", "!==") else ()
    sign = literal(rejected["sign"])  # and not a part of another sign
    return [CodeToken(rf"(?<![^\w\s)\]}}\"']){sign}(?![^\w\s(\[{{\"'])", files)]


_HYPHENATED = re.compile(r"`([a-z][a-z0-9]*(?:-[a-z0-9]+)*-(?:[a-z0-9]+|\*))`")


def hyphenated_tokens(instruction: Instruction) -> list[CodeToken]:
    """`margin-left` in "use `margin-inline-start`, not `margin-left`": two names of one shape, as
    of properties, classes or packages, are alternatives in code; [] for another instruction.
    """
    wanted = _HYPHENATED.search(instruction.object)
    rejected = _HYPHENATED.fullmatch(instruction.rejected_object or "")
    if wanted is None or rejected is None or is_command(rejected[1]):
        return []
    name = literal(rejected[1].removesuffix("*"))
    return [CodeToken(rf"(?<![\w-]){name}" + ("" if rejected[1].endswith("*") else r"(?![\w-])"))]


def _known_part(objects: str) -> str:
    """The code at the front of a list that goes on with something else: "`a()` or `b`-like names"
    is "`a()`".
    """
    first, joint, rest = objects.partition(" or ")
    if not joint or "`" not in rest or whole_match(_TOKENS, objects):
        return objects
    return first if whole_match(_TOKENS, first) else objects


def _may_be_of(token: CodeToken, statement: Statement) -> bool:
    """Whether a language that a statement is about may have a piece of code: `print` is Python's,
    and a statement that names no language may be about any.
    """
    about = files_of_language(statement.context)
    if token.files == PYTHON and about and not set(PYTHON) <= set(about):
        return False
    return _is_of_language(token, statement)


def _is_of_language(token: CodeToken, statement: Statement) -> bool:
    """Whether the language that a statement names, if it names one, may have a piece of code."""
    if token.files == PYTHON and _other_language(statement.document):
        return False
    here = file_endings(files_of_language(f"{statement.label} {statement.text}"))
    is_of_any = not token.files or "*" in token.files
    return not here or is_of_any or bool(here & file_endings(token.files))


_PYTHON = re.compile(
    r"\b(?:python3?|pip|pytest|uv|ruff|django|flask|fastapi|mypy|poetry)\b|\.py\b", re.I
)
_OTHER_LANGUAGES = re.compile(
    r"\b(?P<dart>dart|flutter)\b|\b(?P<swift>swift)\b|\b(?P<lua>lua)\b", re.I
)


@lru_cache(maxsize=64)
def _other_language(document: str) -> str:
    """The ending of files of the language that a file names, if that has `print()` too and the file
    names nothing of Python; "" otherwise.
    """
    if _PYTHON.search(document):
        return ""
    names = {match.lastgroup or "" for match in _OTHER_LANGUAGES.finditer(document)}
    return names.pop() if len(names) == 1 else ""


def _in_its_language(token: CodeToken, statement: Statement) -> CodeToken:
    """`print()` of the language that a file is about: of Dart in the rules of a Flutter app."""
    language = _other_language(statement.document)
    is_print = token.files == PYTHON and "print" in token.pattern
    return replace(token, files=(f"*.{language}",)) if is_print and language else token


def _token_beside(code: str, text: str) -> CodeToken | None:
    """The piece of code that a code span in a text stands for; None if that is not certain.

    Where the text has another call of the same function, as in "use `now(utc)`, not `now()`", only
    a call without arguments can be told apart from that.
    """
    token = code_token(code)
    name, bracket, _ = code.partition("(")
    if not token or not bracket:
        return token
    if len(set(re.findall(rf"`{re.escape(name)}(\([^)`]*)", text))) < 2:
        return token
    return CodeToken(rf"{token.pattern}\s*\)", token.files) if code.endswith("()") else None
