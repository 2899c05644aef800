"""Finds orders that ask for what a measure forbids, even if they share no word with its rule.

    rule:   "Never push to main.", decided by command_not_run: git push .*main
    order:  "Get it onto main, please."      ->  the order would break the rule
            "Why did you push to main?"      ->  no order
            "Do not push it to main yet."    ->  an order, but not against the rule

`measure_words` has the words of such orders for each measure.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

from holdfast.measures.measure_specs import Measure, inner_specs, read_spec
from holdfast.measures.wording.act_nouns import without_nouns
from holdfast.measures.wording.clause_words import is_negated
from holdfast.measures.wording.measure_words import MEASURE_WORDS
from holdfast.measures.wording.orders import OrderClause, requests_in
from holdfast.measures.wording.sentences import Passage
from holdfast.measures.wording.wordings import Cues, MeasureWords, OrderAboutIt, Patterns

# measures of the acts that commands do, whose words are nouns too: "fix the push"
_COMMAND_MEASURES = ("command_not_run", "prefers")
# in the pattern of a measure `regex`, the class of emoji: `\p{Emoji}`
_EMOJI_CLASS = re.compile(r"\\p\{(?:Extended_Pictographic|Emoji)")

# --- Requests to leave something out

_IT = r"(?:it|that|them|this|these|those)"
# "*skip* the greeting", "*without* emojis", "can you *not* ask a question"
_OMITS = re.compile(
    r"\b(?:(?:do|can we|could we|can you|could you|would you) not"
    r"|stop|skip(?:ping)?|drop|omit|lose|cut|ditch|leave|spare|remove|forget|rid of"
    r"|without|no|less|fewer|enough|instead of)\b"
)
# such words that leave in what is named after a place: "*less* noise *in* the changelog"
_LESS = ("less", "fewer", "enough")
_PLACE = re.compile(r"\b(?:in|on|from|of|about|to)\b")
# the thing was named before: "*leave it out*", "*spare me that*"
_OMITS_IT = re.compile(
    rf"\b(?:(?:leave|cut) {_IT} (?:out|off|away)"
    rf"|(?:drop|skip|omit|lose|remove|ditch|stop) (?:{_IT}|doing (?:it|that|this))"
    r"|do not do (?:it|that|this)"
    r"|spare (?:me|us) (?:it|that))\b"
)
# asks to leave nothing out: "*do not forget* the greeting"
_KEEPS = re.compile(r"\b(?:do not|never) (?:forget|skip|drop|omit|leave|stop|lose)\b")

# --- Requests only to look at something

# "*check* the JSON", "*can you explain* the JSON"; but "review it in English" and "explain the JSON
# in detail" are orders that may break a rule
_ONLY_READS = re.compile(
    r"(?:(?:can|could|would|will) you |please |just )*"
    r"(?:(?:check|compare|list|review|mention|read)\b"
    r"|make sure\b.* (?:is|are) (?:fine|okay|ok)\b"
    r"|(?:describe|explain|tell me about)\b"
    r"(?!.* (?:in (?:\w+ )?(?:detail|depth|full)|at length|fully|thoroughly|step[ -]by[ -]step)"
    r"(?: please)?\W*$))"
    r"(?! (?:it )?in\b)"
)


def breaking_orders(text: str, measure: Measure) -> Iterator[Passage]:
    """Yields the passages of a user's message that order what a measure forbids."""
    cues = _cues_of_measure(measure)
    if not cues:
        return
    for request in requests_in(text):
        if measure.name in _COMMAND_MEASURES:
            request = replace(request, clause=without_nouns(request.clause))
        for cue in cues:
            if passage := _breaking_passage(request, cue):
                yield passage


@lru_cache(maxsize=256)
def _cues_of_measure(measure: Measure) -> tuple[Cues, ...]:
    """Returns the cues of a measure that are not empty; cached, as they take time to build."""
    return tuple(cues for cues in _cues_of_spec(measure.spec) if cues != Cues())


def _cues_of_spec(spec: Any) -> Iterator[Cues]:
    """Yields the cues of a measure, and of the measures that it combines."""
    name, arguments = read_spec(spec)
    if name == "never":
        forbidden, its_arguments = read_spec(arguments["measure"])
        if forbidden == "regex" and _EMOJI_CLASS.search(str(its_arguments.get("regex"))):
            forbidden, its_arguments = "emoji", {}
        yield _words_of(forbidden).orders_for(its_arguments)
        return
    yield _words_of(name).orders_against(arguments)
    for inner in inner_specs(arguments):
        yield from _cues_of_spec(inner)


def _words_of(name: str) -> MeasureWords:
    return MEASURE_WORDS.get(name, MeasureWords())


def _breaking_passage(request: OrderClause, cues: Cues) -> Passage | None:
    """Returns the passage of a request that has one of the cues; None for any other request."""
    if cues.demanded and _leaves_out(request, cues.demanded):
        return replace(request.passage, lasts=cues.demanded_lasts and not request.is_once)
    if _ONLY_READS.match(request.clause):
        return None
    asks = any(_asks_for(request.clause, patterns) for patterns in cues.forbidden)
    if not asks and not any(_asks_for_it(request, order) for order in cues.forbidden_it):
        return None
    if cues.forbidden_lasts and not request.is_once:
        return replace(request.passage, lasts=True)
    return request.passage


def _leaves_out(request: OrderClause, thing: str) -> bool:
    """Whether a request asks to leave out a thing, which a pattern names, or "it" after it."""
    if _KEEPS.search(request.clause):
        return False
    omits = _OMITS.search(request.clause)
    named = re.compile(thing).search(request.clause, omits.end()) if omits else None
    if omits and named:
        between = request.clause[omits.end() : named.start()]
        return not (omits[0] in _LESS and _PLACE.search(between))
    return bool(_OMITS_IT.search(request.clause) and re.search(thing, request.around))


def _asks_for(clause: str, patterns: Patterns) -> bool:
    """Whether a clause matches all patterns, and has no negation outside these matches."""
    rest = clause
    for pattern in patterns:
        if not re.search(pattern, clause):
            return False
        rest = re.sub(pattern, " ", rest)
    return not is_negated(rest)


def _asks_for_it(request: OrderClause, order: OrderAboutIt) -> bool:
    """Whether a request is an order about "it", and the thing is named around it."""
    named = re.search(order.thing, request.around) is not None
    return named and _asks_for(request.clause, (order.order,))
