"""Ids of drafted rules: short names that say what each rule is about.

For example:

    at_most_words(count=60)         -> "at-most-60-words"
    "Never push to the main branch" -> "never-push-main-branch"
"""

import re
from dataclasses import replace
from itertools import groupby

from holdfast.drafting.drafts import Draft
from holdfast.drafting.rules_file import Statement
from holdfast.measures.text import without_accents

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


_ABBREVIATIONS = re.compile(r"\b(?:e\.g|i\.e|etc)\b\.?", re.I)  # "e.g." is no word about a rule


# measures of which one argument says all of a rule: the argument, and the name with its value
_NAMES_BY_MEASURE = {
    "at_most_words": ("count", "at-most-{}-words"),
    "at_most_sentences": ("count", "at-most-{}-sentences"),
    "word_count": ("count", "exactly-{}-words"),
    "sentence_count": ("count", "exactly-{}-sentences"),
    "paragraph_count": ("count", "{}-paragraphs"),
    "starts_with": ("word", "starts-with-{}"),
    "ends_with": ("word", "ends-with-{}"),
    "contains": ("words", "says-{}"),
    "never_contains": ("words", "never-says-{}"),
    "language": ("code", "language-{}"),
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
    """The name, with a number appended if it is taken; it is added to the ids."""
    new_id = name if name not in ids else f"{name}-{_free_number(name, ids)}"
    ids.add(new_id)
    return new_id


def _free_number(name: str, ids: set[str]) -> int:
    """A number from 2 on that no id with this name has: the lowest, unless others were left out.

    The numbers up to a free one are halved, since a file may repeat a line thousands of times.
    """
    taken, free = 1, 2
    while f"{name}-{free}" in ids:
        taken, free = free, 2 * free
    while free - taken > 1:
        middle = (taken + free) // 2
        if f"{name}-{middle}" in ids:
            taken = middle
        else:
            free = middle
    return free


def _name_by_measure(rule: Draft) -> str:
    """The name of a rule by the argument of its measure, as in "at-most-60-words"; "" if the
    argument does not say all of the rule.
    """
    if rule.measure.name == "never":
        name = _name_by_measure(replace(rule, measure=rule.measure.arguments["measure"]))
        return f"never-{name}" if name else ""
    argument, template = _NAMES_BY_MEASURE.get(rule.measure.name, ("", ""))
    value = rule.measure.arguments.get(argument)
    if value is None:
        return ""
    text = " or ".join(value) if isinstance(value, list) else str(value)
    words = _plain_words(text)[:_MAX_WORDS]
    if not words:
        return ""
    name = template.format("-".join(words))
    return _join_words((name.removesuffix("s") if value == 1 else name).split("-"))


def _name_by_words(statement: Statement) -> str:
    """The first words of a statement that say what it is about, with those that negate or relate
    them, as in "never-push-to-main".
    """
    text = f"{statement.label} {statement.text}".lower().replace("’", "'")
    text = _NEGATION.sub("never", _ABBREVIATIONS.sub("", text))
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
    return re.findall(r"[a-z0-9]+", without_accents(text.lower()))


def _join_words(words: list[str]) -> str:
    """The words with hyphens between them, as many as fit; at least a part of the first."""
    name = words[0][:_MAX_CHARACTERS] if words else ""
    for word in words[1:]:
        if len(name) + 1 + len(word) > _MAX_CHARACTERS:
            break
        name = f"{name}-{word}"
    return name
