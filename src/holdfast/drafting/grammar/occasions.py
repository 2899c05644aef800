"""The occasions of a rule: before an event such as a commit, or after a change of files.

The words of an occasion come from the grammar: ("before", "committing"), ("after", "editing
`api.proto`"), ("when", "`src/` changes").
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.drafting.agent_rules.code_tokens import files_of_language
from holdfast.drafting.grammar.acts import acts_in, gate_of
from holdfast.drafting.grammar.clauses import all_known, names_in
from holdfast.drafting.grammar.forms import CODES
from holdfast.drafting.grammar.instruction_words import GERUNDS, PARTICIPLES, Relation
from holdfast.drafting.grammar.instructions import Circumstance, Instruction
from holdfast.drafting.grammar.path_globs import path_glob

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

# --- The end of the work: "before you finish", "once a task is complete"

_WORK = frozenset(
    """task tasks work change changes session feature implementation it anything everything coding
    job turn edits code fix""".split()
)
_ENDING = frozenset("finish complete end conclude finalize finalise close".split())
_REPORTING = frozenset("mark consider declare call report claim deem hand".split())
_DONE = frozenset("done complete completed finished ready off completion success".split())
_END_NOUNS = frozenset("handoff completion hand-off finishing".split())
_FUNCTION_WORDS = frozenset(
    """a an any every each the your all this that you we i are is as be been have has having with
    making of to it's you're series it's coding or it's being up for review""".split()
)

# acts for which "when" means "before": what is run "when deploying" may be the deployment
_CHECKED_EVENTS = frozenset(("commit", "push", "pr", "merge", "submission", "review"))

# --- Changes of files

_CHANGE_VERBS = frozenset(
    """change modify edit touch update add create make write alter implement rename remove delete
    complete finish bump regenerate refactor move""".split()
)
_FORMS_OF_CHANGE = {
    **{verb: verb for verb in _CHANGE_VERBS},
    **{word: verb for word, verb in GERUNDS.items() if verb in _CHANGE_VERBS},
    **{word: verb for word, verb in PARTICIPLES.items() if verb in _CHANGE_VERBS},
    **{"refactoring": "refactor", "implementing": "implement", "implemented": "implement"},
    **{"wrote": "write", "renaming": "rename", "moving": "move", "altering": "alter"},
}
_NOUNS_OF_CHANGE = frozenset(
    "change changes edit edits modification modifications update updates".split()
)
_SOMEBODY = frozenset("you we i having are have you've you're".split())
# what must pass a check, if that says nothing about files
_ANYTHING = re.compile(
    r"(?:(?:all|the|your|any|every|of|each|both|new) )*"
    r"(?:code|changes?|tests?|commits?|these|checks?|following|everything|it|work|them)",
    re.I,
)
_ARTICLES = frozenset("the any your a an all these files".split())
_FILES_ARE_CHANGED = re.compile(
    r"(?P<files>.+?) (?:(?:is|are|was|were|has been|have been|gets?) )?"
    r"(?:chang(?:e|es|ed)|modified|edited|updated|touched|added|regenerated)",
    re.I,
)
_FILES_YOU_CHANGE = re.compile(
    r"(?P<files>.+?) (?:that )?you (?:[a-z]+ or )?(?:create|modify|change|edit|touch|add|write)",
    re.I,
)
_CODE_FILES = ("*", "!*.{md,mdx,txt,rst}")
_ANY_CODE = re.compile(
    r"(?:(?:any|every|each|the|your|all|some|new|existing|production|application) )*"
    r"(?:source |production )?(?:code|sources?|source files?|code files?)"
    r"(?: (?:changes?|edits?|files?|in this repo|modifications?|base))?|(?:the )?codebase",
    re.I,
)
_ANY_CHANGE = re.compile(
    r"(?:(?:any|the|your|all|every|each|a|file|making|significant|single|set of|series of|of) )*"
    r"(?:changes?|files?|edits?|modifications?)",
    re.I,
)
_USUAL_FILES = (
    (
        re.compile(r"(?:(?:any|the|new|project|a) )*(?:dependency|dependencies)(?: versions?)?"),
        ("{package.json,pyproject.toml,Cargo.toml,go.mod,requirements*.txt,Gemfile}",),
    ),
    (re.compile(r"(?:(?:the|any) )*Prisma schema", re.I), ("*schema.prisma",)),
    (
        re.compile(r"(?:(?:the|any|a) )*(?:proto|protobuf)(?: files?| definitions?)?", re.I),
        ("*.proto",),
    ),
)
_KIND_OF_FILES = r"(?: (?:files?|folder|directory|schemas?|definitions?|code|source|sources))?"
_CODES_OF_FILES = re.compile(rf"{CODES}{_KIND_OF_FILES}")
_WORDS_BEFORE_FILES = re.compile(
    r"^(?:(?:to|in|of|under|inside|within|any|every|each|the|all|new|a|an|code|files?|anything|something"
    r"|everything|source) )+(?:changes? (?:to|in|under) )?(?:the )?(?=\S)",
    re.I,
)
_BARE_PATH = re.compile(r"(?:[\w.@-]+/)+\*{0,2}|[\w-]+\.(?:json|toml|ya?ml|proto|prisma|md)")
_ONE_LANGUAGE = re.compile(
    r"\S+(?: (?:code|files?|changes?|sources?|source files?|code changes?))?"
)


def occasion_of(circumstance: Circumstance) -> Occasion | None:
    """The occasion that a circumstance names; None if it is another circumstance, or one that
    cannot be told.

    >>> occasion_of(Circumstance(Relation.AFTER, "editing `a.proto`"))
    AfterChange(files=('a.proto',))
    """
    relation, text = circumstance
    if relation in (Relation.BEFORE, Relation.UNTIL):
        if is_end_of_work(text):
            return END_OF_WORK
        return _before_events(text)
    if relation in (Relation.AFTER, Relation.ONCE, Relation.WHEN, Relation.IF):
        return _after_change_or_work(relation, text)
    if relation is Relation.ON and re.match("every|each|any", text):  # "on every change to `a`"
        return _after_change_or_work(Relation.AFTER, text)
    if relation is Relation.SUBJECT:  # "changes to `a.proto` require", "committing requires"
        return _before_events(text) or _after_change_or_work(Relation.AFTER, text)
    return None


def occasion_of_instruction(instruction: Instruction) -> Occasion | None:
    """The only occasion of an instruction; None if it has none, or one that cannot be told.

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
    return [*events, *changes][0]


def _occasions_in(instruction: Instruction) -> list[Occasion | None]:
    """The occasions of an instruction; None for each that cannot be told."""
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


def _before_events(text: str) -> Occasion | None:
    """The occasion before an event such as "committing or pushing"."""
    if re.search(r"\bpush\w* .*\bto `?(?:main|master|develop)\b", text, re.I):
        return None  # other pushes need not wait
    acts = acts_in(text)
    return BeforeEvent(gate_of(acts)) if acts else None


def _after_change_or_work(relation: Relation, text: str) -> Occasion | None:
    """The occasion behind "after" or "when": a change, or the end of the work."""
    if is_end_of_work(text) or re.fullmatch(r"(?:an?|the|each|every|your) (?:task|session)", text):
        return END_OF_WORK
    globs = _changed_files(text, relation)
    if globs:
        return AfterChange(tuple(globs))
    acts = acts_in(text) if relation is Relation.WHEN else []  # "when committing"
    is_check_first = bool(acts) and all(_CHECKED_EVENTS & act.nouns for act in acts)
    return _before_events(text) if is_check_first else None


def is_end_of_work(text: str) -> bool:
    """Whether words name the end of the work: "you are done with your changes", "handoff", "marking
    a task complete".
    """
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


def _changed_files(text: str, relation: Relation) -> list[str]:
    """The globs of the files that a phrase says are changed; [] if it says something else."""
    text = text.strip(" ,.")
    words = text.split()
    while words and words[0].lower() in _SOMEBODY:
        words = words[1:]
    verbs = 0
    while verbs < len(words) and _is_change_verb(words[verbs]):
        verbs += 1
    if verbs and words[verbs - 1].lower() not in ("or", "and", "/"):
        rest = " ".join(words[verbs:])
        return globs_of_change(rest) if rest else []
    nouns = re.fullmatch(
        r"(?P<kind>(?:[\w#+-]+ ){0,4})(?:changes?|edits?|modifications?|updates?)"
        r"(?: (?:to|in|of|under|on) (?P<files>.+))?",
        text,
        re.I,
    )
    if nouns and nouns["files"]:
        return globs_of_change(nouns["files"])
    if nouns and text.lower() not in _NOUNS_OF_CHANGE:
        return globs_of_change(text)
    touched = _FILES_YOU_CHANGE.fullmatch(text)
    if touched:
        return globs_of_change(touched["files"])
    is_changed = _FILES_ARE_CHANGED.fullmatch(text) if relation is not Relation.AFTER else []
    return globs_of_change(is_changed["files"]) if is_changed else []


def _is_change_verb(word: str) -> bool:
    """Whether a word is a verb of a change, or joins two of them."""
    parts = word.lower().strip(",").split("/")
    return all(part in _FORMS_OF_CHANGE for part in parts) or word.lower() in ("or", "and")


def globs_of_change(text: str) -> list[str]:
    """The globs of the files that words such as "any file in `src/`" name; [] if the words name
    no files, or may name something else.
    """
    text = text.strip(" ,.")
    if _ANY_CODE.fullmatch(text):
        return list(_CODE_FILES)
    if _ANY_CHANGE.fullmatch(text):
        return ["*"]
    plain = _WORDS_BEFORE_FILES.sub("", text) or text
    # "JavaScript/TypeScript" names two languages, and `a/b` a path
    parts = re.split(r",? or (?:any |the )?|,? and (?:any |the )?|, |(?<=[a-z+#])/(?=[A-Z])", plain)
    if len(parts) > 1 and not _CODES_OF_FILES.fullmatch(plain):
        globs_by_part = all_known([globs_of_change(part) for part in parts])
        return [glob for globs in globs_by_part for glob in globs] if globs_by_part else []
    if _CODES_OF_FILES.fullmatch(plain):
        names = [name for name, is_code in names_in(re.sub(r"(?<=`) \w+$", "", plain)) if is_code]
        # `.proto` stands for all files with this ending
        return all_known([path_glob(re.sub(r"^(?=\.\w+$)", "*", name)) for name in names])
    if _BARE_PATH.fullmatch(plain):
        glob = path_glob(plain)
        return [glob] if glob else []
    if _ANY_CODE.fullmatch(plain):
        return list(_CODE_FILES)
    if _ANY_CHANGE.fullmatch(plain):
        return ["*"]
    for names_of_files, globs in _USUAL_FILES:
        if names_of_files.fullmatch(plain):
            return list(globs)
    if not _ONE_LANGUAGE.fullmatch(plain):
        return []
    return files_of_language(plain)
