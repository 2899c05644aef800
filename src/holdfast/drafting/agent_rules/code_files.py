"""The files that a rule about code is about: those of a language, of a folder, of tests."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from holdfast.drafting.agent_rules.code_tokens import CodeToken
from holdfast.drafting.drafts import Draft, measure
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
_CONFIG_FILES = ("config/*", "*config.*")
_MAX_LANGUAGE_WORDS = 3  # "in TypeScript files" is a language, and a longer place may be more


@dataclass(frozen=True)
class Places:
    """The files that a rule about code names.

    Args:
        included: their globs; () for all files that may have such code.
        excluded: the globs of files among them that are left out.
    """

    included: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


def places_of(instruction: Instruction) -> Places | None:
    """The places that an instruction names; None if one of them is not a set of files."""
    named: list[Places | None] = []
    for relation, text in instruction.circumstances:
        if relation is Relation.EXCEPT:
            return None
        if relation is Relation.IN:
            named.append(_inside(text))
        elif relation is Relation.OUTSIDE:
            named.append(_outside(text))
    return None if None in named else _join(filter(None, named))


def _join(places: Iterable[Places]) -> Places:
    """All places of some; each glob once."""
    places = list(places)
    included = dict.fromkeys(chain.from_iterable(place.included for place in places))
    excluded = dict.fromkeys(chain.from_iterable(place.excluded for place in places))
    return Places(tuple(included), tuple(excluded))


def _inside(place: str) -> Places | None:
    """The files in a place; None if it is not a set of files."""
    paths = all_known([path_glob(name) for name in codes_in(place)])
    if paths and whole_match(_IN_PATHS, place):
        return Places(tuple(paths))
    if whole_match(_IN_TESTS, place):
        return Places(TESTS)
    if whole_match(_IN_COMPONENTS, place):
        return Places((_COMPONENTS,))
    if whole_match(_ALL_CODE, place):
        is_without_tests = _NOT_OF_TESTS.search(place) and "test" not in place.lower()
        return Places(excluded=TESTS) if is_without_tests else Places()
    if whole_match(_IN_TEXTS, place):
        return None if whole_match(_IN_COMMITS, place) else Places()
    languages = files_of_language(place)
    if languages and len(place.split()) <= _MAX_LANGUAGE_WORDS:
        return Places(tuple(languages))
    parts = re.split(r",? or |,? and |, ", place)  # "CSS rules or HTML attributes"
    named = [_inside(part) for part in parts] if len(parts) > 1 else []
    is_set_of_files = bool(named) and all(place and place.included for place in named)
    return _join(filter(None, named)) if is_set_of_files else None


def _outside(place: str) -> Places | None:
    """The files outside of a place; None if it is not a set of files."""
    if whole_match(_IN_TESTS, place):
        return Places(excluded=TESTS)
    if whole_match(_CONFIG, place):
        return Places(excluded=_CONFIG_FILES)
    paths = all_known([path_glob(name) for name in codes_in(place)])
    return Places(excluded=tuple(paths)) if paths else None


def forbid_code(tokens: Sequence[CodeToken], places: Places, statement: Statement) -> list[Draft]:
    """Forbids some code in the places that the statement names, with one rule per set of files that
    may have it.
    """
    included = places.included
    if not included and any(whole_match(_HEADING_OF_TESTS, name) for name in statement.under[-2:]):
        included = TESTS
    excluded = [f"!{glob}" for glob in places.excluded]
    by_files: dict[tuple[str, ...], list[str]] = {}
    for token in tokens:
        globs = included or token.files or files_of_language(statement.context)
        globs = globs or ("*", DOCUMENTS)
        by_files.setdefault((*globs, *excluded), []).append(token.pattern)
    return [
        code_draft(any_of(patterns), globs, "prohibition") for globs, patterns in by_files.items()
    ]


def code_draft(pattern: str, files: Sequence[str], polarity: Polarity = "requirement") -> Draft:
    """The rule that no file of these has code that a pattern finds."""
    spec = measure("code_not_written", pattern=pattern, files=glob_argument(files))
    return Draft("code", polarity, spec)
