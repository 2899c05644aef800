"""Rules about commits: the form of their message, its trailers, and what they include."""

import re

from holdfast.drafting.clauses import ADVERBS, CODES, NEVER, TAIL, after_never, names_in
from holdfast.drafting.commands import (
    any_of,
    path_glob,
)
from holdfast.drafting.drafts import Draft
from holdfast.drafting.rules_file import Statement
from holdfast.drift.rule_kinds import Polarity

_TYPES = (
    *("build", "chore", "ci", "docs", "feat", "fix", "perf", "refactor", "revert", "style", "test"),
    *("deps", "release", "wip", "improvement"),
)


def commit_rule(pattern: str, polarity: Polarity) -> list[Draft]:
    return [Draft("commit", polarity, {"name": "commit_message", "pattern": pattern})]


CONVENTIONAL = (
    r"(?:the )?(?:angular )?(?:conventional|semantic)[ -]commits?(?: (?:format|style"
    r"|specification|spec"
    r"|convention|messages?|standard|prefix(?:es)?|titles?|syntax)s?)*"
)
_ABOUT_COMMITS = re.compile(
    r"(?:git )?(?:commits?|commit messages?|commit message (?:format|style|guidelines|conventions?)"
    r"|commit (?:style|format|guidelines|conventions?|rules|prefixes|types|standards)"
    r"|conventional commits?|git(?: commits| conventions| workflow| commit messages)?"
    r"|commits? (?:&|and) (?:pull requests?|PRs?)(?: guidelines)?|messages?"
    r"|commit (?:&|and) (?:pull request|PR) guidelines)",
    re.I,
)
_TITLES = re.compile(r"\btitles?\b|\bPRs?\b|pull[ -]request|changelog|release notes|squash", re.I)


def is_about_commits(statement: Statement) -> bool:
    """Whether the label of a statement, or what it stands under, is about commits."""
    return any(
        _ABOUT_COMMITS.fullmatch(re.sub(r"^[\W\d_]+|[\s:*.]+$", "", name))
        for name in (statement.label, *statement.under[-1:])
        if name
    )


def conventional(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Commit messages follow Conventional Commits."""
    if prohibits or _TITLES.search(clause):
        return None
    forms = (
        rf"{ADVERBS}(?:use|follow|write|commit with|commit using|adhere to|apply)"
        rf" {CONVENTIONAL}(?: for (?:all |any |your |the |every )*(?:git )?commits?(?: messages?)?"
        rf"| when committing)?{TAIL}",
        r"(?:all |the |git |your |our )*commits?(?: messages?| titles?| subjects?| style"
        r"| convention)*s? (?:must |should |need to |is |are )*(?:always )?(?:use|follow|adhere to"
        rf"|conform to|be|in|using|with|written in|per)?(?: an?)? ?{CONVENTIONAL}{TAIL}",
        rf"{ADVERBS}(?:write|format|use|make|create|keep) (?:all |the |your )*commits?(?:"
        rf" messages?)?"
        rf"(?: messages?)? (?:in|using|with|following|per|according to|as) {CONVENTIONAL}",
        rf"{ADVERBS}(?:use|follow) {CONVENTIONAL} in (?:all )?commit(?:s| messages)",
        rf"(?:we|this (?:repo|repository|project)|the (?:repo|project)) (?:use|follow|adhere)s?"
        rf"(?: to)? {CONVENTIONAL}(?: for commits?(?: messages?)?)?",
        rf"{ADVERBS}commit (?:with|using) {CONVENTIONAL}",
        rf"{CONVENTIONAL} (?:are |is )?(?:required|mandatory|enforced)",
    )
    scopes = r"(?: with (?:these|the following) scopes)?"
    plain = re.sub(r"(?:, (?!not)| and (?:usually|always|append|include|keep)).*$", "", clause)
    plain = re.sub(r"\ba (?:lightweight|simple|loose) (?=conv)", "", plain, flags=re.I)
    fits = any(re.fullmatch(form + scopes, plain, re.I) for form in forms)
    fits = fits or bool(is_about_commits(statement) and re.fullmatch(CONVENTIONAL, clause, re.I))
    shape = re.match(r"`\w+\(\w+\): \w+`", statement.text)
    if shape and re.search("commit", statement.label, re.I):  # its types are named elsewhere
        return commit_rule(r"\A[a-z]+(?:\([^)\n]+\))?!?: \S", "requirement")
    fits = fits or bool(
        re.fullmatch(rf"(?:use |follow )?{CONVENTIONAL}", statement.label, re.I)
        and re.match(r"(?:use |e\.g\.,? |like |such as )?`[a-z]+(?:\([^)`]*\))?!?:", clause)
    )
    if fits and statement.text.endswith(":"):  # the list below names the types
        return commit_rule(r"\A[a-z]+(?:\([^)\n]+\))?!?: \S", "requirement")
    return commit_rule(conventional_pattern(statement.text), "requirement") if fits else None


def listed_types(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Commit messages: use the prefixes `feat:`, `fix:` and `docs:`."""
    about = is_about_commits(statement) or re.search(r"\bcommits?\b", clause, re.I)
    if prohibits or not about or _TITLES.search(clause):
        return None
    clause = re.sub(r"(?<![\w`])([a-z]{2,10}:)(?=[, ]|$)", r"`\1`", clause)
    clause = re.sub(r"(?<=`) for [\w /-]+(?=,|$)", "", clause)
    code = r"`[a-z]+(?:\([\w-]+\))?!?:?`"
    listed = rf"(?P<types>{code}(?:(?:, (?:and |or )?| or | and | / |/|\|){code})+)(?:,? etc\.?)?"
    prefixes = (
        r"(?:(?:the|these|conventional|semantic|one of|of|with|commit|following|type|valid|allowed)"
        r" )*(?:prefix(?:es)?|types?)(?: (?:are|is|such as|like|with))?:? ?"
    )
    forms = (
        rf"{ADVERBS}(?:use|start|prefix|begin)(?: (?:all |your )*commits?(?: messages?)?)?(?:"
        rf" with)?"
        rf" (?:{prefixes})?{listed}(?: (?:as )?(?:prefixes|types|commit prefixes))?"
        r"(?: for (?:all )?commits?(?: messages?)?)?",
        rf"(?:{prefixes})?{listed}(?: prefixes)?",
        rf"(?:all )?commit messages? (?:must |should )?(?:start|begin|use|be prefixed)s? (?:with )?"
        rf"(?:{prefixes})?{listed}",
    )
    match = next(filter(None, (re.fullmatch(form, clause, re.I) for form in forms)), None)
    types = re.findall(r"`([a-z]+)(?:\([\w-]+\))?!?:", match["types"]) if match else []
    bare = re.findall(r"`([a-z]+)`", match["types"]) if match else []
    if (
        match is None
        or len(types) + len(bare) < 2
        or (bare and "prefix" not in clause.lower() and "type" not in statement.label.lower())
    ):
        return None
    kinds = "|".join(dict.fromkeys((*types, *bare, *(_TYPES if "etc" in clause else ()))))
    return commit_rule(rf"\A(?:{kinds})(?:\([^)\n]+\))?!?:", "requirement")


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


def message_shape(shape: str) -> str | None:
    """The pattern of a shape such as `[scope] Summary` or `type(scope): summary`."""
    plain = re.sub(r"[<>]", "", shape)
    parts = re.fullmatch(
        r"(\[[\w -]+\]|\w+)?(\([\w ./|-]+\))?(!?\??)(:)? ?[A-Za-z][\w .'-]*(?:\.\.\.|…)?", plain
    )
    if parts is None or not (parts[4] or (parts[1] or "").startswith("[")):
        return None
    first = r"\[[^\]\n]+\]" if (parts[1] or "").startswith("[") else r"[\w-]+"
    scope = r"(?:\([^)\n]+\))?!?" if parts[2] or parts[4] else ""
    return rf"\A{first}{scope}{parts[4] or ''} \S"


def commit_format(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Commit messages follow the format `[scope] Summary`."""
    introduces = (
        r"(?:use (?:the|this)(?: following)? )?commit(?: message)? format(?: for commit messages)?"
    )
    if statement.block and not prohibits and re.fullmatch(introduces, clause, re.I):
        pattern = message_shape(statement.block[0].strip())
        return commit_rule(pattern, "requirement") if pattern else None
    forms = (
        r"(?:all )?commit messages? (?:must |should )?(?:follow|use|have)(?: the)?"
        r" format `([^`]+)`",
        r"(?:use|follow) the `([^`]+)` format(?: for (?:all )?commit messages)?",
    )
    match = next(filter(None, (re.fullmatch(form, clause, re.I) for form in forms)), None)
    headed = any(
        "commit" in name.lower() for name in (clause, statement.label, *statement.under[-1:])
    )
    if match is None or prohibits or not headed:
        return None
    shape = re.fullmatch(
        r"(\[[\w -]+\]|\w+)?(\([\w -]+\))?(:)? ?[A-Za-z][\w .-]*",
        match[1].replace("<", "").replace(">", ""),
    )
    if shape is None or not (shape[3] or (shape[1] or "").startswith("[")):
        return None
    first = r"\[[^\]\n]+\]" if (shape[1] or "").startswith("[") else r"[\w-]+"
    scope = r"(?:\([^)\n]+\))?!?" if shape[2] else ""
    return commit_rule(rf"\A{first}{scope}{shape[3] or ''} \S", "requirement")


def commit_trailers(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Do not add Co-Authored-By lines to commits."""
    trailer = (
        r"(?:an? |any )?[`\"“]?co-?authored-?by:?(?: \w+)?[`\"”]?(?: lines?|"
        r" trailers?| tags?| footers?|"
        r" attributions?| agents?)*"
    )
    where = r"(?: (?:to|in|on) (?:the |any |your |git )*commits?(?: messages?)?)?"
    rest = after_never(clause, "add|include|use|put|append|insert", prohibits)
    if rest is not None and re.fullmatch(rf"{trailer}{where}{TAIL}", rest, re.I):
        named = r"[^\n]*(?:claude|anthropic)" if re.search("claude", clause, re.I) else ""
        return commit_rule(rf"(?si)\A(?!.*co-authored-by:{named})", "prohibition")
    mention = after_never(clause, "mention|reference|credit|include|add", prohibits)
    name = (
        r"(?:claude|claude code|AI|chatgpt|copilot)(?:(?:,| or|, or) (?:claude|claude"
        r" code|AI|anthropic|copilot))*"
    )
    if mention is not None and (
        match := re.fullmatch(
            rf"({name}) in (?:the |any |git )*commit messages?{TAIL}", mention, re.I
        )
    ):
        words = re.split(r",? or |, ", match[1])
        return commit_rule(
            rf"(?si)\A(?!.*\b(?:{'|'.join(map(re.escape, words))})\b)", "prohibition"
        )
    return None


_HOW = (
    r"(?P<how>under|below|to|at most|within|up to|≤|<=?|max(?:imum)?(?: of)?|less than|fewer than"
    r"|no more than|no longer than|not exceed|exceed|around|about)"
)
_SUBJECT = (
    r"(?:(?:the )?(?:entire|whole|full) (?:commit )?message"
    r"|(?:the |a |your |all |keep |limit |concise |short )*(?:git )?(?:commit )?(?:message )?"
    r"(?:subject|title|first|summary|header|headline)(?: lines?)?s?(?: of (?:the )?commit"
    r" messages?)?|(?:the )?commit (?:messages?|titles?|subjects?))"
)


def commit_form(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Commit messages: imperative, at most 72 characters, no full stop."""
    drafts: list[Draft] = []
    for part in dict.fromkeys((clause, *re.split(r", (?:and |with )?", clause))):
        for form in (_commit_length, _commit_shape):
            drafts += form(part, statement, prohibits) or []
    return drafts or None


def _commit_length(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Keep the subject line under 72 characters."""
    about = " ".join([clause, statement.label, *statement.under[-3:]])
    if (
        prohibits
        or "commit" not in about.lower()
        or _TITLES.search(re.sub(r"\btitles?\b", "", clause))
    ):
        return None
    counted = r"(?P<count>\d+)(?: |-)?(?:characters|chars)(?: or less| or fewer| max(?:imum)?)?"
    forms = (
        rf"{ADVERBS}(?:(?:keep|limit) )?{_SUBJECT} (?:(?:must|should|do|can) (?:not )?(?:be "
        rf"|stay )?)?"
        rf"{_HOW}(?: of)? {counted}",
        rf"{ADVERBS}(?:use |write )?{_SUBJECT}:? (?:of )?{_HOW} ?{counted}",
        r"(?P<count>\d+)(?: |-)(?:characters?|chars?)(?: max(?:imum)?| limit)?(?: for the)?"
        r" (?:subject|title|summary|first) ?(?:line)?(?P<how>)",
    )
    match = next(filter(None, (re.fullmatch(form, clause, re.I) for form in forms)), None)
    labelled = re.fullmatch(
        r"(?:subject|title|summary|header)(?: lines?)?|first line|length", statement.label, re.I
    )
    if match is None and (labelled or is_about_commits(statement)):
        match = re.fullmatch(
            rf"(?:keep it |limit to |line )?{_HOW} ?{counted}(?: for the subject)?", clause, re.I
        )
    if match is None or (match["how"] or "").lower() in ("around", "about"):
        return None
    how = (match["how"] or "").lower()
    most = int(match["count"]) - (how in ("under", "below", "less than", "fewer than", "<"))
    return commit_rule(rf"\A.{{1,{most}}}(?:\n|\Z)", "requirement") if most > 9 else None


_TYPE = r"(?:[a-z]+(?:\([^)\n]+\))?!?: )?"
_SHAPES = (  # what a line says of a subject or a body, and the pattern of a message that has it
    (rf"{ADVERBS}capitali[sz]e (?:the )?(?:first (?:word|letter)(?: of the subject(?: line)?)?"
     r"|(?:commit )?subject(?: lines?)?)", rf"\A{_TYPE}[^a-z]"),
    (rf"{ADVERBS}(?:start|begin) (?:with|the (?:subject|summary)(?: line)? with) a capital letter",
     rf"\A{_TYPE}[^a-z]"),
    (rf"{ADVERBS}(?:use )?lower-?case (?:(?:the )?(?:subject|description|summary|commit messages?)"
     r"(?: line)?)", rf"\A{_TYPE}[^A-Z]"),
    (rf"(?:{NEVER} (?:end|finish)(?: the)?(?: commit)?(?: subject| summary| title| first)?(?:"
     rf" lines?)?"
     r" with a|no(?: trailing)?|omit (?:the )?trailing|without(?: a)? trailing)"
     r" (?:periods?|full stops?|dots?|punctuation)(?: at the end)?(?: (?:in|on|at the end of|for)"
     r" (?:the )?"
     r"(?:subject|title|summary)(?: line)?)?", r"\A[^\n]*[^.\n](?:\n|\Z)"),
    (r"(?:separate (?:the )?(?:subject|title|summary)(?: line)? from (?:the )?body (?:with|by)|"
     r"(?:use |leave |add )?(?:a )?)(?: ?a)? ?blank line(?: between (?:the )?(?:subject|title"
     r"|summary)"
     r"(?: line)? and (?:the )?body)?", r"\A[^\n]+(?:\n\n|\n?\Z)"),
    (rf"{ADVERBS}(?:use |write |keep )?(?:single|one)[- ]line commit messages(?: only)?"
     r"|(?:keep )?commit messages (?:must |should )?(?:be |to )?(?:a |one |single)*[- ]?line(?:"
     r" only)?",
     r"\A[^\n]+\n?\Z"),
    (r"(?:every |each |all )?commits?(?: messages?)? (?:must|should) (?:always )?be (?:an? )?"
     r"(?:(?:simple|short|single|concise) )*(?:one-?liners?|(?:one|single)[- ]lines?)(?: only)?",
     r"\A[^\n]+\n?\Z"),
)  # fmt: skip


def _commit_shape(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Capitalise the subject line; no full stop at its end; a blank line before the body."""
    about = " ".join([clause, statement.label, *statement.under[-3:]]).lower()
    if prohibits or "commit" not in about or _TITLES.search(re.sub(r"\btitle\b", "", clause)):
        return None
    for words, pattern in _SHAPES:
        if re.fullmatch(words, clause, re.I):
            return commit_rule(pattern, "requirement")
    wrapped = re.fullmatch(
        r"(?:wrap|hard-wrap|keep|limit)(?: the)?(?: commit)?(?: message)?(?: body| lines?)+"
        r"(?: lines| text)?(?: at| to| within| under)+ (\d+)(?: characters| chars| columns)?",
        clause,
        re.I,
    ) or (
        re.fullmatch("body(?: lines?)?", statement.label, re.I)
        and re.fullmatch(r"wrap(?:ped)? (?:lines )?(?:at|to) (\d+)(?: characters| chars)?", clause)
    )
    if wrapped:
        return commit_rule(rf"\A[^\n]*(?:\n(?:.{{0,{wrapped[1]}}}|\S+))*\n?\Z", "requirement")
    return None


def commit_prefix(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Prefix commit messages with `[area]`; do not use prefixes such as `feat:`."""
    about = is_about_commits(statement) or re.search(r"\bcommits?\b", clause, re.I)
    if prohibits or not about or _TITLES.search(re.sub(r"PR titles (?:or|and) ", "", clause)):
        return None
    code = r"`([^`]+)`"
    no = re.fullmatch(
        rf"(?:{NEVER} (?:use|add|include|write) |no )(?:Conventional Commits? )?(?:(?:type"
        rf" )?prefix(?:es)?"
        rf"(?: like| such as)? )?((?:`\w+:`(?:,? (?:and|or) |, |/)?)+)(?:,? etc\.?)?"
        r"(?: prefix(?:es)?)?",
        clause,
        re.I,
    )
    if no or re.fullmatch(
        rf"{NEVER} use (?:conventional|semantic) commits?(?: type)?(?: prefix(?:es)?| format)?",
        clause,
        re.I,
    ):
        kinds = "|".join(_TYPES)
        return commit_rule(rf"\A(?!(?:{kinds})(?:\([^)\n]+\))?!?:)", "prohibition")
    never = re.fullmatch(
        rf"{NEVER} prefix (?:PR titles (?:or|and) )?commits?(?: messages?| titles?| subjects?)*"
        rf"(?: or PR titles)? with {code}",
        clause,
        re.I,
    )
    if never:
        return commit_rule(rf"\A(?!{re.escape(never[1])})", "prohibition")
    match = re.fullmatch(
        rf"{ADVERBS}(?:prefix|start|begin)(?: all| your| the| every| each)* commits?(?: messages?"
        rf"| titles?| subjects?)* with (?:the |an? )?{code}(?: prefix)?.{{0,40}}",
        clause,
        re.I,
    ) or re.fullmatch(
        rf"(?:all |every )?commits?(?: messages?)? (?:must |should )?(?:start|begin|be prefixed)s?"
        rf" with {code}.{{0,40}}|{ADVERBS}use {code} (?:commit )?prefix(?:es)?(?: for commits?"
        r"(?: messages?)?)?(?: matching the scope)?", clause, re.I,
    )  # fmt: skip
    if match is None:
        return None
    prefix = next(filter(None, match.groups()))
    if bracketed := re.fullmatch(r"\[([\w<> -]+)\]", prefix):
        word = bracketed[1]
        fixed = re.escape(word) if word.islower() and len(word) < 4 else r"[^\]\n]+"
        return commit_rule(rf"\A\[{fixed}\]", "requirement")
    if re.fullmatch(r"[\w/()-]+:", prefix) and "(" not in prefix:
        return commit_rule(rf"\A{re.escape(prefix)}", "requirement")
    return None


_AGENT = (
    r"(?:(?:any |an? |the |your |or |and |,? ?)*(?:claude(?: code)?|AI|agent|LLM|assistant|bot"
    r"|copilot|anthropic|tool|model|generated|codex|cursor|gpt|chatgpt|automated|co-author(?:ship)?"
    r"|coauthor)s?(?:[-/, ]+| or | and )?)+"
)
_CREDIT = (
    r"(?:attributions?|signatures?|credits?|trailers?|footers?|lines?|tags?|co-?authors?|mentions?"
    r"|references?|sign-?offs?|advertising|branding|co-?author(?:ship|ed-by)?)"
)


def no_attribution(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Do not add AI attribution to commits."""
    about = is_about_commits(statement) or re.search(r"\bcommit", clause, re.I)
    never = rf"(?:(?:{NEVER}|no|without) )" + ("?" if prohibits else "")
    add = r"(?:(?:add|include|put|append|use|insert|mention|write|sign)(?: commits with)? )?"
    where = (
        r"(?:(?: (?:to|in|on|from))? (?:(?:the|any|your|git|all|commits?|commit messages?|messages?"
        r"|trailers?|and|or|PRs?|PR descriptions|pull requests?|descriptions?)[, /]*)+)?"
    )
    trailer = (
        r"(?:(?:an?|any|the|claude|AI|agent|`?claude`? as|yourself as(?: an?)?) )*"
        r"[`\"“]?co-?authored-?by:?(?: [\w<>@. ]+)?[`\"”]?"
        r"(?: (?:lines?|trailers?|tags?|footers?|attributions?|agents?|headers?"
        r"|(?:for |naming |with )(?:claude|AI|an AI|agents?)(?: agents?| tools?)?))*"
    )
    carries = rf"(?:git )?commits? (?:messages? )?(?:carry|have|include|contain)s? no {trailer}"
    if re.fullmatch(rf"{never}{add}{trailer}{where}{TAIL}|{carries}", clause, re.I):
        named = r"[^\n]*(?:claude|anthropic)" if re.search("claude", clause, re.I) else ""
        return commit_rule(rf"(?si)\A(?!.*co-authored-by:{named})", "prohibition")
    credit = rf"(?:{_AGENT}[- ]?)(?:{_CREDIT}(?:,? (?:or |and )?)?)+"
    generated = r"[\"“`](?:🤖 )?generated (?:with|by)[^\"”`]*[\"”`](?: (?:lines?|footers?|text))*"
    if about and re.fullmatch(rf"{never}{add}(?:{credit}|{generated}){where}{TAIL}", clause, re.I):
        pattern = (
            r"(?si)\A(?!.*(?:co-authored-by:[^\n]*(?:claude|copilot|cursor|codex|gpt|gemini"
            r"|\bai\b|bot)|generated (?:with|by)))"
        )
        return commit_rule(pattern, "prohibition")
    return None


def commit_trailer(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Commits carry a `Signed-off-by:` trailer."""
    name = (
        r"[`\"]?(?P<name>Signed-off-by|Co-authored-by|Assisted-by|Change-Id|Generated-by):?"
        r"[^`\"]{0,90}?[`\"]?"
    )
    trailer = rf"(?:an? |the )?{name}(?: (?:lines?|trailers?|footers?|tags?))?"
    match = re.fullmatch(
        rf"(?:all |every |AI |agent |your |each )*commits?(?: messages?)?(?: you (?:author|make"
        rf"|create))? (?:must |should )*"
        rf"(?:carry|include|have|contain|be signed with) {trailer}.{{0,60}}"
        rf"|{ADVERBS}(?:add|include|append|use) {trailer.replace('P<name>', 'P<name2>')}"
        r"(?: (?:to|in|on|at the end of) (?:(?:the|all|every|each|your|git|agent-authored"
        r"|AI-assisted|AI-generated) )*commits?(?: messages?)?)",
        clause,
        re.I,
    )
    if match is None or prohibits:
        return None
    spec = {"name": "commit_includes", "trailer": f"(?i)^{match['name'] or match['name2']}:"}
    return [Draft("commit", "requirement", spec)]


def not_committed(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Never commit `.env`."""
    rest = after_never(clause, r"(?:commit|check in|stage)", prohibits)
    match = (
        re.fullmatch(
            rf"(?:(?:the|any|anything in|files in|files under|your|generated|local|secrets|API keys"
            rf"|credentials|tokens|keys|sensitive data|or|and|,) ?)*({CODES}|\.env)"
            rf"(?: files?| director(?:y|ies)| folders?)?(?:(?:,? or |, )[\w ,-]+)?{TAIL}",
            rest,
            re.I,
        )
        if rest
        else None
    )
    passive = re.fullmatch(
        rf"({CODES})(?: files?)? (?:must|should|may|can) (?:never|not) be committed{TAIL}",
        clause,
        re.I,
    )
    match = match or passive
    names = [name for name, _ in names_in(match[1])] if match else []
    globs = [".env*" if name in (".env", ".env*") else path_glob(name) for name in names]
    if not globs or not all(globs):
        return None
    paths = [".env" if name == ".env" else glob for name, glob in zip(names, globs, strict=True)]
    spec = {"name": "commit_excludes", "paths": paths[0] if len(paths) == 1 else paths}
    return [Draft("commit", "prohibition", spec)]
