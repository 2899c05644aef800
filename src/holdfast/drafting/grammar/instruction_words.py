"""The words of instructions: verbs in groups of synonyms, and the phrases that lead to an act,
forbid it, or begin a circumstance.

The grammar that reads them is in `instructions`. A new synonym is a word in one of these tables.
"""

from collections.abc import Iterable, Sequence
from enum import Enum


def _phrases(text: str) -> tuple[str, ...]:
    """The phrases of a text with "|" between them."""
    return tuple(text.split("|"))


def _combine(*parts: Iterable[str]) -> frozenset[str]:
    """The phrases with one phrase of each part; a part may have "", which adds nothing."""
    phrases = [""]
    for part in parts:
        choices = tuple(part)
        phrases = [f"{begun} {choice}".strip() for begun in phrases for choice in choices]
    return frozenset(phrases)


# --- Verbs

RUN = frozenset(
    "run execute invoke call type issue use rerun re-run trigger launch start pass succeed".split()
)
# verbs whose command comes after "with" or in brackets: "lint the code (`make lint`)"
CHECK = frozenset(
    "format lint check test validate verify type-check typecheck build rebuild regenerate generate"
    " compile update confirm review scan finish end follow fix".split()
)
WRITE = frozenset(
    "use add include introduce write leave insert put import call invoke throw return declare"
    " define export have cast create keep reintroduce commit rely employ hardcode hard-code access"
    " reference read contain appear embed instantiate construct ship utilize utilise emit"
    " generate set specify manipulate".split()
)
EDIT = frozenset(
    """edit hand-edit modify touch change alter update overwrite tamper hand-write patch
    mutate author""".split()
)
MAKE_FILES = frozenset("create recreate re-create add".split())
REMOVE_FILES = frozenset("delete remove rename move reformat regenerate format rewrite".split())
_GIT = frozenset(
    "commit push merge rebase amend force-push auto-commit auto-push open submit make raise file"
    " publish release tag stage install upgrade bump deploy switch squash close comment revert pull"
    " cut request mark consider declare report claim complete finalize finalise conclude".split()
)
_OTHERS = frozenset(
    """skip bypass disable suppress silence swallow ignore hide prefix capitalize capitalise begin
    limit wrap separate
    sign target read mock log print mention credit reply answer respond prefer avoid sync apply
    append say co-author attribute list describe link title name base address assign ask get obtain
    paste share suggest propose emit seek wait treat do perform enable bring replace install
    reflect accompany mirror adjust require downgrade""".split()
)
VERBS = RUN | CHECK | WRITE | EDIT | MAKE_FILES | REMOVE_FILES | _GIT | _OTHERS
_DOUBLED = tuple("put run commit tag begin wrap skip ship log stop set cut submit".split())
_PARTICIPLES = {
    "run": "run",
    "rerun": "rerun",
    "re-run": "re-run",
    "put": "put",
    "read": "read",
    "cut": "cut",
    "write": "written",
    "hand-write": "hand-written",
    "rewrite": "rewritten",
    "overwrite": "overwritten",
    "make": "made",
    "keep": "kept",
    "leave": "left",
    "throw": "thrown",
    "build": "built",
    "rebuild": "rebuilt",
    "begin": "begun",
    "do": "done",
    "say": "said",
}


def _gerund(verb: str) -> str:
    """The -ing form of a verb: "running" of "run"."""
    if verb.endswith(_DOUBLED):
        return f"{verb}{verb[-1]}ing"
    if verb.endswith("e") and not verb.endswith("ee"):
        return f"{verb[:-1]}ing"
    return f"{verb}ing"


def _participle(verb: str) -> str:
    """The past participle of a verb: "edited" of "edit"."""
    if irregular := _PARTICIPLES.get(verb):
        return irregular
    if verb.endswith(_DOUBLED):
        return f"{verb}{verb[-1]}ed"
    if verb.endswith("e"):
        return f"{verb}d"
    if verb.endswith("y") and verb[-2] not in "aeiou":
        return f"{verb[:-1]}ied"
    return f"{verb}ed"


GERUNDS = {_gerund(verb): verb for verb in VERBS}
PARTICIPLES = {_participle(verb): verb for verb in VERBS}
# nouns of acts, before a preposition: "no edits to `vendor/`"
ACT_NOUNS = {
    **dict.fromkeys(("edit", "edits", "change", "changes", "modifications", "updates"), "edit"),
    **dict.fromkeys(("commit", "commits"), "commit"),
    **dict.fromkeys(("push", "pushes"), "push"),
    **dict.fromkeys(("force-push", "force-pushes"), "force-push"),
    **dict.fromkeys(("use", "uses", "usage", "usages"), "use"),
    **dict.fromkeys(("import", "imports"), "import"),
    **dict.fromkeys(("call", "calls"), "call"),
    **dict.fromkeys(("merge", "merges"), "merge"),
    **dict.fromkeys(("deploy", "deploys", "deployment", "deployments"), "deploy"),
    **dict.fromkeys(("release", "releases"), "release"),
}
AFTER_ACT_NOUNS = frozenset("to in of on from without unless into under inside".split())

# after a word that may be a verb, nouns that make it part of a name: "commit *messages*"
AFTER_NAMES = frozenset(
    "message messages comment comments hook hooks notes output outputs request requests".split()
)

# --- The beginning of an instruction

LEADS = frozenset(
    _phrases(
        "important|critical|note|warning|required|mandatory|rule|hard rule|always|please|also|then"
        "|instead|and|strictly|strongly|therefore|finally|first|just|simply|next|remember to"
        "|make sure|make sure to|make sure that|make sure you|be sure to|ensure|ensure that"
        "|ensure you|make certain that|it is important to|you are required to|in particular"
        "|it is essential to|it is crucial to|it is critical to|it is mandatory to"
        "|it is necessary to|it is required to|it is imperative to|you are expected to"
        "|please make sure to"
        "|specifically|confirm that|verify that|check that|see to it that|otherwise|afterwards"
    )
) | _combine(
    ("you", "we", "agents", "the agent", "ai agents", "contributors", ""),
    ("must", "should", "must always", "should always", "need to", "have to", "always"),
)
_PEOPLE = _phrases(
    "|you|we|agents|the agent|ai agents|agent|assistants|the assistant|claude|copilot|codex|it"
    "|they|developers|contributors|ai|an agent|any agent|the ai|ai assistants"
)
_NOT = _phrases(
    "never|do not|don't|must not|mustn't|must never|should not|shouldn't|should never|may not"
    "|may never|cannot|can not|can't|can never|shall not|shall never|are not allowed to"
    "|are not permitted to|are never to|are not to|are forbidden to|are forbidden from"
    "|are prohibited from|will never"
)
NEGATIONS = _combine(_PEOPLE, _NOT, ("", "ever")) | frozenset(
    _phrases(
        "refrain from|stop|under no circumstances|under no circumstances should you"
        "|under no circumstances may you|in no case|on no account|at no point|it is forbidden to"
        "|it is prohibited to|it is not allowed to|it is not permitted to|it is never acceptable to"
        "|it is never ok to|it is strictly forbidden to|absolutely never|absolutely do not"
    )
)
PREFERENCES = frozenset(
    _phrases("prefer|prefer to|prefer to use|prefer using|prefer running|prefer to run|preferred")
)
# before a verb, where they limit nothing: "never *directly* edit"
ADVERBS = frozenset(
    "ever directly manually also first just either even automatically blindly explicitly simply"
    " actually always hand".split()
)

# --- Predicates after a subject: "`any` *is forbidden*", "`vendor/` *must not be* edited"

_IS = ("is", "are")
_DEGREES = ("", "strictly", "explicitly", "absolutely", "completely", "always", "entirely")
_BOUND = ("must", "should", "shall", "has to", "have to", "needs to", "need to", "ought to")
FORBIDDEN = _combine(
    _IS,
    _DEGREES,
    _phrases(
        "forbidden|banned|prohibited|disallowed|not allowed|not permitted|never allowed"
        "|never permitted|never acceptable|unacceptable|not acceptable|off limits|off-limits"
    ),
)
REQUIRED = _combine(_IS, _DEGREES, ("required", "needed", "mandatory", "obligatory"))
NEEDS = _combine(("", "always"), _phrases("require|requires|need|needs|must have"))
BE_NOT = _combine((*_BOUND, "may", "can"), _phrases("not be|never be|not ever be")) | frozenset(
    _phrases(
        "cannot be|can't be|mustn't be|shouldn't be|is never|are never|is not to be|are not to be"
        "|is never to be|are never to be|may be never"
    )
)
_MAY = ("may", "can")
BE = (
    _combine(_BOUND, _phrases("be|always be|only be"))
    | _combine(_MAY, ("only be",))
    | _combine(_IS, _phrases("always|to be|only"))
)
_DONE = ("done", "complete", "completed", "finished", "ready")
NOT_DONE = _combine(_IS, ("not", "never", "not considered"), _DONE)
ONLY_DONE = _combine(_IS, ("only", "only considered"), _DONE) | _combine(_IS, _DONE, ("only",))
ONLY_ALLOWED = _combine(_IS, ("only",), ("allowed", "permitted", "acceptable"))
MAY_BE = frozenset(_phrases("may be|can be|must be|should be|may ever be|will be"))
MUST = _combine(_BOUND, ("", "always"))
MUST_PASS = _combine(_BOUND, ("", "always"), ("pass", "satisfy"))
MUST_NOT = _combine(
    _phrases("must not|must never|should not|should never|may not|may never|cannot|shall not|can't")
)
_PASSES = _phrases(
    "pass|passes|succeed|succeeds|is green|are green|is clean|are clean|be green|be clean|exits 0"
    "|has passed|have passed|is run|are run|was run|were run|has been run|have been run|has run"
    "|is passing|are passing|runs clean|finish|come|pass locally|passes locally|exit 0|be run"
)
PASSES = frozenset(_PASSES) | _combine(_BOUND, ("", "always", "both", "all", "each"), _PASSES)
FAILS = frozenset(_phrases("fails|fail|does not pass|do not pass|doesn't pass|don't pass|is red"))

# --- Circumstances


class Relation(Enum):
    """How a circumstance is related to its clause. The value is a word for it."""

    BEFORE = "before"
    AFTER = "after"
    ONCE = "once"
    WHEN = "when"
    IF = "if"
    UNLESS = "unless"
    UNTIL = "until"
    WITHOUT = "without"
    EXCEPT = "except"
    INSTEAD_OF = "instead of"
    OVER = "over"
    NOT = "not"
    IN_FAVOR_OF = "in favor of"
    BECAUSE = "because"
    SO = "so"
    AS = "as"
    FOR = "for"
    IN = "in"
    OUTSIDE = "outside"
    WITH = "with"
    BY = "by"
    ON = "on"
    FROM = "from"
    AT = "at"
    TO = "to"
    AT_ALL = "at all"  # leaves nothing out
    ALONE = "on your own"
    THEN = "then"  # what is done next
    SUBJECT = "subject"  # what requires something: "*committing* requires `make test`"
    EXPLANATION = "explanation"  # after a colon or a dash
    ADVICE = "advice"  # after a comma, why, or what to do instead: "never `a`, *use `b`*"


# the phrases that begin a circumstance
_PHRASES = {
    Relation.BEFORE: "before|prior to|ahead of|right before|immediately before",
    Relation.AFTER: "after|immediately after|right after|upon|following|at the end of",
    Relation.ONCE: "once|as soon as",
    Relation.WHEN: "when|whenever|every time|each time|any time|anytime|while|during",
    Relation.IF: "if|in case",
    Relation.UNLESS: "unless|except if|except when|if not",
    Relation.UNTIL: "until|till",
    Relation.WITHOUT: "without|without first|without having",
    Relation.EXCEPT: "except|except for|other than|apart from|aside from",
    Relation.INSTEAD_OF: "instead of|in place of|in lieu of|rather than|as opposed to",
    Relation.OVER: "over",
    Relation.NOT: "not|and not|but not|and never|but never|never",
    Relation.IN_FAVOR_OF: "in favor of|in favour of",
    Relation.BECAUSE: "because|so that|since|due to",
    Relation.SO: "so",
    Relation.AS: "as",
    Relation.FOR: "for",
    Relation.IN: "in|under|across|throughout|into|inside|within|inside of",
    Relation.OUTSIDE: "outside|outside of|anywhere else|elsewhere|everywhere else",
    Relation.WITH: "with|using|via|through|by running|by using|by calling|by executing",
    Relation.BY: "by",
    Relation.ON: "on|onto",
    Relation.FROM: "from",
    Relation.AT: "at",
    Relation.TO: "to|in order to",
    Relation.AT_ALL: "at all|by hand|for any reason|under any circumstances|in any way|directly"
    "|manually|locally|yourself|ever|unnecessarily|anywhere|everywhere|even|in place|in-place",
    Relation.ALONE: "on your own|on your own initiative|by yourself|autonomously|proactively"
    "|automatically",
}
RELATIONS = {
    phrase: relation for relation, phrases in _PHRASES.items() for phrase in phrases.split("|")
}
# circumstances before the main clause: "*in tests*, never use `sleep`"
IN_FRONT = frozenset(
    {
        *(Relation.BEFORE, Relation.AFTER, Relation.ONCE, Relation.WHEN, Relation.IF),
        *(Relation.UNLESS, Relation.WITHOUT, Relation.INSTEAD_OF, Relation.FOR, Relation.IN),
        *(Relation.OUTSIDE, Relation.ON, Relation.TO, Relation.FROM, Relation.WITH),
    }
)
COMPARISONS = (Relation.INSTEAD_OF, Relation.OVER, Relation.NOT, Relation.IN_FAVOR_OF)
# circumstances that leave nothing out
HARMLESS = frozenset(
    {
        Relation.BECAUSE,
        Relation.SO,
        Relation.TO,
        Relation.AT_ALL,
        Relation.IN_FAVOR_OF,
        Relation.ADVICE,
    }
)
# nouns of what a rule is good for, so that it holds always: "for better readability"
BENEFITS = frozenset(
    """clarity compatibility consistency flexibility maintainability performance readability
    reliability reproducibility safety security simplicity speed""".split()
)
# after a comma, the words from which on a sentence says why, or what to do instead
ADVICE_WORDS = frozenset(
    "use prefer instead run always put import they it this that which these just simply".split()
)
# between a comparison and what is rejected: "instead of *using*"
COMPARED = frozenset("to use using run running with via by calling importing".split())


PhraseTable = dict[str, list[tuple[str, ...]]]


def phrase_table(phrases: Iterable[str]) -> PhraseTable:
    """Phrases as tuples of words, by their first word, the longest first."""
    table: PhraseTable = {}
    for phrase in sorted(phrases, key=lambda text: -len(text.split())):
        words = tuple(phrase.split())
        table.setdefault(words[0], []).append(words)
    return table


def longest_phrase(table: PhraseTable, words: Sequence[str], start: int) -> str:
    """The longest phrase of a table that begins at this word; "" if none does.

    >>> table = phrase_table(["rather", "rather than"])
    >>> longest_phrase(table, ["use", "it", "rather", "than"], 2)
    'rather than'
    """
    if start >= len(words):
        return ""
    for phrase in table.get(words[start], ()):
        if tuple(words[start : start + len(phrase)]) == phrase:
            return " ".join(phrase)
    return ""
