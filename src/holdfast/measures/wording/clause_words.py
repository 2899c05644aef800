"""The words of texts and of their clauses, without markup, case, endings and contractions.

The content words of a clause are *signed*: each with whether the clause asks for it or forbids it.

    "Never edit the generated files"  ->  -edit -generat -fil
    "Modify the files"                ->  +edit +fil        ("modify" is a synonym of "edit")

Each line of `SYNONYMS` is a group of words that mean the same in a rule; `PHRASES` has synonyms of
several words. Both have only synonyms that keep the meaning of any rule: "discuss" is not
"mention", and "try to" is no order.
"""

import re
import unicodedata
from functools import cache, lru_cache
from typing import NamedTuple

from holdfast.files import asset
from holdfast.measures.number_words import NUMBER_WORDS
from holdfast.measures.text import fold

# --- Stems and synonyms

SYNONYMS = """
start begin open prefix preface
end finish close conclude
reply answer response respond
edit change modify alter touch amend
delete remove erase wipe
mention name
competitor rival competition
discount rebate
install add
show display paste print post dump
code snippet function
chat conversation dialog dialogue
folder directory
database db
production prod
connect access
short brief concise terse
customer client buyer
run execute
test suite
dependency package library
phone telephone
email mail
recommend suggest
cm centimetre centimeter
m metre meter
lint linter linting
secret confidential
""".split("\n")

# patterns for texts without case and contractions, and the words that stand for their matches
PHRASES = (
    (r"\brewr(?:ite|iting|ote) (?:the )?(?:\w+ )?history\b", "force push"),
    (r"\bhistory (?:(?:is|are|must|may|should|can) (?:not|never) (?:to )?(?:be )?)rewritten\b",
     "not force push"),
    (r"\b(?:is|are) (?:strictly )?(?:taboo|out of bounds|off the table|a no-go|out of the question)"
     r"(?!\w)", "is forbidden"),
    (r"\b(?:refrain|abstain|keep away|stay away|stay clear|steer clear|hands off|keep out|stay out"
     r"|stay off)(?: (?:from|of))?\b", "avoid"),
    (r"\bread-only\b", "must not be edited"),
    (r"\b(?:stays?|remains?) (?:as (?:it|they) (?:is|are)|unchanged)\b|\bunchanged\b",
     "must not be changed"),
    (r"\b(?:bring|bringing|brought) up\b|\bspeak(?:ing)? of\b|\brefer(?:ring)? to\b", "mention"),
    (r"\bsign(?:s|ing|ed)? off (?:with|on)\b|\b(?:at|by) the end of\b", "end"),
    (r"\bat the (?:start|beginning|top) of\b", "start"),
    (r"\bahead of\b|\bprior to\b", "before"),
    (r"\b(?:is|are) the (?:maximum|limit|most)\b", "at most"),
    (r"\b(?:a )?(?:maximum|limit) of\b|\bmax(?:imum)?\b|\bup to\b(?= \w+ (?:word|sentence|line))",
     "at most"),
    (r"\b(?:can|could|will|would|do) not you\b", "can you"),
    (r"\bno more (?=[a-z]+s\b)", "no "),
    (r"^(?:please |ok(?:ay)?,? |now )?(?:(?:go|switch|change|come) )?back to"
     r" (?=\w+(?:,|\.|!|$| please))", "always use "),
    (r"\btell me (?:exactly )?(?:what|how (?:much|many))\b", "give me the answer"),
)  # fmt: skip


@lru_cache(maxsize=65536)
def stem(word: str) -> str:
    """Returns a word without the commonest English endings.

    A number word becomes digits, an irregular form its verb, and a synonym the first of its group.
    """
    if word in NUMBER_WORDS:
        return str(NUMBER_WORDS[word])
    ending = _without_ending(irregular_verbs().get(word, word))
    return _GROUPS.get(ending, ending)


@cache
def irregular_verbs() -> dict[str, str]:
    """Returns the verb of each irregular form, such as "write" of "written".

    Forms that end in "s", "ed" or "ing" are left out, and forms that are another word too ("left").
    The file has a verb and its forms on each line. It is made from the lexicon of `lemminflect`,
    which would take half a second to load.
    """
    verbs: dict[str, str] = {}
    for line in asset("irregular_verbs.txt").splitlines():
        verb, *forms = line.split()
        verbs.update(dict.fromkeys(forms, verb))
    return verbs


def _without_ending(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        word = f"{word[:-3]}y"
    elif len(word) > 4 and re.search(r"(?:s|x|z|ch|sh)es$", word):
        word = word[:-2]
    elif len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if len(word) > len(ending) + 2 and word.endswith(ending):
            word = word.removesuffix(ending)
            word = re.sub(r"([bdgkmnprt])\1$", r"\1", word)
            break
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def _first_synonyms() -> dict[str, str]:
    """Returns, by the stem of each synonym, the stem of the first word in its group."""
    groups: dict[str, str] = {}
    for line in SYNONYMS:
        stems = [_without_ending(word) for word in line.split()]
        groups |= dict.fromkeys(stems[1:], stems[0] if stems else "")
    return groups


_GROUPS = _first_synonyms()


# --- Words and signed words


class SignedWord(NamedTuple):
    """A content word of a clause, without its ending, and whether the clause asks for it."""

    stem: str
    is_wanted: bool


SignedWords = frozenset[SignedWord]


class PlacedWord(NamedTuple):
    """A word of a text, and the number of its sentence."""

    word: str
    sentence: int


WORD = re.compile(r"[^\W_]+")

# --- Markup

# the number of a line, as tools show files
_LINE_NUMBER = re.compile(r"^[ \t]*\d+(?:→|\t|\|[ \t])", re.MULTILINE)
_MARKUP = re.compile(
    r"^[ \t]*(?:>[ \t]?|#+[ \t]+)+"  # quotations and headings
    r"|\*\*|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)",  # bold and italics
    re.MULTILINE,
)
_TAG = re.compile(r"</?[a-z][\w-]*>", re.IGNORECASE)
_ESCAPED = re.compile(r'\\[nrt"]')  # in a tool result that is JSON
_STOP_BETWEEN = re.compile(r"[.!?;]\s|\n\s*(?:[-*•>#]|\d+[.)]|\n)")  # between two sentences

# --- Fixed phrases

_CONTRACTIONS = (
    (re.compile(r"\b(?:pls|plz)\b"), "please"),
    (re.compile(r"\bcan'?t\b|\bcannot\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"\bdont\b"), "do not"),
    (re.compile(r"(?<=\w)n't\b"), " not"),
    (re.compile(r"(?<=\bit)'s\b"), " is"),
)
IN_CONTRACTIONS = {word for _, plain in _CONTRACTIONS for word in plain.split()}

_BEFORE_NUMBER = rf"(?= (?:\d|(?:{'|'.join(NUMBER_WORDS)})\b))"
# phrases whose "no" or "not" negates no other word, and what they become
_HARMLESS_NEGATIONS = (
    (r"\b(?:no|not) more than\b", "at most"),
    (r"\bno (\w+ )?(?:(?:has|is|with|may have|may be) )?(?:more|longer) than\b", r"\1at most"),
    (r"\b(?:never|not) (\w+ )(?:more|longer) than\b", r"\1at most"),
    (r"\b(?:no|not) (?:fewer|less) than\b", "at least"),
    (rf"\b(?:under|fewer than|less than|shorter than){_BEFORE_NUMBER}", "at most"),
    (rf"\b(?:more|longer) than{_BEFORE_NUMBER}", "not at most"),
    (r"\b(?:do not|never) forget to\b", ""),
    (r"\bwithout (?:exception|fail)\b|\bno exceptions?\b", ""),
    (r"\bof any (?:kind|sort)\b|\bany (?:kind|sort)s? of\b", ""),
)
_ALL_PHRASES = (*_HARMLESS_NEGATIONS, *PHRASES)
_PHRASES = [(re.compile(pattern), plain) for pattern, plain in _ALL_PHRASES]
_ANY_PHRASE = re.compile(rf"\b(?=\w)(?:{'|'.join(pattern for pattern, _ in _ALL_PHRASES)})")

# --- Negations

# negates all of its clause: "the main branch must never be pushed to", "pip is forbidden"
_NEGATES_CLAUSE = re.compile(
    r"\b(?:forbidden|prohibited|banned|disallowed|off[ -]limits|untouched)\b"
    r"|\b(?:is|are|be|been|must|may|should|can|could|shall|has|have) (?:never|not)\b"
    r"|\bleave\b.*\balone\b|\b(?:must|should|has to|have to|to) be avoided\b"
)
# negates what follows it in its clause
_NEGATES_REST = re.compile(
    r"\b(?:never|not|no|nothing|none|neither|nor|without|avoid(?:ing|s)?|stop|skip|drop"
    r"|forb(?:id|ids|ade)|prohibits?|bans?"
    r"|instead of|rather than|forget(?: about)?|prefers?\b.*?\bover)\b"
)

# --- Content words

_STOP_WORDS = frozenset(
    "a an the this that these those it its i me my we us our you your he she they them their and or"
    " but so if then than as of in on at to for from with by into through under over up about be is"
    " are was were been being am do does did done has have had having will would shall should can"
    " could may might must always ever every each all any some please also just only when where"
    " which who what how there here too very such other another own never not no nothing none"
    " neither nor without avoid avoided stop skip drop instead rather forget ignore user users rule"
    " rules want wants asked asks said remember mind note sure forbidden prohibited banned allowed"
    " permitted alone leave said now again directly forbid forbids forbade prohibit prohibits ban"
    " bans".split()
)
# words that a paraphrase does not replace
_ANCHOR = re.compile(
    r"[\"“`']([^\"”`']+)[\"”`']"  # in quotation marks
    r"|(?<![\w.])(\.?\w+(?:[./_-]\w+)+/?|\.\w+|\w+/)(?!\w)"  # a path or an identifier
    r"|(?<=[\w,] )([A-Z]\w+)"  # a name
    r"|\b(\d+)\b"
)


@lru_cache(maxsize=4096)
def without_markup(text: str) -> str:
    """Removes Markdown's marks, tags, line numbers and escapes from a text."""
    text = _ESCAPED.sub(lambda escape: "\n" if escape[0] in (r"\n", r"\r") else " ", text)
    return _MARKUP.sub("", _TAG.sub("\n", _LINE_NUMBER.sub("", text)))


@lru_cache(maxsize=256)
def _normalise(text: str) -> str:
    """Removes markup, case and contractions from a text."""
    return _expand_contractions(fold(unicodedata.normalize("NFKC", without_markup(text))))


def _expand_contractions(text: str) -> str:
    """Writes "do not" for "don't", and the like."""
    for pattern, plain in _CONTRACTIONS:
        text = pattern.sub(plain, text)
    return text


@lru_cache(maxsize=4096)
def placed_words(text: str) -> tuple[PlacedWord, ...]:
    """Returns the words of a text without case and contractions, each with its sentence."""
    plain = _normalise(text)
    words: list[PlacedWord] = []
    sentence = 0
    end = 0
    for word in WORD.finditer(plain):
        if words and _STOP_BETWEEN.search(plain, end, word.start()):
            sentence += 1
        words.append(PlacedWord(word[0], sentence))
        end = word.end()
    return tuple(words)


@lru_cache(maxsize=4096)
def stems(text: str) -> frozenset[str]:
    """Returns the stems of a text's words, and of the plain words for its fixed phrases."""
    words = WORD.findall(_normalise(text))
    joined = " ".join(words)
    if not _ANY_PHRASE.search(joined):
        return frozenset(map(stem, words))
    phrases = (plain for pattern, plain in PHRASES if re.search(pattern, joined))
    return frozenset(map(stem, [*words, *" ".join(phrases).split()]))


@lru_cache(maxsize=65536)
def plain_sentence(sentence: str) -> str:
    """Removes case, contractions and the `()` of functions from a sentence, and writes its fixed
    phrases plainly.
    """
    text = _expand_contractions(fold(unicodedata.normalize("NFKC", sentence)))
    text = re.sub(r"(?<=\w)\(\)", "", " ".join(text.split()))  # of a function, as in `print()`
    if _ANY_PHRASE.search(text):
        for pattern, plain in _PHRASES:
            text = pattern.sub(plain, text)
    return text


def _content_stems(text: str) -> set[str]:
    return {stem(word) for word in WORD.findall(text) if word not in _STOP_WORDS}


@lru_cache(maxsize=65536)
def signed_words(clause: str) -> SignedWords:
    """Returns the content words of a clause, each with whether it is asked for."""
    if _NEGATES_CLAUSE.search(clause):
        rest = _NEGATES_CLAUSE.sub(_without_limits, clause)
        return frozenset(SignedWord(word, False) for word in _content_stems(rest))
    negation = _NEGATES_REST.search(clause)
    if negation is None:
        return frozenset(SignedWord(word, True) for word in _content_stems(clause))
    wanted = {SignedWord(word, True) for word in _content_stems(clause[: negation.start()])}
    unwanted = {SignedWord(word, False) for word in _content_stems(clause[negation.end() :])}
    return frozenset(wanted | unwanted)


def _without_limits(negation: re.Match[str]) -> str:
    """Removes "off limits", whose words are not in the list of stop words, from a negation."""
    return re.sub(r"\boff[ -]limits\b", "", negation[0])


def is_negated(clause: str) -> bool:
    """Whether a clause forbids something, or denies it."""
    return bool(_NEGATES_CLAUSE.search(clause) or _NEGATES_REST.search(clause))


def anchors(sentence: str) -> set[str]:
    """Returns the words that a paraphrase keeps: numbers, names, paths, and what is quoted."""
    words: set[str] = set()
    for anchor in _ANCHOR.finditer(sentence):
        words |= _content_stems(fold(next(filter(None, anchor.groups()))))
    all_stems = {stem(word) for word in WORD.findall(fold(sentence))}
    return words | {word for word in all_stems if word.isdecimal()}
