"""Reads what a short Python program runs and writes.

    import os; os.remove('a.txt')            ->  deletes a.txt
    shutil.copy('a.txt', 'b.txt')            ->  writes b.txt
    subprocess.run(['git', 'push'])          ->  runs `git push`

The program is parsed, not run. Names have the values that the program assigns to them, as far as
these are literals, paths made of literals, or globs. Parts that never run, such as what follows
`sys.exit()`, are left out.
"""

import ast
import re
import shlex
import textwrap
from collections import Counter, defaultdict
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

from holdfast.measures.agent_acts.edits.file_edits import FileEdit
from holdfast.measures.agent_acts.programs.program_effects import ProgramEffects

# by the name of the function: the numbers of its arguments that are files which it changes
_WRITING_FUNCTIONS = {
    **dict.fromkeys(("remove", "unlink", "rmtree", "truncate", "removedirs"), (0,)),
    **dict.fromkeys(("rename", "renames", "replace", "move"), (0, 1)),
    **dict.fromkeys(("copy", "copy2", "copyfile", "copytree"), (1,)),
}
_WRITING_MODULES = ("os", "shutil")
_WRITING_METHODS = ("write_text", "write_bytes", "unlink", "touch", "rename", "replace")
_RUNNING_FUNCTIONS = (
    *("run", "call", "check_call", "check_output", "Popen", "system", "popen"),
    *("getoutput", "getstatusoutput"),
)
# functions that run the program in the list of their last argument
_REPLACES_PROCESS = ("execv", "execvp", "execve", "execvpe", "spawnv", "spawnvp", "posix_spawn")
_RUNNING_MODULES = ("subprocess", "os", "sp")
_MAX_VALUES = 20  # of a name
_EXITS = ("exit", "_exit", "quit", "abort")  # also of the module sys


# what a program has that runs commands or changes files
_ACTS_IN_PYTHON = re.compile(
    r"subprocess|\bos\b|\bsp\b|shutil|popen|open|write_|touch|unlink|rename|replace|\brun\b"
)


def read_python(code: str, arguments: Sequence[str]) -> ProgramEffects:
    """Reads a program that is run with these arguments.

    A program that is not valid Python has no effects.
    """
    if not _ACTS_IN_PYTHON.search(code):
        return ProgramEffects()
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ProgramEffects()
    _undo_aliases(tree)
    _remove_unreachable(tree)
    program = ProgramEffects()
    values = _assigned_values(tree, arguments)
    texts = _texts_written(tree, values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            program.scripts += _scripts_of_call(node, values)
            is_whole = not _appends(node, values)
            paths = _writes_of_call(node, values)
            program.edits += [FileEdit(path, is_whole=is_whole, is_shown=False) for path in paths]
    edits = dict.fromkeys(program.edits)
    program.edits = [_with_text(edit, texts.get(edit.path, [])) for edit in edits]
    return program


def _with_text(edit: FileEdit, texts: Sequence[str | None]) -> FileEdit:
    """Returns the edit with the texts that are written to its file, if they are all known."""
    known = [text for text in texts if text is not None]
    if not texts or len(known) < len(texts) or "*" in edit.path:
        return edit
    return replace(edit, added=("".join(known),), is_shown=True)


def _undo_aliases(tree: ast.Module) -> None:
    """Gives modules and functions their own names: `run` for `from subprocess import run as r`."""
    own_names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            own_names |= {alias.asname: alias.name for alias in node.names if alias.asname}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            node.id = own_names.get(node.id, node.id)


# --- Statements that never run


def _remove_unreachable(tree: ast.Module) -> None:
    """Removes the statements that never run, and functions that nothing names."""
    nodes = [*ast.walk(tree)]
    named = {node.id for node in nodes if isinstance(node, ast.Name)}
    named |= {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        for block in ("body", "orelse", "finalbody"):
            statements = getattr(node, block, None)
            if isinstance(statements, list) and not isinstance(node, ast.ClassDef):
                setattr(node, block, list(_reachable(statements, named)))


def _reachable(statements: Sequence[ast.stmt], named: Container[str]) -> Iterator[ast.stmt]:
    for statement in statements:
        match statement:
            case ast.FunctionDef(name=name, decorator_list=[]) if name not in named:
                continue
            case ast.If(test=ast.Constant(value=value), body=body, orelse=orelse):
                yield from _reachable(body if value else orelse, named)
            case ast.While(test=ast.Constant(value=value), orelse=orelse) if not value:
                yield from _reachable(orelse, named)
            case _:
                yield statement
        if _always_leaves(statement):
            return


def _always_leaves(statement: ast.stmt) -> bool:
    """Whether the statements after this one, in the same block, never run."""
    match statement:
        case ast.Return() | ast.Raise() | ast.Break() | ast.Continue():
            return True
        case ast.Expr(value=ast.Call(func=function)):
            return _name_of(function) in _EXITS and _module_of(function) in ("", "sys", "os")
        case ast.If(test=ast.Constant(value=value), body=body, orelse=orelse):
            return any(map(_always_leaves, body if value else orelse))
    return False


# --- What is written to files


def _texts_written(tree: ast.Module, values: "_Values") -> dict[str, list[str | None]]:
    """Returns the texts that are written to each file; None for a text that is not known."""
    texts: dict[str, list[str | None]] = defaultdict(list)
    opened = _opened_files(tree)
    methods = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        path: ast.expr | None = None
        text: ast.expr | None = None
        match node:
            case ast.Call(func=ast.Attribute(value=path, attr="write_text"), args=[text, *_]):
                paths = values.of(path)
            case ast.Call(func=ast.Attribute(value=file, attr="write" | "writelines"), args=[text]):
                opening = opened.get(id(file), file)
                paths = _writes_of_call(opening, values) if isinstance(opening, ast.Call) else []
            case ast.Name() if id(node) in opened and id(node) not in methods:
                paths = _writes_of_call(opened[id(node)], values)  # as in `json.dump(value, file)`
            case _:
                continue
        if len(paths) == 1:
            texts[paths[0]].append(values.text_of(text))
    return texts


def _opened_files(tree: ast.Module) -> dict[int, ast.Call]:
    """Returns the calls of `open` by the ids of the names in the code that stand for their files.

    A name in a `with` stands for its file within it; other names only if they are assigned once.
    """
    opened: dict[int, ast.Call] = {}
    assigned: dict[str, list[ast.Call]] = defaultdict(list)
    withs: list[ast.With] = []
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() as call):
                assigned[name].append(call)
            case ast.With():
                withs.append(node)
    for node in _names_read_in(tree):
        if len(calls := assigned.get(node.id, [])) == 1:
            opened[id(node)] = calls[0]
    for block in withs:  # the outer ones first
        for item in block.items:
            match item:
                case ast.withitem(context_expr=ast.Call() as call, optional_vars=ast.Name(id=name)):
                    names = (node for part in block.body for node in _names_read_in(part))
                    opened |= {id(node): call for node in names if node.id == name}
    return {key: call for key, call in opened.items() if _name_of(call.func) == "open"}


def _names_read_in(tree: ast.AST) -> Iterator[ast.Name]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node


def _appends(call: ast.Call, values: "_Values") -> bool:
    """Whether a call opens a file to add to its text."""
    modes = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg == "mode")]
    texts = (text for mode in modes for text in values.of(mode))
    return _name_of(call.func) == "open" and any(re.fullmatch("a[bt+]*", text) for text in texts)


# --- The values of names


class _Values(defaultdict[str, list[str]]):
    """The texts and paths that the names of a program may have."""

    def __init__(self, arguments: Sequence[str] = ()) -> None:
        super().__init__(list)
        self.lists: set[str] = set()  # the names whose value is a list, such as a command's words
        self.computed: set[str] = set()  # the names whose value is no literal, or changes
        self._arguments = ("-", *arguments)  # sys.argv

    def text_of(self, node: ast.expr | None) -> str | None:
        """Returns the text that an expression has; None if it is not known in full."""
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.Name(id=name) if name not in self.computed and len(self.get(name, [])) == 1:
                return self[name][0]
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                texts = (self.text_of(left), self.text_of(right))
                return None if None in texts else "".join(filter(None, texts))
            case ast.Call(func=function, args=[argument]) if _name_of(function) == "dedent":
                text_inside = self.text_of(argument)
                return None if text_inside is None else textwrap.dedent(text_inside)
            case ast.Call(func=ast.Attribute(value=base, attr="strip" | "lstrip"), args=[]):
                return self.text_of(base)
        return None

    def of(self, node: ast.expr | None) -> list[str]:
        """Returns the texts or paths that an expression may have; [] if they are not known."""
        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.Name(id=name):
                return self.get(name, [])
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [text for item in items for text in self.of(item)]
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id="sys"), attr="argv"),
                slice=ast.Constant(value=int(number)),
            ):
                return [*self._arguments[number : number + 1]] if number >= 0 else []
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return [f"{a}{b}" for a in self.of(left) for b in self.of(right)]
            case ast.Call(func=ast.Attribute(value=base, attr="split"), args=arguments):
                text_node = arguments[0] if arguments else base  # of `shlex.split(text)`
                return [word for text in self.of(text_node) for word in text.split()]
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return [f"{a}/{b}" for a in self.of(left) for b in self.of(right)]
            case ast.Call(func=ast.Attribute(value=base, attr="glob" | "rglob"), args=[pattern]):
                folders = self.of(base) or [""]
                return [f"{a}/{b}".lstrip("/") for a in folders for b in self.of(pattern)]
            case ast.Call(func=ast.Attribute(attr="join"), args=[_, _, *_] as parts):
                joined = [""]
                for part in parts:
                    joined = [f"{a}/{b}".lstrip("/") for a in joined for b in self.of(part)]
                return joined
            case ast.JoinedStr(values=parts):  # a glob, if parts are not known
                texts = [
                    str(part.value) if isinstance(part, ast.Constant) else "*" for part in parts
                ]
                return ["".join(texts)]
            case ast.Call(args=[argument, *_]) if _name_of(node.func) in ("Path", "str", "sorted"):
                return self.of(argument)
        return []


def _assigned_values(tree: ast.Module, arguments: Sequence[str]) -> _Values:
    """Returns the values of names that are assigned once or more, or that a loop goes through.

    Args:
        arguments: of the program.
    """
    values = _Values(arguments)
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        value: ast.expr | None = None
        match node:
            case ast.Assign():
                targets, value = node.targets, node.value
            case ast.AnnAssign() | ast.NamedExpr():
                targets, value = [node.target], node.value
            case ast.For():
                targets, value = [node.target], node.iter
            case ast.AugAssign():
                targets, value = [node.target], node.value
            case ast.Call(
                func=ast.Attribute(value=ast.Name() as listed, attr="append" | "extend"),
                args=[item],
            ):
                targets, value = [listed], item
        for target in targets:
            if isinstance(target, ast.Name) and len(values[target.id]) < _MAX_VALUES:
                values[target.id] += values.of(value)[:_MAX_VALUES]
                if not isinstance(value, ast.Constant):
                    values.computed.add(target.id)
                if isinstance(value, ast.List) and not isinstance(node, ast.For):
                    values.lists.add(target.id)
    values.computed |= _names_bound_again(tree)
    return values


def _names_bound_again(tree: ast.Module) -> set[str]:
    """Returns the names that are bound twice or more, also by a parameter or in a tuple."""
    bound: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            bound[node.arg] += 1
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound[node.id] += 1
    return {name for name, times in bound.items() if times > 1}


# --- Calls


def _scripts_of_call(call: ast.Call, values: _Values) -> list[str]:
    is_running = _module_of(call.func) in ("", *_RUNNING_MODULES)
    if is_running and _name_of(call.func) in _REPLACES_PROCESS:
        lists = [item for item in call.args if isinstance(item, ast.List | ast.Tuple | ast.Name)]
        return [shlex.join(values.of(item)) for item in lists[-1:]]
    if not is_running or _name_of(call.func) not in _RUNNING_FUNCTIONS or not call.args:
        return []
    command = call.args[0]
    is_split = isinstance(command, ast.Call) and _name_of(command.func) == "split"
    if isinstance(command, ast.List | ast.Tuple) or is_split:
        return [shlex.join(values.of(command))]
    if isinstance(command, ast.Name) and command.id in values.lists:
        return [shlex.join(values.of(command))]
    if isinstance(command, ast.JoinedStr):  # without the parts that are not known
        texts = [part.value for part in command.values if isinstance(part, ast.Constant)]
        return ["".join(map(str, texts))]
    return values.of(command)


def _writes_of_call(call: ast.Call, values: _Values) -> list[str]:
    name = _name_of(call.func)
    arguments = call.args
    if name == "open":
        is_method = isinstance(call.func, ast.Attribute) and _module_of(call.func) not in (
            *("io", "codecs", "os"),
        )
        modes = [*arguments[0 if is_method else 1 :][:1]]
        modes += [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
        if not any(re.search("[wax+]", mode) for node in modes for mode in values.of(node)):
            return []
        path = call.func.value if is_method and isinstance(call.func, ast.Attribute) else None
        return values.of(path or (arguments[0] if arguments else None))
    if _module_of(call.func) in _WRITING_MODULES:
        changed = [arguments[n] for n in _WRITING_FUNCTIONS.get(name, ()) if n < len(arguments)]
        return [path for node in changed for path in values.of(node)]
    if name in _WRITING_METHODS and isinstance(call.func, ast.Attribute):
        object_ = call.func.value
        is_path = name != "replace" or len(arguments) == 1  # text.replace(a, b) changes no file
        return values.of(object_) if is_path else []
    return []


def _name_of(function: ast.expr) -> str:
    """Returns the last part of a function's name: `run` for `subprocess.run`."""
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _module_of(function: ast.expr) -> str | None:
    """Returns the module in a function's name; "" for a bare name, None for another object."""
    match function:
        case ast.Name():
            return ""
        case ast.Attribute(value=ast.Name(id=name)):
            return name
    return None
