"""Tells words for an agent's acts, such as "push", from the nouns that look like them.

    "Push it to main."             ->  asks for a push
    "Fix the push notifications."  ->  names a thing: "push" is a part of a compound
    "The last commit was wrong."   ->  tells of a commit, and asks for none
    "Do the push."                 ->  asks for a push, as "do" says so

A word that is no part of a compound (`compounds`) is an act that the words around it ask for, tell
of, or leave open. Words that no table here knows, such as the name of a file, are never taken for
nouns.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from holdfast.measures.patterns import find_all
from holdfast.measures.wording.compounds import (
    ADJECTIVES,
    VERB_FORMS,
    WordInText,
    is_in_compound,
)


def acts_named(act: str, text: str) -> Iterator[bool | None]:
    """Yields for each place where a clause names an act whether it asks for the act.

    None if that is not clear. A place where the word is a part of a compound is left out.

    Args:
        act: a regular expression for the words of the act, such as `push`.
    """
    for word in _words_for(act, text):
        yield _asks_for(word)


def names_act(act: str, text: str) -> bool:
    """Whether a text names an act, and not only a thing that has the word in its name."""
    return next(_words_for(act, text), None) is not None


class Noun(NamedTuple):
    """A word for an act that is only a noun in a clause, from `start` on.

    Args:
        head: the word after it in a compound, as "notifications" after "push"; "" without one.
    """

    word: str
    head: str
    start: int


_VERBS = re.compile(rf"(?<![^\W_]){VERB_FORMS.pattern}(?![^\W_])", re.IGNORECASE)
_NEXT_WORD = re.compile(r"[ -]([a-z]+)", re.IGNORECASE)


def nouns_in(clause: str) -> Iterator[Noun]:
    """Yields the words for acts that a clause does not ask for, as "push" in "fix the push"."""
    for match in _VERBS.finditer(clause):
        word = WordInText(clause, *match.span())
        if is_in_compound(word):
            head = _NEXT_WORD.match(clause, word.end)
            yield Noun(word.word, head[1] if head else "", word.start)
        elif _asks_for(word) is False:
            yield Noun(word.word, "", word.start)


def without_nouns(clause: str) -> str:
    """Removes the words for acts that a clause does not ask for.

    >>> without_nouns("fix the push notifications")
    'fix the notifications'
    """
    for noun in reversed([*nouns_in(clause)]):
        clause = clause[: noun.start] + clause[noun.start + len(noun.word) :].lstrip()
    return clause


# --- Where a text names an act

_REQUEST = re.compile(r"(?:pull|merge)[ -]requests?\b", re.IGNORECASE)


def _words_for(act: str, text: str) -> Iterator[WordInText]:
    """Yields where a text names an act: a whole word that is known here, else what matches."""
    for match in find_all(act, text, "i"):
        word = _word_around(text, *match.span())
        if not (word.is_verb_form or word.is_thing):
            yield WordInText(text, *match.span())
        elif not is_in_compound(word):
            yield word


def _word_around(text: str, start: int, end: int) -> WordInText:
    """Returns the word around a match, or the words if it is in "pull request"."""
    end = start + len(text[start:end].rstrip())
    while start > 0 and text[start - 1].isalnum():
        start -= 1
    while 0 < end < len(text) and text[end - 1].isalnum() and text[end].isalnum():
        end += 1
    if request := _REQUEST.match(text, start):
        end = request.end()
    return WordInText(text, start, end)


# --- Whether a clause asks for the act of a noun or a verb

# a predicate, of which the word before is the subject: "the push *failed*", "the release *is* late"
_PREDICATE = re.compile(
    r" (?:(?:still|now|just|also|always|sometimes) )?(?:is|was|are|were|has|had|does|did|isn['’]t"
    r"|wasn['’]t|aren['’]t|doesn['’]t|didn['’]t|fails?|failed|works?|worked|breaks?|broke|takes?"
    r"|took|seems?|looks?|looked|went|goes|gives?|gave|says?|said|hangs?|hung|crash(?:es|ed)"
    r"|contains?|shows?|showed|got|gets|timed|times|prints?|printed|returns?|returned|throws?|threw"
    r"|needs|needed|could|would|might|keeps?|kept|stops?|stopped|happened|appears?|introduced"
    r"|changed|removed|added|caused|errors? out|errored)\b",
    re.IGNORECASE,
)
# gives a permission: "a push *is fine*"
_IS_FINE = re.compile(
    r" (?:is|are|would be) (?:now |also )?(?:fine|ok|okay|good|allowed|approved|great|alright)\b",
    re.IGNORECASE,
)
# makes the word after it a noun: "*the last* push", "*every* commit"
_DETERMINER = re.compile(
    r"(?P<word>\b(?:the|an?|this|that|these|those|my|your|our|their|his|her|its|each|every|another"
    r"|which|what|both|\d+|two|three|last|latest|previous|recent|failed|failing))"
    rf" {ADJECTIVES}\Z",
    re.IGNORECASE,
)
# a determiner, and a word that may be a noun or an adjective, but no verb: "*the login* push"
_DETERMINER_AND_WORD = re.compile(
    r"\b(?:the|an?|this|that|my|your|our|their|its) (?!and\b|or\b|then\b|to\b|please\b)[\w-]+ \Z",
    re.IGNORECASE,
)
_PREPOSITION = re.compile(
    r"\b(?:of|in|on|from|about|during|by|at|via|per|against|between|like|as|upon) \Z",
    re.IGNORECASE,
)
# asks for the act that is named after it: "*do* the push", "*go ahead with* the release"
_CARRIES_OUT = re.compile(
    r"\b(?:do|make|start|begin|perform|run|trigger|execute|write|prepare|roll out"
    r"|split (?:it|this|them|that) (?:up )?into|proceed|go ahead|continue|go on|approve|cut"
    r"|create|open|submit|file|raise|complete|finish|kick off|initiate|ship|publish|ok|okay|yes"
    r"|ready|allow|authorize|authorise|agree)(?:\W+(?:with|to|for|up|now|also|just|please))*\W*\Z",
    re.IGNORECASE,
)
# "I *want this* pushed"
_WANTS_DONE = re.compile(
    r"\b(?:want|need|like|get|have|see) (?:it|them|this|that|these|those)(?: all)? \Z",
    re.IGNORECASE,
)
# a wish, which may be for the act: "*time for* the release", "the push, *please*"
_WISH = re.compile(r"\b(?:want|need|like|please|time for|now|ask\w*)\b", re.IGNORECASE)
# takes the act for granted: "*after* the push, tell me"
_IMPLIES = re.compile(r"\b(?:after|once|when|with|for|until|following) \Z", re.IGNORECASE)
# asks to commit once more: "*put the number into the last* commit"
_PUTS_INTO = re.compile(
    r"\b(?:put|fold|squash|add|include|move|get|bring)\b[^.;:!?]{0,60}"
    r" (?:in|into|to) (?:the|that|your) (?:last|latest|previous|same|first) \Z",
    re.IGNORECASE,
)
# may make another commit: "*revert the last* commit"
_REMAKES = re.compile(
    r"\b(?:revert|squash|amend|reword|cherry-pick|use|into|to)(?: all)?(?: the| a| one)?"
    rf" {ADJECTIVES}\Z",
    re.IGNORECASE,
)
# asks for what is done to a thing: "*open a new* PR"
_HANDLES_THING = re.compile(
    r"\b(?:add|install|introduce|bring|use|open|create|make|submit|raise|file|start|switch|delete"
    r"|remove|close|request|push|upgrade|put up|send|draft|prepare|get)\b"
    r"(?: (?!and\b|then\b|or\b)[^\s.;:!?]+){0,4} \Z",
    re.IGNORECASE,
)
_MAKES_VERB = re.compile(r" (?:this|it|that)\b|,? please\b", re.IGNORECASE)  # "PR *this*"
# an order that is about a thing, and asks for no act: "*fix* the push"
_WORK_ON = (
    r"\b(?:fix|debug|check|review|handle|explain|describe|see|inspect|improve|rename|document"
    r"|implement|show|list|find|refactor|change|move|support|disable|enable|look at|look into|read"
    r"|investigate|understand|resolve|summari[sz]e|compare|test|add|update|remove|edit|rewrite"
    r"|correct|repair|simplify|speed up|shorten|translate)\b"
)
_WORKS_ON = re.compile(rf"{_WORK_ON}[^.;:!?]{{0,40}}\Z", re.IGNORECASE)
_WORKS_ON_NEXT = re.compile(rf"{_WORK_ON} \Z", re.IGNORECASE)  # "*fix* push"


def _asks_for(word: WordInText) -> bool | None:
    """Whether a clause asks for the act that a word names; None if that is not clear."""
    before = word.before
    after = word.after
    if word.is_thing:  # "PR"
        return _asks_for_thing(before, after)
    if not word.is_verb_form:  # a word that no table knows
        return True
    if word.word.lower().endswith("ed") and _WANTS_DONE.search(before):  # "I want this pushed"
        return True
    if determiner := _DETERMINER.search(before):  # "do the push"
        return _asks_for_noun(word.word.lower(), before, after, determiner)
    is_subject = _PREDICATE.match(after) is not None
    if _DETERMINER_AND_WORD.search(before):  # "fix the login push"
        return False if _WORKS_ON.search(before) or is_subject else None
    if is_subject and not _IS_FINE.match(after):  # "push fails"
        return False
    # "push it", but neither "fix push" nor "in push"
    return not (_WORKS_ON_NEXT.search(before) or _PREPOSITION.search(before))


def _asks_for_noun(word: str, before: str, after: str, determiner: re.Match[str]) -> bool | None:
    """Whether a clause asks for the act of a noun: "do the push", but not "fix the push".

    Args:
        before: the text before the word, at whose end the determiner stands.
    """
    before_noun = before[: determiner.start()]
    if _CARRIES_OUT.search(before_noun):  # "do the push"
        return True
    if word == "commit" and _PUTS_INTO.search(before):  # "put it into the last commit"
        return True
    if _IS_FINE.match(after):  # "a push is fine" allows one, "the push is fine" may only tell of it
        return determiner["word"].lower() in ("a", "an") or None
    if word.startswith("commit") and _REMAKES.search(before):  # "revert the last commit"
        return None
    if _WORKS_ON.search(before_noun):  # "fix the push"
        return False
    is_wanted = _WISH.search(f"{before}{after}") is not None  # "the push, please"
    is_implied = _IMPLIES.search(before_noun) is not None  # "after the push, tell me"
    return None if is_wanted or is_implied else False


def _asks_for_thing(before: str, after: str) -> bool | None:
    """Whether a clause asks for what is done to a thing: "open a PR", but not "check the PR"."""
    if _HANDLES_THING.search(before) or _MAKES_VERB.match(after):  # "open a PR", "PR this"
        return True
    is_subject = _PREDICATE.match(after) and not _IS_FINE.match(after)  # "the PR failed"
    if _WORKS_ON.search(before) or is_subject:
        return False
    return None
