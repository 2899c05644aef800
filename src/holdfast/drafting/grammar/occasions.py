"""The occasions of a rule: before an event such as a commit, or after a change of files.

The words of an occasion come from the grammar: ("before", "committing"), ("after", "editing
`api.proto`"), ("when", "`src/` changes").
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.drafting.grammar.acts import acts_in, gate_of
from holdfast.drafting.grammar.circumstances import Circumstance
from holdfast.drafting.grammar.instruction_words import GERUNDS, Relation
from holdfast.drafting.grammar.instructions import Instruction
from holdfast.drafting.grammar.named_files import files_changed_in


@dataclass(frozen=True)
class BeforeEvent:
    """Before an event such as a commit.

    Args:
        commands: the pattern of the commands that are the event.
    """

    commands: str


@dataclass(frozen=True)
class AfterChange:
    """After a change of files.

    Args:
        files: the globs of the files.
    """

    files: tuple[str, ...]

    @property
    def is_of_any_code(self) -> bool:
        """Whether it is a change of code, whatever file that is in."""
        return self.files[0] == "*"


Occasion = BeforeEvent | AfterChange
END_OF_WORK = AfterChange(files=("*",))


def occasion_of(circumstance: Circumstance) -> Occasion | None:
    """The occasion that a circumstance names; None if it is another circumstance, or not
    understood.

    >>> occasion_of(Circumstance(Relation.AFTER, "editing `a.proto`"))
    AfterChange(files=('a.proto',))
    """
    relation, text = circumstance
    if relation in (Relation.BEFORE, Relation.UNTIL):
        parts = re.split(r" or (?=\w+ing\b)", text)  # "finishing a task or opening a PR"
        if any(map(is_end_of_work, parts)):
            is_known = all(is_end_of_work(part) or _before_events(part) for part in parts)
            return END_OF_WORK if is_known else None
        return _before_events(text)
    if relation in (Relation.AFTER, Relation.ONCE, Relation.WHEN, Relation.IF):
        return _after_change_or_work(relation, text)
    if relation is Relation.ON and re.match("every|each|any", text):  # "on every change to `a`"
        return _after_change_or_work(Relation.AFTER, text) or _before_events(text)
    if relation is Relation.SUBJECT:  # "changes to `a.proto` require", "committing requires"
        return _before_events(text) or _after_change_or_work(Relation.AFTER, text)
    return None


# --- The occasion of an instruction, which may have several circumstances

# the relations of circumstances that may be occasions
OCCASIONS = (
    Relation.BEFORE,
    Relation.UNTIL,
    Relation.AFTER,
    Relation.ONCE,
    Relation.WHEN,
    Relation.IF,
    Relation.SUBJECT,
)
# acts for which "when" means "before": what is run "when deploying" may be the deployment
_CHECKED_EVENTS = frozenset(("commit", "push", "pr", "merge", "submission", "review"))
# what must pass a check, if that says nothing about files
_ANYTHING = re.compile(
    r"(?:(?:all|the|your|any|every|of|each|both|new) )*"
    r"(?:(?:code|changes?|tests?|commits?|these|checks?|following|everything|it|work|them"
    r"|lint(?:ing|ers?)?|formatting|type ?checks?|builds?)(?:,? and |, |$))+",
    re.I,
)
_ARTICLES = frozenset("the any your a an all these files".split())


def occasion_of_instruction(instruction: Instruction) -> Occasion | None:
    """The only occasion of an instruction; None if it has none, or an unknown one.

    An event counts rather than a change of any code before it, and a change rather than the end of
    the work: "after any code change, run `make lint` before committing".
    """
    occasions = _occasions_in(instruction)
    known = [occasion for occasion in occasions if occasion]
    if not known:
        return None
    if len(known) < len(occasions):
        return known[0] if all(map(_is_vague, instruction.circumstances)) else None
    events = [occasion for occasion in known if isinstance(occasion, BeforeEvent)]
    changes = [occasion for occasion in known if isinstance(occasion, AfterChange)]
    of_files = [change for change in changes if not change.is_of_any_code]
    if of_files and events and not _only_names_language(instruction):
        return of_files[0]
    changes.sort(key=lambda change: change == END_OF_WORK)
    return events[0] if events else changes[0]


def _occasions_in(instruction: Instruction) -> list[Occasion | None]:
    """The occasions of an instruction; None for each that is not understood."""
    occasions: list[Occasion | None] = []
    for number, circumstance in enumerate(instruction.circumstances):
        relation = circumstance.relation
        if relation in OCCASIONS or relation is Relation.ON:
            is_subject = relation is Relation.SUBJECT  # which is complete
            rest = () if is_subject else instruction.circumstances[number + 1 :]
            text = " ".join([circumstance.text, *_continued_texts(rest)])
            occasion = occasion_of(circumstance._replace(text=text))
            occasions += [occasion] if occasion or relation is not Relation.ON else []
    return occasions


def _is_vague(circumstance: Circumstance) -> bool:
    """Whether a circumstance is no occasion, a known one, or a change of anything: "edits"."""
    if circumstance.relation not in OCCASIONS or occasion_of(circumstance):
        return True
    if circumstance.relation is Relation.SUBJECT:
        return _ANYTHING.fullmatch(circumstance.text) is not None
    return re.fullmatch(r"(?:making |your )*(?:edits|changes)", circumstance.text) is not None


def is_anything(subject: str) -> bool:
    """Whether a subject of "must pass" limits nothing: "all tests", "every change"."""
    return _ANYTHING.fullmatch(subject) is not None


def _only_names_language(instruction: Instruction) -> bool:
    """Whether files are named only by their language, as the work that comes first: "after making
    Go changes, run `go vet` before committing".
    """
    texts = instruction.texts_of(Relation.AFTER)
    is_conditional = instruction.text_of(Relation.IF, Relation.WHEN) is not None
    return len(texts) == 1 and "`" not in texts[0] and not is_conditional


def _continued_texts(circumstances: Sequence[Circumstance]) -> Iterator[str]:
    """The words with which an occasion goes on: "any change" goes on "to `src/`"; a purpose, as in
    "any change to verify it", is something else.
    """
    for relation, text in circumstances:
        first = text.split(" ")[0].lower()
        is_place = text.startswith("`") or first in _ARTICLES
        if relation is not Relation.IN and not (relation is Relation.TO and is_place):
            return
        yield f"{relation.value} {text}"


# --- The occasion that the words of one circumstance name

# "running `git commit`"
_EVENT_CODE = re.compile(
    r"(?:running |you run |every )?`(?P<event>git (?:commit|push)|gh pr create)`"
)


def _before_events(text: str) -> Occasion | None:
    """The occasion before an event such as "committing or pushing"."""
    if re.search(r"\bpush\w* .*\bto `?(?:main|master|develop)\b", text, re.I):
        return None  # other pushes need not wait
    if code := _EVENT_CODE.fullmatch(text):
        text = code["event"].removeprefix("gh ").replace("pr create", "opening a PR")
    acts = acts_in(text)
    return BeforeEvent(gate_of(acts)) if acts else None


_OF_WORK = re.compile(r"(?:an?|the|each|every|your) (?:task|session|turn)")  # "after each task"
_CHANGES_ALONE = re.compile(r"(?:(?:making|your) )+(?:changes|edits)", re.I)


def _after_change_or_work(relation: Relation, text: str) -> Occasion | None:
    """The occasion after "after" or "when": a change, or the end of the work."""
    if is_end_of_work(text) or _OF_WORK.fullmatch(text):
        return END_OF_WORK
    if relation is Relation.AFTER and _CHANGES_ALONE.fullmatch(text):
        return END_OF_WORK
    globs = files_changed_in(text, may_be_passive=relation is not Relation.AFTER)
    if globs:
        return AfterChange(tuple(globs))
    acts = acts_in(text) if relation is Relation.WHEN else []  # "when committing"
    is_check_first = bool(acts) and all(_CHECKED_EVENTS & act.nouns for act in acts)
    return _before_events(text) if is_check_first else None


# --- The end of the work: "before you finish", "once a task is complete"

_WORK = frozenset(
    """task tasks work change changes session feature implementation it anything everything coding
    job turn edits code fix""".split()
)
_ENDING = frozenset("finish complete end conclude finalize finalise close".split())
_REPORTING = frozenset("mark consider declare call report claim deem hand say".split())
_DONE = frozenset("done complete completed finished ready off completion success victory".split())
_END_NOUNS = frozenset("handoff completion hand-off finishing".split())
_FUNCTION_WORDS = frozenset(
    """a an any every each the your all this that you we i are is as be been have has having with
    making of to it's you're series it's coding or it's being up for review""".split()
)
# "you present the code to the user"
_PRESENTING = re.compile(
    r"(?:you )?(?:present|show|deliver|return|hand)(?:ing)?(?: over)?"
    r"(?: (?:it|them|code|(?:the|your|any) (?:work|code|changes|results?|solution)))?"
    r"(?: (?:back )?to (?:the user|me|us))?",
    re.I,
)


def is_end_of_work(text: str) -> bool:
    """Whether words name the end of the work: "you are done with your changes", "handoff", "marking
    a task complete".
    """
    if _PRESENTING.fullmatch(text):
        return True
    words = [word for word in re.findall(r"[\w'’-]+", text.lower()) if word not in _FUNCTION_WORDS]
    verbs = [GERUNDS.get(word, word) for word in words]
    if not words or not all(
        word in _WORK | _DONE | _END_NOUNS or verb in _ENDING | _REPORTING
        for word, verb in zip(words, verbs, strict=True)
    ):
        return False
    if verbs[0] in _REPORTING:
        return len(words) > 1 and words[-1] in _DONE
    is_ended = words[0] in _DONE | _END_NOUNS or verbs[0] in _ENDING
    return is_ended or words[-1] in _DONE | _END_NOUNS
