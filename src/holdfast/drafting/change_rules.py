"""Rules about what follows a change: "run `make gen` after editing `api.proto`", "update
`docs/api.md` when you change `src/api/`".
"""

import re
from collections.abc import Sequence

from holdfast.drafting.clauses import all_known, codes_in, names_in
from holdfast.drafting.code_tokens import files_of_language
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
from holdfast.drafting.order_rules import MOST_COMMANDS, OPTIONAL, joined_by_or
from holdfast.drafting.path_globs import path_glob
from holdfast.drafting.rules_file import Statement

_CODE_FILES = ["*", "!*.{md,mdx,txt,rst}"]
_CHANGING = one_of(
    *("chang(?:e[sd]?|ing)", "modif(?:y|ying|ies|ied)", "edit(?:s|ing|ed)?", "touch(?:ing|ed)?"),
    *("updat(?:e[d]?|ing)", "add(?:ing|ed)?", "creat(?:e[d]?|ing)", "mak(?:e|ing)", "made"),
    *("writ(?:e|ing)", "wrote", "alter(?:ing|ed)?", "implement(?:ing|ed)?", "renam(?:e[d]?|ing)"),
    *("remov(?:e[d]?|ing)", "delet(?:e[d]?|ing)", "complet(?:e[d]?|ing)", "finish(?:ing|ed)?"),
    *("bump(?:ing|ed)?", "regenerat(?:e[d]?|ing)"),
)
_VERBS = rf"{_CHANGING}(?:(?:, (?:or )?|/| or | and ){_CHANGING})*"
_SOMEBODY = r"(?:(?:you|we|you['’]ve|you have|having|are) )?"
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
    + any_words("a", "your", "the", "any", "all", "making", "code")
    + r"(?:changes?|task|work|editing|coding))?",
    one_of(
        *("at the end of", "after", "after (?:completing|finishing)", "upon completing"),
        *("before (?:finishing|completing|ending|concluding|marking)",),
        "when (?:completing|finishing)",
    )
    + rf" {_TASK}(?: (?:as )?{_DONE})?",
    r"before (?:considering|declaring|calling|marking|reporting) (?:a |any |the |your )?"
    rf"(?:task|work|changes?|it|anything|feature)s? (?:as )?(?:is )?{_DONE}",
    r"before (?:finishing|handoff|handing off|reporting done|declaring done|you finish|completion)",
    r"before (?:finishing|completing) (?:a|any|every|each|the|your) (?:change|task)",
)
# each names what is changed, or that all work is done
_AFTER = one_of(
    r"(?:immediately |always )?after (?:you )?"  # "after editing `a.proto`", "after any change"
    rf"(?:{_VERBS} (?P<object>.+?)|(?P<noun>{_A_CHANGE}))",
    r"(?:when(?:ever)?|if|once|any time|every time) "  # "whenever you edit `a.proto`"
    rf"{_SOMEBODY}{_VERBS} (?P<object2>.+?)",
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
_THESE = r"(?: (?:these|the following|all|both)[\w ]*)?"
_WORK = r"(?:a |any |the |your )?(?:tasks?|work|changes?|it|anything)?"
_RUN_AFTER = forms(
    {
        "After changing `api.proto`, run `make gen` to regenerate the client": (
            rf"{ADVERBS}{_AFTER},? {_RUN} ?(?P<codes>{CODES})(?: to .+| from .+| in .+"
            r"| and (?:fix|commit|check|make sure|ensure|verify|confirm).+"
            r"| before (?:finaliz|finalis|finish|complet|committ|submitt|report)ing.+| again)?"
        ),
        "Run `make lint` after every code change": (
            rf"{_RUN} ?(?P<codes>{CODES})(?: to [\w\s-]+?| and [\w\s-]+?| from [\w\s-]+?)?,?"
            rf" {_AFTER}(?: if you (?:changed|modified|edited) .+| to [\w\s-]+)?"
        ),
        "When you are done, run these commands": rf"{ADVERBS}{_AFTER},? {_RUN}{_THESE}",
        "After editing `api.proto`, `make gen`": rf"{_AFTER},? (?P<codes>{CODES})",
        "Validate before handoff, `make lint`": (
            rf"(?:validate|verify|check|lint|test)(?: \w+){{0,2}} {_AFTER},? (?P<codes>{CODES})"
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
        )
    }
)
_LISTED = forms(
    {
        "Run `make lint` for the style": (
            rf"(?:{_RUN} ?)?(?P<codes>{CODES})(?: (?:to|for|and|passes|must pass|is|are)\b"
            r"(?:(?! (?:if|when|unless|or|only)\b).)*)?"
        )
    }
)
_PLACE = re.compile(r"\b(?:from|in|inside|under|at) $")  # after which code is no command


def run_after(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Run `make gen` after editing `api.proto`."""
    if prohibits or re.search(r"` \(or\b", statement.text):
        return None
    labelled = f"{statement.label}, {clause}" if statement.label else clause
    labelled = re.sub(r"\s*\([^()`]*\)", "", re.sub(r"(?<=\w): (?=`)", ", ", labelled))
    for text in dict.fromkeys((clause, labelled)):
        matches = filter(None, (way.pattern.fullmatch(text) for way in _RUN_AFTER))
        if match := next(filter(_is_about_a_change, matches), None):
            codes = match.groupdict().get("codes")
            commands = codes_in(codes) if codes else list(statement.block)
            return _runs_after(commands, _changed(match))
    heading = whole_match(_LIST_AFTER, statement.under[-1]) if statement.under else None
    item = whole_match(_LISTED, clause) if heading else None
    if heading is None or item is None or not statement.text.startswith(clause[:20]):
        return None
    if joined_by_or(item["codes"]) or OPTIONAL.search(f"{statement.label} {statement.text}"):
        return None
    return _runs_after(codes_in(item["codes"]), _changed(heading))


def _is_about_a_change(match: re.Match[str]) -> bool:
    """Whether a match says which files are changed, and which commands are to be run."""
    groups = match.groupdict()
    codes = groups.get("codes") or ""
    if codes and (joined_by_or(codes) or _PLACE.search(match.string[: match.start("codes")])):
        return False
    if (groups.get("noun") or "").lower() in ("changes", "edits"):
        return False  # of what, the line does not say
    return _changed(match) is not None


def _changed(match: re.Match[str]) -> list[str] | None:
    """The globs of what a match says is changed: of everything where it is the end of the work."""
    groups = match.groupdict()
    words = next(filter(None, map(groups.get, ("object", "noun", "object2", "object3"))), None)
    return ["*"] if groups.get("end") or words is None else globs_of_change(words)


def _runs_after(commands: Sequence[str], globs: Sequence[str] | None) -> list[Draft] | None:
    parts = [part for command in commands for part in parts_of(without_placeholder(command))]
    parts = [part for part in parts if not re.match(r"(?:cd|source|export) ", part)]
    if not globs or not 1 <= len(parts) <= MOST_COMMANDS or not all(map(_is_command, parts)):
        return None
    changed = globs[0] if len(globs) == 1 else list(globs)
    return [
        Draft("command", "requirement", {"name": "runs_after", "changed": changed, "run": run})
        for run in dict.fromkeys(map(required_pattern, parts))
    ]


def _is_command(text: str) -> bool:
    """Whether a code span is a command rather than a file or a plain word."""
    is_file = re.search(r"^[^ ]+\.(?!sh$|py$|js$|mjs$)\w+$", text)
    is_word = re.fullmatch(r"[\w-]+", text) and not is_command(text)
    return is_runnable(text) and not is_file and not is_word


_ANY_CODE = forms(
    {
        "all source files in this repo": (
            any_words(*"any every each the your all some new existing production".split())
            + r"(?:code|source(?: code| files?)?|(?:code|source) (?:changes?|files?))"
            r"(?: (?:changes?|edits?|files?|in this repo))?"
        )
    }
)
_ANY_CHANGE = forms(
    {
        "any significant change": (
            any_words(*"any the your all every each a file making significant".split())
            + r"(?:changes?|files?|edits?|modifications?)"
        )
    }
)
_KNOWN = (
    (
        forms(
            {
                "project dependencies": (
                    r"(?:any |the |new |project )*(?:dependency|dependencies)(?: versions?)?"
                )
            }
        ),
        ["{package.json,pyproject.toml,Cargo.toml,go.mod,requirements*.txt,Gemfile}"],
    ),
    (forms({"the Prisma schema": r"(?:the |any )*Prisma schema"}), ["*schema.prisma"]),
    (
        forms({"proto definitions": r"(?:the |any )*(?:proto|protobuf)(?: files?| definitions?)?"}),
        ["*.proto"],
    ),
)
_BEFORE_NAMES = re.compile(
    r"^(?:to |in |of )?(?:any |the |files? (?:in|under) |anything (?:in|under) |code in |all |new"
    r" |a |an )*(?:changes? (?:to|in|under) )?",
    re.I,
)
_CODES_OF_FILES = re.compile(rf"{CODES}(?: files?| folder| directory| schemas?| definitions?)?")
_BARE_PATH = re.compile(r"(?:[\w.@-]+/)+\*{0,2}|[\w-]+\.(?:json|toml|ya?ml|proto|prisma|md)")
_OF_ONE_LANGUAGE = re.compile(r"\S+(?: (?:code|files?|changes?|sources?|source files?))?")


def globs_of_change(text: str) -> list[str] | None:
    """The globs of what is changed; None if the words name no files."""
    plain = _BEFORE_NAMES.sub("", text.strip(" ,."))
    plain = plain or text.strip(" ,.")
    parts = re.split(r",? or (?:any |the )?|,? and (?:any |the )?|, ", plain)
    if len(parts) > 1 and not _CODES_OF_FILES.fullmatch(plain):
        of_parts = all_known([globs_of_change(part) for part in parts])
        return [glob for globs in of_parts for glob in globs] if of_parts else None
    if _CODES_OF_FILES.fullmatch(plain):
        names = [name for name, is_code in names_in(re.sub(r"(?<=`) \w+$", "", plain)) if is_code]
        # of `.proto` files, all that end so
        return all_known([path_glob(re.sub(r"^(?=\.\w+$)", "*", name)) for name in names])
    if _BARE_PATH.fullmatch(plain):
        glob = path_glob(plain)
        return [glob] if glob else None
    if whole_match(_ANY_CODE, plain):
        return _CODE_FILES
    if whole_match(_ANY_CHANGE, plain):
        return ["*"]
    for ways, known in _KNOWN:
        if whole_match(ways, plain):
            return known
    named = files_of_language(plain)
    return named if named and _OF_ONE_LANGUAGE.fullmatch(plain) else None


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
    rf"{_SOMEBODY}{_VERBS} (?P<changed>.+?)",
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
            rf"{ADVERBS}keep (`[^`]+`)"
            r"(?: and | (?:in sync |synchronized |synced |aligned )with )"
            r"(`[^`]+`)(?: (?:[a-z]+ly )?(?:in sync|synchronized|synced|aligned|in lockstep))?"
        )
    }
)


def change_together(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """When you change `src/api/`, update `docs/api.md`."""
    if prohibits:
        return None
    if match := whole_match(_WITH_EVERY_CHANGE, clause):
        name = match["also"].strip("`")
        glob = path_glob("CHANGELOG.md" if name.lower() == "changelog" else name)
        return [_together(["*"], [glob])] if glob else None
    for match in filter(None, (way.pattern.fullmatch(clause) for way in _WITH_A_CHANGE)):
        groups = match.groupdict("")
        changed = globs_of_change(groups["changed"] or groups.get("changed2", ""))
        also = globs_of_change(groups["also"])
        if changed and also:
            return [_together(changed, also)]
    match = whole_match(_IN_SYNC, clause)
    if match is None or not re.search("sync|lockstep|aligned", clause):
        return None
    first, second = globs_of_change(match[1]), globs_of_change(match[2])
    if not first or not second:
        return None
    if " with " in clause:
        return [_together(second, first)]
    return [_together(first, second), _together(second, first)]


def _together(changed: Sequence[str], also: Sequence[str]) -> Draft:
    spec = {
        "name": "changes_together",
        "changed": changed[0] if len(changed) == 1 else list(changed),
        "also": also[0] if len(also) == 1 else list(also),
    }
    return Draft("file", "requirement", spec)
