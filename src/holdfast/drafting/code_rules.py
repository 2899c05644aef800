"""Rules about what is written into files: "never use `any`", "use `pathlib`, not `os.path`"."""

import re
from collections.abc import Sequence

from holdfast.drafting.clauses import all_known, codes_in
from holdfast.drafting.code_tokens import (
    DOCUMENTS,
    SCRIPT,
    TESTS,
    CodeToken,
    code_token,
    files_of_language,
    named_token,
)
from holdfast.drafting.commands import any_of
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import CODE, any_words, forms, one_of, whole_match
from holdfast.drafting.instructions import WRITE, Instruction, Modality, compared, instruction_of
from holdfast.drafting.path_globs import path_glob
from holdfast.drafting.rules_file import Statement
from holdfast.drift.rule_kinds import Polarity

_WORDS = frozenset(  # names of tokens that need no backticks
    "semicolons tabs enums emojis emoji todos em-dashes console.log console.logs innerhtml".split()
)
_NOUNS = one_of(
    *("types?", "casts?", "casting", "calls?", "statements?", "assertions?", "comments?"),
    *("imports?", "exports?", "blocks?", "hooks?", "keyword", "declarations?", "clauses?"),
    *("loops?", "directives?", "annotations?", "classes", "macro", "functions?", "methods?"),
    *("API", "fields?", "syntax", "operator", "suppressions?", "attributes?", "utilities"),
    *("tags?", "chains?", "chaining", "elements?", "components?", "decorators?", "interface"),
    *("expressions?", "modules?", "librar(?:y|ies)"),
)
_KIND_OF_CODE = one_of(*"TypeScript production application app source committed library".split())
_ALL_CODE = forms(
    {
        "all production code": (
            any_words("this", "the", "our", "any", "all", "new", "your")
            + one_of(
                *("repo", "repository", "project", "codebase", "source files?"),
                rf"(?:{_KIND_OF_CODE} )?code(?:base)?",
                "tests or production code",
                "production code or tests",
            )
        )
    }
)
_NAMED_EXPORTS = forms(
    {"Use only named exports": r"(?:always )?(?:(?:use |only )*named exports(?: only)?)"}
)
_AGAINST = ("instead of", "in place of", "rather than", "not", "never", "over")
_PLACES = ("in", "inside", "within", "outside", "outside of")
_FOR_TYPES = re.compile(r"type[- ](?:casting|casts?|assertions?)", re.I)
_PURPOSE = re.compile(r"\w+ing|images|performance|interactivity", re.I)  # that narrows nothing
_TO_SILENCE = re.compile(
    r"(?:silence|suppress|bypass|work around|get around|hide|satisfy) .*", re.I
)
_PLACE_FIRST = forms(
    {
        "in tests, do not use `sleep`": (
            r"(?P<place>in [^,]{2,30}?),? (?P<rest>(?:never|do not|don['’]t|always|use) .+)"
        )
    }
)
# "no `active_sessions`" may be about a feature; a rule about a name says what is not done with it
_MERE_NAME = re.compile(r"no `[a-z]+(?:_[a-z]+)+`.*", re.I)
_PAIRS = re.compile(rf"{CODE} (?:instead of|rather than|over|not) ({CODE})")


def code_rule(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Never use `any`; use `pathlib` instead of `os.path`."""
    if whole_match(_NAMED_EXPORTS, clause):
        default = CodeToken(r"^\s*export\s+default\b", SCRIPT)
        return None if prohibits else _drafts([default], [], statement)
    if first := whole_match(_PLACE_FIRST, clause):  # "in tests, do not use `sleep`"
        clause = f"{first['rest']} {first['place']}"
    instruction = instruction_of(clause, prohibits)
    objects = _forbidden_objects(instruction, clause) if instruction else None
    if instruction is None or objects is None or _is_scoped(statement):
        return None
    if "call" in instruction.verbs and "(" not in objects + clause:
        return None  # a name alone may be that of a tool
    if _MERE_NAME.fullmatch(clause):
        return None
    pairs = _PAIRS.findall(clause)
    tokens = _tokens(", ".join(pairs) if len(pairs) > 1 else objects, statement)
    files = _files(instruction, statement)
    if tokens is None or files is None:
        return None
    return _drafts(tokens, files, statement)


def _forbidden_objects(instruction: Instruction, clause: str) -> str | None:
    """The words for what an instruction does not allow; None if it forbids nothing, or if more
    than places limit it.
    """
    if not instruction.does(WRITE):
        return None
    against = compared(instruction)
    if instruction.modality is Modality.NEVER:
        narrowing: tuple[str, ...] = ()
        if _FOR_TYPES.fullmatch(instruction.tail("for") or ""):
            narrowing += ("for",)
        if _TO_SILENCE.fullmatch(instruction.tail("to") or ""):
            narrowing += ("to",)
        if not instruction.has_only(*_PLACES, "except", *narrowing) or against:
            return None
        return instruction.object or instruction.tail("to") or ""
    if instruction.modality is not Modality.MUST or not against or against.startswith("`."):
        return None
    named = [word for word, _ in instruction.tails]
    most = max(1, clause.count("`") // 4)  # comparisons: one for two pieces of code
    if (
        not instruction.does(("use", "call", "import"))
        or not instruction.has_only(*_PLACES, *_AGAINST, "from", "for")
        or not _PURPOSE.fullmatch(instruction.tail("for") or "logging")
        or "to" in named
        or sum(word in _AGAINST for word in named) > most
    ):
        return None
    return against


def _is_scoped(statement: Statement) -> bool:
    """Whether the label of a sentence limits it: "Absolute-positioned tooltips: never use ...", or
    what it stands under: "Writing style for commits".
    """
    if any(map(_STYLE_OF_COMMITS.search, (statement.label, *statement.under))):
        return True
    is_general = _GENERAL_LABEL.search(statement.label)
    return len(statement.label.split()) > 1 and is_general is None


_STYLE_OF_COMMITS = re.compile(
    r"\b(?:style|format|writing)\b.*\bcommits?\b|\bcommit (?:messages?|style|format)\b", re.I
)
_GENERAL_LABEL = re.compile(
    r"\b(?:code|style|types?|rules?|imports?|exports?|typescript|python|strict|no|not|never|use"
    r"|indentation|spaces|formatting)\b",
    re.I,
)
_BEFORE_TOKENS = re.compile(
    r"^(?:bare|raw|plain|direct|global|the|TypeScript(?:'s)?|explicit|native) ", re.I
)
_NAMED_IN_BRACKETS = re.compile(rf"[a-z ]+ \(({CODE}(?:(?:, | or | and ){CODE})*)\)")
_OF_A_LIBRARY = re.compile(r"^[A-Z][\w.]+(?:['’]s)? (?=`)")
_KIND = r"(?:(?:deprecated|raw|bare|global|plain|direct|legacy|native) )?"
_TOKENS = forms(
    {
        "`any`, `unknown` or bare `Object` types": (
            rf"{_KIND}(?P<codes>{CODE}"
            r"(?:(?:, (?:or |and |nor |no |never )*| or | and | nor |/| / )"
            rf"{_KIND}{CODE})*)"
            rf"(?: {_NOUNS})*(?:,? (?:or|nor) (?:[a-z]+[ -]?){{1,4}})?"
        )
    }
)


def _tokens(objects: str, statement: Statement) -> list[CodeToken] | None:
    """The tokens of a list of code; None if something in it may be none."""
    plain = _BEFORE_TOKENS.sub("", objects)
    named = _NAMED_IN_BRACKETS.fullmatch(plain)
    plain = named[1] if named else _OF_A_LIBRARY.sub("", plain)
    listed = whole_match(_TOKENS, plain)
    first, *others = re.split(r",? or |,? nor |, ", plain)
    if listed is None and others and "`" not in plain:  # "TODOs, placeholders or gaps"
        plain = first
    if listed is None:
        words = re.sub(r"^typescript ", "", plain.replace("`", "").lower())
        token = named_token(words) if " " in words or words in _WORDS else None
        return [token] if token else None
    return all_known([_token_beside(code, statement.text) for code in codes_in(listed["codes"])])


def _token_beside(code: str, text: str) -> CodeToken | None:
    """The token of a code span. Where the sentence has another call of the function, as in "use
    `now(utc)`, not `now()`", only one without arguments can be told from it.
    """
    token = code_token(code)
    name, bracket, _ = code.partition("(")
    if not token or not bracket:
        return token
    if len(set(re.findall(rf"`{re.escape(name)}(\([^)`]*)", text))) < 2:
        return token
    return CodeToken(rf"{token.pattern}\s*\)", token.files) if code.endswith("()") else None


_IN_TESTS = forms({"unit test files": r"(?:the |any |all )?(?:unit )?tests?(?: files?| code)?"})
_IN_PATHS = forms({"`src/` and `lib/`": r"(?:`[^`]+`(?:,? (?:and|or) |, )?)+(?: files?| code)?"})
_TEXT = r"(?:code|comments?|docs|documentation|commits?|commit messages|logs)"
# what is no set of files, but leaves none out either
_IN_TEXTS = forms({"code, comments or docs": rf"{_TEXT}(?:(?:, |,? or |,? and ){_TEXT})*"})
_OF_TESTS = forms(
    {
        "Unit test conventions:": (
            r"(?:writing |unit |e2e )*tests?(?:ing)?"
            r"(?: (?:conventions|guidelines|rules|standards|style|practices|patterns|quality))*:?"
        )
    }
)
_IN_COMPONENTS = forms({"UI components": r"(?:the |any |all |your |UI |Vue |React )*components?"})
_COMPONENTS = "*.{tsx,jsx,vue,svelte}"
_CONFIG = forms({"config files": r"(?:of )?(?:the )?config(?:uration)? files?"})
_MOST_WORDS = 3  # of a place that is a language: "in TypeScript files"


def _files(instruction: Instruction, statement: Statement) -> list[str] | None:
    """The globs that a circumstance names; [] without one, None for one that is no set of files."""
    globs: list[str] = []
    before = ""
    for word, place in instruction.tails:
        is_exception, before = before == "except", word
        if is_exception and whole_match(_IN_TESTS, place):
            globs += [f"!{glob}" for glob in TESTS]
        elif (is_exception or word == "except") and place:
            return None
        elif word in ("in", "inside", "within"):
            named = _files_in(place)
            if named is None:
                return None
            globs += named
        elif word.startswith("outside") and whole_match(_CONFIG, place):
            globs += ["!config/*", "!*config.*"]
        elif word.startswith("outside"):
            paths = all_known([path_glob(name) for name in codes_in(place)])
            if paths is None:
                return None
            globs += [f"!{path}" for path in paths]
    return globs


def _files_in(place: str) -> list[str] | None:
    """The globs of a place; [] for all code, None for one that is no set of files."""
    paths = all_known([path_glob(name) for name in codes_in(place)])
    if paths and whole_match(_IN_PATHS, place):
        return paths
    if whole_match(_IN_TESTS, place):
        return list(TESTS)
    if whole_match(_IN_COMPONENTS, place):
        return [_COMPONENTS]
    if whole_match(_ALL_CODE, place) or whole_match(_IN_TEXTS, place):
        return []
    named = files_of_language(place)
    return named if named and len(place.split()) <= _MOST_WORDS else None


def _drafts(tokens: Sequence[CodeToken], files: Sequence[str], statement: Statement) -> list[Draft]:
    """A prohibition of tokens for each set of files that may have them."""
    about = " ".join((statement.text, statement.label, *statement.under))
    included = [glob for glob in files if not glob.startswith("!")]
    if not included and any(whole_match(_OF_TESTS, name) for name in statement.under[-2:]):
        included = list(TESTS)
    excluded = [glob for glob in files if glob.startswith("!")]
    by_files: dict[tuple[str, ...], list[str]] = {}
    for token in tokens:
        globs = included or token.files or files_of_language(about) or ["*", DOCUMENTS]
        by_files.setdefault((*globs, *excluded), []).append(token.pattern)
    return [
        _code("code_not_written", any_of(patterns), globs, "prohibition")
        for globs, patterns in by_files.items()
    ]


_COUNT = r"(?P<count>\d{2,3})(?:[- ](?:characters?|chars?|columns?))?(?: max(?:imum)?)?"
_LINE_LENGTHS = forms(
    {
        "Keep lines under 100 characters": (
            r"(?:keep |limit )?(?:all )?(?:code )?lines? (?:must |should )?(?:be |to |are )?"
            r"(?:at most|under|below|≤|<=|within|to|max(?:imum)?|no longer than|up to)"
            rf" {_COUNT}"
        ),
        "Max line length: 100": (
            r"(?:use |keep )?(?:a )?(?:max(?:imum)? )?(?:line (?:length|width)|print width)"
            rf"(?: (?:is|of|limit|limit of|at|to|max))*[: ]+(?:≤ ?)?{_COUNT}"
        ),
        "100 character line width": (
            rf"{_COUNT} (?:max(?:imum)? )?line (?:length|limit|width)(?: limit)?"
        ),
        "100-char lines": (
            r"(?P<count>\d{2,3})[- ](?:characters?|chars?|columns?)[- ]"
            r"(?:lines?|wrap|line (?:length|limit|width)|limit per line)"
        ),
        "At most 100 characters per line": (
            r"(?:max(?:imum)?(?: of)?|at most|up to|≤)"
            r" (?P<count>\d{2,3}) (?:characters?|chars?|columns?) per line"
        ),
    }
)
_LENGTH_LABEL = forms({"Line length": r"(?:max(?:imum)? )?line (?:length|width)"})
_LENGTH_ALONE = forms({"max 100": rf"(?:max(?:imum)? |≤ ?|under |up to )?{_COUNT}"})
_OF_A_MESSAGE = re.compile(r"commit|subject|body|docstring|comment", re.I)


def line_length(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Lines have at most 100 characters."""
    text = re.sub(r"[`*]", "", clause)
    match = whole_match(_LINE_LENGTHS, text)
    if match is None and whole_match(_LENGTH_LABEL, statement.label):
        match = whole_match(_LENGTH_ALONE, text)
    about = " ".join((clause, statement.label, *statement.under))
    if match is None or prohibits or _OF_A_MESSAGE.search(about):
        return None
    pattern = rf"^.{{{int(match['count']) + 1},}}$"
    return [_code("code_not_written", pattern, files_of_language(about) or ["*", DOCUMENTS])]


_WIDTH = r"(?:\d|two|four)[- ]"
_TABS = forms(
    {
        "Use tabs for indentation, not spaces": (
            r"(?:use |always use )?tabs for indentation(?:,? not spaces)?"
        ),
        "Indent with tabs instead of spaces": (
            r"(?:use |indent (?:with|using) )tabs"
            r"(?:,? (?:not|never|instead of|rather than) spaces)(?: for indentation)?"
        ),
        "Indent with tabs": r"indent (?:with|using) tabs",
        "Indentation: tabs": r"indentation: tabs",
    }
)
_SPACES = forms(
    {
        "Use 2 spaces for indentation, no tabs": (
            rf"(?:use |always use )?(?:{_WIDTH})?spaces for indentation(?:,? (?:not|no) tabs)?"
        ),
        "Indent with spaces, not tabs": (
            rf"(?:use |indent (?:with|using) )(?:{_WIDTH})?spaces"
            r"(?:,? (?:not|no|never|instead of|rather than) tabs)(?: for indentation)?"
        ),
        "Indent with four spaces": rf"indent (?:with|using) (?:{_WIDTH})?spaces",
        "4-space indentation": (
            rf"(?:use )?{_WIDTH}spaces? (?:indent|indentation|indents)(?:,? no tabs)?"
        ),
    }
)


def indentation(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Tabs for indentation; 2-space indentation, of which only a tab is found to break it."""
    uses_tabs = whole_match(_TABS, clause) is not None
    if prohibits or not (uses_tabs or whole_match(_SPACES, clause)):
        return None
    about = " ".join((clause, statement.label, *statement.under))
    token = named_token("spaces" if uses_tabs else "tabs")
    assert token is not None
    files = files_of_language(about) or token.files
    return [_code("code_not_written", token.pattern, files)]


_LONGEST_PART = 5  # words of a part of a list of styles


def style_list(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """No semicolons, single quotes, 2-space indent, print width 80."""
    parts = re.split(r"[,;] (?:and )?", re.sub(r"\s*[—–].*$", "", clause))
    if prohibits or len(parts) == 1 or len(parts[0].split()) > _LONGEST_PART:
        return None
    if any(map(_STYLE_OF_COMMITS.search, (statement.label, *statement.under))):
        return None
    drafts: list[Draft] = []
    for part in parts:
        said = indentation(part, statement, False) or line_length(part, statement, False) or []
        if re.fullmatch(r"no \w+", part, re.I) and part[3:].lower() in _WORDS:
            said = code_rule(part, statement, False) or []
        drafts += said
    return drafts or None


_FIRST_LINES = forms(
    {
        "Every Python file must start with `from __future__ import annotations`": (
            r"(?:all|every|each)(?: new)? (?P<what>[\w#+.` ]+?|`[^`]+`)(?: source)?"
            r" (?:files?|modules?) (?:must |should )?"
            r"(?:start|begin|have|include|starts|begins)s?"
            r"(?: with)? `(?P<code>[^`]+)`(?: at the top| (?:on|as) the first line| header)?"
        ),
        "Put `'use strict'` at the top of every JavaScript file": (
            r"(?:use|add|include|put) `(?P<code>[^`]+)`"
            r" (?:at the top of|in|to|as the first line of)"
            r" (?:all|every|each)(?: new)? (?P<what>[\w#+. ]+?) (?:files?|modules?)"
        ),
    }
)


def file_begins(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Every Python file begins with `from __future__ import annotations`."""
    match = whole_match(_FIRST_LINES, clause)
    files = files_of_language(match["what"]) if match else []
    if match is None or not files or prohibits or re.search(r"\.\.\.|…|<", match["code"]):
        return None
    pattern = re.escape(match["code"]).replace(r"\ ", " ")
    return [_code("code_written", pattern, files, whole=True)]


def _code(
    measure: str,
    pattern: str,
    files: Sequence[str],
    polarity: Polarity = "requirement",
    **more: bool,
) -> Draft:
    globs = files[0] if len(files) == 1 else list(files)
    return Draft("code", polarity, {"name": measure, "pattern": pattern, "files": globs, **more})
