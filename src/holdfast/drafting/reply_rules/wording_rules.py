"""Rules about words: the opening, the closing, the address, and what is always or never said."""

import re
from typing import NamedTuple

from holdfast.drafting.drafts import Draft, Spec
from holdfast.drafting.grammar.forms import Forms, first_match, forms, one_of
from holdfast.drafting.reply_rules.bot_prompts import QUOTE, QUOTES, REPLY, BotClause

# --- The opening and the closing of a reply

# "with the exact words: "
_KIND_OF_TEXT = one_of(
    *"the exactly these this exact following words? phrase sentence line greeting".split(),
    *("sign-?off", "text", "prefix", "tag", "les mots", "la frase", "den Worten", ":"),
)
_BY = one_of("with", "by saying", "by", "as", "mit", "par", "con", "por")
_WITH = f"{_BY}(?: {_KIND_OF_TEXT})*:? ?"
_END = one_of(
    *"end ends ending close closes finish finishes finishing conclude concludes".split(),
    *("sign off", "sign", "signs off", "say goodbye"),
    *("endet", "beende", "terminez", "termine", "termina", "terminas", "termina siempre"),
    *("finis", "finissez", "schließe", "concludi"),
)
_BEGIN = one_of(
    *"start starts starting begin begins beginning open opens opening".split(),
    *"beginnt beginne commencez commence empieza empiezas comienza inizia".split(),
)
# "each reply" in "end each reply with"
_WHOLE_REPLY = one_of(
    *(REPLY, r"jede \w+", r"jeden? \w+", r"chaque \w+", r"cada \w+", "siempre", "toujours"),
    *("immer", "it", "everything", r"ogni \w+"),
)
_WHOLE = f"(?: {_WHOLE_REPLY})?"
_MUST = one_of("must", "should", "always", "will", "has to", "have to")
# a quotation without a second one beside it, of which either would do
_SOLE = rf"(?P<quote>{QUOTE})(?!(?:,| or| and|/)? ?(?:or |and )?⟪)"
_FIRST = r"first (?:words?|sentence|line|thing)"
_LAST = r"last(?: (?:words?|sentence|line|thing))?"
_OPENINGS = forms(
    {
        "⟪0⟫ is always your first sentence": (
            rf"{_SOLE},? (?:is|are) (?:always )?(?:your|the|every) {_FIRST}(?=$|,| of)"
        ),
        "start every reply with the exact words ⟪0⟫": (
            rf"\b{_BEGIN}{_WHOLE}(?: always)? {_WITH}{_SOLE}"
        ),
        "the first word of every reply is ⟪0⟫": (
            rf"\bfirst (?:words?|sentence|line) of {REPLY}[^:⟪]{{0,30}}(?:is|are|:)"
            rf"(?: always)? ?{_SOLE}"
        ),
        "put ⟪0⟫ in front of every reply": (
            rf"\b(?:put|write|add) {_SOLE}"
            rf" (?:in front of|before|at the (?:start|beginning) of) {REPLY}"
        ),
        "every reply must begin with ⟪0⟫": rf"\b{REPLY} (?:{_MUST} )*{_BEGIN} {_WITH}{_SOLE}",
        "⟪0⟫ opens every reply": rf"{_SOLE} (?:opens|begins|starts) {REPLY}",
        "prefix each message with ⟪0⟫": rf"\bprefix {REPLY} with {_SOLE}",
    }
)
_CLOSINGS = forms(
    {
        "⟪0⟫ is always your last word": (
            rf"{_SOLE},? (?:is |are )?(?:always )?(?:your|the) {_LAST}(?=$|,| of)"
        ),
        "⟪0⟫ closes every reply": rf"{_SOLE} (?:closes|ends|finishes|concludes) {REPLY}",
        "it ends with ⟪0⟫": rf"\bit ends with {_SOLE}",
        "end each reply with ⟪0⟫": rf"\b{_END}{_WHOLE}(?: always)? {_WITH}{_SOLE}",
        "the last thing you say is ⟪0⟫": (
            r"\blast (?:\w+ )?(?:words?|sentence|line|thing)"
            rf"(?: you say| that you say| of it| of {REPLY})?(?: is| are|:)(?: always)? ?{_SOLE}"
        ),
        "it has ⟪0⟫ as the last line of the reply": (
            rf"\b(?:has|have) {_SOLE} as (?:the|its|their) {_LAST} of {REPLY}"
        ),
        "every reply must end with ⟪0⟫": rf"\b{REPLY} (?:{_MUST} )*{_END} {_WITH}{_SOLE}",
        "put ⟪0⟫ at the very end of every reply": (
            rf"\b(?:put|write|add|append) {_SOLE} (?:at|to) the (?:very )?end of {REPLY}"
        ),
        "sign every message as ⟪0⟫": rf"\bsigns? (?:it|them|{REPLY}) (?:with|as) {_SOLE}",
    }
)
# what happens once and is not a reply: "end the conversation with"
_OCCASION = one_of(
    *("conversation", "chat session", "session", "dialog(?:ue)?", "first", "interaction"),
    *("(?:the|each|every|a) calls?", "story", "email", "e-mail", r"intro\w*", "summary"),
    *("section", "poem", "article", "post"),
)
_ONCE = re.compile(rf"\b{_OCCASION}\b", re.I)
_REPLY_NAMED = re.compile(rf"\b{REPLY}\b|nachricht|réponse|respuesta", re.I)
# the rule is about parts of a reply: "every line of a reply starts with"
_NOT_OF_THE_REPLY = re.compile(
    r"\b(?:without|lines?|sentences?|paragraphs?|bullets?|items?|steps?)\b[^,]*$", re.I
)
_GREETING = re.compile(r"(?:hi|hello|hey|greetings|good (?:morning|day))\b|[^?]*\?\W*$", re.I)
_PLACEHOLDER = re.compile(r"[\[{<][A-Za-z]|\.\.\.|…|\bX\b|_{2,}|%s|\$")
_BRACKETED = re.compile(r"^\W*[\[\]{}<>#*~|-]|[\[\]{}<>#*~|]\W*$")

# --- Names for the user

_WHOSE = one_of("the", "your", "our", "whoever", "every", "each", "all")
_SOMEBODY = one_of(
    *"users? customers? guests? persons? people child(?:ren)? pupils? students?".split(),
    *"everybody everyone them her him clients? visitors? callers? readers? players?".split(),
    *("whoever writes to you", "me"),
)
_PERSON = f"(?:{_WHOSE} )?{_SOMEBODY}"
# one name, or either of two: "as Sir or Madam"
_EITHER = (
    rf"(?:either )?(?:(?P<quote>{QUOTE})(?: or (?P<other>{QUOTE}))?"
    r"|(?-i:(?P<names>[A-Z][a-z']+ or [A-Z][a-z']+)))"
)
_NAMES_FOR_PEOPLE = forms(
    {
        "address every customer as ⟪0⟫ or ⟪1⟫": (
            rf"\baddress(?:es)? {_PERSON}(?: (?:always|only))? (?:as|by|with|using) {_EITHER}"
        ),
        "call the user ⟪0⟫": rf"\bcalls? {_PERSON} {_EITHER}",
        "refer to users only as ⟪0⟫": rf"\brefer to {_PERSON} (?:only )?as {_EITHER}",
    }
)
# polite and familiar forms, about which `language_rules` has the rules
_FORMS_OF_ADDRESS = frozenset("sie du vous tu usted tú lei you".split())

# --- Words that are never said

_NAMED = r"(?P<name>[A-Z][\w&'-]*[a-z][\w&-]*(?: [A-Z][\w&-]+){0,2})"
# "filler phrases such as" in "never use filler phrases such as"
_ABOUT_WORDS = one_of(
    *"the any our words? phrases? terms? names? expressions? things filler clichés?".split(),
    *"sentences? anything something like".split(),
    *("such as", "to call", "as", "or", "similar", "it", "competitors?", "brand", "company"),
)
_KIND_OF_WORD = f"(?:{_ABOUT_WORDS}:? )*"
_NEVER = one_of(
    r"\bnever(?: ever)?",
    r"\b(?:do|does|must|should|will|shall|may|can) not",
    r"\b(?:do|does|must|should|ca|wo)n't",
    r"\bnor",
)
_SAY = one_of(
    *"say use write mention utter include call".split(),
    *("reply with", "respond with", "answer with", "type", "output"),
)
_NOT_ALLOWED = one_of("banned", "forbidden", "not allowed", "off limits", "prohibited", "taboo")
_FORBIDDEN_WORDS = forms(
    {
        "never use filler phrases such as ⟪0⟫ or ⟪1⟫": (
            rf"{_NEVER}(?: (?:ever|you|we|be))* {_SAY}:? {_KIND_OF_WORD}(?P<quotes>{QUOTES})"
        ),
        "avoid saying ⟪0⟫": (
            rf"\b(?:avoid|ban|bans|banned|without)(?: (?:saying|using|writing))? {_KIND_OF_WORD}"
            rf"(?P<quotes>{QUOTES})"
        ),
        "words banned from every reply: ⟪0⟫": (
            rf"\bbanned (?:from|in) {REPLY}: ?(?P<quotes>{QUOTES})"
        ),
        "the words ⟪0⟫ and ⟪1⟫ are banned": (
            rf"\bwords? (?P<quotes>{QUOTES})"
            rf" (?:do not exist|does not exist|(?:is|are) {_NOT_ALLOWED})"
        ),
        "no words ⟪0⟫": (
            rf"(?:^|[,:] )(?:and )?no (?:words? |phrases? )?(?P<quotes>{QUOTES})"
            r"(?=$|[,.:]| and | or )"
        ),
        "never say any of these words: ⟪0⟫": (
            rf"(?:{_NEVER} {_SAY}|\bavoid) (?:any of )?(?:these|the following|this)[^⟪:]{{0,40}}: ?"
            rf"(?P<quotes>{QUOTES})"
        ),
        "never refer to guests as ⟪0⟫": (
            rf"{_NEVER} refer to [^⟪]{{1,30}} as (?P<quotes>{QUOTES})"
        ),
    }
)
# a name that is never said: "Never mention Velox, our competitor"
_NAME = re.compile(
    rf"(?:[Nn]ever|NEVER|(?:[Dd]o|DO|[Mm]ust) (?:not|NOT)|[Dd]on't) (?:mention|name|say|MENTION)"
    rf" (?:(?:the|a) )?(?:name |competitor |company |brand )*{_NAMED}(?=$|[,.]| or | in )"
)

# behind a word: something else than the word is forbidden, as in "never say "no" to a customer"
_ABOUT_SOMETHING = re.compile(
    r" (?:to(?! (?:me|the user)\b)|about|for|at the|as your|more than)\b", re.I
)

# --- Words that are always said

_INCLUDE = one_of("include", "mention", "use", "add", "say", "write", "have", "contain") + "s?"
_INCLUDES = one_of("includes?", "contains?", "mentions?", "have", "has")
_LINE = r"(?:words? |phrase |line |sentence |disclaimer )"
_LINE_OR_LINK = r"(?:words? |phrase |line |sentence |disclaimer |link )"
_INCLUDING = forms(
    {
        "include the line ⟪0⟫ in every reply": (
            rf"\b{_INCLUDE} (?:the )?{_LINE_OR_LINK}*:? ?{_SOLE}(?: at least once)? (?:in|to) "
            rf"(?:every|each|all)(?: of)?(?: your)? ?{REPLY}"
        ),
        "every reply must contain the word ⟪0⟫": (
            r"\b(?:every|each) (?:reply|response|answer|message)"
            rf" (?:(?:must|should|has to|will) )?{_INCLUDES} (?:the )?{_LINE}*:? ?{_SOLE}"
        ),
        "always add the disclaimer ⟪0⟫": (
            rf"\balways (?:include|mention|add|use) (?:the )?{_LINE}+:? ?{_SOLE}$"
        ),
    }
)


class _Edge(NamedTuple):
    """The words that every reply begins or ends with, and whether the clause speaks of a reply."""

    quote: str
    names_reply: bool


def wording_rules(clause: BotClause) -> list[Draft]:
    """Reads rules about the words with which a reply begins or ends, and that it has or lacks."""
    return [
        *_read_edges(clause),
        *_names_for_people(clause),
        *_read_forbidden(clause),
        *_read_included(clause),
    ]


def _read_edges(clause: BotClause) -> list[Draft]:
    """Reads "begin every reply with ⟪0⟫" and "end every reply with ⟪1⟫"."""
    opening = _quotation_at_edge(_OPENINGS, clause)
    closing = _quotation_at_edge(_CLOSINGS, clause)
    drafts = []
    # "Start with "Hello, how can I help?"" is about the first reply only
    if opening and (opening.names_reply or not _GREETING.match(opening.quote)):
        drafts.append(Draft("opening", "requirement", _edge_spec(opening.quote, opens=True)))
    if closing:
        drafts.append(Draft("closing", "requirement", _edge_spec(closing.quote, opens=False)))
    return drafts


def _quotation_at_edge(ways: Forms, clause: BotClause) -> _Edge | None:
    """The quotation that every reply begins or ends with; None if the clause asks for none, or not
    for every reply.
    """
    match = first_match(ways, clause.text)
    if match is None or _NOT_OF_THE_REPLY.search(clause.text[: match.start()]):
        return None
    (quote,) = clause.quotations_in(match["quote"])
    if _PLACEHOLDER.search(quote) and not re.fullmatch(r"\[\w+\]", quote):
        return None
    if _ONCE.search(re.sub(rf"\b{_FIRST}", "", clause.text)):
        return None
    return _Edge(quote, _REPLY_NAMED.search(match[0]) is not None)


def _edge_spec(quote: str, *, opens: bool) -> Spec:
    """The measure of replies that begin, or end, with a quotation."""
    words = quote.strip().rstrip(".,:;!?").strip()
    if _BRACKETED.search(quote) or not re.search(r"\w", words):  # measures ignore such signs
        escaped = re.escape(quote.strip()).replace(r"\-", "-").replace(r"\ ", r"\s*")
        regex = rf"\A\W*?{escaped}" if opens else rf"{escaped}\W*\Z"
        return {"name": "regex", "regex": regex, "flags": "i"}
    return {"name": "starts_with" if opens else "ends_with", "word": words}


def _names_for_people(clause: BotClause) -> list[Draft]:
    """Reads "address every customer as ⟪0⟫ or ⟪1⟫"."""
    for form in _NAMES_FOR_PEOPLE:
        match = form.pattern.search(clause.text)
        if match is None:
            continue
        groups = match.groupdict("")
        quotes = clause.quotations_in(groups["quote"] + groups.get("other", ""))
        text = " or ".join(quotes) or groups.get("names", "")
        words = [word.strip(" .,!") for word in _either_of(text)]
        if any(word.lower() in _FORMS_OF_ADDRESS or _PLACEHOLDER.search(word) for word in words):
            continue
        if re.match(r"(?:,? or|,? and|/|,) ?⟪", clause.text[match.end() :]):
            continue
        spec = _say(words[0])
        if len(words) > 1:
            spec = {"name": "contains", "words": words, "all": False}
        return [Draft("address", "requirement", spec)]
    return []


def _either_of(text: str) -> list[str]:
    """The two words of "Sir or Madam"; another text as it is, alone."""
    words = text.split(" or ")
    return words if len(words) == 2 and all(len(word.split()) == 1 for word in words) else [text]


def _say(word: str) -> Spec:
    """The measure of replies that contain a word; "Ms Li" may also be "Ms. Li"."""
    titled = re.match(r"(Ms|Mr|Mrs|Dr) ", word)
    if titled:
        words = [word, word.replace(titled[1], f"{titled[1]}.", 1)]
        return {"name": "contains", "words": words, "all": False}
    return {"name": "contains", "words": [word]}


def _read_forbidden(clause: BotClause) -> list[Draft]:
    """Reads "never say ⟪0⟫ or ⟪1⟫" and "never mention Velox"."""
    words = [word.strip().rstrip(".,!?;:…").rstrip() for word in _forbidden_words(clause)]
    if not words or any(_PLACEHOLDER.search(word) or not re.search(r"\w", word) for word in words):
        return []
    if {word.lower() for word in words} & _FORMS_OF_ADDRESS or words[0].startswith("'"):
        return []
    return [Draft("forbidden", "prohibition", {"name": "never_contains", "words": words})]


def _forbidden_words(clause: BotClause) -> list[str]:
    """The words that a clause forbids; [] if it forbids none."""
    match = first_match(_FORBIDDEN_WORDS, clause.text)
    if match and not _ABOUT_SOMETHING.match(clause.text[match.end() :]):
        return clause.quotations_in(match["quotes"])
    if match := _NAME.search(clause.text):
        return [match["name"]]
    return []


def _read_included(clause: BotClause) -> list[Draft]:
    """Reads "include the line ⟪0⟫ in every reply"."""
    for form in _INCLUDING:
        if match := form.pattern.search(clause.text):
            (quote,) = clause.quotations_in(match["quote"])
            if _PLACEHOLDER.search(quote):
                continue
            spec = {"name": "contains", "words": [quote.strip(" .,!?")]}
            return [Draft("format", "requirement", spec)]
    return []
