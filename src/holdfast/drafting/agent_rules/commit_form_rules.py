"""Rules about the form of commit messages: the length, look and shape of the first line.

    Keep the subject line under 72 characters. -> commit_message("^.{1,71}$")
    Commit subjects: `Component: summary`      -> commit_message("^[^ :]+: ")

The patterns are shortened above.
"""

import re
from dataclasses import replace

from holdfast.drafting.agent_rules.commit_rules import (
    ANY_TYPE,
    MESSAGES,
    commit_rule,
    is_about_commits,
    is_of_something_else,
    type_prefix,
)
from holdfast.drafting.drafts import Draft
from holdfast.drafting.grammar.clauses import Clause, codes_in
from holdfast.drafting.grammar.commands import any_of
from holdfast.drafting.grammar.forms import (
    ADVERBS,
    CODES,
    NEVER,
    Forms,
    any_words,
    form,
    forms,
    literal,
    one_of,
    whole_match,
)
from holdfast.drafting.rules_file import Statement

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
    any_words("the", "a", "one", "your", "all", "keep", "limit", "concise", "short")
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
        "Commit subjects must be 72 characters or less": (
            rf"{_SUBJECT} (?:must|should|can) (?:be|have) (?P<how>)(?P<count>\d+) {_CHARACTERS}"
            r" (?:or (?:less|fewer)|max(?:imum)?|at most)"
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
_BODY_WIDTH = form(
    "Wrap the body at 72 characters",
    rf"{ADVERBS}wrap (?:the )?(?:commit )?(?:message )?(?:body|bodies)(?: (?:lines|text))?"
    r" (?:at|to|after|within) (?P<count>\d{2,3})(?: (?:characters|chars|columns))?",
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
_STARTS_WITH_TICKET = (
    rf"(?:(?:all |every |each |your )*{MESSAGES}(?: titles?| subjects?)*"
    r" (?:must |should |have to |always )*(?:(?:start|begin)s?|(?:be |are |is )?prefixed) with"
    rf"|{ADVERBS}(?:prefix|start|begin) (?:all |every |each |your |the )*{MESSAGES} with)"
    r" (?:the |an? |its |your )?(?:(?:Jira|Linear|ticket|issue) )+"
    r"(?:number|key|id|reference|prefix)?(?:,? (?:such as|e\.g\.,?|like|for example,?))?"
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
            "Use lowercase commit messages",
            rf"(?:use |keep )?(?:the )?lower-?case (?:{MESSAGES}|{_LINE})"
            rf"|(?:{MESSAGES}|(?:the )?{_LINE}) (?:must be |should be |is |are |in )lower-?case",
        ),
        rf"\A{_TYPE_PREFIX}+[^A-Z]",
    ),
    (
        form(
            "Use lowercase after the colon",
            r"(?:always )?(?:use |keep )?(?:a )?lower-?case(?: letters?)? after (?:the )?colon",
        ),
        r"\A[^:\n]+: [^A-Z]",
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
            r"(?:(?:subject|title)(?: line)?[- ]only|single[- ]line(?: only)?"
            rf"|one-?liners?(?: only)?|one-line(?: {MESSAGES})?(?: only)?"
            r"|no (?:message |commit )?body(?: text)?)",
        ),
        r"\A[^\n]+\n?\Z",
    ),
    (
        form("No trailers", r"(?:with )?no (?:commit )?(?:trailers?|footers?)(?: lines)?"),
        r"(?smi)\A(?!.*^[\w-]+-by:)",
    ),
    (
        form(
            "Commit messages must start with the Jira key, such as `ABC-123`",
            rf"{_STARTS_WITH_TICKET} ?\(?`\[?[A-Z]{{2,}}-\w+\]?`\)?",
        ),
        r"\A\W?[A-Z][A-Z0-9]+-\d",
    ),
    (
        form(
            "Commit messages must start with the Jira key, such as `ABC-123:`",
            rf"{_STARTS_WITH_TICKET} ?\(?`\[?[A-Z]{{2,}}-\w+\]?:`\)?",
        ),
        r"\A\W?[A-Z][A-Z0-9]+-\d+\]?:",
    ),
    (
        form(
            "Commit messages must reference an issue number",
            rf"{ADVERBS}(?:(?:all |every )?{MESSAGES} (?:must|should)(?: always)? )?"
            r"(?:reference|include|mention|contain) (?:an? |the |its )*"
            r"(?:github |jira )?(?:issues?|tickets?)(?: (?:numbers?|ids?|references?))?"
            rf"|(?:every|each) commits? references an (?:issue|ticket)"
            rf"|{ADVERBS}(?:reference|include|mention|put) (?:the |an? |its |related |relevant )*"
            r"(?:issue|ticket)s?(?: (?:numbers?|ids?|references?|keys?))? in"
            rf" (?:(?:the|every|each|all|your) )*{MESSAGES}",
        ),
        r"(?s)\A.*(?:#\d|\b[A-Z]{2,}-\d)",
    ),
)
_PART_END = re.compile(r", (?!e\.g\.|for example|such as|like|as in)(?:and |with )?")
_TITLE_WORDS = re.compile(r"\btitles?\b")


def commit_form_rule(clause: Clause) -> list[Draft]:
    """Reads "commit messages: imperative, at most 72 characters, no full stop"."""
    statement = clause.statement
    about = " ".join([clause.text, statement.label, *statement.under[-3:]]).lower()
    if clause.is_prohibited or not ("commit" in about or is_about_commits(statement)):
        return []
    drafts: list[Draft] = []
    untested: list[str] = []
    parts = _PART_END.split(clause.text)
    if any(map(_ROUGHLY_SO.fullmatch, parts)):
        return []
    for text in dict.fromkeys((clause.text, *parts)):
        if is_of_something_else(_TITLE_WORDS.sub("", text)):
            continue
        part = replace(clause, text=text)
        rules = _read_length(part) or _read_look(part) or _read_area(part)
        drafts += [rule for rule in rules if rule not in drafts]
        if rules and text == clause.text:
            return drafts
        if not rules and text != clause.text:
            untested.append(text)
    return [replace(rule, untested=tuple(untested)) for rule in drafts]


# "at most 60 characters, or so"
_ROUGHLY_SO = re.compile(r"or (?:so|thereabouts)|roughly|approximately|ideally|if possible", re.I)
_WITH_AREA = re.compile(
    r"(?:prefix(?:ed)?|start(?:ing|s)?|begin(?:ning|s)?) with (?:the |an? |its )*(?:[a-z]+ )?"
    r"(?:area|scope|module|package|component|subsystem|directory|folder)(?: name)?"
    r"(?:,? \(?(?:e\.g\.,?|for example,?|such as|like|as in) `(?P<example>[\w./-]+: [^`]+)`\)?)",
    re.I,
)


def _read_area(clause: Clause) -> list[Draft]:
    """Reads "prefixed with the area, e.g. `map: fix zoom`"."""
    if _WITH_AREA.fullmatch(clause.text):
        return commit_rule(r"\A[\w./-]+: \S", "requirement")
    return []


def _read_length(clause: Clause) -> list[Draft]:
    """Reads "keep the subject line under 72 characters"."""
    statement = clause.statement
    is_named = whole_match(_SUBJECT_LABEL, statement.label) or is_about_commits(statement)
    if body := whole_match(_BODY_WIDTH, clause.text):  # links and trailers may be longer
        longer = rf"(?![\w-]+: |.*\S{{40}}).{{{int(body['count']) + 1}}}"
        return commit_rule(rf"\A(?!(?:.*\n)+{longer})", "requirement")
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


# --- A prefix that the subject must have

_WITH_PREFIX = (
    rf"(?:the |an? |one of )*(?:following |these )?(?:prefix(?:es)?:? )?(?P<prefixes>{CODES})"
)
_WANTED_PREFIX = forms(
    {
        "Commit messages start with `feat:` or `fix:`": (
            rf"(?:all |every |each |your )*{MESSAGES}(?: titles?| subjects?)*"
            r" (?:must |should |have to |always )*(?:start|begin)s? with"
            rf" {_WITH_PREFIX}"
        ),
        "Commit messages must be prefixed with `[docs]`": (
            rf"(?:all |every |each |your )*{MESSAGES}(?: titles?| subjects?)*"
            rf" (?:must be|should be|are|is)(?: always)? prefixed with {_WITH_PREFIX}"
        ),
        "Prefix all commit messages with `cli:`": (
            rf"{ADVERBS}(?:prefix|start|begin) (?:all |every |each |your |the )*{MESSAGES}"
            rf"(?: titles?| subjects?)* with {_WITH_PREFIX}"
        ),
    }
)
_NO_PREFIX = re.compile(
    r"[<>{}$]|\.\.\.|…|\d|^[A-Z]{2,}-[A-Z]+\b"
    r"|^(?:type|scope|name|component|module|area|package|project|subsystem|ticket|issue)\b"
    r"|^\[(?:\w+ )?\w*(?:name|type|scope|component|module|area|package|project|ticket|issue)\]"
)


def wanted_prefix_rule(clause: Clause) -> list[Draft]:
    """Reads "commit messages start with `feat:`" and "prefix commits with `[docs]`"."""
    match = whole_match(_WANTED_PREFIX, clause.text)
    if match is None or clause.is_prohibited:
        return []
    prefixes = codes_in(match["prefixes"])
    if any(map(_NO_PREFIX.search, prefixes)):
        return []  # a placeholder or an example
    types = [re.fullmatch(r"([a-z]+):", prefix) for prefix in prefixes]
    if None not in types:
        begins = type_prefix(kind[1] for kind in types if kind)
    else:
        begins = any_of(map(literal, prefixes))
    return commit_rule(rf"\A{begins}", "requirement")


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
    rf" (?:for|in) (?:all |your )?{MESSAGES}"
    rf"|(?:all |your )?{MESSAGES} (?:must |should )?(?:always )?(?:follow|use|have|are in|be in)"
    r" (?:the |this )?(?:pattern|format|form|shape|style)?:? ?`(?P<shape_after>[^`]+)`",
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
        shape = named["shape"] or named["shape_after"]
        if re.match(r"[a-z]+(?:\([a-z-]+\))?: [a-z]", shape) and not re.match("type|scope", shape):
            return []  # an example
        pattern = ANY_TYPE if re.match("<?type", shape) else shape_pattern(shape)
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
        return commit_rule(ANY_TYPE, "requirement")
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
    return commit_rule(ANY_TYPE, "requirement") if shape_pattern(shape) else []


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
