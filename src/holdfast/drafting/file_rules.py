"""Rules about files that are left alone: "do not edit `vendor/`", "`src/gen/` is generated"."""

import re
from collections.abc import Sequence

from holdfast.drafting.clauses import CODES, NEVER, OBJECTS, REASON, TAIL, names_in
from holdfast.drafting.commands import path_glob
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import forms, whole_match
from holdfast.drafting.rules_file import Statement

EDIT = (
    r"(?:hand-?|manually |directly |ever )?(?:edit|modify|touch|change|alter|update|write to"
    r"|write into|overwrite|tamper with|make (?:any |manual |direct )?(?:changes|edits) (?:to|in)"
    r"|add (?:new )?files (?:to|in))"
)
_MAKE = r"(?:create|recreate|re-create|add)"
_THE = r"(?: the)?\s*"
_THE_FILES = (
    r"(?:(?:the|any|all|generated|existing|translated|translations|docs|artifacts|bindings"
    r"|output|files?|folders?|anything|code|director(?:y|ies)) |(?:in|inside|under|within) )*"
)
_FILES = r"(?: files?| folders?| director(?:y|ies))?"
_EDITS = (
    rf"(?:delete or |rename or |move or |create or |add or )?{EDIT}(?:(?:,? or |, |/){EDIT})*"
    r"(?:,? or (?:delete|remove|rename|move|regenerate|reformat))?\b"
)
_EDITING = (
    rf"{_EDITS}{_THE}{_THE_FILES}(?P<files>{CODES}|{OBJECTS})(?: (?P<kind>YAML|JSON|TOML|Markdown"
    rf"|SQL|XML|CSS|HTML))?{_FILES}{TAIL}",
    rf"(?:{_MAKE}|{EDIT}), (?:{_MAKE}|{EDIT}),? or \w+\b{_THE}(?P<files>{CODES})(?: files?)?{TAIL}",
    # of a folder that may have files already, only new ones are meant
    rf"{_MAKE}\b{_THE}(?P<files>{CODES}|{OBJECTS})(?: files?)?{TAIL}",
)
_NEVER_EDITED = forms(
    *(rf"(?:(?:always|please|important|strictly) )*{NEVER} {editing}" for editing in _EDITING)
)
_EDITED = forms(*_EDITING)  # below "Do not"
_NAMED_IN_BRACKETS = forms(
    rf"{NEVER} {EDIT} (?:the |any )?(?:[\w-]+ ){{1,2}}?(?:files?|code|folders|directories)"
    rf" \((?P<files>{CODES})\){TAIL}"
)
_ENDINGS = {"yaml": "{yml,yaml}", "markdown": "{md,mdx}"}  # others are the name of the kind
_BARE_FILE = re.compile(
    r"[\w./-]*\w\.(?:py|js|mjs|ts|tsx|jsx|json|toml|ya?ml|cfg|ini|lock|md|txt|sh|sql|css|html|env)"
)


def globs_in(objects: str) -> list[str] | None:
    """The globs of a list of paths; None if something in it may be none."""
    names = [
        name if is_code or _BARE_FILE.fullmatch(name) else "" for name, is_code in names_in(objects)
    ]
    globs = [path_glob(name) if name else None for name in names]
    return [glob for glob in globs if glob] if globs and all(globs) else None


def _untouched(globs: Sequence[str] | None) -> list[Draft] | None:
    """A rule for each glob, that no file of it is changed; None for None."""
    specs = [{"name": "file_not_touched", "path": glob} for glob in dict.fromkeys(globs or ())]
    return [Draft("file", "prohibition", spec) for spec in specs] or None


def file_never(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Do not edit files in `vendor/`."""
    if listed := whole_match(_NAMED_IN_BRACKETS, statement.text.strip(" .")):
        return _untouched(globs_in(listed["files"]))
    match = whole_match(_NEVER_EDITED + (_EDITED if prohibits else ()), clause)
    if match is None:
        return None
    globs = globs_in(match["files"])
    kind = (match.groupdict().get("kind") or "").lower()
    if globs and kind:
        globs = [f"{glob.removesuffix('*')}*.{_ENDINGS.get(kind, kind)}" for glob in globs]
    return _untouched(globs)


_CANNOT_BE_EDITED = forms(
    rf"(?:generated files? )?\(?(?:the |all |files in |everything in )*(?P<files>{CODES})\)?"
    r"(?: files?)? (?:must|should|may|can) (?:not|never) be (?:hand-?|manually )?(?:edited"
    rf"|modified|changed|touched)(?: or \w+)?{TAIL}"
)
_LOCKED = forms(
    r"(?:treat |consider )?(?:the |all |files in |everything (?:in|under) |anything in )*"
    rf"(?P<files>{CODES})(?: files?| folder| directory)?(?: is| are| as)?(?: strictly)?"
    r" (?:read-only|immutable|off[ -]limits|frozen)",
    rf"(?:leave|keep) (?:the )?(?P<files>{CODES})(?: files?| folder| directory)?"
    r" (?:alone|untouched|unchanged|as[ -]is|unmodified)",
)
_FILES_FIRST = re.compile(
    rf"(?:the |all |files in |everything in )?(?P<files>{CODES})(?: files?| folder| directory)?"
    r"\s*(?:[—–:(,-]|(?:is|are|was|were)\b)",
    re.I,
)
_NOT_EDITED = forms(
    rf"(?:(?:so|and|auto-?generated|generated|please)[,:.]? )*{NEVER} {EDIT}"
    rf"(?: (?:it|them|this|these|this file|that file|these files|{REASON}))*",
    r"(?:auto-?generated|generated)?(?:,| and)? ?(?:is |are )?(?:strictly )?read-only",
)


def file_is_generated(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """`src/gen/` is generated - do not edit."""
    whole = statement.text.strip(" .")
    if clause not in statement.text and clause != whole:
        return None
    if match := whole_match(_CANNOT_BE_EDITED, whole):
        return _untouched(globs_in(match["files"]))
    locked = whole_match(_LOCKED, clause)
    if locked and not prohibits:
        return _untouched(globs_in(locked["files"]))
    match = _FILES_FIRST.match(statement.text)
    if match is None or not statement.text.startswith(clause[:12]):
        return None
    said = re.split(r"[—–;:(,]|\s-\s|, (?=\w)|\. ", statement.text[match.end("files") :])
    said += re.split(r"[;—–]|\. ", statement.following)[:1]
    if not any(whole_match(_NOT_EDITED, piece.strip(" .!,:)")) for piece in said):
        return None
    return _untouched(globs_in(match["files"]))


_LEFT_ALONE = re.compile(
    rf"(?:{NEVER}) {EDIT}(?: (?:these|the following|any|generated|files?|folders?|director(?:y|ies)"
    rf"|paths|of|in|or|{REASON}))*[\s:!.)]*$",
    re.I,
)
_PROTECTED = forms(
    r"\W*(?:protected|read-only|off[ -]limits) (?:files|paths|areas|folders|files and folders"
    r"|files & folders|directories)\W*"
)
_NO_EDIT_LABEL = forms(rf"{NEVER} {EDIT}(?: generated| these)? files?")
_LISTED = forms(rf"(?P<files>{CODES})(?: (?:is|are) (?:auto-?)?generated.*| files?)?")


def file_below(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """An item `src/gen/` below "Never edit these files"."""
    if whole_match(_NO_EDIT_LABEL, statement.label):
        return _untouched(globs_in(clause)) if re.fullmatch(CODES, clause) else None
    if statement.label or not any(map(_is_no_edit_heading, statement.under[-2:])):
        return None
    match = whole_match(_LISTED, clause)
    if match is None or not statement.text.startswith(match["files"]):
        return None
    return _untouched(globs_in(match["files"]))


def _is_no_edit_heading(name: str) -> bool:
    """Whether a heading or an introduction says that what is below is not to be edited."""
    parts = re.split(r" [—–-] ", name)
    plain = re.sub(r"[^\x00-\x7f’]", "", parts[-1 if "must" in name else 0])
    return bool(
        _LEFT_ALONE.search(plain) or _LEFT_ALONE.search(name) or whole_match(_PROTECTED, name)
    )
