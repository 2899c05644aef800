"""The changes of files by the tools of agents, according to the arguments of a call.

    Edit(file_path="a.py", old_string="x = 1", new_string="x = 2")
    -> FileEdit("a.py", added=("x = 2",), removed=("x = 1",))

Agents describe a change by the old and the new text, by the whole text, or by a patch.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.measures.agent_acts.agent_tools import (
    DELETES,
    EDIT_LISTS,
    EDITOR_COMMANDS,
    INSERTS,
    NEW_TEXTS,
    OLD_TEXTS,
    PATCHES,
    PATHS,
    READS,
    REPLACES,
    WHOLE_TEXTS,
    first_text,
    normalised_fields,
)
from holdfast.measures.agent_acts.edits.file_edits import (
    FileEdit,
    hidden_edit,
    replacement_edit,
    whole_file_edit,
)
from holdfast.measures.agent_acts.edits.patches import edits_by_patch
from holdfast.measures.turns import ToolCall

# how the result of a call begins that created a file
_CREATED = re.compile(r"(?:File created|Successfully created|Created (?:new )?file)\b")


def edits_by_call(call: ToolCall) -> list[FileEdit]:
    """Returns the changes of files by a tool, according to its arguments."""
    operation = call.arguments.get("command")
    reads = READS.search(call.name) and not REPLACES.search(call.name)
    if operation == "view" or (reads and operation not in EDITOR_COMMANDS):
        return []
    edits = _edits_among(call.name, call.arguments, "")
    is_new = _CREATED.match(call.result) is not None
    return [replace(edit, is_new=True) for edit in edits] if is_new else edits


def _edits_among(tool: str, arguments: Mapping[str, Any], path: str) -> list[FileEdit]:
    """Returns the changes that arguments describe, which may be a list of edits.

    Args:
        path: of the file, for arguments that do not name it.
    """
    fields = normalised_fields(arguments)
    if fields.get("dryrun") is True:
        return []
    if "source" in fields and "destination" in fields and DELETES.search(tool):
        return [FileEdit(str(fields[name])) for name in ("source", "destination")]
    path = first_text(fields, PATHS) or path
    lists = (fields.get(name) for name in EDIT_LISTS)
    entries = next((value for value in lists if isinstance(value, list) and value), ())
    if entries and all(isinstance(entry, Mapping) for entry in entries):
        return [edit for entry in entries for edit in _edits_among(tool, entry, path)]
    texts = (fields.get(name) for name in PATCHES) if path else fields.values()
    patches = [text for text in texts if isinstance(text, str)]
    edits = [edit for text in patches for edit in edits_by_patch(text, path)]
    if edits or not path:
        return edits
    if str(fields.get("editmode") or fields.get("kind")) == "delete" or DELETES.search(tool):
        return [FileEdit(path)]
    return [_edit_of_texts(tool, fields, path)]


def _edit_of_texts(tool: str, fields: Mapping[str, Any], path: str) -> FileEdit:
    """Returns the change of a file by a call that has its old and new text, or the whole text."""
    old = first_text(fields, OLD_TEXTS)
    new = first_text(fields, NEW_TEXTS)
    whole = first_text(fields, WHOLE_TEXTS)
    if INSERTS.search(tool) or fields.get("command") == "insert" or "newsource" in fields:
        text = new if new is not None else whole
        return hidden_edit(path) if text is None else FileEdit(path, (text,))
    if old is not None or new is not None:
        return replacement_edit(path, old or "", new or "")
    return hidden_edit(path) if whole is None else whole_file_edit(path, whole)
