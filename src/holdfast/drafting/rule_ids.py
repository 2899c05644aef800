"""Ids of drafted rules: short, and so that each tells the sense of its rule."""

import re
import unicodedata
from dataclasses import replace
from itertools import chain, count, groupby

from holdfast.drafting.drafts import Draft
from holdfast.drafting.rules_file import Statement

_MAX_WORDS = 4
_MAX_CHARACTERS = 40
# words that carry little of the sense
_SMALL = frozenset(
    "a an the and of to for on at by is are be do does it its this that these those you your we our"
    " always please must should shall will can may all any each every ever use uses run call make"
    " sure keep ensure them their reply replies response responses answer answers message messages"
    " file files directory folder instead follow follows strictly completely absolutely".split()
)
_NEGATION = re.compile(
    r"\b(?:(?:do|does|must|should|may|shall|will) not(?: ever)?|don't|doesn't|mustn't|shouldn't"
    r"|won't|cannot|can't|can not|no longer|avoid|refrain from|stop)\b"
)
_LINKS = frozenset("never not no in or from with without before after only than over when".split())
# what a measure counts or compares
_BY_MEASURE = {
    "at_most_words": ("at-most", "count", "words"),
    "at_most_sentences": ("at-most", "count", "sentences"),
    "word_count": ("exactly", "count", "words"),
    "sentence_count": ("exactly", "count", "sentences"),
    "paragraph_count": ("", "count", "paragraphs"),
    "starts_with": ("starts-with", "word", ""),
    "ends_with": ("ends-with", "word", ""),
    "contains": ("says", "words", ""),
    "never_contains": ("never-says", "words", ""),
    "language": ("language", "code", ""),
}


def rule_id(statement: Statement, rule: Draft, ids: set[str], is_alone: bool = True) -> str:
    """An id that no other rule has.

    Args:
        ids: of the other rules, to which this one is added.
        is_alone: whether the statement says no other rule, so that its words can name this one.
    """
    name = _name_by_measure(rule)
    if not name and not is_alone:
        name = rule.kind
    return _new_id(name or _name_by_words(statement), ids)


def id_by_words(statement: Statement, ids: set[str]) -> str:
    """As `rule_id`, of a statement that no measure decides."""
    return _new_id(_name_by_words(statement), ids)


def _new_id(name: str, ids: set[str]) -> str:
    candidates = chain((name,), (f"{name}-{number}" for number in count(2)))
    new_id = next(candidate for candidate in candidates if candidate not in ids)
    ids.add(new_id)
    return new_id


def _name_by_measure(rule: Draft) -> str:
    """The name of a rule whose measure says all of it: `at-most-60-words`."""
    spec = rule.measure
    if spec.get("name") == "never":
        name = _name_by_measure(replace(rule, measure=spec["measure"]))
        return f"never-{name}" if name else ""
    before, argument, after = _BY_MEASURE.get(str(spec.get("name")), ("", "", ""))
    value = spec.get(argument)
    if value is None:
        return ""
    text = " or ".join(value) if isinstance(value, list) else str(value)
    words = _plain_words(text)[:_MAX_WORDS]
    if value == 1:
        after = after.removesuffix("s")
    return _joined([part for part in (before, *words, after) if part]) if words else ""


def _name_by_words(statement: Statement) -> str:
    """The words of a statement that carry its sense, with what negates and relates them."""
    text = f"{statement.label} {statement.text}".lower().replace("’", "'")
    text = _NEGATION.sub("never", text)
    words: list[str] = []
    for part in re.split(r"(`[^`]*`)", text):
        is_code = part.startswith("`")
        words += [word for word in _plain_words(part) if is_code or word not in _SMALL]
    first = [word for word, _ in groupby(words)][:_MAX_WORDS]  # of a word twice in a row, one
    while first and first[-1] in _LINKS:
        first.pop()
    return _joined(first) or f"line-{statement.line}"


def _plain_words(text: str) -> list[str]:
    """The words of a text without accents and case."""
    signs = unicodedata.normalize("NFD", text.lower())
    return re.findall(r"[a-z0-9]+", "".join(s for s in signs if not unicodedata.combining(s)))


def _joined(words: list[str]) -> str:
    """The words with hyphens; as many as fit, and at least a part of the first."""
    name = words[0][:_MAX_CHARACTERS] if words else ""
    for word in words[1:]:
        if len(name) + 1 + len(word) > _MAX_CHARACTERS:
            break
        name = f"{name}-{word}"
    return name
