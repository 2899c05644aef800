"""Rules about Conventional Commits and the types of commit messages.

    Commit messages must follow Conventional Commits. -> "^(feat|fix|...): "
    Do not use prefixes such as `feat:`.              -> "^(?!(feat|fix|...): )"

Each becomes `commit_message`, with a pattern that a message matches if it keeps the rule (shortened
above). "Conventional format" says nothing of commits by itself, so the heading, the label or the
clause has to name them (`is_about_commits`).
"""

import re
from collections.abc import Iterable

from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.clauses import Clause, codes_in
from holdfast.drafting.grammar.commands import any_of
from holdfast.drafting.grammar.forms import (
    ADVERBS,
    CODES,
    NEVER,
    TAIL,
    any_words,
    form,
    forms,
    literal,
    one_of,
    whole_match,
    word_pattern,
)
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
        "Commit message format": (f"{_GIT}commit (?:messages?|message {_KINDS_OF_TEXT})"),
        "Commit guidelines": f"{_GIT}commit {_KINDS_OF_TEXT}",
        "Conventional commits": f"{_GIT}conventional commits?",
        "Git workflow": f"{_GIT}git(?: commits| conventions| workflow| commit messages)?",
        "Commits & PRs": f"{_GIT}commits? (?:&|and) {_PULL_REQUEST}s?(?: guidelines)?",
        "Commit & pull request guidelines": f"{_GIT}commit (?:&|and) {_PULL_REQUEST} guidelines",
        "Messages": f"{_GIT}messages?",
        "Commitlint: conventional commit message validation": (
            r"(?:commitlint: )?(?:conventional )?commit messages? (?:validation|linting|checks?)"
        ),
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
_OF_TITLES = re.compile(r"^(?!.*\bcommit).*\btitles?\b", re.I)  # headings


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
_FOLLOW = r"(?:use|using|follow|write|commit with|commit using|adhere to|apply)"
_THEY_FOLLOW = one_of(
    *("use", "follow", "adhere to", "conform to", "be", "in", "using", "with", "written in", "per")
)
_WE = r"(?:we|this (?:repo|repository|project)|the (?:repo|project))"
_WITH_SCOPES = r"(?: with (?:these|the following) scopes)?"
_CONVENTIONAL = forms(
    {
        "Use Conventional Commits for all commit messages": (
            rf"{ADVERBS}{_FOLLOW} {CONVENTIONAL}"
            rf"(?: for {_ALL}(?:git )?(?:{MESSAGES}|messages)| when committing)?"
            rf"{TAIL}{_WITH_SCOPES}"
        ),
        "Commit messages must follow Conventional Commits": (
            rf"{any_words('all', 'the', 'git', 'your', 'our')}commits?"
            r"(?: messages?| titles?| subjects?| style| convention)*s?"
            r" (?:must |should |need to |is |are )*(?:always )?"
            rf"{_THEY_FOLLOW}?(?: an?)? ?{CONVENTIONAL}{TAIL}{_WITH_SCOPES}"
        ),
        "Write commit messages using Conventional Commits": (
            rf"(?:always )?(?:write|format) {_ALL}(?:git )?"
            rf"{any_words('(?:clear|descriptive|concise|short|good),?', 'and')}{MESSAGES}"
            rf" (?:using|in|with|according to|following|per|as) {CONVENTIONAL}{TAIL}"
        ),
        "Commit with conventional format": (
            rf"{ADVERBS}commit (?:with|using|in) (?:the )?(?:conventional|semantic)"
            rf" (?:commits? )?{_FORMAT}"
        ),
        "Commits must be conventional": (
            rf"{any_words('all', 'your', 'git')}{MESSAGES} (?:must|should) (?:always )?"
            r"(?:be conventional"
            r"|(?:follow|use|be in) (?:the |a )?conventional (?:commits? )?format)"
        ),
        "This repo follows Conventional Commits": (
            rf"{_WE} (?:use|follow|adhere)s?(?: to)? {CONVENTIONAL}(?: for {MESSAGES})?"
            rf"{_WITH_SCOPES}"
        ),
    }
)
# "Use Conventional Commits with the package as the scope": what follows limits nothing
_GOES_ON = re.compile(
    rf"{ADVERBS}{_FOLLOW} (?:the )?(?:conventional|semantic)[ -]commits?\b(?!-)"
    r"(?!.*\b(?:if|when|unless|except|only|where|prefer\w*|optional\w*|not|never|titles?|PRs?|pull"
    r"|branch\w*|squash\w*|changelogs?|releases?|but|may|can|could|instead)\b)"
    r" (?:with|and|in|using|to|so|template|guidelines?|pattern|structure|rules?)\b[^`]*",
    re.I,
)
_NAME_ALONE = form("Conventional Commits", CONVENTIONAL)  # below "Commit messages"
_LABEL = form("Use conventional commits", rf"(?:use |follow )?{CONVENTIONAL}")
# "Conventional Commits (`feat`, `fix`, `docs`)"
_NAME_WITH_TYPES = re.compile(rf"{CONVENTIONAL} \([^()]*\b(?:feat|fix)\b[^()]*\)", re.I)
# "such as `feat(api): add a search`"
_EXAMPLE = re.compile(r"(?:use |e\.g\.,? |like |such as )?`[a-z]+(?:\([^)`]*\))?!?:")
# "`type(scope): summary`" and "`<type>(<scope>): <summary>`"
_TYPE_SHAPE = re.compile(r"`<?\w+>?\(<?\w+>?\): <?[\w ]+>?`")
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
ANY_TYPE = r"\A[a-z]+(?:\([^)\n]+\))?!?: \S"


def conventional_commit_rule(clause: Clause) -> list[Draft]:
    """Reads "commit messages follow Conventional Commits"."""
    statement = clause.statement
    if clause.is_prohibited or is_of_something_else(_about_commits_only(clause.text)):
        return []
    if any(map(_OF_TITLES.search, statement.under[-1:])):
        return []
    if _TYPE_SHAPE.match(statement.text) and re.search("commit", statement.label, re.I):
        return commit_rule(ANY_TYPE, "requirement")  # another line may name the types
    if not _names_conventional(clause):
        return []
    if statement.text.endswith(":"):  # the list below names the types
        return commit_rule(ANY_TYPE, "requirement")
    return commit_rule(conventional_pattern(statement.text), "requirement")


def _about_commits_only(text: str) -> str:
    """A clause about commits and titles of pull requests, without the titles."""
    text = _AND_TITLES.sub("", text)
    return _BESIDE_TITLES.sub("", text, count=1) if re.search("commit", text, re.I) else text


# headings of lists of links
_READING = re.compile(
    r"\b(?:resources?|references?|links?|reading|see also|related|stack|tools?|tooling|features?"
    r"|overview|included|tech)\b",
    re.I,
)
_MAX_WORDS_OF_HEADING = 6


def _is_reading(heading: str) -> bool:
    """Whether a short heading is that of a list of links or tools."""
    return len(heading.split()) <= _MAX_WORDS_OF_HEADING and bool(_READING.search(heading))


def _names_conventional(clause: Clause) -> bool:
    """Whether a clause asks for Conventional Commits by their name."""
    statement = clause.statement
    if _NAME_WITH_TYPES.match(statement.text):
        return True
    if whole_match(_NAME_ALONE, _AND_MORE.sub("", clause.text)):
        is_below_rules = bool(statement.under) and not _is_reading(statement.under[-1])
        starts_item = clause.begins_statement and not statement.opening and not statement.label
        if is_about_commits(statement) or (is_below_rules and starts_item):
            return True
    if whole_match(_LABEL, statement.label) and _EXAMPLE.match(clause.text):
        return True
    if _GOES_ON.fullmatch(clause.text):
        return True
    plain = _ADJECTIVE.sub("", _about_commits_only(clause.text))
    texts = (plain, _AND_MORE.sub("", plain))
    return any(whole_match(_CONVENTIONAL, text) for text in texts)


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
        "short, prefixed with `fix:` or `feat:`": (
            rf"(?:(?:concise|short|brief|imperative|lowercase|clear),? (?:and )?)*"
            r"(?:(?:subjects?|summar(?:y|ies)|messages?|titles?)(?: lines?)? )?"
            rf"prefixed (?:with |by )?{_PREFIXES}{_TYPE_CODES}"
        ),
        "types: `feat`, `fix`, `docs`": rf"{_PREFIXES}{_TYPE_CODES}(?: prefixes)?",
    }
)
_KIND_OF_LIST = one_of(*("conventions?", "format", "messages?", "types?", "prefix(?:es)?", "style"))
# the heading of a list of types, whose first item is read as the whole list
_LIST_HEADING = re.compile(rf"\bcommit\b.*\b{_KIND_OF_LIST}\b|\bcommit-konventionen\b", re.I)
_TYPES_HEADING = re.compile(
    r"\W*(?:commit |allowed |valid )?(?:message )?(?:types|prefixes)\W*", re.I
)
_FIRST_ITEM = form("`feat:` - New feature", r"(?:`?feat(?:\([\w-]+\))?:`?|`feat`:?)(?: .{0,60})?")
_ITEM_OF_TYPE = re.compile(r"`?([a-z]{2,11})(?:\([\w-]+\))?!?:?`?(?=$|[ :])")
# "feat, fix or docs", after the label "Types"
_BARE_TYPES = re.compile(
    r"(?:one of:? )?(?P<types>[a-z]{2,11}(?:(?:,? (?:or|and) |, ?|/|\|| \| )[a-z]{2,11})+)"
)
_USUAL = frozenset(_USUAL_TYPES)
_MIN_USUAL_TYPES = 2  # in a list of words that are types


def _is_first_of_types(clause: Clause) -> bool:
    """Whether a clause is the first item of a list of types below a heading about commits."""
    above, nearest = ("", "", *clause.statement.under)[-2:]
    is_below = _LIST_HEADING.search(nearest) or (
        _TYPES_HEADING.fullmatch(nearest)
        and (re.search(r"\bcommit", nearest, re.I) or whole_match(_ABOUT_COMMITS, above))
    )
    return bool(is_below) and whole_match(_FIRST_ITEM, clause.text) is not None


def commit_type_rule(clause: Clause) -> list[Draft]:
    """Reads "commit messages: use the prefixes `feat:`, `fix:` and `docs:`"."""
    statement = clause.statement
    if _is_first_of_types(clause):
        others = filter(None, map(_ITEM_OF_TYPE.match, statement.later_items))
        types = dict.fromkeys((*_USUAL_TYPES, *(item[1] for item in others)))
        return commit_rule(rf"\A{type_prefix(types)} \S", "requirement")
    about = is_about_commits(statement) or re.search(r"\bcommits?\b", clause.text, re.I)
    if clause.is_prohibited or not about or is_of_something_else(clause.text):
        return []
    if re.fullmatch("(?:valid|allowed) scopes", statement.label, re.I):
        scopes = codes_in(clause.text) if re.fullmatch(CODES, clause.text) else []
        prefix = rf"\A[a-z]+(?:\({any_of(map(literal, scopes))}\))?!?:"
        return commit_rule(prefix, "requirement") if len(scopes) > 1 else []
    types_listed = _bare_types(clause) or _types_in_code(clause)
    return commit_rule(rf"\A{type_prefix(types_listed)}", "requirement") if types_listed else []


def _bare_types(clause: Clause) -> list[str]:
    """The types of "feat, fix or docs", after a label such as "Types"; [] if it lists none."""
    match = _BARE_TYPES.fullmatch(clause.text)
    names_types = re.search("type|prefix|use one of", clause.statement.label, re.I)
    if match is None or names_types is None:
        return []
    types = re.findall(r"\b(?!(?:or|and)\b)[a-z]+", match["types"])
    return types if len(_USUAL & set(types)) >= _MIN_USUAL_TYPES else []


def _types_in_code(clause: Clause) -> list[str]:
    """The types of "use the prefixes `feat:` and `fix:`"; [] if the code may be something else."""
    text = _types_in_backticks(clause.text)
    match = whole_match(_LISTED_TYPES, text)
    if match is None:
        return []
    prefixes = re.findall(r"`([a-z]+)(?:\([\w-]+\))?!?:", match["types"])
    bare_types = re.findall(r"`([a-z]+)`", match["types"])
    are_types = "prefix" in text.lower() or re.search("type|label", clause.statement.label, re.I)
    if len(prefixes) + len(bare_types) < 2 or (bare_types and not are_types):
        return []
    types = (*prefixes, *bare_types, *(_USUAL_TYPES if "etc" in text else ()))
    return list(dict.fromkeys(types))


_QUOTED_TYPE = re.compile(r"[\"“']([a-z]+(?:\([\w-]+\))?!?:)[\"”']")
_UNQUOTED_TYPE = re.compile(r"(?<![\w`])([a-z]{2,10}:)(?=[, ]|$)")
_LAST_TYPE = re.compile(rf"(?<=[ ,])({'|'.join(_USUAL_TYPES)})$")
_MEANING = re.compile(r"(?<=`) for [\w /-]+(?=,|$)")  # "`fix:` for bug fixes"


def _types_in_backticks(text: str) -> str:
    """A clause such as "feat: or 'fix:' for bugs" as "`feat:` or `fix:`"."""
    if _UNQUOTED_TYPE.search(text):
        text = _LAST_TYPE.sub(r"\1:", text)  # clauses have no colon at their end
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
