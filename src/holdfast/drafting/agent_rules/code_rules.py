"""Rules about what is written into files of code.

    Never use `any` in `src/`.      -> code_not_written(pattern=r"\\bany\\b", files="src/*")
    Use `pathlib`, not `os.path`.   -> code_not_written(pattern=r"os\\.path", files="*.py")

This module finds out what is forbidden. `named_code` knows which code the words for it name (the
patterns are shortened here), and `code_places` the files that they name.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from holdfast.drafting.agent_rules.code_places import (
    IN_TEXTS,
    Places,
    forbid_code,
    is_place_of_code,
    is_scoped,
    outside,
    places_of,
)
from holdfast.drafting.agent_rules.code_tokens import CodeToken, code_token, named_token
from holdfast.drafting.agent_rules.named_code import (
    hyphenated_tokens,
    operator_tokens,
    tokens_named,
)
from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.circumstances import Circumstance
from holdfast.drafting.grammar.clauses import Clause, codes_in
from holdfast.drafting.grammar.commands import any_of
from holdfast.drafting.grammar.forms import CODE, NEVER, form, literal, one_of, whole_match
from holdfast.drafting.grammar.instruction_words import WRITE, Relation
from holdfast.drafting.grammar.instructions import (
    Instruction,
    Modality,
    instruction_of,
)
from holdfast.drafting.grammar.named_files import RUST, TESTS
from holdfast.drafting.rules_file import Statement

# --- Set phrases

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
            r"|(?:all |new |React )*components (?:must |should |are )(?:always )?"
            r"(?:(?:be )?function(?:al)?(?: components)?|use functional components)"
            r"(?: (?:with|and) hooks)?",
        ),
        "class components",
    ),
    (
        form(
            "Use functional programming patterns; avoid classes",
            r"(?:always )?(?:use|prefer|favou?r) functional(?:(?:,? and |, )declarative)?"
            r"(?: programming)?(?: (?:patterns?|style|code))?(?:;|,| and)"
            r" (?:avoid|do not use|no) classes",
        ),
        "class declarations",
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
            "Do not add comments to the code",
            rf"{NEVER} (?:write|add|leave|use|include|put) (?:(?:any|new|code) )*comments"
            r"(?: (?:to|in|into) (?:(?:the|your|any|source) )*(?:code|files))?"
            r"|no comments (?:in|inside) (?:(?:the|your|any|source) )*(?:code|files)",
        ),
        "code comments",
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
# "no comments", below "Code style"
_NO_COMMENTS = re.compile(r"no comments", re.I)
_OF_CODE = re.compile(r"\bcode\b|\bcoding\b", re.I)
_ABSOLUTE_IMPORTS = re.compile(r"(?:use |prefer )?absolute\b[^.]*\b(?:not|never|no) relative", re.I)
_COLORS_FROM_TOKENS = re.compile(
    r"(?:all )?(?:UI )?colou?rs (?:must |should |always )?(?:use|come from)\b[^.]*,? "
    r"(?:never|not|no) (?:hard-?coded|raw)(?: (?:values|hex|colou?rs|ones))*",
    re.I,
)
_NO_MORE = re.compile(
    r"`(?P<code>[^`]+)`[^`.]*(?:[—–;,]| - )\s*(?:so |but |please )?"
    rf"{NEVER} (?:add|introduce|use|write) (?:any )?(?:more|new ones)\b",
    re.I,
)
_QUOTED_COMMENTS = re.compile(
    rf"{NEVER} (?:emit|write|add|use|include|generate|leave|put) (?P<words>[\"“'`]\w+[\"”'`]"
    r"(?:(?:, (?:or |and )?| or | and )[\"“'`]\w+[\"”'`])*) comments?(?: in .*)?",
    re.I,
)
_SET_VALUE = form(
    "Do not set `delay` back to `Infinity`",
    rf"{NEVER} set `(?P<name>[\w.]{{3,}})`(?: back)? to `(?P<value>[\w.\"'-]+)`",
) + form(
    "Do not set `standalone: true` in decorators",
    rf"{NEVER} (?:set|add|write|use) `(?P<name>[\w.]{{3,}})(?: ?[:=] ?)(?P<value>[\w.\"'-]+)`"
    r"(?: (?:in|inside) (?:the |any )?(?:(?:Angular|React|Vue|`@\w+`|component) )*decorators?)?",
)


def _token_of_phrase(clause: Clause) -> CodeToken | None:
    """The code that a clause forbids in a set phrase; None if it has none of these."""
    if clause.is_prohibited:
        return None
    statement = clause.statement
    above = " ".join((statement.label, *statement.under[-1:]))
    if _NO_COMMENTS.fullmatch(clause.text) and _OF_CODE.search(above):
        return named_token("code comments")
    if statement.label.lower() == "imports" and _ABSOLUTE_IMPORTS.match(clause.text):
        return named_token("relative imports")
    if _COLORS_FROM_TOKENS.fullmatch(statement.text.strip(" .")) and clause.begins_statement:
        return named_token("hardcoded colors")
    for ways, name in _SET_PHRASES:
        if whole_match(ways, clause.text):
            return named_token(name)
    if value := whole_match(_SET_VALUE, clause.text):
        return CodeToken(rf"\b{literal(value['name'])}\s*[:=]\s*{literal(value['value'])}")
    if comments := _QUOTED_COMMENTS.fullmatch(clause.text):
        words = re.findall(r"\w{3,}", comments["words"])
        return CodeToken(rf"(?://|#|--)\s*{one_of(*words)}\b") if words else None
    more = _NO_MORE.search(clause.statement.text)  # "there is some `any` left, do not add more"
    return code_token(more["code"]) if more and clause.text in more[0] else None


# --- The code that an instruction forbids

# "named exports only, except in tests"
_EXCEPTION_LAST = re.compile(r"(?P<text>[^`,]+),? except (?:for |in )+(?P<place>.+)", re.I)
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


def code_rule(clause: Clause) -> list[Draft]:
    """Reads "never use `any`" and "use `pathlib` instead of `os.path`"."""
    statement = clause.statement
    if token := _token_of_phrase(clause):
        return forbid_code([token], Places(), statement)
    if exception := _EXCEPTION_LAST.fullmatch(clause.text):  # "named exports only, except in tests"
        places = outside(exception["place"])
        if token := _token_of_phrase(replace(clause, text=exception["text"])):
            return forbid_code([token], places, statement) if places else []
    text = _with_code_in_backticks(clause.text)
    instruction = instruction_of(text, clause.is_prohibited)
    if instruction is None or is_scoped(statement):
        return []
    instruction = _forbid_elsewhere(instruction, text)
    objects = _forbidden_objects(instruction, text)
    if objects is None or _may_be_no_code(text, objects, instruction, statement):
        return []
    pairs = _PAIRS.findall(text)  # "`a` instead of `b` and `c` instead of `d`"
    tokens = tokens_named(", ".join(pairs) if len(pairs) > 1 else objects, statement)
    if instruction.modality is Modality.MUST and text.startswith("`"):
        tokens = [token for token in tokens if token.files]  # "`Row`, not `Rows`" may be a fact
    tokens = tokens or hyphenated_tokens(instruction) or operator_tokens(instruction)
    if _forbids_in_commits(instruction) and all(token.files == ("*",) for token in tokens):
        return [*_forbid_in_messages(tokens), *_forbid_in_files(tokens, instruction, statement)]
    return _forbid_in_files(tokens, instruction, statement)


_SAYS_WHERE_IT_IS = re.compile(
    r"\b(?:is|are)(?: only)? (?!allowed|permitted)[a-z]+(?:ed|en|read|set)\b|^only\b", re.I
)


def _forbid_elsewhere(instruction: Instruction, text: str) -> Instruction:
    """ "Use `fetch` only in `src/api/`" as "never use `fetch` outside `src/api/`"; another
    instruction as it is.

    "`fetch` is only used in `src/api/`" may describe the code, and "only use `fetch` in `src/api/`"
    may be about what else is used there.
    """
    is_limited = instruction.modality is Modality.ONLY and not _SAYS_WHERE_IT_IS.search(text)
    if not is_limited or not instruction.has_only(Relation.IN) or not instruction.circumstances:
        return instruction
    elsewhere = [
        Circumstance(Relation.OUTSIDE, place) for place in instruction.texts_of(Relation.IN)
    ]
    return replace(instruction, modality=Modality.NEVER, circumstances=tuple(elsewhere))


def _with_code_in_backticks(text: str) -> str:
    """A clause without backticks, in which names such as setTimeout are given some."""
    if "`" in text:
        return text
    text = _ANY_TYPE.sub(r"\1 `any`", text)
    return _IDENTIFIERS.sub(lambda names: f"`{names[0].replace('/', '`/`')}`", text)


_DESCRIBES_IT = re.compile(r"\b(?:this|that|it) (?:is|was) not `", re.I)
# "the runner uses a cache, no `shell=True`, and a timeout"
_TELLS = re.compile(
    r"(?:the|each|every|this|an?|it)\b[^`,]* (?:uses|runs|has|is|works|gets|contains|returns"
    r"|includes|exposes|shows|stores|holds)\b",
    re.I,
)
# before "No `Vec::push`", in the same item
_NAMES_FUNCTIONS = re.compile(r"\b(?:in|inside|within) `\w+(?:\(\))?`")
_NO_VERB = re.compile(r"(?:no|never) `", re.I)
_NAME_OF_MEMBER = re.compile(r"`\w+\.\w+`")


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
        or bool(statement.opening and _BARE_CALL.match(text) and statement.text.startswith(text))
        or bool(_NO_VERB.match(text) and _NAMES_FUNCTIONS.search(statement.opening))
        or bool(_NO_VERB.match(text) and _TELLS.match(statement.text))
        # "it reads the claim; this is not `auth.uid()`"
        or _DESCRIBES_IT.search(text) is not None
        # a name alone may be that of a tool
        or (
            "call" in instruction.verbs
            and "(" not in objects + text
            and not _NAME_OF_MEMBER.fullmatch(objects)
        )
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
        _NAMES_COMMITS.search(place) and whole_match(IN_TEXTS, place)
        for place in instruction.texts_of(Relation.IN)
    )


def _forbid_in_messages(tokens: Sequence[CodeToken]) -> list[Draft]:
    """Forbids signs such as emojis in commit messages."""
    if not tokens:
        return []
    signs = any_of(token.pattern for token in tokens)
    spec = measure("commit_message", pattern=rf"(?s)\A(?!.*{signs})")
    return [Draft("commit", "prohibition", spec)]


# --- The words for what is forbidden

_AGAINST = (Relation.INSTEAD_OF, Relation.NOT, Relation.OVER)
_PLACES = (Relation.IN, Relation.OUTSIDE)
_WORD = re.compile(r"[A-Za-z]{3}")  # in code that can be told apart, and not `_`
_HARDCODE = ("hardcode", "hard-code")
_NAME_OF_VALUE = re.compile(r"[A-Za-z_][\w.]*")
_SILENCE = ("suppress", "silence", "bypass", "swallow", "ignore", "hide", "disable")
_PURPOSE = re.compile(
    r"\w+ing|images|performance|interactivity|output|logs"
    r"|(?:safety|security|consistency|correctness)(?: and .*)?",
    re.I,
)
_AS_SHORTCUT = re.compile(
    r"(?:an? )?(?:easy |quick )?(?:shortcuts?|workarounds?|escape hatch(?:es)?)"
)
# what `print()` is for, and what `os.system` is for
_USUAL_PURPOSES = re.compile(
    r"(?:(?:any|application|production|general|debug) )*(?:logging|logs|debugging|debug output)"
    r"(?: or (?:logging|debugging))?"
    r"|(?:(?:launch|start|runn|execut|spawn)ing )(?:(?:any|the|external|shell|child|sub) ?)*"
    r"(?:process(?:es)?|commands?|programs?|scripts)",
    re.I,
)
_TO_SILENCE = re.compile(
    r"(?:silence|suppress|bypass|work around|get around|hide|satisfy) .*", re.I
)


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
        if objects is None or not instruction.does(_HARDCODE):
            return objects
        if any(map(_NAME_OF_VALUE.fullmatch, codes_in(objects))):
            return None  # "never hardcode `projectId`" forbids its value, and not the name
        return f"hardcoded {objects}"
    if instruction.modality is Modality.MUST:
        return _objects_of_comparison(instruction, text)
    return None


def _objects_of_prohibition(instruction: Instruction) -> str | None:
    """The object of "never use `any` in tests" and of "never use `any` instead of a type"; None if
    the prohibition is limited.
    """
    harmless = [*_PLACES, Relation.EXCEPT, Relation.INSTEAD_OF]
    if all(map(is_place_of_code, instruction.texts_of(Relation.FROM))):
        harmless.append(Relation.FROM)  # "never call `fetch()` from components"
    if all(map(_USUAL_PURPOSES.fullmatch, instruction.texts_of(Relation.FOR))):
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
