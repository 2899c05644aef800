"""Rules about the style of code: the length of lines, indentation, the kind of functions, types.

    Keep lines under 80 characters.           -> code_not_written(pattern="^.{81,}$")
    Indent with tabs.                         -> code_not_written(pattern="^ +")
    No semicolons, 2-space indent, width 80.  -> one rule for each

The patterns are shortened above.
"""

import re
from dataclasses import replace

from holdfast.drafting.agent_rules.code_places import (
    COMPONENTS,
    code_draft,
    is_about_commit_style,
)
from holdfast.drafting.agent_rules.code_rules import code_rule
from holdfast.drafting.agent_rules.code_tokens import SPACES, TABS
from holdfast.drafting.agent_rules.named_code import is_named_word
from holdfast.drafting.drafts import Draft
from holdfast.drafting.grammar.clauses import Clause
from holdfast.drafting.grammar.forms import NEVER, form, forms, whole_match
from holdfast.drafting.grammar.named_files import (
    DOCUMENTS,
    PYTHON,
    SCRIPT,
    TYPED,
    files_of_language,
)

# --- Functions as `function` or as `const`: "use `function`, not `const`, for components"

_OF_COMPONENTS = r"(?:React |Vue |UI |functional )?components?"
_CONST_RATHER = (
    r"(?:always )?use `?(?:const|arrow functions?)`?,? (?:instead of|rather than|not|over)"
    r" `?functions?`?(?: declarations?| keyword)?,? for"
)
_COMPONENT_FORMS = (
    (
        form(
            "Use `const` instead of `function` for components",
            rf"{_CONST_RATHER} {_OF_COMPONENTS}",
        ),
        r"^\s*(?:export\s+(?:default\s+)?)?function\s+[A-Z]",
    ),
    (
        form(
            "Use `const` instead of `function` for component methods",
            rf"{_CONST_RATHER} {_OF_COMPONENTS} methods?",
        ),
        r"^[ \t]+(?:async\s+)?function\s+\w",
    ),
    (
        form(
            "Use `function`, not `const`, for components",
            r"(?:always )?use (?:the )?`?functions?`?(?: declarations?| keyword)?,?"
            r" (?:instead of|rather than|not|over) `?(?:const|arrow functions?)`?,?"
            rf" for {_OF_COMPONENTS}",
        ),
        r"^\s*(?:export\s+)?const\s+[A-Z]\w*\s*(?::[^=\n]+)?=\s*(?:async\s*)?"
        r"(?:\([^()\n]*\)|\w+)\s*(?::[^=\n]+)?=>",
    ),
)


def component_rule(clause: Clause) -> list[Draft]:
    """Reads "use `function`, not `const`, for components"."""
    text = re.sub(r" \([^()]*\)$", "", clause.text)
    if clause.is_prohibited:
        return []
    return [
        code_draft(pattern, (COMPONENTS,))
        for ways, pattern in _COMPONENT_FORMS
        if whole_match(ways, text)
    ]


# --- The length of lines

_COUNT = r"(?P<count>\d{2,3})(?:[- ](?:characters?|chars?|columns?))?(?: max(?:imum)?)?"
_LINE_LENGTHS = forms(
    {
        "Keep lines under 100 characters": (
            r"(?:keep |limit |wrap |break )?(?:all )?(?:code |source )?lines?"
            r"(?: (?:must|should|length))?(?: (?:be|to|are|stay))?"
            r" (?:at most|under|below|≤|<=|within|to|max(?:imum)?|no longer than|up to|at"
            rf"|(?:(?:must|should) )?not exceed) {_COUNT}(?: or (?:less|fewer))?"
        ),
        "Max line length: 100": (
            r"(?:use |keep |the )?(?:a )?(?:max(?:imum)? )?(?:code )?(?:line (?:length|width)"
            r"|print width)"
            rf"(?: (?:is|of|limit|limit of|at|to|max))*[: ]+(?:≤ ?)?{_COUNT}"
        ),
        "100 character line width": (
            rf"{_COUNT} (?:max(?:imum)? )?line (?:length|limit|width)(?: limit)?"
        ),
        "100-char lines": (
            r"(?P<count>\d{2,3})[- ](?:characters?|chars?|columns?)[- ]"
            r"(?:lines?|wrap|line (?:length|limit|width)|limit per line)"
        ),
        "No lines longer than 100 characters": (
            rf"(?:no|{NEVER} write) lines? (?:longer than|over|above|beyond|exceeding) {_COUNT}"
        ),
        "At most 100 characters per line": (
            r"(?:max(?:imum)?(?: of)?|at most|up to|≤)"
            r" (?P<count>\d{2,3}) (?:characters?|chars?|columns?) per line"
        ),
    }
)
_LENGTH_LABEL = form("Line length", r"(?:max(?:imum)? )?line (?:length|width)")
_LENGTH_ALONE = form("max 100", rf"(?:max(?:imum)? |≤ ?|under |up to )?{_COUNT}")
_OTHER_TEXTS = re.compile(r"commit|subject|body|docstring|comment", re.I)


def line_length_rule(clause: Clause) -> list[Draft]:
    """Reads "keep lines under 100 characters" and "max line length: 100"."""
    text = re.sub(r"[`*]", "", clause.text)
    match = whole_match(_LINE_LENGTHS, text)
    if match is None and whole_match(_LENGTH_LABEL, clause.statement.label):
        match = whole_match(_LENGTH_ALONE, text)
    if match is None or clause.is_prohibited or _OTHER_TEXTS.search(clause.context):
        return []
    pattern = rf"^.{{{int(match['count']) + 1},}}$"
    files = files_of_language(clause.context) or ["*", DOCUMENTS]
    return [code_draft(pattern, files)]


# --- Indentation

_WIDTH = r"(?:\d|two|four)[- ]"
_USE = "(?:(?:use|always use|maintain|keep) )?"
_INDENT_WITH_TABS = forms(
    {
        "Use tabs for indentation, not spaces": (
            r"(?:use |always use )?tabs for indentation(?:,? not spaces)?"
        ),
        "Indent with tabs instead of spaces": (
            r"(?:use |indent (?:with|using) )tabs"
            r"(?:,? (?:not|never|instead of|rather than) spaces)(?: for indentation)?"
        ),
        "Indent with tabs": r"indent (?:with|using) tabs",
        "Indentation: tabs": r"indentation(?::| must (?:be|use)| is always) tabs",
    }
)
_INDENT_WITH_SPACES = forms(
    {
        "Use 2 spaces for indentation, no tabs": (
            rf"{_USE}(?:{_WIDTH})?spaces for indentation(?:,? (?:not|no) tabs)?"
        ),
        "Indent with spaces, not tabs": (
            rf"(?:use |indent (?:with|using) )(?:{_WIDTH})?spaces"
            r"(?:,? (?:not|no|never|instead of|rather than) tabs)(?: for indentation)?"
        ),
        "Indent: 4 spaces": (
            rf"indent(?:ation)?: (?:use )?(?:{_WIDTH})?spaces(?:,? (?:not|no) tabs)?"
        ),
        "Indent with four spaces": rf"indent (?:with|using) (?:{_WIDTH})?spaces",
        "4-space indentation": (
            rf"{_USE}{_WIDTH}spaces? (?:indent|indentation|indents)(?:,? no tabs)?"
        ),
    }
)


def indentation_rule(clause: Clause) -> list[Draft]:
    """Reads "indent with tabs" and "2-space indentation"; the number of spaces is not checked."""
    texts = (clause.text, f"{clause.statement.label}: {clause.text}")
    uses_tabs = any(whole_match(_INDENT_WITH_TABS, text) for text in texts)
    uses_spaces = any(whole_match(_INDENT_WITH_SPACES, text) for text in texts)
    if clause.is_prohibited or not (uses_tabs or uses_spaces):
        return []
    token = SPACES if uses_tabs else TABS
    files = files_of_language(clause.context) or token.files
    return [code_draft(token.pattern, files)]


# --- Quotes and semicolons of JavaScript, which every import shows

_QUOTES = form(
    "Use single quotes for strings",
    r"(?:always )?(?:(?:use|prefer using) )?(?P<kind>single|double) quotes"
    r"(?: (?:for|around|in) (?:all )?(?:strings?|string literals|imports?|JS|TS"
    r"|JavaScript|TypeScript)(?: literals)?)?(?:,? (?:not|instead of|rather than) (?:single|double)"
    r"(?: quotes)?)?",
)
_SEMICOLONS = form(
    "Always use semicolons",
    r"(?:always )?(?:(?:use|require|include|add) )?semicolons(?: (?:are )?required"
    r"| at the end of (?:all )?statements)?",
)
# headings of quotes and semicolons of other texts than scripts
_OF_OTHER_TEXTS = re.compile(
    r"\b(?:jsx|html|css|scss|sql|csv|json|ya?ml|shell|bash|graphql|xml|markdown|templates?"
    r"|attributes?|prose|docs|documentation|commits?)\b",
    re.I,
)
# in `export const a = <p title="x" />`, the quotes are those of HTML
_QUOTED = {
    "single": r"^\s*(?:(?:import|export)\b[^'\"`=\n]*|\} from )\"[^\"\n]+\"|\brequire\(\"",
    "double": r"^\s*(?:(?:import|export)\b[^'\"`=\n]*|\} from )'[^'\n]+'|\brequire\('",
}
_IMPORT_WITHOUT_SEMICOLON = r"^\s*import\b[^;\n]*[\"'][ \t]*$"


def quotes_rule(clause: Clause) -> list[Draft]:
    """Reads "use single quotes" and "always use semicolons" of JavaScript and TypeScript."""
    statement = clause.statement
    above = (statement.label, *statement.under[-1:])
    if clause.is_prohibited or any(map(_OF_OTHER_TEXTS.search, above)):
        return []
    languages = set(files_of_language(clause.context))
    languages = languages or set(files_of_language(statement.document))
    if not languages or not languages <= {*SCRIPT, *TYPED}:
        return []
    if match := whole_match(_QUOTES, clause.text):
        return [code_draft(_QUOTED[match["kind"].lower()], SCRIPT)]
    if whole_match(_SEMICOLONS, clause.text) and len(clause.text.split()) > 1:
        return [code_draft(_IMPORT_WITHOUT_SEMICOLON, SCRIPT)]
    return []


# --- Type hints

_FUNCTIONS = (
    r"(?:(?:all|every|each|any|the|new|public|Python|your) )*(?:functions?|methods?|code"
    r"|function (?:signatures?|definitions?|parameters?|arguments?)|signatures?)"
    r"(?:(?:,? and | & |/|, )(?:(?:all|public|class) )?(?:functions?|methods?|class(?:es)?"
    r"|parameters?|return (?:types?|values?)|returns|variables?))*"
)
_HINTS = (
    r"(?:(?:Python|PEP 484|full|complete|explicit|static|proper) )*type (?:hints?|annotations?)"
)
_TYPE_HINTS = forms(
    {
        "Use type hints for all function signatures": (
            rf"(?:(?:always|please) )?(?:(?:use|add|include|write|provide|require) )?{_HINTS}"
            rf" (?:(?:are )?(?:required|mandatory) )?(?:on|for|in|to|with) {_FUNCTIONS}"
        ),
        "Type hints are required": (
            rf"{_HINTS} (?:are |is )?(?:always )?(?:required|mandatory)(?: everywhere| throughout)?"
        ),
        "All functions must have type hints": (
            rf"{_FUNCTIONS} (?:must|should|need to|has to|have to) (?:always )?"
            rf"(?:have|use|include|carry|be written with) {_HINTS}"
        ),
        "Use type hints everywhere": (
            rf"(?:always )?(?:(?:use|add|write) )?{_HINTS}(?: everywhere| throughout| consistently)"
            rf"|always (?:use|add|include|write) {_HINTS}"
        ),
    }
)
_RETURN_TYPES = forms(
    {
        "Use explicit return types for all functions": (
            r"(?:(?:always|please) )?(?:(?:use|add|include|write|declare) )?explicit return types"
            rf" (?:on|for|in) {_FUNCTIONS}"
        ),
        "Use explicit types for function parameters and return types": (
            r"(?:(?:always|please) )?(?:(?:use|add|include|write|declare) )?explicit types"
            r" (?:on|for|in) (?:all )?(?:function )?(?:parameters|arguments) and"
            r" return (?:types|values)"
        ),
    }
)
# a parameter without a type, after `self`; tests and fixtures are often left without
_UNTYPED_PARAMETER = (
    r"^[ \t]*(?:async[ \t]+)?def[ \t]+(?!{private}test_)\w+\(\s*(?:(?:self|cls)\s*,\s*)?"
    r"(?!self\b|cls\b)[A-Za-z_]\w*\s*[,=)]"
)
_UNTYPED_RESULT = r"\bfunction\s+\w+\s*(?:<[^<>()]*>)?\([^()]*\)\s*\{"
# what only a rules file about Python has, if it names no language
_OF_PYTHON = re.compile(r"\w\.py\b|\b(?:pytest|mypy|pyproject|pip install)\b")
_VERSION_FIRST = re.compile(r"^Python \d[\d.+]*(?: or (?:later|newer|above))?, | \([^()]*\)$")


def type_hint_rule(clause: Clause) -> list[Draft]:
    """Reads "use type hints for all functions", a rule about Python, and "use explicit return types
    for all functions" of TypeScript.
    """
    asks_for_hints = whole_match(_TYPE_HINTS, _VERSION_FIRST.sub("", clause.text))
    asks_for_results = whole_match(_RETURN_TYPES, clause.text)
    if clause.is_prohibited or not (asks_for_hints or asks_for_results):
        return []
    languages = files_of_language(clause.context) or files_of_language(clause.statement.document)
    if asks_for_hints and not languages and _OF_PYTHON.search(clause.statement.document):
        languages = list(PYTHON)
    if asks_for_hints and set(PYTHON) <= set(languages):
        private = "_|" if re.search(r"\bpublic\b", clause.text, re.I) else ""
        return [code_draft(_UNTYPED_PARAMETER.format(private=private), PYTHON)]
    if asks_for_results and set(TYPED) <= set(languages):
        return [code_draft(_UNTYPED_RESULT, TYPED)]
    return []


# --- Lists of styles: "no semicolons, 2-space indent"

_MAX_STYLE_WORDS = 5  # a longer part of a list is not the name of a style
_STYLE = r"(?:single|double) quotes|(?:no )?(?:semicolons|trailing commas)|\w+[ -]spaces?(?: \w+)?"
# "follow Prettier (single quotes, no semicolons and 2-space indentation)"
_STYLES_IN_BRACKETS = re.compile(
    rf"\((?P<styles>(?:{_STYLE})(?:(?:, (?:and )?| and )(?:{_STYLE}|[\w ]+)){{1,8}})\)", re.I
)


def style_list_rule(clause: Clause) -> list[Draft]:
    """Reads "no semicolons, single quotes, 2-space indent, print width 80"."""
    listed = _STYLES_IN_BRACKETS.search(clause.statement.text)
    text = listed["styles"] if listed and clause.begins_statement else clause.text
    parts = re.split(r"[,;] (?:and )?| and ", re.sub(r"\s*[—–].*$", "", text))
    if clause.is_prohibited or len(parts) == 1 or len(parts[0].split()) > _MAX_STYLE_WORDS:
        return []
    if is_about_commit_style(clause.statement):
        return []
    return [rule for part in parts for rule in _style_rules(replace(clause, text=part))]


def _style_rules(part: Clause) -> list[Draft]:
    """The rules of one part of a list of styles; [] if the part is about something else."""
    if re.match(r"width \d", part.text):
        part = replace(part, text=f"line {part.text}")
    if re.fullmatch(r"no \w+", part.text, re.I) and is_named_word(part.text[3:]):
        return code_rule(part)
    return indentation_rule(part) or line_length_rule(part) or quotes_rule(part)
