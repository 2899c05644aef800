"""The stems of English words: without endings, with one stem for synonyms and irregular forms.

    stem("edits") == stem("editing") == stem("modify")  ->  "edit"
    stem("written")                                     ->  "writ", as stem("write")
    stem("forty")                                       ->  "40"

Each line of `SYNONYMS` is a group of words that mean the same in any rule: "discuss" is not
"mention".
"""

import re
from functools import cache, lru_cache

from holdfast.files import asset
from holdfast.measures.number_words import NUMBER_WORDS

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
_DOUBLED_CONSONANT = re.compile(r"([bdgkmnprt])\1$")  # "runn" of "running"


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
    """Removes the endings of plurals and verbs, and a last "e": "files", "filing" -> "fil"."""
    if len(word) > 4 and word.endswith("ies"):
        word = f"{word[:-3]}y"
    elif len(word) > 4 and re.search(r"(?:s|x|z|ch|sh)es$", word):
        word = word[:-2]
    elif len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if len(word) > len(ending) + 2 and word.endswith(ending):
            word = _DOUBLED_CONSONANT.sub(r"\1", word.removesuffix(ending))
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
