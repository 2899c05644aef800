"""Rules about the layout of a reply: JSON, a list, a table, plain text.

For example:

    Reply only with one JSON object.          -> json_object()
    Always answer with a numbered list.       -> numbered_list()
    Never use tables, bullet points or bold.  -> regex(no such mark)
"""

import re

from holdfast.drafting.drafts import Draft, MeasureSpec, measure
from holdfast.drafting.grammar.forms import first_match, form, forms, one_of
from holdfast.drafting.reply_rules.bot_prompts import LEAD, QUOTES, REPLY, BotClause
from holdfast.drafting.reply_rules.length_rules import NUMBER, number_value


def format_rules(clause: BotClause) -> list[Draft]:
    """Reads rules about JSON and its keys, lists, tables, and text without Markdown."""
    specs = [_read_json(clause), _read_list(clause)]
    drafts = [Draft("format", "requirement", spec) for spec in specs if spec is not None]
    return [*drafts, *_read_plain_text(clause)]


# "always reply only with", "the output must be", "Format:"
_GIVE = one_of(
    LEAD
    + one_of(
        *"answer reply respond output return write produce".split(),
        *(rf"format {REPLY}", rf"give {REPLY}", "give your remarks", r"present \w+ \w+"),
    )
    + "(?: {})*".format(
        one_of(
            *"with in as only just exclusively strictly always using to".split(),
            *("nothing but", "the (?:user|customer)"),
        )
    ),
    rf"\b{REPLY} (?:(?:must|should|has to|have to|will|always) )*"
    r"(?:is|are|be|comes? (?:as|in))(?: (?:in|only|always|formatted as|written as))*",
    r"^(?:output|format|(?:output|response|reply|answer) format): ?(?:only )?",
    r"^(?:only|always) (?:in )?",
    r"\bexpects",
)
_JSON = form(
    "Reply only with one JSON object",
    rf"{_GIVE} ?(?:(?:a|an|one|single|valid|raw|strict|pure|minified|only|just) )*JSON"
    r"(?! (?:arrays?|lists?|lines|web|schema|files?|schemas))(?P<object> objects?)?",
)
# words after "JSON" that make it a part of the reply only: "JSON at the end"
_PART_OF_REPLY = re.compile(
    r"[^,]{0,20} (?:inside|block at|at the end|field\b|for (?:the|a|each))", re.I
)
_KEYS = forms(
    {
        "with the keys ⟪0⟫ and ⟪1⟫": (
            rf"\b(?:keys?|fields?|properties)(?: (?:named|called))?:? ?,? ?(?P<quotes>{QUOTES})"
        ),
        "with ⟪0⟫ and ⟪1⟫ fields": rf"(?P<quotes>{QUOTES}) (?:keys|fields)",
    }
)


def _read_json(clause: BotClause) -> MeasureSpec | None:
    """The measure of a reply in JSON; None if the clause asks for none, or for JSON in a part."""
    match = first_match(_JSON, clause.text)
    if match is None:
        return None
    rest = clause.text[match.end() :]
    if _PART_OF_REPLY.match(rest):
        return None
    if keys := first_match(_KEYS, rest):
        quoted = clause.quotations_in(keys["quotes"])
        if all(re.fullmatch(r"[\w-]+", key) for key in quoted):
            return measure("json_object", keys=quoted)
    if match["object"]:
        return measure("json_object")
    return measure("ifeval_detectable_format_json_format")


_LIST = form(
    "Always answer with a numbered list",
    rf"{_GIVE} ?(?:(?:a|an|the form of|form of|short|simple|single|only) )*"
    r"(?P<kind>numbered list|bullet(?:ed)? (?:points|list)|bullets|(?:markdown )?table)\b"
    r"(?! (?:of|with) (?:up|links))",
)
_ITEMS = re.compile(rf" of (?:exactly )?(?P<count>{NUMBER}) (?:items|points|steps)\b", re.I)
# after a list: words that say where or when it is wanted, or how long it may be
_NOT_ALL = re.compile(
    rf" (?:or|and|for|where|of (?:the|key|at|up to|no more|{NUMBER})|at|to|with)\b", re.I
)


def _read_list(clause: BotClause) -> MeasureSpec | None:
    """The measure of a list or a table; None if the clause asks for neither."""
    match = first_match(_LIST, clause.text)
    if match is None:
        return None
    after = clause.text[match.end() :]
    kind = match["kind"].lower()
    items = None if kind.endswith("table") else _ITEMS.match(after)
    if items is None and _NOT_ALL.match(after):
        return None
    if kind.endswith("table"):
        return measure("regex", regex=r"(?m)^\s*\|[^\n|]+\|")
    name = "numbered_list" if kind.startswith("numbered") else "bullet_list"
    return measure(name, count=number_value(items["count"])) if items else measure(name)


_MARKDOWN = r"\*\*|__|```|^\s*\||^\s*(?:[-*•]|#+|\d+[.)])\s"
# elements of Markdown and other marks that may be forbidden, and the pattern of each
_ELEMENTS = {
    r"bold(?: type| text|face)?|nothing in bold": r"\*\*|__",
    r"asterisks?|stars": r"\*",
    r"bullet(?:ed)?(?: points?| lists?)?|bullets": r"^\s*[-*•]\s",
    r"numbered lists?": r"^\s*\d+[.)]\s",
    r"(?<!bulleted )(?<!numbered )(?<!bullet )lists": r"^\s*(?:[-*•]|\d+[.)])\s",
    r"(?:markdown )?head(?:ing|er|line)s?|hashes": r"^\s*#+\s",
    r"tables?": r"^\s*\|",
    r"code (?:blocks?|fences?)": r"```",
    r"italics?(?: type| text)?": (
        r"(?<![*\w])\*\p{L}(?:[^*\n]*[^\s*])?\*(?![*\w])"
        r"|(?<!\w)_\p{L}(?:[^_\n]*[^\s_])?_(?!\w)"
    ),
    r"em[- ]?dash(?:es)?": "—",
    r"ellips[ei]s": r"\.\.\.|…",
    r"semi-?colons?": ";",
    r"hash-?tags?": r"(?<!\w)#\p{L}",
    r"URLs?|hyperlinks?|web links": r"https?://|\bwww\.",
    r"markdown(?: formatting| syntax)?|formatting|rich text": _MARKDOWN,
}
_ELEMENT = one_of(*_ELEMENTS)
_WITHOUT = form(
    "never use tables, bullet points or headings",
    r"(?:(?:\b|(?=n't))"
    + one_of(
        *("no", "without(?: any)?", "neither", "nor"),
        *("never(?: (?:use|include|add|write|output))?", "avoid(?: using)?"),
        "(?:not|n't) (?:ever )?(?:use|include|add|write|output|format with)",
    )
    + r") (?:(?:any|using|or|complex|special) )*"
    rf"(?P<elements>{_ELEMENT}(?:(?:, (?:and |or |nor |no )?| or | and | nor |/)"
    rf"(?:no |any )?{_ELEMENT})*)"
    rf"(?= *(?:$|[,:.]|(?:or|and|nor) |in (?:your|the|any) (?:{REPLY}|chat|output)"
    r"|at all|whatsoever|ever|only|please))",
)
_PLAIN = forms(
    {
        "plain text only": r"\bplain text only\b",
        "only plain text": r"\bonly plain text\b",
        "Always answer in plain text": (
            rf"{LEAD}(?:write|use|reply|answer|respond|speak)(?: (?:in|with|only))* plain text\b"
        ),
        "in plain text, without any formatting": (r"\bin plain text,? (?:only|without|no)\b"),
    }
)


def _read_plain_text(clause: BotClause) -> list[Draft]:
    """Reads "in plain text", a requirement, and "never use tables", a prohibition."""
    is_plain = first_match(_PLAIN, clause.text) is not None
    patterns = [_MARKDOWN] if is_plain else []
    (without,) = _WITHOUT
    for match in without.pattern.finditer(clause.text):
        for words, pattern in _ELEMENTS.items():
            is_named = re.search(rf"\b(?:{words})\b", match["elements"], re.I)
            if is_named and pattern not in patterns:
                patterns.append(pattern)
    if not patterns:
        return []
    spec = measure("regex", regex=rf"(?ms)\A(?!.*(?:{'|'.join(patterns)})).*\S")
    return [Draft("format", "requirement" if is_plain else "prohibition", spec)]
