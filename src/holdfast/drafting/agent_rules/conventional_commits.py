"""Rules about commit messages that begin with a type, as in "feat(api): add a search"."""

import re
from collections.abc import Iterable

from holdfast.drafting.agent_rules.commit_statements import (
    MESSAGES,
    commit_rule,
    is_about_commits,
    is_of_something_else,
)
from holdfast.drafting.drafts import Draft
from holdfast.drafting.grammar.clauses import Clause, codes_in
from holdfast.drafting.grammar.commands import any_of
from holdfast.drafting.grammar.forms import (
    ADVERBS,
    NEVER,
    TAIL,
    any_words,
    forms,
    one_of,
    whole_match,
)

_USUAL_TYPES = (
    *("build", "chore", "ci", "docs", "feat", "fix", "perf", "refactor", "revert", "style", "test"),
    *("deps", "release", "wip", "improvement"),
)
_ANY_SCOPE = r"[^)\n]+"

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
_FORMS = {
    "Use Conventional Commits for all commit messages": (
        rf"{ADVERBS}{_FOLLOW} {CONVENTIONAL}(?: for {_ALL}(?:git )?{MESSAGES}| when committing)?"
        rf"{TAIL}"
    ),
    "Commit messages must follow Conventional Commits": (
        rf"{any_words('all', 'the', 'git', 'your', 'our')}commits?"
        r"(?: messages?| titles?| subjects?| style| convention)*s?"
        r" (?:must |should |need to |is |are )*(?:always )?"
        rf"{_THEY_FOLLOW}?(?: an?)? ?{CONVENTIONAL}{TAIL}"
    ),
    "This repo follows Conventional Commits": (
        rf"{_WE} (?:use|follow|adhere)s?(?: to)? {CONVENTIONAL}(?: for {MESSAGES})?"
    ),
}
_CONVENTIONAL = forms({example: way + _WITH_SCOPES for example, way in _FORMS.items()})
_NAME_ALONE = forms({"Conventional Commits": CONVENTIONAL})  # below "Commit messages"
_LABEL = forms({"Use conventional commits": rf"(?:use |follow )?{CONVENTIONAL}"})
# "Conventional Commits (`feat`, `fix`, `docs`)"
_NAME_WITH_TYPES = re.compile(rf"{CONVENTIONAL} \([^()]*\b(?:feat|fix)\b[^()]*\)", re.I)
# "such as `feat(api): add a search`"
_EXAMPLE = re.compile(r"(?:use |e\.g\.,? |like |such as )?`[a-z]+(?:\([^)`]*\))?!?:")
_SHAPE = re.compile(r"`\w+\(\w+\): \w+`")  # "`type(scope): summary`"
# what else a line asks for: ", in the imperative", " and always add a body"
_AND_MORE = re.compile(r"(?:, (?!not)| and (?:usually|always|append|include|keep)).*$")
_ADJECTIVE = re.compile(r"\ba (?:lightweight|simple|loose) (?=conv)", re.I)
_ANY_TYPE = r"\A[a-z]+(?:\([^)\n]+\))?!?: \S"
_BARE_TYPE = re.compile(r"(?<![\w`])([a-z]{2,10}): ?(?=[,)]|or|and|$)")  # "feat:, fix: or docs:"
_TYPE = re.compile(r"([a-z]+)(?:\([\w-]+\))?!?:")
_SCOPE = re.compile(r"[a-z][a-z0-9-]*")
_NAMES_SCOPES = re.compile(r"\bwith (?:these|the following) scopes\b", re.I)

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
_FIRST_ITEM = forms({"`feat:` - New feature": r"`?feat(?:\([\w-]+\))?:`?(?: .{0,60})?"})
_QUOTED_TYPE = re.compile(r"[\"“']([a-z]+(?:\([\w-]+\))?!?:)[\"”']")
_UNQUOTED_TYPE = re.compile(r"(?<![\w`])([a-z]{2,10}:)(?=[, ]|$)")
_MEANING = re.compile(r"(?<=`) for [\w /-]+(?=,|$)")  # "`fix:` for bug fixes"

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


def conventional_commit_rule(clause: Clause) -> list[Draft]:
    """Reads "commit messages follow Conventional Commits"."""
    statement = clause.statement
    if clause.is_prohibited or is_of_something_else(clause.text):
        return []
    if _SHAPE.match(statement.text) and re.search("commit", statement.label, re.I):
        return commit_rule(_ANY_TYPE, "requirement")  # another line may name the types
    if not _names_conventional(clause):
        return []
    if statement.text.endswith(":"):  # the list below names the types
        return commit_rule(_ANY_TYPE, "requirement")
    return commit_rule(conventional_pattern(statement.text), "requirement")


def _names_conventional(clause: Clause) -> bool:
    """Whether a clause asks for Conventional Commits by their name."""
    statement = clause.statement
    if _NAME_WITH_TYPES.match(statement.text):
        return True
    if is_about_commits(statement) and whole_match(_NAME_ALONE, clause.text):
        return True
    if whole_match(_LABEL, statement.label) and _EXAMPLE.match(clause.text):
        return True
    plain = _ADJECTIVE.sub("", _AND_MORE.sub("", clause.text))
    return whole_match(_CONVENTIONAL, plain) is not None


def conventional_pattern(text: str) -> str:
    """The pattern of Conventional Commits, with the types and scopes that a line lists."""
    codes = [*codes_in(text), *(f"{word}:" for word in _BARE_TYPE.findall(text))]
    types = [match[1] for match in map(_TYPE.fullmatch, codes) if match]
    scopes = [code for code in codes if _SCOPE.fullmatch(code)]
    scope = any_of(scopes) if _NAMES_SCOPES.search(text) and scopes else _ANY_SCOPE
    return rf"\A{type_prefix(dict.fromkeys((*_USUAL_TYPES, *types)), scope)} \S"


def type_prefix(types: Iterable[str] = _USUAL_TYPES, scope: str = _ANY_SCOPE) -> str:
    """The pattern of the beginning of a message: `feat:`, `fix(api):` or `feat!:`."""
    return rf"(?:{'|'.join(types)})(?:\({scope}\))?!?:"


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
    are_types = "prefix" in text.lower() or "type" in statement.label.lower()
    if len(types) + len(bare_types) < 2 or (bare_types and not are_types):
        return []
    all_types = (*types, *bare_types)
    if "etc" in text:
        all_types = (*all_types, *_USUAL_TYPES)
    return commit_rule(rf"\A{type_prefix(dict.fromkeys(all_types))}", "requirement")


def unwanted_type_rule(clause: Clause) -> list[Draft]:
    """Reads "do not use Conventional Commits prefixes such as `feat:` or `fix:`"."""
    if clause.is_prohibited or whole_match(_UNWANTED_TYPES, clause.text) is None:
        return []
    return commit_rule(rf"\A(?!{type_prefix()})", "prohibition")


def _types_in_backticks(text: str) -> str:
    """A clause such as "feat: or 'fix:' for bugs" as "`feat:` or `fix:`"."""
    text = _UNQUOTED_TYPE.sub(r"`\1`", _QUOTED_TYPE.sub(r"`\1`", text))
    return _MEANING.sub("", text)
