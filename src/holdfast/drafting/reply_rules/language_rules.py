"""Rules about the language of a reply.

For example:

    Always answer in German. -> language(code="de")
    请始终使用简体中文回复用户   -> language(code="zh")
"""

import re

from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.forms import Form, form, forms, one_of, whole_match
from holdfast.drafting.reply_rules.bot_prompts import REPLY, BotClause
from holdfast.measures.language_names import ANY_NAME, CODES

# --- The language

# "plain English", "auf gut Deutsch"
_VARIETY = one_of(
    *"simple plain clear natural standard British American US UK formal modern good".split(),
    *"simplified traditional".split(),
    *"polite professional correct friendly fluent polite,".split(),
    *("Brazilian", "auf", "auf gut"),
)
_LANGUAGE = rf"(?:{_VARIETY} )*(?P<name>{ANY_NAME})"
_VERB = one_of(
    *"reply respond answer write speak communicate talk converse chat do".split(),
    *"responde respondes escribe escribes escribas contesta hablas habla".split(),
    *(r"répond\w*", r"parle\w*", r"écri\w*"),
    *(r"rispond\w*", r"scriv\w*", "parl[ai]"),
    *(r"antworte\w*", r"schreib\w*", r"sprich\w*"),
)
# words between the verb and the language: "answer all messages of users in"
_OBJECT = one_of(
    *"back to only ever always everything everybody everyone all of your the users?".split(),
    *"customers? them me us guests? it exclusively solely strictly entirely so with".split(),
    *"messages? replies responses answers immer siempre solo sempre toujours uniquement".split(),
    *"ausschließlich exclusivamente únicamente exclusivement esclusivamente".split(),
    *"humans? maintainers? developers? people whole each every reply response message".split(),
    *"answer text".split(),
)
_BEFORE_VERB = one_of(
    *"you du tu and always only please must should ever will shall to assistant bot then".split(),
    "siempre",
)
_SUBJECT = one_of("^", "[,:] ?", rf"\b{_BEFORE_VERB} ")
_LABEL = one_of(
    *("language", "output language", "response language", "reply language"),
    *("idioma", "langue", "sprache"),
)
_AUXILIARIES = one_of(
    *"must should are is be always will".split(), "have to", "has to", "written", "given"
)
_LANGUAGES = forms(
    {
        "always answer all messages of users in German": (
            rf"{_SUBJECT}{_VERB}(?: {_OBJECT}){{0,8}} (?:in|auf|en|in lingua) {_LANGUAGE}\b"
        ),
        "use only German": (
            rf"{_SUBJECT}(?:speak|use) (?:only )?{_LANGUAGE}(?: only)?"
            rf"(?= (?:with|only|to|in|at|for {REPLY})\b|$|,)"
        ),
        "write German in all replies": rf"{_SUBJECT}write {_LANGUAGE}(?= (?:in|for) {REPLY}\b)",
        "your replies must always be in German": (
            rf"\b{REPLY}(?: {_AUXILIARIES})* in {_LANGUAGE}\b"
        ),
        "Response language: German": rf"^{_LABEL}: ?(?:always |only )?{_LANGUAGE}\b",
        "in German only": rf"^(?:in )?{_LANGUAGE} only$",
        "use German as the primary language": (
            rf"{_SUBJECT}use {_LANGUAGE} as (?:the|your) (?:primary|main|default) language$"
        ),
        "only German": rf"^only {_LANGUAGE}$",
    }
)
# "English: reply in English" is for those who write in English
_FOR_ONE_LANGUAGE = re.compile(rf"^{_LANGUAGE}(?: speakers?| mode)?:", re.I)
# before a language, these words make the rule one for others, or for something else than replies
_NOT_A_RULE = re.compile(
    r"(?:\b|(?=n't))(?:never|not|n't|avoid|they|users?|customers?|who|questions|same language"
    r"|translat\w+|students? (?:write|speak)\w*)\b[^,:]*$",
    re.I,
)
# before "reply in French", these words permit it: "you can also", but not "you can only"
_PERMITS = re.compile(
    r"\b(?:can|could|may|might)(?: (?!only\b)(?:\w+ly|also|even|always))* *$", re.I
)
# after a language, its part of the sentence has to end, or to go on with words that limit nothing
_GOES_ON = one_of(
    *("only", "and", "regardless", "no matter", "always", "even", "at all", "with", "for all"),
    *("to", "or", "then", "unless", "never", "without", "also", "language"),
    *("in (?:every|all|each)", f"(?:for|in) {REPLY}", "by", "as"),
    *"mit für avec con y e et und auch aunque".split(),
)
_BOUNDARY = re.compile(rf"^ *(?:$|[,.:!/-]| {_GOES_ON}\b)", re.I)
# after a language, a second one may follow ("English or French"), which "and end with" is not
_SECOND_RULE = one_of(
    *"with finish end only never do use be keep mit no metti not start begin".split()
)
_SECOND_LANGUAGE = re.compile(
    rf"^(?:,? (?:or|and|oder|y|et|e|/) ?(?:in |auf |en )?(?!{_SECOND_RULE}\b)\w+"
    r"|/|-\w+| (?:and|or) |,? then in)",
    re.I,
)
# orders to reply in a language, given in that language, and its code
_ORDERS_IN_OWN_LANGUAGE = (
    (
        form(
            "请始终使用简体中文回复用户",
            r"(?:请|始终|总是|必须|一律|永远|所有|对话|回复|默认|，|：|:)*(?:使用|用|以)"
            r"(?:简体)?中文(?:来|进行|与用户|和我|跟我)*(?:回复|回答|交流|沟通|对话|响应|应答|输出)"
            r"(?:用户|我|问题)?。?",
        ),
        "zh",
    ),
    (
        form(
            "所有输出文本（含回复、日志）必须使用中文",
            r"(?:全局中文回复[：:])?所有(?:的)?(?:输出|回复|回答|交流|对话)[^。]{0,40}"
            r"(?:使用|用|为)(?:简体)?中文。?",
        ),
        "zh",
    ),
    (
        form(
            "必ず日本語で回答してください",
            r"(?:必ず|常に|回答は|応答は|返答は|ユーザーには|、)*日本語で(?:の)?"
            r"(?:回答|応答|返答|会話|対応|出力|答え)(?:する|して|を)?(?:こと|ください|行う)*。?",
        ),
        "ja",
    ),
    (
        form(
            "항상 한국어로 답변하세요",
            r"(?:항상|반드시|모든 답변은| )*한국어로 (?:답변|응답|대답|대화|작성)"
            r"(?:하세요|합니다|할 것|해주세요|해 주세요)?\.?",
        ),
        "ko",
    ),
    (
        form(
            "Всегда отвечай пользователю на русском языке",
            r"(?:всегда )?(?:отвечай(?:те)?|общай(?:ся|тесь)|пиши(?:те)?)(?: всегда| пользователю)?"
            r"(?: только)? на русском(?: языке)?",
        ),
        "ru",
    ),
    (
        form(
            "Responda sempre em português do Brasil",
            r"(?:sempre )?(?:responda|responder|comunique-se|fale)(?: sempre)?(?: ao usuário)?"
            r"(?: apenas)? em português(?: do brasil| brasileiro|-br| \(brasil\))?",
        ),
        "pt",
    ),
    (
        form(
            "Réponds toujours en français",
            r"(?:toujours )?(?:réponds|répondez|répondre|parle|parlez|communique|écris)"
            r"(?:-moi| moi)?(?: à l['’]utilisateur)?(?: toujours| uniquement)? en français",
        ),
        "fr",
    ),
    (
        form(
            "Antworte immer auf Deutsch",
            r"(?:immer )?(?:antworte|antworten|kommuniziere|schreibe?|sprich)(?: mir| dem nutzer)?"
            r"(?: immer| stets| ausschließlich)? (?:auf|in) deutsch",
        ),
        "de",
    ),
    (
        form(
            "Responde siempre en español",
            r"(?:siempre )?(?:responde|responder|contesta|habla|comunícate)(?:me)?(?: siempre)?"
            r"(?: al usuario)?(?: solo)? en español",
        ),
        "es",
    ),
    (
        form(
            "Rispondi sempre in italiano",
            r"(?:sempre )?(?:rispondi|parla|comunica|scrivi)(?: sempre)?(?: all['’]utente)?"
            r"(?: solo)? in italiano",
        ),
        "it",
    ),
)


def language_rules(clause: BotClause) -> list[Draft]:
    """Reads "always answer in German"."""
    if _FOR_ONE_LANGUAGE.search(clause.text):
        return []
    for way in _LANGUAGES:
        if name := _language_in(way, clause.text):
            spec = measure("language", code=CODES[name.lower()])
            return [Draft("language", "requirement", spec)]
    if code := code_of_own_language(clause.text):
        return [Draft("language", "requirement", measure("language", code=code))]
    return []


def code_of_own_language(text: str) -> str | None:
    """The code of the language in which a text asks for replies in that same language; None if it
    does not ask so.
    """
    return next((code for ways, code in _ORDERS_IN_OWN_LANGUAGE if whole_match(ways, text)), None)


def _language_in(way: Form, text: str) -> str:
    """The language of the first match that is a rule for all replies; "" if no match is."""
    for match in way.pattern.finditer(text):
        before = text[: match.start()]
        after = text[match.end() :]
        is_sole = _BOUNDARY.match(after) and not _SECOND_LANGUAGE.match(after)
        is_negated = _NOT_A_RULE.search(before) or re.search(r"\bnot\b", match[0], re.I)
        is_permitted = _PERMITS.search(before) and not re.match(r" only\b", after)
        if is_sole and not is_negated and not is_permitted:
            return match["name"]
    return ""
