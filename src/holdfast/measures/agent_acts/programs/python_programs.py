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
from collections.abc import Container, Iterator, Sequence

from holdfast.measures.agent_acts.programs.program_effects import ProgramEffects
from holdfast.measures.agent_acts.programs.python_values import (
    PythonValues,
    assigned_values,
    function_name,
    module_name,
)
from holdfast.measures.agent_acts.programs.python_writes import edits_in

_RUNNING_FUNCTIONS = (
    *("run", "call", "check_call", "check_output", "Popen", "system", "popen"),
    *("getoutput", "getstatusoutput"),
)
# functions that run the program in the list of their last argument
_REPLACES_PROCESS = ("execv", "execvp", "execve", "execvpe", "spawnv", "spawnvp", "posix_spawn")
_RUNNING_MODULES = ("subprocess", "os", "sp")
_EXITS = ("exit", "_exit", "quit", "abort")
_MODULES_OF_EXITS = ("", "sys", "os")
# what a program has that runs commands or changes files
_MAY_ACT = re.compile(
    r"subprocess|\bos\b|\bsp\b|shutil|popen|open|write_|touch|unlink|rename|replace|\brun\b"
)


def read_python(code: str, arguments: Sequence[str]) -> ProgramEffects:
    """Reads a program that is run with these arguments.

    A program that is not valid Python has no effects.
    """
    if not _MAY_ACT.search(code):
        return ProgramEffects()
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ProgramEffects()
    _undo_aliases(tree)
    _remove_unreachable(tree)
    values = assigned_values(tree, arguments)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    scripts = [script for call in calls for script in _scripts_run_by(call, values)]
    return ProgramEffects(scripts, edits_in(tree, values))


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
    """Yields the statements of a block that may run.

    Args:
        named: the names that the program uses.
    """
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
            return function_name(function) in _EXITS and module_name(function) in _MODULES_OF_EXITS
        case ast.If(test=ast.Constant(value=value), body=body, orelse=orelse):
            return any(map(_always_leaves, body if value else orelse))
    return False


# --- Commands


def _scripts_run_by(call: ast.Call, values: PythonValues) -> list[str]:
    """Returns the shell commands that a call may run, such as `subprocess.run("git push")`."""
    name = function_name(call.func)
    if module_name(call.func) not in ("", *_RUNNING_MODULES):
        return []
    if name in _REPLACES_PROCESS:
        lists = [item for item in call.args if isinstance(item, ast.List | ast.Tuple | ast.Name)]
        return [shlex.join(values.possible(item)) for item in lists[-1:]]
    if name not in _RUNNING_FUNCTIONS or not call.args:
        return []
    command = call.args[0]
    if _is_list_of_words(command, values):
        return [shlex.join(values.possible(command))]
    if isinstance(command, ast.JoinedStr):  # without the parts that are not known
        texts = [part.value for part in command.values if isinstance(part, ast.Constant)]
        return ["".join(map(str, texts))]
    return values.possible(command)


def _is_list_of_words(command: ast.expr, values: PythonValues) -> bool:
    """Whether a command is a list of words, such as `["git", "push"]` or `shlex.split(text)`."""
    match command:
        case ast.List() | ast.Tuple():
            return True
        case ast.Call(func=function):
            return function_name(function) == "split"
        case ast.Name(id=name):
            return name in values.lists
    return False
