"""Rules of bots about words: the opening, the closing, the address, and what is always or never
said.
"""

import re

from holdfast.drafting.bot_prompts import QUOTE, QUOTES, REPLY, Clause, patterns
from holdfast.drafting.drafts import Draft, Spec

_WITH = (
    r"(?:with|by saying|by|as|mit|par|con|por)(?: (?:the|exactly|these|this|exact|following|words?"
    r"|phrase|sentence|line|greeting|sign-?off|text|prefix|tag|les mots|la frase|den Worten"
    r"|:))*:? ?"
)
_END = (
    r"(?:end|ends|ending|close|closes|finish|finishes|finishing|conclude|concludes|sign off|sign"
    r"|signs off|say goodbye|endet|beende|terminez|termine|termina|terminas|termina siempre"
    r"|finis|finissez|schließe|concludi)"
)
_BEGIN = (
    r"(?:start|starts|starting|begin|begins|beginning|open|opens|opening|beginnt|beginne|commencez"
    r"|commence|empieza|empiezas|comienza|inizia)"
)
_WHOLE = (
    rf"(?: (?:{REPLY}|jede \w+|jeden? \w+|chaque \w+|cada \w+|siempre|toujours|immer|it"
    r"|everything|ogni \w+))?"
)
_SOLE = rf"(?P<quote>{QUOTE})(?!(?:,| or| and|/)? ?(?:or |and )?⟪)"
_OPENINGS = patterns(
    rf"\b(?P<verb>{_BEGIN}){_WHOLE}(?: always)? {_WITH}{_SOLE}",
    rf"{_SOLE},? (?:is|are) (?:always |how )?(?:your |the |every )?(?:first (?:sentence|words?"
    rf"|line|thing)|{REPLY} (?:begins|starts))",
    rf"{_SOLE} (?:opens|begins|starts) {REPLY}",
    rf"\bfirst (?:words?|sentence|line) of {REPLY}[^:⟪]{{0,30}}(?:is|are"
    rf"|:)(?: always)? ?{_SOLE}",
    rf"\b(?:put|write|add) {_SOLE} (?:in front of|before|at the (?:start"
    rf"|beginning) of) {REPLY}",
    rf"\b{REPLY} (?:(?:must|should|always|will|has to|have to) )*{_BEGIN} {_WITH}{_SOLE}",
    rf"\bprefix {REPLY} with {_SOLE}",
    rf"{_SOLE} first(?=,|$)",
)
_CLOSINGS = patterns(
    rf"\b(?P<verb>{_END}){_WHOLE}(?: always)? {_WITH}{_SOLE}",
    rf"{_SOLE},? (?:is |are )?(?:always )?(?:your|the) last(?: (?:words?|sentence|line|thing))?"
    r"(?=$|,| of)",
    rf"{_SOLE} (?:closes|ends|finishes|concludes) {REPLY}",
    rf"\blast (?:\w+ )?(?:words?|sentence|line|thing)(?: you say| that you say| of it"
    rf"| of {REPLY})?(?: is| are|:)(?: always)? ?{_SOLE}",
    rf"\b(?:has|have) {_SOLE} as (?:the|its|their) last (?:words?|sentence|line) of {REPLY}",
    rf"\b{REPLY} (?:(?:must|should|always|will|has to|have to) )*{_END} {_WITH}{_SOLE}",
    rf"\b(?:put|write|add|append) {_SOLE} (?:at|to) the (?:very )?end of {REPLY}",
    rf"\bsigns? (?:it|them|{REPLY}) (?:with|as) {_SOLE}",
    rf"(?<=first, ){_SOLE} last(?=,|$)",
    rf"\bit ends with {_SOLE}|\bsie endet mit (?P<quote2>{QUOTE})",
)
_ONCE = re.compile(
    r"\b(?:conversation|chat session|session|dialog(?:ue)?|first|interaction|(?:the|each|every"
    r"|a) calls?|story|email"
    r"|e-mail|intro\w*|summary|section|poem|article|post)\b",
    re.I,
)
# "every line of a reply starts with", "never start with"
_NOT_OF_THE_REPLY = re.compile(
    r"\b(?:never|not|n't|avoid|without|lines?|sentences?|paragraphs?|bullets?|items?"
    r"|steps?)\b[^,]*$",
    re.I,
)
_GREETING = re.compile(r"(?:hi|hello|hey|greetings|good (?:morning|day))\b|[^?]*\?\W*$", re.I)
_PLACEHOLDER = re.compile(r"[\[{<][A-Za-z]|\.\.\.|…|\bX\b|_{2,}|%s|\$")
_BRACKETED = re.compile(r"^\W*[\[\]{}<>#*~|-]|[\[\]{}<>#*~|]\W*$")


def wording_rules(clause: Clause) -> list[Draft]:
    """The words that a reply begins or ends with, has or lacks."""
    return [*_edges(clause), *_address(clause), *_forbidden(clause), *_included(clause)]


def _edges(clause: Clause) -> list[Draft]:
    drafts = []
    for forms, opens in ((_OPENINGS, True), (_CLOSINGS, False)):
        match = next(filter(None, (form.search(clause.text) for form in forms)), None)
        if match is None:
            continue
        groups = match.groupdict()
        (quote,) = clause.quoted(groups.get("quote") or groups.get("quote2") or "")
        names_reply = re.search(rf"\b{REPLY}\b|nachricht|réponse|respuesta", match[0], re.I)
        once = _ONCE.search(re.sub(r"\bfirst (?:words?|sentence|line|thing)", "", clause.text))
        # "Start with "Hello, how can I help?"" is for the first reply
        if once or (opens and not names_reply and _GREETING.match(quote)):
            continue
        if _PLACEHOLDER.search(quote) and not re.fullmatch(r"\[\w+\]", quote):
            continue
        if _NOT_OF_THE_REPLY.search(clause.text[: match.start()]):
            continue
        drafts.append(
            Draft("opening" if opens else "closing", "requirement", _edge_spec(quote, opens))
        )
    return drafts


def _edge_spec(quote: str, opens: bool) -> Spec:
    words = quote.strip().rstrip(".,:;!?").strip()
    if _BRACKETED.search(quote) or not re.search(r"\w", words):  # measures ignore such signs
        escaped = re.escape(quote.strip()).replace(r"\-", "-").replace(r"\ ", r"\s*")
        regex = rf"\A\W*?{escaped}" if opens else rf"{escaped}\W*\Z"
        return {"name": "regex", "regex": regex, "flags": "i"}
    return {"name": "starts_with" if opens else "ends_with", "word": words}


_PERSON = (
    r"(?:(?:the|your|our|whoever|every|each|all) )?(?:users?|customers?|guests?|persons?|people"
    r"|child(?:ren)?|pupils?|students?|everybody|everyone|them|her|him|clients?|visitors?|callers?"
    r"|readers?|players?|whoever writes to you|me)"
)
_ADDRESSES = patterns(
    rf"\baddress(?:es)? {_PERSON}(?: (?:always|only))? (?:as|by|with|using) (?P<quote>{QUOTE})",
    rf"\bcalls? {_PERSON} (?P<quote>{QUOTE})",
    rf"\brefer to {_PERSON} (?:only )?as (?P<quote>{QUOTE})",
    rf"(?P<quote>{QUOTE}) is how you (?:address|call) {_PERSON}",
    rf"\b{_PERSON} is (?P<quote>{QUOTE}) to you",
    rf"\bsay (?P<quote>{QUOTE}) (?:to {_PERSON}|somewhere)",
)


def _address(clause: Clause) -> list[Draft]:
    for form in _ADDRESSES:
        match = form.search(clause.text)
        if match is None or re.search(
            r"\b(?:never|not|n't|instead of)\b[^,]*$", clause.text[: match.start()], re.I
        ):
            continue
        (quote,) = clause.quoted(match["quote"])
        if quote.lower() not in _FORMS_OF_ADDRESS and not _PLACEHOLDER.search(quote):
            if re.match(r"(?:,? or|,? and|/) ?⟪", clause.text[match.end() :]):
                continue
            return [Draft("address", "requirement", _contains(quote.strip(" .,!")))]
    return []


def _contains(word: str) -> Spec:
    titled = re.match(r"(Ms|Mr|Mrs|Dr) ", word)
    if titled:
        words = [word, word.replace(titled[1], f"{titled[1]}.", 1)]
        return {"name": "contains", "words": words, "all": False}
    return {"name": "contains", "words": [word]}


_FORMS_OF_ADDRESS = frozenset("sie du vous tu usted tú lei".split())  # see `language_rules`

_NAMED = r"(?P<name>[A-Z][\w&'-]*[a-z][\w&-]*(?: [A-Z][\w&-]+){0,2})"
_KIND_OF_WORD = (
    r"(?:(?:the|any|our|words?|phrases?|terms?|names?|expressions?|things|filler|clichés?"
    r"|sentences?|anything|something|like|such as|to call|as|or|similar|it|competitors?"
    r"|brand|company) )*"
)
_NEVER = (
    r"(?:\bnever(?: ever)?|\b(?:do|does|must|should|will|shall|may|can) not|\b(?:do|does|must|"
    r"should|ca|wo)n't|\bnor)"
)
_SAY = (
    r"(?:say|use|write|mention|utter|include|call|reply with|respond with|answer with|type"
    r"|start with|begin with|output)"
)
_FORBIDDEN = patterns(
    rf"{_NEVER}(?: (?:ever|you|we|be))* {_SAY} {_KIND_OF_WORD}(?P<quotes>{QUOTES})",
    rf"\b(?:avoid|ban|bans|banned|without)(?: (?:saying|using|writing))? {_KIND_OF_WORD}"
    rf"(?P<quotes>{QUOTES})",
    rf"\b(?:ban|banned)\b[^⟪]{{0,60}}: ?(?P<quotes>{QUOTES})",
    rf"\bwords? (?P<quotes>{QUOTES}) (?:do not exist|does not exist|(?:is|are) (?:banned"
    r"|forbidden|not allowed|off limits|prohibited|taboo))",
    rf"^(?:the )?words? (?P<quotes>{QUOTES}) is on (?:our|the) list of",
    rf"(?:^|[,:] )(?:and )?no (?:words? |phrases? )?(?P<quotes>{QUOTES})(?=$|[,.:]| and | or )",
    rf"(?:{_NEVER} {_SAY}|\bavoid) (?:any of )?(?:these|the following|this)[^⟪:]{{0,40}}: ?"
    rf"(?P<quotes>{QUOTES})",
    rf"{_NEVER} refer to [^⟪]{{1,30}} as (?P<quotes>{QUOTES})",
)
# the words that stand for a forbidden name: "Never mention Velox, our competitor"
_NAME = re.compile(
    rf"(?:[Nn]ever|NEVER|(?:[Dd]o|DO|[Mm]ust) (?:not|NOT)|[Dd]on't) (?:mention|name|say|MENTION)"
    rf" (?:(?:the|a) )?(?:name |competitor |company |brand )*{_NAMED}(?=$|[,.]| or | in )"
)


def _forbidden(clause: Clause) -> list[Draft]:
    words: list[str] = []
    for form in _FORBIDDEN:
        if match := form.search(clause.text):
            words = clause.quoted(match["quotes"])
            lasting = not re.match(r" (?:to|about|for|at the|as your|more than)\b",
                                   clause.text[match.end() :], re.I)  # fmt: skip
            words = words if lasting else []
            break
    if not words and (match := _NAME.search(clause.text)):
        words = [match["name"]]
    words = [word.strip().rstrip(".,!?;:…").rstrip() for word in words]
    if not words or any(_PLACEHOLDER.search(word) or not re.search(r"\w", word) for word in words):
        return []
    if {word.lower() for word in words} & _FORMS_OF_ADDRESS or "'" in "".join(words)[:6]:
        return []
    return [Draft("forbidden", "prohibition", {"name": "never_contains", "words": words})]


_INCLUDED = patterns(
    rf"\b(?:include|mention|use|add|say|write|have|contain)s? (?:the )?(?:words? |phrase |line "
    rf"|sentence |disclaimer |link )*:? ?{_SOLE}(?: at least once)? (?:in|to) "
    rf"(?:every|each|all)(?: of)?(?: your)? ?{REPLY}",
    rf"\b(?:every|each) (?:reply|response|answer|message) (?:(?:must|should|has to|will) )?"
    rf"(?:includes?|contains?|mentions?|have|has) (?:the )?(?:words? |phrase |line |sentence "
    rf"|disclaimer )*:? ?{_SOLE}",
    rf"\balways (?:include|mention|add|use) (?:the )?(?:words? |phrase |line |sentence "
    rf"|disclaimer )+:? ?{_SOLE}$",
)


def _included(clause: Clause) -> list[Draft]:
    for form in _INCLUDED:
        if match := form.search(clause.text):
            (quote,) = clause.quoted(match["quote"])
            if _PLACEHOLDER.search(quote) or re.search(
                r"\b(?:never|not|n't)\b[^,]*$", clause.text[: match.start()], re.I
            ):
                continue
            spec = {"name": "contains", "words": [quote.strip(" .,!?")]}
            return [Draft("format", "requirement", spec)]
    return []
