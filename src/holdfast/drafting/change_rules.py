"""Rules about what follows a change: "run `make gen` after editing `api.proto`", "update
`docs/api.md` when you change `src/api/`".
"""

import re
from collections.abc import Sequence

from holdfast.drafting.clauses import ADVERBS, CODE, CODES, NEVER, all_known, names_in
from holdfast.drafting.code_tokens import files_of_language
from holdfast.drafting.commands import (
    is_command,
    is_runnable,
    parts_of,
    path_glob,
    required_pattern,
    without_placeholder,
)
from holdfast.drafting.drafts import Draft
from holdfast.drafting.rules_file import Statement

_CODE_FILES = ["*", "!*.{md,mdx,txt,rst}"]
_CHANGING = (
    r"(?:chang(?:e|es|ing)|modif(?:y|ying|ies)|edit(?:s|ing)?|touch(?:ing)?|updat(?:e|ing)"
    r"|add(?:ing)?|creat(?:e|ing)|mak(?:e|ing)|writ(?:e|ing)|alter(?:ing)?|implement(?:ing)?"
    r"|renam(?:e|ing)|remov(?:e|ing)|delet(?:e|ing)|complet(?:e|ing)|finish(?:ing)?"
    r"|bump(?:ing)?|regenerat(?:e|ing))"
)
_VERBS = rf"{_CHANGING}(?:(?:, (?:or )?|/| or | and ){_CHANGING})*"
_SUBJECT = r"(?:(?:you|we|you['’]ve|you have|having|are) )?"
_AFTER = (
    rf"(?:(?:immediately |always )?after (?:you )?(?:{_VERBS} (?P<object>.+?)|(?P<noun>(?:any "
    rf"|every"
    r" |each |all |code |the |your |making |a |significant |file )*"
    r"(?:changes?|edits?|modifications?)(?: (?:to|in) .+?)?))"
    rf"|(?:when(?:ever)?|if|once|any time|every time) {_SUBJECT}{_VERBS} (?P<object2>.+?)"
    r"|(?:when(?:ever)?|if|once) (?P<object3>.+?) (?:is |are |has |have )?(?:been )?"
    r"(?:chang(?:e|es|ed)|modified|edited|updated)"
    r"|(?P<end>(?:when|once|after) (?:you(?:['’]re| are) )?(?:done|finished|finishing)(?:"
    r" (?:with )?"
    r"(?:a |your |the |any |all |making |code )*(?:changes?|task|work|editing|coding))?"
    r"|(?:at the end of|after|before (?:finishing|completing|ending|concluding|marking)"
    r"|after (?:completing|finishing)|upon completing|when (?:completing|finishing))"
    r" (?:a|any|every|each|the|your|all)? ?(?:coding )?(?:tasks?|work|changes|session|feature)"
    r"(?: (?:as )?(?:done|complete|completed|ready|finished))?"
    r"|before (?:considering|declaring|calling|marking|reporting) (?:a |any |the |your )?"
    r"(?:task|work|changes?|it|anything|feature)s? (?:as )?(?:is )?(?:done|ready|complete|completed"
    r"|finished)|before (?:finishing|handoff|handing off|reporting done|declaring done"
    r"|you finish|completion)))"
)
_RUN = (
    r"(?:(?:always |please |must |you must |make sure to |also |then |be sure to )*(?:re-?)?"
    r"(?:run|execute|regenerate|generate|rebuild|build|format|lint|check|verify|validate|test"
    r"|update|use|type-?check)\b[^`]{0,60}?)"
)
_FORMS = (
    rf"{ADVERBS}{_AFTER},? {_RUN} ?(?P<codes>{CODES})(?: to .+| from .+| in .+| and (?:fix"
    rf"|commit|check"
    r"|make sure|ensure|verify|confirm).+| again)?",
    rf"{_RUN} ?(?P<codes>{CODES})(?: to [\w\s-]+?| and [\w\s-]+?| from [\w\s-]+?)?,?"
    rf" {_AFTER}(?: if you (?:changed|modified|edited) .+)?",
    rf"{ADVERBS}{_AFTER},? {_RUN}(?: (?:these|the following|all|both)[\w ]*)?",
    rf"{_AFTER},? (?P<codes>{CODES})",
    rf"(?P<codes>{CODES}) (?:must|should|has to|have to|needs? to) (?:pass|succeed|be run|be clean"
    rf"|be green),? {_AFTER}",
    rf"{NEVER} (?:mark|consider|call|declare|report) (?:a |any |the |your )?(?:tasks?|work|changes?"
    rf"|it|anything)?(?: as| is)? ?(?:done|complete|completed|finished)(?: until| unless| if"
    r"| before"
    rf"| without)? (?:running )?(?P<codes>{CODES})(?: passes| pass| succeeds?| is (?:clean|green))?"
    r"(?P<end>)(?P<object>)(?P<noun>)(?P<object2>)(?P<object3>)",
)
_ANY_CODE = re.compile(
    r"(?:any |every |each |the |your |all |some |new |existing |production )*(?:code|source(?:"
    r" code| files?)?"
    r"|(?:code|source) (?:changes?|files?))(?: (?:changes?|edits?|files?|in this repo))?",
    re.I,
)
_ANY_CHANGE = re.compile(
    r"(?:any |the |your |all |every |each |a |file |making |significant )*"
    r"(?:changes?|files?|edits?|modifications?)",
    re.I,
)
_MANIFESTS = ["{package.json,pyproject.toml,Cargo.toml,go.mod,requirements*.txt,Gemfile}"]
_KNOWN = (
    (r"(?:any |the |new |project )*(?:dependency|dependencies)(?: versions?)?", _MANIFESTS),
    (r"(?:the |any )*Prisma schema", ["*schema.prisma"]),
    (r"(?:the |any )*(?:proto|protobuf)(?: files?| definitions?)?", ["*.proto"]),
)


def globs_of_change(text: str) -> list[str] | None:
    """The globs of what is changed; None if the words name no files."""
    plain = re.sub(r"^(?:to|in|of) ", "", text.strip(" ,."), flags=re.I)
    plain = re.sub(r"^(?:any |the |files in |files under |anything (?:in|under) |code in |all |new"
                   r" |a |an )+", "", plain, flags=re.I)  # fmt: skip
    bare = re.match(r"(?:(?:the|any|all) )*(?:changes? (?:to|in|under) )(.+)", plain, re.I)
    plain = bare[1] if bare else plain
    parts = re.split(r",? or (?:any |the )?|,? and (?:any |the )?|, ", plain)
    if len(parts) > 1 and not re.fullmatch(rf"{CODES}.*", plain):
        each = all_known([globs_of_change(part) for part in parts])
        return [glob for globs in each for glob in globs] if each else None
    if re.fullmatch(rf"{CODES}(?: files?| folder| directory| schemas?| definitions?)?", plain):
        globs = [
            path_glob(f"*{name}" if re.fullmatch(r"\.\w+", name) else name)
            for name, is_code in names_in(re.sub(r"(?<=`) \w+$", "", plain))
            if is_code
        ]
        return [glob for glob in globs if glob] if globs and all(globs) else None
    if re.fullmatch(r"(?:[\w.@-]+/)+\*{0,2}|[\w-]+\.(?:json|toml|ya?ml|proto|prisma|md)", plain):
        return [glob] if (glob := path_glob(plain)) else None
    if _ANY_CODE.fullmatch(plain):
        return _CODE_FILES
    if _ANY_CHANGE.fullmatch(plain):
        return ["*"]
    for words, known in _KNOWN:
        if re.fullmatch(words, plain, re.I):
            return known
    named = files_of_language(plain)
    if named and re.fullmatch(r"\S+(?: (?:code|files?|changes?|sources?|source files?))?", plain):
        return named
    return None


def run_after(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """Run `make gen` after editing `api.proto`."""
    if prohibits or re.search(r"` \(or\b", statement.text):
        return None
    text = f"{statement.label}, {clause}" if statement.label else clause
    text = re.sub(r"\s*\([^()`]*\)", "", re.sub(r"(?<=\w): (?=`)", ", ", text))
    for candidate in dict.fromkeys((clause, text)):
        for form in _FORMS:
            match = re.fullmatch(form, candidate, re.I)
            if match is None:
                continue
            globs = _changed(match)
            start = match.start("codes") if match.groupdict().get("codes") else 0
            if re.search(r"\b(?:from|in|inside|under|at) $", candidate[:start]):
                continue  # a place, and no command
            codes = match.groupdict().get("codes")
            commands = re.findall("`([^`]+)`", codes) if codes else list(statement.block)
            if (match.groupdict()["noun"] or "").lower() in ("changes", "edits") and not (
                re.match(r"(?:always |please )?run\b", candidate, re.I)
            ):  # "regenerate `x` after changes": of what, the line does not say
                continue
            if globs is None or (codes and re.search(r"`,? or `", codes)):
                continue
            return _runs_after(commands, globs)
    above = statement.under[-1] if statement.under else ""
    match = re.fullmatch(rf"(?:(?:always )?(?:run|perform)[\w ]{{0,30}} )?{_AFTER}"
                         rf"(?:,? {_RUN}(?: (?:these|the following|all)[\w ]*)?"
                         rf"(?: (?:from|in) {CODE})?)?[\s:.]*",
                         above, re.I)  # fmt: skip
    listed = (
        re.fullmatch(
            rf"(?:{_RUN} ?)?({CODES})(?: (?:to|for|and|passes|must pass|is|are)\b"
            r"(?:(?! (?:if|when|unless|or|only)\b).)*)?",
            clause,
            re.I,
        )
        if match
        else None
    )
    if match is None or listed is None or not statement.text.startswith(clause[:20]):
        return None
    globs = _changed(match)
    if globs is None or re.search(r"`,? or `", listed[1]):
        return None
    return _runs_after(re.findall("`([^`]+)`", listed[1]), globs)


def _changed(match: re.Match[str]) -> list[str] | None:
    groups = match.groupdict()
    if groups["end"] or not any(groups[name] for name in ("object", "noun", "object2", "object3")):
        return ["*"]
    words = groups["object"] or groups["noun"] or groups["object2"] or groups["object3"] or ""
    return globs_of_change(words)


def _runs_after(commands: Sequence[str], globs: Sequence[str]) -> list[Draft] | None:
    parts = [part for command in commands for part in parts_of(without_placeholder(command))]
    parts = [part for part in parts if not re.match(r"(?:cd|source|export) ", part)]
    if not 1 <= len(parts) <= 8 or not all(is_runnable(part) for part in parts):
        return None
    if any(re.search(r"^[^ ]+\.(?!sh$|py$|js$|mjs$)\w+$", part) for part in parts):
        return None
    if any(re.fullmatch(r"[\w-]+", part) and not is_command(part) for part in parts):
        return None
    changed = globs[0] if len(globs) == 1 else list(globs)
    return [
        Draft("command", "requirement", {"name": "runs_after", "changed": changed, "run": run})
        for run in dict.fromkeys(map(required_pattern, parts))
    ]


_UPDATE = (
    r"(?:(?:always |also |please |you must |must |make sure to |remember to |be sure to )*"
    r"(?:update|add (?:an entry|a note|an entry or note|it) (?:to|in)|edit|bump|adjust|sync|amend"
    r"|regenerate|keep)"
    r"(?: (?:the|your|a|corresponding|relevant|both|its|documentation in|docs in|entry in))*)"
)
_WHEN_CHANGED = (
    rf"(?:(?:when(?:ever)?|if|after|every time|any time) {_SUBJECT}{_VERBS} (?P<changed>.+?)"
    r"|(?:when(?:ever)?|if) (?P<changed2>.+?) (?:changes?|is changed|are changed|is modified"
    r"|is updated))"
)


def change_together(clause: str, statement: Statement, prohibits: bool) -> list[Draft] | None:
    """When you change `src/api/`, update `docs/api.md`."""
    if prohibits:
        return None
    suffix = r"(?: (?:too|as well|accordingly|to match|in the same (?:PR|commit|change)|with .+))?"
    every = re.fullmatch(
        rf"{_UPDATE} (?P<also>{CODE}|CHANGELOG(?:\.md)?|changelog) (?:for|with|on|in|after)"
        rf" (?:every"
        rf"|each|any|all) (?:single )?(?:code )?(?:changes?|commits?|PRs?|pull requests?|edits?)"
        rf"|(?:every|each|any|all) (?:code )?(?:changes?|PRs?) (?:must|should|needs? to|has to)"
        rf" (?:also |always |include an? )*(?:update|entry in|edit)"
        rf" (?P<also2>{CODE}|CHANGELOG\.md)",
        clause,
        re.I,
    )
    if every:
        name = (every["also"] or every["also2"]).strip("`")
        glob = path_glob("CHANGELOG.md" if name.lower() == "changelog" else name)
        return [_together(["*"], [glob])] if glob else None
    forms = (
        rf"{_WHEN_CHANGED},? {_UPDATE} (?P<also>{CODES}|[\w./-]+\.md)(?: files?)?{suffix}",
        rf"{_UPDATE} (?P<also>{CODES}|[\w./-]+\.md)(?: files?)?,? {_WHEN_CHANGED}",
        rf"(?:any |all |every )?(?:changes?|edits?) (?:to|in) (?P<changed>.+?) (?:must|should"
        rf"|needs?"
        rf" to|requires?) (?:also |always |be )*(?:accompanied by|reflected in|mirrored in|update"
        rf"|updating|an? update (?:to|of)|matching changes in) (?P<also>{CODES})",
    )
    for form in forms:
        if match := re.fullmatch(form, clause, re.I):
            groups = match.groupdict()
            changed = globs_of_change(groups["changed"] or groups.get("changed2") or "")
            also = globs_of_change(groups["also"])
            if changed and also:
                return [_together(changed, also)]
    match = re.fullmatch(
        rf"{ADVERBS}keep (`[^`]+`)(?: and | (?:in sync |synchronized |synced |aligned )with )"
        r"(`[^`]+`)(?: (?:in sync|synchronized|synced|aligned|in lockstep))?",
        clause,
        re.I,
    )
    if match is None or not re.search("sync|lockstep", clause):
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
