"""Rules about files that change together: "update `docs/api.md` when you change `src/api/`"."""

import re
from collections.abc import Sequence

from holdfast.drafting.changed_files import CHANGING, SOMEBODY, globs_of_change
from holdfast.drafting.clauses import Clause
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import ADVERBS, CODE, CODES, any_words, forms, one_of, whole_match
from holdfast.drafting.path_globs import glob_argument, path_glob

_UPDATE = (
    "(?:"
    + any_words(
        *("always", "also", "please", "you must", "must", "make sure to", "remember to"),
        "be sure to",
    )
    + one_of(
        *("update", "add (?:an entry|a note|an entry or note|it) (?:to|in)", "edit", "bump"),
        *("adjust", "sync", "amend", "regenerate", "keep"),
    )
    + r"(?: (?:the|your|a|corresponding|relevant|both|its|documentation in|docs in|entry in))*)"
)
_WHEN_CHANGED = one_of(
    r"(?:when(?:ever)?|if|after|every time|any time) "  # "when you change `src/api/`"
    rf"{SOMEBODY}{CHANGING} (?P<changed>.+?)",
    r"(?:when(?:ever)?|if) (?P<changed2>.+?) "  # "if `src/api/` changes"
    r"(?:changes?|is changed|are changed|is modified|is updated)",
)
_TOO = r"(?: (?:too|as well|accordingly|to match|in the same (?:PR|commit|change)|with .+))?"
_ALSO = rf"(?P<also>{CODES}|[\w./-]+\.md)(?: files?)?"
_MUST = r"(?:must|should|needs? to|has to)"
_WITH_EVERY_CHANGE = forms(
    {
        "Update `CHANGELOG.md` for every change": (
            rf"{_UPDATE} (?P<also>{CODE}|CHANGELOG(?:\.md)?|changelog) (?:for|with|on|in|after)"
            r" (?:every|each|any|all) (?:single )?(?:code )?"
            r"(?:changes?|commits?|PRs?|pull requests?|edits?)"
        ),
        "Every PR must include an entry in `CHANGELOG.md`": (
            rf"(?:every|each|any|all) (?:code )?(?:changes?|PRs?) {_MUST}"
            r" (?:also |always |include an? )*(?:update|entry in|edit)"
            rf" (?P<also>{CODE}|CHANGELOG\.md)"
        ),
    }
)
_WITH_A_CHANGE = forms(
    {
        "When you change `src/api/`, update `docs/api.md` too": (
            rf"{_WHEN_CHANGED},? {_UPDATE} {_ALSO}{_TOO}"
        ),
        "Update `docs/api.md` whenever `src/api/` changes": rf"{_UPDATE} {_ALSO},? {_WHEN_CHANGED}",
        "Any changes to `src/api/` must be reflected in `docs/api.md`": (
            r"(?:any |all |every )?(?:changes?|edits?) (?:to|in) (?P<changed>.+?)"
            r" (?:must|should|needs? to|requires?) (?:also |always |be )*"
            r"(?:accompanied by|reflected in|mirrored in|update|updating|an? update (?:to|of)"
            rf"|matching changes in) (?P<also>{CODES})"
        ),
    }
)
_IN_SYNC = forms(
    {
        "Keep `a.json` and `b.json` in sync": (
            rf"{ADVERBS}keep (?P<first>`[^`]+`)"
            r"(?: and | (?:in sync |synchronized |synced |aligned )with )"
            r"(?P<second>`[^`]+`)"
            r"(?: (?:[a-z]+ly )?(?:in sync|synchronized|synced|aligned|in lockstep))?"
        )
    }
)


def joint_change_rule(clause: Clause) -> list[Draft]:
    """Reads "when you change `src/api/`, update `docs/api.md`"."""
    if clause.is_prohibited:
        return []
    if match := whole_match(_WITH_EVERY_CHANGE, clause.text):
        name = match["also"].strip("`")
        glob = path_glob("CHANGELOG.md" if name.lower() == "changelog" else name)
        return [_require_together(["*"], [glob])] if glob else []
    for match in filter(None, (way.pattern.fullmatch(clause.text) for way in _WITH_A_CHANGE)):
        groups = match.groupdict("")
        changed = globs_of_change(groups["changed"] or groups.get("changed2", ""))
        also = globs_of_change(groups["also"])
        if changed and also:
            return [_require_together(changed, also)]
    return _in_sync(clause.text)


def _in_sync(text: str) -> list[Draft]:
    """Reads "keep `a.json` and `b.json` in sync", and "keep `a.json` in sync with `b.json`", where
    only a change of the second asks for one of the first.
    """
    match = whole_match(_IN_SYNC, text)
    if match is None or not re.search("sync|lockstep|aligned", text):
        return []
    first = globs_of_change(match["first"])
    second = globs_of_change(match["second"])
    if not first or not second:
        return []
    if " with " in text:
        return [_require_together(second, first)]
    return [_require_together(first, second), _require_together(second, first)]


def _require_together(changed: Sequence[str], also: Sequence[str]) -> Draft:
    """Requires that a change of some files comes with a change of others."""
    spec = {
        "name": "changes_together",
        "changed": glob_argument(changed),
        "also": glob_argument(also),
    }
    return Draft("file", "requirement", spec)
