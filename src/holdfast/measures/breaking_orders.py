"""Orders that ask for what a measure forbids, in words that its rule need not share.

The rule "Never push to main." is a measure of commands: "get it onto main, please" orders one that
the measure would score 0. `measure_words` has the words of such orders for each measure.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

from holdfast.measures.clause_words import is_negated
from holdfast.measures.measure_specs import Measure, inner_specs, read_spec
from holdfast.measures.measure_words import MEASURE_WORDS, Cues, MeasureWords
from holdfast.measures.orders import Passage, Request, requests_in


def breaking_orders(text: str, measure: Measure) -> Iterator[Passage]:
    """The passages of a user's message that order what a measure forbids."""
    cues = _cues_for(measure)
    for request in requests_in(text) if cues else ():
        for cue in cues:
            if passage := _ordered(request, cue):
                yield passage


@lru_cache(maxsize=256)
def _cues_for(measure: Measure) -> tuple[Cues, ...]:
    """The cues of a measure, made once."""
    return tuple(cues for cues in _cues_of(measure.spec) if cues != Cues())


def _cues_of(spec: Any) -> Iterator[Cues]:
    """The cues of a measure, and of those that it combines."""
    name, arguments = read_spec(spec)
    if name == "never":
        forbidden, its_arguments = read_spec(arguments["measure"])
        yield _words_of(forbidden).orders_for(its_arguments)
        return
    yield _words_of(name).orders_against(arguments)
    for inner in inner_specs(arguments):
        yield from _cues_of(inner)


def _words_of(name: str) -> MeasureWords:
    return MEASURE_WORDS.get(name, MeasureWords())


def _ordered(request: Request, cues: Cues) -> Passage | None:
    """The passage of a request that breaks the measure of these cues; None if it does not."""
    if cues.demanded and _leaves_out(request, cues.demanded):
        return replace(request.passage, lasts=cues.demanded_lasts and not request.is_once)
    if _READS.match(request.clause):
        return None
    if not any(_asks_for(request.clause, patterns) for patterns in cues.forbidden):
        return None
    if cues.forbidden_lasts and not request.is_once:
        return replace(request.passage, lasts=True)
    return request.passage


def _asks_for(clause: str, patterns: tuple[str, ...]) -> bool:
    """Whether a clause matches all patterns, and has no negation besides."""
    rest = clause
    for pattern in patterns:
        if not re.search(pattern, clause):
            return False
        rest = re.sub(pattern, " ", rest)
    return not is_negated(rest)


# --- Requests to leave something out

_OMITS = (
    r"\b(?:(?:do|can we|could we|can you|could you|would you) not|stop|skip(?:ping)?|drop|omit|lose"
    r"|cut|ditch|without|no|less|fewer|leave|spare|enough|remove|forget|rid of|instead of)\b"
)
_OMITS_IT = re.compile(
    r"\b(?:(?:leave|cut) (?:it|that|them|this|these|those) (?:out|off|away)|(?:drop|skip|omit|lose"
    r"|remove|ditch|stop) (?:it|that|them|this|these|those|doing (?:it|that|this))"
    r"|do not do (?:it|that|this)|spare (?:me|us) (?:it|that))\b"
)
_KEEPS = re.compile(r"\b(?:do not|never) (?:forget|skip|drop|omit|leave|stop|lose)\b")


def _leaves_out(request: Request, named: str) -> bool:
    """Whether a request asks to leave out what a pattern names, or "it" after naming it."""
    if _KEEPS.search(request.clause):
        return False
    if re.search(rf"{_OMITS}.*?(?:{named})", request.clause):
        return True
    return bool(_OMITS_IT.search(request.clause) and re.search(named, request.around))


_READS = re.compile(
    r"(?:(?:can|could|would|will) you |please |just )*(?:check|compare|describe|explain|list|review"
    r"|mention|tell me about|read)\b(?! (?:it )?in\b)"
)
