"""The files that a Python program writes, moves or deletes, with their texts.

For example:

    Path("a.txt").touch()          ->  a.txt
    shutil.move("c.txt", "d.txt")  ->  c.txt, d.txt
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace

from holdfast.measures.agent_acts.edits.file_edits import FileEdit
from holdfast.measures.agent_acts.programs.python_values import (
    PythonValues,
    function_name,
    module_name,
)

# by the name of the function: the numbers of its arguments that are files which it changes
_WRITING_FUNCTIONS = {
    **dict.fromkeys(("remove", "unlink", "rmtree", "truncate", "removedirs"), (0,)),
    **dict.fromkeys(("rename", "renames", "replace", "move"), (0, 1)),
    **dict.fromkeys(("copy", "copy2", "copyfile", "copytree"), (1,)),
}
_WRITING_MODULES = ("os", "shutil")
_WRITING_METHODS = ("write_text", "write_bytes", "unlink", "touch", "rename", "replace")
_OPENING_MODULES = ("io", "codecs", "os")  # `io.open(path)`, as opposed to `path.open()`
_WRITING_MODE = re.compile("[wax+]")
_APPENDING_MODE = re.compile("a[bt+]*")


def edits_in(tree: ast.Module, values: PythonValues) -> list[FileEdit]:
    """Returns the changes of files by a program."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    edits: dict[FileEdit, None] = {}  # an ordered set
    for call in calls:
        is_whole = not _appends(call, values)
        for path in _files_written_by(call, values):
            edits[FileEdit(path, is_whole=is_whole, is_shown=False)] = None
    texts = _texts_written(tree, values)
    return [_with_text(edit, texts.get(edit.path, [])) for edit in edits]


def _with_text(edit: FileEdit, texts: Sequence[str | None]) -> FileEdit:
    """Returns the edit with the texts that are written to its file, if they are all known."""
    known = [text for text in texts if text is not None]
    if not texts or len(known) < len(texts) or "*" in edit.path:
        return edit
    return replace(edit, added=("".join(known),), is_shown=True)


# --- Files


def _files_written_by(call: ast.Call, values: PythonValues) -> list[str]:
    """Returns the files that a call changes."""
    name = function_name(call.func)
    if name == "open":
        return _files_opened_by(call, values)
    if module_name(call.func) in _WRITING_MODULES:
        numbers = _WRITING_FUNCTIONS.get(name, ())
        changed = [call.args[number] for number in numbers if number < len(call.args)]
        return [path for node in changed for path in values.possible(node)]
    if name in _WRITING_METHODS and isinstance(call.func, ast.Attribute):
        is_path = name != "replace" or len(call.args) == 1  # text.replace(a, b) changes no file
        return values.possible(call.func.value) if is_path else []
    return []


def _files_opened_by(call: ast.Call, values: PythonValues) -> list[str]:
    """Returns the files that a call of `open` or `path.open` opens to write to."""
    function = call.func
    path: ast.expr | None
    if isinstance(function, ast.Attribute) and module_name(function) not in _OPENING_MODULES:
        path = function.value
        modes = call.args[:1]
    else:
        path = call.args[0] if call.args else None
        modes = call.args[1:2]
    modes = [*modes, *_keyword_modes(call)]
    is_written = any(_WRITING_MODE.search(m) for node in modes for m in values.possible(node))
    return values.possible(path) if is_written else []


def _appends(call: ast.Call, values: PythonValues) -> bool:
    """Whether a call opens a file to add to its text."""
    if function_name(call.func) != "open":
        return False
    modes = (text for node in (*call.args, *_keyword_modes(call)) for text in values.possible(node))
    return any(map(_APPENDING_MODE.fullmatch, modes))


def _keyword_modes(call: ast.Call) -> list[ast.expr]:
    return [keyword.value for keyword in call.keywords if keyword.arg == "mode"]


# --- Texts


def _texts_written(tree: ast.Module, values: PythonValues) -> dict[str, list[str | None]]:
    """Returns the texts that are written to each file; None for a text that is not known."""
    texts: dict[str, list[str | None]] = defaultdict(list)
    opened = _opened_files(tree)
    with_attribute = {node.value for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        text: ast.expr | None = None
        match node:
            case ast.Call(func=ast.Attribute(value=path, attr="write_text"), args=[text, *_]):
                paths = values.possible(path)
            case ast.Call(func=ast.Attribute(value=file, attr="write" | "writelines"), args=[text]):
                opening = opened.get(file, file)
                paths = _files_written_by(opening, values) if isinstance(opening, ast.Call) else []
            case ast.Name() if node in opened and node not in with_attribute:
                paths = _files_written_by(opened[node], values)  # json.dump(value, file)
            case _:
                continue
        if len(paths) == 1:
            texts[paths[0]].append(values.known_text(text))
    return texts


def _opened_files(tree: ast.Module) -> dict[ast.expr, ast.Call]:
    """Returns the calls of `open` by the names in the code that stand for their files.

    A name in a `with` stands for its file within it; other names only if they are assigned once.
    """
    calls = _calls_assigned_once(tree) | _calls_of_withs(tree)
    return {name: call for name, call in calls.items() if function_name(call.func) == "open"}


def _calls_assigned_once(tree: ast.Module) -> dict[ast.expr, ast.Call]:
    """Returns, for each place that reads a name, the one call whose result the name is given."""
    assigned: dict[str, list[ast.Call]] = defaultdict(list)
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                assigned[name].append(call)
    once = {name: calls[0] for name, calls in assigned.items() if len(calls) == 1}
    return {node: once[node.id] for node in _names_read_in(tree) if node.id in once}


def _calls_of_withs(tree: ast.Module) -> dict[ast.expr, ast.Call]:
    """Returns, for each place in a `with` that reads a name of it, the call that the name is of."""
    calls: dict[ast.expr, ast.Call] = {}
    for block in ast.walk(tree):  # an inner `with`, which comes later, replaces an outer one
        if not isinstance(block, ast.With):
            continue
        for item in block.items:
            match item:
                case ast.withitem(context_expr=ast.Call() as call, optional_vars=ast.Name(id=name)):
                    names = (node for part in block.body for node in _names_read_in(part))
                    calls |= {node: call for node in names if node.id == name}
    return calls


def _names_read_in(tree: ast.AST) -> Iterator[ast.Name]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node
