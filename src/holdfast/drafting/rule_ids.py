"""Ids of drafted rules: short names that tell what each rule is about."""

import re
import unicodedata
from dataclasses import replace
from itertools import chain, count, groupby
from typing import NamedTuple

from holdfast.drafting.drafts import Draft
from holdfast.drafting.rules_file import Statement

_MAX_WORDS = 4
_MAX_CHARACTERS = 40
# words that say little about a rule
_FUNCTION_WORDS = frozenset(
    "a an the and of to for on at by is are be do does it its this that these those you your we our"
    " always please must should shall will can may all any each every ever use uses run call make"
    " sure keep ensure them their reply replies response responses answer answers message messages"
    " file files directory folder instead follow follows strictly completely absolutely".split()
)
_NEGATION = re.compile(
    r"\b(?:(?:do|does|must|should|may|shall|will) not(?: ever)?|don't|doesn't|mustn't|shouldn't"
    r"|won't|cannot|can't|can not|no longer|avoid|refrain from|stop)\b"
)
_LINKING_WORDS = frozenset(
    "never not no in or from with without before after only than over when".split()
)


class _ArgumentName(NamedTuple):
    """The name of a rule by an argument of its measure: before, the argument's value, after."""

    before: str
    argument: str
    after: str


# measures whose argument says all of a rule
_NAMES_BY_MEASURE = {
    "at_most_words": _ArgumentName("at-most", "count", "words"),
    "at_most_sentences": _ArgumentName("at-most", "count", "sentences"),
    "word_count": _ArgumentName("exactly", "count", "words"),
    "sentence_count": _ArgumentName("exactly", "count", "sentences"),
    "paragraph_count": _ArgumentName("", "count", "paragraphs"),
    "starts_with": _ArgumentName("starts-with", "word", ""),
    "ends_with": _ArgumentName("ends-with", "word", ""),
    "contains": _ArgumentName("says", "words", ""),
    "never_contains": _ArgumentName("never-says", "words", ""),
    "language": _ArgumentName("language", "code", ""),
}


def rule_id(statement: Statement, rule: Draft, ids: set[str], *, is_alone: bool = True) -> str:
    """An id that no other rule has.

    Args:
        ids: of the other rules; the new id is added to them.
        is_alone: whether the statement states no other rule, so that its words can name this one.
    """
    name = _name_by_measure(rule)
    if not name and not is_alone:
        name = rule.kind
    return _new_id(name or _name_by_words(statement), ids)


def id_by_words(statement: Statement, ids: set[str]) -> str:
    """As `rule_id`, for a statement that no measure decides."""
    return _new_id(_name_by_words(statement), ids)


def _new_id(name: str, ids: set[str]) -> str:
    """The name, with a number behind it if it is taken; it is added to the ids."""
    candidates = chain((name,), (f"{name}-{number}" for number in count(2)))
    new_id = next(candidate for candidate in candidates if candidate not in ids)
    ids.add(new_id)
    return new_id


def _name_by_measure(rule: Draft) -> str:
    """The name of a rule by the argument of its measure, as in "at-most-60-words"; "" if the
    argument does not say all of the rule.
    """
    if rule.measure.name == "never":
        name = _name_by_measure(replace(rule, measure=rule.measure.arguments["measure"]))
        return f"never-{name}" if name else ""
    by_argument = _NAMES_BY_MEASURE.get(rule.measure.name)
    value = rule.measure.arguments.get(by_argument.argument) if by_argument else None
    if by_argument is None or value is None:
        return ""
    text = " or ".join(value) if isinstance(value, list) else str(value)
    words = _plain_words(text)[:_MAX_WORDS]
    if not words:
        return ""
    after = by_argument.after.removesuffix("s") if value == 1 else by_argument.after
    return _join_words([part for part in (by_argument.before, *words, after) if part])


def _name_by_words(statement: Statement) -> str:
    """The first words of a statement that say what it is about, with those that negate or relate
    them, as in "never-push-to-main".
    """
    text = f"{statement.label} {statement.text}".lower().replace("’", "'")
    text = _NEGATION.sub("never", text)
    words: list[str] = []
    for part in re.split(r"(`[^`]*`)", text):
        is_code = part.startswith("`")
        words += [word for word in _plain_words(part) if is_code or word not in _FUNCTION_WORDS]
    first = [word for word, _ in groupby(words)][:_MAX_WORDS]  # a word twice in a row counts once
    while first and first[-1] in _LINKING_WORDS:
        first.pop()
    return _join_words(first) or f"line-{statement.line}"


def _plain_words(text: str) -> list[str]:
    """The words of a text in lower case and without accents."""
    signs = unicodedata.normalize("NFD", text.lower())
    return re.findall(r"[a-z0-9]+", "".join(s for s in signs if not unicodedata.combining(s)))


def _join_words(words: list[str]) -> str:
    """The words with hyphens between them, as many as fit; at least a part of the first."""
    name = words[0][:_MAX_CHARACTERS] if words else ""
    for word in words[1:]:
        if len(name) + 1 + len(word) > _MAX_CHARACTERS:
            break
        name = f"{name}-{word}"
    return name
