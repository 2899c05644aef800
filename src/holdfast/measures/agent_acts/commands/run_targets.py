"""The commands that a target runs, if the log shows the file that defines it.

For example:

    make deploy      ->  git push, if Makefile was written with `deploy:\\n\\tgit push`
    npm run release  ->  the script `release` of package.json
"""

import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from holdfast.measures.agent_acts.written_paths import find_path
from holdfast.validation.json_values import fields_of

# the files that define targets
_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_JUSTFILES = ("justfile", "Justfile", ".justfile")
_TASKFILES = ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml")
_FILES = {
    **dict.fromkeys(("make", "gmake"), _MAKEFILES),
    "just": _JUSTFILES,
    **dict.fromkeys(("task", "go-task"), _TASKFILES),
}
_PACKAGE_RUNNERS = ("npm", "pnpm", "yarn", "bun")  # their file is package.json
_FILE_OPTIONS = ("-f", "--file", "--makefile", "--justfile", "-t", "--taskfile")
_VALUED_OPTIONS = (
    *_FILE_OPTIONS,
    *("-C", "--directory", "-d", "-j", "-o", "-W", "-I", "--prefix", "-w"),
)
_NPM_SCRIPTS = ("test", "start", "stop", "restart")  # which npm runs without `run`
# options with which nothing runs
_MAKE_DRY_RUN = frozenset(
    ("-n", "--dry-run", "--just-print", "--recon", "-q", "--question", "-t", "--touch")
)
_JUST_DRY_RUN = frozenset(
    ("-n", "--dry-run", "--list", "-l", "--show", "-s", "--summary", "--evaluate", "--dump")
)
_TASK_DRY_RUN = frozenset(
    ("-n", "--dry", "--list", "-l", "--list-all", "-a", "--summary", "--status")
)
_ONLY_SHOWS = {
    **{"make": _MAKE_DRY_RUN, "gmake": _MAKE_DRY_RUN, "just": _JUST_DRY_RUN},
    **{"task": _TASK_DRY_RUN, "go-task": _TASK_DRY_RUN},
}
_FOLDER_OPTIONS = ("-C", "--directory", "--prefix", "--dir", "--cwd", "-d", "--working-directory")
_FOLDER_EQUALS = ("--directory=", "--prefix=", "--dir=", "--cwd=")
# what package managers do themselves, so that a script of the name needs `run`
_OWN_COMMANDS = frozenset(
    """add install i remove rm uninstall up update upgrade publish exec dlx x create init link pack
    audit why list ls outdated config info""".split()
)
_MAX_TARGETS = 50  # that one command runs

# --- Lines of these files

# "build: a.o b.o" of make, whose first target runs unless ".DEFAULT_GOAL := build" names another
_TARGET = re.compile(r"(?P<names>[^\s:#=][^:#=\n]*):(?![=:])\s*(?P<needs>[^\n]*)")
_DEFAULT_GOAL = re.compile(r"^\.DEFAULT_GOAL[ \t]*:?=[ \t]*(\S+)", re.MULTILINE)
# "FLAGS := --force", and its use in "$(FLAGS)"
_VARIABLE = re.compile(r"^(?P<name>\w+)[ \t]*[:?+]*=[ \t]*(?P<value>.*)$", re.MULTILINE)
_EXPANSION = re.compile(r"\$[({](\w+)[)}]")
# "build target='all': clean" of just, and "@build:"
_RECIPE = re.compile(r"(?P<names>@?[\w-]+)(?:\s[^:]*)?:(?!=)\s*(?P<needs>[^\n]*)")
_LEAVES_SHELL = re.compile(r"\b(?:exit|exec|return)\b")


def script_of_target(
    words: Sequence[str],
    documents: Mapping[str, str],
    from_input: str | None,
    folder: str = "",
) -> str | None:
    """Returns the script that `make TARGET`, `npm run SCRIPT`, `just RECIPE` or `task TASK` runs.

    None for other commands, and if the file that defines it is not known.

    Args:
        documents: the texts of files, by their paths.
        from_input: the text of the command's input, which `make -f -` reads.
        folder: the working folder.
    """
    program, *rest = words
    if not documents and from_input is None:
        return None
    folder = _folder_named(rest, folder)
    if program in _PACKAGE_RUNNERS:
        text = _first_named(("package.json",), documents, folder)
        return _package_script(program, rest, text)
    if program not in _FILES or not _ONLY_SHOWS[program].isdisjoint(rest):
        return None
    file = next((following for word, following in pairwise(rest) if word in _FILE_OPTIONS), "")
    text = from_input
    if file != "-":
        text = _first_named((file,) if file else _FILES[program], documents, folder)
    if text is None:
        return None
    operands = _operands(rest)
    if program == "just":
        return _just_script(operands, text)
    if program in ("task", "go-task"):
        return _script_for(operands or ["default"], _tasks(text))
    return _make_script(operands, _with_variables(text, rest))


@dataclass
class _Target:
    """A target of a Makefile: the targets that it needs, and the lines that it runs after them."""

    needs: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def _script_for(names: Sequence[str], targets: Mapping[str, _Target]) -> str | None:
    """Returns the script that some targets run; None if they run nothing."""
    return _script_of([line for name in names for line in _lines_of(name, targets, set())])


def _make_script(names: Sequence[str], text: str) -> str | None:
    """Returns the script of targets of a Makefile; without any, of its default goal."""
    targets = _targets(text, _TARGET)
    goal = _DEFAULT_GOAL.search(text)
    default = goal[1] if goal else next(iter(targets), "")
    return _script_for(names or [default], targets)


def _just_script(words: Sequence[str], text: str) -> str | None:
    """Returns the script of a recipe of a justfile: the first word, whose arguments follow, or else
    the first recipe.
    """
    recipes = _targets(text, _RECIPE)
    return _script_for(words[:1] or [next(iter(recipes), "")], recipes)


def _with_variables(text: str, words: Sequence[str]) -> str:
    """Returns a Makefile with the values of its variables, of which the command may set some."""
    variables = {match["name"]: match["value"] for match in _VARIABLE.finditer(text)}
    given = (word.partition("=") for word in words if "=" in word)
    variables |= {name: value for name, _, value in given}
    return _EXPANSION.sub(lambda match: variables.get(match[1], match[0]), text)


def _folder_named(words: Sequence[str], folder: str) -> str:
    """Returns the folder that an option such as `make -C` names, within the working folder."""
    named = (rest for word, rest in pairwise(words) if word in _FOLDER_OPTIONS)
    named_with = (word.partition("=")[2] for word in words if word.startswith(_FOLDER_EQUALS))
    return posixpath.join(folder, next(named, next(named_with, "")))


def _first_named(names: Sequence[str], documents: Mapping[str, str], folder: str) -> str | None:
    paths = (find_path(posixpath.join(folder, name), documents) for name in names)
    return next((documents[path] for path in paths if path is not None), None)


def _operands(words: Sequence[str]) -> list[str]:
    operands: list[str] = []
    before = ""
    for word in words:
        if re.match(r"[0-9&]*[<>]", word):
            break
        if not word.startswith("-") and "=" not in word and before not in _VALUED_OPTIONS:
            operands.append(word)
        before = word
    return operands


def _package_script(program: str, words: Sequence[str], text: str | None) -> str | None:
    """Returns a script of package.json with those that run before and after it."""
    operands = _operands(words)
    is_named = operands[:1] == ["run"] or operands[:1] == ["run-script"]
    name = "".join(operands[1:2] if is_named else operands[:1])
    try:
        package = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    scripts = package.get("scripts") if isinstance(package, dict) else None
    if not isinstance(scripts, dict) or not isinstance(scripts.get(name), str):
        return None
    is_script = name in _NPM_SCRIPTS if program == "npm" else name not in _OWN_COMMANDS
    if not is_named and (not is_script or (program, name) == ("bun", "test")):
        return None
    parts = [scripts.get(f"{when}{name}") for when in ("pre", "", "post")]
    return _script_of([part for part in parts if isinstance(part, str)])


def _script_of(lines: Sequence[str]) -> str | None:
    """Joins lines, each of which a shell of its own runs, so that `exit` leaves only its line."""
    return (
        "\n".join(f"({line}\n)" if _LEAVES_SHELL.search(line) else line for line in lines) or None
    )


def _targets(text: str, header_form: re.Pattern[str]) -> dict[str, _Target]:
    """Returns the targets of a Makefile, or the recipes of a justfile, by their names.

    Args:
        header_form: `_TARGET` or `_RECIPE`.
    """
    is_just = header_form is _RECIPE
    targets: dict[str, _Target] = {}
    names: list[str] = []
    for line in text.replace("\\\n", " ").split("\n"):
        if line[:1] in ("\t", " ") and names:
            command = line.strip().lstrip("@-" if is_just else "@-+").replace("$$", "$")
            for name in names:
                targets[name].lines.append(command)
        elif header := header_form.fullmatch(line):
            words = header["names"].removeprefix("@").split()
            names = words[:1] if is_just else words
            needs, _, command = header["needs"].partition(";")
            for name in names:
                target = targets.setdefault(name, _Target())
                target.needs += [part.strip("()") for part in needs.replace("&&", " ").split()]
                target.lines += [command.strip()] if command.strip() and not is_just else []
        elif line.strip():
            names = []
    return {name: target for name, target in targets.items() if not name.startswith(".")}


def _tasks(text: str) -> dict[str, _Target]:
    """Returns the tasks of a Taskfile, by their names."""
    import yaml

    try:
        tasks = fields_of(fields_of(yaml.safe_load(text)).get("tasks"))
    except (yaml.YAMLError, ValueError, RecursionError):  # ValueError: the date 2020-13-45
        return {}
    targets: dict[str, _Target] = {}
    for name, task in tasks.items():
        fields = fields_of(task)
        commands = fields.get("cmds", fields.get("cmd", task))
        commands = commands if isinstance(commands, list) else [commands]
        dependencies = fields.get("deps")
        needs = [dependencies] if not isinstance(dependencies, list) else dependencies
        needs += [command for command in commands if "task" in fields_of(command)]
        named = [need if isinstance(need, str) else fields_of(need).get("task") for need in needs]
        lines = [c if isinstance(c, str) else fields_of(c).get("cmd") for c in commands]
        targets[str(name)] = _Target(_texts_in(named), _texts_in(lines))
    return targets


def _texts_in(values: Sequence[object]) -> list[str]:
    return [value for value in values if isinstance(value, str) and value]


def _lines_of(name: str, targets: Mapping[str, _Target], done: set[str]) -> list[str]:
    """Returns the lines that a target runs, after those of the targets that it needs."""
    if name not in targets or name in done or len(done) > _MAX_TARGETS:
        return []
    done.add(name)
    target = targets[name]
    return [
        *(line for need in target.needs for line in _lines_of(need, targets, done)),
        *target.lines,
    ]
