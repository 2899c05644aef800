"""Rules that forbid replies: in a language or a format, or with some first or last words.

    Never reply in French.           -> never(language(code="fr"))
    Never begin a reply with "Sure". -> never(starts_with(word="Sure"))
    Do not answer in JSON.           -> never(ifeval_detectable_format_json_format)
    Never reveal the code WINTER24.  -> never_contains(words=["WINTER24"])

The measure `never` inverts another measure. A clause is read here only if it has a negation, and if
its subject is the bot: "some guests never reply in French" forbids nothing.
"""

import re

from holdfast.drafting.drafts import Draft, MeasureSpec, measure
from holdfast.drafting.grammar.forms import Forms, any_words, first_match, form, literal, one_of
from holdfast.drafting.reply_rules.bot_prompts import QUOTES, REPLY, BotClause
from holdfast.measures.language_names import ANY_NAME, CODES
from holdfast.measures.rule_kinds import RuleKind

# --- The negation

# "never", "you must not ever", "avoid"; the verb after it is an infinitive or ends in -ing
_NEVER = (
    r"(?:(?:\b"
    + one_of(
        *("never(?: ever)?", "cannot", "avoid", "refrain from", "under no circumstances"),
        "(?:do|must|should|shall|will|may|can) (?:not|never)(?: ever)?",
    )
    + r"|(?:do|must|should|ca|wo)n't(?: ever)?))"
)
# before the negation: words with which it forbids nothing ("you need not"), or forbids it to others
_FORBIDS_NOTHING = re.compile(
    r"\b"
    + one_of(
        *("need", "needs", "have to", "has to", "required", "necessary", "if", "when", "they"),
        *("users?", "customers?", "who", "why", "only", "always"),
    )
    + r"\b[^,:]*$",
    re.I,
)
# before the negation: nobody, the bot, or its replies; "some guests never" is not about replies
_SUBJECT_IS_BOT = re.compile(
    r"(?:^|[,:;.] ?| (?:and|but|so|then) )(?:"
    + one_of(
        *"and but also so then please always strictly important note rule rules you we it".split(),
        *("(?:the|this|your|an) (?:ai )?(?:assistant|bot|chatbot|agent|model)", "assistant", "bot"),
        *("remember to", "(?:make|be) sure (?:to|that|you)", "ensure(?: that)?"),
        *("language", "tone", "style", "format", REPLY),
    )
    + r"[,:!]? )*$",
    re.I,
)
# after the rule: the end of its part of the sentence
_END_OF_RULE = (
    r"(?= *(?:$|[,.:]| (?:and|or|but|nor|instead|ever|at all|to (?:the )?users?|again)\b))"
)
# the same, where no further thing follows that is not read: "in JSON or Markdown"
_END_OF_ALL = (
    r"(?! *,? ?(?:[\w-]+,? ){0,3}?(?:or|nor)\b)"
    r"(?= *(?:$|[,.:]| (?:but|instead|ever|at all|to (?:the )?users?|again)\b"
    r"| and (?:never|always|do|don't|keep|use|reply|answer|write|be|avoid|end|begin)\b))"
)


def reply_prohibitions(clause: BotClause) -> list[Draft]:
    """Reads 'never reply in French', 'never begin with "Sure"', "never end with a question"."""
    return [
        *_read_languages(clause.text),
        *_read_edges(clause),
        *_read_formats(clause.text),
        *_read_secret_codes(clause.text),
    ]


def _first_prohibition(ways: Forms, text: str) -> re.Match[str] | None:
    """The match of a form, if by the words before it the negation forbids something to the bot."""
    match = first_match(ways, text)
    if match is None:
        return None
    before = text[: match.start()]
    return match if _SUBJECT_IS_BOT.search(before) and not _FORBIDS_NOTHING.search(before) else None


def _forbid(kind: RuleKind, spec: MeasureSpec) -> Draft:
    """Forbids the replies that a measure finds."""
    return Draft(kind, "prohibition", measure("never", measure=spec))


# --- Languages

_NAME = one_of(ANY_NAME)
_NEXT_NAME = rf"(?:,? (?:or|nor|and)|,|/) ?(?:in )?{_NAME}"
_LANGUAGE_LIST = rf"(?P<names>{_NAME}(?:{_NEXT_NAME})*)(?!{_NEXT_NAME})"
_TALK = one_of(
    *("repl(?:y|ying)", "respond(?:ing)?", "answer(?:ing)?", "writ(?:e|ing)", "speak(?:ing)?"),
    *("talk(?:ing)?", "convers(?:e|ing)", "chat(?:ting)?", "communicat(?:e|ing)"),
)
_OBJECT = any_words(
    *"to with the users? customers? guests? them me us anyone anything back your".split(),
    *"messages? replies responses answers questions?".split(),
)
_NOT_IN = form(
    "Never reply to the user in French or German",
    rf"{_NEVER} {_TALK} {_OBJECT}in {_LANGUAGE_LIST}{_END_OF_RULE}",
)
_IN_NO_OTHER = form(
    "Never answer in any language other than German",
    rf"{_NEVER} {_TALK} {_OBJECT}in (?:any|a|another) (?:other )?language"
    rf" (?:other than|but|except|than|apart from) (?P<name>{_NAME})(?= *(?:$|[,.:]))",
)


def _read_languages(text: str) -> list[Draft]:
    """Reads "never reply in French", and "in no other language than German"."""
    if sole := _first_prohibition(_IN_NO_OTHER, text):
        spec = measure("language", code=CODES[sole["name"].lower()])
        return [Draft("language", "requirement", spec)]
    match = _first_prohibition(_NOT_IN, text)
    names = re.findall(rf"\b{_NAME}\b", match["names"], re.I) if match else []
    specs = (measure("language", code=CODES[name.lower()]) for name in names)
    return [_forbid("language", spec) for spec in specs]


# --- First and last words

_BEGIN = one_of(*"start starting begin beginning open opening preface prefacing".split())
_END = one_of(
    *"end ending close closing finish finishing conclude concluding".split(),
    "sign(?:ing)? off",
)
_THE_REPLY = rf"(?: (?:(?:an? )?{REPLY}|it))?"
_KIND = any_words(
    *"the a any words? phrases? an filler fillers generic expressions? openers? clichés?".split(),
    *"sentences? interjections? affirmations? pleasantries greetings? something things".split(),
    *("such as", "like", "as", "similar to", "stock", "empty", "flattery", "praise"),
)
_WITH = r"(?:with|by saying|by writing|using)"
_ANY_OF = rf"{_WITH} {_KIND}:? ?,? ?(?P<quotes>{QUOTES})"
_NOT_FIRST = form(
    "Never start a reply with phrases like ⟪0⟫ or ⟪1⟫", rf"{_NEVER} {_BEGIN}{_THE_REPLY} {_ANY_OF}"
)
_NOT_LAST = form("Do not end your replies with ⟪0⟫", rf"{_NEVER} {_END}{_THE_REPLY} {_ANY_OF}")
_NO_QUESTION_LAST = form(
    "Never end your reply with a follow-up question",
    rf"{_NEVER} {_END}{_THE_REPLY} {_WITH} (?:an? |any )?"
    rf"(?:follow-?up |open-ended |closing )?questions?{_END_OF_RULE}",
)
# after the quotations: words that limit the rule, as in "never begin with ⟪0⟫ in an e-mail"
_NARROWED = re.compile(
    r",? (?:if|when|unless|in (?:an?|the|your)|for|to|about|more|while|again"
    r"|once|twice|only|without|than|every|except|(?:\w+ )?times)\b",
    re.I,
)
# "do not end every reply with ⟪0⟫" does not forbid it for any reply
_NOT_EVERY = re.compile(r"\b(?:every|each|all)\b", re.I)
_NOT_OF_REPLIES = re.compile(
    r"\b(?:sentences?|paragraphs?|lines?|conversations?|e-?mails?|messages? to|calls?|sections?"
    r"|commits?|titles?|files?|comments?|posts?|articles?)\b",
    re.I,
)
_PLACEHOLDER = re.compile(r"[\[{<]|\.\.\.\S|_{2,}|%s|\$|\bX\b")


def _read_edges(clause: BotClause) -> list[Draft]:
    """Reads "never begin a reply with ⟪0⟫", and "never end a reply with a question"."""
    last = _first_prohibition(_NO_QUESTION_LAST, clause.text)
    if last and not _NOT_EVERY.search(last[0]):
        return [_forbid("closing", measure("asks_back"))]
    drafts: list[Draft] = []
    edges: tuple[tuple[Forms, RuleKind], ...] = ((_NOT_FIRST, "opening"), (_NOT_LAST, "closing"))
    for ways, kind in edges:
        match = _first_prohibition(ways, clause.text)
        if match is None or _NARROWED.match(clause.text[match.end() :]):
            continue
        if _NOT_EVERY.search(match[0][: match[0].index("⟪")]):
            continue
        if _NOT_OF_REPLIES.search(re.sub(REPLY, "", match[0][: match.start("quotes")])):
            continue
        for quote in clause.quotations_in(match["quotes"]):
            words = quote.strip().strip(".,:;!?…").strip()
            if not re.search(r"\w", words) or _PLACEHOLDER.search(words):
                return []
            drafts.append(_forbid(kind, _edge_spec(words, opens=kind == "opening")))
    return drafts


def _edge_spec(words: str, *, opens: bool) -> MeasureSpec:
    """The measure of replies that begin with some words, or have them in their last sentence."""
    if opens:
        return measure("starts_with", word=words)
    escaped = literal(words).replace("'", "['’]")
    begin = r"\b" if re.match(r"\w", words) else ""
    end = r"\b" if re.search(r"\w\Z", words) else ""
    regex = rf"{begin}{escaped}{end}[^.!?\n]*+[.!?\s]*+\Z"
    return measure("regex", regex=regex, flags="i")


# --- Formats

# formats, and the measure of replies in each; "in all caps" is said like them
_FORMATS: dict[str, MeasureSpec] = {
    "json": measure("ifeval_detectable_format_json_format"),
    "all caps": measure("upper_case"),
    "code": measure("regex", regex="```"),
    "markdown": measure("regex", regex=r"\*\*|__|```|(?m:^\s*(?:\||(?:[-*•]|#+|\d+[.)])\s))"),
}
_FORMAT = rf"{one_of(*_FORMATS)}(?: (?:blocks?|snippets?))?"
_NOT_AS = form(
    "Never reply in JSON or code",
    rf"{_NEVER} {_TALK} {_OBJECT}(?:in|with|as|using) (?:raw |any )?"
    rf"(?P<formats>{_FORMAT}(?:(?:,? (?:or|nor|and)|,|/) ?(?:in |raw )?{_FORMAT})*)"
    rf"(?: format)?{_END_OF_ALL}",
)


def _read_formats(text: str) -> list[Draft]:
    """Reads "never reply in JSON or code"."""
    match = _first_prohibition(_NOT_AS, text)
    names = re.findall(one_of(*_FORMATS), match["formats"], re.I) if match else []
    return [_forbid("format", _FORMATS[name]) for name in dict.fromkeys(map(str.lower, names))]


# --- Codes

_CODE_NOUN = one_of(*"codes? codewords? codenames? keys? pins? passwords? numbers?".split())
_NAME_OF_CODE = any_words(
    *"the our your its this that secret internal discount promo promotion coupon voucher".split(),
    *"access gift staff admin project pass".split(),
    _CODE_NOUN,
)
_NOT_THE_CODE = form(
    "Never reveal the discount code WINTER24",
    rf"{_NEVER} (?:(?:reveal|mention|say|share|disclose|repeat|give(?: out| away)?"
    r"|tell (?:anyone|anybody|users?|customers?))(?:ing)?"
    # "never write HTML5" is about a language, and not about its name
    rf"|(?:write|output|print)(?:ing)?(?= {_NAME_OF_CODE}{_CODE_NOUN} )) {_NAME_OF_CODE}"
    r"(?P<code>[\w-]{4,40})"
    r"(?: to (?:the |any |your )?(?:anyone|anybody|users?|customers?|guests?))?"
    rf"{_END_OF_ALL}",
)
# letters and digits of which no other text is made, so that it has no paraphrase
_CODE = re.compile(r"(?=.*\d)(?=.*[A-Z])[A-Z\d][A-Z\d_-]+")


def _read_secret_codes(text: str) -> list[Draft]:
    """Reads "never reveal the discount code WINTER24"."""
    match = _first_prohibition(_NOT_THE_CODE, text)
    if match is None or not _CODE.fullmatch(match["code"]):
        return []
    return [Draft("secret", "prohibition", measure("never_contains", words=[match["code"]]))]
