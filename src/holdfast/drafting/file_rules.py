"""Rules about files that are left alone: "do not edit `vendor/`", "`src/gen/` is generated"."""

import re
from collections.abc import Iterable

from holdfast.drafting.clauses import Clause, all_or_none, names_in
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
    forbid,
    forms,
    one_of,
    whole_match,
)
from holdfast.drafting.instructions import is_imperative
from holdfast.drafting.path_globs import path_glob

# --- Files that are named in the prohibition: "never edit `vendor/`"

_EDIT = r"(?:hand-?|manually |directly |ever )?" + one_of(
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
    rf"(?:delete or |rename or |move or |create or |add or )?{_EDIT}(?:(?:,? or |, |/){_EDIT})*"
    r"(?:,? or (?:delete|remove|rename|move|regenerate|reformat))?\b"
)
_EDITING = forbid(
    {
        "edit any generated files in `vendor/` by hand": (
            rf"{_EDITS}{_THE}{_THE_FILES}(?P<files>{CODES}|{OBJECTS})"
            rf"(?: (?P<kind>YAML|JSON|TOML|Markdown|SQL|XML|CSS|HTML))?{_FILES}{TAIL}"
        ),
        "create, edit, or delete `a.lock`": (
            rf"(?:{_MAKE}|{_EDIT}), (?:{_MAKE}|{_EDIT}),? or \w+\b{_THE}(?P<files>{CODES})"
            rf"(?: files?)?{TAIL}"
        ),
        # what is forbidden here is only to make new files; the folder may have old ones
        "create `setup.py` files": (
            rf"{_MAKE}\b{_THE}(?P<files>{CODES}|{OBJECTS})(?: files?)?{TAIL}"
        ),
    },
    f"{any_words('always', 'please', 'important', 'strictly')}{NEVER} ",
)
_FILES_IN_BRACKETS = forms(
    {
        "Never modify system files (`/etc`)": (
            rf"{NEVER} {_EDIT} (?:the |any )?(?:[\w-]+,? ){{1,6}}?"
            r"(?:files?|code|folders|directories)"
            rf" \((?P<files>{CODES}(?:(?:,|,? or|,? and) any {CODE})*)\){TAIL}"
        )
    }
)
# the ending of files of a kind, where it is not the name of the kind
_ENDINGS = {"yaml": "{yml,yaml}", "markdown": "{md,mdx}"}
_BARE_FILE = re.compile(
    r"[\w./-]*\w\.(?:py|js|mjs|ts|tsx|jsx|json|toml|ya?ml|cfg|ini|lock|md|txt|sh|sql|css|html|env)"
)
_INSTEAD_OF_EDITING = forms(
    {
        "rather than editing `tasks.json` directly": (
            r"(?:rather than|instead of|never by|not by) (?:directly |manually )?(?:hand-?)?editing"
            rf" (?:the )?(?P<files>{CODES})(?: files?)?(?: directly| manually| by hand)?"
            r"(?= so\b|$|[,.;:)])"
        )
    }
)

# --- Files that are named first: "`src/gen/` is generated - do not edit"

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
# what may be said of files that were named before it
_NOT_EDITED = forms(
    {
        "generated, do not edit it directly": (
            rf"(?:(?:so|and|auto-?generated|generated|please)[,:.]? )*{NEVER} {_EDIT}"
            rf"(?: (?:it|them|this|these|this file|that file|these files|{REASON}))*"
        ),
        "generated and read-only": (
            r"(?:auto-?generated|generated)?(?:,| and)? ?(?:is |are )?(?:strictly )?read-only"
        ),
    }
)

# --- Files in a list below a prohibition: an item `vendor/` below "Never edit these files"

# the whole of a heading, or its last words
_NO_EDIT_HEADING = re.compile(
    rf"(?:{NEVER}) {_EDIT}(?: (?:these|the following|any|generated|files?|folders?"
    rf"|director(?:y|ies)|paths|of|in|or|{REASON}))*[\s:!.)]*$",
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
        "Do not edit generated files": rf"{NEVER} {_EDIT}(?: generated| these)? files?",
        "Generated files — do not hand-edit": (
            rf"(?:(?:auto-?)?generated|protected|vendored) files?\W+{NEVER} {_EDIT}"
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
# an item that says the opposite of its heading: "`config/` can be edited freely"
_MAY_BE_EDITED = re.compile(
    r"\bfreely\b|\b(?:can|may) (?:be )?edit|\b(?:fine|safe|ok|okay|free) to (?:edit|change|modify)"
    r"|(?<!not )(?<!never )\bedit (?:this|it|these)\b",
    re.I,
)


def protected_file_rule(clause: Clause) -> list[Draft]:
    """Reads "do not edit files in `vendor/`"."""
    if listed := whole_match(_FILES_IN_BRACKETS, clause.statement.text.strip(" .")):
        return _protect_listed(listed["files"].replace(" any ", " "))
    match = _EDITING.match(clause.text, clause.is_prohibited) or _match_instead_of_editing(clause)
    globs = _globs_in(match["files"]) if match else []
    if match is None or globs is None:
        return []
    kind = (match.groupdict().get("kind") or "").lower()
    if kind:  # "any JSON files in `src/`"
        ending = _ENDINGS.get(kind, kind)
        globs = [f"{glob.removesuffix('*')}*.{ending}" for glob in globs]
    return _protect(globs)


def _match_instead_of_editing(clause: Clause) -> re.Match[str] | None:
    """The match of "instead of editing `a.json`", if it follows an order."""
    is_soft = re.search(r"\b(?:prefer|consider|if|when)\b", clause.text, re.I)
    match = first_match(_INSTEAD_OF_EDITING, clause.text)
    if clause.is_prohibited or is_soft or match is None:
        return None
    return match if _says_what_to_do(clause.text[: match.start()], match[0]) else None


def _says_what_to_do(before: str, comparison: str) -> bool:
    """Whether the words before "instead of editing" are an order.

    "Never by editing" needs no order, as it forbids by itself, unless a negation comes before it.
    """
    if re.match("never|not", comparison, re.I):
        return not re.search(r"\b(?:never|not)\b|n['’]t\b", before, re.I)
    return is_imperative(before)


def generated_file_rule(clause: Clause) -> list[Draft]:
    """Reads "`src/gen/` is generated - do not edit"."""
    statement = clause.statement
    whole = statement.text.strip(" .")
    if clause.text not in statement.text and clause.text != whole:
        return []
    if match := whole_match(_CANNOT_BE_EDITED, whole):
        return _protect_listed(match["files"])
    read_only = whole_match(_READ_ONLY, clause.text)
    if read_only and not clause.is_prohibited:
        return _protect_listed(read_only["files"])
    match = _FILES_FIRST.match(statement.text)
    if match is None or not clause.begins_statement:
        return []
    pieces = re.split(r"[—–;:(,]|\s-\s|, (?=\w)|\. ", statement.text[match.end("files") :])
    pieces += re.split(r"[;—–]|\. |, (?=\w)", statement.following)[:1]
    if not any(whole_match(_NOT_EDITED, piece.strip(" .!,:)")) for piece in pieces):
        return []
    return _protect_listed(match["files"])


def file_item_rule(clause: Clause) -> list[Draft]:
    """Reads an item such as "`src/gen/`" below "Never edit these files"."""
    statement = clause.statement
    if _MAY_BE_EDITED.search(statement.text):
        return []
    if whole_match(_NO_EDIT_LABEL, statement.label):
        return _protect_listed(clause.text) if re.fullmatch(CODES, clause.text) else []
    if statement.label or not any(map(_is_no_edit_heading, statement.under[-2:])):
        return []
    match = whole_match(_LIST_ITEM, clause.text)
    if match is None or not statement.text.startswith(match["files"]):
        return []
    return _protect_listed(match["files"])


def _is_no_edit_heading(name: str) -> bool:
    """Whether a heading or an introduction forbids editing what is listed below it."""
    if whole_match(_PROTECTED_HEADING, name):
        return True
    parts = re.split(r" [—–-] ", name)
    part = parts[-1] if "must" in name else parts[0]
    plain = re.sub(r"[^\x00-\x7f’]", "", part)
    return any(map(_NO_EDIT_HEADING.search, (plain, name)))


def _protect_listed(objects: str) -> list[Draft]:
    """Protects each path of a list, with one rule per path; [] if the list may have something else
    than paths.
    """
    globs = _globs_in(objects)
    return [] if globs is None else _protect(globs)


def _globs_in(objects: str) -> list[str] | None:
    """The globs of a list of paths; None if the list may have something else than paths."""
    names = names_in(objects)
    if not all(is_code or _BARE_FILE.fullmatch(name) for name, is_code in names):
        return None
    return all_or_none([path_glob(name) for name, _ in names])


def _protect(globs: Iterable[str]) -> list[Draft]:
    """Protects the files of each glob, with one rule per glob."""
    specs = [{"name": "file_not_touched", "path": glob} for glob in dict.fromkeys(globs)]
    return [Draft("file", "prohibition", spec) for spec in specs]
