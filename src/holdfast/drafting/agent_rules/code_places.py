"""The files that a rule about code names, and whether it is about some part of them only.

"in tests, outside of `src/`"                  -> Places(tests, "!src/*")
"Discord: no tables", "Cross-package imports"  -> is_scoped -> True
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from holdfast.drafting.agent_rules.code_tokens import CodeToken
from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.clauses import all_known, codes_in
from holdfast.drafting.grammar.commands import any_of
from holdfast.drafting.grammar.forms import (
    any_words,
    form,
    one_of,
    whole_match,
    word_pattern,
)
from holdfast.drafting.grammar.instruction_words import Relation
from holdfast.drafting.grammar.instructions import Instruction
from holdfast.drafting.grammar.named_files import (
    DOCUMENTS,
    TESTS,
    files_of_language,
    glob_argument,
    path_glob,
)
from holdfast.drafting.rules_file import Statement
from holdfast.measures.rule_kinds import Polarity


@dataclass(frozen=True)
class Places:
    """The files that a rule about code names.

    Args:
        included: their globs; () for all files that may have such code.
        excluded: the globs of files among them that are left out.
    """

    included: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()


# --- The files that a rule is about: "in tests", "outside of `src/`"

_KIND_OF_CODE = one_of(
    *"TypeScript production application app source committed library business".split()
)
_ALL_CODE = form(
    "all production code",
    any_words("this", "the", "our", "any", "all", "new", "your")
    + one_of(
        *("repo", "repository", "project", "codebase", "source files?"),
        rf"(?:{_KIND_OF_CODE} )?code(?:base| ?paths?)?",
        "production(?: paths?)?",
        "tests or production code",
        "production code or tests",
    ),
)
_IN_TESTS = form("unit test files", r"(?:the |any |all )?(?:unit )?tests?(?: files?| code)?")
_IN_PATHS = form(
    "production `src/` and `lib/`",
    r"(?:(?:the|production|application) )*(?:`[^`]+`(?:,? (?:and|or) |, )?)+(?: files?| code)?",
)
_TEXT = r"(?:{}(?: {})?)".format(
    one_of(
        *("code", "output", "comments?", "docs", "documentation", "commits?", "logs?", "issues?"),
        *("PRs?", "pull requests?", "replies", "responses", "strings", "ui", "filenames", "text"),
        *("code comments?", "readmes?", "files", "markdown", "changelogs?", "user-facing text"),
    ),
    one_of("messages?", "comments?", "descriptions?", "titles?", "output", "text", "files"),
)
# places that are not files, and leave no file out
IN_TEXTS = form(
    "code, comments or docs",
    rf"(?:any |all |the |your )?{_TEXT}(?:(?:, |,? or |,? and |/){_TEXT})*"
    r"(?:,? or (?:anywhere else|elsewhere|anything else))?",
)
_IN_COMMITS = form(  # these places are in no file at all
    "commits and commit messages", r"commits?(?: messages)?(?:(?: or | and )commit messages)?"
)
_IN_KIND_OF_TESTS = form(
    "integration tests",
    r"(?:the |any |all )?(?P<kind>integration|e2e|end-to-end) tests?(?: files?| code)?",
)
_NOT_OF_TESTS = word_pattern("production", "application", "app", "business")
_IN_COMPONENTS = form(
    "UI component files",
    r"(?:the |an? |any |all |your |UI |Vue |React )*components?(?: files?| code)?",
)
COMPONENTS = "*.{tsx,jsx,vue,svelte}"
_IN_LAYER = form(
    "the domain layer",
    r"(?:the |any |all )?`?(?P<name>[a-z][\w-]*)`? (?:layers?|modules?|packages?|folders?|crates?)",
)
_IN_FOLDER = form(  # if the rules file names such a folder
    "API handlers",
    r"(?:(?:the|an?|any|all|your|our|API|HTTP|route|request|domain|UI) )*"
    r"`?(?P<name>[a-z][\w-]{3,})`?(?: files?| code)?",
)
# parts of programs that are known by the names of their files or folders, such as `UserController`
_IN_KIND_OF_FILES = form(
    "the HTTP controllers",
    r"(?:(?:the|an?|any|all|your|our|API|HTTP|route|request) )*"
    r"(?P<name>controller|handler|resolver|serializer|reducer)s?"
    r"(?: files?| code| classes| functions| methods)?",
)
# "never call `fetch` from components" is about code there, "never import `a` from `b`" about `b`
_CODE_THERE = form(
    "client components",
    r"(?:(?:the|an?|any|all|your|client|server|UI|React|Vue|page) )*components?"
    r"|.* (?:code|files)",
)
_CONFIG = form("config files", r"(?:of )?(?:the )?config(?:uration)?(?: files?)?")
_CONFIG_FILES = ("config/*", "*config.*")
# files whose names a framework prescribes
_ROUTE_FILES = form(
    "Next.js pages",
    r"(?:(?:the|all|App Router|Next(?:\.js)?|framework|special|required|route) )*"
    r"(?:pages?|layouts?|page (?:components|files)|pages/layouts|route (?:handlers|files))",
)
_NAMES_OF_ROUTE_FILES = ("*{page,layout,loading,error,not-found,template,route}.*", "**/pages/*")
_MAX_LANGUAGE_WORDS = 3  # "in TypeScript files" is a language, and a longer place may be more


def places_of(instruction: Instruction, statement: Statement) -> Places | None:
    """The places that an instruction names; None if one of them is not a set of files.

    "Anywhere else" is outside of the place that the first sentence of the list item names.
    """
    named: list[Places | None] = []
    follows_except = False  # "except in tests" is two circumstances
    for relation, text in instruction.circumstances:
        is_from = relation is Relation.FROM and instruction.object and is_place_of_code(text)
        if follows_except or (relation is Relation.EXCEPT and text):
            named.append(outside(text) if relation in (Relation.IN, Relation.EXCEPT) else None)
        elif relation is Relation.IN or is_from:
            named.append(_files_in(text, statement.document))
        elif relation is Relation.OUTSIDE:
            named.append(outside(text) if text else _outside_opening(statement))
        follows_except = relation is Relation.EXCEPT and not text
    if follows_except or None in named:
        return None
    return _join(filter(None, named))


def _files_in(place: str, document: str) -> Places | None:
    """The files in a place, or in all places of a list; None if it is not a set of files."""
    return (
        _inside(place)
        or _folder_named(place, document)
        or _kind_of_files(place)
        or _all_inside(place, document)
    )


def _outside_opening(statement: Statement) -> Places | None:
    """The files outside of the only path that the first sentence of a list item names."""
    paths = codes_in(statement.opening)
    return outside(f"`{paths[0]}`") if len(paths) == 1 else None


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
        return Places(tuple(paths), _tests_left_out(re.sub(r"`[^`]+`", "", place)))
    if whole_match(_IN_TESTS, place):
        return Places(TESTS)
    if tests := whole_match(_IN_KIND_OF_TESTS, place):
        kind = tests["kind"].lower()
        return Places((f"*{'e2e' if kind == 'end-to-end' else kind}*",))
    if whole_match(_IN_COMPONENTS, place):
        return Places((COMPONENTS,))
    if layer := whole_match(_IN_LAYER, place):
        return Places((f"**/{layer['name'].lower()}/*",))
    if whole_match(_ALL_CODE, place):
        return Places(excluded=_tests_left_out(place))
    if whole_match(IN_TEXTS, place):
        return None if whole_match(_IN_COMMITS, place) else Places()
    languages = files_of_language(place)
    if languages and len(place.split()) <= _MAX_LANGUAGE_WORDS:
        return Places(tuple(languages), _tests_left_out(place))
    parts = re.split(r",? or |,? and |, ", place)  # "CSS rules or HTML attributes"
    named = [_inside(part) for part in parts] if len(parts) > 1 else []
    is_set_of_files = bool(named) and all(place and place.included for place in named)
    return _join(filter(None, named)) if is_set_of_files else None


def _folder_named(place: str, document: str) -> Places | None:
    """The files in a folder such as `handlers/` for the place "handlers", if the rules file has a
    path with this folder; None otherwise.
    """
    match = whole_match(_IN_FOLDER, place)
    name = match["name"].lower() if match else ""
    for folder in filter(None, (name, f"{name}s" if name else "", name.removesuffix("s"))):
        if _names_folder(document, folder):
            return Places((f"**/{folder}/*",))
    return None


@lru_cache(maxsize=256)
def _names_folder(document: str, folder: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(folder)}/", document) is not None


def _all_inside(places: str, document: str) -> Places | None:
    """The files in all places of a list such as "routes or components"; None if one of them is not
    a set of files.
    """
    parts = re.split(r",? or |,? and |, ", places)
    named = [_inside(part) or _folder_named(part, document) for part in parts]
    is_known = len(parts) > 1 and all(place and place.included for place in named)
    return _join(filter(None, named)) if is_known else None


def _kind_of_files(place: str) -> Places | None:
    """The files of a part of programs such as "controllers", by its usual names; None for another
    place.
    """
    match = whole_match(_IN_KIND_OF_FILES, place)
    if match is None:
        return None
    first, rest = match["name"][0].lower(), match["name"][1:].lower()
    return Places((f"*{{{first}{rest},{first.upper()}{rest}}}*",))


def is_place_of_code(text: str) -> bool:
    """Whether words after "from" say where code is called or imported rather than from where it
    comes: "from client components".
    """
    return whole_match(_CODE_THERE + _IN_KIND_OF_FILES, text) is not None


def _tests_left_out(place: str) -> tuple[str, ...]:
    """The globs of tests if a place such as "production code" leaves them out; () otherwise."""
    is_of_production = _NOT_OF_TESTS.search(place) and "test" not in place.lower()
    return TESTS if is_of_production else ()


def outside(place: str) -> Places | None:
    """The files outside of a place; None if it is not a set of files."""
    excluded: list[str] = []
    for part in re.split(r",? (?:and|or) |, ", place):
        paths = all_known([path_glob(name) for name in codes_in(part)])
        if whole_match(_IN_TESTS, part):
            excluded += TESTS
        elif whole_match(_CONFIG, part):
            excluded += _CONFIG_FILES
        elif whole_match(_ROUTE_FILES, part):
            excluded += _NAMES_OF_ROUTE_FILES
        elif paths:
            excluded += paths
        else:
            return None
    return Places(excluded=tuple(excluded))


# --- The rules that forbid code in these files

_HEADING_OF_TESTS = form(
    "Unit test conventions:",
    r"(?:writing |unit |e2e )*tests?(?:ing)?"
    r"(?: (?:conventions|guidelines|rules|standards|style|practices|patterns|quality))*:?",
)
_OF_A_ROUTE = re.compile(r"`/[\w/-]+`")  # headings about one page: "`/settings` - the form"
# headings of rules for what is said, and not for what is in files: "no emojis"
_OF_WHAT_IS_SAID = word_pattern(
    *("repl(?:y|ies)", "responses?", "answers?", "communicat(?:ion|ing)", "tone", "voice", "chat"),
    *("conversations?", "reviews?", "reviewing", "PRs?", "pull requests?", "issues?", "comments?"),
    *("messages?", "posts?", "outputs?", "summar(?:y|ies)", "reports?", "announcements?"),
)


def forbid_code(tokens: Sequence[CodeToken], places: Places, statement: Statement) -> list[Draft]:
    """Forbids some code in the places that the statement names, with one rule per set of files that
    may have it.
    """
    included = places.included
    is_of_a_page = not included and any(map(_OF_A_ROUTE.match, statement.under[-1:]))
    may_be_of_messages = any("*" in token.files for token in tokens)
    if is_of_a_page or (may_be_of_messages and _is_of_what_is_said(statement)):
        return []
    if not included and any(whole_match(_HEADING_OF_TESTS, name) for name in statement.under[-2:]):
        included = TESTS
    excluded = [f"!{glob}" for glob in places.excluded]
    by_files: dict[tuple[str, ...], list[str]] = {}
    for token in tokens:
        globs = included or token.files or files_of_language(statement.context)
        globs = globs or ("*", DOCUMENTS)
        by_files.setdefault((*globs, *excluded), []).append(token.pattern)
    names_comments = re.search(r"\bcomments?\b", statement.text, re.I) is not None
    of_signs = names_comments and all(token.files == ("*",) for token in tokens)
    return [
        code_draft(any_of(patterns), globs, "prohibition", in_comments=of_signs)
        for globs, patterns in by_files.items()
    ]


def _is_of_what_is_said(statement: Statement) -> bool:
    """Whether the label or the heading of a statement is about messages rather than files."""
    above = " ".join((statement.label, *statement.under[-1:]))
    return _OF_WHAT_IS_SAID.search(above) is not None and not re.search(r"\bcode\b", above, re.I)


def code_draft(
    pattern: str,
    files: Sequence[str],
    polarity: Polarity = "requirement",
    *,
    in_comments: bool = False,
) -> Draft:
    """The rule that no file of these has code that a pattern finds.

    Args:
        in_comments: whether comments count too.
    """
    comments = {"comments": True} if in_comments else {}
    spec = measure("code_not_written", pattern=pattern, files=glob_argument(files), **comments)
    return Draft("code", polarity, spec)


# --- Rules about a part only: "Tooltips: never use `a`"

_GENERAL_LABEL = re.compile(
    r"\b(?:code|style|types?|rules?|imports?|exports?|typescript|python|strict|no|not|never|use"
    r"|indentation|spaces|formatting|safety|handling|logging|syntax|typing|indexing"
    r"|interpolation|collections)\b",
    re.I,
)
# a label that says of which imports or types a statement is: "Cross-package imports"
_SOME_OF_A_KIND = re.compile(
    r"(?!(?:all|no|not|never|use|prefer|absolute|relative|named|default|module|code|wildcard|inline"
    r"|dynamic|strict|es|js|ts|typescript|javascript|python|react|functional|class|explicit|any)\b)"
    r"[\w/-]+ (?:imports?|exports?|types?)",
    re.I,
)
# a part of the repository, whose files are not known: "Backend: no `print`"
_PART_OF_CODE = re.compile(
    r"(?:the )?(?:back-?end|front-?end|server|client|mobile|ios|android|api|desktop|website"
    r"|scripts?|examples?|demos?|infrastructure|workers?|migrations?|templates?|emails?|pages?|routes?"
    r"|controllers?|services?|models?|views?|handlers?|hooks|stores?|prompts?)"
    r"(?: (?:code|side|app|layer|files?))?",
    re.I,
)
# where people read what is written for them, and not in files
_PLATFORM = re.compile(
    r"\b(?:discord|whatsapp|slack|telegram|imessage|e-?mails?|sms|twitter"
    r"|chat platforms?|messengers?)\b",
    re.I,
)


def is_scoped(statement: Statement) -> bool:
    """Whether a statement is about one thing only, by its label ("Absolute-positioned tooltips:
    never use ...", "Discord: no tables") or by a heading such as "Writing style for commits".
    """
    if is_about_commit_style(statement):
        return True
    label = statement.label or _label_of_item(statement)
    if _PLATFORM.search(label) or any(map(_PLATFORM.search, statement.under[-1:])):
        return True
    if _PART_OF_CODE.fullmatch(label) or _SOME_OF_A_KIND.fullmatch(label):
        return True
    if len(label.split()) <= 1 or _GENERAL_LABEL.search(label):
        return False
    codes = codes_in(statement.text)
    if codes and all(map(_QUALIFIED_NAME.fullmatch, codes)):
        return False  # "Memory leaks: never use `libc::free`" is about all code
    codes = [re.split(r"[(\"'/]", code)[0] for code in codes]
    names = re.findall(r"[a-z]{4,}", " ".join(codes).lower())
    return not any(name in label.lower() for name in names)  # "Console cleanup: no `console.log`"


_QUALIFIED_NAME = re.compile(r"[A-Za-z]\w+(?:(?:\.|::)[A-Za-z]\w+)+(?:\(\))?")
# the label of the first sentence of an item, which is about the others too
_LABEL_OF_ITEM = re.compile(r"(?P<label>[A-Z][^:`.!?]{2,60}): ")


def _label_of_item(statement: Statement) -> str:
    """The label of the item of which a statement is a later sentence; "" if it has none."""
    match = _LABEL_OF_ITEM.match(statement.opening)
    return match["label"] if match else ""


_STYLE_OF_COMMITS = re.compile(
    r"\b(?:style|format|writing)\b.*\bcommits?\b|\bcommit (?:messages?|style|format)\b", re.I
)


def is_about_commit_style(statement: Statement) -> bool:
    """Whether a statement stands under a heading such as "Writing style for commits"."""
    return any(map(_STYLE_OF_COMMITS.search, (statement.label, *statement.under)))
