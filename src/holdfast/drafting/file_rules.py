"""Rules about files that are left alone: "do not edit `vendor/`", "`src/gen/` is generated"."""

import re
from collections.abc import Sequence

from holdfast.drafting.clauses import CODES, NEVER, OBJECTS, REASON, TAIL, after_never, names_in
from holdfast.drafting.commands import (
    path_glob,
)
from holdfast.drafting.drafts import Draft
from holdfast.drafting.rules_file import Statement

EDIT = (
    r"(?:hand-?|manually |directly |ever )?(?:edit|modify|touch|change|alter|update|write to"
    r"|write into|overwrite|tamper with|make (?:any |manual |direct )?(?:changes|edits) (?:to|in)"
    r"|add (?:new )?files (?:to|in))"
)


_MAKE = r"(?:create|recreate|re-create)"


_FILES = (
    r"(?:(?:the|any|all|generated|existing|translated|translations|docs|artifacts|bindings"
    r"|output|files?|folders?|anything|code|director(?:y"
    r"|ies)) |(?:in|inside|under|within) )*"
)


def globs_in(objects: str) -> list[str] | None:
    names = names_in(objects)
    globs = [path_glob(name) for name, is_code in names if is_code]
    return (
        [glob for glob in globs if glob] if globs and len(names) == sum(map(bool, globs)) else None
    )


def untouched(globs: Sequence[str]) -> list[Draft]:
    specs = [{"name": "file_not_touched", "path": glob} for glob in dict.fromkeys(globs)]
    return [Draft("file", "prohibition", spec) for spec in specs]


def file_never(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Do not edit files in `vendor/`."""
    verbs = (
        rf"(?:delete or |rename or |move or |create or |add or )?{EDIT}"
        rf"(?:(?:,? or |, |/){EDIT})*(?:,? or (?:delete|remove|rename|move|regenerate|reformat))?"
    )
    rest = after_never(clause, verbs, prohibits)
    match = (
        re.fullmatch(
            rf"{_FILES}({CODES}|{OBJECTS})(?: files?| folders?| director(?:y|ies))?{TAIL}",
            rest,
            re.I,
        )
        if rest
        else None
    )
    listed = re.fullmatch(
        rf"{NEVER} {EDIT} (?:the |any )?(?:[\w-]+ ){{1,2}}?(?:files?|code|folders|directories)"
        rf" \(({CODES})\){TAIL}",
        statement.text.strip(" ."),
        re.I,
    )
    if listed and (globs := globs_in(listed[1])):
        return untouched(globs)
    rest = after_never(clause, rf"(?:{_MAKE}|{EDIT}), (?:{_MAKE}|{EDIT}),? or \w+", prohibits)
    if match is None:
        rest = rest or after_never(clause, _MAKE, prohibits)
        # of a folder that may have files already, only new ones are meant
        match = re.fullmatch(rf"({CODES})(?: files?)?{TAIL}", rest, re.I) if rest else None
    globs = globs_in(match[1]) if match else None
    return untouched(globs) if globs else None


def file_is_generated(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """`src/gen/` is generated - do not edit."""
    if clause not in statement.text and clause != statement.text.strip(" ."):
        return None
    passive = re.fullmatch(
        rf"(?:generated files? )?\(?(?:the |all |files in |everything in )*({CODES})\)?"
        rf"(?: files?)? (?:must|should|may|can) (?:not|never) be (?:hand-?|manually )?(?:edited"
        rf"|modified|changed"
        rf"|touched)(?: or \w+)?{TAIL}",
        statement.text.strip(" ."),
        re.I,
    )
    if passive and (globs := globs_in(passive[1])):
        return untouched(globs)
    locked = re.fullmatch(
        rf"(?:treat |consider )?(?:the |all |files in |everything (?:in|under) |anything in )*"
        rf"(?P<codes>{CODES})(?: files?| folder| directory)?(?: is| are| as)?(?: strictly)?"
        r" (?:read-only|immutable|off[ -]limits|frozen)"
        rf"|(?:leave|keep) (?:the )?(?P<left>{CODES})(?: files?| folder| directory)?"
        r" (?:alone|untouched|unchanged|as[ -]is|unmodified)",
        clause,
        re.I,
    )
    if locked and not prohibits and (globs := globs_in(locked["codes"] or locked["left"])):
        return untouched(globs)
    match = re.match(
        rf"(?:the |all |files in |everything in )?({CODES})(?: files?| folder| directory)?"
        rf"\s*(?:[—–:(,-]|(?:is|are|was|were)\b)",
        statement.text,
        re.I,
    )
    if match is None or not (is_first := statement.text.startswith(clause[:12])) or not is_first:
        return None
    pieces = [
        piece.strip(" .!,:)")
        for piece in re.split(r"[—–;:(]|\s-\s|, (?=\w)|\. ", statement.text[match.end(1) :])
    ]
    following = re.split(r"[;—–]|\. ", statement.following)[:1]
    pieces += [piece.strip(" .!") for piece in following]
    says_no = any(
        re.fullmatch(
            rf"(?:(?:so|and|auto-?generated|generated|please)[,:.]? )*{NEVER} {EDIT}"
            rf"(?: (?:it|them|this|these|this file|that file|these files|{REASON}))*"
            r"|(?:auto-?generated|generated)?(?:,| and)? ?(?:is |are )?(?:strictly )?read-only",
            piece,
            re.I,
        )
        for piece in pieces
    )
    globs = globs_in(match[1]) if says_no else None
    return untouched(globs) if globs else None


def _is_no_edit_heading(name: str) -> bool:
    """Whether a heading or an introduction says that what is below is not to be edited."""
    plain = re.sub(r"[^\x00-\x7f’]", "", re.split(r" [—–-] ", name)[-1 if "must" in name else 0])
    of = r"these|the following|any|generated|files?|folders?|director(?:y|ies)|paths|of|in|or"
    return bool(
        re.search(rf"(?:{NEVER}) {EDIT}(?: (?:{of}|{REASON}))*[\s:!.)]*$", plain, re.I)
        or re.search(rf"(?:{NEVER}) {EDIT}(?: (?:{of}|{REASON}))*[\s:!.)]*$", name, re.I)
        or re.fullmatch(
            r"\W*(?:protected|read-only|off[ -]limits) (?:files|paths|areas|folders"
            r"|files and folders|files & folders|directories)\W*",
            name,
            re.I,
        )
    )


def file_below(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """An item `src/gen/` below "Never edit these files"."""
    labelled = re.fullmatch(rf"{NEVER} {EDIT}(?: generated| these)? files?", statement.label, re.I)
    listed = re.fullmatch(rf"{CODES}", clause) if labelled else None
    if listed and (globs := globs_in(clause)):
        return untouched(globs)
    if statement.label:
        return None
    heading = any(map(_is_no_edit_heading, statement.under[-2:]))
    match = (
        re.fullmatch(rf"({CODES})(?: (?:is|are) (?:auto-?)?generated.*| files?)?", clause)
        if heading
        else None
    )
    if match is None or not statement.text.startswith(match[1]):
        return None
    globs = globs_in(match[1])
    return untouched(globs) if globs else None
