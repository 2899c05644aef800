"""Texts in a plain form: without markup, case and contractions, and with fixed phrases replaced.

    plain_sentence("Don't write more than forty words.")  ->  "do write at most forty words."
    plain_words("**Don't** edit it.")                     ->  ["do", "not", "edit", "it"]

The phrases have only synonyms that keep the meaning of any rule: "try to" is no order.
"""

import re
import unicodedata
from functools import lru_cache
from typing import NamedTuple

from holdfast.measures.number_words import NUMBER_WORDS
from holdfast.measures.text import fold

WORD = re.compile(r"[^\W_]+")

# --- Markup

# the number of a line, as tools show files: "  12→", "12 | "
_LINE_NUMBER = re.compile(r"^[ \t]*\d+(?:→|\t|\|[ \t])", re.MULTILINE)
_MARKUP = re.compile(
    r"^[ \t]*(?:>[ \t]?|#+[ \t]+)+"  # quotations and headings: "> ", "## "
    r"|\*\*|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)",  # bold and italics: "**do**", "_do_"
    re.MULTILINE,
)
_TAG = re.compile(r"</?[a-z][\w-]*>", re.IGNORECASE)  # "<rule>", "</rule>"
_ESCAPED = re.compile(r'\\[nrt"]')  # in a tool result that is JSON


@lru_cache(maxsize=4096)
def without_markup(text: str) -> str:
    """Removes Markdown's marks, tags, line numbers and escapes from a text."""
    text = _ESCAPED.sub(lambda escape: "\n" if escape[0] in (r"\n", r"\r") else " ", text)
    return _MARKUP.sub("", _TAG.sub("\n", _LINE_NUMBER.sub("", text)))


# --- Contractions

_CONTRACTIONS = (
    (re.compile(r"\b(?:pls|plz)\b"), "please"),
    (re.compile(r"\bcan'?t\b|\bcannot\b"), "can not"),
    (re.compile(r"\bwon't\b"), "will not"),
    (re.compile(r"\bdont\b"), "do not"),
    (re.compile(r"(?<=\w)n't\b"), " not"),  # "isn't"
    (re.compile(r"(?<=\bit)'s\b"), " is"),
)
IN_CONTRACTIONS = {word for _, plain in _CONTRACTIONS for word in plain.split()}


def _expand_contractions(text: str) -> str:
    """Writes "do not" for "don't", and the like."""
    for pattern, plain in _CONTRACTIONS:
        text = pattern.sub(plain, text)
    return text


# --- Fixed phrases


class FixedPhrase(NamedTuple):
    """A pattern for texts without case, and what its matches are replaced by."""

    pattern: str
    plain: str


_BEFORE_NUMBER = rf"(?= (?:\d|(?:{'|'.join(NUMBER_WORDS)})\b))"
# phrases whose "no" or "not" negates no other word
_HARMLESS_NEGATIONS = (
    # "not more than 40 words"
    FixedPhrase(r"\b(?:no|not) more than\b", "at most"),
    # "no answer may be longer than a line"
    FixedPhrase(
        r"\bno (\w+ )?(?:(?:has|is|with|may have|may be) )?(?:more|longer) than\b", r"\1at most"
    ),
    # "never write more than a line"
    FixedPhrase(r"\b(?:never|not) (\w+ )(?:more|longer) than\b", r"\1at most"),
    # "not less than 40 words"
    FixedPhrase(r"\b(?:no|not) (?:fewer|less) than\b", "at least"),
    # "under forty words"
    FixedPhrase(rf"\b(?:under|fewer than|less than|shorter than){_BEFORE_NUMBER}", "at most"),
    # "more than forty words"
    FixedPhrase(rf"\b(?:more|longer) than{_BEFORE_NUMBER}", "not at most"),
    # "never forget to greet the user"
    FixedPhrase(r"\b(?:do not|never) forget to\b", ""),
    # "always, without exception"
    FixedPhrase(r"\bwithout (?:exception|fail)\b|\bno exceptions?\b", ""),
    # "no emojis of any kind"
    FixedPhrase(r"\bof any (?:kind|sort)\b|\bany (?:kind|sort)s? of\b", ""),
)
# phrases that stand for a word or two
SYNONYMOUS_PHRASES = (
    # "never rewrite the git history"
    FixedPhrase(r"\brewr(?:ite|iting|ote) (?:the )?(?:\w+ )?history\b", "force push"),
    # "history is never rewritten"
    FixedPhrase(
        r"\bhistory (?:(?:is|are|must|may|should|can) (?:not|never) (?:to )?(?:be )?)rewritten\b",
        "not force push",
    ),
    # "pip is off the table"
    FixedPhrase(
        r"\b(?:is|are) (?:strictly )?(?:taboo|out of bounds|off the table|a no-go"
        r"|out of the question)(?!\w)",
        "is forbidden",
    ),
    # "stay away from generated files"
    FixedPhrase(
        r"\b(?:refrain|abstain|keep away|stay away|stay clear|steer clear|hands off|keep out"
        r"|stay out|stay off)(?: (?:from|of))?\b",
        "avoid",
    ),
    # "migrations are read-only"
    FixedPhrase(r"\bread-only\b", "must not be edited"),
    # "the file stays as it is"
    FixedPhrase(
        r"\b(?:stays?|remains?) (?:as (?:it|they) (?:is|are)|unchanged)\b|\bunchanged\b",
        "must not be changed",
    ),
    # "bring up the discount"
    FixedPhrase(
        r"\b(?:bring|bringing|brought) up\b|\bspeak(?:ing)? of\b|\brefer(?:ring)? to\b", "mention"
    ),
    # "sign off with 'Pip'", "at the end of the reply"
    FixedPhrase(r"\bsign(?:s|ing|ed)? off (?:with|on)\b|\b(?:at|by) the end of\b", "end"),
    # "at the top of each file"
    FixedPhrase(r"\bat the (?:start|beginning|top) of\b", "start"),
    # "prior to a push"
    FixedPhrase(r"\bahead of\b|\bprior to\b", "before"),
    # "40 words are the limit"
    FixedPhrase(r"\b(?:is|are) the (?:maximum|limit|most)\b", "at most"),
    # "a maximum of 40 words", "up to 40 words"
    FixedPhrase(
        r"\b(?:a )?(?:maximum|limit) of\b|\bmax(?:imum)?\b"
        r"|\bup to\b(?= \w+ (?:word|sentence|line))",
        "at most",
    ),
    # "could not you push it?", which was "couldn't you"
    FixedPhrase(r"\b(?:can|could|will|would|do) not you\b", "can you"),
    # "no more emojis"
    FixedPhrase(r"\bno more (?=[a-z]+s\b)", "no "),
    # "ok, back to English"
    FixedPhrase(
        r"^(?:please |ok(?:ay)?,? |now )?(?:(?:go|switch|change|come) )?back to"
        r" (?=\w+(?:,|\.|!|$| please))",
        "always use ",
    ),
    # "tell me exactly how much it is"
    FixedPhrase(r"\btell me (?:exactly )?(?:what|how (?:much|many))\b", "give me the answer"),
)
_ALL_PHRASES = (*_HARMLESS_NEGATIONS, *SYNONYMOUS_PHRASES)
_PHRASES = [(re.compile(phrase.pattern), phrase.plain) for phrase in _ALL_PHRASES]
_ANY_PHRASE = re.compile(rf"\b(?=\w)(?:{'|'.join(phrase.pattern for phrase in _ALL_PHRASES)})")
_CALL_BRACKETS = re.compile(r"(?<=\w)\(\)")  # of a function, as in `print()`


@lru_cache(maxsize=65536)
def plain_sentence(sentence: str) -> str:
    """Removes case, contractions and the `()` of functions from a sentence, and writes its fixed
    phrases plainly.
    """
    text = _expand_contractions(fold(unicodedata.normalize("NFKC", sentence)))
    text = _CALL_BRACKETS.sub("", " ".join(text.split()))
    if _ANY_PHRASE.search(text):
        for pattern, plain in _PHRASES:
            text = pattern.sub(plain, text)
    return text


# --- Words


class PlacedWord(NamedTuple):
    """A word of a text, and the number of its sentence."""

    word: str
    sentence: int


# between two sentences: ". ", or a line break before an item of a list
_STOP_BETWEEN = re.compile(r"[.!?;]\s|\n\s*(?:[-*•>#]|\d+[.)]|\n)")


@lru_cache(maxsize=256)
def _without_case(text: str) -> str:
    """Removes markup, case and contractions from a text."""
    return _expand_contractions(fold(unicodedata.normalize("NFKC", without_markup(text))))


def plain_words(text: str) -> list[str]:
    """Returns the words of a text without markup, case and contractions."""
    return WORD.findall(_without_case(text))


@lru_cache(maxsize=4096)
def placed_words(text: str) -> tuple[PlacedWord, ...]:
    """Returns the words of a text as `plain_words` does, each with the number of its sentence."""
    plain = _without_case(text)
    words: list[PlacedWord] = []
    sentence = 0
    end = 0
    for word in WORD.finditer(plain):
        if words and _STOP_BETWEEN.search(plain, end, word.start()):
            sentence += 1
        words.append(PlacedWord(word[0], sentence))
        end = word.end()
    return tuple(words)


def words_for_phrases(words: list[str]) -> list[str]:
    """Returns the plain words for the fixed phrases among the words of a text.

    >>> words_for_phrases("do it prior to a push".split())
    ['before']
    """
    joined = " ".join(words)
    if not _ANY_PHRASE.search(joined):
        return []
    phrases = (phrase for phrase in SYNONYMOUS_PHRASES if re.search(phrase.pattern, joined))
    return [word for phrase in phrases for word in phrase.plain.split()]
