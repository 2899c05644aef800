"""Rules about commits: the form of their message, and what they do not include."""

import re

from holdfast.drafting.clauses import codes_in, names_in
from holdfast.drafting.commands import any_of
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import (
    ADVERBS,
    CODES,
    NEVER,
    TAIL,
    any_words,
    forbidden,
    forms,
    one_of,
    whole_match,
)
from holdfast.drafting.path_globs import path_glob
from holdfast.drafting.rules_file import Statement
from holdfast.drift.rule_kinds import Polarity


def commit_rule(pattern: str, polarity: Polarity) -> list[Draft]:
    """A rule about the whole message of a commit."""
    return [Draft("commit", polarity, {"name": "commit_message", "pattern": pattern})]


_KINDS_OF_TEXT = one_of(
    *"style format guidelines conventions? rules prefixes types standards".split()
)
# headings and labels
_ABOUT_COMMITS = forms(
    {
        "git commits": r"(?:git )?commits?",
        "Commit message format": (
            r"(?:git )?commit (?:messages?|message (?:format|style|guidelines|conventions?))"
        ),
        "Commit guidelines": rf"(?:git )?commit {_KINDS_OF_TEXT}",
        "Conventional commits": r"(?:git )?conventional commits?",
        "Git workflow": (r"(?:git )?git(?: commits| conventions| workflow| commit messages)?"),
        "Commits & PRs": (
            r"(?:git )?(?:commits? (?:&|and) (?:pull requests?|PRs?)(?: guidelines)?"
            r"|commit (?:&|and) (?:pull request|PR) guidelines)"
        ),
        "Messages": r"(?:git )?messages?",
    }
)
# of which the same words may be said: "PR titles follow Conventional Commits"
_OF_SOMETHING_ELSE = re.compile(
    r"\btitles?\b|\bPRs?\b|pull[ -]request|changelog|release notes|squash", re.I
)


def is_about_commits(statement: Statement) -> bool:
    """Whether the label of a statement, or what it stands under, is about commits."""
    return any(
        whole_match(_ABOUT_COMMITS, re.sub(r"^[\W\d_]+|[\s:*.]+$", "", name))
        for name in (statement.label, *statement.under[-1:])
        if name
    )


_MESSAGES = r"commits?(?: messages?)?"
_FORMAT = one_of(
    *"format style specification spec convention standard syntax".split(),
    *("messages?", "prefix(?:es)?", "titles?"),
)
CONVENTIONAL = rf"(?:the )?(?:angular )?(?:conventional|semantic)[ -]commits?(?: {_FORMAT}s?)*"
_TYPES = (
    *("build", "chore", "ci", "docs", "feat", "fix", "perf", "refactor", "revert", "style", "test"),
    *("deps", "release", "wip", "improvement"),
)
_ANY_TYPE = r"\A[a-z]+(?:\([^)\n]+\))?!?: \S"
_WITH_SCOPES = r"(?: with (?:these|the following) scopes)?"
_US = r"(?:we|this (?:repo|repository|project)|the (?:repo|project))"
_CONVENTIONAL_FORMS = forms(
    {
        example: pattern + _WITH_SCOPES
        for example, pattern in {
            "Use Conventional Commits for all commit messages": (
                rf"{ADVERBS}(?:use|follow|write|commit with|commit using|adhere to|apply)"
                rf" {CONVENTIONAL}(?: for (?:all |any |your |the |every )*(?:git )?{_MESSAGES}"
                rf"| when committing)?{TAIL}"
            ),
            "Commit messages must follow Conventional Commits": (
                rf"{any_words('all', 'the', 'git', 'your', 'our')}commits?"
                r"(?: messages?| titles?| subjects?| style| convention)*s?"
                r" (?:must |should |need to |is |are )*(?:always )?"
                r"(?:use|follow|adhere to|conform to|be|in|using|with|written in|per)?"
                rf"(?: an?)? ?{CONVENTIONAL}{TAIL}"
            ),
            "Write commit messages in Conventional Commits format": (
                rf"{ADVERBS}(?:write|format|use|make|create|keep) (?:all |the |your )*{_MESSAGES}"
                r"(?: messages?)? (?:in|using|with|following|per|according to|as)"
                rf" {CONVENTIONAL}"
            ),
            "Use Conventional Commits in commit messages": (
                rf"{ADVERBS}(?:use|follow) {CONVENTIONAL} in (?:all )?commit(?:s| messages)"
            ),
            "This repo follows Conventional Commits": (
                rf"{_US} (?:use|follow|adhere)s?(?: to)? {CONVENTIONAL}(?: for {_MESSAGES})?"
            ),
            "Commit with Conventional Commits": rf"{ADVERBS}commit (?:with|using) {CONVENTIONAL}",
            "Conventional Commits are required": (
                rf"{CONVENTIONAL} (?:are |is )?(?:required|mandatory|enforced)"
            ),
        }.items()
    }
)
_CONVENTIONAL_ALONE = forms({"Conventional Commits": CONVENTIONAL})
_CONVENTIONAL_LABEL = forms({"Use conventional commits": rf"(?:use |follow )?{CONVENTIONAL}"})
_WITH_TYPES = re.compile(rf"{CONVENTIONAL} \([^()]*\b(?:feat|fix)\b[^()]*\)", re.I)
_AN_EXAMPLE = re.compile(r"(?:use |e\.g\.,? |like |such as )?`[a-z]+(?:\([^)`]*\))?!?:")


def conventional(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Commit messages follow Conventional Commits."""
    if prohibits or _OF_SOMETHING_ELSE.search(clause):
        return None
    shape = re.match(r"`\w+\(\w+\): \w+`", statement.text)
    if shape and re.search("commit", statement.label, re.I):  # its types are named elsewhere
        return commit_rule(_ANY_TYPE, "requirement")
    plain = re.sub(r"(?:, (?!not)| and (?:usually|always|append|include|keep)).*$", "", clause)
    plain = re.sub(r"\ba (?:lightweight|simple|loose) (?=conv)", "", plain, flags=re.I)
    headed = _WITH_TYPES.match(statement.text) or (
        is_about_commits(statement) and whole_match(_CONVENTIONAL_ALONE, clause)
    )
    labelled = whole_match(_CONVENTIONAL_LABEL, statement.label) and _AN_EXAMPLE.match(clause)
    if not (headed or labelled or whole_match(_CONVENTIONAL_FORMS, plain)):
        return None
    if statement.text.endswith(":"):  # the list below names the types
        return commit_rule(_ANY_TYPE, "requirement")
    return commit_rule(conventional_pattern(statement.text), "requirement")


def conventional_pattern(text: str) -> str:
    """The pattern of Conventional Commits with the types, and the scopes, that a line lists."""
    codes = codes_in(text)
    codes += [
        f"{word}:" for word in re.findall(r"(?<![\w`])([a-z]{2,10}): ?(?=[,)]|or|and|$)", text)
    ]
    matches = (re.fullmatch(r"([a-z]+)(?:\([\w-]+\))?!?:", code) for code in codes)
    types = [match[1] for match in matches if match]
    scopes = [code for code in codes if re.fullmatch(r"[a-z][a-z0-9-]*", code)]
    scope = r"[^)\n]+"
    if re.search(r"\bwith (?:these|the following) scopes\b", text, re.I) and scopes:
        scope = any_of(scopes)
    kinds = "|".join(dict.fromkeys((*_TYPES, *types)))
    return rf"\A(?:{kinds})(?:\({scope}\))?!?: \S"


_TYPE_CODE = r"`[a-z]+(?:\([\w-]+\))?!?:?`"
_AND_TYPE = rf"(?:, (?:and |or )?| or | and | / |/|\|){_TYPE_CODE}"
_TYPE_CODES = rf"(?P<types>{_TYPE_CODE}(?:{_AND_TYPE})+)(?:,? etc\.?)?"
_PREFIXES = (
    r"(?:(?:(?:the|these|conventional|semantic|one of|of|with|commit|following|type|valid|allowed)"
    r" )*(?:prefix(?:es)?|types?)(?: (?:are|is|such as|like|with))?:? ?)?"
)
_LISTED_TYPES = forms(
    {
        "Use the commit prefixes `feat:`, `fix:` and `docs:`": (
            rf"{ADVERBS}(?:use|start|prefix|begin)(?: (?:all |your )*{_MESSAGES})?(?: with)?"
            rf" {_PREFIXES}{_TYPE_CODES}(?: (?:as )?(?:prefixes|types|commit prefixes))?"
            rf"(?: for (?:all )?{_MESSAGES})?"
        ),
        "types: `feat`, `fix`, `docs`": rf"{_PREFIXES}{_TYPE_CODES}(?: prefixes)?",
        "Commit messages must start with `feat:` or `fix:`": (
            r"(?:all )?commit messages? (?:must |should )?(?:start|begin|use|be prefixed)s?"
            rf" (?:with )?{_PREFIXES}{_TYPE_CODES}"
        ),
    }
)


_LIST_OF_TYPES = re.compile(
    r"\bcommit\b.*\b(?:conventions?|format|messages?|types?|prefix(?:es)?|style)\b"
    r"|\bcommit-konventionen\b",
    re.I,
)
_FIRST_TYPE = forms({"`feat:` - New feature": r"`?feat(?:\([\w-]+\))?:`?(?: .{0,60})?"})


def listed_types(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Commit messages: use the prefixes `feat:`, `fix:` and `docs:`."""
    heading = statement.under[-1] if statement.under else ""
    if _LIST_OF_TYPES.search(heading) and whole_match(_FIRST_TYPE, clause):  # others are below it
        kinds = "|".join(_TYPES)
        return commit_rule(rf"\A(?:{kinds})(?:\([^)\n]+\))?!?: \S", "requirement")
    about = is_about_commits(statement) or re.search(r"\bcommits?\b", clause, re.I)
    if prohibits or not about or _OF_SOMETHING_ELSE.search(clause):
        return None
    clause = re.sub(r"[\"“']([a-z]+(?:\([\w-]+\))?!?:)[\"”']", r"`\1`", clause)
    clause = re.sub(r"(?<![\w`])([a-z]{2,10}:)(?=[, ]|$)", r"`\1`", clause)
    clause = re.sub(r"(?<=`) for [\w /-]+(?=,|$)", "", clause)
    match = whole_match(_LISTED_TYPES, clause)
    if match is None:
        return None
    types = re.findall(r"`([a-z]+)(?:\([\w-]+\))?!?:", match["types"])
    bare = re.findall(r"`([a-z]+)`", match["types"])
    are_types = "prefix" in clause.lower() or "type" in statement.label.lower()
    if len(types) + len(bare) < 2 or (bare and not are_types):
        return None
    kinds = "|".join(dict.fromkeys((*types, *bare, *(_TYPES if "etc" in clause else ()))))
    return commit_rule(rf"\A(?:{kinds})(?:\([^)\n]+\))?!?:", "requirement")


_SHAPE = re.compile(
    r"(?P<first>\[[\w -]+\]|\w+)?(?P<scope>\([\w ./|-]+\))?(?:!?\??)(?P<colon>:)?"
    r" ?[A-Za-z][\w .'-]*(?:\.\.\.|…)?"
)


def message_shape(shape: str) -> str | None:
    """The pattern of a shape such as `[scope] Summary` or `type(scope): summary`; None if it has
    neither brackets nor a colon, so that any text would fit it.
    """
    parts = _SHAPE.fullmatch(re.sub(r"[<>]", "", shape))
    if parts is None:
        return None
    is_bracketed = (parts["first"] or "").startswith("[")
    if not (parts["colon"] or is_bracketed):
        return None
    first = r"\[[^\]\n]+\]" if is_bracketed else r"[\w-]+"
    scope = r"(?:\([^)\n]+\))?!?" if parts["scope"] or parts["colon"] else ""
    return rf"\A{first}{scope}{parts['colon'] or ''} \S"


_SHAPE_BELOW = forms(
    {
        "Use the following commit message format": (
            r"(?:use (?:the|this)(?: following)? )?commit(?: message)? format"
            r"(?: for commit messages)?"
        )
    }
)
_QUOTED = r"[`\"“]([^`\"”“]+)[`\"”]"
_SHAPED = forms(
    {
        "Commit messages must follow the format `[scope] Summary`": (
            r"(?:all )?commit messages? (?:must |should )?(?:follow|use|have)(?: the)?"
            rf" format {_QUOTED}"
        ),
        "Use the `type(scope): summary` format": (
            rf"(?:use|follow) the {_QUOTED} format(?: for (?:all )?commit messages)?"
        ),
    }
)


def commit_format(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Commit messages follow the format `[scope] Summary`."""
    if prohibits:
        return None
    shape = ""
    if statement.block and whole_match(_SHAPE_BELOW, clause):
        shape = statement.block[0].strip()
    elif match := whole_match(_SHAPED, clause):
        about = " ".join((clause, statement.label, *statement.under[-1:])).lower()
        shape = match[1] if "commit" in about else ""
    pattern = message_shape(shape) if shape else None
    return commit_rule(pattern, "requirement") if pattern else None


def commit_form(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Commit messages: imperative, at most 72 characters, no full stop."""
    about = " ".join([clause, statement.label, *statement.under[-3:]]).lower()
    if prohibits or "commit" not in about:
        return None
    drafts: list[Draft] = []
    for part in dict.fromkeys((clause, *re.split(r", (?:and |with )?", clause))):
        if not _OF_SOMETHING_ELSE.search(re.sub(r"\btitles?\b", "", part)):
            drafts += _commit_length(part, statement) or _commit_shape(part, statement)
    return drafts or None


_AT_MOST = "(?P<how>{})".format(
    "|".join(
        (
            *("under", "below", "to", "at most", "within", "up to", "≤", "<=?", "exceed"),
            *("max(?:imum)?(?: of)?", "less than", "fewer than", "no more than"),
            *("no longer than", "not exceed", "around", "about"),
        )
    )
)
_SUBJECT = one_of(
    r"(?:the )?(?:entire|whole|full) (?:commit )?message",
    any_words("the", "a", "your", "all", "keep", "limit", "concise", "short")
    + r"(?:git )?(?:commit )?(?:message )?"
    r"(?:subject|title|first|summary|header|headline)(?: lines?)?s?"
    r"(?: of (?:the )?commit messages?)?",
    r"(?:the )?commit (?:messages?|titles?|subjects?)",
)
_COUNT = r"(?P<count>\d+)(?: |-)?(?:characters|chars)(?: or less| or fewer| max(?:imum)?)?"
_LENGTHS = forms(
    {
        "Keep the subject line under 72 characters": (
            rf"{ADVERBS}(?:(?:keep|limit) )?{_SUBJECT}"
            r" (?:(?:must|should|do|can) (?:not )?(?:be |stay )?)?"
            rf"{_AT_MOST}(?: of)? {_COUNT}"
        ),
        "Write a subject of at most 50 characters": (
            rf"{ADVERBS}(?:use |write )?{_SUBJECT}:? (?:of )?{_AT_MOST} ?{_COUNT}"
        ),
        "Max 70 characters for header": (
            r"(?P<how>max(?:imum)?|at most|up to) (?P<count>\d+) (?:characters?|chars?)"
            r" (?:for|in) (?:the )?(?:subject|title|header|summary|first line)(?: line)?"
        ),
        "72 character limit for the subject line": (
            r"(?P<count>\d+)(?: |-)(?:characters?|chars?)(?: max(?:imum)?| limit)?(?: for the)?"
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
_LENGTH_ALONE = forms(
    {
        "at most 72 characters": (
            rf"(?:keep it |limit to |line )?{_AT_MOST} ?{_COUNT}(?: for the subject)?"
        )
    }
)
_LEAST_LIMIT = 10  # characters; a smaller number is no limit of a subject


def _commit_length(clause: str, statement: Statement) -> list[Draft]:
    """Keep the subject line under 72 characters."""
    match = whole_match(_LENGTHS, clause)
    if match is None and (
        whole_match(_SUBJECT_LABEL, statement.label) or is_about_commits(statement)
    ):
        match = whole_match(_LENGTH_ALONE, clause)
    if match is None or match["how"].lower() in ("around", "about"):
        return []
    is_below = match["how"].lower() in ("under", "below", "less than", "fewer than", "<")
    most = int(match["count"]) - is_below
    if most < _LEAST_LIMIT:
        return []
    return commit_rule(rf"\A.{{1,{most}}}(?:\n|\Z)", "requirement")


_TYPE = r"(?:[a-z]+(?:\([^)\n]+\))?!?: )?"
_LINE = r"(?:subject|title|summary)(?: line)?"
_SHAPES = (  # ways to speak of a subject or a body, and the pattern of a message that is like that
    (
        forms(
            {
                "Capitalise the first word of the subject": (
                    rf"{ADVERBS}capitali[sz]e (?:the )?(?:first (?:word|letter)"
                    r"(?: of the subject(?: line)?)?|(?:commit )?subject(?: lines?)?)"
                ),
                "Start with a capital letter": (
                    rf"{ADVERBS}(?:start|begin) "
                    r"(?:with|the (?:subject|summary)(?: line)? with) a capital letter"
                ),
            }
        ),
        rf"\A{_TYPE}[^a-z]",
    ),
    (
        forms(
            {
                "Commit messages start with a meaningful emoji": (
                    rf"(?:all |every |each )?{_MESSAGES} (?:must |should )?(?:start|begin)s? with"
                    r" an? (?:\w+ )?emoji"
                ),
                "Start each commit message with an emoji": (
                    rf"{ADVERBS}(?:start|begin|prefix) (?:all |each |every |the )*{_MESSAGES} with"
                    r" an? (?:\w+ )?emoji"
                ),
            }
        ),
        r"\A\p{Extended_Pictographic}",
    ),
    (
        forms(
            {
                "Use lowercase commit messages": (
                    rf"{ADVERBS}(?:use )?lower-?case "
                    r"(?:(?:the )?(?:subject|description|summary|commit messages?)(?: line)?)"
                )
            }
        ),
        rf"\A{_TYPE}[^A-Z]",
    ),
    (
        forms(
            {
                "Do not end the subject line with a period": (
                    rf"(?:{NEVER} (?:end|finish)(?: the)?(?: commit)?"
                    r"(?: subject| summary| title| first)?(?: lines?)? with a|no(?: trailing)?"
                    r"|omit (?:the )?trailing|without(?: a)? trailing)"
                    r" (?:periods?|full stops?|dots?|punctuation)(?: at the end)?"
                    rf"(?: (?:in|on|at the end of|for) (?:the )?{_LINE})?"
                )
            }
        ),
        r"\A[^\n]*[^.\n](?:\n|\Z)",
    ),
    (
        forms(
            {
                "Separate the subject from the body with a blank line": (
                    rf"(?:separate (?:the )?{_LINE} from (?:the )?body (?:with|by)"
                    r"|(?:use |leave |add )?(?:a )?)(?: ?a)? ?blank line"
                    rf"(?: between (?:the )?{_LINE} and (?:the )?body)?"
                )
            }
        ),
        r"\A[^\n]+(?:\n\n|\n?\Z)",
    ),
    (
        forms(
            {
                "Use one-line commit messages": (
                    rf"{ADVERBS}(?:use |write |keep )?(?:single|one)[- ]line"
                    r" commit messages(?: only)?"
                ),
                "Keep commit messages to one line": (
                    r"(?:keep )?commit messages (?:must |should )?(?:be |to )?"
                    r"(?:a |one |single)*[- ]?line(?: only)?"
                ),
                "Every commit message must be a short one-liner": (
                    rf"(?:every |each |all )?{_MESSAGES} (?:must|should) (?:always )?be (?:an? )?"
                    r"(?:(?:simple|short|single|concise) )*"
                    r"(?:one-?liners?|(?:one|single)[- ]lines?)(?: only)?"
                ),
            }
        ),
        r"\A[^\n]+\n?\Z",
    ),
)
_WRAPPED = forms(
    {
        "Wrap the body at 72 characters": (
            r"(?:wrap|hard-wrap|keep|limit)(?: the)?(?: commit)?(?: message)?(?: body| lines?)+"
            r"(?: lines| text)?(?: at| to| within| under)+ (\d+)(?: characters| chars| columns)?"
        )
    }
)
_BODY_LABEL = forms({"Body": r"body(?: lines?)?"})
_WRAPPED_BODY = forms(
    {"wrapped at 72 chars": r"wrap(?:ped)? (?:lines )?(?:at|to) (\d+)(?: characters| chars)?"}
)


def _commit_shape(clause: str, statement: Statement) -> list[Draft]:
    """Capitalise the subject line; no full stop at its end; a blank line before the body."""
    for ways, pattern in _SHAPES:
        if whole_match(ways, clause):
            return commit_rule(pattern, "requirement")
    wrapped = whole_match(_WRAPPED, clause)
    if wrapped is None and whole_match(_BODY_LABEL, statement.label):
        wrapped = whole_match(_WRAPPED_BODY, clause)
    if wrapped is None:
        return []
    return commit_rule(rf"\A[^\n]*(?:\n(?:.{{0,{wrapped[1]}}}|\S+))*\n?\Z", "requirement")


_NO_TYPES = forms(
    {
        "Do not use prefixes such as `feat:` or `fix:`": (
            rf"(?:{NEVER} (?:use|add|include|write) |no )(?:Conventional Commits? )?"
            r"(?:(?:type )?prefix(?:es)?(?: like| such as)? )?"
            r"(?:(?:`\w+:`(?:,? (?:and|or) |, |/)?)+)(?:,? etc\.?)?(?: prefix(?:es)?)?"
        ),
        "Never use Conventional Commits prefixes": (
            rf"{NEVER} use (?:conventional|semantic) commits?(?: type)?"
            r"(?: prefix(?:es)?| format)?"
        ),
    }
)
_NO_PREFIX = forms(
    {
        "Do not prefix PR titles or commit subjects with `[codex]`": (
            rf"{NEVER} prefix (?:PR titles (?:or|and) )?{_MESSAGES}(?: titles?| subjects?)*"
            rf"(?: or PR titles)? with {_QUOTED}"
        )
    }
)
_PREFIX = forms(
    {
        "Prefix all commit messages with `[area]`": (
            rf"{ADVERBS}(?:prefix|start|begin)(?: all| your| the| every| each)* {_MESSAGES}"
            rf"(?: titles?| subjects?)* with (?:the |an? )?{_QUOTED}(?: prefix)?.{{0,40}}"
        ),
        "Every commit message must start with `[area]`": (
            rf"(?:all |every )?{_MESSAGES} (?:must |should )?(?:start|begin|be prefixed)s?"
            rf" with {_QUOTED}.{{0,40}}"
        ),
        "Use `area:` commit prefixes": (
            rf"{ADVERBS}use {_QUOTED} (?:commit )?prefix(?:es)?(?: for {_MESSAGES})?"
            r"(?: matching the scope)?"
        ),
    }
)
_SHORT_TAG = 3  # letters; a longer word in brackets stands for any: `[area]`


def commit_prefix(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Prefix commit messages with `[area]`; do not use prefixes such as `feat:`."""
    about = is_about_commits(statement) or re.search(r"\bcommits?\b", clause, re.I)
    of_titles = _OF_SOMETHING_ELSE.search(re.sub(r"PR titles (?:or|and) ", "", clause))
    if prohibits or not about or of_titles:
        return None
    if whole_match(_NO_TYPES, clause):
        kinds = "|".join(_TYPES)
        return commit_rule(rf"\A(?!(?:{kinds})(?:\([^)\n]+\))?!?:)", "prohibition")
    if never := whole_match(_NO_PREFIX, clause):
        return commit_rule(rf"\A(?!{re.escape(never[1])})", "prohibition")
    match = whole_match(_PREFIX, clause)
    if match is None:
        return None
    if bracketed := re.fullmatch(r"\[([\w<> -]+)\]", match[1]):
        is_fixed = bracketed[1].islower() and len(bracketed[1]) <= _SHORT_TAG
        tag = re.escape(bracketed[1]) if is_fixed else r"[^\]\n]+"
        return commit_rule(rf"\A\[{tag}\]", "requirement")
    if re.fullmatch(r"[\w/-]+:", match[1]):
        return commit_rule(rf"\A{re.escape(match[1])}", "requirement")
    return None


_BEFORE_FILES = "(?:{} ?)*".format(
    one_of(
        *("the", "any", "anything in", "files in", "files under", "your", "generated", "local"),
        *("secrets", "API keys", "credentials", "tokens", "keys", "sensitive data", "or", "and"),
        ",",
    )
)
_FILES = r"(?: files?| director(?:y|ies)| folders?)?"
_COMMITTING = forbidden(
    {
        "commit secrets or `.env` files, or anything alike": (
            rf"(?:commit|check in|stage) {_BEFORE_FILES}(?P<files>{CODES}|\.env){_FILES}"
            rf"(?:(?:,? or |, )[\w ,-]+)?{TAIL}"
        )
    },
    f"{any_words('always', 'please', 'important', 'strictly')}{NEVER} ",
)
_CANNOT_BE_COMMITTED = forms(
    {
        "The file `a.py` is generated and must not be committed": (
            rf"(?:the )?(?:files? |folder |directory )?(?P<files>{CODES}){_FILES}"
            r"(?: (?:is|are) [\w -]{3,30}(?:,| and))? (?:must|should|may|can) (?:never|not) be"
            rf" (?:committed|checked in|added to git){TAIL}"
        )
    }
)
_FILES_FIRST = re.compile(rf"(?:the )?(?P<files>{CODES}){_FILES} (?:is|are)\b", re.I)
_NOT_THEM = forms(
    {
        "never commit it": (
            rf"{NEVER} (?:commit|check in|stage) (?:it|them|this|these)(?: files?)?{TAIL}"
        )
    }
)


def not_committed(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Never commit `.env`."""
    match = _COMMITTING.match(clause, prohibits) or whole_match(_CANNOT_BE_COMMITTED, clause)
    if match is None and whole_match(_NOT_THEM, clause):  # "`gen/` is built - never commit it"
        match = _FILES_FIRST.match(statement.text)
    if match is None:
        return None
    names = [name for name, _ in names_in(match["files"])]
    globs = [name if name in (".env", ".env*") else path_glob(name) for name in names]
    paths = [glob for glob in globs if glob]
    if len(paths) < len(globs) or not paths:
        return None
    spec = {"name": "commit_excludes", "paths": paths[0] if len(paths) == 1 else paths}
    return [Draft("commit", "prohibition", spec)]
