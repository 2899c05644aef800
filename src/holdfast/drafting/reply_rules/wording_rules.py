"""Rules about words that a reply always or never has, and the name by which it calls the user.

For example:

    Never say "refund".                           -> never_contains(words=["refund"])
    Include the line "Not advice" in every reply. -> contains(words=["Not advice"])
    Address every customer as "Captain".          -> contains(words=["Captain"])
"""

import re

from holdfast.drafting.drafts import Draft, MeasureSpec, measure
from holdfast.drafting.grammar.forms import first_match, forms, one_of
from holdfast.drafting.reply_rules.bot_prompts import (
    PLACEHOLDER,
    QUOTE,
    QUOTES,
    REPLY,
    SOLE_QUOTE,
    BotClause,
)


def wording_rules(clause: BotClause) -> list[Draft]:
    """Reads rules about words that a reply has or lacks."""
    return [
        *_names_for_people(clause),
        *_read_forbidden(clause),
        *_read_forbidden_currency(clause.text),
        *_read_included(clause),
    ]


# --- Currencies

_CURRENCIES = {
    "euro": ("euro", "euros", "EUR", "€"),
    "dollar": ("dollar", "dollars", "USD", "$"),
    "pound": ("pound", "pounds", "GBP", "£"),
    "yen": ("yen", "JPY", "¥"),
}
_NO_CURRENCY = re.compile(
    r"(?:^|[,:] |\b(?:and|but) )(?:never|do not|don't|must not)(?: ever)? (?:mention|name|use"
    r"|(?:quote|give|state) (?:any )?prices in) (?P<name>euro|dollar|pound|yen)s?"
    r"(?: (?:at all|ever|anywhere))?$",
    re.I,
)


def _read_forbidden_currency(text: str) -> list[Draft]:
    """Reads "never mention euros"."""
    match = _NO_CURRENCY.search(text)
    if match is None:
        return []
    words = list(_CURRENCIES[match["name"].lower()])
    return [Draft("forbidden", "prohibition", measure("never_contains", words=words))]


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
# polite and familiar forms, which are no names
_FORMS_OF_ADDRESS = frozenset("sie du vous tu usted tú lei you".split())


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
        if any(word.lower() in _FORMS_OF_ADDRESS or PLACEHOLDER.search(word) for word in words):
            continue
        if re.match(r"(?:,? or|,? and|/|,) ?⟪", clause.text[match.end() :]):
            continue
        spec = _say(words[0])
        if len(words) > 1:
            spec = measure("contains", words=words, all=False)
        return [Draft("address", "requirement", spec)]
    return []


def _either_of(text: str) -> list[str]:
    """The two words of "Sir or Madam"; another text as it is, alone."""
    words = text.split(" or ")
    return words if len(words) == 2 and all(len(word.split()) == 1 for word in words) else [text]


def _say(word: str) -> MeasureSpec:
    """The measure of replies that contain a word; "Ms Li" may also be "Ms. Li"."""
    titled = re.match(r"(Ms|Mr|Mrs|Dr) ", word)
    if titled:
        words = [word, word.replace(titled[1], f"{titled[1]}.", 1)]
        return measure("contains", words=words, all=False)
    return measure("contains", words=[word])


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
# after a word: something else than the word is forbidden, as in "never say "no" to a customer"
_ABOUT_SOMETHING = re.compile(
    r" (?:to(?! (?:me|the user)\b)|about|for|at the|as your|more than)\b", re.I
)

# what stays out of a command, and not out of a reply: "`jest a.ts` (don't include `src/`)"
_PATH = re.compile(r"(?:[\w.@-]+/)+|\.{0,2}/[\w./@-]+")


def _read_forbidden(clause: BotClause) -> list[Draft]:
    """Reads "never say ⟪0⟫ or ⟪1⟫" and "never mention Velox"."""
    words = [word.strip().rstrip(".,!?;:…").rstrip() for word in _forbidden_words(clause)]
    if not words or any(PLACEHOLDER.search(word) or not re.search(r"\w", word) for word in words):
        return []
    if any(map(_PATH.fullmatch, words)):
        return []
    if {word.lower() for word in words} & _FORMS_OF_ADDRESS or words[0].startswith("'"):
        return []
    return [Draft("forbidden", "prohibition", measure("never_contains", words=words))]


def _forbidden_words(clause: BotClause) -> list[str]:
    """The words that a clause forbids; [] if it forbids none."""
    match = first_match(_FORBIDDEN_WORDS, clause.text)
    if match and not _ABOUT_SOMETHING.match(clause.text[match.end() :]):
        return clause.quotations_in(match["quotes"])
    if match := _NAME.search(clause.text):
        return [match["name"]]
    return []


# --- Words that are always said

_INCLUDE = one_of("include", "mention", "use", "add", "say", "write", "have", "contain") + "s?"
_INCLUDES = one_of("includes?", "contains?", "mentions?", "have", "has")
_LINE = r"(?:words? |phrase |line |sentence |disclaimer )"
_LINE_OR_LINK = r"(?:words? |phrase |line |sentence |disclaimer |link )"
_INCLUDING = forms(
    {
        "include the line ⟪0⟫ in every reply": (
            rf"\b{_INCLUDE} (?:the )?{_LINE_OR_LINK}*:? ?{SOLE_QUOTE}(?: at least once)? (?:in|to) "
            rf"(?:every|each|all)(?: of)?(?: your)? ?{REPLY}"
        ),
        "every reply must contain the word ⟪0⟫": (
            r"\b(?:every|each) (?:reply|response|answer|message)"
            rf" (?:(?:must|should|has to|will) )?{_INCLUDES} (?:the )?{_LINE}*:? ?{SOLE_QUOTE}"
        ),
        "always add the disclaimer ⟪0⟫": (
            rf"\balways (?:include|mention|add|use) (?:the )?{_LINE}+:? ?{SOLE_QUOTE}$"
        ),
    }
)


def _read_included(clause: BotClause) -> list[Draft]:
    """Reads "include the line ⟪0⟫ in every reply"."""
    for form in _INCLUDING:
        if match := form.pattern.search(clause.text):
            (quote,) = clause.quotations_in(match["quote"])
            if PLACEHOLDER.search(quote):
                continue
            spec = measure("contains", words=[quote.strip(" .,!?")])
            return [Draft("format", "requirement", spec)]
    return []
