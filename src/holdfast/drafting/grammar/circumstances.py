"""Circumstances of an instruction: "before committing", "in tests", "unless asked".

    "push to `main` unless asked" -> "push", (to, "`main`"), (unless, "asked")

A clause is cut where a phrase such as "before" begins, at marks before code, and before advice.
"""

import re
from typing import NamedTuple

from holdfast.drafting.grammar.clause_tokens import ClauseWords, read_tokens
from holdfast.drafting.grammar.instruction_words import (
    ADVICE_WORDS,
    AFTER_NAMES,
    BENEFITS,
    COMPARED,
    COMPARISONS,
    RELATIONS,
    VERBS,
    Relation,
    longest_phrase,
    phrase_table,
)


class Circumstance(NamedTuple):
    """A circumstance of an instruction: (IN, "tests") of "in tests"."""

    relation: Relation
    text: str


PHRASES = phrase_table(RELATIONS)


def circumstance_of(text: str) -> Circumstance | None:
    """A text that is a circumstance alone, such as the heading "Before committing"; None if it
    begins with no word of a circumstance.
    """
    tokens = read_tokens(text.strip(" .!,:"))
    words = [token.word for token in tokens]
    phrase = longest_phrase(PHRASES, words, 0)
    if not phrase:
        return None
    start = len(phrase.split())
    rest = text[tokens[start].start :] if start < len(tokens) else ""
    return Circumstance(RELATIONS[phrase], rest.strip(" .!,:"))


# --- The circumstances of a clause

ARTICLES = frozenset("the any a an these those all your".split())
_MAX_CIRCUMSTANCES = 40  # so that a long clause takes time in proportion to its length
# after these, a code span after a mark or in brackets is a command: "before pushing (`make`)"
_OCCASIONS = (Relation.BEFORE, Relation.AFTER, Relation.WHEN, Relation.ONCE, Relation.IF)
# "so that it is kept *on save*": a reason goes on with these, and not with an occasion
_REASONS = (Relation.SO, Relation.BECAUSE)
_OF_REASONS = (
    *(Relation.IN, Relation.ON, Relation.FOR, Relation.WITH, Relation.AT, Relation.FROM),
    *(Relation.TO, Relation.AS, Relation.BY),
)
_CODES_IN_BRACKETS = re.compile(r"\(`[^`]*`(?:(?:, | and | or |/)`[^`]*`)*[^`]*\)")


class _Cut(NamedTuple):
    """Where a circumstance begins.

    Args:
        relation: as in `Circumstance`.
        start: the first token of the circumstance.
        text_start: the first token of its text.
    """

    relation: Relation
    start: int
    text_start: int


def split_at_circumstances(clause: ClauseWords, start: int) -> tuple[str, tuple[Circumstance, ...]]:
    """The words up to the first circumstance, and the circumstances, from a token on."""
    cuts = _cuts_from(clause, start)
    bounds = [*(cut.start for cut in cuts), len(clause.tokens)]
    head = clause.text_between(start, bounds[0])
    circumstances: list[Circumstance] = []
    for (relation, _, text_start), end in zip(cuts, bounds[1:], strict=True):
        text = clause.text_between(text_start, end)
        if relation is Relation.AT_ALL and text:  # "edit directly the files" is "edit the files"
            if circumstances:
                text = f"{circumstances[-1].text} {text}".strip()
                circumstances[-1] = circumstances[-1]._replace(text=text)
            else:
                head = f"{head} {text}".strip()
        elif circumstances and circumstances[-1].relation in _REASONS and relation in _OF_REASONS:
            reason = f"{circumstances[-1].text} {relation.value} {text}"
            circumstances[-1] = circumstances[-1]._replace(text=reason)
        elif relation is Relation.FOR and text.split(" ")[-1].lower() in BENEFITS:
            circumstances.append(Circumstance(Relation.BECAUSE, text))
        else:
            circumstances.append(Circumstance(relation, text))
    while (first := head.split(" ", 1))[0].lower() in ARTICLES and len(first) > 1:
        head = first[1]
    return head, tuple(circumstances)


def _cuts_from(clause: ClauseWords, start: int) -> list[_Cut]:
    """Where the circumstances begin, from a token on; advice goes on to the end of the clause."""
    cuts: list[_Cut] = []
    position = start
    while position < len(clause.tokens) and len(cuts) < _MAX_CIRCUMSTANCES:
        last = cuts[-1].relation if cuts else None
        cut = (
            _advice_or_next_step_at(clause, position, last)
            or _explanation_or_command_at(clause, position, last)
            or _phrase_at(clause, position)
        )
        cuts += [cut] if cut else []
        if cut and cut.relation is Relation.ADVICE:
            break
        position = max(position + 1, cut.text_start if cut else 0)
    return cuts


def _advice_or_next_step_at(
    clause: ClauseWords, position: int, last: Relation | None
) -> _Cut | None:
    """Finds ", use `b`", which is advice, and ", then push", which is the next step.

    Args:
        last: the relation of the circumstance before it; None if it is the first.
    """
    word = clause.words[position]
    following = position + 1
    is_in_list = last is Relation.THEN and clause.word(following) in VERBS
    is_advice = clause.word(following) in ADVICE_WORDS and following + 1 < len(clause.words)
    is_advice = is_advice and clause.words[following : following + 2] != ["instead", "of"]
    if word == "," and is_advice and not is_in_list:
        return _Cut(Relation.ADVICE, position, following)
    if word not in (",", "and", "then"):
        return None
    while clause.word(following) in ("and", "then"):
        following += 1
    is_verb = clause.word(following) in VERBS and clause.word(following + 1) not in AFTER_NAMES
    return _Cut(Relation.THEN, position, following) if is_verb else None


def _explanation_or_command_at(
    clause: ClauseWords, position: int, last: Relation | None
) -> _Cut | None:
    """Finds what a mark begins: an explanation, or a command such as `make` in "before pushing:
    `make`" and "before pushing (`make`)".

    Args:
        last: the relation of the circumstance before it; None if it is the first.
    """
    word = clause.words[position]
    following = position + 1
    is_before_code = following < len(clause.tokens) and clause.tokens[following].is_code
    if word in (":", "-", "–", "—", ";"):
        relation = Relation.WITH if is_before_code else Relation.EXPLANATION
        return _Cut(relation, position, following)
    if last in _OCCASIONS and word == "," and is_before_code:
        return _Cut(Relation.WITH, position, following)
    if last in _OCCASIONS and _CODES_IN_BRACKETS.fullmatch(clause.tokens[position].text):
        return _Cut(Relation.WITH, position, position)
    return None


def _phrase_at(clause: ClauseWords, position: int) -> _Cut | None:
    """Finds a phrase such as "before" or "instead of using"."""
    phrase = longest_phrase(PHRASES, clause.words, position)
    if not phrase or (phrase == "following" and clause.words[position - 1] == "the"):
        return None
    before = clause.words[position - 1] if position else ""
    if phrase == "as" and before == "such":
        return None
    if before in ("or", "and") and phrase.endswith(("else", "elsewhere")):
        return None  # "in code or elsewhere" is one place
    following = position + len(phrase.split())
    if RELATIONS[phrase] in COMPARISONS:
        while clause.word(following) in COMPARED:
            following += 1
    return _Cut(RELATIONS[phrase], position, following)
