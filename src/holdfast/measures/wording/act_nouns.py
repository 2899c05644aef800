"""Tells words for an agent's acts, such as "push", from the nouns that look like them.

    "Push it to main."             ->  asks for a push
    "Fix the push notifications."  ->  names a thing: `push` is a part of a compound
    "The last commit was wrong."   ->  tells of a commit, and asks for none
    "Do the push."                 ->  asks for a push, as "do" says so

A word is first looked up as an act or a thing, then as a part of a compound; what is left is an act
that the words around it ask for, tell of, or leave open. Words that no table here knows, such as
the name of a file, are never taken for nouns.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from holdfast.measures.patterns import find_all

# --- Acts and things

# verbs whose form is a noun too, with their other forms
_VERB_FORMS = re.compile(
    r"(?:push|commit|merge?|releas|deploy|publish|test|run|build|tag|stash|rebas|reset|install"
    r"|revert|amend|delet)(?:e|es|ed|d|s|ing|ted|ting|ging|ged|ning|ment|ments|ation)?",
    re.IGNORECASE,
)
# nouns that are the object of an act: "open a *PR*", "add a *dependency*"
_THINGS = re.compile(
    r"(?:pull|merge)[ -]requests?|PRs?|MRs?|dependenc(?:y|ies)|packages?|librar(?:y|ies)"
    r"|branch(?:es)?|issues?|reviews?",
    re.IGNORECASE,
)

# --- Compounds

# nouns after an act that always make a compound with it
_COMPOUNDS = re.compile(
    r"(?:push (?:notif\w+|buttons?|events?|permissions?|access|rights?|protection|tokens?|back)"
    r"|commit (?:messages?|hash(?:es)?|hooks?|histor\w+|logs?|ids?|shas?|subjects?|titles?|authors?"
    r"|graphs?|counts?)(?![./]\w|/)"
    r"|merge (?:conflicts?|requests?|queues?|strateg\w+|sort|markers?)"
    r"|release (?:notes?|dates?|candidates?|cycles?|process)|deploy keys?"
    r"|(?:test|build|deploy) runs?|test (?:suites?|cases?|fixtures?|data|results?)"
    r"|(?:build|deployment|install\w*) (?:scripts?|errors?|times?|logs?|artifacts?)"
    r"|(?:publish\w*|delet\w+) (?:buttons?|dates?)|reset (?:buttons?|links?|emails?))\b",
    re.IGNORECASE,
)
# nouns that make a compound unless the act is an imperative: "fix the deploy script", but "Deploy
# functions to production."
_HEADS = re.compile(
    r"[ -](?:scripts?|workflows?|jobs?|steps?|pipelines?|commands?|buttons?|pages?|logs?|errors?"
    r"|failures?|handlers?|endpoints?|api|logic|functions?|methods?|class(?:es)?|modules?|dialogs?"
    r"|configs?|configuration|settings?|templates?|titles?|bod(?:y|ies)|descriptions?|names?"
    r"|numbers?|status|state|results?|output|runs?|tokens?|keys?|urls?|targets?|times?|history"
    r"|policy|policies|rules?|format|process|service|server|strategy|options?|flags?|messages?"
    r"|hooks?|notes?|checklists?|guides?|docs|labels?|comments?|lists?|counts?|managers?|updates?"
    r"|versions?|problems?|bugs?|support|commits?|base)\b",
    re.IGNORECASE,
)
# between a determiner and an act: "the *last* push"
_ADJECTIVES = (
    r"(?:(?:last|latest|first|second|third|previous|next|recent|old|new|failed|failing|broken"
    r"|entire|whole|initial|final|current|bad|wrong|big|small|same|other|merge|test|release|git"
    r"|squash|force|direct|automatic|manual|nightly|production|prod|staging|slow|single"
    r"|v?[\d.]+) )*"
)
# what is written before or after the word in the name of a file, a function or a hook
_NAME_BEFORE = re.compile(
    r"(?:\w\.|[_#@]|\b(?:pre|post|non)-|(?<!\bcommit)(?<!\bpush)(?<!\bmerge)(?<!\btag)(?<!\btest)"
    r"(?<!\brebase)(?<!\bbuild)(?<!\brelease)(?<!\bdeploy)(?<!\bamend)(?<!\bfix)/)\Z",
    re.IGNORECASE,
)
_NAME_AFTER = re.compile(r"[_(]|[./-]\w+[./(]|\.\w|-(?!-)\w")
# runs what does the act: "*run the deploy* script"
_RUNS = re.compile(
    rf"\b(?:run|re-?run|start|trigger|execute|launch|kick off)(?: the| a| our)? {_ADJECTIVES}\Z",
    re.IGNORECASE,
)
_RUN_THING = re.compile(
    r"[ -](?:scripts?|workflows?|jobs?|steps?|pipelines?|commands?|process|suites?)\b",
    re.IGNORECASE,
)
# stands before an imperative: "please push", "fix it and push"
_LEADS_IMPERATIVE = re.compile(
    r"(?:\A|[,;:.!?(\n]|\b(?:please|just|now|also|then|and|or|to|ok|okay|yes|so|you|can|could|will"
    r"|would|shall|should|may|must|let['’]s|let us|don['’]t|not|never|first|finally|next))\W*\Z",
    re.IGNORECASE,
)

# --- What the words around an act say of it

# what is said of a thing, or what it does
_FINITE = re.compile(
    r" (?:(?:still|now|just|also|always|sometimes) )?(?:is|was|are|were|has|had|does|did|isn['’]t"
    r"|wasn['’]t|aren['’]t|doesn['’]t|didn['’]t|fails?|failed|works?|worked|breaks?|broke|takes?"
    r"|took|seems?|looks?|looked|went|goes|gives?|gave|says?|said|hangs?|hung|crash(?:es|ed)"
    r"|contains?|shows?|showed|got|gets|timed|times|prints?|printed|returns?|returned|throws?|threw"
    r"|needs|needed|could|would|might|keeps?|kept|stops?|stopped|happened|appears?|introduced"
    r"|changed|removed|added|caused|errors? out|errored)\b",
    re.IGNORECASE,
)
# gives a permission: "a push is fine"
_IS_FINE = re.compile(
    r" (?:is|are|would be) (?:now |also )?(?:fine|ok|okay|good|allowed|approved|great|alright)\b",
    re.IGNORECASE,
)
# makes the word after it a noun: "the last", "every"
_DETERMINER = re.compile(
    r"(?P<word>\b(?:the|an?|this|that|these|those|my|your|our|their|his|her|its|each|every|another"
    r"|which|what|both|\d+|two|three|last|latest|previous|recent|failed|failing))"
    rf" {_ADJECTIVES}\Z",
    re.IGNORECASE,
)
# a determiner, and a word that may be a noun or an adjective, but no verb in between
_DETERMINER_AND_WORD = re.compile(
    r"\b(?:the|an?|this|that|my|your|our|their|its) (?!and\b|or\b|then\b|to\b|please\b)[\w-]+ \Z",
    re.IGNORECASE,
)
_PREPOSITION = re.compile(
    r"\b(?:of|in|on|from|about|during|by|at|via|per|against|between|like|as|upon) \Z",
    re.IGNORECASE,
)
# asks for the act that is named after it
_DOES = re.compile(
    r"\b(?:do|make|start|begin|perform|run|trigger|execute|write|prepare|roll out"
    r"|split (?:it|this|them|that) (?:up )?into|proceed|go ahead|continue|go on|approve|cut"
    r"|create|open|submit|file|raise|complete|finish|kick off|initiate|ship|publish|ok|okay|yes"
    r"|ready|allow|authorize|authorise|agree)(?:\W+(?:with|to|for|up|now|also|just|please))*\W*\Z",
    re.IGNORECASE,
)
# "I want this *pushed*"
_WANTS_DONE = re.compile(
    r"\b(?:want|need|like|get|have|see) (?:it|them|this|that|these|those)(?: all)? \Z",
    re.IGNORECASE,
)
_WANTS = re.compile(r"\b(?:want|need|like|please|time for|now|ask\w*)\b", re.IGNORECASE)
# takes the act for granted: "after the push, tell me"
_IMPLIES = re.compile(r"\b(?:after|once|when|with|for|until|following) \Z", re.IGNORECASE)
# asks to commit once more: "put the number into the last commit"
_PUTS_INTO = re.compile(
    r"\b(?:put|fold|squash|add|include|move|get|bring)\b[^.;:!?]{0,60}"
    r" (?:in|into|to) (?:the|that|your) (?:last|latest|previous|same|first) \Z",
    re.IGNORECASE,
)
# may make another commit: "revert the last commit"
_REMAKES = re.compile(
    r"\b(?:revert|squash|amend|reword|cherry-pick|use|into|to)(?: all)?(?: the| a| one)?"
    rf" {_ADJECTIVES}\Z",
    re.IGNORECASE,
)
# asks for what is done to a thing: "open a new PR"
_HANDLES_THING = re.compile(
    r"\b(?:add|install|introduce|bring|use|open|create|make|submit|raise|file|start|switch|delete"
    r"|remove|close|request|push|upgrade|put up|send|draft|prepare|get)\b"
    r"(?: (?!and\b|then\b|or\b)[^\s.;:!?]+){0,4} \Z",
    re.IGNORECASE,
)
# an order that is about a thing, and asks for no act: "fix the push"
_WORK_ON = (
    r"\b(?:fix|debug|check|review|handle|explain|describe|see|inspect|improve|rename|document"
    r"|implement|show|list|find|refactor|change|move|support|disable|enable|look at|look into|read"
    r"|investigate|understand|resolve|summari[sz]e|compare|test|add|update|remove|edit|rewrite"
    r"|correct|repair|simplify|speed up|shorten|translate)\b"
)
_WORKS_ON = re.compile(rf"{_WORK_ON}[^.;:!?]{{0,40}}\Z", re.IGNORECASE)
_WORKS_ON_NEXT = re.compile(rf"{_WORK_ON} \Z", re.IGNORECASE)
_IS_VERB = re.compile(r" (?:this|it|that)\b|,? please\b", re.IGNORECASE)  # "PR this"
_ACT_PREFIX = re.compile(r"\bgit \Z|\bforce-\Z", re.IGNORECASE)  # belongs to the word after it
_MAX_CONTEXT = 120  # characters on either side of a word that are read

# --- The acts of a text


def acts_named(act: str, text: str) -> Iterator[bool | None]:
    """Yields for each place where a clause names an act whether it asks for the act.

    None if that is not clear. A place where the word is a part of a compound is left out.

    Args:
        act: a regular expression for the words of the act, such as `push`.
    """
    for start, end in _places(act, text):
        yield _asks_for(text, start, end)


def names_act(act: str, text: str) -> bool:
    """Whether a text names an act, and not only a thing that has the word in its name."""
    return next(_places(act, text), None) is not None


class Noun(NamedTuple):
    """A word for an act that is only a noun in a clause, from `start` on.

    Args:
        head: the word after it in a compound, as "notifications" after "push"; "" without one.
    """

    word: str
    head: str
    start: int


_VERBS = re.compile(rf"(?<![^\W_]){_VERB_FORMS.pattern}(?![^\W_])", re.IGNORECASE)
_NEXT_WORD = re.compile(r"[ -]([a-z]+)", re.IGNORECASE)


def nouns_in(clause: str) -> Iterator[Noun]:
    """Yields the words for acts that a clause does not ask for, as "push" in "fix the push"."""
    for word in _VERBS.finditer(clause):
        start, end = word.span()
        if _is_in_compound(clause, start, end):
            head = _NEXT_WORD.match(clause, end)
            yield Noun(word[0], head[1] if head else "", start)
        elif _asks_for(clause, start, end) is False:
            yield Noun(word[0], "", start)


def without_nouns(clause: str) -> str:
    """Removes the words for acts that a clause does not ask for: "fix the notifications"."""
    for noun in reversed([*nouns_in(clause)]):
        clause = clause[: noun.start] + clause[noun.start + len(noun.word) :].lstrip()
    return clause


def _places(act: str, text: str) -> Iterator[tuple[int, int]]:
    """Yields where a text names an act, each as the start and the end of the whole word."""
    for match in find_all(act, text, "i"):
        start, end = _word_around(text, *match.span())
        if request := _REQUEST.match(text, start):
            end = request.end()
        is_known = _VERB_FORMS.fullmatch(text, start, end) or _THINGS.fullmatch(text, start, end)
        if not is_known or not _is_in_compound(text, start, end):
            yield (start, end) if is_known else match.span()


_REQUEST = re.compile(r"(?:pull|merge)[ -]requests?\b", re.IGNORECASE)


def _word_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Returns where the words around a match begin and end."""
    end = start + len(text[start:end].rstrip())
    while start > 0 and text[start - 1].isalnum():
        start -= 1
    while 0 < end < len(text) and text[end - 1].isalnum() and text[end].isalnum():
        end += 1
    return start, end


def _around(text: str, start: int, end: int) -> tuple[str, str]:
    """Returns the texts before and after a word; `git` and "force-" belong to the word."""
    before = text[max(0, start - _MAX_CONTEXT) : start]
    return _ACT_PREFIX.sub("", before), text[end : end + _MAX_CONTEXT]


def _is_in_compound(text: str, start: int, end: int) -> bool:
    """Whether a word is a part of a name: "push notifications", `push.py`, `pre-commit`."""
    before, after = _around(text, start, end)
    is_thing = _THINGS.fullmatch(text, start, end) is not None
    if _NAME_BEFORE.search(before) or _NAME_AFTER.match(after):
        return True
    if _RUN_THING.match(after) and _RUNS.search(before):
        return False
    if _COMPOUNDS.match(text, start) and not is_thing:
        return True
    is_run = re.fullmatch("runs?", text[start:end], re.IGNORECASE)
    if is_run and re.search(r"\b(?:test|build|dry|trial) \Z", before, re.IGNORECASE):
        return True
    return bool(_HEADS.match(after)) and (is_thing or not _LEADS_IMPERATIVE.search(before))


def _asks_for(text: str, start: int, end: int) -> bool | None:
    """Whether a clause asks for the act that a word names; None if that is not clear."""
    word = text[start:end]
    before, after = _around(text, start, end)
    if _THINGS.fullmatch(word):
        return _asks_for_thing(before, after)
    if not _VERB_FORMS.fullmatch(word):
        return True
    if word.lower().endswith("ed") and _WANTS_DONE.search(before):
        return True
    if determiner := _DETERMINER.search(before):
        return _asks_for_noun(word.lower(), before, after, determiner)
    if _DETERMINER_AND_WORD.search(before):  # "the login push", where "login" may be any word
        return False if _WORKS_ON.search(before) or _FINITE.match(after) else None
    if _FINITE.match(after) and not _IS_FINE.match(after):  # "push fails"
        return False
    return not (_WORKS_ON_NEXT.search(before) or _PREPOSITION.search(before))


def _asks_for_noun(word: str, before: str, after: str, determiner: re.Match[str]) -> bool | None:
    """Whether a clause asks for the act of a noun: "do the push", but not "fix the push".

    Args:
        before: the text before the word, at whose end the determiner stands.
    """
    before_noun = before[: determiner.start()]
    if _DOES.search(before_noun) or (_PUTS_INTO.search(before) and word == "commit"):
        return True
    if _IS_FINE.match(after):  # "a push is fine" allows one, "the push is fine" may only tell of it
        return determiner["word"].lower() in ("a", "an") or None
    if word.startswith("commit") and _REMAKES.search(before):
        return None
    if _WORKS_ON.search(before_noun):
        return False
    is_wanted = _WANTS.search(f"{before}{after}") is not None
    return None if is_wanted or _IMPLIES.search(before_noun) else False


def _asks_for_thing(before: str, after: str) -> bool | None:
    """Whether a clause asks for what is done to a thing: "open a PR", but not "check the PR"."""
    if _HANDLES_THING.search(before) or _IS_VERB.match(after):
        return True
    if _WORKS_ON.search(before) or (_FINITE.match(after) and not _IS_FINE.match(after)):
        return False
    return None
