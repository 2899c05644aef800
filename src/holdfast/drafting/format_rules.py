"""Rules of bots about the layout of a reply: JSON, a list, a table, plain text."""

import re

from holdfast.drafting.bot_prompts import LEAD, QUOTES, REPLY, Clause
from holdfast.drafting.drafts import Draft, Spec
from holdfast.drafting.length_rules import NUMBER, number_value

_GIVE = (
    rf"(?:{LEAD}(?:answer|reply|respond|output|return|write|produce|format {REPLY}|give {REPLY}"
    r"|give your remarks|present \w+ \w+)(?: (?:with|in|as|only|just|nothing but|exclusively"
    r"|strictly|always|using|to|the (?:user|customer)))*"
    rf"|\b{REPLY} (?:(?:must|should|has to|have to|will|always) )*(?:is|are|be|comes? (?:as|in))"
    r"(?: (?:in|only|always|formatted as|written as))*"
    r"|^(?:output|format|(?:output|response|reply|answer) format): ?(?:only )?"
    r"|^(?:only|always) (?:in )?|\bexpects)"
)
_JSON = re.compile(
    rf"{_GIVE} ?(?:(?:a|an|one|single|valid|raw|strict|pure|minified|only|just) )*JSON"
    r"(?! (?:arrays?|lists?|lines|web|schema|files?|schemas))(?P<object> objects?)?",
    re.I,
)
_KEYS = re.compile(
    rf"\b(?:keys?|fields?|properties)(?: (?:named|called))?:? ?,? ?(?P<quotes>{QUOTES})"
    rf"|(?P<before>{QUOTES}) (?:keys|fields)",
    re.I,
)
_LIST = re.compile(
    rf"{_GIVE} ?(?:(?:a|an|the form of|form of|short|simple|single|only) )*"
    r"(?P<kind>numbered list|bullet(?:ed)? (?:points|list)|bullets|markdown table|table)\b"
    r"(?! (?:of|with) (?:up|links))",
    re.I,
)
_LISTS: dict[str, Spec] = {
    "numbered": {"name": "numbered_list"},
    "bullet": {"name": "bullet_list"},
    "table": {"name": "regex", "regex": r"(?m)^\s*\|[^\n|]+\|"},
}
_ELEMENTS = {  # what is not wanted in plain text, and how it looks
    r"bold(?: type| text|face)?|nothing in bold": r"\*\*|__",
    r"asterisks?|stars": r"\*",
    r"bullet(?:ed)?(?: points?| lists?)?|bullets": r"^\s*[-*•]\s",
    r"numbered lists?": r"^\s*\d+[.)]\s",
    r"(?<!bulleted )(?<!numbered )(?<!bullet )lists": r"^\s*(?:[-*•]|\d+[.)])\s",
    r"(?:markdown )?head(?:ing|er|line)s?|hashes": r"^\s*#+\s",
    r"tables?": r"^\s*\|",
    r"code (?:blocks?|fences?)": r"```",
    r"markdown(?: formatting| syntax)?|formatting|rich text": (
        r"\*\*|__|```|^\s*\||^\s*(?:[-*•]|#+|\d+[.)])\s"
    ),
}
_ELEMENT = "|".join(_ELEMENTS)
_WITHOUT = re.compile(
    r"(?:\b(?:no|without(?: any)?|neither|nor|never(?: use)?|not (?:use|include|format with)"
    r"|n't use"
    r"|avoid(?: using)?)) (?:(?:any|using|or|complex|special) )*"
    rf"(?P<elements>(?:{_ELEMENT})(?:(?:, (?:and |or |nor |no )?| or | and | nor |/)(?:no |any )?"
    rf"(?:{_ELEMENT}))*)(?= *(?:$|[,:.]|(?:or|and|nor) |in (?:your|the|any) (?:{REPLY}|chat"
    r"|output)|at all"
    r"|whatsoever|ever|only|please))",
    re.I,
)
_PLAIN = re.compile(
    rf"\bplain text only\b|\bonly plain text\b|{LEAD}(?:write|use|reply|answer|respond|speak)"
    r"(?: (?:in|with|only))* plain text\b|\bin plain text,? (?:only|without|no)\b",
    re.I,
)


def format_rules(clause: Clause) -> list[Draft]:
    """JSON with its keys, a list, a table, or text without the marks of Markdown."""
    specs = [_json(clause), _list(clause), _plain(clause)]
    return [Draft("format", "requirement", spec) for spec in specs if spec is not None]


def _json(clause: Clause) -> Spec | None:
    match = _JSON.search(clause.text)
    if match is None or _negated(clause.text, match):
        return None
    rest = clause.text[match.end() :]
    if re.match(
        r"[^,]{0,20} (?:inside|block at|at the end|field\b|for (?:the|a|each))", rest, re.I
    ):
        return None
    if keys := _KEYS.search(rest):
        quoted = clause.quoted(keys["quotes"] or keys["before"])
        if all(re.fullmatch(r"[\w-]+", key) for key in quoted):
            return {"name": "json_object", "keys": quoted}
    if match["object"]:
        return {"name": "json_object"}
    return {"name": "ifeval_detectable_format_json_format"}


def _list(clause: Clause) -> Spec | None:
    match = _LIST.search(clause.text)
    if match is None or _negated(clause.text, match):
        return None
    after, kind = clause.text[match.end() :], match["kind"].lower()
    if re.match(r" (?:or|and|for|where|of (?:the|key)|at|to|with)\b", after, re.I):
        return None
    spec = next(spec for name, spec in _LISTS.items() if name in kind)
    items = re.match(rf" of (?:exactly )?({NUMBER}) (?:items|points)", after, re.I)
    return spec | {"count": number_value(items[1])} if items and kind != "table" else spec


def _plain(clause: Clause) -> Spec | None:
    looks: list[str] = []
    if _PLAIN.search(clause.text):
        looks = [list(_ELEMENTS.values())[-1]]
    for match in _WITHOUT.finditer(clause.text):
        for words, look in _ELEMENTS.items():
            if re.search(rf"\b(?:{words})\b", match["elements"], re.I) and look not in looks:
                looks.append(look)
    if not looks:
        return None
    return {"name": "regex", "regex": rf"(?ms)\A(?!.*(?:{'|'.join(looks)})).*\S"}


def _negated(text: str, match: re.Match[str]) -> bool:
    return bool(re.search(r"\b(?:never|not|n't|avoid|no)\b[^,]*$", text[: match.start()], re.I))
