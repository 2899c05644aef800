"""The grammar of an instruction: a modality, what to do, to what, and under which circumstances.

`instruction_of` brings the many ways to say one thing into one form. "`any` is forbidden in tests",
"No use of `any` in tests" and "In tests, you must never use `any`" are all NEVER + use + `any` +
(in, tests). The readers of rules match these parts, so that each modality combines with each act
and each circumstance.

A clause is rewritten in usual words (`usual_words`) and cut into tokens (`clause_tokens`), which
are read from left to right:

1. circumstances before the main clause: "In tests, ..." (`_read_fronted_circumstance`);
2. words that only lead to the instruction: "always", "make sure to" (`_skip_leads`);
3. either a subject and what must or must not happen to it (`_read_subject`), or a negation or
   "only", verbs, and their object (`_read_verbs`);
4. the object up to the first circumstance, and the circumstances (`circumstances`).

The words are in `instruction_words`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache

from holdfast.drafting.grammar.circumstances import (
    ARTICLES,
    PHRASES,
    Circumstance,
    split_at_circumstances,
)
from holdfast.drafting.grammar.clause_tokens import ClauseWords, clause_words
from holdfast.drafting.grammar.instruction_words import (
    ACT_NOUNS,
    ADVERBS,
    AFTER_ACT_NOUNS,
    BE,
    BE_NOT,
    COMPARISONS,
    FAILS,
    FORBIDDEN,
    GERUNDS,
    HARMLESS,
    IN_FRONT,
    LEADS,
    MAY_BE,
    MUST,
    MUST_NOT,
    MUST_PASS,
    NEEDS,
    NEGATIONS,
    NOT_DONE,
    ONLY_ALLOWED,
    ONLY_DONE,
    PARTICIPLES,
    PASSES,
    PREFERENCES,
    RELATIONS,
    REQUIRED,
    VERBS,
    Relation,
    longest_phrase,
    phrase_table,
)
from holdfast.drafting.grammar.usual_words import in_usual_words


class Modality(Enum):
    """How far an instruction binds."""

    MUST = "must"
    NEVER = "never"
    ONLY = "only"  # allowed under the circumstances, and forbidden otherwise
    PREFER = "prefer"


@dataclass(frozen=True)
class Instruction:
    """The parts of a clause that says what to do.

    Args:
        verbs: what to do, in the infinitive; ("use",) for a clause without a verb: "no `any`".
        object: the words from the verb to the first circumstance.
    """

    modality: Modality
    verbs: tuple[str, ...]
    object: str
    circumstances: tuple[Circumstance, ...]

    def text_of(self, *relations: Relation) -> str | None:
        """The text of the first circumstance with one of these relations; None if there is none."""
        return next(iter(self.texts_of(*relations)), None)

    def texts_of(self, *relations: Relation) -> list[str]:
        """The texts of all circumstances with one of these relations."""
        return [text for relation, text in self.circumstances if relation in relations]

    @property
    def rejected_object(self) -> str | None:
        """`B` in "use `A` instead of `B`"; None if the instruction compares nothing."""
        return self.text_of(*COMPARISONS)

    @property
    def binds(self) -> bool:
        """Whether something must be done, perhaps only in this way."""
        return self.modality in (Modality.MUST, Modality.ONLY)

    def has_only(self, *relations: Relation) -> bool:
        """Whether every circumstance has one of these relations, or gives a reason or an
        alternative, which limits nothing.

        A purpose does limit a prohibition: "never use `sed` to edit files".
        """
        harmless = HARMLESS
        if self.modality is Modality.NEVER:
            harmless = HARMLESS - {Relation.TO}
        allowed = harmless | {*relations}
        return all(circumstance.relation in allowed for circumstance in self.circumstances)

    def does(self, verbs: Iterable[str]) -> bool:
        """Whether each verb of the instruction is one of these."""
        return all(verb in verbs for verb in self.verbs)


# --- A clause


@lru_cache(maxsize=4096)
def instruction_of(text: str, is_prohibited: bool = False) -> Instruction | None:
    """The parts of a clause; None if it does not say what to do.

    >>> instruction_of("Never use `any` in tests, use `unknown`")
    Instruction(modality=<Modality.NEVER: 'never'>, verbs=('use',), object='`any`', \
circumstances=(Circumstance(relation=<Relation.IN: 'in'>, text='tests'), \
Circumstance(relation=<Relation.ADVICE: 'advice'>, text='use `unknown`')))

    Args:
        is_prohibited: whether the clause is below "Do not:".
    """
    clause = clause_words(in_usual_words(text.strip(" .!,:")))
    return _read_fronted_circumstance(clause, is_prohibited) or _read_main_clause(
        clause, 0, is_prohibited
    )


# --- Steps 1 and 2: circumstances before the main clause, and words that lead to it

_LEADS = phrase_table(LEADS)
_NEGATIONS = phrase_table(NEGATIONS)
_MAX_FRONTED_COMMAS = 5  # a circumstance before the main clause ends at one of the first commas
_MAX_FRONTED_TOKENS = 25
# after these words, a verb belongs to them: "when you *run* it"
_JOINED_TO_VERBS = frozenset("you we to and or not can be been , : - – —".split())
_ORDERS = frozenset("run execute always please ensure".split())
_FIRST_WORDS = frozenset(("no", "only", "prefer"))


def _read_fronted_circumstance(clause: ClauseWords, is_prohibited: bool) -> Instruction | None:
    """A clause that begins with a circumstance: "in tests, never use `sleep`"."""
    start = _skip_leads(clause, 0)
    phrase = longest_phrase(PHRASES, clause.words, start)
    if not phrase or RELATIONS[phrase] not in IN_FRONT or _negation_at(clause, start):
        return None
    begin = start + len(phrase.split())
    for end, main in _main_starts(clause, begin):
        instruction = _read_main_clause(clause, main, is_prohibited)
        if instruction is not None:
            circumstance = Circumstance(RELATIONS[phrase], clause.text_between(begin, end))
            circumstances = (*instruction.circumstances, circumstance)
            return replace(instruction, circumstances=circumstances)
    return None


def _main_starts(clause: ClauseWords, begin: int) -> list[tuple[int, int]]:
    """Where a circumstance before the main clause may end, and where that may begin: at a comma
    before a verb or a negation, at such a verb without a comma, or else at any comma.
    """
    words = clause.words
    commas = [n for n in range(begin, len(words)) if words[n] in (",", ":", "-", "–", "—")]
    commas = commas[:_MAX_FRONTED_COMMAS]
    starts = [
        (n, n + 1)
        for n in commas
        if _begins_main_clause(clause, n + 1) and not _lists_verbs(words, n)
    ]
    for n in range(begin + 1, min(begin + _MAX_FRONTED_TOKENS, len(words))):
        is_order = words[n] in _ORDERS or _negation_at(clause, n)
        if is_order and words[n - 1] not in _JOINED_TO_VERBS:
            starts.append((n, n))
    others = [(n, n + 1) for n in reversed(commas) if (n, n + 1) not in starts]
    return sorted(starts) + others


def _begins_main_clause(clause: ClauseWords, start: int) -> bool:
    """Whether a main clause clearly begins at a token."""
    word = clause.word(start)
    is_lead = longest_phrase(_LEADS, clause.words, start)
    return bool(word in VERBS | _FIRST_WORDS or _negation_at(clause, start) or is_lead)


def _lists_verbs(words: Sequence[str], comma: int) -> bool:
    """Whether a comma stands in a list of verbs: "when you add, remove or rename files"."""
    before = words[comma - 1]
    return before in VERBS and comma + 1 < len(words) and words[comma + 1] in VERBS


def _skip_leads(clause: ClauseWords, start: int) -> int:
    """The first token after words that only lead to the instruction."""
    while start < len(clause.words) and not _negation_at(clause, start):
        lead = longest_phrase(_LEADS, clause.words, start)
        if longest_phrase(PHRASES, clause.words, start) == "instead of":
            break
        if not lead and not (start and clause.words[start] in (",", ":", "!")):
            break
        start += len(lead.split()) or 1
    return start


def _negation_at(clause: ClauseWords, start: int) -> str:
    """The words that forbid at a token; "" if none do."""
    return longest_phrase(_NEGATIONS, clause.words, start)


# --- Step 3: the main clause


def _read_main_clause(clause: ClauseWords, start: int, is_prohibited: bool) -> Instruction | None:
    """The main clause from a token on."""
    start = _skip_leads(clause, start)
    if start >= len(clause.words):
        return None
    if _negation_at(clause, start):
        return _read_verbs(clause, start, is_prohibited)
    return (
        _read_passing_command(clause, start)
        or _read_subject(clause, start)
        or _read_verbs(clause, start, is_prohibited)
    )


_PASSES = phrase_table(PASSES | FAILS)
_JOINTS = (",", "and", "+", "&&")  # between code spans


def _read_passing_command(clause: ClauseWords, start: int) -> Instruction | None:
    """Reads "`make test` passes" and "`make test` must be run", perhaps after "verify"."""
    words = clause.words
    while start < len(words) and words[start] in ("verify", "check", "confirm", "all", "both"):
        start += 1
    end = start
    while end < len(words) and (clause.tokens[end].is_code or words[end] in _JOINTS):
        end += 1
    predicate = longest_phrase(_PASSES, words, end)
    if end == start or not predicate or predicate in FAILS:
        return None
    head, circumstances = split_at_circumstances(clause, end + len(predicate.split()))
    if head:
        return None
    return Instruction(Modality.MUST, ("pass",), clause.text_between(start, end), circumstances)


# --- Step 3, with a subject: "`any` is forbidden"

_STATES = FORBIDDEN | REQUIRED | NEEDS | NOT_DONE | ONLY_DONE | ONLY_ALLOWED
_PREDICATES = phrase_table(_STATES | BE_NOT | BE | MAY_BE | MUST | MUST_NOT | MUST_PASS)
_MAX_SUBJECT_TOKENS = 14
_MAX_NOUN_TOKENS = 5
_SUBORDINATE = frozenset("if when that which who because whether unless until so".split())


def _read_subject(clause: ClauseWords, start: int) -> Instruction | None:
    """Reads a subject and its predicate: "`any` is forbidden", "`vendor/` must not be edited"."""
    words = clause.words
    if words[start] in VERBS and not _is_noun(clause, start):
        return None
    for position in range(start + 1, min(start + _MAX_SUBJECT_TOKENS, len(words))):
        if words[position] in _SUBORDINATE:
            return None
        if predicate := longest_phrase(_PREDICATES, words, position):
            return _read_predicate(clause, start, position, predicate)
    return None


def _is_noun(clause: ClauseWords, start: int) -> bool:
    """Whether a word that is a verb or a noun begins a subject: "use of `any` is forbidden", "type
    assertions are forbidden".
    """
    if clause.word(start + 1) == "of" or longest_phrase(_PREDICATES, clause.words, start + 1):
        return True
    for position in range(start + 2, min(start + _MAX_NOUN_TOKENS, len(clause.words))):
        predicate = longest_phrase(_PREDICATES, clause.words, position)
        if predicate or clause.tokens[position].is_code or clause.words[position] == ",":
            return predicate in FORBIDDEN | BE_NOT
    return False


def _read_predicate(
    clause: ClauseWords, start: int, position: int, predicate: str
) -> Instruction | None:
    """The instruction of a subject, from a token up to a position, and the predicate there."""
    after = position + len(predicate.split())
    subject = clause.text_between(start, position)
    if predicate in NOT_DONE | ONLY_DONE:  # "a task is not done until `make check` passes"
        _, circumstances = split_at_circumstances(clause, after)
        modality = Modality.NEVER if predicate in NOT_DONE else Modality.ONLY
        return Instruction(modality, ("finish",), subject, circumstances)
    if predicate in FORBIDDEN | ONLY_ALLOWED:
        act = _read_act(clause.slice(start, position))
        head, circumstances = split_at_circumstances(clause, after)
        if head or act is None:
            return None
        modality = Modality.NEVER if predicate in FORBIDDEN else Modality.ONLY
        circumstances = (*act.circumstances, *circumstances)
        return replace(act, modality=modality, circumstances=circumstances)
    if predicate in REQUIRED:
        head, circumstances = split_at_circumstances(clause, after)
        return None if head else Instruction(Modality.MUST, ("require",), subject, circumstances)
    if predicate in NEEDS | MUST_PASS:
        head, circumstances = split_at_circumstances(clause, after)
        verb = "require" if predicate in NEEDS else "pass"
        occasion = Circumstance(Relation.SUBJECT, subject)
        return Instruction(Modality.MUST, (verb,), head, (occasion, *circumstances))
    if predicate in MUST_NOT | MUST:
        return _read_actor(clause, subject, after, is_prohibited=predicate in MUST_NOT)
    return _read_passive(clause, clause.slice(start, position), predicate, after)


_ADJECTIVES_OF_ACTS = ("manual", "direct", "further", "following")


def _read_act(clause: ClauseWords) -> Instruction | None:
    """Forbids an act that is named as a thing: "edits to `vendor/`", "running `make`", "`any`"."""
    words = clause.words
    start = 0
    while start < len(words) and words[start] in (*ARTICLES, *_ADJECTIVES_OF_ACTS):
        start += 1
    if start >= len(words):
        return None
    if words[start] in GERUNDS:
        return _read_verbs(clause, start, True)
    if words[start] in ACT_NOUNS and clause.word(start + 1) in AFTER_ACT_NOUNS | {""}:
        verb = ACT_NOUNS[words[start]]
        begin = start + 1 + (clause.word(start + 1) == "of")
        head, circumstances = split_at_circumstances(clause, begin)
        return Instruction(Modality.NEVER, (verb,), head, circumstances)
    head, circumstances = split_at_circumstances(clause, start)
    return Instruction(Modality.NEVER, ("use",), head, circumstances)


def _read_actor(
    clause: ClauseWords, subject: str, after: int, *, is_prohibited: bool
) -> Instruction | None:
    """Reads "tests must not use `sleep`", where the subject is the place."""
    instruction = _read_verbs(clause, after, is_prohibited)
    if instruction is None or clause.word(after) not in VERBS | ADVERBS:
        return None
    if instruction.verbs in (("appear",), ("occur",)) and not instruction.object:
        return replace(instruction, object=subject)
    place = Circumstance(Relation.IN, subject)
    return replace(instruction, circumstances=(place, *instruction.circumstances))


def _read_passive(
    clause: ClauseWords, subject: ClauseWords, predicate: str, after: int
) -> Instruction | None:
    """Reads "`vendor/` must not be edited"."""
    words = clause.words
    is_of_nothing = subject.words[0] in ("nothing", "no")  # "nothing in `vendor/` may be edited"
    if predicate in MAY_BE and predicate not in BE and not is_of_nothing:
        return None
    while after < len(words) and words[after] in ADVERBS:
        after += 1
    verbs, end = _verb_list(words, after, PARTICIPLES)
    if not verbs:
        return None
    modality = Modality.MUST
    if predicate in BE_NOT or is_of_nothing:
        modality = Modality.NEVER
    if predicate.split()[-1] == "only" or " only " in predicate:
        modality = Modality.ONLY
    head, circumstances = split_at_circumstances(clause, end)
    if head:
        return None
    first = int(is_of_nothing)
    verb = next((n for n, word in enumerate(subject.words) if word in ("is", "are")), None)
    if verb is not None:  # "`dist/` is built by CI and must not be committed"
        subject = subject.slice(0, verb)
    thing, places = split_at_circumstances(subject, first)
    return Instruction(modality, verbs, thing, (*places, *circumstances))


# --- Step 3, with verbs: "never push to `main`"

_PREFERENCES = phrase_table(PREFERENCES)
_INFINITIVES = {**{verb: verb for verb in VERBS}, **GERUNDS}


def _read_verbs(clause: ClauseWords, start: int, is_prohibited: bool) -> Instruction | None:
    """Reads a modality, verbs and their object: "never push to `main`", "no `any`"."""
    words = clause.words
    if clause.word(start) == "no":
        skipped = 1 + (clause.word(start + 1) == "more")
        return _read_act(clause.slice(start + skipped, len(words)))
    if preference := longest_phrase(_PREFERENCES, words, start):
        return _read_preference(clause, start + len(preference.split()))
    modality, start = _read_modality(clause, start, is_prohibited)
    start = _skip_adverbs(clause, start)
    verbs, end = _verb_list(words, start, _INFINITIVES)
    if not verbs:
        return _read_thing(clause, start, modality)
    if clause.word(end) == "only" and modality is Modality.MUST:  # not of "use *only pnpm*"
        end += 1
        if longest_phrase(PHRASES, words, end):
            modality = Modality.ONLY
    head, circumstances = split_at_circumstances(clause, end)
    is_gerund = words[start] in GERUNDS and words[start] not in VERBS
    if is_gerund and modality is Modality.MUST and _compares(circumstances):
        return None  # "using `a` instead of `b` breaks it" is no order
    if re.search(r"(?:^| )only$", head) and modality is Modality.MUST:  # "push only when asked"
        modality = Modality.ONLY
        head = head.removesuffix("only").strip()
    return Instruction(modality, verbs, head, circumstances)


def _compares(circumstances: Iterable[Circumstance]) -> bool:
    """Whether something is named in whose place another thing is used."""
    return any(circumstance.relation in COMPARISONS for circumstance in circumstances)


def _read_preference(clause: ClauseWords, start: int) -> Instruction:
    """Reads "`rg` over `grep`", after "prefer"."""
    head, circumstances = split_at_circumstances(clause, start)
    return Instruction(Modality.PREFER, ("use",), head, circumstances)


def _read_modality(clause: ClauseWords, start: int, is_prohibited: bool) -> tuple[Modality, int]:
    """The modality of the verb at a token, and the token after the words for it."""
    if negation := _negation_at(clause, start):
        return Modality.NEVER, start + len(negation.split())
    if clause.word(start) == "only":
        return Modality.ONLY, start + 1
    return Modality.NEVER if is_prohibited else Modality.MUST, start


def _skip_adverbs(clause: ClauseWords, start: int) -> int:
    """The first token after adverbs that limit nothing: "directly", "under any circumstances"."""
    while start < len(clause.words):
        phrase = longest_phrase(PHRASES, clause.words, start)
        if RELATIONS.get(phrase) is Relation.AT_ALL:
            start += len(phrase.split())
        elif clause.words[start] in (*ADVERBS, ","):
            start += 1
        else:
            break
    is_git = clause.word(start) == "git" and clause.word(start + 1) in VERBS
    return start + 1 if is_git else start  # "do not git commit"


# "never raw `fetch`"
_ADJECTIVES_OF_CODE = frozenset("bare raw plain direct global inline".split())
# "`load` returns `Rows`, not `Row`" says what the code does, and forbids nothing
_DESCRIBES_CODE = re.compile(
    r"`[^`]+` (?:(?:now|always|only|already|still|just) )?(?!as |across |plus |versus )"
    r"(?:is|are|was|were|has|had|[a-z]+s (?=an? |the |its |all |both |only |one |[A-Z`\d]))"
)


def _read_thing(clause: ClauseWords, start: int, modality: Modality) -> Instruction | None:
    """Reads a thing without a verb: "never bare `python`", "`make lint` before committing", "pnpm,
    not npm".
    """
    tokens = clause.tokens
    if start >= len(tokens):
        return None
    first = start + (clause.words[start] in _ADJECTIVES_OF_CODE)
    if first < len(tokens) and tokens[first].is_code:
        head, circumstances = split_at_circumstances(clause, start)
        if _compares(circumstances) and _DESCRIBES_CODE.match(head):
            return None
        return Instruction(modality, ("use",), head, circumstances)
    head, circumstances = split_at_circumstances(clause, start)
    is_name = 1 <= len(head.split()) <= 2 and clause.words[start] not in _SUBORDINATE
    if not is_name or _says_what_others_never_do(clause.words[start:]):
        return None
    if circumstances and circumstances[0].relation in COMPARISONS:
        return Instruction(modality, ("use",), head, circumstances)
    return None


def _says_what_others_never_do(words: Sequence[str]) -> bool:
    """Whether words have a subject before "never": "users never run `npm`", not "pnpm, never
    `npm`".
    """
    if "never" not in words[1:-1]:
        return False
    never = words.index("never", 1)
    return words[never - 1] not in (",", "and", "but") and words[never + 1] in VERBS


def _verb_list(
    words: Sequence[str], start: int, infinitives: Mapping[str, str]
) -> tuple[tuple[str, ...], int]:
    """The verbs of a list such as "edit, move or delete", and the position after them.

    Args:
        infinitives: of the verbs in the form that the list has.
    """
    verbs: list[str] = []
    end = position = start
    first_end = 0
    is_list = False
    while position < len(words):
        parts = words[position].split("/")
        if not all(part in infinitives for part in parts):
            break
        verbs += [infinitives[part] for part in parts]
        end = position = position + 1
        first_end = first_end or end
        while position < len(words) and words[position] in (",", "or", "and", "nor"):
            is_list = is_list or words[position] != ","
            position += 1
        if position == end:
            break
    if len(verbs) > 1 and not is_list and "/" not in words[start]:  # "push, ask first"
        return tuple(verbs[:1]), first_end
    return tuple(verbs), end
