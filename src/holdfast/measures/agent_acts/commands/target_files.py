"""The scripts that targets run, according to the file that defines them.

For example:

    make_script(["build"], "build: clean\\n\\tmake all\\nclean:\\n\\trm -r out", {})
    -> "rm -r out\\nmake all"
    package_script("test", '{"scripts": {"test": "pytest", "posttest": "ruff check"}}')
    -> "pytest\\nruff check"
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from holdfast.validation.json_values import fields_of

# "build: a.o b.o" of make, whose first target runs unless ".DEFAULT_GOAL := build" names another
_TARGET = re.compile(r"(?P<names>[^\s:#=][^:#=\n]*):(?![=:])\s*(?P<needs>[^\n]*)")
_DEFAULT_GOAL = re.compile(r"^\.DEFAULT_GOAL[ \t]*:?=[ \t]*(\S+)", re.MULTILINE)
# "FLAGS := --force", and its use in "$(FLAGS)"
_VARIABLE = re.compile(r"^(?P<name>\w+)[ \t]*[:?+]*=[ \t]*(?P<value>.*)$", re.MULTILINE)
_EXPANSION = re.compile(r"\$[({](\w+)[)}]")
# "build target='all': clean" of just, and "@build:"
_RECIPE = re.compile(r"(?P<names>@?[\w-]+)(?:\s[^:]*)?:(?!=)\s*(?P<needs>[^\n]*)")
_LEAVES_SHELL = re.compile(r"\b(?:exit|exec|return)\b")
_MAX_TARGETS = 50  # that one command runs


@dataclass
class _Target:
    """A target: the targets that it needs, and the lines that it runs after them."""

    needs: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)


def make_script(names: Sequence[str], text: str, variables: Mapping[str, str]) -> str | None:
    """Returns the script of targets of a Makefile; without any, of its default goal.

    None for a script that runs nothing, as in the other functions here.

    Args:
        variables: those that the command sets.
    """
    values = {match["name"]: match["value"] for match in _VARIABLE.finditer(text)}
    values |= variables
    text = _EXPANSION.sub(lambda match: values.get(match[1], match[0]), text)
    targets = _targets_of_makefile(text)
    goal = _DEFAULT_GOAL.search(text)
    default = goal[1] if goal else next(iter(targets), "")
    return _script_for(names or [default], targets)


def just_script(words: Sequence[str], text: str) -> str | None:
    """Returns the script of a recipe of a justfile; without any, of the first.

    Args:
        words: the recipe and its arguments.
    """
    recipes = _recipes_of_justfile(text)
    return _script_for(words[:1] or [next(iter(recipes), "")], recipes)


def task_script(names: Sequence[str], text: str) -> str | None:
    """Returns the script of tasks of a Taskfile; without any, of `default`."""
    return _script_for(names or ["default"], _tasks_of_taskfile(text))


def package_script(name: str, text: str) -> str | None:
    """Returns a script of package.json with those that run before and after it."""
    try:
        scripts = fields_of(fields_of(json.loads(text)).get("scripts"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(scripts.get(name), str):
        return None
    parts = [scripts.get(f"{when}{name}") for when in ("pre", "", "post")]
    return _join_lines([part for part in parts if isinstance(part, str)])


# --- Targets of each kind of file


def _targets_of_makefile(text: str) -> dict[str, _Target]:
    targets: dict[str, _Target] = {}
    current: list[_Target] = []  # that the indented lines belong to
    for line in _joined_lines(text):
        if line[:1] in ("\t", " ") and current:
            for target in current:
                target.lines.append(_command_in(line, "@-+"))
        elif header := _TARGET.fullmatch(line):
            needs, _, command = header["needs"].partition(";")
            names = header["names"].removeprefix("@").split()
            current = [targets.setdefault(name, _Target()) for name in names]
            for target in current:
                target.needs += _names_in(needs)
                target.lines += [command.strip()] if command.strip() else []
        elif line.strip():
            current = []
    return _without_special(targets)


def _recipes_of_justfile(text: str) -> dict[str, _Target]:
    recipes: dict[str, _Target] = {}
    current: _Target | None = None  # that the indented lines belong to
    for line in _joined_lines(text):
        if line[:1] in ("\t", " ") and current is not None:
            current.lines.append(_command_in(line, "@-"))
        elif header := _RECIPE.fullmatch(line):
            current = recipes.setdefault(header["names"].removeprefix("@"), _Target())
            current.needs += _names_in(header["needs"].partition(";")[0])
        elif line.strip():
            current = None
    return _without_special(recipes)


def _joined_lines(text: str) -> list[str]:
    """Returns the lines of a text; a backslash at the end of a line joins the next to it."""
    return text.replace("\\\n", " ").split("\n")


def _command_in(line: str, marks: str) -> str:
    """Returns the command in a line such as "\\t@echo $$HOME".

    Args:
        marks: the characters that may stand before it.
    """
    return line.strip().lstrip(marks).replace("$$", "$")


def _names_in(needs: str) -> list[str]:
    """Returns the targets in "clean (build 'all') && check"."""
    return [part.strip("()") for part in needs.replace("&&", " ").split()]


def _without_special(targets: Mapping[str, _Target]) -> dict[str, _Target]:
    """Returns the targets without those such as `.PHONY`."""
    return {name: target for name, target in targets.items() if not name.startswith(".")}


def _tasks_of_taskfile(text: str) -> dict[str, _Target]:
    import yaml

    try:
        tasks = fields_of(fields_of(yaml.safe_load(text)).get("tasks"))
    except (yaml.YAMLError, ValueError, RecursionError):  # ValueError: the date 2020-13-45
        return {}
    return {str(name): _read_task(task) for name, task in tasks.items()}


def _read_task(task: object) -> _Target:
    """Reads a task: a command, a list of them, or fields such as `deps` and `cmds`."""
    fields = fields_of(task)
    commands = fields.get("cmds", fields.get("cmd", task))
    commands = commands if isinstance(commands, list) else [commands]
    dependencies = fields.get("deps")
    needs = dependencies if isinstance(dependencies, list) else [dependencies]
    needs = [*needs, *(command for command in commands if "task" in fields_of(command))]
    names = [need if isinstance(need, str) else fields_of(need).get("task") for need in needs]
    lines = [c if isinstance(c, str) else fields_of(c).get("cmd") for c in commands]
    return _Target(_texts_in(names), _texts_in(lines))


def _texts_in(values: Sequence[object]) -> list[str]:
    return [value for value in values if isinstance(value, str) and value]


# --- Their scripts


def _script_for(names: Sequence[str], targets: Mapping[str, _Target]) -> str | None:
    """Returns the script that some targets run; None if they run nothing."""
    return _join_lines([line for name in names for line in _lines_of(name, targets, set())])


def _lines_of(name: str, targets: Mapping[str, _Target], done: set[str]) -> list[str]:
    """Returns the lines that a target runs, after those of the targets that it needs.

    Args:
        done: the targets that ran before, to which it is added.
    """
    if name not in targets or name in done or len(done) > _MAX_TARGETS:
        return []
    done.add(name)
    target = targets[name]
    return [
        *(line for need in target.needs for line in _lines_of(need, targets, done)),
        *target.lines,
    ]


def _join_lines(lines: Sequence[str]) -> str | None:
    """Joins lines, each of which a shell of its own runs, so that `exit` leaves only its line."""
    parts = [f"({line}\n)" if _LEAVES_SHELL.search(line) else line for line in lines]
    return "\n".join(parts) or None
