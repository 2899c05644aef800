"""The grammar of an instruction: a modality, what to do, to what, and under which circumstances.

`instruction_of` brings the many ways to say one thing into one form. "`any` is forbidden in tests",
"No use of `any` in tests" and "In tests, you must never use `any`" are all NEVER + use + `any` +
(in, tests). The readers of rules match these parts, so that each modality combines with each act
and each circumstance.

A clause is read from left to right, in these steps:

1. `read_tokens`: words, code spans, brackets and marks;
2. circumstances before the main clause: "In tests, ..." (`_read_fronted_circumstance`);
3. words that only lead to the instruction: "always", "make sure to" (`_skip_leads`);
4. either a subject and what must or must not happen to it (`_read_subject`), or a negation or
   "only", verbs, and their object (`_read_verbs`);
5. the object up to the first circumstance, and the circumstances (`_split_at_circumstances`).

The words are in `instruction_words.py`.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from holdfast.drafting.grammar.instruction_words import (
    ACT_NOUNS,
    ADVERBS,
    ADVICE_WORDS,
    AFTER_ACT_NOUNS,
    AFTER_NAMES,
    BE,
    BE_NOT,
    BENEFITS,
    COMPARED,
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


class Modality(Enum):
    """How far an instruction binds."""

    MUST = "must"
    NEVER = "never"
    ONLY = "only"  # allowed under the circumstances, and forbidden otherwise
    PREFER = "prefer"


class Circumstance(NamedTuple):
    """A circumstance of an instruction: (IN, "tests") of "in tests"."""

    relation: Relation
    text: str


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


# --- Step 1: tokens

_TOKEN = re.compile(
    r"`[^`]*`|\((?:[^()`]|`[^`]*`)*\)"  # a code span, brackets
    r"|(?<=\s)[-–—]{1,2}(?=\s)|[,;:](?=[\s`]|$)"  # marks
    r"|(?:[^\s`(),;:]|[,;:](?![\s`]|$))+|[`()]"  # a word, or a mark without its pair
)


class Token(NamedTuple):
    """A word, a code span, a pair of brackets or a mark of a text.

    Args:
        text: as it is written.
        word: in lower case, without marks around it; "" for code and brackets.
        start: where it begins in the text.
        end: where it ends.
    """

    text: str
    word: str
    start: int
    end: int

    @property
    def is_code(self) -> bool:
        return self.text.startswith("`") and len(self.text) > 1


def read_tokens(text: str) -> list[Token]:
    """The tokens of a text.

    >>> [token.text for token in read_tokens("Use `a, b` (not c), please")]
    ['Use', '`a, b`', '(not c)', ',', 'please']
    """
    tokens: list[Token] = []
    for match in _TOKEN.finditer(text):
        word = ""
        if match[0][0] not in "`(":
            word = match[0].lower().replace("’", "'").strip('"“”').rstrip(".!?")
        tokens.append(Token(match[0], word, match.start(), match.end()))
    return tokens


class _Words(NamedTuple):
    """A text with its tokens and their words."""

    text: str
    tokens: list[Token]
    words: list[str]

    def word(self, position: int) -> str:
        """The word of a token; "" for code and brackets, and after the last token."""
        return self.words[position] if position < len(self.words) else ""

    def text_between(self, start: int, end: int) -> str:
        """The text from one token up to another."""
        if start >= end:
            return ""
        begin = self.tokens[start].start
        return self.text[begin : self.tokens[end - 1].end].strip(" ,").rstrip(".")

    def slice(self, start: int, end: int) -> "_Words":
        """The tokens from one up to another."""
        return self._replace(tokens=self.tokens[start:end], words=self.words[start:end])


# --- A clause

_WE_USE = re.compile(
    r"^(?:we|(?:this|the|our) (?:project|repo|repository|codebase|workspace|monorepo))"
    r" uses? (?=\S)",
    re.I,
)
_FORCE_PUSH = re.compile(r"\bforce (?=push)", re.I)
_OMIT = re.compile(r"^(?:always )?(?:omit|leave out) (?:all |any |the )?", re.I)
# "all tests pass (`make test`)" is "`make test` passes"
_CHECKS_PASS = re.compile(
    r"\b(?:(?:all|the|your|existing|unit) )*(?:tests?|build|lint(?:er|ing)?|type ?checks?|checks?)"
    r" (?:pass(?:es)?|succeeds?|(?:is|are) (?:clean|green))(?: locally)? \((`[^`]+`)\)",
    re.I,
)
# "for Rust changes" is "after Rust changes"
_FOR_CHANGES = re.compile(
    r"\b[Ff]or (?=(?:(?:any|every|all|each) )?(?:[A-Z][\w#+]* |code )?(?:changes?|edits?|modifications?)"
    r"(?:$|[,:]| (?:to|in|under|of)\b))"
)
_BLOCKED_PUSHES = re.compile(
    r"^direct pushes to (\S+(?: branch)?) (?:are|is) (?:blocked|rejected|disabled|prevented)\b.*",
    re.I,
)
_ASKING_FOR_REVIEW = re.compile(
    r"\b(?:asking|submitting|sending|handing)(?: (?:it|them|(?:the |your )?(?:changes|code|work|PR)))?"
    r" (?:for|to) (?:a )?(?:(?:human|peer|final|code) )*review\b",
    re.I,
)
# "ensure that `.env` is not committed": an order, where "`.env` is not committed" is a description
_ENSURES_NOT = re.compile(
    r"^(?:(?:always|please) )?(?:ensure|make sure|be sure|see to it|verify|check)(?: that)?"
    r" (?P<subject>[^,;:]{1,80}?) (?:is|are) (?:not|never) (?=(?:being )?[a-z-]+(?:ed|en)\b)",
    re.I,
)
_RELATIONS = phrase_table(RELATIONS)


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
    text = _in_usual_words(text.strip(" .!,:"))
    tokens = read_tokens(text)
    clause = _Words(text, tokens, [token.word for token in tokens])
    return _read_fronted_circumstance(clause, is_prohibited) or _read_main_clause(
        clause, 0, is_prohibited
    )


def _in_usual_words(text: str) -> str:
    """A clause in the words that the grammar knows: "omit semicolons" is "no semicolons"."""
    text = _ENSURES_NOT.sub(r"\g<subject> must not be ", text)
    text = _ASKING_FOR_REVIEW.sub("requesting review", text)
    text = _CHECKS_PASS.sub(r"\1 passes", text)
    text = _FOR_CHANGES.sub("after ", text)
    text = _BLOCKED_PUSHES.sub(r"never push to \1", text)
    return _OMIT.sub("no ", _WE_USE.sub("use ", _FORCE_PUSH.sub("force-", text)))


def circumstance_of(text: str) -> Circumstance | None:
    """A text that is a circumstance alone, such as the heading "Before committing"; None if it
    begins with no word of a circumstance.
    """
    tokens = read_tokens(text.strip(" .!,:"))
    words = [token.word for token in tokens]
    phrase = longest_phrase(_RELATIONS, words, 0)
    if not phrase:
        return None
    start = len(phrase.split())
    rest = text[tokens[start].start :] if start < len(tokens) else ""
    return Circumstance(RELATIONS[phrase], rest.strip(" .!,:"))


# --- Steps 2 and 3: circumstances before the main clause, and words that lead to it

_LEADS = phrase_table(LEADS)
_NEGATIONS = phrase_table(NEGATIONS)
_MAX_FRONTED_COMMAS = 5  # a circumstance before the main clause ends at one of the first commas
_MAX_FRONTED_TOKENS = 25
# after these words, a verb belongs to them: "when you *run* it"
_JOINED_TO_VERBS = frozenset("you we to and or not can be been , : - – —".split())
_ORDERS = frozenset("run execute always please ensure".split())
_FIRST_WORDS = frozenset(("no", "only", "prefer"))


def _read_fronted_circumstance(clause: _Words, is_prohibited: bool) -> Instruction | None:
    """A clause that begins with a circumstance: "in tests, never use `sleep`"."""
    start = _skip_leads(clause, 0)
    phrase = longest_phrase(_RELATIONS, clause.words, start)
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


def _main_starts(clause: _Words, begin: int) -> list[tuple[int, int]]:
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


def _begins_main_clause(clause: _Words, start: int) -> bool:
    """Whether a main clause clearly begins at a token."""
    word = clause.word(start)
    is_lead = longest_phrase(_LEADS, clause.words, start)
    return bool(word in VERBS | _FIRST_WORDS or _negation_at(clause, start) or is_lead)


def _lists_verbs(words: Sequence[str], comma: int) -> bool:
    """Whether a comma stands in a list of verbs: "when you add, remove or rename files"."""
    before = words[comma - 1]
    return before in VERBS and comma + 1 < len(words) and words[comma + 1] in VERBS


def _skip_leads(clause: _Words, start: int) -> int:
    """The first token after words that only lead to the instruction."""
    while start < len(clause.words) and not _negation_at(clause, start):
        lead = longest_phrase(_LEADS, clause.words, start)
        if longest_phrase(_RELATIONS, clause.words, start) == "instead of":
            break
        if not lead and not (start and clause.words[start] in (",", ":", "!")):
            break
        start += len(lead.split()) or 1
    return start


def _negation_at(clause: _Words, start: int) -> str:
    """The words that forbid at a token; "" if none do."""
    return longest_phrase(_NEGATIONS, clause.words, start)


# --- Step 4: the main clause


def _read_main_clause(clause: _Words, start: int, is_prohibited: bool) -> Instruction | None:
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


def _read_passing_command(clause: _Words, start: int) -> Instruction | None:
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
    head, circumstances = _split_at_circumstances(clause, end + len(predicate.split()))
    if head:
        return None
    return Instruction(Modality.MUST, ("pass",), clause.text_between(start, end), circumstances)


# --- Step 4, with a subject: "`any` is forbidden"

_STATES = FORBIDDEN | REQUIRED | NEEDS | NOT_DONE | ONLY_DONE | ONLY_ALLOWED
_PREDICATES = phrase_table(_STATES | BE_NOT | BE | MAY_BE | MUST | MUST_NOT | MUST_PASS)
_MAX_SUBJECT_TOKENS = 14
_MAX_NOUN_TOKENS = 5
_SUBORDINATE = frozenset("if when that which who because whether unless until so".split())


def _read_subject(clause: _Words, start: int) -> Instruction | None:
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


def _is_noun(clause: _Words, start: int) -> bool:
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
    clause: _Words, start: int, position: int, predicate: str
) -> Instruction | None:
    """The instruction of a subject, from a token up to a position, and the predicate there."""
    after = position + len(predicate.split())
    subject = clause.text_between(start, position)
    if predicate in NOT_DONE | ONLY_DONE:  # "a task is not done until `make check` passes"
        _, circumstances = _split_at_circumstances(clause, after)
        modality = Modality.NEVER if predicate in NOT_DONE else Modality.ONLY
        return Instruction(modality, ("finish",), subject, circumstances)
    if predicate in FORBIDDEN | ONLY_ALLOWED:
        act = _read_act(clause.slice(start, position))
        head, circumstances = _split_at_circumstances(clause, after)
        if head or act is None:
            return None
        modality = Modality.NEVER if predicate in FORBIDDEN else Modality.ONLY
        circumstances = (*act.circumstances, *circumstances)
        return replace(act, modality=modality, circumstances=circumstances)
    if predicate in REQUIRED:
        head, circumstances = _split_at_circumstances(clause, after)
        return None if head else Instruction(Modality.MUST, ("require",), subject, circumstances)
    if predicate in NEEDS | MUST_PASS:
        head, circumstances = _split_at_circumstances(clause, after)
        verb = "require" if predicate in NEEDS else "pass"
        occasion = Circumstance(Relation.SUBJECT, subject)
        return Instruction(Modality.MUST, (verb,), head, (occasion, *circumstances))
    if predicate in MUST_NOT | MUST:
        return _read_actor(clause, subject, after, is_prohibited=predicate in MUST_NOT)
    return _read_passive(clause, clause.slice(start, position), predicate, after)


_ARTICLES = frozenset("the any a an these those all your".split())
_ADJECTIVES_OF_ACTS = ("manual", "direct", "further", "following")


def _read_act(clause: _Words) -> Instruction | None:
    """Forbids an act that is named as a thing: "edits to `vendor/`", "running `make`", "`any`"."""
    words = clause.words
    start = 0
    while start < len(words) and words[start] in (*_ARTICLES, *_ADJECTIVES_OF_ACTS):
        start += 1
    if start >= len(words):
        return None
    if words[start] in GERUNDS:
        return _read_verbs(clause, start, True)
    if words[start] in ACT_NOUNS and clause.word(start + 1) in AFTER_ACT_NOUNS | {""}:
        verb = ACT_NOUNS[words[start]]
        begin = start + 1 + (clause.word(start + 1) == "of")
        head, circumstances = _split_at_circumstances(clause, begin)
        return Instruction(Modality.NEVER, (verb,), head, circumstances)
    head, circumstances = _split_at_circumstances(clause, start)
    return Instruction(Modality.NEVER, ("use",), head, circumstances)


def _read_actor(
    clause: _Words, subject: str, after: int, *, is_prohibited: bool
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
    clause: _Words, subject: _Words, predicate: str, after: int
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
    head, circumstances = _split_at_circumstances(clause, end)
    if head:
        return None
    first = int(is_of_nothing)
    verb = next((n for n, word in enumerate(subject.words) if word in ("is", "are")), None)
    if verb is not None:  # "`dist/` is built by CI and must not be committed"
        subject = subject.slice(0, verb)
    thing, places = _split_at_circumstances(subject, first)
    return Instruction(modality, verbs, thing, (*places, *circumstances))


# --- Step 4, with verbs: "never push to `main`"

_PREFERENCES = phrase_table(PREFERENCES)
_INFINITIVES = {**{verb: verb for verb in VERBS}, **GERUNDS}


def _read_verbs(clause: _Words, start: int, is_prohibited: bool) -> Instruction | None:
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
        if longest_phrase(_RELATIONS, words, end):
            modality = Modality.ONLY
    head, circumstances = _split_at_circumstances(clause, end)
    if re.search(r"(?:^| )only$", head) and modality is Modality.MUST:  # "push only when asked"
        modality = Modality.ONLY
        head = head.removesuffix("only").strip()
    return Instruction(modality, verbs, head, circumstances)


def _read_preference(clause: _Words, start: int) -> Instruction:
    """Reads "`rg` over `grep`", after "prefer"."""
    head, circumstances = _split_at_circumstances(clause, start)
    return Instruction(Modality.PREFER, ("use",), head, circumstances)


def _read_modality(clause: _Words, start: int, is_prohibited: bool) -> tuple[Modality, int]:
    """The modality of the verb at a token, and the token after the words for it."""
    if negation := _negation_at(clause, start):
        return Modality.NEVER, start + len(negation.split())
    if clause.word(start) == "only":
        return Modality.ONLY, start + 1
    return Modality.NEVER if is_prohibited else Modality.MUST, start


def _skip_adverbs(clause: _Words, start: int) -> int:
    """The first token after adverbs that limit nothing: "directly", "under any circumstances"."""
    while start < len(clause.words):
        phrase = longest_phrase(_RELATIONS, clause.words, start)
        if RELATIONS.get(phrase) is Relation.AT_ALL:
            start += len(phrase.split())
        elif clause.words[start] in (*ADVERBS, ","):
            start += 1
        else:
            break
    is_git = clause.word(start) == "git" and clause.word(start + 1) in VERBS
    return start + 1 if is_git else start  # "do not git commit"


_ADJECTIVES_OF_CODE = frozenset(
    "bare raw plain direct global inline".split()
)  # "never raw `fetch`"


def _read_thing(clause: _Words, start: int, modality: Modality) -> Instruction | None:
    """Reads a thing without a verb: "never bare `python`", "`make lint` before committing", "pnpm,
    not npm".
    """
    tokens = clause.tokens
    if start >= len(tokens):
        return None
    first = start + (clause.words[start] in _ADJECTIVES_OF_CODE)
    if first < len(tokens) and tokens[first].is_code:
        head, circumstances = _split_at_circumstances(clause, start)
        return Instruction(modality, ("use",), head, circumstances)
    head, circumstances = _split_at_circumstances(clause, start)
    is_name = 1 <= len(head.split()) <= 2 and clause.words[start] not in _SUBORDINATE
    if is_name and circumstances and circumstances[0].relation in COMPARISONS:
        return Instruction(modality, ("use",), head, circumstances)
    return None


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


# --- Step 5: the object and the circumstances

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


def _split_at_circumstances(clause: _Words, start: int) -> tuple[str, tuple[Circumstance, ...]]:
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
    while (first := head.split(" ", 1))[0].lower() in _ARTICLES and len(first) > 1:
        head = first[1]
    return head, tuple(circumstances)


def _cuts_from(clause: _Words, start: int) -> list[_Cut]:
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


def _advice_or_next_step_at(clause: _Words, position: int, last: Relation | None) -> _Cut | None:
    """Finds ", use `b`", which is advice, and ", then push", which is the next step.

    Args:
        last: the relation of the circumstance before it; None if it is the first.
    """
    word = clause.words[position]
    following = position + 1
    is_in_list = last is Relation.THEN and clause.word(following) in VERBS
    is_advice = clause.word(following) in ADVICE_WORDS and following + 1 < len(clause.words)
    if word == "," and is_advice and not is_in_list:
        return _Cut(Relation.ADVICE, position, following)
    if word not in (",", "and", "then"):
        return None
    while clause.word(following) in ("and", "then"):
        following += 1
    is_verb = clause.word(following) in VERBS and clause.word(following + 1) not in AFTER_NAMES
    return _Cut(Relation.THEN, position, following) if is_verb else None


def _explanation_or_command_at(clause: _Words, position: int, last: Relation | None) -> _Cut | None:
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


def _phrase_at(clause: _Words, position: int) -> _Cut | None:
    """Finds a phrase such as "before" or "instead of using"."""
    phrase = longest_phrase(_RELATIONS, clause.words, position)
    if not phrase or (phrase == "following" and clause.words[position - 1] == "the"):
        return None
    if phrase.endswith("else") or phrase == "elsewhere":  # "in code or elsewhere" is one place
        if position and clause.words[position - 1] in ("or", "and"):
            return None
    following = position + len(phrase.split())
    if RELATIONS[phrase] in COMPARISONS:
        while clause.word(following) in COMPARED:
            following += 1
    return _Cut(RELATIONS[phrase], position, following)
