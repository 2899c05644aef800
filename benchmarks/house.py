"""How large and how tangled the code is: `python benchmarks/house.py` prints one table.

A room is a file or folder directly below `src/holdfast`. The order of the rooms is defined in
`tests/test_imports.py`. With --check, as in `make lint`, the exit code is 1 if a row misses its
target.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "holdfast"
KERNELS = ("attention/kernels.py", "attention/gpu_step.py")
# Words of a private vocabulary, and the field's own (docs/contributing.md).
GLOSSARY = {
    "knob": "parameter",
    "spelled": "spec",
    "told": "reported",
    "held_lse": "span_lse",
    "towards": "lerp",
    "company": "batch_key",
    "goes_on": "supports_chunked_prefill",
    "keep_alike": "require_equal_positions",
    "serves": "reusable_prefix_len",
    "stood_on": "pinned_len",
    "Known": "CachedDialog",
    "Reading": "StreamState",
    "Lane": "MethodGroup",
    "Door": "GPTJPatch",
    "adopt": "install",
    "Twin": "SharedWeightsCopy",
    "Rehearses": "NeedsWarmup",
    "draws_again": "resamples",
    "acts_in_front": "affects_pre_span",
    "Here": "Local",
    "There": "Remote",
    "gone": "unavailable",
    "Desk": "Queue",
    "Board": "Assignments",
    "Seat": "Resources",
    "News": "Updates",
    "foretelling": "failure_prediction",
    "LEAST": "MIN_SAMPLES",
    "lets_go": "is_below",
    "PassedOver": "Rejected",
    "unheeded": "ignored",
    "looked_at": "seq_length_read",
    "talks": "conversations",
    "spelling": "spec",
    "fresh": "num_new_tokens",
    "settle": "resolve",
    "offers": "capabilities",
    "needs": "requires",
    "neutral": "unsupported",
    "answers": "responses",
    "guard": "auth, cors, headers",
    **dict.fromkeys(("own", "found", "held", "said", "asked", "one", "each", "place"), ""),
}
FRAMES = ("_getframe", "_current_frames")


@dataclass(frozen=True)
class Module:
    """A file of the package.

    Args:
        path: relative to the package, such as "methods/boost.py".
        source: its text.
    """

    path: str
    source: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.source)

    @property
    def name(self) -> str:
        """Dotted name without the package: "methods.boost"; `__init__.py` has its folder's name."""
        return self.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    @property
    def room(self) -> str:
        return self.path.partition("/")[0].removesuffix(".py")

    @property
    def lines(self) -> int:
        return len(self.source.splitlines())

    @property
    def is_kernel(self) -> bool:
        return self.path.startswith(KERNELS)


@dataclass(frozen=True)
class Row:
    """A row of the table: a count and its target, which is an upper bound."""

    label: str
    count: int
    target: int
    examples: tuple[str, ...] = ()


def modules() -> list[Module]:
    return [
        Module(path.relative_to(PACKAGE).as_posix(), path.read_text(encoding="utf-8"))
        for path in sorted(PACKAGE.rglob("*.py"))
    ]


def imports(module: Module, names: set[str]) -> set[str]:
    """The names of the modules that a module imports, also in functions and for type checking."""
    imported: set[str] = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            wanted = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            wanted = [alias.name for alias in node.names]
        else:
            continue
        for name in wanted:
            if name.partition(".")[0] == "holdfast":
                imported.add(_resolve(name.partition(".")[2], names))
    return imported - {module.name}


def _resolve(name: str, names: set[str]) -> str:
    """The module that contains a dotted name; "__init__" for the package itself."""
    while name and name not in names:
        name = name.rpartition(".")[0]
    return name or "__init__"


def functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(module.tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many arguments a caller may pass, not counting `self` and `cls`."""
    arguments = [*node.args.posonlyargs, *node.args.args]
    bound = bool(arguments) and arguments[0].arg in ("self", "cls")
    return len(arguments) - bound + len(node.args.kwonlyargs)


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import one another, directly or through others."""

    def reached(start: str) -> set[str]:
        known, left = {start}, [start]
        while left:
            new = graph[left.pop()] - known
            known |= new
            left += new
        return known

    reach = {name: reached(name) for name in graph}
    groups = {frozenset(n for n in reach[name] if name in reach[n]) for name in graph}
    return sorted(sorted(group) for group in groups if len(group) > 1)


def identifiers(module: Module) -> Iterator[tuple[str, int]]:
    """Each name that a module defines, with its line."""
    for node in ast.walk(module.tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno


def docstrings(module: Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(module.tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = ast.get_docstring(node)
            if text:
                yield text, getattr(node, "lineno", 1)


def upward(graph: dict[str, set[str]], order: tuple[str, ...]) -> list[str]:
    """Imports that go against the order of the rooms."""
    height = {room: number for number, room in enumerate(order)}
    arrows = set()
    for name, targets in graph.items():
        room = name.partition(".")[0]
        for target in {target.partition(".")[0] for target in targets}:
            if height.get(target, -1) > height.get(room, len(height)):
                arrows.add(f"{room} -> {target}")
    return sorted(arrows)


def layers() -> tuple[str, ...]:
    """The order of the rooms, as defined in the test of imports."""
    tree = ast.parse((ROOT / "tests" / "test_imports.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "LAYERS":
            words = next(part for part in ast.walk(node) if isinstance(part, ast.Constant))
            return tuple(str(words.value).split())
    raise SystemExit("tests/test_imports.py has no LAYERS.")


def size_rows(files: list[Module], graph: dict[str, set[str]]) -> list[Row]:
    importers: dict[str, set[str]] = defaultdict(set)
    for name, targets in graph.items():
        for target in targets:
            importers[target].add(name)
    lone = [m.path for m in files if m.lines < 100 and len(importers[m.name]) == 1]
    tests = [p.read_text(encoding="utf-8") for p in sorted((ROOT / "tests").rglob("*.py"))]
    return [
        Row("lines of Python in src/holdfast", sum(m.lines for m in files), 45_000),
        Row("files", len(files), 300),
        Row("files with one importer and under 100 lines", len(lone), 40, tuple(lone)),
        Row("lines over 100 columns", *_count(_lines_with(files, ".{101}"), 0)),
        Row("lines in tests/", sum(len(text.splitlines()) for text in tests), 26_000),
    ]


def _lines_with(files: list[Module], pattern: str) -> list[str]:
    return [
        f"{m.path}:{number}"
        for m in files
        for number, line in enumerate(m.source.splitlines(), start=1)
        if re.search(pattern, line)
    ]


def _count(examples: list[str], target: int) -> tuple[int, int, tuple[str, ...]]:
    return len(examples), target, tuple(examples)


def import_rows(graph: dict[str, set[str]]) -> list[Row]:
    arrows = {
        (name.partition(".")[0], target.partition(".")[0])
        for name, targets in graph.items()
        for target in targets
    }
    between = sorted(f"{a} -> {b}" for a, b in arrows if a != b)
    knots = [", ".join(group) for group in circles(graph)]
    return [
        Row("imports between rooms", *_count(between, 120)),
        Row("imports upward", *_count(upward(graph, layers()), 0)),
        Row("circles", *_count(knots, 0)),
    ]


def function_rows(files: list[Module]) -> list[Row]:
    plain = [(m, node) for m in files if not m.is_kernel for node in functions(m)]
    long = [
        f"{m.path}:{node.name}"
        for m, node in plain
        if (node.end_lineno or node.lineno) - node.lineno + 1 > 60
    ]
    wide = [f"{m.path}:{node.name}" for m, node in plain if parameters(node) > 6]
    return [
        Row("functions over 60 lines, outside kernels", *_count(long, 5)),
        Row("signatures over 6 parameters, outside kernels", *_count(wide, 10)),
    ]


def word_rows(files: list[Module]) -> list[Row]:
    frames = [
        f"{m.path}:{node.lineno}"
        for m in files
        for node in ast.walk(m.tree)
        if isinstance(node, ast.Attribute) and node.attr in FRAMES
    ]
    keys = _lines_with(files, r"\[id\(|\bid\(\w+\):|\.get\(id\(|\bid\([\w.]+\) (not )?in\b")
    types = Counter(
        node.name for m in files for node in ast.walk(m.tree) if isinstance(node, ast.ClassDef)
    )
    private = [
        f"{m.path}:{line} {name}"
        for m in files
        for name, line in identifiers(m)
        if name.strip("_") in GLOSSARY
    ]
    whats = [
        f"{m.path}:{line}" for m in files for text, line in docstrings(m) if text.startswith("What")
    ]
    return [
        Row("sys._getframe, _current_frames, id() as a key", *_count(frames + keys, 0)),
        Row(
            "type names used for more than one thing",
            *_count(sorted(name for name, count in types.items() if count > 1), 0),
        ),
        Row("names from the private vocabulary", *_count(private, 0)),
        Row("docstrings that begin with “What”", *_count(whats, 0)),
    ]


def rows() -> list[Row]:
    files = modules()
    names = {m.name for m in files}
    graph = {m.name: imports(m, names) for m in files}
    return [*size_rows(files, graph), *import_rows(graph), *function_rows(files), *word_rows(files)]


def main() -> int:
    parser = argparse.ArgumentParser(description="How large and how tangled the code is.")
    parser.add_argument(
        "--check",
        nargs="*",
        metavar="WORDS",
        help="exit with 1 where a target is missed, in the rows with these words or in any",
    )
    parser.add_argument("--show", metavar="WORDS", help="list what the rows with these words count")
    options = parser.parse_args()
    table = rows()
    print("| | now | at most |\n| --- | ---: | ---: |")
    for row in table:
        print(f"| {row.label} | {row.count:,} | {row.target:,} |")
    if options.show:
        for row in table:
            if options.show in row.label:
                print(f"\n{row.label}:", *row.examples, sep="\n  ")
    if options.check is None:
        return 0
    words = options.check or [""]
    checked = [row for row in table if any(word in row.label for word in words)]
    missed = [row for row in checked if row.count > row.target]
    for row in missed:
        print(f"\n{row.label}: {row.count:,}, at most {row.target:,}", *row.examples, sep="\n  ")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
