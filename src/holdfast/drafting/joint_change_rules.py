"""Rules about files that change together: "update `docs/api.md` when you change `src/api/`"."""

import re
from collections.abc import Sequence

from holdfast.drafting.clauses import Clause
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import ADVERBS, CODE, forms, whole_match
from holdfast.drafting.instructions import Instruction, Modality, instruction_of
from holdfast.drafting.occasions import END_OF_WORK, globs_of_change, occasions_of
from holdfast.drafting.path_globs import glob_argument, path_glob

_UPDATE = ("update", "add", "edit", "bump", "adjust", "sync", "amend", "regenerate", "keep")
_OCCASIONS = ("after", "when", "if", "once", "occasion")
_FOLLOW = ("reflect", "accompany", "mirror")
_BEFORE_FILE = re.compile(
    r"(?:(?:updating|the|your|a|an|corresponding|relevant|both|its|entry|note|changelog|documentation|docs"
    r"|matching|related|in|to) )+(?=\S)",
    re.I,
)
_FILE = re.compile(
    rf"{CODE}(?: files?)?(?: too| as well| accordingly)?|[\w./-]+\.md(?: too)?", re.I
)
# behind "changes to `src/api/` require": "*updating* `docs/api.md`", "*an update* to it"
_AN_UPDATE = re.compile(
    r"(?:(?:an?|matching|corresponding) )*(?:updat(?:e|es|ing)|changes)\b", re.I
)
_EVERY_CHANGE = re.compile(
    r"(?:every|each|any|all) (?:single )?(?:code )?"
    r"(?:changes?|commits?|PRs?|pull requests?|edits?)",
    re.I,
)
_CHANGELOG = re.compile(r"`?CHANGELOG(?:\.md)?`?", re.I)
_EVERY_PR = forms(
    {
        "Every PR must include an entry in `CHANGELOG.md`": (
            r"(?:every|each|any|all) (?:code )?(?:changes?|PRs?) (?:must|should|has to) "
            r"(?:also |always |include an? )*(?:update|entry in|edit)"
            rf" (?P<also>{CODE}|CHANGELOG\.md)"
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
    if match := whole_match(_EVERY_PR, clause.text):
        return _require_together(["*"], _files(match["also"]))
    instruction = instruction_of(clause.text)
    rules: list[Draft] = []
    if instruction is not None and instruction.modality is Modality.MUST:
        rules = _with_a_change(instruction) or _with_every_change(instruction)
    return rules or _in_sync(clause.text)


def _with_a_change(instruction: Instruction) -> list[Draft]:
    """Reads "update `docs/api.md` whenever `src/api/` changes", and "changes to `src/api/` must be
    reflected in `docs/api.md`".
    """
    if instruction.does(_FOLLOW) and re.fullmatch("changes?|edits?", instruction.object, re.I):
        changed = globs_of_change(instruction.behind("to", "in") or "")
        return _require_together(changed, _files(instruction.circumstances[-1].text))
    occasions = occasions_of(instruction)
    is_update = instruction.does(_UPDATE) or (
        instruction.does(["require"]) and _AN_UPDATE.match(instruction.object)
    )
    if len(occasions) != 1 or not is_update:
        return []
    if not instruction.has_only(*_OCCASIONS, "in", "to", "with", "as", "then"):
        return []
    occasion = occasions[0]
    if occasion is None or occasion == END_OF_WORK or not occasion.changed:
        return []
    return _require_together(occasion.changed, _updated(instruction))


def _with_every_change(instruction: Instruction) -> list[Draft]:
    """Reads "update `CHANGELOG.md` for every change"."""
    words = ("for", "with", "on", "in", "after", "to")
    texts = [text for word, text in instruction.circumstances if word in words]
    if not instruction.does(_UPDATE) or not any(map(_EVERY_CHANGE.fullmatch, texts)):
        return []
    return _require_together(["*"], _updated(instruction)) if instruction.has_only(*words) else []


def _updated(instruction: Instruction) -> list[str] | None:
    """The globs of the file that an instruction updates: "add an entry to `CHANGELOG.md`"."""
    places = [text for word, text in instruction.circumstances if word in ("to", "in")]
    texts = [instruction.object, *places[:1]]
    globs = map(_files, texts)
    return next(filter(None, globs), None)


def _files(text: str) -> list[str] | None:
    """The globs of the file that a text names; None if it names none."""
    plain = _BEFORE_FILE.sub("", text, count=1)
    if _CHANGELOG.fullmatch(plain):
        return ["CHANGELOG.md"]
    if not _FILE.fullmatch(plain):
        return None
    glob = path_glob(re.split(" ", plain.replace("`", ""))[0])
    return [glob] if glob else None


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
        return _require_together(second, first)
    return _require_together(first, second) + _require_together(second, first)


def _require_together(changed: Sequence[str] | None, also: Sequence[str] | None) -> list[Draft]:
    """Requires that a change of some files comes with a change of others; [] if either is
    unknown.
    """
    if not changed or not also:
        return []
    spec = {
        "name": "changes_together",
        "changed": glob_argument(changed),
        "also": glob_argument(also),
    }
    return [Draft("file", "requirement", spec)]
