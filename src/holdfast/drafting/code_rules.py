"""Rules about what is written into files: "never use `any`", "use `pathlib`, not `os.path`"."""

import re
from collections.abc import Sequence
from itertools import chain

from holdfast.drafting.clauses import all_known, codes_in
from holdfast.drafting.code_tokens import (
    DOCUMENTS,
    PYTHON,
    SCRIPT,
    TESTS,
    CodeToken,
    code_token,
    files_of_language,
    named_token,
    token_of_kind,
)
from holdfast.drafting.commands import any_of
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import CODE, any_words, forms, one_of, whole_match, word_pattern
from holdfast.drafting.instructions import WRITE, Instruction, Modality, compared, instruction_of
from holdfast.drafting.path_globs import glob_argument, path_glob
from holdfast.drafting.rules_file import Statement
from holdfast.measures.rule_kinds import Polarity

_WORDS = frozenset(  # names of tokens that need no backticks
    "semicolons tabs enums emojis emoji todos em-dashes console.log console.logs innerhtml commonjs"
    " print goto".split()
)
_NOUNS = one_of(
    *("types?", "casts?", "casting", "calls?", "statements?", "assertions?", "comments?"),
    *("imports?", "exports?", "blocks?", "hooks?", "keyword", "declarations?", "clauses?"),
    *("loops?", "directives?", "annotations?", "classes", "macro", "functions?", "methods?"),
    *("API", "fields?", "syntax", "operator", "suppressions?", "attributes?", "utilities"),
    *("tags?", "chains?", "chaining", "elements?", "components?", "decorators?", "interface"),
    *("expressions?", "modules?", "librar(?:y|ies)", "conditionals?", "literals?", "values?"),
    *("selectors?", "wrappers?", "generics", "variables?", "properties", "props?", "globals?"),
    *("packages?", "queries", "keywords?", "macros?"),
)
_KIND_OF_CODE = one_of(
    *"TypeScript production application app source committed library business".split()
)
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
# purposes that leave out next to nothing: "never use `print` for debugging"
_FOR_ALL = re.compile(
    r"type[- ](?:casting|casts?|assertions?)|(?:debug(?:ging)?|logging)(?: output| purposes)?", re.I
)
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
# names that no English word looks like: setTimeout/setInterval
_IDENTIFIER = r"(?!camel|pascal|kebab|snake|upper|lower|title)[a-z]{3,}(?:[A-Z][a-z0-9]+)+"
_IDENTIFIERS = re.compile(rf"(?<![\w./@-]){_IDENTIFIER}(?:/{_IDENTIFIER})*(?![\w./@-])")
# "no `active_sessions`" may be about a feature; a rule about a name says what is not done with it
_MERE_NAME = re.compile(r"no `[a-z]+(?:_[a-z]+)+`.*", re.I)
_PAIRS = re.compile(rf"{CODE} (?:instead of|rather than|over|not) ({CODE})")


def code_rule(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Never use `any`; use `pathlib` instead of `os.path`."""
    if whole_match(_NAMED_EXPORTS, clause):
        default = CodeToken(r"^\s*export\s+default\b", SCRIPT)
        return None if prohibits else not_written([default], [], statement)
    if "`" not in clause:
        clause = _IDENTIFIERS.sub(lambda names: f"`{names[0].replace('/', '`/`')}`", clause)
    if first := whole_match(_PLACE_FIRST, clause):  # "in tests, do not use `sleep`"
        clause = f"{first['rest']} {first['place']}"
    instruction = instruction_of(clause, prohibits)
    objects = _forbidden_objects(instruction, clause) if instruction else None
    if instruction is None or objects is None or is_scoped(statement):
        return None
    if "call" in instruction.verbs and "(" not in objects + clause:
        return None  # a name alone may be that of a tool
    if _MERE_NAME.fullmatch(clause):
        return None
    pairs = _PAIRS.findall(clause)
    tokens = _literals(objects) if instruction.does(("hardcode", "hard-code")) else None
    tokens = tokens or _tokens(", ".join(pairs) if len(pairs) > 1 else objects, statement)
    files = files_of_places(instruction, statement)
    if tokens is None or files is None:
        return None
    return not_written(tokens, files, statement)


def _forbidden_objects(instruction: Instruction, clause: str) -> str | None:
    """The words for what an instruction does not allow; None if it forbids nothing, or if more
    than places limit it.
    """
    if not instruction.does(WRITE):
        return None
    against = compared(instruction)
    if instruction.modality is Modality.NEVER:
        harmless = [*_PLACES, "except"]
        if _FOR_ALL.fullmatch(instruction.behind("for") or ""):
            harmless.append("for")
        if _TO_SILENCE.fullmatch(instruction.behind("to") or ""):
            harmless.append("to")
        if not instruction.has_only(*harmless) or against:
            return None
        return instruction.object or instruction.behind("to") or ""
    if instruction.modality is not Modality.MUST or not against or against.startswith("`."):
        return None
    words = [word for word, _ in instruction.circumstances]
    comparisons = sum(word in _AGAINST for word in words)
    purpose = instruction.behind("for")
    if (
        not instruction.does(("use", "call", "import", "write", "declare", "define"))
        or not instruction.has_only(*_PLACES, *_AGAINST, "from", "for")
        or (purpose and not _PURPOSE.fullmatch(purpose))
        or "to" in words
        or comparisons > max(1, clause.count("`") // 4)  # one for two pieces of code
    ):
        return None
    return against


def is_scoped(statement: Statement) -> bool:
    """Whether the label of a sentence limits it: "Absolute-positioned tooltips: never use ...", or
    what it stands under: "Writing style for commits".
    """
    if is_about_commit_style(statement):
        return True
    is_general = _GENERAL_LABEL.search(statement.label)
    return len(statement.label.split()) > 1 and is_general is None


def is_about_commit_style(statement: Statement) -> bool:
    """Whether a statement stands under a heading such as "Writing style for commits"."""
    return any(map(_STYLE_OF_COMMITS.search, (statement.label, *statement.under)))


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
_CODE_IN_BRACKETS = re.compile(rf"[a-z ]+ \(({CODE}(?:(?:, | or | and ){CODE})*)\)")
_OF_A_LIBRARY = re.compile(r"^[A-Z][\w.]+(?:['’]s)? (?=`)")
_KIND = r"(?:(?:deprecated|raw|bare|global|plain|direct|legacy|native) )?"
_TOKENS = forms(
    {
        "`any`, `unknown` or bare `Object` types": (
            rf"{_KIND}(?P<codes>{CODE}"
            r"(?:(?:, (?:or |and |nor |no |never )*| or | and | nor |/| / )"
            rf"{_KIND}{CODE})*)"
            rf"(?P<nouns>(?: (?:[a-z]+-)?{_NOUNS})*)"
            r"(?:,? etc\.?|,? (?:or|nor) (?:[a-z]+[ -]?){1,4})?"
        )
    }
)


def _tokens(objects: str, statement: Statement) -> list[CodeToken] | None:
    """The tokens of a list of code; None if something in it may be none."""
    plain = _BEFORE_TOKENS.sub("", objects)
    if bracketed := _CODE_IN_BRACKETS.fullmatch(plain):
        plain = bracketed[1]
    else:
        plain = _OF_A_LIBRARY.sub("", plain)
    if spans := whole_match(_TOKENS, plain):
        kind = spans["nouns"].strip()
        return all_known(
            [
                _token_beside(code, statement.text) or token_of_kind(code, kind)
                for code in codes_in(spans["codes"])
            ]
        )
    first, *others = re.split(r",? or |,? nor |, ", plain)
    if others and "`" not in plain:  # "TODOs, placeholders or gaps"
        plain = first
    words = re.sub(r"^typescript ", "", plain.replace("`", "").lower())
    if " " not in words and not is_named_word(words):
        return None
    token = named_token(words)
    return [token] if token and _may_be_of(token, statement) else None


def _literals(objects: str) -> list[CodeToken] | None:
    """The value that must not be hardcoded, as it is written: `/opt/homebrew`."""
    spans = whole_match(_TOKENS, objects)
    if spans is None or re.search(r"\.\.\.|…|<", spans["codes"]):
        return None
    return [CodeToken(re.escape(code)) for code in codes_in(spans["codes"])]


def is_named_word(word: str) -> bool:
    """Whether a word is the name of a piece of code without backticks: "semicolons"."""
    return word.lower() in _WORDS


def _may_be_of(token: CodeToken, statement: Statement) -> bool:
    """Whether the languages that a statement is about may have a token: `print` is of Python."""
    about = files_of_language(" ".join((statement.text, statement.label, *statement.under)))
    return token.files != PYTHON or not about or set(PYTHON) <= set(about)


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
_IN_E2E_TESTS = forms(
    {
        "e2e tests": (
            r"(?:the |any |all )?(?:e2e|end-to-end|playwright|cypress) tests?(?: files?| code)?"
        )
    }
)
_E2E_TESTS = ["*{e2e,playwright,cypress}*"]
_IN_PATHS = forms({"`src/` and `lib/`": r"(?:`[^`]+`(?:,? (?:and|or) |, )?)+(?: files?| code)?"})
_TEXT = r"(?:code|output|comments?|docs|documentation|commits?|commit messages|logs)"
# what is no set of files, but leaves none out either
_IN_TEXTS = forms({"code, comments or docs": rf"{_TEXT}(?:(?:, |,? or |,? and ){_TEXT})*"})
_IN_COMMITS = forms(  # which are in no file
    {"commits and commit messages": r"commits?(?: messages)?(?:(?: or | and )commit messages)?"}
)
_NOT_OF_TESTS = word_pattern("production", "application", "app", "business")
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
_CONFIG = forms({"config files": r"(?:of )?(?:the )?config(?:uration)?(?: files?)?"})
_MAX_LANGUAGE_WORDS = 3  # of a place that is a language: "in TypeScript files"


def files_of_places(instruction: Instruction, statement: Statement) -> list[str] | None:
    """The globs that a circumstance names; [] without one, None for one that is no set of files."""
    globs: list[str] = []
    before = ""
    for word, place in instruction.circumstances:
        is_exception = before == "except"
        before = word
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
    if whole_match(_ALL_CODE, place):
        is_without_tests = _NOT_OF_TESTS.search(place) and "test" not in place.lower()
        return [f"!{glob}" for glob in TESTS] if is_without_tests else []
    if whole_match(_IN_TEXTS, place):
        return None if whole_match(_IN_COMMITS, place) else []
    if whole_match(_IN_E2E_TESTS, place):
        return _E2E_TESTS
    named = files_of_language(place)
    if named and len(place.split()) <= _MAX_LANGUAGE_WORDS:
        return named
    parts = re.split(r",? or |,? and |, ", place)  # "CSS rules or HTML attributes"
    if len(parts) == 1:
        return None
    of_parts = all_known([_files_in(part) or None for part in parts])
    return list(dict.fromkeys(chain.from_iterable(of_parts))) if of_parts else None


def not_written(
    tokens: Sequence[CodeToken], files: Sequence[str], statement: Statement
) -> list[Draft]:
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
        code_draft("code_not_written", any_of(patterns), globs, "prohibition")
        for globs, patterns in by_files.items()
    ]


def code_draft(
    measure: str,
    pattern: str,
    files: Sequence[str],
    polarity: Polarity = "requirement",
    **more: bool,
) -> Draft:
    spec = {"name": measure, "pattern": pattern, "files": glob_argument(files), **more}
    return Draft("code", polarity, spec)
