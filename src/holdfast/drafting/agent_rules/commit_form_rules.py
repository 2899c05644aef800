"""Rules about the form of a commit message: its length, letters, marks and first word."""

import re
from dataclasses import replace

from holdfast.drafting.agent_rules.commit_statements import (
    MESSAGES,
    commit_rule,
    is_about_commits,
    is_of_something_else,
)
from holdfast.drafting.drafts import Draft
from holdfast.drafting.grammar.clauses import Clause
from holdfast.drafting.grammar.forms import (
    ADVERBS,
    NEVER,
    Forms,
    any_words,
    forms,
    one_of,
    whole_match,
)

# --- The length of the subject

_LIMIT = one_of(
    *("under", "below", "to", "at most", "within", "up to", "≤", "<=?", "exceed"),
    *("max(?:imum)?(?: of)?", "less than", "fewer than", "no more than"),
    *("no longer than", "not exceed", "around", "about"),
)
_BELOW = ("under", "below", "less than", "fewer than", "<")
_ROUGHLY = ("around", "about")
_AT_MOST = f"(?P<how>{_LIMIT})"
_WHOLE_MESSAGE = r"(?:the )?(?:entire|whole|full) (?:commit )?message"
# "the concise commit message subject line of commit messages"
_SUBJECT_LINE = (
    any_words("the", "a", "your", "all", "keep", "limit", "concise", "short")
    + r"(?:git )?(?:commit )?(?:message )?"
    r"(?:subject|title|first|summary|header|headline)(?: lines?)?s?"
    r"(?: of (?:the )?commit messages?)?"
)
_SUBJECT = one_of(_WHOLE_MESSAGE, _SUBJECT_LINE, r"(?:the )?commit (?:messages?|titles?|subjects?)")
_COUNT = r"(?P<count>\d+)(?: |-)?(?:characters|chars)(?: or less| or fewer| max(?:imum)?)?"
_CHARACTERS = r"(?:characters?|chars?)"
_LENGTHS = forms(
    {
        "Keep the subject line under 72 characters": (
            rf"{ADVERBS}(?:(?:keep|limit) )?{_SUBJECT}"
            r" (?:(?:must|should|do|can) (?:not )?(?:be |stay )?)?"
            rf"{_AT_MOST}(?: of)? {_COUNT}"
        ),
        "Max 70 characters for header": (
            rf"(?P<how>max(?:imum)?|at most|up to) (?P<count>\d+) {_CHARACTERS}"
            r" (?:for|in) (?:the )?(?:subject|title|header|summary|first line)(?: line)?"
        ),
        "72 character limit for the subject line": (
            rf"(?P<count>\d+)(?: |-){_CHARACTERS}(?: max(?:imum)?| limit)?(?: for the)?"
            r" (?:subject|title|summary|first) ?(?:line)?(?P<how>)"
        ),
    }
)
_SUBJECT_LABEL = forms(
    {
        "Subject line": r"(?:subject|title|summary|header)(?: lines?)?",
        "First line": r"first line",
        "Length": r"length",
    }
)
_LENGTH_ALONE = forms(  # behind such a label, or below "Commit messages"
    {
        "at most 72 characters": (
            rf"(?:keep it |limit to |line )?{_AT_MOST} ?{_COUNT}(?: for the subject)?"
        )
    }
)
_MIN_LIMIT = 10  # a smaller number of characters is not a limit of a subject

# --- The look of the subject and the body

_TYPE = r"(?:[a-z]+(?:\([^)\n]+\))?!?: )?"  # "feat(api): ", which has its own case of letters
_LINE = r"(?:subject|title|summary)(?: line)?"
_WITH_EMOJI = r"with an? (?:\w+ )?emoji"
_CAPITALISED = forms(
    {
        "Capitalise the first word of the subject": (
            rf"{ADVERBS}capitali[sz]e (?:the )?(?:first (?:word|letter)"
            r"(?: of the subject(?: line)?)?|(?:commit )?subject(?: lines?)?)"
        ),
    }
)
_EMOJI_FIRST = forms(
    {
        "Commit messages start with a meaningful emoji": (
            rf"(?:all |every |each )?{MESSAGES} (?:must |should )?(?:start|begin)s? {_WITH_EMOJI}"
        ),
    }
)
_NO_LAST_MARK = one_of(
    rf"{NEVER} (?:end|finish)(?: the)?(?: commit)?(?: subject| summary| title| first)?(?: lines?)?"
    " with a",
    *("no(?: trailing)?", "omit (?:the )?trailing", "without(?: a)? trailing"),
)
_NO_FULL_STOP = forms(
    {
        "Do not end the subject line with a period": (
            rf"{_NO_LAST_MARK} (?:periods?|full stops?|dots?|punctuation)(?: at the end)?"
            rf"(?: (?:in|on|at the end of|for) (?:the )?{_LINE})?"
        )
    }
)
_BLANK_LINE = forms(
    {
        "Separate the subject from the body with a blank line": (
            rf"(?:separate (?:the )?{_LINE} from (?:the )?body (?:with|by)"
            r"|(?:use |leave |add )?(?:a )?)(?: ?a)? ?blank line"
            rf"(?: between (?:the )?{_LINE} and (?:the )?body)?"
        )
    }
)
_ONE_LINE = forms(
    {
        "Every commit message must be a short one-liner": (
            rf"(?:every |each |all )?{MESSAGES} (?:must|should) (?:always )?be (?:an? )?"
            r"(?:(?:simple|short|single|concise) )*"
            r"(?:one-?liners?|(?:one|single)[- ]lines?)(?: only)?"
        ),
    }
)
_WITH_ISSUE = forms(
    {
        "Commit messages must reference an issue number": (
            rf"{ADVERBS}(?:(?:all |every )?{MESSAGES} (?:must|should)(?: always)? )?"
            r"(?:reference|include|mention|contain) (?:an? |the |its |related |relevant )*"
            r"(?:github |jira )?(?:issues?|tickets?)(?: (?:numbers?|ids?|references?))?"
        )
    }
)
# the ways to ask for a look, and the pattern of a message that has it
_LOOKS: tuple[tuple[Forms, str], ...] = (
    (_CAPITALISED, rf"\A{_TYPE}[^a-z]"),
    (_EMOJI_FIRST, r"\A\p{Extended_Pictographic}"),
    (_NO_FULL_STOP, r"\A[^\n]*[^.\n](?:\n|\Z)"),
    (_BLANK_LINE, r"\A[^\n]+(?:\n\n|\n?\Z)"),
    (_ONE_LINE, r"\A[^\n]+\n?\Z"),
    (_WITH_ISSUE, r"(?s)\A.*(?:#\d|\b[A-Z]{2,}-\d)"),
)

# --- A prefix that the subject must not have

_UNWANTED_PREFIX = forms(
    {
        "Do not prefix PR titles or commit subjects with `[codex]`": (
            rf"{NEVER} prefix (?:PR titles (?:or|and) )?{MESSAGES}(?: titles?| subjects?)*"
            r"(?: or PR titles)? with [`\"“](?P<prefix>[^`\"”“]+)[`\"”]"
        )
    }
)

_PART_END = re.compile(r", (?:and |with )?")
_TITLES = re.compile(r"\btitles?\b")


def commit_form_rule(clause: Clause) -> list[Draft]:
    """Reads "commit messages: imperative, at most 72 characters, no full stop"."""
    statement = clause.statement
    about = " ".join([clause.text, statement.label, *statement.under[-3:]]).lower()
    if clause.is_prohibited or "commit" not in about:
        return []
    drafts: list[Draft] = []
    for text in dict.fromkeys((clause.text, *_PART_END.split(clause.text))):
        if not is_of_something_else(_TITLES.sub("", text)):
            part = replace(clause, text=text)
            drafts += _read_length(part) or _read_look(part)
    return drafts


def _read_length(clause: Clause) -> list[Draft]:
    """Reads "keep the subject line under 72 characters"."""
    statement = clause.statement
    is_named = whole_match(_SUBJECT_LABEL, statement.label) or is_about_commits(statement)
    match = whole_match(_LENGTHS + (_LENGTH_ALONE if is_named else ()), clause.text)
    if match is None or match["how"].lower() in _ROUGHLY:
        return []
    limit = int(match["count"])
    if match["how"].lower() in _BELOW:
        limit -= 1
    if limit < _MIN_LIMIT:
        return []
    return commit_rule(rf"\A.{{1,{limit}}}(?:\n|\Z)", "requirement")


def _read_look(clause: Clause) -> list[Draft]:
    """Reads "capitalise the subject line" and "separate it from the body with a blank line"."""
    for ways, pattern in _LOOKS:
        if whole_match(ways, clause.text):
            return commit_rule(pattern, "requirement")
    return []


def unwanted_prefix_rule(clause: Clause) -> list[Draft]:
    """Reads "do not prefix commit subjects with `[codex]`"."""
    match = whole_match(_UNWANTED_PREFIX, clause.text)
    if match is None or clause.is_prohibited:
        return []
    return commit_rule(rf"\A(?!{re.escape(match['prefix'])})", "prohibition")
