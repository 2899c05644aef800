"""The values that the names of a Python program may have, as far as literals show them.

For example:

    folder = "src"; path = folder + "/a.py"  ->  `path` may be "src/a.py"
    for name in ["a", "b"]: ...              ->  `name` may be "a" or "b", f"{name}.py" "*.py"
    text = "x"; text += "y"                  ->  the text of `text` is not known
"""

import ast
import textwrap
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

_MAX_VALUES = 20  # of a name


def function_name(function: ast.expr) -> str:
    """Returns the last part of a function's name: `run` for `subprocess.run`."""
    match function:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def module_name(function: ast.expr) -> str | None:
    """Returns the module in a function's name; "" for a bare name, None for another object."""
    match function:
        case ast.Name():
            return ""
        case ast.Attribute(value=ast.Name(id=name)):
            return name
    return None


@dataclass
class PythonValues:
    """The texts and paths that the names of a program may have.

    Args:
        argv: `sys.argv`.
        by_name: the values of each name.
        lists: the names whose value is a list, such as a command's words.
        computed: the names whose value is no literal, or changes.
    """

    argv: Sequence[str] = ("-",)
    by_name: dict[str, list[str]] = field(default_factory=dict)
    lists: set[str] = field(default_factory=set)
    computed: set[str] = field(default_factory=set)

    def known_text(self, node: ast.expr | None) -> str | None:
        """Returns the text that an expression has; None if it is not known in full."""
        match node:
            case ast.Constant(value=str(text)):
                return text
            case ast.Name(id=name) if name not in self.computed:
                values = self.by_name.get(name, [])
                return values[0] if len(values) == 1 else None
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                start, end = self.known_text(left), self.known_text(right)
                return None if start is None or end is None else start + end
            case ast.Call(func=function, args=[argument]) if function_name(function) == "dedent":
                text_inside = self.known_text(argument)
                return None if text_inside is None else textwrap.dedent(text_inside)
            case ast.Call(func=ast.Attribute(value=base, attr="strip" | "lstrip"), args=[]):
                return self.known_text(base)
        return None

    def possible(self, node: ast.expr | None) -> list[str]:
        """Returns the texts or paths that an expression may have; [] if they are not known."""
        match node:
            case ast.Constant(value=str(text)):
                return [text]
            case ast.Name(id=name):
                return self.by_name.get(name, [])
            case ast.List(elts=items) | ast.Tuple(elts=items):
                return [text for item in items for text in self.possible(item)]
            case ast.Subscript(
                value=ast.Attribute(value=ast.Name(id="sys"), attr="argv"),
                slice=ast.Constant(value=int(number)),
            ):
                return [*self.argv[number : number + 1]] if number >= 0 else []
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return [f"{a}{b}" for a in self.possible(left) for b in self.possible(right)]
            case ast.BinOp(left=left, op=ast.Div(), right=right):
                return [f"{a}/{b}" for a in self.possible(left) for b in self.possible(right)]
            case ast.JoinedStr(values=parts):  # a glob: f"{name}.py" is "*.py"
                texts = [str(p.value) if isinstance(p, ast.Constant) else "*" for p in parts]
                return ["".join(texts)]
            case ast.Call():
                return self._possible_results(node)
        return []

    def _possible_results(self, call: ast.Call) -> list[str]:
        """Returns the texts or paths that a call may return; [] if they are not known."""
        match call:
            case ast.Call(func=ast.Attribute(value=base, attr="split"), args=arguments):
                text_node = arguments[0] if arguments else base  # of `shlex.split(text)`
                return [word for text in self.possible(text_node) for word in text.split()]
            case ast.Call(func=ast.Attribute(value=base, attr="glob" | "rglob"), args=[pattern]):
                return self._join_paths([self.possible(base) or [""], self.possible(pattern)])
            case ast.Call(func=ast.Attribute(attr="join"), args=[_, _, *_] as parts):
                return self._join_paths([self.possible(part) for part in parts])
            case ast.Call(func=function, args=[argument, *_]):
                is_same = function_name(function) in ("Path", "str", "sorted")
                return self.possible(argument) if is_same else []
        return []

    @staticmethod
    def _join_paths(parts: Sequence[Sequence[str]]) -> list[str]:
        """Returns the paths that begin with one of the first parts, and so on."""
        joined = [""]
        for values in parts:
            joined = [f"{path}/{value}".lstrip("/") for path in joined for value in values]
        return joined


def assigned_values(tree: ast.Module, arguments: Sequence[str]) -> PythonValues:
    """Returns the values of names that are assigned once or more, or that a loop goes through.

    Args:
        arguments: of the program.
    """
    values = PythonValues(argv=("-", *arguments))
    for node in ast.walk(tree):
        targets, value = _assignment_in(node)
        for target in targets:
            if not isinstance(target, ast.Name):
                continue
            known = values.by_name.setdefault(target.id, [])
            if len(known) >= _MAX_VALUES:
                continue
            known += values.possible(value)[:_MAX_VALUES]
            if not isinstance(value, ast.Constant):
                values.computed.add(target.id)
            if isinstance(value, ast.List) and not isinstance(node, ast.For):
                values.lists.add(target.id)
    values.computed |= _names_bound_again(tree)
    return values


def _assignment_in(node: ast.AST) -> tuple[list[ast.expr], ast.expr | None]:
    """Returns the targets of an assignment, a loop or `names.append(...)`, and what they get."""
    match node:
        case ast.Assign():
            return node.targets, node.value
        case ast.AnnAssign() | ast.AugAssign() | ast.NamedExpr():
            return [node.target], node.value
        case ast.For():
            return [node.target], node.iter
        case ast.Call(
            func=ast.Attribute(value=ast.Name() as listed, attr="append" | "extend"), args=[item]
        ):
            return [listed], item
    return [], None


def _names_bound_again(tree: ast.Module) -> set[str]:
    """Returns the names that are bound twice or more, also by a parameter or in a tuple."""
    bound: Counter[str] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            bound[node.arg] += 1
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound[node.id] += 1
    return {name for name, times in bound.items() if times > 1}
