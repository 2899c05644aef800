"""Rules about the layout of code: the length of lines, indentation, the first line of a file."""

import re
from dataclasses import replace

from holdfast.drafting.agent_rules.code_files import code_draft
from holdfast.drafting.agent_rules.code_rules import code_rule, is_about_commit_style, is_named_word
from holdfast.drafting.agent_rules.code_tokens import SPACES, TABS
from holdfast.drafting.drafts import Draft
from holdfast.drafting.grammar.clauses import Clause
from holdfast.drafting.grammar.forms import forms, whole_match
from holdfast.drafting.grammar.language_files import DOCUMENTS, files_of_language

# --- The length of lines

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
_OTHER_TEXTS = re.compile(r"commit|subject|body|docstring|comment", re.I)

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
        "Indentation: tabs": r"indentation: tabs",
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
        "Indent with four spaces": rf"indent (?:with|using) (?:{_WIDTH})?spaces",
        "4-space indentation": (
            rf"{_USE}{_WIDTH}spaces? (?:indent|indentation|indents)(?:,? no tabs)?"
        ),
    }
)

# --- Lists of styles, and the first line of a file

_MAX_STYLE_WORDS = 5  # a longer part of a list is not the name of a style


def line_length_rule(clause: Clause) -> list[Draft]:
    """Reads "lines have at most 100 characters"."""
    text = re.sub(r"[`*]", "", clause.text)
    match = whole_match(_LINE_LENGTHS, text)
    if match is None and whole_match(_LENGTH_LABEL, clause.statement.label):
        match = whole_match(_LENGTH_ALONE, text)
    if match is None or clause.is_prohibited or _OTHER_TEXTS.search(clause.context):
        return []
    pattern = rf"^.{{{int(match['count']) + 1},}}$"
    files = files_of_language(clause.context) or ["*", DOCUMENTS]
    return [code_draft(pattern, files)]


def indentation_rule(clause: Clause) -> list[Draft]:
    """Reads "indent with tabs" and "2-space indentation"; the number of spaces is not checked."""
    uses_tabs = whole_match(_INDENT_WITH_TABS, clause.text) is not None
    uses_spaces = whole_match(_INDENT_WITH_SPACES, clause.text) is not None
    if clause.is_prohibited or not (uses_tabs or uses_spaces):
        return []
    token = SPACES if uses_tabs else TABS
    files = files_of_language(clause.context) or token.files
    return [code_draft(token.pattern, files)]


def style_list_rule(clause: Clause) -> list[Draft]:
    """Reads "no semicolons, single quotes, 2-space indent, print width 80"."""
    parts = re.split(r"[,;] (?:and )?", re.sub(r"\s*[—–].*$", "", clause.text))
    if clause.is_prohibited or len(parts) == 1 or len(parts[0].split()) > _MAX_STYLE_WORDS:
        return []
    if is_about_commit_style(clause.statement):
        return []
    return [rule for part in parts for rule in _style_rules(replace(clause, text=part))]


def _style_rules(part: Clause) -> list[Draft]:
    """The rules of one part of a list of styles; [] if the part is about something else."""
    if re.fullmatch(r"no \w+", part.text, re.I) and is_named_word(part.text[3:]):
        return code_rule(part)
    return indentation_rule(part) or line_length_rule(part)
