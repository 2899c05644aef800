"""Rules below a heading that names a folder in brackets, which are about the files of this folder.

## Dashboard (`apps/dashboard/`)
- Never use `alert()`.  -> code_not_written(files="apps/dashboard/*.{js,ts}")
"""

import re
from dataclasses import replace

from holdfast.drafting.drafts import Draft, measure
from holdfast.drafting.grammar.named_files import path_glob
from holdfast.drafting.rules_file import Statement

_IN_BRACKETS = re.compile(r"\(`?(?P<folder>(?:[\w.@-]+/)+[\w@-]*)`?\)")
_ANY_FOLDER = "(?:^|/)"  # the beginning of a pattern of paths


def folder_named(heading: str) -> str | None:
    """The folder that a heading names in brackets, without the last "/"; None if it names none."""
    match = _IN_BRACKETS.search(heading)
    if match is None or path_glob(match["folder"]) is None:
        return None
    return match["folder"].strip("/")


def narrow_to_folder(rule: Draft, statement: Statement) -> Draft:
    """A rule about code or the names of files, for the folder that a heading above names, if it
    names no folder itself.
    """
    folder = next(filter(None, map(folder_named, reversed(statement.under))), None)
    arguments = dict(rule.measure.arguments)
    if folder is None or rule.follows or rule.breaks:
        return rule
    if rule.measure.name == "code_not_written":
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
