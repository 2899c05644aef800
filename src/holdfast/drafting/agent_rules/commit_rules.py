"""Rules about commit messages: their type, length, look and trailers.

    Commit messages must follow Conventional Commits. -> "^(feat|fix|...): "
    Keep the subject line under 72 characters.        -> "^.{1,71}$"
    Never add `Co-Authored-By:` lines to commits.     -> "^(?!.*co-authored-by:)"

Each becomes `commit_message`, with a pattern that a message matches if it keeps the rule (shortened
above). "Under 72 characters" says nothing of commits by itself, so the heading, the label or the
clause has to name them (`is_about_commits`).
"""

import re
from collections.abc import Iterable
from dataclasses import replace

from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.clauses import Clause, codes_in
from holdfast.drafting.grammar.commands import any_of
from holdfast.drafting.grammar.forms import (
    ADVERBS,
    NEVER,
    TAIL,
    Forms,
    any_words,
    form,
    forms,
    literal,
    one_of,
    whole_match,
    word_pattern,
)
from holdfast.drafting.grammar.instruction_words import Relation
from holdfast.drafting.grammar.instructions import Modality, instruction_of
from holdfast.drafting.rules_file import Statement
from holdfast.measures.rule_kinds import Polarity

# --- Statements about commits

MESSAGES = r"commits?(?: messages?)?"


def commit_rule(pattern: str, polarity: Polarity) -> list[Draft]:
    """A rule about commit messages: a pattern matches each one that keeps it."""
    return [Draft("commit", polarity, measure("commit_message", pattern=pattern))]


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


def is_about_commits(statement: Statement) -> bool:
    """Whether the label of a statement, or the heading above it, is about commits."""
    return any(
        whole_match(_ABOUT_COMMITS, _MARKS_AROUND.sub("", name))
        for name in (statement.label, *statement.under[-1:])
        if name
    )


# titles of pull requests, changelogs and so on, about which people say the same as about commits
_PR_TITLES = word_pattern("titles?", "PRs?")
_OTHER_TEXTS = re.compile(r"pull[ -]request|changelog|release notes|squash", re.I)


def is_of_something_else(clause: str) -> bool:
    """Whether a clause may be about a pull request, a title or a changelog."""
    return bool(_PR_TITLES.search(clause) or _OTHER_TEXTS.search(clause))


# --- Conventional Commits by name

_FORMAT = one_of(
    *"format style specification spec convention standard syntax".split(),
    *("messages?", "prefix(?:es)?", "titles?"),
)
# "the Conventional Commits format"
CONVENTIONAL = rf"(?:the )?(?:angular )?(?:conventional|semantic)[ -]commits?(?: {_FORMAT}s?)*"
_ALL = any_words("all", "any", "your", "the", "every")
_FOLLOW = r"(?:use|follow|write|commit with|commit using|adhere to|apply)"
_THEY_FOLLOW = one_of(
    *("use", "follow", "adhere to", "conform to", "be", "in", "using", "with", "written in", "per")
)
_WE = r"(?:we|this (?:repo|repository|project)|the (?:repo|project))"
_WITH_SCOPES = r"(?: with (?:these|the following) scopes)?"
_CONVENTIONAL = forms(
    {
        "Use Conventional Commits for all commit messages": (
            rf"{ADVERBS}{_FOLLOW} {CONVENTIONAL}"
            rf"(?: for {_ALL}(?:git )?{MESSAGES}| when committing)?"
            rf"{TAIL}{_WITH_SCOPES}"
        ),
        "Commit messages must follow Conventional Commits": (
            rf"{any_words('all', 'the', 'git', 'your', 'our')}commits?"
            r"(?: messages?| titles?| subjects?| style| convention)*s?"
            r" (?:must |should |need to |is |are )*(?:always )?"
            rf"{_THEY_FOLLOW}?(?: an?)? ?{CONVENTIONAL}{TAIL}{_WITH_SCOPES}"
        ),
        "Commits must be conventional": (
            rf"{any_words('all', 'your', 'git')}{MESSAGES} (?:must|should) (?:always )?be conventional"
        ),
        "This repo follows Conventional Commits": (
            rf"{_WE} (?:use|follow|adhere)s?(?: to)? {CONVENTIONAL}(?: for {MESSAGES})?"
            rf"{_WITH_SCOPES}"
        ),
    }
)
_NAME_ALONE = form("Conventional Commits", CONVENTIONAL)  # below "Commit messages"
_LABEL = form("Use conventional commits", rf"(?:use |follow )?{CONVENTIONAL}")
# "Conventional Commits (`feat`, `fix`, `docs`)"
_NAME_WITH_TYPES = re.compile(rf"{CONVENTIONAL} \([^()]*\b(?:feat|fix)\b[^()]*\)", re.I)
# "such as `feat(api): add a search`"
_EXAMPLE = re.compile(r"(?:use |e\.g\.,? |like |such as )?`[a-z]+(?:\([^)`]*\))?!?:")
_TYPE_SHAPE = re.compile(r"`\w+\(\w+\): \w+`")  # "`type(scope): summary`"
# what else a line asks for: ", in the imperative", " and always add a body"
_AND_MORE = re.compile(r"(?:, (?!not)| and (?:usually|always|append|include|keep)).*$")
# titles of pull requests beside messages: "in titles and messages"
_AND_TITLES = re.compile(
    r" (?:for|in) (?:(?:all|both) )*(?:commit messages?|commits|messages|titles|(?:PR|pull request)"
    r" titles?|PRs)(?: (?:and|or) (?:commit messages?|commits|messages|titles"
    r"|(?:PR|pull request) titles?|PRs))$",
    re.I,
)
# titles before the predicate: "commit messages *and PR titles* must follow"
_BESIDE_TITLES = re.compile(
    r"(?P<and>,? (?:and|&|or) )?(?:all )?(?:PR|pull request)s?(?: titles?)?"
    r"(?(and)|,? (?:and|&|or) (?=(?:all )?commit))(?=.* (?:must|should|follow|use|are)\b)",
    re.I,
)
_ADJECTIVE = re.compile(r"\ba (?:lightweight|simple|loose) (?=conv)", re.I)
_ANY_TYPE = r"\A[a-z]+(?:\([^)\n]+\))?!?: \S"


def conventional_commit_rule(clause: Clause) -> list[Draft]:
    """Reads "commit messages follow Conventional Commits"."""
    statement = clause.statement
    if clause.is_prohibited or is_of_something_else(_about_commits_only(clause.text)):
        return []
    if _TYPE_SHAPE.match(statement.text) and re.search("commit", statement.label, re.I):
        return commit_rule(_ANY_TYPE, "requirement")  # another line may name the types
    if not _names_conventional(clause):
        return []
    if statement.text.endswith(":"):  # the list below names the types
        return commit_rule(_ANY_TYPE, "requirement")
    return commit_rule(conventional_pattern(statement.text), "requirement")


def _about_commits_only(text: str) -> str:
    """A clause about commits and titles of pull requests, without the titles."""
    text = _AND_TITLES.sub("", text)
    return _BESIDE_TITLES.sub("", text, count=1) if re.search("commit", text, re.I) else text


# headings of lists of links
_READING = re.compile(
    r"\b(?:resources?|references?|links?|reading|see also|related|stack|tools?|tooling)\b", re.I
)


def _names_conventional(clause: Clause) -> bool:
    """Whether a clause asks for Conventional Commits by their name."""
    statement = clause.statement
    if _NAME_WITH_TYPES.match(statement.text):
        return True
    if whole_match(_NAME_ALONE, _AND_MORE.sub("", clause.text)):
        is_below_rules = bool(statement.under) and not _READING.search(statement.under[-1])
        starts_item = clause.begins_statement and not statement.opening and not statement.label
        if is_about_commits(statement) or (is_below_rules and starts_item):
            return True
    if whole_match(_LABEL, statement.label) and _EXAMPLE.match(clause.text):
        return True
    plain = _ADJECTIVE.sub("", _AND_MORE.sub("", _about_commits_only(clause.text)))
    return whole_match(_CONVENTIONAL, plain) is not None


_USUAL_TYPES = (
    *("build", "chore", "ci", "docs", "feat", "fix", "perf", "refactor", "revert", "style", "test"),
    *("deps", "release", "wip", "improvement"),
)
_ANY_SCOPE = r"[^)\n]+"
_BARE_TYPE = re.compile(r"(?<![\w`])([a-z]{2,10}): ?(?=[,)]|or|and|$)")  # "feat:, fix: or docs:"
_TYPE = re.compile(r"([a-z]+)(?:\([\w-]+\))?!?:")
_SCOPE = re.compile(r"[a-z][a-z0-9-]*")
_NAMES_SCOPES = re.compile(r"\bwith (?:these|the following) scopes\b", re.I)


def conventional_pattern(text: str) -> str:
    """The pattern of Conventional Commits, with the types and scopes that a line lists."""
    codes = [*codes_in(text), *(f"{word}:" for word in _BARE_TYPE.findall(text))]
    types = [match[1] for match in map(_TYPE.fullmatch, codes) if match and match[1] != "type"]
    scopes = [code for code in codes if _SCOPE.fullmatch(code)]
    scope = any_of(scopes) if _NAMES_SCOPES.search(text) and scopes else _ANY_SCOPE
    return rf"\A{type_prefix(dict.fromkeys((*_USUAL_TYPES, *types)), scope)} \S"


def type_prefix(types: Iterable[str] = _USUAL_TYPES, scope: str = _ANY_SCOPE) -> str:
    """The pattern of the beginning of a message: `feat:`, `fix(api):` or `feat!:`."""
    return rf"(?:{'|'.join(types)})(?:\({scope}\))?!?:"


# --- Types that a line lists

_TYPE_CODE = r"`[a-z]+(?:\([\w-]+\))?!?:?`"
_AND_TYPE = rf"(?:, (?:and |or )?| or | and | / |/|\|){_TYPE_CODE}"
_TYPE_CODES = rf"(?P<types>{_TYPE_CODE}(?:{_AND_TYPE})+)(?:,? etc\.?)?"
_KIND_OF_PREFIX = any_words(
    *"the these conventional semantic with commit following type valid allowed of".split(), "one of"
)
# "one of the commit prefixes such as"
_PREFIXES = rf"(?:{_KIND_OF_PREFIX}(?:prefix(?:es)?|types?)(?: (?:are|is|such as|like|with))?:? ?)?"
_LISTED_TYPES = forms(
    {
        "Use the commit prefixes `feat:`, `fix:` and `docs:`": (
            rf"{ADVERBS}(?:use|start|prefix|begin)(?: (?:all |your )*{MESSAGES})?(?: with)?"
            rf" {_PREFIXES}{_TYPE_CODES}(?: (?:as )?(?:prefixes|types|commit prefixes))?"
            rf"(?: for (?:all )?{MESSAGES})?"
        ),
        "types: `feat`, `fix`, `docs`": rf"{_PREFIXES}{_TYPE_CODES}(?: prefixes)?",
    }
)
_KIND_OF_LIST = one_of(*("conventions?", "format", "messages?", "types?", "prefix(?:es)?", "style"))
# the heading of a list of types, whose first item is read as the whole list
_LIST_HEADING = re.compile(rf"\bcommit\b.*\b{_KIND_OF_LIST}\b|\bcommit-konventionen\b", re.I)
_FIRST_ITEM = form("`feat:` - New feature", r"`?feat(?:\([\w-]+\))?:`?(?: .{0,60})?")


def commit_type_rule(clause: Clause) -> list[Draft]:
    """Reads "commit messages: use the prefixes `feat:`, `fix:` and `docs:`"."""
    statement = clause.statement
    heading = statement.under[-1] if statement.under else ""
    if _LIST_HEADING.search(heading) and whole_match(_FIRST_ITEM, clause.text):
        return commit_rule(rf"\A{type_prefix()} \S", "requirement")
    about = is_about_commits(statement) or re.search(r"\bcommits?\b", clause.text, re.I)
    if clause.is_prohibited or not about or is_of_something_else(clause.text):
        return []
    text = _types_in_backticks(clause.text)
    match = whole_match(_LISTED_TYPES, text)
    if match is None:
        return []
    types = re.findall(r"`([a-z]+)(?:\([\w-]+\))?!?:", match["types"])
    bare_types = re.findall(r"`([a-z]+)`", match["types"])
    are_types = "prefix" in text.lower() or re.search("type|label", statement.label, re.I)
    if len(types) + len(bare_types) < 2 or (bare_types and not are_types):
        return []
    all_types = (*types, *bare_types)
    if "etc" in text:
        all_types = (*all_types, *_USUAL_TYPES)
    return commit_rule(rf"\A{type_prefix(dict.fromkeys(all_types))}", "requirement")


_QUOTED_TYPE = re.compile(r"[\"“']([a-z]+(?:\([\w-]+\))?!?:)[\"”']")
_UNQUOTED_TYPE = re.compile(r"(?<![\w`])([a-z]{2,10}:)(?=[, ]|$)")
_MEANING = re.compile(r"(?<=`) for [\w /-]+(?=,|$)")  # "`fix:` for bug fixes"


def _types_in_backticks(text: str) -> str:
    """A clause such as "feat: or 'fix:' for bugs" as "`feat:` or `fix:`"."""
    text = _UNQUOTED_TYPE.sub(r"`\1`", _QUOTED_TYPE.sub(r"`\1`", text))
    return _MEANING.sub("", text)


# --- Types that are not wanted

_UNWANTED_TYPES = forms(
    {
        "Do not use prefixes such as `feat:` or `fix:`": (
            rf"(?:{NEVER} (?:use|add|include|write) |no )(?:Conventional Commits? )?"
            r"(?:(?:type )?prefix(?:es)?(?: like| such as)? )?"
            r"(?:`\w+:`(?:,? (?:and|or) |, |/)?)+(?:,? etc\.?)?(?: prefix(?:es)?)?"
        ),
        "Never use Conventional Commits prefixes": (
            rf"{NEVER} use (?:conventional|semantic) commits?(?: type)?"
            r"(?: prefix(?:es)?| format)?"
        ),
    }
)


def unwanted_type_rule(clause: Clause) -> list[Draft]:
    """Reads "do not use Conventional Commits prefixes such as `feat:` or `fix:`"."""
    if clause.is_prohibited or whole_match(_UNWANTED_TYPES, clause.text) is None:
        return []
    return commit_rule(rf"\A(?!{type_prefix()})", "prohibition")


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
_LENGTH_ALONE = form(  # after such a label, or below "Commit messages"
    "at most 72 characters",
    rf"(?:keep it |limit to |line )?{_AT_MOST} ?{_COUNT}(?: for the subject)?",
)
_MIN_LIMIT = 10  # a smaller number of characters is not a limit of a subject

# --- The look of the subject and the body

# "feat(api): ", which has its own case of letters
_TYPE_PREFIX = r"(?:[a-z]+(?:\([^)\n]+\))?!?: )?"
_LINE = r"(?:subject|title|summary)(?: line)?"
_NO_LAST_MARK = one_of(
    rf"{NEVER} (?:end|finish)(?: the)?(?: commit)?(?: subject| summary| title| first)?(?: lines?)?"
    " with a",
    *("no(?: trailing)?", "omit (?:the )?trailing", "without(?: a)? trailing"),
)
# the wordings that ask for a look, and the pattern of the messages that have it
_LOOKS: tuple[tuple[Forms, str], ...] = (
    (
        form(
            "Capitalise the first word of the subject",
            rf"{ADVERBS}capitali[sz]e (?:the )?(?:first (?:word|letter)"
            r"(?: of the subject(?: line)?)?|(?:commit )?subject(?: lines?)?)",
        ),
        rf"\A{_TYPE_PREFIX}[^a-z]",
    ),
    (
        form(
            "Commit messages start with a meaningful emoji",
            rf"(?:all |every |each )?{MESSAGES} (?:must |should )?(?:start|begin)s?"
            r" with an? (?:\w+ )?emoji",
        ),
        r"\A\p{Extended_Pictographic}",
    ),
    (
        form(
            "Do not end the subject line with a period",
            rf"{_NO_LAST_MARK} (?:periods?|full stops?|dots?|punctuation)(?: at the end)?"
            rf"(?: (?:in|on|at the end of|for) (?:the )?{_LINE})?",
        ),
        r"\A[^\n]*[^.\n](?:\n|\Z)",
    ),
    (
        form(
            "Separate the subject from the body with a blank line",
            rf"(?:separate (?:the )?{_LINE} from (?:the )?body (?:with|by)"
            r"|(?:use |leave |add )?(?:a )?)(?: ?a)? ?blank line"
            rf"(?: between (?:the )?{_LINE} and (?:the )?body)?",
        ),
        r"\A[^\n]+(?:\n\n|\n?\Z)",
    ),
    (
        form(
            "Every commit message must be a short one-liner",
            rf"(?:every |each |all )?{MESSAGES} (?:must|should) (?:always )?be (?:an? )?"
            r"(?:(?:simple|short|single|concise) )*"
            r"(?:one-?liners?|(?:one|single)[- ]lines?)(?: only)?",
        ),
        r"\A[^\n]+\n?\Z",
    ),
    (
        form(
            "Subject only, no body",
            rf"(?:{MESSAGES} (?:are|is|must be|should be) )?(?:always )?"
            r"(?:(?:subject|title)(?: line)?[- ]only|single[- ]line(?: only)?|one-?liners?(?: only)?"
            rf"|one-line(?: {MESSAGES})?(?: only)?|no (?:message |commit )?body(?: text)?)",
        ),
        r"\A[^\n]+\n?\Z",
    ),
    (
        form("No trailers", r"(?:with )?no (?:commit )?(?:trailers?|footers?)(?: lines)?"),
        r"(?smi)\A(?!.*^[\w-]+-by:)",
    ),
    (
        form(
            "Commit messages must start with the Jira key",
            rf"(?:all |every )?{MESSAGES} (?:must |should )?(?:start|begin)s? with (?:the |an? )?"
            r"(?:(?:Jira|ticket|issue) )+(?:number|key|id)?(?:,? (?:such as|e\.g\.,?|like))?"
            r" ?\(?`[A-Z]{2,}-\w+`\)?",
        ),
        r"\A\W?[A-Z][A-Z0-9]+-\d",
    ),
    (
        form(
            "Commit messages must reference an issue number",
            rf"{ADVERBS}(?:(?:all |every )?{MESSAGES} (?:must|should)(?: always)? )?"
            r"(?:reference|include|mention|contain) (?:an? |the |its )*"
            r"(?:github |jira )?(?:issues?|tickets?)(?: (?:numbers?|ids?|references?))?",
        ),
        r"(?s)\A.*(?:#\d|\b[A-Z]{2,}-\d)",
    ),
)
_PART_END = re.compile(r", (?:and |with )?")
_TITLE_WORDS = re.compile(r"\btitles?\b")


def commit_form_rule(clause: Clause) -> list[Draft]:
    """Reads "commit messages: imperative, at most 72 characters, no full stop"."""
    statement = clause.statement
    about = " ".join([clause.text, statement.label, *statement.under[-3:]]).lower()
    if clause.is_prohibited or "commit" not in about:
        return []
    drafts: list[Draft] = []
    for text in dict.fromkeys((clause.text, *_PART_END.split(clause.text))):
        if not is_of_something_else(_TITLE_WORDS.sub("", text)):
            part = replace(clause, text=text)
            rules = _read_length(part) or _read_look(part)
            drafts += [rule for rule in rules if rule not in drafts]
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


# --- A prefix that the subject must not have

_UNWANTED_PREFIX = form(
    "Do not prefix PR titles or commit subjects with `[codex]`",
    rf"{NEVER} prefix (?:PR titles (?:or|and) )?{MESSAGES}(?: titles?| subjects?)*"
    r"(?: or PR titles)? with [`\"“](?P<prefix>[^`\"”“]+)[`\"”]",
)


def unwanted_prefix_rule(clause: Clause) -> list[Draft]:
    """Reads "do not prefix commit subjects with `[codex]`"."""
    match = whole_match(_UNWANTED_PREFIX, clause.text)
    if match is None or clause.is_prohibited:
        return []
    return commit_rule(rf"\A(?!{re.escape(match['prefix'])})", "prohibition")


# --- The shape of the first line: `[scope] Summary`, `type(scope): summary`

# the parts of "[scope]", "type(scope):" or "area:", and the summary after them
_SHAPE = re.compile(
    r"(?P<first>\[[\w -]+\]|\w+)?(?P<scope>\([\w ./|-]+\))?(?:!?\??)(?P<colon>:)?"
    r" ?[A-Za-z][\w .'-]*(?:\.\.\.|…)?"
)
_SHAPE_OF_COMMITS = re.compile(
    r"(?:(?:use|follow|write|format|the|in|this|commits?|messages?|as|format:|:) ?)*"
    r"`(?P<shape>[^`]+)`(?: format)?(?:,? (?:\+|with|and|plus|followed by) .*)?",
    re.I,
)
_SHAPE_FOR_COMMITS = re.compile(
    rf"(?:always )?(?:use|follow|write) (?:the )?(?:format:? )?`(?P<shape>[^`]+)`(?: format)?"
    rf" (?:for|in) (?:all |your )?{MESSAGES}",
    re.I,
)
_SHAPE_LABEL = re.compile(
    r"commits?(?: (?:messages?|subjects?|titles?|format|style|convention))*", re.I
)


def commit_shape_rule(clause: Clause) -> list[Draft]:
    """Reads "commit subjects: `Component: short description`"."""
    statement = clause.statement
    is_about = is_about_commits(statement) or _SHAPE_LABEL.fullmatch(statement.label)
    if clause.is_prohibited or not clause.begins_statement:
        return []
    if named := _SHAPE_FOR_COMMITS.fullmatch(clause.text):
        pattern = shape_pattern(named["shape"])
        return commit_rule(pattern, "requirement") if pattern else []
    match = _SHAPE_OF_COMMITS.fullmatch(clause.text)
    if (
        not is_about
        or match is None
        or ":" not in match["shape"]
        or re.match(r"[a-z]+: ", match["shape"])
    ):
        return []  # `fix: a typo` is an example
    if re.match(r"[\w<>{}]+\(", match["shape"]):
        return commit_rule(_ANY_TYPE, "requirement")
    pattern = shape_pattern(match["shape"])
    return commit_rule(r"\A[^\s:][^\n:]{0,60}: \S", "requirement") if pattern else []


_BLOCK_HEADING = re.compile(
    r"(?:(?:git |conventional )*commits?(?: messages?)?(?: (?:format|style|convention|template))?s?"
    r"|(?:message )?format|structure|template)\W*",
    re.I,
)


def commit_shape_below(statement: Statement) -> list[Draft]:
    """Reads a code block with `type(scope): summary` right below the heading "Commit format"."""
    headings = (statement.text, *statement.under[-2:])
    if not _BLOCK_HEADING.fullmatch(statement.text) or len(statement.block) != 1:
        return []
    if not any(re.search(r"\bcommits?\b", name, re.I) for name in headings):
        return []
    shape = statement.block[0].strip()
    if any(map(is_of_something_else, headings)) or not re.match(r"[<\[{(\w]+>?\(", shape):
        return []
    return commit_rule(_ANY_TYPE, "requirement") if shape_pattern(shape) else []


def shape_pattern(shape: str) -> str | None:
    """The pattern of a first line with a shape such as `[scope] Summary` or `type(scope): summary`;
    None for a shape without brackets and colon, which any text would fit.
    """
    parts = _SHAPE.fullmatch(re.sub(r"[<>{}]", "", shape))
    if parts is None:
        return None
    is_bracketed = (parts["first"] or "").startswith("[")
    if not (parts["colon"] or is_bracketed):
        return None
    first = r"\[[^\]\n]+\]" if is_bracketed else r"[\w-]+"
    scope = r"(?:\([^)\n]+\))?!?" if parts["scope"] or parts["colon"] else ""
    return rf"\A{first}{scope}{parts['colon'] or ''} \S"


# --- Trailers

_TRAILER_WORDS = r"(?: (?:lines?|trailers?|footers?|tags?))*"
_TRAILER = re.compile(
    r"[`\"“]?(?P<name>Signed-off-by|Co-authored-by|Assisted-by|Change-Id|Generated-by):?"
    rf"[^`\"”]{{0,90}}?[`\"”]?{_TRAILER_WORDS}",
    re.I,
)
_COMMITS = re.compile(
    r"(?:(?:the|all|any|every|each|your|git|AI|agent-authored|AI-assisted|AI-generated) )*"
    r"commits?(?: messages?| trailers?)?",
    re.I,
)
_ADDS = ("add", "include", "append", "use", "put", "insert", "contain", "have", "carry")
_ADD = one_of(*_ADDS[:6])


def trailer_rule(clause: Clause) -> list[Draft]:
    """Reads "include an `Assisted-by:` trailer in every commit"."""
    instruction = instruction_of(clause.text, clause.is_prohibited)
    if instruction is None or instruction.modality is not Modality.MUST:
        return []
    if not instruction.object and len(clause.statement.block) == 1:  # "commits must include:"
        place = instruction.text_of(Relation.IN) or ""
        name = re.match(r"([A-Z]\w*(?:-\w+)+): ", clause.statement.block[0])
        if name is None or not instruction.does([*_ADDS]) or not _COMMITS.fullmatch(place):
            return []
        spec = measure("commit_includes", trailer=f"(?i)^{name[1]}:")
        return [Draft("commit", "requirement", spec)]
    trailer = _TRAILER.fullmatch(instruction.object)
    place = instruction.text_of(Relation.TO, Relation.IN, Relation.ON) or ""
    is_added = re.fullmatch(_ADD, instruction.verbs[0]) and instruction.has_only(
        Relation.TO, Relation.IN, Relation.ON
    )
    if trailer is None or not is_added or not _COMMITS.fullmatch(place):
        return []
    spec = measure("commit_includes", trailer=f"(?i)^{trailer['name']}:")
    return [Draft("commit", "requirement", spec)]


_SIGNED_OFF = form(
    "All commits must be signed off",
    r"(?:(?:all|every|each|your|git) )*commits?(?: messages?)? (?:must|should|need to|have to)"
    r" (?:always )?(?:be )?(?:signed[- ]off|sign(?:ed)? off|DCO signed|have a sign-?off)"
    r"|(?:always )?sign[- ]off (?:on )?(?:(?:all|every|each|your) )*commits?"
    r"|(?:always )?(?:use|commit with) `(?:git commit )?(?:-s|--signoff)`",
)


def sign_off_rule(clause: Clause) -> list[Draft]:
    """Reads "all commits must be signed off"."""
    plain = re.sub(r" \(`[^`]*`\)| (?:with|using|via|by) `[^`]*`$", "", clause.text)
    is_signed = whole_match(_SIGNED_OFF, plain) or whole_match(_SIGNED_OFF, clause.text)
    if clause.is_prohibited or is_signed is None:
        return []
    spec = measure("commit_includes", trailer="(?i)^Signed-off-by:")
    return [Draft("commit", "requirement", spec)]


_IN_COMMITS = r" (?:to|in|on)(?: (?:the|all|any|every|each|your|git))* commits?(?: messages?)?"
# what else is said to name the agent: "or any agent attribution"
_CREDIT = one_of("attributions?", "signatures?", "credits?", "trailers?", "footers?", "lines?")
_CO_AUTHOR = (
    r"(?:(?:an?|any|Claude|AI|agent) )*[`\"“]?"
    + one_of(r"co-?authored-by:?(?: [\w<>@. -]+)?", "co-?authors?")
    + rf"[`\"”]?{_TRAILER_WORDS}"
)
_NO_CO_AUTHORS = forms(
    {
        "Never add `Co-Authored-By:` lines or any agent attribution to commits": (
            rf"(?:{NEVER} {_ADD}|no) {_CO_AUTHOR}(?:,? or (?:[\w-]+ ){{0,3}}{_CREDIT})?"
            rf"(?:{_IN_COMMITS})?{TAIL}"
        ),
        "Commits carry no co-author trailer": (
            rf"(?:git )?commits? (?:carry|have|include|contain)s? no {_CO_AUTHOR}"
        ),
    }
)


# the names of agents, in a message that credits one
_AGENTS = "claude|anthropic|copilot|openai|chatgpt|codex|gemini|cursor|aider"
_CREDITS = rf"co-authored-by:[^\n]*(?:{_AGENTS})|generated (?:with|by|using) [^\n]{{0,20}}(?:{_AGENTS}|\bai\b)"
_NO_CREDIT = forms(
    {
        "Never add AI attribution to commits": (
            rf"(?:{NEVER} (?:{_ADD}|leave|mention) |no )(?:(?:any|an?) )?"
            r"(?:(?:AI|AI-generated|LLM|Claude|Claude Code|agent|assistant|tool|bot)[- ])+"
            r"(?:attributions?|signatures?|credits?|co-?authors?|footers?|trailers?|branding)"
            r"(?: lines?)?(?: (?:to|in|on|from) (?:(?:any|all|the|your|git) )*commits?(?: messages?)?"
            r"(?: (?:or|and) (?:PRs?|pull requests?)(?: descriptions?)?)?)?"
        ),
    }
)
_QUOTED_IN_COMMITS = re.compile(
    rf"(?:{NEVER} (?:{_ADD}|write|mention|say) |no )[\"“`](?P<text>[^\"”`]{{4,60}})[\"”`]"
    r"(?: (?:lines?|footers?|trailers?|text))?"
    r" (?:to|in|on) (?:(?:any|all|the|your|git) )*commits?(?: messages?)?"
    r"(?: (?:or|and) (?:PRs?|pull requests?)(?: (?:descriptions?|bodies))?)?",
    re.I,
)


_MENTIONED_IN_COMMITS = re.compile(
    rf"{NEVER} (?:mention|reference|credit|name) (?P<name>Claude|Copilot|Codex|Gemini|Cursor)(?: Code)?"
    r" in (?:(?:any|all|the|your|git) )*commits?(?: messages?)?",
    re.I,
)


def attribution_rule(clause: Clause) -> list[Draft]:
    """Reads "no AI attribution in commits" and "never write \"Generated with X\" in commits"."""
    text = f"never {clause.text}" if clause.is_prohibited else clause.text
    if match := _QUOTED_IN_COMMITS.fullmatch(text):
        return commit_rule(rf"(?si)\A(?!.*{literal(match['text'])})", "prohibition")
    if match := _MENTIONED_IN_COMMITS.fullmatch(text):
        return commit_rule(rf"(?si)\A(?!.*\b{literal(match['name'].lower())}\b)", "prohibition")
    about = (clause.text, clause.statement.label, *clause.statement.under[-1:])
    if whole_match(_NO_CREDIT, text) and any(re.search("commit", name, re.I) for name in about):
        return commit_rule(rf"(?si)\A(?!.*(?:{_CREDITS}))", "prohibition")
    return []


def co_author_rule(clause: Clause) -> list[Draft]:
    """Reads "never add `Co-Authored-By:` lines to commits" and "commits carry no co-author"."""
    text = f"never {clause.text}" if clause.is_prohibited else clause.text
    if whole_match(_NO_CO_AUTHORS, text) is None:
        return []
    name = r"[^\n]*(?:claude|anthropic)" if re.search("claude", text, re.I) else ""
    return commit_rule(rf"(?si)\A(?!.*co-authored-by:{name})", "prohibition")
