"""Rules about the layout of code: the length of lines, indentation, the first line of a file."""

import re

from holdfast.drafting.code_rules import code_draft, code_rule, is_about_commit_style, is_named_word
from holdfast.drafting.code_tokens import DOCUMENTS, files_of_language, named_token
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import forms, whole_match
from holdfast.drafting.rules_file import Statement

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


def line_length_rule(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Lines have at most 100 characters."""
    text = re.sub(r"[`*]", "", clause)
    match = whole_match(_LINE_LENGTHS, text)
    if match is None and whole_match(_LENGTH_LABEL, statement.label):
        match = whole_match(_LENGTH_ALONE, text)
    about = " ".join((clause, statement.label, *statement.under))
    if match is None or prohibits or _OF_A_MESSAGE.search(about):
        return None
    pattern = rf"^.{{{int(match['count']) + 1},}}$"
    return [code_draft("code_not_written", pattern, files_of_language(about) or ["*", DOCUMENTS])]


_WIDTH = r"(?:\d|two|four)[- ]"
_USE = "(?:(?:use|always use|maintain|keep) )?"
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


def indentation_rule(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Tabs for indentation; 2-space indentation, of which only a tab is found to break it."""
    uses_tabs = whole_match(_TABS, clause) is not None
    if prohibits or not (uses_tabs or whole_match(_SPACES, clause)):
        return None
    about = " ".join((clause, statement.label, *statement.under))
    token = named_token("spaces" if uses_tabs else "tabs")
    assert token is not None
    files = files_of_language(about) or token.files
    return [code_draft("code_not_written", token.pattern, files)]


_MAX_PART_WORDS = 5  # words of a part of a list of styles


def style_list_rule(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """No semicolons, single quotes, 2-space indent, print width 80."""
    parts = re.split(r"[,;] (?:and )?", re.sub(r"\s*[—–].*$", "", clause))
    if prohibits or len(parts) == 1 or len(parts[0].split()) > _MAX_PART_WORDS:
        return None
    if is_about_commit_style(statement):
        return None
    return [rule for part in parts for rule in _style(part, statement)] or None


def _style(part: str, statement: Statement) -> list[Draft]:
    """The rules of a part of a list of styles; none if it is about something else."""
    if re.fullmatch(r"no \w+", part, re.I) and is_named_word(part[3:]):
        return code_rule(part, statement, False) or []
    return (
        indentation_rule(part, statement, False) or line_length_rule(part, statement, False) or []
    )


_FIRST_LINES = forms(
    {
        "Every Python file must start with `from __future__ import annotations`": (
            r"(?:all|every|each)(?: new)? (?P<files>[\w#+.` ]+?|`[^`]+`)(?: source)?"
            r" (?:files?|modules?) (?:must |should )?"
            r"(?:start|begin|have|include|starts|begins)s?"
            r"(?: with)? `(?P<code>[^`]+)`(?: at the top| (?:on|as) the first line| header)?"
        ),
        "Put `'use strict'` at the top of every JavaScript file": (
            r"(?:use|add|include|put) `(?P<code>[^`]+)`"
            r" (?:at the top of|in|to|as the first line of)"
            r" (?:all|every|each)(?: new)? (?P<files>[\w#+. ]+?) (?:files?|modules?)"
        ),
    }
)


def first_line_rule(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Every Python file begins with `from __future__ import annotations`."""
    match = whole_match(_FIRST_LINES, clause)
    files = files_of_language(match["files"]) if match else []
    if match is None or not files or prohibits or re.search(r"\.\.\.|…|<", match["code"]):
        return None
    pattern = re.escape(match["code"]).replace(r"\ ", " ")
    return [code_draft("code_written", pattern, files, whole=True)]
