"""The occasions of a rule: before an event such as a commit, or after a change of files.

The words of an occasion come from the grammar: ("before", "committing"), ("after", "editing
`api.proto`"), ("when", "`src/` changes").
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.drafting.acts import acts_in, gate_of
from holdfast.drafting.clauses import all_or_none, names_in
from holdfast.drafting.code_tokens import files_of_language
from holdfast.drafting.forms import CODES
from holdfast.drafting.instruction_words import GERUNDS, PARTICIPLES
from holdfast.drafting.instructions import Circumstance, Instruction
from holdfast.drafting.path_globs import path_glob

# the words of circumstances that may be occasions
OCCASION_WORDS = ("before", "until", "after", "once", "when", "if", "while", "occasion")


@dataclass(frozen=True)
class Occasion:
    """When a command has to be run.

    Args:
        then: the pattern of the commands before which it is run; "" if it is run after a change.
        changed: the globs of the files after whose change it is run.
    """

    then: str = ""
    changed: tuple[str, ...] = ()

    @property
    def is_any_change(self) -> bool:
        """Whether it is after a change of code, whatever file that is in."""
        return bool(self.changed) and self.changed[0] == "*"


END_OF_WORK = Occasion(changed=("*",))

# --- The end of the work: "before you finish", "once a task is complete"

_WORK = frozenset(
    """task tasks work change changes session feature implementation it anything everything coding
    job turn edits code fix""".split()
)
_ENDING = frozenset("finish complete end conclude finalize finalise close".split())
_REPORTING = frozenset("mark consider declare call report claim deem hand".split())
_DONE = frozenset("done complete completed finished ready off completion success".split())
_END_NOUNS = frozenset("handoff completion hand-off finishing".split())
_SMALL_WORDS = frozenset(
    """a an any every each the your all this that you we i are is as be been have has having with
    making of to it's you're series it's coding or it's being up for review""".split()
)

# acts for which "when" means "before": what is run "when deploying" may be the deployment
_CHECKED = frozenset(("commit", "push", "pr", "merge", "submission", "review"))

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
_CHANGES = frozenset("change changes edit edits modification modifications update updates".split())
_SOMEBODY = frozenset("you we i having are have you've you're".split())
_BEFORE_PLACES = frozenset("the any your a an all these files".split())
_IS_CHANGED = re.compile(
    r"(?P<files>.+?) (?:(?:is|are|was|were|has been|have been|gets?) )?"
    r"(?:chang(?:e|es|ed)|modified|edited|updated|touched|added|regenerated)",
    re.I,
)
_THAT_YOU_CHANGE = re.compile(
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
_BEFORE_NAMES = re.compile(
    r"^(?:(?:to|in|of|under|inside|within|any|every|each|the|all|new|a|an|code|files?|anything|something"
    r"|everything|source) )+(?:changes? (?:to|in|under) )?(?:the )?(?=\S)",
    re.I,
)
_BARE_PATH = re.compile(r"(?:[\w.@-]+/)+\*{0,2}|[\w-]+\.(?:json|toml|ya?ml|proto|prisma|md)")
_OF_ONE_LANGUAGE = re.compile(
    r"\S+(?: (?:code|files?|changes?|sources?|source files?|code changes?))?"
)


def occasion_of(circumstance: Circumstance) -> Occasion | None:
    """The occasion that a circumstance names; None if it is another circumstance, or one that
    cannot be told.

    >>> occasion_of(Circumstance("after", "editing `a.proto`"))
    Occasion(then='', changed=('a.proto',))
    """
    word, text = circumstance
    if word in ("before", "until"):
        if is_end_of_work(text):
            return END_OF_WORK
        return _event(text)
    if word in ("after", "once", "when", "if", "while"):
        return _after(word, text)
    if word == "on" and re.match("every|each|any", text):  # "on every change to `a.proto`"
        return _after("after", text)
    if word == "occasion":  # "changes to `a.proto` require", "committing requires"
        return _event(text) or _after("after", text)
    return None


def occasions_of(instruction: Instruction) -> list[Occasion | None]:
    """The occasions of an instruction; None for each that cannot be told."""
    occasions: list[Occasion | None] = []
    for number, circumstance in enumerate(instruction.circumstances):
        if circumstance.word in (*OCCASION_WORDS, "on"):
            is_subject = circumstance.word == "occasion"  # which is complete
            rest = () if is_subject else instruction.circumstances[number + 1 :]
            text = " ".join([circumstance.text, *_continuation(rest)])
            occasion = occasion_of(circumstance._replace(text=text))
            occasions += [occasion] if occasion or circumstance.word != "on" else []
    return occasions


def _continuation(circumstances: Sequence[Circumstance]) -> Iterator[str]:
    """The words with which an occasion goes on: "any change" goes on "to `src/`"; a purpose, as in
    "any change to verify it", is something else.
    """
    for word, text in circumstances:
        first = text.split(" ")[0].lower()
        is_purpose = word == "to" and not text.startswith("`") and first not in _BEFORE_PLACES
        if word not in ("to", "in", "inside") or is_purpose:
            return
        yield f"{word} {text}"


def _event(text: str) -> Occasion | None:
    """The occasion before an event such as "committing or pushing"."""
    if re.search(r"\bpush\w* .*\bto `?(?:main|master|develop)\b", text, re.I):
        return None  # other pushes need not wait
    acts = acts_in(text)
    return Occasion(then=gate_of(acts)) if acts else None


def _after(word: str, text: str) -> Occasion | None:
    """The occasion behind "after" or "when": a change, or the end of the work."""
    if is_end_of_work(text) or re.fullmatch(r"(?:an?|the|each|every|your) (?:task|session)", text):
        return END_OF_WORK
    globs = _changed(text, word)
    if globs:
        return Occasion(changed=tuple(globs))
    acts = acts_in(text) if word in ("when", "while") else None  # "when committing"
    is_check_first = acts is not None and all(_CHECKED & act.nouns for act in acts)
    return _event(text) if is_check_first else None


def is_end_of_work(text: str) -> bool:
    """Whether words name the end of the work: "you are done with your changes", "handoff", "marking
    a task complete".
    """
    words = [word for word in re.findall(r"[\w'’-]+", text.lower()) if word not in _SMALL_WORDS]
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


def _changed(text: str, word: str) -> list[str] | None:
    """The globs of the files that a phrase says are changed; None if it says something else."""
    text = text.strip(" ,.")
    words = text.split()
    while words and words[0].lower() in _SOMEBODY:
        words = words[1:]
    verbs = 0
    while verbs < len(words) and _is_change_verb(words[verbs]):
        verbs += 1
    if verbs and words[verbs - 1].lower() not in ("or", "and", "/"):
        rest = " ".join(words[verbs:])
        return globs_of_change(rest) if rest else None
    nouns = re.fullmatch(
        r"(?P<kind>(?:[\w#+-]+ ){0,4})(?:changes?|edits?|modifications?|updates?)"
        r"(?: (?:to|in|of|under|on) (?P<files>.+))?",
        text,
        re.I,
    )
    if nouns and nouns["files"]:
        return globs_of_change(nouns["files"])
    if nouns and text.lower() not in _CHANGES:
        return globs_of_change(text)
    touched = _THAT_YOU_CHANGE.fullmatch(text)
    if touched:
        return globs_of_change(touched["files"])
    is_changed = _IS_CHANGED.fullmatch(text) if word != "after" else None
    return globs_of_change(is_changed["files"]) if is_changed else None


def _is_change_verb(word: str) -> bool:
    """Whether a word is a verb of a change, or joins two of them."""
    parts = word.lower().strip(",").split("/")
    return all(part in _FORMS_OF_CHANGE for part in parts) or word.lower() in ("or", "and")


def globs_of_change(text: str) -> list[str] | None:
    """The globs of the files that words such as "any file in `src/`" name; None if the words name
    no files, or may name something else.
    """
    text = text.strip(" ,.")
    if _ANY_CODE.fullmatch(text):
        return list(_CODE_FILES)
    if _ANY_CHANGE.fullmatch(text):
        return ["*"]
    plain = _BEFORE_NAMES.sub("", text) or text
    # "JavaScript/TypeScript" names two languages, and `a/b` a path
    parts = re.split(r",? or (?:any |the )?|,? and (?:any |the )?|, |(?<=[a-z+#])/(?=[A-Z])", plain)
    if len(parts) > 1 and not _CODES_OF_FILES.fullmatch(plain):
        globs_by_part = all_or_none([globs_of_change(part) for part in parts])
        return [glob for globs in globs_by_part for glob in globs] if globs_by_part else None
    if _CODES_OF_FILES.fullmatch(plain):
        names = [name for name, is_code in names_in(re.sub(r"(?<=`) \w+$", "", plain)) if is_code]
        # `.proto` stands for all files with this ending
        return all_or_none([path_glob(re.sub(r"^(?=\.\w+$)", "*", name)) for name in names])
    if _BARE_PATH.fullmatch(plain):
        glob = path_glob(plain)
        return [glob] if glob else None
    if _ANY_CODE.fullmatch(plain):
        return list(_CODE_FILES)
    if _ANY_CHANGE.fullmatch(plain):
        return ["*"]
    for names_of_files, globs in _USUAL_FILES:
        if names_of_files.fullmatch(plain):
            return list(globs)
    if not _OF_ONE_LANGUAGE.fullmatch(plain):
        return None
    return files_of_language(plain) or None
