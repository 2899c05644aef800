"""Rules that some files are changed together.

When you change `a.proto`, update `docs/api.md`. -> changes_together(changed="a.proto",
                                                                     also="docs/api.md")
Keep `a.md` in sync with `b.py`.                 -> changes_together(changed="b.py",
                                                                     also="a.md")
"""

import re
from collections.abc import Sequence

from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.clauses import Clause, all_known, codes_in
from holdfast.drafting.grammar.forms import CODE, CODES, form, whole_match, word_pattern
from holdfast.drafting.grammar.instruction_words import Relation
from holdfast.drafting.grammar.instructions import Instruction, instruction_of
from holdfast.drafting.grammar.named_files import glob_argument, path_glob
from holdfast.drafting.grammar.occasions import OCCASIONS, AfterChange, occasion_of_instruction

_CHANGES = frozenset(
    """update edit change modify add adjust bump sync mirror keep include reflect extend
    touch""".split()
)
_FILE_WORDS = r"(?:(?:the|its|their|both|all|corresponding|matching|a|an|new|relevant|also) )*"
_ENTRY = (
    r"(?:(?:entry|entries|note|notes|line|row|section|tests?|docs|documentation) (?:in|to|for) )?"
)
_UPDATED = form(
    "both the `a.json` and `b.json` files",
    rf"{_FILE_WORDS}{_ENTRY}{_FILE_WORDS}(?P<files>{CODES})(?: files?| accordingly| as well| too)*",
)
_IN_SYNC = form(
    "Keep `a.md` in sync with `b.py`",
    rf"(?:always |please )?(?:keep )?{_FILE_WORDS}(?P<also>{CODE})(?: must (?:be kept|stay))?"
    rf" (?:in sync|synchroni[sz]ed|up to date|aligned) with {_FILE_WORDS}(?P<changed>{CODE})",
)
_PART_IN_SYNC = form(
    "Keep `version` in `a.toml` in sync with `VERSION` in `b.py`",
    rf"(?:always |please )?keep (?:the )?{CODE} \(?in (?P<also>{CODE})\)?"
    r" (?:in sync|synchroni[sz]ed|aligned) with"
    rf" (?:the )?{CODE} \(?in (?P<changed>{CODE})\)?",
)
_ALL_IN_SYNC = form(
    "Keep `a.json` and `b.json` in sync",
    rf"(?:always |please )?(?:(?:keep )?{_FILE_WORDS}(?P<files>{CODE}(?:(?:,? and |, ){CODE})+)"
    r"(?: files?)?(?: (?:must|should|need to) (?:always )?(?:be kept|stay|remain|be|change))?"
    r" (?:in sync(?: with each other)?|synchroni[sz]ed|aligned|(?:updated|changed|edited) together"
    r"|together))",
)
_REFLECTED = form(
    "Any change to `a.py` must be reflected in `b.md`",
    r"(?:any|every|all|each) changes? (?:to|in|of) "
    rf"{_FILE_WORDS}(?P<changed>{CODE})(?: files?)? (?:must|should|need to|needs to|has to)"
    r" (?:also )?be (?:reflected|mirrored|documented|applied|repeated|duplicated|made)"
    rf" (?:in|to) {_FILE_WORDS}(?P<also>{CODE})(?: (?:too|as well))?",
) + form(
    "All changes to `api/` require an update of `openapi.yaml`",
    rf"(?:any|every|all|each) changes? (?:to|in|of) {_FILE_WORDS}(?P<changed>{CODE})(?: files?)?"
    r" (?:must (?:have|include|come with)|requires?|needs?) (?:an? )?"
    r"(?:(?:matching|corresponding) )?(?:updates?|changes?|edits?|entry|entries)"
    rf" (?:of|to|in) {_FILE_WORDS}(?P<also>{CODE})",
)
_MAX_FILES_IN_SYNC = 4
# "new strings need translations in both `en.json` and `de.json`"
_IN_LOCALES = re.compile(
    r"(?=.*\b(?:translat|strings?\b|keys?\b|texts?\b|messages?\b|i18n|locales?\b))"
    r"(?=.*\b(?:both|must|requires?|needs?|always|add)\b)"
    rf"[^`]* {_FILE_WORDS}(?P<files>{CODE}(?:(?:,? and |, ){CODE})+)(?: files?)?",
    re.I,
)
_LOCALE_FILE = re.compile(
    r"(?:.*/)?[\w-]*\b[a-z]{2}(?:[-_][A-Za-z]{2})?\.(?:json5?|ya?ml|ts|js|po|arb|properties|toml)"
)
_BOTH = re.compile(r"\bboth (?:the )?`", re.I)
_FOR_EVERY = re.compile(r"\b(?:for|with) (?:every|each|any|all) [\w-]*? ?changes?\b(?! to)", re.I)
_MAYBE = word_pattern(*"may might could can perhaps sometimes usually".split())
_PLACES = (Relation.IN, Relation.TO)


def together_rule(clause: Clause) -> list[Draft]:
    """Reads "when you change `a`, update `b`", "update both `a` and `b`" and "keep `a` in sync with
    `b`".
    """
    if clause.is_prohibited or _MAYBE.search(clause.text):
        return []
    whole = clause.statement.text.strip(" .") if clause.begins_statement else ""
    match = whole_match(_IN_SYNC + _REFLECTED, clause.text) or whole_match(_PART_IN_SYNC, whole)
    if match:
        return _together(codes_in(match["changed"]), codes_in(match["also"]))
    if match := whole_match(_ALL_IN_SYNC, clause.text):
        return _all_together(codes_in(match["files"]))
    if match := _IN_LOCALES.fullmatch(clause.text):
        names = codes_in(match["files"])
        return _all_together(names) if all(map(_LOCALE_FILE.fullmatch, names)) else []
    instruction = instruction_of(clause.text)
    if instruction is None or not instruction.binds or not instruction.does(_CHANGES):
        return []
    names = _files_updated(instruction)
    if not names:
        return []
    occasion = occasion_of_instruction(instruction)
    if _FOR_EVERY.search(clause.text):
        return []  # a turn may be a part of a change
    if isinstance(occasion, AfterChange) and _holds_then(instruction):
        return _together_globs(occasion.files, all_known([path_glob(name) for name in names]))
    if occasion is None and len(names) == 2 and _BOTH.search(clause.text):
        return _together(names[:1], names[1:])
    return []


def _files_updated(instruction: Instruction) -> list[str]:
    """The files that an instruction changes; [] if it may name something else."""
    places = instruction.texts_of(*_PLACES)
    for text in (instruction.object, *(places[:1] if "`" not in instruction.object else ())):
        match = whole_match(_UPDATED, text)
        if match and not re.search(r"` or `", match["files"]):
            return codes_in(match["files"])
    return []


_NEW_OR_GONE = re.compile(
    r"\b(?:add|creat|new\b|introduc|remov|delet|renam|mov(?:e|ing)|implement)", re.I
)
_CHANGING = re.compile(r"\b(?:modif|chang|edit|updat)", re.I)


def _holds_then(instruction: Instruction) -> bool:
    """Whether an instruction holds on its occasion without any further limit, and at each change
    rather than where files come or go: "when you add a file to `src/`".
    """
    occasions = " ".join(instruction.texts_of(*OCCASIONS))
    if _NEW_OR_GONE.search(occasions) and not _CHANGING.search(occasions):
        return False
    return instruction.has_only(*OCCASIONS, *_PLACES, Relation.WITH)


def _all_together(names: Sequence[str]) -> list[Draft]:
    """The rules that a change of each of some files comes with a change of the next one; [] if the
    files are too many, or one of the names may be none of a file.
    """
    globs = all_known([path_glob(name) for name in names])
    if not 2 <= len(globs) <= _MAX_FILES_IN_SYNC:
        return []
    following = [*globs[1:], globs[0]]
    pairs = zip(globs, following, strict=True)
    return [rule for changed, also in pairs for rule in _together_globs([changed], [also])]


def _together(changed: Sequence[str], also: Sequence[str]) -> list[Draft]:
    """The rules for files that are named by their paths; [] if a name may be none of a file."""
    globs = all_known([path_glob(name) for name in changed])
    return _together_globs(globs, all_known([path_glob(name) for name in also]))


def _together_globs(changed: Sequence[str], also: Sequence[str]) -> list[Draft]:
    """The rule that a change of some files comes with a change of each of the others."""
    drafts: list[Draft] = []
    for glob in also:
        others = [name for name in changed if name != glob]
        if others:
            if any(name == "*" for name in others):
                others = [*others, f"!{glob}"]
            spec = measure("changes_together", changed=glob_argument(others), also=glob)
            drafts.append(Draft("code", "requirement", spec))
    return drafts
