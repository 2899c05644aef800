"""The files that a rule about code is about: those of a language, of a folder, of tests."""

import re
from collections.abc import Sequence
from itertools import chain

from holdfast.drafting.agent_rules.code_tokens import CodeToken
from holdfast.drafting.drafts import Draft
from holdfast.drafting.grammar.clauses import all_known, codes_in
from holdfast.drafting.grammar.commands import any_of
from holdfast.drafting.grammar.forms import any_words, forms, one_of, whole_match, word_pattern
from holdfast.drafting.grammar.instruction_words import Relation
from holdfast.drafting.grammar.instructions import Instruction
from holdfast.drafting.grammar.language_files import DOCUMENTS, TESTS, files_of_language
from holdfast.drafting.grammar.path_globs import glob_argument, path_glob
from holdfast.drafting.rules_file import Statement
from holdfast.measures.rule_kinds import Polarity

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
_IN_TESTS = forms({"unit test files": r"(?:the |any |all )?(?:unit )?tests?(?: files?| code)?"})
_IN_PATHS = forms({"`src/` and `lib/`": r"(?:`[^`]+`(?:,? (?:and|or) |, )?)+(?: files?| code)?"})
_TEXT = r"(?:code|output|comments?|docs|documentation|commits?|commit messages|logs)"
# places that are not files, and leave no file out
_IN_TEXTS = forms({"code, comments or docs": rf"{_TEXT}(?:(?:, |,? or |,? and ){_TEXT})*"})
_IN_COMMITS = forms(  # these places are in no file at all
    {"commits and commit messages": r"commits?(?: messages)?(?:(?: or | and )commit messages)?"}
)
_NOT_OF_TESTS = word_pattern("production", "application", "app", "business")
_HEADING_OF_TESTS = forms(  # headings
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
_MAX_LANGUAGE_WORDS = 3  # "in TypeScript files" is a language, and a longer place may be more


def files_of_places(instruction: Instruction) -> list[str] | None:
    """The globs of the places that an instruction names, with "!" before what it leaves out; [] if
    it names none, and None if a place is not a set of files.
    """
    globs: list[str] = []
    for relation, place in instruction.circumstances:
        if relation is Relation.EXCEPT:
            return None
        if relation is Relation.IN:
            place_globs = _files_in(place)
            if place_globs is None:
                return None
            globs += place_globs
        elif relation is Relation.OUTSIDE and whole_match(_IN_TESTS, place):
            globs += [f"!{glob}" for glob in TESTS]
        elif relation is Relation.OUTSIDE and whole_match(_CONFIG, place):
            globs += ["!config/*", "!*config.*"]
        elif relation is Relation.OUTSIDE:
            paths = all_known([path_glob(name) for name in codes_in(place)])
            if not paths:
                return None
            globs += [f"!{path}" for path in paths]
    return globs


def _files_in(place: str) -> list[str] | None:
    """The globs of a place; [] if it is all code, and None if it is not a set of files."""
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
    language_globs = files_of_language(place)
    if language_globs and len(place.split()) <= _MAX_LANGUAGE_WORDS:
        return language_globs
    parts = re.split(r",? or |,? and |, ", place)  # "CSS rules or HTML attributes"
    if len(parts) == 1:
        return None
    globs_by_part = all_known([_files_in(part) or None for part in parts])
    return list(dict.fromkeys(chain.from_iterable(globs_by_part))) if globs_by_part else None


def forbid_code(
    tokens: Sequence[CodeToken], files: Sequence[str], statement: Statement
) -> list[Draft]:
    """Forbids some code, with one rule per set of files that may have it.

    Args:
        files: the globs of the places that the statement names.
    """
    included = [glob for glob in files if not glob.startswith("!")]
    if not included and any(whole_match(_HEADING_OF_TESTS, name) for name in statement.under[-2:]):
        included = list(TESTS)
    excluded = [glob for glob in files if glob.startswith("!")]
    by_files: dict[tuple[str, ...], list[str]] = {}
    for token in tokens:
        globs = included or token.files or files_of_language(statement.context)
        globs = globs or ["*", DOCUMENTS]
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
    """A rule about code that a pattern finds in some files.

    Args:
        more: other arguments of the measure.
    """
    spec = {"name": measure, "pattern": pattern, "files": glob_argument(files), **more}
    return Draft("code", polarity, spec)
