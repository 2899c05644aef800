"""Rules of bots about the language of a reply and its form of address: Sie, usted, vous."""

import re

from holdfast.drafting.bot_prompts import QUOTE, REPLY, Clause, patterns
from holdfast.drafting.drafts import Draft, Spec
from holdfast.measures.arguments import NAMES

_CODES = {name.lower(): code for code, name in NAMES.items()} | {
    **dict(deutsch="de", français="fr", español="es", castellano="es", italiano="it"),
}
_LANGUAGE = (
    r"(?:(?:simple|plain|clear|natural|standard|British|American|US|UK|formal|modern|good"
    r"|Brazilian|auf|auf gut) )*"
    rf"(?P<name>{'|'.join(sorted(map(re.escape, _CODES), key=len, reverse=True))})"
)
_ALLOWED = (
    r"(?: (?:back|to|only|ever|always|everything|everybody|everyone|all|of|your|the|users?"
    r"|customers?|them|me|us|guests?|it|exclusively|solely|strictly|entirely|so|with|messages?"
    r"|replies|responses|answers|immer|siempre|solo|sempre|toujours|uniquement|people|whole|each"
    r"|every|reply|response|message|answer|text)){0,8}"
)
_VERB = (
    r"(?:reply|respond|answer|write|speak|communicate|talk|converse|chat|do|responde|respondes"
    r"|escribe|escribes|escribas|contesta|hablas|habla|répond\w*|parle\w*|écri\w*|rispond\w*"
    r"|scriv\w*|parl[ai]|antworte\w*|schreib\w*|sprich\w*)"
)
_SUBJECT = (
    r"(?:^|[,:] ?|\b(?:you|du|tu|and|always|only|please|must|should|ever|will|shall|to|assistant"
    r"|bot|then|siempre) )"
)
_LANGUAGES = patterns(
    rf"{_SUBJECT}{_VERB}{_ALLOWED} (?:in|auf|en|in lingua) {_LANGUAGE}\b",
    rf"{_SUBJECT}(?:speak|use) (?:only )?{_LANGUAGE}(?: only)?(?= (?:with|only|to|in|at)\b|$"
    r"|,)",
    rf"\b{REPLY}(?: (?:must|should|are|is|be|always|will|have to|has to|written|given))*"
    rf" in {_LANGUAGE}\b",
    rf"\ball of them in {_LANGUAGE}\b",
    rf"\b(?:{_VERB}|comunicarás|output)\b[^:]{{0,60}}?\b(?:siempre|exclusivamente|únicamente"
    r"|sempre"
    rf"|toujours|immer|ausschließlich) (?:en|in|auf) {_LANGUAGE}\b",
    rf"^(?:language|output language|response language|reply language|idioma|langue|sprache): ?"
    rf"(?:always |only )?{_LANGUAGE}\b",
    rf"^(?:in )?{_LANGUAGE} only$|^only {_LANGUAGE.replace('name', 'name2')}$",
)
# "English: reply in English" is for those who write in it
_OF_A_LANGUAGE = re.compile(rf"^{_LANGUAGE}(?: speakers?| mode)?:", re.I)
_BOUNDARY = re.compile(
    r"^ *(?:$|[,.:!/-]| (?:only|and|regardless|no matter|always|even|at all|with|for all|to|or|then"
    r"|unless|never|without|also|language|in (?:every|all|each)|by|as|mit|für|avec|con|y|e|et|und"
    r"|auch|aunque)\b)",
    re.I,
)
_AFTER = re.compile(
    r"^(?:,? (?:or|and|oder|y|et|e|/) ?(?:in |auf |en )?(?!(?:with|finish|end|only|never|do|use"
    r"|be|keep|mit|no|metti|not|start|begin)\b)\w+|/|-\w+| (?:and|or) |,? then in)",
    re.I,
)

_FORMS: dict[str, tuple[str, list[str]]] = {  # a regular expression, and the words of the other
    "sie": (
        r"\b(?:Sie|Ihnen|Ihre?[mnrs]?)\b",
        "du dich dir dein deine deinen deinem deiner euch euer eure".split(),
    ),
    "vous": (r"(?i)\b(?:vous|votre|vos)\b", "tu te toi ton ta tes".split()),
    "usted": (
        r"(?i)\b(?:ustedes|usted|su|sus|le|les|dígame|tenga|traiga|puede|tome|escriba)\b",
        "tú tu tus te ti contigo puedes tienes quieres necesitas eres estás debes".split(),
    ),
}
_FORM = r"(?P<form>Sie|vous|usted)"
_ADDRESSES = patterns(
    rf"\b(?:say|use|address|tratas?|trata|spr\w+|anrede\w*|siez\w*|answer|speak|you do so)\b"
    rf"[^:]{{0,60}}?(?:\b(?:formal|the|a|as|with|de|mit|form) )?\b{_FORM}\b",
    rf"\b{_FORM}-form\b",
    r"\b(?P<vouvoyez>vouvoyez|vouvoie)\b",
)
_ALWAYS = re.compile(
    r"\b(?:every|each|at least once|in jeder|chaque|par réponse|au moins|cada|tratas?|a todo"
    r"|always)\b",
    re.I,
)


def language_rules(clause: Clause) -> list[Draft]:
    """The language, and the polite form of address in German, French or Spanish."""
    return [*_language(clause), *_address(clause)]


def _language(clause: Clause) -> list[Draft]:
    if _OF_A_LANGUAGE.search(clause.text):
        return []
    for form in _LANGUAGES:
        for match in form.finditer(clause.text):
            before, after = clause.text[: match.start()], clause.text[match.end() :]
            if _AFTER.match(after) or not _BOUNDARY.match(after) or re.search(
                r"\b(?:never|not|n't|avoid|they|users?|customers?|who|questions|same language"
                r"|translat\w+|students? (?:write|speak)\w*)\b[^,:]*$", before, re.I,
            ):  # fmt: skip
                continue
            if re.search(r"\bnot\b", match[0], re.I):
                continue
            name = match.groupdict().get("name") or match.groupdict().get("name2") or ""
            spec = {"name": "language", "code": _CODES[name.lower()]}
            return [Draft("language", "requirement", spec)]
    return []


def _address(clause: Clause) -> list[Draft]:
    def shown(mark: re.Match[str]) -> str:  # "Sie" in quotation marks, but no sentence with it
        (quote,) = clause.quoted(mark[0])
        return quote if " " not in quote else mark[0]

    text = re.sub(QUOTE, shown, clause.text)
    for form in _ADDRESSES:
        match = form.search(text)
        if match is None or re.search(r"\b(?:never|not|nicht|no|ne)\b[^,:]*$", match[0], re.I):
            continue
        groups = match.groupdict()
        formal = "vous" if groups.get("vouvoyez") else match["form"]
        if formal == "sie":  # "she" or "they"
            continue
        return [Draft("address", "requirement", _form_spec(formal.lower(), text))]
    return []


def _form_spec(formal: str, text: str) -> Spec:
    regex, others = _FORMS[formal]
    never: Spec = {"name": "never_contains", "words": others}
    if not _ALWAYS.search(text):
        return never
    return {"name": "every", "measures": [{"name": "regex", "regex": regex}, never]}
