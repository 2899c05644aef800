"""Rules about what is run after a change: "run `make gen` after editing `api.proto`"."""

import re
from collections.abc import Sequence

from holdfast.drafting.changed_files import CHANGING, SOMEBODY, globs_of_change
from holdfast.drafting.clauses import Clause, codes_in
from holdfast.drafting.commands import (
    is_command,
    is_runnable,
    parts_of,
    required_pattern,
    without_placeholder,
)
from holdfast.drafting.drafts import Draft
from holdfast.drafting.forms import (
    ADVERBS,
    CODE,
    CODES,
    NEVER,
    any_words,
    forms,
    one_of,
    whole_match,
)
from holdfast.drafting.gated_events import MAX_STEP_COMMANDS, OPTIONAL, offers_choice
from holdfast.drafting.path_globs import glob_argument

_A_CHANGE = (
    any_words(
        "any", "every", "each", "all", "code", "the", "your", "making", "a", "significant", "file"
    )
    + r"(?:changes?|edits?|modifications?)(?: (?:to|in) .+?)?"
)
_TASK = r"(?:a|any|every|each|the|your|all)? ?(?:coding )?(?:tasks?|work|changes|session|feature)"
_DONE = r"(?:done|complete|completed|ready|finished)"
# "when you are done with your changes", "before calling a task complete"
_END_OF_WORK = one_of(
    r"(?:when|once|after) (?:you(?:['’]re| are) )?(?:done|finished|finishing)(?: (?:with )?"
    + any_words("a", "your", "the", "any", "all", "making", "code", "series of")
    + r"(?:changes?|task|work|editing|coding))?",
    one_of(
        *("at the end of", "after", "after (?:completing|finishing)", "upon completing"),
        *("before (?:finishing|completing|ending|concluding|marking)",),
        "when (?:completing|finishing)",
    )
    + rf" {_TASK}(?: (?:as )?{_DONE})?",
    r"before (?:considering|declaring|calling|marking|reporting|claiming) (?:a |any |the |your )?"
    rf"(?:(?:task|work|changes?|it|anything|feature)s? )?(?:as )?(?:is )?{_DONE}",
    r"before (?:finishing|handoff|handing off|reporting done|declaring done|you finish|completion)",
    r"before (?:finishing|completing) (?:a|any|every|each|the|your) (?:change|task)",
)
# either names the files that are changed, or says that the work is done
_AFTER = one_of(
    r"(?:immediately |always )?after (?:you )?"  # "after editing `a.proto`", "after any change"
    rf"(?:{CHANGING} (?P<object>.+?)|(?P<noun>{_A_CHANGE}))",
    r"(?:when(?:ever)?|if|once|any time|every time) "  # "whenever you edit `a.proto`"
    rf"{SOMEBODY}{CHANGING} (?P<object2>.+?)",
    r"(?:when(?:ever)?|if|once) (?P<object3>.+?) "  # "if `a.proto` was changed"
    r"(?:is |are |has |have )?(?:been )?(?:chang(?:e|es|ed)|modified|edited|updated)",
    rf"(?P<end>{_END_OF_WORK})",
)
_RUN = (
    "(?:"
    + any_words(
        *("always", "please", "must", "you must", "you should", "make sure to", "also", "then"),
        "be sure to",
    )
    + "(?:re-?)?"
    + one_of(
        *"run execute regenerate generate rebuild build format lint check verify validate".split(),
        *"test update use type-?check".split(),
    )
    + r"\b[^`]{0,60}?)"
)
_BEFORE_THE_END = (
    r"before (?:finaliz|finalis|finish|complet|committ|submitt|report|consider|declar|mark|call"
    r"|claim)ing.+"
)
_THESE = r"(?: (?:these|the following|all|both)[\w ]*)?"
_WORK = r"(?:a |any |the |your )?(?:tasks?|work|changes?|it|anything)?"
_RUN_AFTER = forms(
    {
        "After changing `api.proto`, run `make gen` to regenerate the client": (
            rf"{ADVERBS}{_AFTER},? {_RUN} ?(?P<codes>{CODES})(?: to .+| from .+| in .+"
            r"| and (?:fix|commit|check|make sure|ensure|verify|confirm).+"
            rf"| (?P<close>{_BEFORE_THE_END})| again)?"
        ),
        "Run `make lint` after every code change": (
            rf"{_RUN} ?(?P<codes>{CODES})(?: to [\w\s-]+?| and [\w\s-]+?| from [\w\s-]+?)?,?"
            rf" {_AFTER}(?: if you (?:changed|modified|edited) .+| to [\w\s-]+)?"
        ),
        "When you are done, run these commands": rf"{ADVERBS}{_AFTER},? {_RUN}{_THESE}",
        "After editing `api.proto`, `make gen`": rf"{_AFTER},? (?P<codes>{CODES})",
        "Validate before handoff, `make lint`": (
            rf"(?:validate|validation|verify|verification|checks?|lint|tests?)(?: \w+){{0,2}}"
            rf" {_AFTER},? (?P<codes>{CODES})"
        ),
        "Every change must pass before claiming complete": (  # and a code block
            r"(?:every|each|any|all) (?:code )?changes? (?:must|should) pass[\w ]{0,20}?"
            rf" (?P<end>{_END_OF_WORK})"
        ),
        "Run the linter after every code change: `make lint`": (
            rf"{_RUN},? {_AFTER}(?::|,|,? (?:with|using|via|by running)| [-–—]) (?P<codes>{CODES})"
        ),
        "`make lint` must pass after any change": (
            rf"(?P<codes>{CODES}) (?:must|should|has to|have to|needs? to)"
            rf" (?:pass|succeed|be run|be clean|be green),? {_AFTER}"
        ),
        "Never mark a task done until `make check` passes": (
            rf"{NEVER} (?:mark|consider|call|declare|report) {_WORK}(?: as| is)?"
            r" ?(?:done|complete|completed|finished)(?: until| unless| if| before| without)?"
            rf" (?:running )?(?P<codes>{CODES})(?: passes| pass| succeeds?| is (?:clean|green))?"
        ),
    }
)
# a heading or an introduction of a list of commands
_LIST_AFTER = forms(
    {
        "After any change to `api/`, run the following:": (
            rf"(?:(?:always )?(?:run|perform)[\w ]{{0,30}} )?{_AFTER}"
            rf"(?:,? {_RUN}{_THESE}(?: (?:from|in) {CODE})?)?[\s:.]*"
        ),
        "Always run these checks before declaring the task done:": (
            rf"(?:[^`]{{0,80}}, )?(?:always )?(?:run|perform|complete|follow|execute)"
            rf" (?:all (?:of )?)?(?:these|the following|full)[\w ]{{0,30}} (?P<end>{_END_OF_WORK})"
            r"[\s:.]*"
        ),
    }
)
_COMMAND_ITEM = forms(
    {
        "Run `make lint` for the style": (
            rf"(?:{_RUN} ?)?(?P<codes>{CODES})\)?"
            r"(?: (?:to|for|and|passes|must pass|is|are)\b"
            r"(?:(?! (?:if|when|unless|or|only)\b).)*)?"
        )
    }
)
_CODES_IN_BRACKETS = re.compile(rf" \(({CODES})(?: or (?:equivalent|similar))?\)")
_PLACE = re.compile(r"\b(?:from|in|inside|under|at) $")  # after which code is no command


def heads_commands(heading: str) -> bool:
    """Whether a heading names a change after which the commands below it have to be run."""
    return whole_match(_LIST_AFTER, heading) is not None


def run_after_rule(clause: Clause) -> list[Draft]:
    """Reads "run `make gen` after editing `api.proto`"."""
    if clause.is_prohibited or re.search(r"` \(or\b", clause.statement.text):
        return []
    match = _match_run_after(clause)
    if match is None:
        return _read_item(clause)
    codes = match.groupdict().get("codes")
    commands = codes_in(codes) if codes else clause.statement.block
    return _require_after(commands, _changed_globs(match))


def _match_run_after(clause: Clause) -> re.Match[str] | None:
    """The match of a clause that names both a change and commands, perhaps with its label."""
    label = clause.statement.label
    plain = _CODES_IN_BRACKETS.sub(r", \1", clause.text)
    whole = f"{label}, {plain}" if label else plain
    whole = re.sub(r"\s*\([^()`]*\)", "", re.sub(r"(?<=\w): (?=`)", ", ", whole))
    for text in dict.fromkeys((plain, whole)):
        matches = filter(None, (way.pattern.fullmatch(text) for way in _RUN_AFTER))
        if match := next(filter(_is_about_a_change, matches), None):
            return match
    return None


def _is_about_a_change(match: re.Match[str]) -> bool:
    """Whether a match says which files are changed, and which commands have to be run."""
    groups = match.groupdict()
    codes = groups.get("codes") or ""
    if codes and (offers_choice(codes) or _PLACE.search(match.string[: match.start("codes")])):
        return False
    if groups.get("close"):  # "after edits, run `make lint` before reporting done"
        return True
    if (groups.get("noun") or "").lower() in ("changes", "edits"):
        return False  # the line does not say what is changed
    return _changed_globs(match) is not None


def _read_item(clause: Clause) -> list[Draft]:
    """Reads an item such as "`make lint`" below "After any change, run the following:"."""
    statement = clause.statement
    if not statement.under or not clause.begins_statement:
        return []
    heading = whole_match(_LIST_AFTER, statement.under[-1])
    item = whole_match(_COMMAND_ITEM, clause.text)
    if heading is None or item is None:
        return []
    if offers_choice(item["codes"]) or OPTIONAL.search(f"{statement.label} {statement.text}"):
        return []
    return _require_after(codes_in(item["codes"]), _changed_globs(heading))


def _changed_globs(match: re.Match[str]) -> list[str] | None:
    """The globs of the files that a match says are changed: of all files at the end of the work,
    and None if the words for them are not understood.
    """
    groups = match.groupdict()
    words = next(filter(None, map(groups.get, ("object", "noun", "object2", "object3"))), None)
    if groups.get("end") or words is None:
        return ["*"]
    return globs_of_change(words)


def _require_after(commands: Sequence[str], globs: Sequence[str] | None) -> list[Draft]:
    """Requires each command after a change of these files, with one rule per command; [] if the
    files are unknown, or if the commands are too many or may not be commands.
    """
    parts = [part for command in commands for part in parts_of(without_placeholder(command))]
    parts = [part for part in parts if not re.match(r"(?:cd|source|export) ", part)]
    if not globs or not 1 <= len(parts) <= MAX_STEP_COMMANDS or not all(map(_is_command, parts)):
        return []
    changed = glob_argument(globs)
    return [
        Draft("command", "requirement", {"name": "runs_after", "changed": changed, "run": run})
        for run in dict.fromkeys(map(required_pattern, parts))
    ]


def _is_command(text: str) -> bool:
    """Whether a code span is a command rather than a file or a plain word."""
    is_file = re.search(r"^[^ ]+\.(?!sh$|py$|js$|mjs$)\w+$", text)
    is_word = re.fullmatch(r"[\w-]+", text) and not is_command(text)
    return is_runnable(text) and not is_file and not is_word
