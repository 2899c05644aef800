"""The forms of English words, from the lexicon that the package `lemminflect` carries.

For example:

    lemmas_by_part("went")  ->  {"VERB": ("go",)}
    is_plural("museums")    ->  True
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from holdfast.measures.text import folded_words

UNMARKED_PLURALS = frozenset(
    "people police cattle folk clothes trousers scissors glasses thanks".split()
)
_ADVERBS = frozenset(
    "not never always often also just really then usually sometimes only still already even".split()
)
_MAX_ADVERBS = 3  # adverbs that may stand between a verb and the word before it


@dataclass(frozen=True)
class WordInSentence:
    """A word of a sentence, with the words around it."""

    words: Sequence[str]  # of the sentence, folded
    position: int

    @property
    def word(self) -> str:
        return self.words[self.position]

    @property
    def before(self) -> str:
        """The word before, skipping a few adverbs; "" at the start of the sentence."""
        start = max(0, self.position - _MAX_ADVERBS - 1)
        for word in reversed(self.words[start : self.position]):
            if word not in _ADVERBS and not word.endswith("ly"):
                return word
        return ""

    @property
    def after(self) -> str:
        """The next word; "" at the end of the sentence."""
        return "".join(self.words[self.position + 1 : self.position + 2])


def tokens_of(sentence: str) -> list[WordInSentence]:
    """Returns the words of a sentence."""
    words = folded_words(sentence)
    return [WordInSentence(words, position) for position in range(len(words))]


@lru_cache(maxsize=20_000)
def lemmas_by_part(word: str) -> dict[str, tuple[str, ...]]:
    """Returns the lemmas of a word form by part of speech: "NOUN", "VERB", "ADJ" and so on."""
    from lemminflect import getAllLemmas

    by_part: dict[str, tuple[str, ...]] = getAllLemmas(word)
    return by_part


@lru_cache(maxsize=20_000)
def past_forms(lemma: str) -> frozenset[str]:
    """Returns the past tense and past participle of a verb."""
    from lemminflect import getAllInflections

    forms = getAllInflections(lemma, upos="VERB")
    return frozenset((*forms.get("VBD", ()), *forms.get("VBN", ())))


def is_plural(word: str) -> bool:
    """Whether a word can be a plural noun."""
    nouns = lemmas_by_part(word).get("NOUN", ())
    if word in UNMARKED_PLURALS:
        return True
    if not nouns or word in nouns:
        return False
    from lemminflect import getInflection

    return any(word in getInflection(noun, "NNS") for noun in nouns)
