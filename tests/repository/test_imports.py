"""The order of the layers, and the imports of code beside the package."""

import ast
import functools
import graphlib
import re
from pathlib import Path

import pytest
from paths import ROOT

from holdfast.cli.command_list import ENTRIES

SOURCE = ROOT / "src"
PACKAGE = SOURCE / "holdfast"

# A module imports only its own layer and those before it; modules not yet written are absent.
LAYERS = (
    "errors version plurals extras lazy_imports seeds files validation catalogue_entry records chat"
    " methods client measures transcripts states attention generation models drift drafting"
    " analysis study logs coding_agents report papers serve proxy integrations"
    " __init__ cli __main__"
).split()


MODULES = sorted(PACKAGE.rglob("*.py"))


def layer_of(path: Path) -> str:
    """The name of the file or folder directly below the package."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imported_names(source: str) -> set[str]:
    """The dotted names, without the package's, that `source` imports from it.

    Imports inside functions and for type checking count too.
    """
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            package, _, inner_name = name.partition(".")
            if package == "holdfast":
                imported.add(inner_name)
    return imported


def imports_of(source: str) -> set[str]:
    """Every layer that `source` imports."""
    layers = (name.partition(".")[0] for name in imported_names(source))
    return {layer if exists(layer) else "__init__" for layer in layers}


def module_of(name: str) -> str:
    """The module that a dotted name belongs to: `drift` for `drift.run`."""
    while name and not exists(name.replace(".", "/")):
        name = name.rpartition(".")[0]
    return name or "__init__"


def exists(layer: str) -> bool:
    return bool(layer) and ((PACKAGE / layer).is_dir() or (PACKAGE / f"{layer}.py").is_file())


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_no_later_layer(path):
    layer, imported = layer_of(path), imports_of(path.read_text(encoding="utf-8"))
    unknown = {layer, *imported} - {*LAYERS}
    assert not unknown
    below = {name for name in imported if LAYERS.index(name) > LAYERS.index(layer)}
    assert not below, f"{layer} imports upwards"


def test_a_modules_name_says_what_is_in_it_without_its_folder():
    """No name stands in two packages; the files of commands have the names of the commands."""
    commands = {entry.module.rpartition(".")[2] for entry in ENTRIES.values()}
    folders = {}
    for path in MODULES:
        is_command = layer_of(path) == "cli" and path.stem in commands
        if path.stem not in ("__init__", "__main__") and not is_command:
            folders.setdefault(path.stem, []).append(path.parent.name)
    repeated = {name: packages for name, packages in folders.items() if len(packages) > 1}
    assert not repeated


# Lists of modules


# the docstrings of these do not list their modules, most of which are rows of a table
UNLISTED = ("logs", "transcripts", "drafting")
MAX_UNLISTED = 7  # modules of a package that a reader finds without a list


def modules_in(package):
    return {path.stem for path in package.glob("*.py")} - {"__init__"}


LARGE_PACKAGES = [
    package
    for package in sorted({path.parent for path in MODULES} - {PACKAGE})
    if len(modules_in(package)) > MAX_UNLISTED and layer_of(package) not in UNLISTED
]


@pytest.mark.parametrize("package", LARGE_PACKAGES, ids=lambda package: package.name)
def test_the_docstring_of_a_large_package_lists_its_modules(package):
    docstring = ast.get_docstring(ast.parse((package / "__init__.py").read_text(encoding="utf-8")))
    listed = set(re.findall(r"\w+", docstring))
    assert not modules_in(package) - listed


# Imports that exist


PACKAGES = {
    "holdfast": PACKAGE,
    "holdfast_llama": ROOT / "plugins" / "holdfast-llama" / "src" / "holdfast_llama",
    "holdfast_vllm": ROOT / "plugins" / "holdfast-vllm" / "src" / "holdfast_vllm",
}
# code that mypy does not read, or that only some environments run
LOOSE = "benchmarks examples plugins tests training".split()


def missing_imports(source):
    """The dotted names that `source` imports from our packages, and that are not there."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module.partition(".")[0] in PACKAGES:
            for alias in node.names:
                if not has_name(node.module, alias.name):
                    yield f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] in PACKAGES and not file_of(alias.name).exists():
                    yield alias.name


def has_name(module, name):
    """Whether a module contains or imports a name, or is a package with a module of this name."""
    path = file_of(module)
    return file_of(f"{module}.{name}").exists() or (path.exists() and name in names_in(path))


def file_of(module):
    """The file of a module, or of a package, that may not exist."""
    package, *parts = module.split(".")
    folder = PACKAGES[package].joinpath(*parts)
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


@functools.cache
def names_in(path):
    """The names that a module defines or imports, also by `import *`."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                if alias.name == "*":
                    names |= names_in(file_of(node.module))
                else:
                    names.add(alias.asname or alias.name.partition(".")[0])
    return names


@pytest.mark.parametrize("folder", LOOSE)
def test_code_beside_the_package_imports_only_names_that_exist(folder):
    missing = {}
    for path in sorted((ROOT / folder).rglob("*.py")):
        if found := list(missing_imports(path.read_text(encoding="utf-8"))):
            missing[str(path.relative_to(ROOT))] = found
    assert not missing


def test_a_name_that_is_gone_is_found_among_imports():
    source = """
import holdfast.errors, holdfast.gone
from holdfast import Boost, methods, nothing
from holdfast.errors import UsageError, Renamed
from holdfast_vllm.gone import Move
"""
    assert list(missing_imports(source)) == [
        "holdfast.gone",
        "holdfast.nothing",
        "holdfast.errors.Renamed",
        "holdfast_vllm.gone.Move",
    ]


@pytest.mark.slow
def test_no_modules_import_one_another_in_a_circle():
    """Neither directly nor through others."""
    graph = {}
    for path in MODULES:
        name = path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".")
        name = name.removesuffix(".__init__")
        imported = imported_names(path.read_text(encoding="utf-8"))
        graph[name] = {module_of(name_imported) for name_imported in imported} - {name}
    assert len(graph) > 200
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(f"a circle of imports: {' -> '.join(error.args[1])}")


def test_every_form_of_import_is_found():
    source = """
import holdfast.records, torch
from holdfast import chat, __version__
from holdfast.methods.spec import parse
def later():
    from holdfast.errors import UsageError
"""
    assert imports_of(source) == {"records", "chat", "__init__", "methods", "errors"}


def test_every_module_with_measures_is_imported_by_its_package():
    """Importing a module registers its measures."""
    folder = PACKAGE / "measures"
    statements = ast.parse((folder / "__init__.py").read_text(encoding="utf-8")).body
    from_here = [node for node in statements if getattr(node, "module", "") == "holdfast.measures"]
    imported = {alias.name for node in from_here for alias in node.names}
    decorated = re.compile(r"^@measure\b", re.MULTILINE)
    sources = {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.py")}
    registering = {name for name, source in sources.items() if decorated.search(source)}
    assert len(registering) > 15
    forgotten = registering - imported
    assert not forgotten, f"import {forgotten} in measures/__init__.py"


def test_html_is_written_only_by_templates():
    """No module of report/ or papers/ contains a tag, and only one creates the environment."""
    made_in = []
    for room in ("report", "papers"):
        for path in (PACKAGE / room).rglob("*.py"):
            nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
            texts = [str(node.value) for node in nodes if isinstance(node, ast.Constant)]
            tags = [text for text in texts if re.search(r"</[a-z]|<[a-z]+ [a-z-]+=", text)]
            assert not tags, f"{path.name} has {tags}"
            called = [node.func for node in nodes if isinstance(node, ast.Call)]
            if any(isinstance(name, ast.Name) and name.id == "Environment" for name in called):
                made_in.append(path.name)
    assert made_in == ["template_environment.py"]
