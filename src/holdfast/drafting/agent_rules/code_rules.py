"""Rules about what is written into files: "never use `any`", "use `pathlib`, not `os.path`"."""

import re

from holdfast.drafting.agent_rules.code_files import Places, forbid_code, places_of
from holdfast.drafting.agent_rules.code_tokens import (
    CodeToken,
    code_token,
    named_token,
    token_of_kind,
)
from holdfast.drafting.drafts import Draft
from holdfast.drafting.grammar.clauses import Clause, all_known, codes_in
from holdfast.drafting.grammar.forms import CODE, forms, one_of, whole_match
from holdfast.drafting.grammar.instruction_words import WRITE, Relation
from holdfast.drafting.grammar.instructions import (
    Instruction,
    Modality,
    instruction_of,
)
from holdfast.drafting.grammar.language_files import PYTHON, SCRIPT, files_of_language
from holdfast.drafting.rules_file import Statement

# --- Instructions about code

_NAMED_EXPORTS = forms(
    {"Use only named exports": r"(?:always )?(?:(?:use |only )*named exports(?: only)?)"}
)
_AGAINST = (Relation.INSTEAD_OF, Relation.NOT, Relation.OVER)
_PLACES = (Relation.IN, Relation.OUTSIDE)
_PURPOSE = re.compile(r"\w+ing|images|performance|interactivity", re.I)
_TO_SILENCE = re.compile(
    r"(?:silence|suppress|bypass|work around|get around|hide|satisfy) .*", re.I
)
# names that no English word looks like, also without backticks: setTimeout/setInterval
_IDENTIFIER = r"(?!camel|pascal|kebab|snake|upper|lower|title)[a-z]{3,}(?:[A-Z][a-z0-9]+)+"
_IDENTIFIERS = re.compile(rf"(?<![\w./@-]){_IDENTIFIER}(?:/{_IDENTIFIER})*(?![\w./@-])")
# "no `active_sessions`" may be about a feature: a rule about a name says how it must not be used
_MERE_NAME = re.compile(r"no `[a-z]+(?:_[a-z]+)+`.*", re.I)
_PAIRS = re.compile(rf"{CODE} (?:instead of|rather than|over|not) ({CODE})")
_STYLE_OF_COMMITS = re.compile(
    r"\b(?:style|format|writing)\b.*\bcommits?\b|\bcommit (?:messages?|style|format)\b", re.I
)
_GENERAL_LABEL = re.compile(
    r"\b(?:code|style|types?|rules?|imports?|exports?|typescript|python|strict|no|not|never|use"
    r"|indentation|spaces|formatting|safety|handling|logging|syntax|typing|indexing"
    r"|interpolation|collections)\b",
    re.I,
)

# --- Code that an instruction names

# what people write without backticks
_WORDS = frozenset(
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
_ADJECTIVES = re.compile(
    r"^(?:bare|raw|plain|direct|global|the|TypeScript(?:'s)?|explicit|native) ", re.I
)
_CODE_IN_BRACKETS = re.compile(rf"[a-z ]+ \(({CODE}(?:(?:, | or | and ){CODE})*)\)")
_NAME_OF_LIBRARY = re.compile(r"^[A-Z][\w.]+(?:['’]s)? (?=`)")
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


def code_rule(clause: Clause) -> list[Draft]:
    """Reads "never use `any`" and "use `pathlib` instead of `os.path`"."""
    text = clause.text
    statement = clause.statement
    if whole_match(_NAMED_EXPORTS, text):
        default = CodeToken(r"^\s*export\s+default\b", SCRIPT)
        return [] if clause.is_prohibited else forbid_code([default], Places(), statement)
    if "`" not in text:
        text = _IDENTIFIERS.sub(lambda names: f"`{names[0].replace('/', '`/`')}`", text)
    instruction = instruction_of(text, clause.is_prohibited)
    if instruction is None or is_scoped(statement):
        return []
    objects = _forbidden_objects(instruction, text)
    if objects is None or _MERE_NAME.fullmatch(text):
        return []
    if "call" in instruction.verbs and "(" not in objects + text:
        return []  # a name alone may be that of a tool
    pairs = _PAIRS.findall(text)  # "`a` instead of `b` and `c` instead of `d`"
    tokens = _tokens_named(", ".join(pairs) if len(pairs) > 1 else objects, statement)
    places = places_of(instruction)
    return [] if places is None else forbid_code(tokens, places, statement)


def _forbidden_objects(instruction: Instruction, text: str) -> str | None:
    """The words for the code that an instruction forbids; None if it forbids none, or if anything
    but a place limits it.
    """
    if not instruction.does(WRITE):
        return None
    if instruction.modality is Modality.NEVER:
        return _objects_of_prohibition(instruction)
    if instruction.modality is Modality.MUST:
        return _objects_of_comparison(instruction, text)
    return None


def _objects_of_prohibition(instruction: Instruction) -> str | None:
    """The object of "never use `any` in tests"; None if the prohibition is limited."""
    harmless = [*_PLACES, Relation.EXCEPT]
    if _TO_SILENCE.fullmatch(instruction.text_of(Relation.TO) or ""):
        harmless.append(Relation.TO)
    if not instruction.has_only(*harmless) or instruction.rejected_object:
        return None
    return instruction.object or instruction.text_of(Relation.TO) or ""


def _objects_of_comparison(instruction: Instruction, text: str) -> str | None:
    """`B` in "use `A` instead of `B`"; None if nothing is compared, or if more than places and a
    usual purpose limit the instruction.
    """
    rejected = instruction.rejected_object
    if not rejected or rejected.startswith("`."):
        return None
    comparisons = len(instruction.texts_of(*_AGAINST))
    purpose = instruction.text_of(Relation.FOR)
    if (
        not instruction.does(("use", "call", "import", "write", "declare", "define"))
        or not instruction.has_only(*_PLACES, *_AGAINST, Relation.FROM, Relation.FOR)
        or (purpose and not _PURPOSE.fullmatch(purpose))
        or instruction.texts_of(Relation.TO)
        or comparisons > max(1, text.count("`") // 4)  # one for two pieces of code
    ):
        return None
    return rejected


def is_scoped(statement: Statement) -> bool:
    """Whether a statement is about one thing only, by its label ("Absolute-positioned tooltips:
    never use ...") or by a heading such as "Writing style for commits".
    """
    if is_about_commit_style(statement):
        return True
    is_general = _GENERAL_LABEL.search(statement.label)
    return len(statement.label.split()) > 1 and is_general is None


def is_about_commit_style(statement: Statement) -> bool:
    """Whether a statement stands under a heading such as "Writing style for commits"."""
    return any(map(_STYLE_OF_COMMITS.search, (statement.label, *statement.under)))


def is_named_word(word: str) -> bool:
    """Whether a word names a piece of code without backticks: "semicolons"."""
    return word.lower() in _WORDS


def _tokens_named(objects: str, statement: Statement) -> list[CodeToken]:
    """The pieces of code in a list; [] if something in it may not be code."""
    plain = _ADJECTIVES.sub("", objects)
    if bracketed := _CODE_IN_BRACKETS.fullmatch(plain):
        plain = bracketed[1]
    else:
        plain = _NAME_OF_LIBRARY.sub("", plain)
    if spans := whole_match(_TOKENS, plain):
        kind = spans["nouns"].strip()
        codes = codes_in(spans["codes"])
        beside = [_token_beside(code, statement.text) for code in codes]
        pairs = zip(codes, beside, strict=True)
        return all_known([token or token_of_kind(code, kind) for code, token in pairs])
    first, *others = re.split(r",? or |,? nor |, ", plain)
    if others and "`" not in plain:  # "TODOs, placeholders or gaps"
        plain = first
    words = re.sub(r"^typescript ", "", plain.replace("`", "").lower())
    if " " not in words and not is_named_word(words):
        return []
    token = named_token(words)
    return [token] if token and _may_be_of(token, statement) else []


def _may_be_of(token: CodeToken, statement: Statement) -> bool:
    """Whether a language that a statement is about may have a piece of code: `print` is Python's,
    and a statement that names no language may be about any.
    """
    about = files_of_language(statement.context)
    return token.files != PYTHON or not about or set(PYTHON) <= set(about)


def _token_beside(code: str, text: str) -> CodeToken | None:
    """The piece of code that a code span in a text means; None if it means none for sure.

    Where the text has another call of the same function, as in "use `now(utc)`, not `now()`", only
    a call without arguments can be told from it.
    """
    token = code_token(code)
    name, bracket, _ = code.partition("(")
    if not token or not bracket:
        return token
    if len(set(re.findall(rf"`{re.escape(name)}(\([^)`]*)", text))) < 2:
        return token
    return CodeToken(rf"{token.pattern}\s*\)", token.files) if code.endswith("()") else None
