"""Rules below a heading that names a part of the repository, which hold for this part only.

## Dashboard (`apps/dashboard/`)
- Never use `alert()`.  -> code_not_written(files="apps/dashboard/*.{js,ts}")
- Use pnpm, not npm.    -> none, as other parts may use npm
"""

import re
from dataclasses import replace
from functools import lru_cache

from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.forms import one_of
from holdfast.drafting.grammar.named_files import path_glob
from holdfast.drafting.rules_file import Statement

_IN_BRACKETS = re.compile(r"\(`?(?P<folder>/?(?:[\w.@-]+/)+[\w@-]*|/[\w@-]+)`?\)")
# "packages/api", "`packages/api/` - the server"
_IS_PATH = re.compile(
    r"\W*?(?P<mark>`?)\b(?P<folder>(?:[\w.@-]+/)+[\w@-]*)(?P=mark)(?=\s*(?:[(:–—]|-\s|$))"
)
_PARENTS = re.compile("(?:apps|packages|services|libs|crates|plugins|modules|projects)/")
_PART_WORDS = one_of(
    *("back-?end", "front-?end", "server", "client", "mobile", "ios", "android", "web", "website"),
    *("web ?app", "desktop", "docs", "documentation", "dashboard"),
)
_PART_HEADING = re.compile(
    rf"\W*(?:the )?{_PART_WORDS}\b(?!-)(?! (?:and|or|&|search|sockets?|workers?|fetch)\b)", re.I
)
# "Backend conventions", and not "Server components"
_IS_PART = re.compile(
    rf"\W*(?:the )?{_PART_WORDS}(?:[ -](?:side|app|application|code|rules?|conventions?|guidelines?"
    r"|standards?|style|coding|development|only|package|patterns?))*(?: \(.*\)|:? [-–—] .*)?\W*",
    re.I,
)
# parts whose headings are often about a subject instead: "API", "Documentation"
_MAY_BE_SUBJECT = re.compile(r"\W*(?:the )?(?:docs|documentation)\b", re.I)
_MAY_BE_PART = re.compile(rf"\W*(?:the )?{one_of('api', 'ui', 'cli', 'app', 'site')}\W*", re.I)
_ANY_FOLDER = "(?:^|/)"  # the beginning of a pattern of paths
# what the folder of a part may be called besides
_OTHER_NAMES = {"frontend": "(?:web|client|ui)", "backend": "(?:api|server)"}
# a pattern of the commands of package managers, or of any Python
_MANAGER = re.compile(r"\b(?:npm|yarn|pnpm|bun|pip3?|pipenv|poetry|conda|uv)\b|\bpython3\?\(\?!")


def folder_named(heading: str, document: str = "") -> str | None:
    """The folder that a heading names, without the last "/"; None if it names none.

    Args:
        document: the rules file, which may name the folder of a heading such as `web/api` too.
    """
    match = _IN_BRACKETS.search(heading)
    if match is None:
        match = _IS_PATH.match(heading)
        folder = match["folder"] if match else ""
        is_path = match is not None and (match["mark"] or _PARENTS.match(folder))
        if not is_path and f"`{folder.rstrip('/')}" not in document:
            return None
    if match is None or path_glob(match["folder"]) is None:
        return None
    folder = match["folder"].strip("/")
    may_be_route = match["folder"] == f"/{folder}" and "/" not in folder
    if may_be_route and not re.search(rf"(?<![\w/.-]){re.escape(folder)}/", document):
        return None  # "Settings (`/settings`)"
    return folder


def folder_of_part(part: str, document: str) -> str | None:
    """The folder of the part "Backend", such as `backend` or `apps/backend`, if the rules file has
    paths of only one such folder in backticks.
    """
    name = re.sub(r"^\W+", "", part).split(" ")[0].lower().replace("-", "").rstrip(":")
    return _folder_called(name, document)


@lru_cache(maxsize=256)
def _folder_called(name: str, document: str) -> str | None:
    """The only folder of this name, or another usual one, that a rules file has in backticks."""
    codes = " ".join(re.findall(r"`[^`\n]+`", document))
    for names in (re.escape(name), _OTHER_NAMES.get(name, "(?!)")):
        inside = rf"(?:apps/|packages/|services/){names}"
        found = re.findall(rf"(?<![\w/.@:-])({inside}(?![\w.-])|{names}(?=/))|`({names})`", codes)
        paths = {path or alone for path, alone in found}
        if len(paths) == 1:
            return paths.pop()
    return None


def part_above(statement: Statement) -> str:
    """The heading above a statement that names a part of the repository: "Backend", "Tests
    (`web/tests/`)"; "" if none does. The title of a file is about the whole of it.
    """
    headings = statement.under
    if headings and headings[0] == _title_of(statement.document):
        headings = headings[1:]
    return next(
        (
            heading
            for heading in headings
            if _PART_HEADING.match(heading) or folder_named(heading, statement.document)
        ),
        "",
    )


@lru_cache(maxsize=4)
def _title_of(document: str) -> str:
    """The heading of the first level, if a file has only one; "" otherwise."""
    text = re.sub(r"^(`{3,}|~{3,}).*?^\1", "", document, flags=re.M | re.S)
    titles = re.findall(r"^# +(.*?)[ #]*$", text, re.M)
    return re.sub(r"[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}", "", titles[0]) if len(titles) == 1 else ""


def narrow_to_part(rule: Draft, statement: Statement) -> Draft | None:
    """A rule for the part of the repository that a heading above its statement names; None if it
    cannot be limited to this part, as a rule about package managers.
    """
    part = part_above(statement)
    nearest = statement.under[-1] if statement.under else ""
    is_of_part = part or _MAY_BE_PART.fullmatch(nearest)
    if is_of_part and rule.measure.name in ("command_not_run", "prefers"):
        commands = str(rule.measure.arguments.get("command", rule.measure.arguments.get("use")))
        return None if _MANAGER.search(commands) else rule
    folder = folder_named(part, statement.document)
    is_part = _IS_PART.fullmatch(part) and not _MAY_BE_SUBJECT.match(part)
    if is_part and not folder:
        folder = folder_of_part(part, statement.document)
    if folder:
        return narrow_to_folder(rule, folder)
    is_of_code = rule.measure.name == "code_not_written" and not _has_folder(rule)
    if is_of_code and _is_of_code_named_above(statement):
        return None
    return None if is_part and _is_of_any_file(rule) else rule


def _is_of_code_named_above(statement: Statement) -> bool:
    """Whether a statement is about code that stands before or above it: "it must not import"."""
    nearest = statement.label or (statement.under[-1] if statement.under else "")
    if _ABOUT_IT.match(statement.text) or _FOR_SOME.fullmatch(nearest):
        return True
    begins_with_verb = _MUST_NOT_FIRST.match(statement.text) is not None
    return begins_with_verb and not _OF_ALL_CODE.search(nearest)


# "It must not import `pg`" is about what was named before, "it must not be used" about the code
_ABOUT_IT = re.compile(
    r"(?:it|they|these|this|that|those)(?: \w+){0,2} (?:(?:must|should|shall|may|can|do|does)"
    r"(?: not|n['’]t| never)|cannot|never)(?: ever| directly)? (?!be\b)"
    r"|(?:it|they) (?:(?:must|should|shall|may|can|do|does)(?: not|n['’]t| never)|cannot|never)"
    r"(?: ever| directly)? (?!be\b)",
    re.I,
)
# "must not import `flask`", after the label "Scheduler"
_MUST_NOT_FIRST = re.compile(r"(?:must|should|shall|may) (?:not|never) (?!be\b)", re.I)
_OF_ALL_CODE = re.compile(
    r"^\W*$|\b(?:code|coding|style|rules?|conventions?|guidelines?|standards?|constraints?|imports?"
    r"|never|not|don['’]ts?|general|requirements?|security|safety|typescript|python|javascript"
    r"|quality|practices|agents?|principles|restrictions|prohibit\w*|forbidden)\b",
    re.I,
)
_FOR_SOME = re.compile(
    r"\W*(?:for|in) (?:the |our |all |new )*(?:plugins|controllers|services|handlers|scripts|models"
    r"|views|routes|endpoints|workers|jobs|packages|extensions|migrations)\W*",
    re.I,
)


def _has_folder(rule: Draft) -> bool:
    """Whether a rule about code is about the files of a folder, or about files of some names."""
    files = rule.measure.arguments.get("files", "*")
    globs = [files] if isinstance(files, str) else list(files)
    return any("/" in glob for glob in globs if not glob.startswith("!"))


def _is_of_any_file(rule: Draft) -> bool:
    """Whether a rule is about code in files of any language, or about the names of files."""
    files = rule.measure.arguments.get("files", "")
    is_of_names = "file_path" in rule.measure.arguments.get("arguments", {})
    is_of_code = rule.measure.name in ("code_not_written", "code_written")
    is_markup = str(rule.measure.arguments.get("pattern")).startswith("<")  # `<img`
    is_any = files == "*" or (isinstance(files, list) and files[0] == "*")
    return is_of_names or (is_of_code and not is_markup and is_any)


def narrow_to_folder(rule: Draft, folder: str) -> Draft:
    """A rule about code or the names of files, for a folder, if it names no folder itself."""
    arguments = dict(rule.measure.arguments)
    if rule.follows or rule.breaks:
        return rule
    if rule.measure.name in ("code_not_written", "code_written"):
        files = arguments.get("files", "*")
        globs = [files] if isinstance(files, str) else list(files)
        if any("/" in glob for glob in globs if not glob.startswith("!")):
            return rule
        narrowed = [glob if glob.startswith("!") else f"{folder}/{glob}" for glob in globs]
        arguments["files"] = narrowed if len(narrowed) > 1 else narrowed[0]
    elif rule.measure.name == "tool_not_called" and "file_path" in arguments.get("arguments", {}):
        path = arguments["arguments"]["file_path"]
        if not path.startswith(_ANY_FOLDER):
            return rule
        inside = f"{_ANY_FOLDER}{re.escape(folder)}/(?:.*/)?{path.removeprefix(_ANY_FOLDER)}"
        arguments["arguments"] = {**arguments["arguments"], "file_path": inside}
    else:
        return rule
    return replace(rule, measure=measure(rule.measure.name, **arguments))
