"""The files whose change a phrase names: "editing `api.proto`", "any change in `src/`"."""

import re
from itertools import chain

from holdfast.drafting.grammar.clauses import all_known, names_in
from holdfast.drafting.grammar.forms import CODES
from holdfast.drafting.grammar.instruction_words import GERUNDS, PARTICIPLES
from holdfast.drafting.grammar.language_files import files_of_language
from holdfast.drafting.grammar.path_globs import path_glob

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
_CHANGE_OF = re.compile(
    r"(?:[\w#+-]+ ){0,4}(?:changes?|edits?|modifications?|updates?)"
    r"(?: (?:to|in|of|under|on) (?P<files>.+))?",
    re.I,
)


def files_changed_in(text: str, *, may_be_passive: bool) -> list[str]:
    """The globs of the files that a phrase says are changed; [] if it says something else.

    Args:
        may_be_passive: whether the phrase may be a sentence, such as "`src/` is changed".
    """
    text = text.strip(" ,.")
    words = text.split()
    while words and words[0].lower() in _SOMEBODY:
        words = words[1:]
    verbs = 0
    while verbs < len(words) and _is_change_verb(words[verbs]):
        verbs += 1
    if verbs and words[verbs - 1].lower() not in ("or", "and", "/"):
        rest = " ".join(words[verbs:])
        return files_named_in(rest) if rest else []
    nouns = _CHANGE_OF.fullmatch(text)
    if nouns and nouns["files"]:
        return files_named_in(nouns["files"])
    if nouns and text.lower() not in _NOUNS_OF_CHANGE:
        return files_named_in(text)
    touched = _FILES_YOU_CHANGE.fullmatch(text)
    if touched:
        return files_named_in(touched["files"])
    is_changed = _FILES_ARE_CHANGED.fullmatch(text) if may_be_passive else None
    return files_named_in(is_changed["files"]) if is_changed else []


def _is_change_verb(word: str) -> bool:
    """Whether a word is a verb of a change, or joins two of them."""
    parts = word.lower().strip(",").split("/")
    return all(part in _FORMS_OF_CHANGE for part in parts) or word.lower() in ("or", "and")


def files_named_in(text: str) -> list[str]:
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
        globs_by_part = [files_named_in(part) for part in parts]
        return [*chain.from_iterable(globs_by_part)] if all(globs_by_part) else []
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
