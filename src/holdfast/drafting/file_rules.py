"""Rules about files that are left alone: "do not edit `vendor/`", "`src/gen/` is generated"."""

import re
from collections.abc import Sequence

from holdfast.drafting.clauses import all_known, names_in
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import (
    CODE,
    CODES,
    NEVER,
    OBJECTS,
    REASON,
    TAIL,
    any_words,
    first_match,
    forbidden,
    forms,
    one_of,
    whole_match,
)
from holdfast.drafting.instructions import is_imperative
from holdfast.drafting.path_globs import path_glob
from holdfast.drafting.rules_file import Statement

EDIT = r"(?:hand-?|manually |directly |ever )?" + one_of(
    *"edit modify touch change alter update overwrite".split(),
    *("write to", "write into", "tamper with", "add (?:new )?files (?:to|in)"),
    r"make (?:any |manual |direct )?(?:changes|edits) (?:to|in)",
)
_MAKE = r"(?:create|recreate|re-create|add)"
_THE = r"(?: the)?\s*"
# "any files in", "the generated bindings"
_THE_FILES = "(?:{} |(?:in|inside|under|within) )*".format(
    one_of(
        *"the any all generated existing translated translations docs artifacts bindings".split(),
        *("output", "files?", "folders?", "anything", "code", "director(?:y|ies)"),
    )
)
_FILES = r"(?: files?| folders?| director(?:y|ies))?"
_FOLDER = r"(?: files?| folder| directory)?"
# "edit", "rename or edit", "edit, move or delete"
_EDITS = (
    rf"(?:delete or |rename or |move or |create or |add or )?{EDIT}(?:(?:,? or |, |/){EDIT})*"
    r"(?:,? or (?:delete|remove|rename|move|regenerate|reformat))?\b"
)
_EDITING = forbidden(
    {
        "edit any generated files in `vendor/` by hand": (
            rf"{_EDITS}{_THE}{_THE_FILES}(?P<files>{CODES}|{OBJECTS})"
            rf"(?: (?P<kind>YAML|JSON|TOML|Markdown|SQL|XML|CSS|HTML))?{_FILES}{TAIL}"
        ),
        "create, edit, or delete `a.lock`": (
            rf"(?:{_MAKE}|{EDIT}), (?:{_MAKE}|{EDIT}),? or \w+\b{_THE}(?P<files>{CODES})"
            rf"(?: files?)?{TAIL}"
        ),
        # of a folder that may have files already, only new ones are meant
        "create `setup.py` files": (
            rf"{_MAKE}\b{_THE}(?P<files>{CODES}|{OBJECTS})(?: files?)?{TAIL}"
        ),
    },
    f"{any_words('always', 'please', 'important', 'strictly')}{NEVER} ",
)
_FILES_IN_BRACKETS = forms(
    {
        "Never modify system files (`/etc`)": (
            rf"{NEVER} {EDIT} (?:the |any )?(?:[\w-]+,? ){{1,6}}?"
            r"(?:files?|code|folders|directories)"
            rf" \((?P<files>{CODES}(?:(?:,|,? or|,? and) any {CODE})*)\){TAIL}"
        )
    }
)
_ENDINGS = {"yaml": "{yml,yaml}", "markdown": "{md,mdx}"}  # others are the name of the kind
_BARE_FILE = re.compile(
    r"[\w./-]*\w\.(?:py|js|mjs|ts|tsx|jsx|json|toml|ya?ml|cfg|ini|lock|md|txt|sh|sql|css|html|env)"
)


def globs_in(objects: str) -> list[str] | None:
    """The globs of a list of paths; None if something in it may be none."""
    names = names_in(objects)
    if not all(is_code or _BARE_FILE.fullmatch(name) for name, is_code in names):
        return None
    return all_known([path_glob(name) for name, _ in names])


def _untouched(globs: Sequence[str] | None) -> list[Draft] | None:
    """A rule for each glob, that no file of it is changed; None for None."""
    if globs is None:
        return None
    specs = [{"name": "file_not_touched", "path": glob} for glob in dict.fromkeys(globs)]
    return [Draft("file", "prohibition", spec) for spec in specs]


def protected_file_rule(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Do not edit files in `vendor/`."""
    if listed := whole_match(_FILES_IN_BRACKETS, statement.text.strip(" .")):
        return _untouched(globs_in(listed["files"].replace(" any ", " ")))
    match = _EDITING.match(clause, prohibits)
    is_soft = re.search(r"\b(?:prefer|consider|if|when)\b", clause, re.I)
    if match is None and not (prohibits or is_soft):
        match = first_match(_INSTEAD_OF_EDITING, clause)
        if match and not _says_what_to_do(clause[: match.start()], match[0]):
            return None
    if match is None:
        return None
    globs = globs_in(match["files"])
    kind = (match.groupdict().get("kind") or "").lower()
    if globs and kind:
        globs = [f"{glob.removesuffix('*')}*.{_ENDINGS.get(kind, kind)}" for glob in globs]
    return _untouched(globs)


def _says_what_to_do(before: str, comparison: str) -> bool:
    """Whether "instead of editing ..." follows an order; "never by" forbids by itself."""
    if re.match("never|not", comparison, re.I):
        return not re.search(r"\b(?:never|not)\b|n['’]t\b", before, re.I)
    return is_imperative(before)


_INSTEAD_OF_EDITING = forms(
    {
        "rather than editing `tasks.json` directly": (
            r"(?:rather than|instead of|never by|not by) (?:directly |manually )?(?:hand-?)?editing"
            rf" (?:the )?(?P<files>{CODES})(?: files?)?(?: directly| manually| by hand)?"
            r"(?= so\b|$|[,.;:)])"
        )
    }
)
_CANNOT_BE_EDITED = forms(
    {
        "Generated files (`src/gen/`) must not be edited by hand": (
            rf"(?:generated files? )?\(?(?:the |all |files in |everything in )*"
            rf"(?P<files>{CODES})\)?(?: files?)? (?:must|should|may|can) (?:not|never) be"
            rf" (?:hand-?|manually )?(?:edited|modified|changed|touched)(?: or \w+)?{TAIL}"
        )
    }
)
_READ_ONLY = forms(
    {
        "Treat everything in `vendor/` as read-only": (
            r"(?:treat |consider )?"
            r"(?:the |all |files in |everything (?:in|under) |anything in )*"
            rf"(?P<files>{CODES}){_FOLDER}(?: is| are| as)?(?: strictly)?"
            r" (?:read-only|immutable|off[ -]limits|frozen)"
        ),
        "Leave `vendor/` alone": (
            rf"(?:leave|keep) (?:the )?(?P<files>{CODES}){_FOLDER}"
            r" (?:alone|untouched|unchanged|as[ -]is|unmodified)"
        ),
    }
)
_FILES_FIRST = re.compile(
    rf"(?:the |all |files in |everything in )?(?P<files>{CODES}){_FOLDER}"
    r"\s*(?:[—–:(,-]|(?:is|are|was|were)\b)",
    re.I,
)
# what is said of files that were named
_NOT_EDITED = forms(
    {
        "generated, do not edit it directly": (
            rf"(?:(?:so|and|auto-?generated|generated|please)[,:.]? )*{NEVER} {EDIT}"
            rf"(?: (?:it|them|this|these|this file|that file|these files|{REASON}))*"
        ),
        "generated and read-only": (
            r"(?:auto-?generated|generated)?(?:,| and)? ?(?:is |are )?(?:strictly )?read-only"
        ),
    }
)


def generated_file_rule(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """`src/gen/` is generated - do not edit."""
    whole = statement.text.strip(" .")
    if clause not in statement.text and clause != whole:
        return None
    if match := whole_match(_CANNOT_BE_EDITED, whole):
        return _untouched(globs_in(match["files"]))
    locked = whole_match(_READ_ONLY, clause)
    if locked and not prohibits:
        return _untouched(globs_in(locked["files"]))
    match = _FILES_FIRST.match(statement.text)
    if match is None or not statement.text.startswith(clause[:12]):
        return None
    pieces = re.split(r"[—–;:(,]|\s-\s|, (?=\w)|\. ", statement.text[match.end("files") :])
    pieces += re.split(r"[;—–]|\. |, (?=\w)", statement.following)[:1]
    if not any(whole_match(_NOT_EDITED, piece.strip(" .!,:)")) for piece in pieces):
        return None
    return _untouched(globs_in(match["files"]))


# the heading of a list of files, or its end
_NO_EDIT_HEADING = re.compile(
    rf"(?:{NEVER}) {EDIT}(?: (?:these|the following|any|generated|files?|folders?|director(?:y|ies)"
    rf"|paths|of|in|or|{REASON}))*[\s:!.)]*$",
    re.I,
)
_PROTECTED_HEADING = forms(
    {
        "Protected files:": (
            r"\W*(?:protected|read-only|off[ -]limits) (?:files|paths|areas|folders"
            r"|files and folders|files & folders|directories)\W*"
        )
    }
)
_NO_EDIT_LABEL = forms(
    {
        "Do not edit generated files": rf"{NEVER} {EDIT}(?: generated| these)? files?",
        "Generated files — do not hand-edit": (
            rf"(?:(?:auto-?)?generated|protected|vendored) files?\W+{NEVER} {EDIT}"
        ),
    }
)
_LIST_ITEM = forms(
    {
        "`src/gen/` is auto-generated by protoc": (
            rf"(?P<files>{CODES})(?: (?:is|are) (?:auto-?)?generated.*| files?)?"
        )
    }
)


_MAY_BE_EDITED = re.compile(
    r"\bfreely\b|\b(?:can|may) (?:be )?edit|\b(?:fine|safe|ok|okay|free) to (?:edit|change|modify)"
    r"|(?<!not )(?<!never )\bedit (?:this|it|these)\b",
    re.I,
)


def file_item_rule(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """An item `src/gen/` below "Never edit these files"."""
    if _MAY_BE_EDITED.search(statement.text):
        return None
    if whole_match(_NO_EDIT_LABEL, statement.label):
        return _untouched(globs_in(clause)) if re.fullmatch(CODES, clause) else None
    if statement.label or not any(map(_is_no_edit_heading, statement.under[-2:])):
        return None
    match = whole_match(_LIST_ITEM, clause)
    if match is None or not statement.text.startswith(match["files"]):
        return None
    return _untouched(globs_in(match["files"]))


def _is_no_edit_heading(name: str) -> bool:
    """Whether a heading or an introduction says that what is below is not to be edited."""
    if whole_match(_PROTECTED_HEADING, name):
        return True
    parts = re.split(r" [—–-] ", name)
    part = parts[-1] if "must" in name else parts[0]
    plain = re.sub(r"[^\x00-\x7f’]", "", part)
    return any(map(_NO_EDIT_HEADING.search, (plain, name)))
