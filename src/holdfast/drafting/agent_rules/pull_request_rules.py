"""Rules about pull requests: their title, base branch and body.

For example:

    PRs must target `develop`.                       -> pull_request(base="develop")
    PR titles must follow Conventional Commits.      -> pull_request(title="(feat|fix|...): ")
    PR bodies must include a `Notes:` section.       -> pull_request(body="^Notes:")
"""

import re

from holdfast.drafting.agent_rules.commit_form_rules import shape_pattern
from holdfast.drafting.agent_rules.commit_rules import CONVENTIONAL, conventional_pattern
from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.clauses import Clause, codes_in
from holdfast.drafting.grammar.forms import (
    ADVERBS,
    CODE,
    any_words,
    form,
    forms,
    literal,
    one_of,
    whole_match,
)
from holdfast.drafting.grammar.instruction_words import Relation
from holdfast.drafting.grammar.instructions import Modality, instruction_of
from holdfast.drafting.rules_file import Statement

_PRS = r"(?:PRs?|pull[ -]requests?)"
_EVERY = one_of("all", "every", "each", "any", "your", "the", "new", "an?")
# "every new pull request (PR)"
_PR = rf"(?:\b(?:{_EVERY} ){{0,4}}{_PRS}(?: \(PRs?\))?)"
_TITLE = rf"(?:{_PR}(?:['’]s)? titles?|titles? (?:of|for) {_PR})"
_MUST = any_words("must", "should", "need to", "always", "is", "are", "has to", "have to")
_NAMES_PRS = re.compile(r"\b(?:PRs?|pull requests?)\b", re.I)


def _require(**arguments: str | bool | list[str]) -> list[Draft]:
    """Requires pull requests to be as these arguments of the measure say."""
    return [Draft("commit", "requirement", measure("pull_request", **arguments))]


def _is_below_prs(statement: Statement) -> bool:
    """Whether the label of a statement, or the heading above it, names pull requests."""
    return any(map(_NAMES_PRS.search, (statement.label, *statement.under[-1:])))


# --- The title

_TITLE_LABEL = forms(
    {"Titles of pull requests": _TITLE, "PR title format": r"(?:PR )?titles?(?: format)?"}
)
# the label or a heading says that the titles are those of PRs, as "Titles" alone does not
_ABOUT_PRS = re.compile(r"\bPRs?\b|pull", re.I)
_NAMES_TITLE = re.compile(_TITLE, re.I)
_TITLES_FOLLOW = (
    rf"(?:{_TITLE} {_MUST}|{ADVERBS}(?:use|follow|write) |{ADVERBS})?"
    r"(?:follow(?:s|ing)?|use|be|in|using|adhere to|match)*(?: an?)?(?: valid)?"
)
_CONVENTIONAL_TITLES = form(
    "PR titles must follow Conventional Commits",
    rf"{_TITLES_FOLLOW} ?(?:the )?{CONVENTIONAL}"
    rf"(?: for (?:all )?{_TITLE}| in {_TITLE})?.{{0,3}}",
)
_TITLES_FOLLOWING = form(
    "Use clear PR titles following Conventional Commits",
    rf"{ADVERBS}(?:use|write) (?:(?:clear|descriptive|concise|short|good),? (?:and )?)*{_TITLE}"
    rf" (?:following|that follow|according to|in|using) {CONVENTIONAL}.{{0,3}}",
)
_LOWER_CASE_TITLE = form(
    "PR titles must start with a lowercase letter",
    rf"(?:{_TITLE}|titles?) {_MUST}(?:start|begin)s? with (?:an? )?lower-?case(?: letter)?",
)
_TITLE_LENGTH = form(
    "Keep PR titles under 70 characters",
    rf"(?:keep )?{_TITLE} {_MUST}(?:be )?(?P<how>under|below|at most|within|up to|less than)"
    r" (?P<count>\d{2,3}) (?:characters|chars)",
)
# only after a label such as "PR title": "`type(scope): subject`"
_SHAPE_ALONE = re.compile(r"`(?P<shape>[^`]+)`(?: format)?")


def pr_title_rule(clause: Clause) -> list[Draft]:
    """Reads "PR titles must follow Conventional Commits"."""
    if clause.is_prohibited:
        return []
    text = clause.text
    is_labelled = _is_about_titles(clause.statement)
    is_about_titles = is_labelled or _NAMES_TITLE.search(text) is not None
    if whole_match(_TITLES_FOLLOWING, text) or (
        is_about_titles and whole_match(_CONVENTIONAL_TITLES, text)
    ):
        return _require(title=conventional_pattern(clause.statement.text))
    if is_about_titles and whole_match(_LOWER_CASE_TITLE, text):
        return _require(title=r"\A(?:[a-z]+(?:\([^)\n]*\))?!?: )?+[^A-Z]")
    if length := whole_match(_TITLE_LENGTH, text):
        limit = int(length["count"]) - (length["how"].lower() in ("under", "below", "less than"))
        return _require(title=rf"\A.{{1,{limit}}}\Z")
    shape = _SHAPE_ALONE.fullmatch(text) if is_labelled else None
    pattern = shape_pattern(shape["shape"]) if shape else None
    return _require(title=pattern) if pattern else []


def _is_about_titles(statement: Statement) -> bool:
    """Whether the label of a statement, or the heading above it, is about titles of PRs."""
    under = [name for name in statement.under if not re.fullmatch(CODE, name)]  # a shape alone
    if not any(whole_match(_TITLE_LABEL, name) for name in (statement.label, *under[-1:])):
        return False
    return any(map(_ABOUT_PRS.search, (statement.label, *under[-2:])))


# --- The base branch

_NOT_ANOTHER = (
    r"(?:,? (?:not|never|instead of|rather than) (?:the )?`?[\w./-]+`?(?: branch)?)?"  # ", not `x`"
)
_BRANCH = rf"`?(?P<base>[\w./-]+?)`?(?: branch)?(?: on GitHub)?{_NOT_ANOTHER}"
_GO_TO = one_of(
    *("target", "be opened against", "opened against", "be against", "go to", "go into"),
    *("go against", "are merged into", "be merged into", "merge into"),
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
        "Use `gh pr create --base develop`": (
            r"(?:always )?(?:use|run|open PRs with)"
            r" `gh pr create [^`]*--base (?P<base>[\w./-]+)[^`]*`"
        ),
        "Always target the `develop` branch, not `main` when creating PRs": (
            rf"{ADVERBS}target (?:the )?{_BRANCH}"
            rf"(?: (?:for|in|with|when (?:creating|opening|submitting|making)) {_PR})"
        ),
    }
)
# only below "Pull requests"
_BASE_ALONE = form(
    "Submit against the `develop` branch",
    rf"{ADVERBS}(?:target|(?:submit|open|merge|go) (?:to|against|into)|base branch:?|against|base:)"
    rf" (?:the )?{_BRANCH}",
)
_NO_BRANCH = re.compile(r"a|the|draft", re.I)  # "to the upstream" names no branch
_USUAL_BRANCHES = ("main", "master", "develop")  # names that need no backticks


def pr_base_rule(clause: Clause) -> list[Draft]:
    """Reads "PRs must target `develop`"."""
    forms_here = _BASE + _BASE_ALONE if _is_below_prs(clause.statement) else _BASE
    match = whole_match(forms_here, clause.text)
    if match is None or clause.is_prohibited or _NO_BRANCH.match(match["base"]):
        return []
    base = match["base"]
    is_branch = f"`{base}`" in clause.text or base in _USUAL_BRANCHES or "--base" in clause.text
    return _require(base=rf"\A{re.escape(base)}\Z") if is_branch else []


# --- Drafts

_AS_DRAFT = form(
    "Always open PRs as drafts",
    rf"{ADVERBS}(?:open|create|submit|make|raise) {_PR} (?:as|in) (?:an? )?drafts?"
    r"(?: mode)?(?: PRs?)?"
    r"|(?:always )?(?:open|create|submit|make) (?:an? )?draft (?:PRs?|pull requests?)"
    rf"|{_PR} {_MUST}(?:be )?(?:opened |created )?(?:as |in )?(?:an? )?drafts?(?: mode)?"
    r"|(?:always )?(?:use|create PRs with|open PRs with) `(?:gh pr create )?--draft`",
)


def pr_draft_rule(clause: Clause) -> list[Draft]:
    """Reads "always open PRs as drafts"."""
    if clause.is_prohibited or whole_match(_AS_DRAFT, clause.text) is None:
        return []
    return _require(draft=True)


# --- The body

_BODY = rf"(?:{_PR}(?:['’]s)? (?:body|bodies|descriptions?)|(?:body|description)s? of {_PR})"
_NAMES_BODY = re.compile(_BODY, re.I)
# "PR bodies must include a `Notes:` section"
_LABEL_INCLUDED = re.compile(
    rf"{_BODY} {_MUST}(?:include|have|contain) (?:an? |the )?`(?P<label>[^`]+:)`"
    r" (?:section|line)(?: as the (?:first|last) line(?: of (?:the )?body)?)?",
    re.I,
)


def pr_body_rule(clause: Clause) -> list[Draft]:
    """Reads "PR bodies must include a `Notes:` section" and "no test plan in PRs"."""
    if section := _unwanted_section(clause):
        return _require(body=rf"(?sim)\A(?!.*^(?:#+ |\*\*)\W*{literal(section)}\b)")
    if clause.is_prohibited:
        return []
    if rules := _issue_in_body(clause) or _sections_of_body(clause):
        return rules
    match = _LABEL_INCLUDED.fullmatch(clause.text)
    if match is None:
        return []
    return _require(body=rf"(?m)^\W*{re.escape(match['label'])}")


# --- The body: its issue

_REFERS_TO_ISSUE = form(
    "The PR body must reference its issue as `#<number>`",
    rf"(?:{_BODY}|{_PR}) (?:must|should) (?:always )?(?:reference|include|link(?: to)?|mention"
    r"|contain|close)(?: (?:the|its|an?|related|linked|corresponding|relevant|existing|GitHub))*"
    r" issues?(?: numbers?| references?| links?)?"
    r"(?: (?:as|with|using|in the form|like|via) `(?:(?:fixes|closes|resolves):? )?#[^`]+`"
    r"(?: or `[^`]+`)*)?",
) + form(
    "Link the issue in the PR description",
    rf"{ADVERBS}(?:link|reference|mention|include)(?: (?:the|its|an?|related|linked|corresponding"
    r"|relevant|GitHub))* issues?(?: numbers?| references?| links?)? in"
    rf" (?:(?:the|your|every|each) )?(?:{_BODY}|{_PR})",
)
# only below "Pull requests"
_LINKS_ISSUE = form(
    "Link related issues using `Closes #123` or `Fixes #123`",
    r"(?:link|reference|mention|close|include)(?: (?:the|its|any|related|linked|relevant|GitHub))*"
    r" issues?(?: numbers?)? (?:with|using|via|by|as|in the form)"
    r" (?:`(?:closes|fixes|resolves):? #[^`]+`(?:, | or |, or |/)?)+",
)
_ISSUE_CODE = form(
    "PR descriptions must include a `Fixes #123` line",
    rf"{_BODY} {_MUST}(?:include|have|contain|begin with|start with) (?:an? |the )?"
    r"`(?P<word>fixes|closes|resolves):? #\S+`(?: (?:line|reference|keyword))?",
)


def _issue_in_body(clause: Clause) -> list[Draft]:
    """Reads "the PR body must reference its issue"."""
    below = _is_below_prs(clause.statement)
    if whole_match(_REFERS_TO_ISSUE + (_LINKS_ISSUE if below else ()), clause.text):
        return _require(body=r"#\d|/issues/\d")
    if match := whole_match(_ISSUE_CODE, clause.text):
        return _require(body=rf"(?i)\b{match['word']}:? (?:\S+/\S+)?(?:#|https?://\S+/)\d")
    return []


# --- The body: its sections

_NAME_OF_SECTION = r"[`\"“]?(?:#+ )?[A-Z][\w ]{2,25}?[`\"”]?"
# "PR descriptions must include the sections Summary, Testing and Risks"
_SECTIONS = re.compile(
    rf"(?i:{_BODY} {_MUST}(?:include|have|contain|use)s? (?:the |these |following |an? )*"
    rf"(?:(?:sections?|headings?):? )?)(?P<names>{_NAME_OF_SECTION}"
    rf"(?:(?:, and |,? and |, ){_NAME_OF_SECTION})*)(?P<noun> (?:sections?|headings?))?"
)
# only after a sentence about descriptions: "use sections `Why` and `How`"
_USE_SECTIONS = re.compile(
    r"(?i:(?:always )?use (?:the |these |following )*sections?:? )"
    r"(?P<names>`[A-Z][^`]{2,60}`(?:(?:, and |,? and |, )`[A-Z][^`]{2,60}`)*)"
)
# "no headings in descriptions"
_NO_HEADINGS = re.compile(
    r"no (?:markdown )?(?:headlines|headings|headers|section headings)"
    rf"(?: in (?:the )?(?:{_BODY}|descriptions?))?",
    re.I,
)


def _sections_of_body(clause: Clause) -> list[Draft]:
    """Reads "PR descriptions must include the sections Summary and Testing" and "no headings"."""
    if _NO_HEADINGS.fullmatch(clause.text) and _is_about_bodies(clause):
        return _require(body=r"(?m)\A(?!(?:.*\n)*#{1,6} )")
    used = _USE_SECTIONS.fullmatch(clause.text)
    if used and _is_about_bodies(clause):
        return _require(sections=codes_in(used["names"]))
    match = _SECTIONS.fullmatch(clause.text)
    if match is None or not (match["noun"] or re.search(r"\bsections?\b", match[0])):
        return []
    names = re.split(r", and |,? and |, ", match["names"])
    return _require(sections=[re.sub(r"^[`\"“#\s]+|[`\"”\s]+$", "", name) for name in names])


def _is_about_bodies(clause: Clause) -> bool:
    """Whether a clause is about descriptions of pull requests, by itself or by what is above it."""
    statement = clause.statement
    about = (clause.text, statement.label, statement.opening, *statement.under[-1:])
    return any(map(_NAMES_BODY.search, about))


# what people do not want in descriptions: "test plan", "a \"Testing\" section"
_SECTION = re.compile(
    r"(?:an? |any )?(?:[\"“`](?P<quoted>[\w ]{4,30})[\"”`](?: sections?)?"
    r"|(?P<plain>(?:test plan|testing|checklist|summary))(?: sections?)?)(?: (?:or|\().*)?",
    re.I,
)
_PLACE_OF_SECTION = re.compile(rf"(?:the |any )?(?:{_BODY}|{_PR})", re.I)


def _unwanted_section(clause: Clause) -> str:
    """The section that a clause forbids in descriptions of pull requests; "" if it forbids none."""
    instruction = instruction_of(clause.text, clause.is_prohibited)
    if instruction is None or instruction.modality is not Modality.NEVER:
        return ""
    if not instruction.does(("add", "include", "write", "use", "put")):
        return ""
    match = _SECTION.fullmatch(instruction.object)
    places = instruction.texts_of(Relation.TO, Relation.IN)
    statement = clause.statement
    about = (statement.label, *statement.under[-1:], statement.opening)
    if match is None or not instruction.has_only(Relation.TO, Relation.IN, Relation.BECAUSE):
        return ""
    is_about = places or any(map(_NAMES_PRS.search, about))
    if not is_about or not all(map(_PLACE_OF_SECTION.fullmatch, places)):
        return ""
    return match["quoted"] or match["plain"]
