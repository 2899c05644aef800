"""Rules about commits: the form of their message, and what they do not include."""

import re

from holdfast.drafting.clauses import ADVERBS, CODES, NEVER, TAIL, names_in
from holdfast.drafting.commands import any_of, path_glob
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import forms, whole_match
from holdfast.drafting.rules_file import Statement
from holdfast.drift.rule_kinds import Polarity


def commit_rule(pattern: str, polarity: Polarity) -> list[Draft]:
    """A rule about the whole message of a commit."""
    return [Draft("commit", polarity, {"name": "commit_message", "pattern": pattern})]


_ABOUT_COMMITS = forms(
    r"(?:git )?(?:commits?|commit messages?|commit message (?:format|style|guidelines|conventions?)"
    r"|commit (?:style|format|guidelines|conventions?|rules|prefixes|types|standards)"
    r"|conventional commits?|git(?: commits| conventions| workflow| commit messages)?"
    r"|commits? (?:&|and) (?:pull requests?|PRs?)(?: guidelines)?|messages?"
    r"|commit (?:&|and) (?:pull request|PR) guidelines)"
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
CONVENTIONAL = (
    r"(?:the )?(?:angular )?(?:conventional|semantic)[ -]commits?(?: (?:format|style"
    r"|specification|spec"
    r"|convention|messages?|standard|prefix(?:es)?|titles?|syntax)s?)*"
)
_TYPES = (
    *("build", "chore", "ci", "docs", "feat", "fix", "perf", "refactor", "revert", "style", "test"),
    *("deps", "release", "wip", "improvement"),
)
_ANY_TYPE = r"\A[a-z]+(?:\([^)\n]+\))?!?: \S"
_WITH_SCOPES = r"(?: with (?:these|the following) scopes)?"
_CONVENTIONAL_FORMS = forms(
    *(
        form + _WITH_SCOPES
        for form in (
            rf"{ADVERBS}(?:use|follow|write|commit with|commit using|adhere to|apply)"
            rf" {CONVENTIONAL}(?: for (?:all |any |your |the |every )*(?:git )?{_MESSAGES}"
            rf"| when committing)?{TAIL}",
            r"(?:all |the |git |your |our )*commits?(?: messages?| titles?| subjects?| style"
            r"| convention)*s? (?:must |should |need to |is |are )*(?:always )?(?:use|follow"
            r"|adhere to"
            rf"|conform to|be|in|using|with|written in|per)?(?: an?)? ?{CONVENTIONAL}{TAIL}",
            rf"{ADVERBS}(?:write|format|use|make|create|keep) (?:all |the |your )*{_MESSAGES}"
            rf"(?: messages?)? (?:in|using|with|following|per|according to|as) {CONVENTIONAL}",
            rf"{ADVERBS}(?:use|follow) {CONVENTIONAL} in (?:all )?commit(?:s| messages)",
            rf"(?:we|this (?:repo|repository|project)|the (?:repo|project)) (?:use|follow|adhere)s?"
            rf"(?: to)? {CONVENTIONAL}(?: for {_MESSAGES})?",
            rf"{ADVERBS}commit (?:with|using) {CONVENTIONAL}",
            rf"{CONVENTIONAL} (?:are |is )?(?:required|mandatory|enforced)",
        )
    )
)
_CONVENTIONAL_ALONE = forms(CONVENTIONAL)
_CONVENTIONAL_LABEL = forms(rf"(?:use |follow )?{CONVENTIONAL}")
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
    headed = is_about_commits(statement) and whole_match(_CONVENTIONAL_ALONE, clause)
    labelled = whole_match(_CONVENTIONAL_LABEL, statement.label) and _AN_EXAMPLE.match(clause)
    if not (headed or labelled or whole_match(_CONVENTIONAL_FORMS, plain)):
        return None
    if statement.text.endswith(":"):  # the list below names the types
        return commit_rule(_ANY_TYPE, "requirement")
    return commit_rule(conventional_pattern(statement.text), "requirement")


def conventional_pattern(text: str) -> str:
    """The pattern of Conventional Commits with the types, and the scopes, that a line lists."""
    codes = re.findall(r"`([^`]+)`", text)
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
    rf"{ADVERBS}(?:use|start|prefix|begin)(?: (?:all |your )*{_MESSAGES})?(?: with)? {_PREFIXES}"
    rf"{_TYPE_CODES}(?: (?:as )?(?:prefixes|types|commit prefixes))?(?: for (?:all )?{_MESSAGES})?",
    rf"{_PREFIXES}{_TYPE_CODES}(?: prefixes)?",
    r"(?:all )?commit messages? (?:must |should )?(?:start|begin|use|be prefixed)s? (?:with )?"
    rf"{_PREFIXES}{_TYPE_CODES}",
)


def listed_types(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Commit messages: use the prefixes `feat:`, `fix:` and `docs:`."""
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
    r"(?:use (?:the|this)(?: following)? )?commit(?: message)? format(?: for commit messages)?"
)
_QUOTED = r"[`\"“]([^`\"”“]+)[`\"”]"
_SHAPED = forms(
    rf"(?:all )?commit messages? (?:must |should )?(?:follow|use|have)(?: the)? format {_QUOTED}",
    rf"(?:use|follow) the {_QUOTED} format(?: for (?:all )?commit messages)?",
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


_AT_MOST = (
    r"(?P<how>under|below|to|at most|within|up to|≤|<=?|max(?:imum)?(?: of)?|less than|fewer than"
    r"|no more than|no longer than|not exceed|exceed|around|about)"
)
_SUBJECT = (
    r"(?:(?:the )?(?:entire|whole|full) (?:commit )?message"
    r"|(?:the |a |your |all |keep |limit |concise |short )*(?:git )?(?:commit )?(?:message )?"
    r"(?:subject|title|first|summary|header|headline)(?: lines?)?s?(?: of (?:the )?commit"
    r" messages?)?|(?:the )?commit (?:messages?|titles?|subjects?))"
)
_COUNT = r"(?P<count>\d+)(?: |-)?(?:characters|chars)(?: or less| or fewer| max(?:imum)?)?"
_LENGTHS = forms(
    rf"{ADVERBS}(?:(?:keep|limit) )?{_SUBJECT} (?:(?:must|should|do|can) (?:not )?"
    rf"(?:be |stay )?)?{_AT_MOST}(?: of)? {_COUNT}",
    rf"{ADVERBS}(?:use |write )?{_SUBJECT}:? (?:of )?{_AT_MOST} ?{_COUNT}",
    r"(?P<count>\d+)(?: |-)(?:characters?|chars?)(?: max(?:imum)?| limit)?(?: for the)?"
    r" (?:subject|title|summary|first) ?(?:line)?(?P<how>)",
)
_SUBJECT_LABEL = forms(r"(?:subject|title|summary|header)(?: lines?)?", r"first line", r"length")
_LENGTH_ALONE = forms(rf"(?:keep it |limit to |line )?{_AT_MOST} ?{_COUNT}(?: for the subject)?")
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
            rf"{ADVERBS}capitali[sz]e (?:the )?(?:first (?:word|letter)(?: of the subject"
            r"(?: line)?)?|(?:commit )?subject(?: lines?)?)",
            rf"{ADVERBS}(?:start|begin) (?:with|the (?:subject|summary)(?: line)? with)"
            r" a capital letter",
        ),
        rf"\A{_TYPE}[^a-z]",
    ),
    (
        forms(
            rf"{ADVERBS}(?:use )?lower-?case (?:(?:the )?(?:subject|description|summary"
            r"|commit messages?)(?: line)?)"
        ),
        rf"\A{_TYPE}[^A-Z]",
    ),
    (
        forms(
            rf"(?:{NEVER} (?:end|finish)(?: the)?(?: commit)?(?: subject| summary| title| first)?"
            r"(?: lines?)? with a|no(?: trailing)?|omit (?:the )?trailing"
            r"|without(?: a)? trailing) (?:periods?|full stops?|dots?|punctuation)"
            rf"(?: at the end)?(?: (?:in|on|at the end of|for) (?:the )?{_LINE})?"
        ),
        r"\A[^\n]*[^.\n](?:\n|\Z)",
    ),
    (
        forms(
            rf"(?:separate (?:the )?{_LINE} from (?:the )?body (?:with|by)"
            r"|(?:use |leave |add )?(?:a )?)(?: ?a)? ?blank line"
            rf"(?: between (?:the )?{_LINE} and (?:the )?body)?"
        ),
        r"\A[^\n]+(?:\n\n|\n?\Z)",
    ),
    (
        forms(
            rf"{ADVERBS}(?:use |write |keep )?(?:single|one)[- ]line commit messages(?: only)?",
            r"(?:keep )?commit messages (?:must |should )?(?:be |to )?(?:a |one |single)*[- ]?line"
            r"(?: only)?",
            rf"(?:every |each |all )?{_MESSAGES} (?:must|should) (?:always )?be (?:an? )?"
            r"(?:(?:simple|short|single|concise) )*(?:one-?liners?|(?:one|single)[- ]lines?)"
            r"(?: only)?",
        ),
        r"\A[^\n]+\n?\Z",
    ),
)
_WRAPPED = forms(
    r"(?:wrap|hard-wrap|keep|limit)(?: the)?(?: commit)?(?: message)?(?: body| lines?)+"
    r"(?: lines| text)?(?: at| to| within| under)+ (\d+)(?: characters| chars| columns)?"
)
_BODY_LABEL = forms(r"body(?: lines?)?")
_WRAPPED_BODY = forms(r"wrap(?:ped)? (?:lines )?(?:at|to) (\d+)(?: characters| chars)?")


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
    rf"(?:{NEVER} (?:use|add|include|write) |no )(?:Conventional Commits? )?"
    r"(?:(?:type )?prefix(?:es)?(?: like| such as)? )?(?:(?:`\w+:`(?:,? (?:and|or) |, |/)?)+)"
    r"(?:,? etc\.?)?(?: prefix(?:es)?)?",
    rf"{NEVER} use (?:conventional|semantic) commits?(?: type)?(?: prefix(?:es)?| format)?",
)
_NO_PREFIX = forms(
    rf"{NEVER} prefix (?:PR titles (?:or|and) )?{_MESSAGES}(?: titles?| subjects?)*"
    rf"(?: or PR titles)? with {_QUOTED}"
)
_PREFIX = forms(
    rf"{ADVERBS}(?:prefix|start|begin)(?: all| your| the| every| each)* {_MESSAGES}"
    rf"(?: titles?| subjects?)* with (?:the |an? )?{_QUOTED}(?: prefix)?.{{0,40}}",
    rf"(?:all |every )?{_MESSAGES} (?:must |should )?(?:start|begin|be prefixed)s?"
    rf" with {_QUOTED}.{{0,40}}",
    rf"{ADVERBS}use {_QUOTED} (?:commit )?prefix(?:es)?(?: for {_MESSAGES})?"
    r"(?: matching the scope)?",
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


_BEFORE_FILES = (
    r"(?:(?:the|any|anything in|files in|files under|your|generated|local|secrets|API keys"
    r"|credentials|tokens|keys|sensitive data|or|and|,) ?)*"
)
_FILES = r"(?: files?| director(?:y|ies)| folders?)?"
_COMMITTING = rf"(?:commit|check in|stage) {_BEFORE_FILES}(?P<files>{CODES}|\.env){_FILES}"
_AND_MORE = rf"(?:(?:,? or |, )[\w ,-]+)?{TAIL}"
_NEVER_COMMITTED = forms(
    rf"(?:(?:always|please|important|strictly) )*{NEVER} {_COMMITTING}{_AND_MORE}",
    rf"(?:the )?(?:files? |folder |directory )?(?P<files>{CODES}){_FILES}"
    r"(?: (?:is|are) [\w -]{3,30}(?:,| and))? (?:must|should|may|can) (?:never|not) be"
    rf" (?:committed|checked in|added to git){TAIL}",
)
_FILES_FIRST = re.compile(rf"(?:the )?(?P<files>{CODES}){_FILES} (?:is|are)\b", re.I)
_NOT_THEM = forms(rf"{NEVER} (?:commit|check in|stage) (?:it|them|this|these)(?: files?)?{TAIL}")
_COMMITTED = forms(rf"{_COMMITTING}{_AND_MORE}")  # below "Do not"


def not_committed(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Never commit `.env`."""
    match = whole_match(_NEVER_COMMITTED + (_COMMITTED if prohibits else ()), clause)
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
