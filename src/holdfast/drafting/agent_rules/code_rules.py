"""Rules about what is written into files of code.

    Never use `any` in `src/`.      -> code_not_written(pattern=r"\\bany\\b", files="src/*")
    Use `pathlib`, not `os.path`.   -> code_not_written(pattern=r"os\\.path", files="*.py")
    Keep lines under 80 characters. -> code_not_written(pattern="^.{81,}$", files="*")

`code_tokens` knows which pattern and which language a code span such as `any` stands for (the
patterns are shortened here); this module finds out what is forbidden, and in which files.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import chain

from holdfast.drafting.agent_rules.code_tokens import (
    CodeToken,
    code_token,
    marker_token,
    named_token,
    token_of_kind,
)
from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.clauses import Clause, all_known, codes_in
from holdfast.drafting.grammar.commands import any_of, is_command
from holdfast.drafting.grammar.forms import (
    CODE,
    NEVER,
    any_words,
    form,
    literal,
    one_of,
    whole_match,
    word_pattern,
)
from holdfast.drafting.grammar.instruction_words import WRITE, Relation
from holdfast.drafting.grammar.instructions import (
    Instruction,
    Modality,
    instruction_of,
)
from holdfast.drafting.grammar.named_files import (
    DOCUMENTS,
    PYTHON,
    RUST,
    SCRIPT,
    TESTS,
    file_endings,
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
        rf"(?:{_KIND_OF_CODE} )?code(?:base)?",
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
_IN_TEXTS = form(
    "code, comments or docs",
    rf"(?:any |all |the |your )?{_TEXT}(?:(?:, |,? or |,? and |/){_TEXT})*"
    r"(?:,? or (?:anywhere else|elsewhere|anything else))?",
)
_IN_COMMITS = form(  # these places are in no file at all
    "commits and commit messages", r"commits?(?: messages)?(?:(?: or | and )commit messages)?"
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
    r"(?:(?:the|any|all|your|our|API|HTTP|route|request|domain|UI) )*"
    r"`?(?P<name>[a-z][\w-]{3,})`?(?: files?| code)?",
)
_CONFIG = form("config files", r"(?:of )?(?:the )?config(?:uration)?(?: files?)?")
_CONFIG_FILES = ("config/*", "*config.*")
_MAX_LANGUAGE_WORDS = 3  # "in TypeScript files" is a language, and a longer place may be more


def places_of(instruction: Instruction, statement: Statement) -> Places | None:
    """The places that an instruction names; None if one of them is not a set of files.

    Args:
        statement: the statement of the instruction. "Anywhere else" is outside of the place that
            the first sentence of its list item names.
    """
    named: list[Places | None] = []
    for relation, text in instruction.circumstances:
        if relation is Relation.EXCEPT:
            return None
        if relation is Relation.IN:
            named.append(_inside(text) or _folder_named(text, statement.document))
        elif relation is Relation.OUTSIDE:
            paths = codes_in(statement.opening)
            is_known = bool(text) or len(paths) == 1
            named.append(_outside(text or f"`{paths[0]}`") if is_known else None)
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
        return Places(tuple(paths), _tests_left_out(re.sub(r"`[^`]+`", "", place)))
    if whole_match(_IN_TESTS, place):
        return Places(TESTS)
    if whole_match(_IN_COMPONENTS, place):
        return Places((COMPONENTS,))
    if layer := whole_match(_IN_LAYER, place):
        return Places((f"**/{layer['name']}/*",))
    if whole_match(_ALL_CODE, place):
        return Places(excluded=_tests_left_out(place))
    if whole_match(_IN_TEXTS, place):
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
    has_folder = name and re.search(rf"(?<![\w-]){re.escape(name)}/", document)
    return Places((f"**/{name}/*",)) if has_folder else None


def _tests_left_out(place: str) -> tuple[str, ...]:
    """The globs of tests if a place such as "production code" leaves them out; () otherwise."""
    is_of_production = _NOT_OF_TESTS.search(place) and "test" not in place.lower()
    return TESTS if is_of_production else ()


def _outside(place: str) -> Places | None:
    """The files outside of a place; None if it is not a set of files."""
    if whole_match(_IN_TESTS, place):
        return Places(excluded=TESTS)
    if whole_match(_CONFIG, place):
        return Places(excluded=_CONFIG_FILES)
    paths = all_known([path_glob(name) for name in codes_in(place)])
    return Places(excluded=tuple(paths)) if paths else None


_HEADING_OF_TESTS = form(  # headings
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
    if not included and any(map(_OF_A_ROUTE.match, statement.under[-1:])):
        return []
    if any(token.files == ("*",) for token in tokens) and _is_of_what_is_said(statement):
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


# --- Instructions about code

_NAMED_EXPORTS = form(
    "Use only named exports", r"(?:always )?(?:(?:use |only )*named exports(?: only| exclusively)?)"
)
# phrases that the grammar does not cut right, and the name of the code that each forbids
_SET_PHRASES = (
    (_NAMED_EXPORTS, "default exports"),
    (
        form(
            "Use absolute imports only",
            r"(?:always use|use only|only use) absolute imports|(?:use )?absolute imports only",
        ),
        "relative imports",
    ),
    (
        form(
            "Use the `@/` alias for internal imports",
            r"(?:always )?use (?:the )?`[@~]/(?:\*+)?` (?:path |import )*"
            r"(?:alias(?:es)?|prefix|paths?)? ?(?:for|in) (?:all )?(?:internal |local |project )*"
            r"imports",
        ),
        "imports from parent folders",
    ),
    (
        form(
            "Use functional components exclusively",
            r"(?:always )?(?:(?:use|write) (?:React (?:with )?)?)?(?:React )?functional components"
            r"(?: (?:with|and) hooks)? (?:only|exclusively)"
            r"|(?:only|exclusively) (?:use |write )?(?:React )?functional components"
            r"(?: (?:with|and) hooks)?"
            r"|(?:all |new )*components (?:must|should) (?:always )?(?:be functional"
            r"(?: components)?|use functional components)(?: (?:with|and) hooks)?",
        ),
        "class components",
    ),
    (
        form(
            "Use file-scoped namespaces",
            r"(?:always )?use file-scoped namespaces?(?: declarations?)?",
        ),
        "block-scoped namespaces",
    ),
    (
        form(
            "Never use f-strings in logging",
            rf"(?:{NEVER} use |no )f-strings? (?:in|for|inside) (?:the )?"
            r"(?:logging|log|logger)(?: (?:calls?|messages?|statements?))?",
        ),
        "f-strings in logging",
    ),
    (
        form(
            "Never catch bare `Exception`",
            rf"{NEVER} (?:catch|use|write) (?:an? |the )?"
            r"(?:(?:bare|broad|generic|blanket|base|raw) )*"
            r"`(?:except |catch )?\(?(?:System\.)?Exception(?: \w+)?\)?:?`"
            r"(?: clauses?| handlers?)?",
        ),
        "catching exception",
    ),
)
_NO_MORE = re.compile(
    r"`(?P<code>[^`]+)`[^`.]*(?:[—–;,]| - )\s*(?:so |but |please )?"
    rf"{NEVER} (?:add|introduce|use|write) (?:any )?(?:more|new ones)\b",
    re.I,
)
_AGAINST = (Relation.INSTEAD_OF, Relation.NOT, Relation.OVER)
_PLACES = (Relation.IN, Relation.OUTSIDE)
_WORD = re.compile(r"[A-Za-z]{3}")  # in code that can be told apart, and not `_`
_HARDCODE = ("hardcode", "hard-code")
_SILENCE = ("suppress", "silence", "bypass", "swallow", "ignore", "hide")
_PURPOSE = re.compile(
    r"\w+ing|images|performance|interactivity|output|logs"
    r"|(?:safety|security|consistency|correctness)(?: and .*)?",
    re.I,
)
_AS_SHORTCUT = re.compile(
    r"(?:an? )?(?:easy |quick )?(?:shortcuts?|workarounds?|escape hatch(?:es)?)"
)
_FOR_LOGGING = re.compile(
    r"(?:(?:any|application|production|general|debug) )*(?:logging|logs|debugging|debug output)"
    r"(?: or (?:logging|debugging))?",
    re.I,
)
_TO_SILENCE = re.compile(
    r"(?:silence|suppress|bypass|work around|get around|hide|satisfy) .*", re.I
)
# names that no English word looks like, also without backticks: setTimeout/setInterval
_IDENTIFIER = r"(?!camel|pascal|kebab|snake|upper|lower|title)[a-z]{2,}(?:[A-Z][a-z0-9]+)+"
# a member of a class: Directory.SetCurrentDirectory
_MEMBER = r"(?:[A-Z][a-z]\w*\.)+[A-Z][a-z]+[A-Z]\w*"
_IDENTIFIERS = re.compile(
    rf"(?<![\w./@-])(?:{_MEMBER}|{_IDENTIFIER}(?:/{_IDENTIFIER})*)(?![\w/@-]|\.\w)"
)
# "using any types in TypeScript"
_ANY_TYPE = re.compile(r"\b(us(?:e|ing)) any types?(?= in TypeScript$|$)", re.I)
# "no `active_sessions`" may be about a feature: a rule about a name says how it must not be used
_MERE_NAME = re.compile(r"no `[a-z]+(?:_[a-z]+)+`.*", re.I)
_BARE_CALL = re.compile(rf"{NEVER} `", re.I)
_PAIRS = re.compile(rf"{CODE} (?:instead of|rather than|over|not) ({CODE})")


_QUOTED_COMMENTS = re.compile(
    rf"{NEVER} (?:emit|write|add|use|include|generate|leave|put) (?P<words>[\"“'`]\w+[\"”'`]"
    r"(?:(?:, (?:or |and )?| or | and )[\"“'`]\w+[\"”'`])*) comments?(?: in .*)?",
    re.I,
)


def _token_of_phrase(clause: Clause) -> CodeToken | None:
    """The code that a clause forbids in a set phrase; None if it has none of these."""
    if clause.is_prohibited:
        return None
    for ways, name in _SET_PHRASES:
        if whole_match(ways, clause.text):
            return named_token(name)
    if comments := _QUOTED_COMMENTS.fullmatch(clause.text):
        words = re.findall(r"\w{3,}", comments["words"])
        return CodeToken(rf"(?://|#|--)\s*{one_of(*words)}\b") if words else None
    more = _NO_MORE.search(clause.statement.text)  # "there is some `any` left, do not add more"
    return code_token(more["code"]) if more and clause.text in more[0] else None


def code_rule(clause: Clause) -> list[Draft]:
    """Reads "never use `any`" and "use `pathlib` instead of `os.path`"."""
    statement = clause.statement
    if token := _token_of_phrase(clause):
        return forbid_code([token], Places(), statement)
    text = _with_code_in_backticks(clause.text)
    instruction = instruction_of(text, clause.is_prohibited)
    if instruction is None or is_scoped(statement):
        return []
    objects = _forbidden_objects(instruction, text)
    if objects is None or _may_be_no_code(text, objects, instruction, statement):
        return []
    pairs = _PAIRS.findall(text)  # "`a` instead of `b` and `c` instead of `d`"
    tokens = _tokens_named(", ".join(pairs) if len(pairs) > 1 else objects, statement)
    if instruction.modality is Modality.MUST and text.startswith("`"):
        tokens = [token for token in tokens if token.files]  # "`Row`, not `Rows`" may be a fact
    tokens = tokens or _hyphenated_tokens(instruction) or _operator_tokens(instruction)
    if _forbids_in_commits(instruction) and all(token.files == ("*",) for token in tokens):
        return [*_forbid_in_messages(tokens), *_forbid_in_files(tokens, instruction, statement)]
    return _forbid_in_files(tokens, instruction, statement)


def _with_code_in_backticks(text: str) -> str:
    """A clause without backticks, in which names such as setTimeout are given some."""
    if "`" in text:
        return text
    text = _ANY_TYPE.sub(r"\1 `any`", text)
    return _IDENTIFIERS.sub(lambda names: f"`{names[0].replace('/', '`/`')}`", text)


_DESCRIBES_IT = re.compile(r"\b(?:this|that|it) (?:is|was) not `", re.I)


def _may_be_no_code(
    text: str, objects: str, instruction: Instruction, statement: Statement
) -> bool:
    """Whether what a clause forbids may be something else than the code that it names.

    Args:
        objects: the words for what is forbidden.
    """
    is_order = instruction.modality is Modality.MUST
    wanted = set(codes_in(instruction.object)) if is_order else set()
    return (
        _MERE_NAME.fullmatch(text) is not None
        # "These are wrapped. Don't `trim()`." is about these
        or bool(statement.opening and _BARE_CALL.match(text))
        # "it reads the claim; this is not `auth.uid()`"
        or _DESCRIBES_IT.search(text) is not None
        # a name alone may be that of a tool
        or ("call" in instruction.verbs and "(" not in objects + text)
        # "`a`, `b` (not `A`, `b`)" is about `A` only
        or not wanted.isdisjoint(codes_in(objects))
    )


def _forbid_in_files(
    tokens: Sequence[CodeToken], instruction: Instruction, statement: Statement
) -> list[Draft]:
    """Forbids code in the files that an instruction names; [] if it names other places."""
    places = places_of(instruction, statement)
    if places is None:
        return []
    if set(TESTS) <= set(places.excluded):
        tokens = [_outside_unit_tests(token) if token.files == RUST else token for token in tokens]
    return forbid_code(tokens, places, statement)


def _outside_unit_tests(token: CodeToken) -> CodeToken:
    """Code of Rust that is not in unit tests, which stand at the end of the file that they test."""
    pattern = rf"(?:{token.pattern})(?<!\[(?:cfg\(test\)|(?:\w+::)*test)\][\s\S]*)"
    return replace(token, pattern=pattern)


_NAMES_COMMITS = re.compile(r"\bcommits?\b(?! hooks?)", re.I)


def _forbids_in_commits(instruction: Instruction) -> bool:
    """Whether commits are among the texts that an instruction is about: "no emojis in commits"."""
    return any(
        _NAMES_COMMITS.search(place) and whole_match(_IN_TEXTS, place)
        for place in instruction.texts_of(Relation.IN)
    )


def _forbid_in_messages(tokens: Sequence[CodeToken]) -> list[Draft]:
    """Forbids signs such as emojis in commit messages."""
    if not tokens:
        return []
    signs = any_of(token.pattern for token in tokens)
    spec = measure("commit_message", pattern=rf"(?s)\A(?!.*{signs})")
    return [Draft("commit", "prohibition", spec)]


def _forbidden_objects(instruction: Instruction, text: str) -> str | None:
    """The words for the code that an instruction forbids; None if it forbids none, or if anything
    but a place limits it.
    """
    if instruction.modality is Modality.NEVER and instruction.does(_SILENCE):
        means = instruction.text_of(Relation.WITH)  # "never silence errors with `x`"
        is_code = means is not None and all(map(_WORD.search, codes_in(means)))
        return means if is_code and instruction.has_only(Relation.WITH, *_PLACES) else None
    if not instruction.does(WRITE):
        return None
    if instruction.modality is Modality.NEVER:
        objects = _objects_of_prohibition(instruction)
        return f"hardcoded {objects}" if objects and instruction.does(_HARDCODE) else objects
    if instruction.modality is Modality.MUST:
        return _objects_of_comparison(instruction, text)
    return None


def _objects_of_prohibition(instruction: Instruction) -> str | None:
    """The object of "never use `any` in tests" and of "never use `any` instead of a type"; None if
    the prohibition is limited.
    """
    harmless = [*_PLACES, Relation.EXCEPT, Relation.INSTEAD_OF]
    if all(map(_FOR_LOGGING.fullmatch, instruction.texts_of(Relation.FOR))):
        harmless.append(Relation.FOR)  # "never use `print()` for logging"
    if all(map(_AS_SHORTCUT.fullmatch, instruction.texts_of(Relation.AS))):
        harmless.append(Relation.AS)
    if _TO_SILENCE.fullmatch(instruction.text_of(Relation.TO) or ""):
        harmless.append(Relation.TO)
    if not instruction.has_only(*harmless):
        return None
    return instruction.object or instruction.text_of(Relation.TO) or ""


def _objects_of_comparison(instruction: Instruction, text: str) -> str | None:
    """`B` in "use `A` instead of `B`"; None if nothing is compared, or if more than places and a
    usual purpose limit the instruction.
    """
    rejected = instruction.rejected_object
    if not rejected or re.match(r"`\.[^(`]*`", rejected):  # an ending such as `.jsx`
        return None
    comparisons = len(instruction.texts_of(*_AGAINST))
    purpose = instruction.text_of(Relation.FOR)
    if (
        not instruction.does(("use", "call", "import", "write", "declare", "define"))
        or not instruction.has_only(*_PLACES, *_AGAINST, Relation.FROM, Relation.FOR)
        or (purpose and not _is_usual_purpose(purpose, rejected))
        or instruction.texts_of(Relation.TO)
        or comparisons > max(1, text.count("`") // 4)  # one for two pieces of code
    ):
        return None
    return rejected


def _is_usual_purpose(purpose: str, rejected: str) -> bool:
    """Whether a purpose is what the rejected code is always for: "for logging", or "for children
    slots" beside `<slot>`.
    """
    if _PURPOSE.fullmatch(purpose):
        return True
    names = [name.lower() for name in re.findall(r"[A-Za-z]{4,}", " ".join(codes_in(rejected)))]
    words = [word.lower() for word in re.findall(r"[A-Za-z]{4,}", purpose)]
    return any(word.startswith(name) for name in names for word in words)


_GENERAL_LABEL = re.compile(
    r"\b(?:code|style|types?|rules?|imports?|exports?|typescript|python|strict|no|not|never|use"
    r"|indentation|spaces|formatting|safety|handling|logging|syntax|typing|indexing"
    r"|interpolation|collections)\b",
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
    return len(label.split()) > 1 and _GENERAL_LABEL.search(label) is None


# a label that says of which imports or types a statement is: "Cross-package imports"
_SOME_OF_A_KIND = re.compile(
    r"(?!(?:all|no|not|never|use|prefer|absolute|relative|named|default|module|code|wildcard|inline"
    r"|dynamic|strict|es|js|ts|typescript|javascript|python|react|functional|class|explicit|any)\b)"
    r"[\w/-]+ (?:imports?|exports?|types?)",
    re.I,
)
# the label of the first sentence of an item, which is about the others too
_LABEL_OF_ITEM = re.compile(r"(?P<label>[A-Z][^:`.!?]{2,60}): ")


def _label_of_item(statement: Statement) -> str:
    """The label of the item of which a statement is a later sentence; "" if it has none."""
    match = _LABEL_OF_ITEM.match(statement.opening)
    return match["label"] if match else ""


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


_STYLE_OF_COMMITS = re.compile(
    r"\b(?:style|format|writing)\b.*\bcommits?\b|\bcommit (?:messages?|style|format)\b", re.I
)


def is_about_commit_style(statement: Statement) -> bool:
    """Whether a statement stands under a heading such as "Writing style for commits"."""
    return any(map(_STYLE_OF_COMMITS.search, (statement.label, *statement.under)))


# --- Code that an instruction names

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
)
_ADJECTIVES = re.compile(
    r"^(?:(?:bare|raw|plain|direct|global|the|TypeScript(?:'s)?|explicit|native|any|new|more"
    r"|further|additional) )+",
    re.I,
)
_CODE_IN_BRACKETS = re.compile(rf"[a-z ]+ \(({CODE}(?:(?:, | or | and ){CODE})*)\)")
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


def _tokens_named(objects: str, statement: Statement) -> list[CodeToken]:
    """The pieces of code in a list; [] if something in it may not be code."""
    plain = _known_part(_ADJECTIVES.sub("", objects))
    if markers := marker_token(plain):
        return [markers]
    if bracketed := _CODE_IN_BRACKETS.fullmatch(plain):
        if named := _named_in_any_form(plain[: bracketed.start(1) - 2]):  # "star imports (`x`)"
            return [named] if _may_be_of(named, statement) else []
        plain = bracketed[1]
    else:
        plain = _NAME_OF_LIBRARY.sub("", plain)
    if spans := whole_match(_TOKENS, plain):
        kind = spans["nouns"].strip()
        codes = codes_in(spans["codes"])
        if codes == ["prompt"]:
            return []  # a dialog of the browser only beside the others
        beside = [_token_beside(code, statement.text) for code in codes]
        pairs = zip(codes, beside, strict=True)
        tokens = [token or token_of_kind(code, kind) for code, token in pairs]
        known = [_in_its_language(token, statement) for token in tokens if token]
        # the others are left to the reader
        return [token for token in known if _is_of_language(token, statement)]
    first, *others = re.split(r",? or |,? nor |,? and |, ", plain)
    if others:  # "`any`, unsafe casts or `@ts-ignore`", "TODOs, placeholders or gaps"
        return _tokens_in_parts([first, *others], statement)
    words = re.sub(r"^typescript ", "", plain.replace("`", "").lower())
    if " " not in words and not is_named_word(words):
        return []
    token = _named_in_any_form(words)
    if token and token.files == PYTHON and _CODE_OF_SCRIPT.search(statement.text):
        token = named_token("dynamic imports") if "import" in words else None
    return [token] if token and _may_be_of(token, statement) else []


# a part of a list that is left to the reader: "unsafe casts"
_OTHER_PART = re.compile(r"[A-Za-z][A-Za-z /-]{2,40}")


def _tokens_in_parts(parts: Sequence[str], statement: Statement) -> list[CodeToken]:
    """The pieces of code among the parts of a list; [] if a part may limit the others."""
    tokens: list[CodeToken] = []
    for part in parts:
        if "`" in part and not whole_match(_TOKENS, part):
            return []
        found = _tokens_named(part, statement)
        if not found and not _OTHER_PART.fullmatch(part.replace("`", "")):
            return []
        tokens += found
    return tokens


def _named_in_any_form(words: str) -> CodeToken | None:
    """The code with a name such as "hex values", also as "a hex value" or "hard-coded hex values";
    None if there is none.
    """
    plain = re.sub(r"^(?:an?|any) ", "", words.lower()).replace("hard-coded", "hardcoded")
    plain = plain.replace("colour", "color")
    forms_of_name = (plain, f"{plain}s", plain.removesuffix("s"), plain.removeprefix("hardcoded "))
    return next(filter(None, map(named_token, forms_of_name)), None)


# code of JavaScript or TypeScript, beside "inline imports"
_CODE_OF_SCRIPT = re.compile(r"`[^`]*(?:\bimport\(|\brequire\(|\.[jt]sx?\b)[^`]*`")


_OPERATOR = re.compile(r"(?:[a-z-]+ ){0,4}\(?`(?P<sign>[^\w\s`]{1,4})`\)?(?: operators?)?", re.I)


def _operator_tokens(instruction: Instruction) -> list[CodeToken]:
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


def _hyphenated_tokens(instruction: Instruction) -> list[CodeToken]:
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
