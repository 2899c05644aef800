"""Statements about commits, and the rule about a commit message that they become."""

import re

from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.forms import forms, one_of, whole_match, word_pattern
from holdfast.drafting.rules_file import Statement
from holdfast.measures.rule_kinds import Polarity

MESSAGES = r"commits?(?: messages?)?"

_GIT = "(?:git )?"
_PULL_REQUEST = r"(?:pull request|PR)"
_KINDS_OF_TEXT = one_of(
    *"style format guidelines conventions? rules prefixes types standards".split()
)
# headings and labels
_ABOUT_COMMITS = forms(
    {
        "git commits": f"{_GIT}commits?",
        "Commit message format": (
            f"{_GIT}commit (?:messages?|message (?:format|style|guidelines|conventions?))"
        ),
        "Commit guidelines": f"{_GIT}commit {_KINDS_OF_TEXT}",
        "Conventional commits": f"{_GIT}conventional commits?",
        "Git workflow": f"{_GIT}git(?: commits| conventions| workflow| commit messages)?",
        "Commits & PRs": f"{_GIT}commits? (?:&|and) {_PULL_REQUEST}s?(?: guidelines)?",
        "Commit & pull request guidelines": f"{_GIT}commit (?:&|and) {_PULL_REQUEST} guidelines",
        "Messages": f"{_GIT}messages?",
    }
)
_MARKS_AROUND = re.compile(r"^[\W\d_]+|[\s:*.]+$")  # "3." and ":**" in "3. **Commits:**"
# titles of pull requests, changelogs and so on, about which people say the same as about commits
_TITLES = word_pattern("titles?", "PRs?")
_OTHER_TEXTS = re.compile(r"pull[ -]request|changelog|release notes|squash", re.I)


def commit_rule(pattern: str, polarity: Polarity) -> list[Draft]:
    """A rule about commit messages: a pattern matches each one that keeps it."""
    return [Draft("commit", polarity, measure("commit_message", pattern=pattern))]


def is_about_commits(statement: Statement) -> bool:
    """Whether the label of a statement, or the heading above it, is about commits."""
    return any(
        whole_match(_ABOUT_COMMITS, _MARKS_AROUND.sub("", name))
        for name in (statement.label, *statement.under[-1:])
        if name
    )


def is_of_something_else(clause: str) -> bool:
    """Whether a clause may be about a pull request, a title or a changelog."""
    return bool(_TITLES.search(clause) or _OTHER_TEXTS.search(clause))
