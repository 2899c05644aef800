"""Rules about pull requests: their title, body, base branch and state."""

import re

from holdfast.drafting.clauses import Clause
from holdfast.drafting.commit_format_rules import message_shape
from holdfast.drafting.conventional_commits import CONVENTIONAL, conventional_pattern
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import (
    ADVERBS,
    CODE,
    CODES,
    NEVER,
    any_words,
    forms,
    one_of,
    whole_match,
)
from holdfast.drafting.rules_file import Statement

_PRS = r"(?:PRs?|pull[ -]requests?)"
_EVERY = one_of("all", "every", "each", "any", "your", "the", "new", "an?")
# "every new pull request (PR)"
_PR = rf"(?:\b(?:{_EVERY} ){{0,4}}{_PRS}(?: \(PRs?\))?)"
_TITLE = rf"(?:{_PR}(?:['’]s)? titles?|titles? (?:of|for) {_PR})"
_BODY = rf"(?:{_PR}(?:['’]s)? (?:body|bodies|descriptions?)|(?:body|description)s? of {_PR})"
_MUST = any_words("must", "should", "need to", "always", "is", "are", "has to", "have to")
_QUOTED = r"(?:`(?P<code>[^`]+)`|[\"“](?P<quoted>[^\"”“]{1,60})[\"”])"
_UP_TO_40_SIGNS = r".{0,40}"

# --- The title

_TITLE_LABEL = forms(
    {"Titles of pull requests": _TITLE, "PR title format": r"(?:PR )?titles?(?: format)?"}
)
_ABOUT_PRS = re.compile(r"\bPRs?\b|pull", re.I)
_NAMES_TITLE = re.compile(_TITLE, re.I)
_BEFORE_CONVENTIONAL = (
    rf"(?:{_TITLE} {_MUST}|{ADVERBS}(?:use|follow|write) |{ADVERBS})?"
    r"(?:follow(?:s|ing)?|use|be|in|using|adhere to|match)*(?: an?)?(?: valid)?"
)
_CONVENTIONAL_TITLES = forms(
    {
        "PR titles must follow Conventional Commits": (
            rf"{_BEFORE_CONVENTIONAL} ?(?:the )?{CONVENTIONAL}"
            rf"(?: for (?:all )?{_TITLE}| in {_TITLE})?.{{0,3}}"
        )
    }
)
_TITLE_START = forms(
    {
        'PR titles must start with "[core]"': (
            rf"{_TITLE} {_MUST}(?:start|begin|be prefixed|prefixed) with (?:the )?(?:prefix )?"
            rf"{_QUOTED}.*"
        ),
        "Prefix the PR title with `[core]`": (
            rf"{ADVERBS}(?:prefix|start|begin) {_TITLE} with {_QUOTED}"
        ),
    }
)
_TITLE_LENGTH = forms(
    {
        "Keep PR titles under 70 characters": (
            rf"(?:{ADVERBS}keep )?{_TITLE} {_MUST}"
            r"(?:under|below|at most|within|to|be under) (?P<count>\d+) (?:characters|chars)"
        )
    }
)
_TITLE_SHAPE = forms(
    {
        "PR titles must use the format `[scope] Summary`": (
            rf"{_TITLE} {_MUST}(?:use|follow|be|have|match|format)?(?: the)?(?: format| form)?:? ?"
            rf"`(?P<shape>[^`]+)`{_UP_TO_40_SIGNS}"
        ),
        "Format PR titles as `type: summary`": (
            rf"{ADVERBS}(?:format|use) {_TITLE}(?: as| the format)?"
            rf" ?`(?P<shape>[^`]+)`{_UP_TO_40_SIGNS}"
        ),
    }
)
_LOWER_CASE_TITLE = forms(
    {
        "PR titles must start with a lowercase letter": (
            rf"(?:{_TITLE}|titles?) {_MUST}(?:start|begin)s? with (?:an? )?lower-?case(?: letter)?"
        )
    }
)
# behind a label such as "PR title"
_SHAPE_ALONE = forms({"`[scope] Summary` format": r"`(?P<shape>[^`]+)`(?: format)?"})

# --- The base branch, and whether it is a draft

_NOT_ANOTHER = (
    r"(?:,? (?:not|never|instead of|rather than) (?:the )?`?[\w./-]+`?(?: branch)?)?"  # ", not `x`"
)
_BRANCH = rf"`?(?P<base>[\w./-]+?)`?(?: branch)?(?: on GitHub)?{_NOT_ANOTHER}"
_GO_TO = one_of(
    *("target", "be opened against", "opened against", "be against", "go to", "go into"),
    *("based on", "be based on", "be made against", "be submitted to"),
)
_BASE = forms(
    {
        "PRs must target `develop`, not `main`": rf"{_PR} {_MUST}{_GO_TO} (?:the )?{_BRANCH}",
        "Open a pull request against the `main` branch": (
            rf"{ADVERBS}(?:open|create|target|submit|base|make) {_PR}"
            rf" (?:against|to|on|at|into|for) (?:the )?{_BRANCH}"
        ),
        "Open PRs targeting `develop`": (
            rf"{ADVERBS}(?:open|create|submit|make) {_PR} targeting (?:the )?{_BRANCH}"
        ),
        "Open a PR on a feature branch targeting `master`": (
            rf"{ADVERBS}(?:open|create|submit) {_PR} (?:on|from) an? [\w -]*branch"
            rf"(?: \([^()]*\))? targeting {_BRANCH}"
        ),
        "Target the `develop` branch for PRs": (
            rf"{ADVERBS}target (?:the )?{_BRANCH} (?:branch )?(?:for|in|with) {_PR}"
        ),
    }
)
_NO_BRANCH = re.compile(r"a|the|draft", re.I)  # "to the upstream" names no branch
_USUAL_BRANCHES = ("main", "master", "develop")  # names that need no backticks
_DRAFTS = forms(
    {
        "Open pull requests as drafts by default": (
            rf"{ADVERBS}(?:open|create|submit|make|keep)(?: an?| all| new)? "
            rf"(?:draft {_PRS}|(?:{_PRS}|it|them) (?:as|in) (?:an? )?drafts?)"
            r"(?: (?:mode|state|by default|first|initially))*"
        ),
        "When you open a PR, create it as a draft": (
            rf"when (?:you )?(?:create|open|creating|opening)(?: an?)? {_PRS}, "
            rf"{ADVERBS}(?:create|open) (?:it|them) as (?:an? )?drafts?(?: PRs?)?"
        ),
        "PRs must be opened as drafts": (
            rf"{_PR} {_MUST}(?:be )?(?:opened|created|open) as drafts?"
        ),
    }
)
_NO_DRAFTS = forms(
    {"Never open draft PRs": rf"{NEVER} (?:open|create)(?: a)? draft (?:PRs?|pull requests?)"}
)

# --- The body

_IN_BODY = rf"(?:in|to|of|at the (?:top|end|bottom) of) (?:the )?{_BODY}"
_NOT_IN_BODY = forms(
    {
        'Do not add a "Test plan" section to the PR body': (
            rf"{NEVER} (?:add|include|put|write|use)(?: an?| any| the)? (?P<texts>.+?)"
            rf"(?: (?:section|heading|checklist|footer|line)s?)? {_IN_BODY}"
        )
    }
)
_QUOTATION = re.compile(r"[\"“`]([^\"”“`]+)[\"”`]")
_BETWEEN_QUOTATIONS = re.compile(r"[\"“`][^\"”“`]+[\"”`]|[/,]| or | and ")
_TEXT_ADDED = forms(
    {
        "Include the line `Fixes #` in the PR description": (
            rf"{ADVERBS}(?:add|include|put|write|have|use) (?:the |an? )?(?:line |text )?{_QUOTED}"
            rf"(?: somewhere)? {_IN_BODY}"
        )
    }
)
_LABEL_INCLUDED = forms(
    {
        "PR bodies must always include a `Notes:` section": (
            rf"{_BODY} {_MUST}(?:include|have|contain) (?:an? |the )?{_QUOTED}"
            r" (?:section|line)(?: as the (?:first|last) line(?: of (?:the )?body)?)?"
        )
    }
)
_SECTIONS_INCLUDED = forms(
    {
        'PR descriptions must have the sections "Summary" and "Test plan"': (
            rf"{_BODY} {_MUST}(?:include|have|contain|use)(?: the)?(?: sections?| headings?)?:? "
            rf"(?P<sections>(?:{CODES})|(?:[\"“][^\"”]+[\"”](?:,? (?:and )?)?)+)(?: sections?)?"
        )
    }
)
# "## Summary" without its marks
_SECTION_NAME = re.compile(r"[\"“`]#*\s*([^\"”“`]+)[\"”`]")
_BODY_LABEL = re.compile(rf"^(?:{_BODY}|PR body|PR description)", re.I)
_EXAMPLE = re.compile(r"<|\{|#?\d|#N\b|#X")  # where a text becomes an example: "Fixes #123"
_MIN_CHARACTERS = 3  # a shorter text is found everywhere


def pr_title_rule(clause: Clause) -> list[Draft]:
    """Reads "PR titles must follow Conventional Commits"."""
    if clause.is_prohibited:
        return []
    text = clause.text
    is_labelled = _is_about_titles(clause.statement)
    is_about_titles = is_labelled or _NAMES_TITLE.search(text) is not None
    if is_about_titles and whole_match(_CONVENTIONAL_TITLES, text):
        return _require(title=conventional_pattern(clause.statement.text))
    if match := whole_match(_TITLE_START, text):
        start = match["code"] or match["quoted"]
        return [] if "<" in start else _require(title=rf"\A{re.escape(start)}")
    if match := whole_match(_TITLE_LENGTH, text):
        return _require(title=rf"\A.{{1,{match['count']}}}\Z")
    if is_about_titles and whole_match(_LOWER_CASE_TITLE, text):
        return _require(title=r"\A(?:[a-z]+(?:\([^)\n]*\))?!?: )?+[^A-Z]")
    match = whole_match(_TITLE_SHAPE + (_SHAPE_ALONE if is_labelled else ()), text)
    pattern = message_shape(match["shape"]) if match else None
    return _require(title=pattern) if pattern else []


def _is_about_titles(statement: Statement) -> bool:
    """Whether the label of a statement, or the heading above it, is about titles of PRs."""
    under = [name for name in statement.under if not re.fullmatch(CODE, name)]  # a shape alone
    if not any(whole_match(_TITLE_LABEL, name) for name in (statement.label, *under[-1:])):
        return False
    return any(map(_ABOUT_PRS.search, (statement.label, *under[-2:])))


def pr_state_rule(clause: Clause) -> list[Draft]:
    """Reads "PRs must target `develop`" and "open pull requests as drafts"."""
    if clause.is_prohibited:
        return []
    match = whole_match(_BASE, clause.text)
    if match and not _NO_BRANCH.match(match["base"]):
        base = match["base"]
        is_branch = f"`{base}`" in clause.text or base in _USUAL_BRANCHES
        return _require(base=rf"\A{re.escape(base)}\Z") if is_branch else []
    if whole_match(_DRAFTS, clause.text):
        return _require(draft=True)
    return _forbid(draft=False) if whole_match(_NO_DRAFTS, clause.text) else []


def pr_body_rule(clause: Clause) -> list[Draft]:
    """Reads "include `Fixes #` in the PR body" and "PR descriptions must have the sections ..."."""
    text = clause.text
    if unwanted := whole_match(_NOT_IN_BODY, text):
        return _forbid_texts(unwanted["texts"])
    if clause.is_prohibited:
        return []
    match = whole_match(_LABEL_INCLUDED, text)
    if match and match["code"] and match["code"].endswith(":"):
        return _require(body=rf"(?m)^\W*{re.escape(match['code'])}")
    if match := whole_match(_TEXT_ADDED, text):
        line = _EXAMPLE.split(match["code"] or match["quoted"])[0].strip()
        return _require(body=re.escape(line)) if len(line) >= _MIN_CHARACTERS else []
    match = whole_match(_SECTIONS_INCLUDED, text)
    above = (clause.statement.label, *clause.statement.under[-1:])
    is_labelled = any(map(_BODY_LABEL.search, above))
    if match and (is_labelled or "section" in text.lower() or "#" in text):
        names = _SECTION_NAME.findall(match["sections"])
        return _require(sections=names) if names else []
    return []


def _forbid_texts(quotations: str) -> list[Draft]:
    """Forbids the quoted texts in every body; [] if there is more than quotations."""
    words = _QUOTATION.findall(quotations)
    rest = _BETWEEN_QUOTATIONS.sub(" ", quotations).strip()
    if not words or rest not in ("", "section", "heading", "headings"):
        return []
    return _forbid(body=rf"(?si)\A(?!.*(?:{'|'.join(map(re.escape, words))}))")


def _require(**arguments: object) -> list[Draft]:
    """Requires pull requests to be as these arguments of the measure say."""
    return [Draft("commit", "requirement", {"name": "pull_request", **arguments})]


def _forbid(**arguments: object) -> list[Draft]:
    """As `_require`, for a rule that forbids the contrary."""
    return [Draft("commit", "prohibition", {"name": "pull_request", **arguments})]
