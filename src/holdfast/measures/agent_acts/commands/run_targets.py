"""The commands that a target runs, if the log shows the file that defines it.

For example:

    make deploy      ->  git push, if Makefile was written with `deploy:\\n\\tgit push`
    npm run release  ->  the script `release` of package.json
"""

import posixpath
from collections.abc import Mapping, Sequence
from itertools import pairwise

from holdfast.measures.agent_acts.commands.shell_commands import is_redirection
from holdfast.measures.agent_acts.commands.target_files import (
    just_script,
    make_script,
    package_script,
    task_script,
)
from holdfast.measures.agent_acts.path_names import find_path

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


def script_of_target(
    words: Sequence[str],
    files: Mapping[str, str],
    from_input: str | None,
    folder: str = "",
) -> str | None:
    """Returns the script that `make TARGET`, `npm run SCRIPT`, `just RECIPE` or `task TASK` runs.

    None for other commands, and if the file that defines it is not known.

    Args:
        files: the texts of files, by their paths.
        from_input: the text of the command's input, which `make -f -` reads.
        folder: the working folder.
    """
    program, *rest = words
    if not files and from_input is None:
        return None
    folder = _folder_named(rest, folder)
    if program in _PACKAGE_RUNNERS:
        name = _package_script_name(program, _operands(rest))
        text = _first_known(("package.json",), files, folder)
        return package_script(name, text) if name and text is not None else None
    if program not in _FILES or not _ONLY_SHOWS[program].isdisjoint(rest):
        return None
    file = next((following for word, following in pairwise(rest) if word in _FILE_OPTIONS), "")
    text = from_input
    if file != "-":
        text = _first_known((file,) if file else _FILES[program], files, folder)
    return None if text is None else _script_in_file(program, rest, text)


def _script_in_file(program: str, words: Sequence[str], text: str) -> str | None:
    """Returns the script of the targets that a command names, in the file that defines them."""
    operands = _operands(words)
    if program == "just":
        return just_script(operands, text)
    if program in ("task", "go-task"):
        return task_script(operands, text)
    variables = (word.partition("=") for word in words if "=" in word)
    return make_script(operands, text, {name: value for name, _, value in variables})


# --- The file that defines the targets

_FILE_OPTIONS = ("-f", "--file", "--makefile", "--justfile", "-t", "--taskfile")
_FOLDER_OPTIONS = ("-C", "--directory", "--prefix", "--dir", "--cwd", "-d", "--working-directory")
_FOLDER_EQUALS = ("--directory=", "--prefix=", "--dir=", "--cwd=")


def _folder_named(words: Sequence[str], folder: str) -> str:
    """Returns the folder that an option such as `make -C` names, within the working folder."""
    named = (following for word, following in pairwise(words) if word in _FOLDER_OPTIONS)
    named_with = (word.partition("=")[2] for word in words if word.startswith(_FOLDER_EQUALS))
    return posixpath.join(folder, next(named, next(named_with, "")))


def _first_known(names: Sequence[str], files: Mapping[str, str], folder: str) -> str | None:
    """Returns the text of the first of these files in a folder that is known."""
    paths = (find_path(posixpath.join(folder, name), files) for name in names)
    return next((files[path] for path in paths if path is not None), None)


# --- The targets that a command names

# options with a value, of any of these programs
_VALUED_OPTIONS = (
    *_FILE_OPTIONS,
    *("-C", "--directory", "-d", "-j", "-o", "-W", "-I", "--prefix", "-w"),
)
_NPM_SCRIPTS = ("test", "start", "stop", "restart")  # which npm runs without `run`
_RUN = ("run", "run-script")
# what package managers do themselves, so that a script of the name needs `run`
_MANAGER_COMMANDS = frozenset(
    """add install i remove rm uninstall up update upgrade publish exec dlx x create init link pack
    audit why list ls outdated config info""".split()
)


def _operands(words: Sequence[str]) -> list[str]:
    """Returns the words that are no options or variables: `build` for `-C app A=1 build > log`."""
    operands: list[str] = []
    before = ""
    for word in words:
        if is_redirection(word):
            break
        if not word.startswith("-") and "=" not in word and before not in _VALUED_OPTIONS:
            operands.append(word)
        before = word
    return operands


def _package_script_name(program: str, operands: Sequence[str]) -> str:
    """Returns the script that `npm run NAME`, `npm test` or `yarn NAME` runs; "" for none."""
    if operands[:1] and operands[0] in _RUN:
        return "".join(operands[1:2])
    name = "".join(operands[:1])
    is_script = name in _NPM_SCRIPTS if program == "npm" else name not in _MANAGER_COMMANDS
    return name if is_script and (program, name) != ("bun", "test") else ""
