"""An agent's actions in a turn, in order: the commands it ran, the tools it called, and the files
that each of these changed.

    ToolCall("Bash", {"command": "cd app && git push"})
    -> Action(`cd app`), Action(`git push`, folder="app")
"""

import json
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated

from holdfast.errors import cut
from holdfast.measures.agent_acts.agent_tools import COMMITS, is_typed, script_of, working_folder_of
from holdfast.measures.agent_acts.commands.shell_commands import Reading, ShellCommand
from holdfast.measures.agent_acts.edits.command_edits import edits_by_command, side_effects_of
from holdfast.measures.agent_acts.edits.file_edits import FileEdit
from holdfast.measures.agent_acts.edits.path_globs import DRIVE, is_absolute
from holdfast.measures.agent_acts.edits.tool_edits import edits_by_call
from holdfast.measures.agent_acts.git.git_branches import (
    branch_after,
    branch_in,
    leaves_branch,
    may_change_branch,
    pushed_branches_in,
    pushes_current_branch,
)
from holdfast.measures.agent_acts.scripts.shell import read_script
from holdfast.measures.arguments import takes
from holdfast.measures.patterns import compile_regex, matches
from holdfast.measures.turns import ToolCall

Pattern = Annotated[str, takes("a regular expression", "git push")]
_MAX_LABEL_CHARACTERS = 60
_GO_TO_FOLDER = ("cd", "pushd", "Set-Location", "Push-Location", "chdir")


@dataclass(frozen=True)
class Action:
    """A shell command, or the call of another tool.

    Args:
        command: for another tool, a command of two words, which rules match: the tool's name, and
            its arguments in JSON.
        edits: the changes of files.
        position: the number of the call in the turn, from 0.
        tool_call: the call of another tool; None for a shell command.
        folder: the working folder, relative to the one that the script began in.
        side_effects: changes of files that are no edits: by a formatter, or by what Git brings in.
        result: what its call returned, if the log shows it.
        branch: the branch of Git that is checked out before it; "" if the log does not show it.
    """

    command: ShellCommand
    edits: tuple[FileEdit, ...]
    position: int
    tool_call: ToolCall | None = None
    folder: str = ""
    side_effects: tuple[FileEdit, ...] = ()
    result: str = ""
    branch: str = ""

    @property
    def is_shell(self) -> bool:
        """Whether it is a shell command."""
        return self.tool_call is None

    @property
    def label(self) -> str:
        """The start of the command as the agent wrote it, or the name of the other tool."""
        text = self.command.written if self.is_shell else self.command.words[0]
        return f"`{cut(' '.join(text.split()), _MAX_LABEL_CHARACTERS)}`"

    def matches(self, pattern: str) -> bool:
        """Whether the command begins with a match of a regular expression."""
        return bool(self.program_matching(pattern))

    def program_matching(self, pattern: str) -> str:
        """Returns the program of the reading that begins with a match; "" if none does."""
        if self.is_shell and _only_shows(self.command.arguments, pattern):
            return ""
        readings = (*self.command.readings, *self.command.around, *self._push_by_name())
        for reading in readings:
            if reading.suits(pattern) and matches(rf"\A(?:{pattern})", reading.line):
                return reading.words[0]
        return ""

    def _push_by_name(self) -> Iterator[Reading]:
        """Yields `git push` with the names of the branches that it pushes to, if it leaves them to
        Git.
        """
        words = self.command.arguments
        if not (self.is_shell and pushes_current_branch(words)):
            return
        if branches := pushed_branches_in(self.result) or [self.branch]:
            remote = () if any(not word.startswith("-") for word in words[2:]) else ("origin",)
            yield Reading((*words, *remote, *filter(None, branches)))


# programs that change nothing if they are called with `--dry-run`
_HAVE_DRY_RUNS = frozenset("git npm pnpm yarn bun cargo kubectl helm poetry uv twine".split())

_DRY_RUN = re.compile(r"--dry-run(?:=(?!none|false).*)?", re.DOTALL)


def _only_shows(words: Sequence[str], pattern: str) -> bool:
    """Whether a command only says what it would do: `git push --help`, `git push --dry-run`."""
    if words[-1] == "--help" and "--" not in words and "help" not in pattern:
        return True
    is_dry = any(map(_DRY_RUN.fullmatch, words))
    return is_dry and words[0] in _HAVE_DRY_RUNS and "dry" not in pattern


def actions_of(calls: Sequence[ToolCall], earlier: Sequence[ToolCall] = ()) -> Iterator[Action]:
    """Yields every shell command, also those within other commands and in scripts that the agent
    wrote before it ran them, and every other call.

    Args:
        earlier: the calls before these, which may have written the scripts.
    """
    return _actions(calls, earlier, {})


def _actions(
    calls: Sequence[ToolCall], earlier: Sequence[ToolCall], written: dict[str, str]
) -> Iterator[Action]:
    """Yields the actions, and takes note of the texts that they write."""
    branch = ""  # that is checked out
    reader = ""  # the program that read the input of the last script
    typed = ""  # the line that was typed without its end
    for position, call in enumerate(calls):
        branch = call.branch or branch
        script = script_of(call)
        if is_typed(call):
            script = "" if reader in _READ_TEXT else typed + script
            typed = ""
            if not script.endswith("\n") and any(map(is_typed, calls[position + 1 :][:1])):
                script, typed = "", script  # the next call types the rest of the line
        elif script:
            reader = ""
        if not script:
            yield replace(_action_of_tool(call, position, written), branch=branch)
            continue
        branches = _Branches(branch)
        for action in _actions_of_script(script, call, position, earlier, written):
            yield replace(action, branch=branches.before(action, call))
            words = action.command.arguments
            reader = "" if _reads_files(words) else words[0]
        branch = branches.after_script(script, call.result)


class _Branches:
    """The branch of Git that is checked out, while the actions of a script are gone through.

    Args:
        name: the one before the script; "" if that is not known.
    """

    def __init__(self, name: str) -> None:
        self._first = self._name = name
        self._is_of_others = False  # whether a command of Git's may be for another repository

    def before(self, action: Action, call: ToolCall) -> str:
        """Returns the branch before an action, and takes note of the one after it."""
        words = action.command.arguments
        if action.command.is_elsewhere:
            return ""
        if words[0] == "git" and _may_be_in_another_repository(action, call):
            self._is_of_others = True
            if branch_after(words, self._name) != self._name:
                self._name = ""
            return ""
        before = self._name
        self._name = branch_after(words, before)
        return before

    def after_script(self, script: str, result: str) -> str:
        """Returns the branch after the script, whose output may name it."""
        if "git" not in script:
            return self._name
        if shown := branch_in(script, result):
            return "" if self._is_of_others and shown != self._name else shown
        has_changed = self._name != self._first
        return "" if has_changed and leaves_branch(result) else self._name


def _may_be_in_another_repository(action: Action, call: ToolCall) -> bool:
    """Whether a command of Git's may run in another repository or work tree than the session's."""
    folder = action.folder
    for reading in action.command.readings:
        if reading.words[:2] == ("git", "-C") and len(reading.words) > 2:
            folder = posixpath.join(folder, reading.words[2])
        if any(word.startswith(("--git-dir", "--work-tree")) for word in reading.words[1:3]):
            return True
    if re.search("work-?tree", folder):
        return True
    if not is_absolute(folder):
        return posixpath.normpath(folder).startswith("..")
    roots = filter(None, (call.first_folder, call.folder))
    return bool(call.folder) and not any(
        folder == root or folder.startswith(f"{root}/") or root.startswith(f"{folder.rstrip('/')}/")
        for root in roots
    )


class CurrentBranch:
    """The branch of Git that is checked out, while the calls of a dialog are gone through.

    Args:
        name: the one before the first call; "" if that is not known.
    """

    def __init__(self, name: str = "") -> None:
        self._name = name
        self._logged = ""  # the last name in the log, which may be older than what commands did

    def before(self, call: ToolCall) -> ToolCall:
        """Returns a call with the branch before it, and takes note of the one after it."""
        if call.branch and call.branch != self._logged:
            self._name = self._logged = call.branch
        call = replace(call, branch=self._name)
        self._name = branch_after_call(call)
        return call


def branch_after_call(call: ToolCall) -> str:
    """Returns the branch of Git that is checked out after a call; "" if that is not known."""
    branches = _Branches(call.branch)
    script = script_of(call)
    if may_change_branch(script) or ("git" in script and branch_in(script, call.result)):
        for action in _actions([call], (), {}):
            branches.before(action, call)
    return branches.after_script(script, call.result)


def _action_of_tool(call: ToolCall, position: int, written: dict[str, str]) -> Action:
    """Returns the action of a call that runs no script, and takes note of the texts it writes."""
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
    command = ShellCommand((Reading((call.name, arguments)),))
    edits = tuple(map(_with_slashes, edits_by_call(call)))
    _note_texts(edits, written, call.folder)
    return Action(command, edits, position, call, result=call.result)


def _actions_of_script(
    script: str,
    call: ToolCall,
    position: int,
    earlier: Sequence[ToolCall],
    written: dict[str, str],
) -> Iterator[Action]:
    """Yields the commands of a script that a call runs, and takes note of the texts they write."""
    base = _base_of(call)
    root = posixpath.join(_below(base, call.folder), working_folder_of(call))
    folders = _WorkingFolders("" if is_absolute(root) else root)
    start = posixpath.join(base, root)
    known = {**_texts_before(script, earlier), **written} if earlier else written
    documents = _documents_for(script, known, start)
    for command in _read_script(script, documents, start if start.startswith("/") else ""):
        folder = folders.at(command)
        around = posixpath.join(root, folder) if is_absolute(root) else folder
        changes = map(_with_slashes, edits_by_command(command))
        edits = tuple(_in_folder(edit, around) for edit in changes)
        if command.arguments[0] not in _KEEP_TEXT:
            _note_texts(edits, written, base)
        effects = tuple(_in_folder(edit, around) for edit in side_effects_of(command))
        yield Action(command, edits, position, None, folder, effects, call.result)
        folders.run(command)


_KEEP_TEXT = ("chmod", "chown", "touch")
# programs that take what is typed into them as text, not as commands of a shell
_READ_TEXT = frozenset(
    "cat tee ed ex vi vim nvim nano emacs less more sort wc jq sed awk psql mysql sqlite3 mongosh"
    " redis-cli python python3 ipython node irb".split()
)
# how many words that are no option these programs have when they read what is typed: with one more,
# they read a file, and end
_WORDS_WITHOUT_FILE = {"cat": 0, "sort": 0, "wc": 0, "jq": 1, "sed": 1, "awk": 1}


def _reads_files(words: Sequence[str]) -> bool:
    """Whether a command reads files instead of what is typed, such as `cat AGENTS.md`."""
    most = _WORDS_WITHOUT_FILE.get(words[0])
    return most is not None and sum(not word.startswith("-") for word in words[1:]) > most


# a file that a command runs
_RUN_FILE = re.compile(
    r"(?:^|[\s;&|(\"'])(?:(?:(?:ba|z|da|k|fi)?sh|source|\.|python[\d.]*|node|bun|deno run|ruby|perl"
    r"|php|pwsh)(?:\s+-\S+)*\s+(?P<file>[\w./~-]+)|(?P<path>(?:\.{1,2}|/tmp)/[\w./-]+))",
    re.MULTILINE,
)
# the files in which the targets are that these programs run, or how their names end
_TARGET_FILES = {
    **dict.fromkeys(("make", "just"), ("Makefile", "makefile", "justfile", "Justfile", ".mk")),
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), ("package.json",)),
    "task": ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml"),
}
_MAX_WRITTEN = 200  # files whose texts are kept


def _texts_before(script: str, earlier: Sequence[ToolCall]) -> Mapping[str, str]:
    """Returns the texts of files that a script runs, as earlier calls wrote them."""
    files = (match["file"] or match["path"] for match in _RUN_FILE.finditer(script))
    names = {posixpath.basename(file) for file in files} - {""}
    names.update(_target_files_of(script))
    return _written_texts(frozenset(names)).before(earlier) if names else {}


class _WrittenTexts:
    """The texts of the files with some names, as the calls of a dialog write them.

    The turns of a dialog are judged in order, each by several rules, so the calls before a turn
    mostly begin with those before the last one: only the others are read.
    """

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._read: tuple[Sequence[ToolCall], dict[str, str]] = ((), {})

    def before(self, earlier: Sequence[ToolCall]) -> Mapping[str, str]:
        """Returns the texts by the paths of their files, after these calls."""
        calls, texts = self._read
        if not _begins_with(earlier, calls):
            calls, texts = (), {}
        if len(calls) < len(earlier):
            texts = dict(texts)  # another thread may read the last ones
            naming = filter(self._is_named_in, earlier[len(calls) :])
            for _ in _actions([*naming], (), texts):
                pass
            self._read = (earlier, texts)
        return texts

    def _is_named_in(self, call: ToolCall) -> bool:
        values = [str(value) for value in call.arguments.values()]
        return any(name in value for value in values for name in self._names)


@lru_cache(maxsize=64)
def _written_texts(names: frozenset[str]) -> _WrittenTexts:
    return _WrittenTexts(names)


def _begins_with(calls: Sequence[ToolCall], others: Sequence[ToolCall]) -> bool:
    """Whether calls begin with others of the same dialog, in which no two are the same object."""
    if len(calls) < len(others):
        return False
    return not others or (calls[0] is others[0] and calls[len(others) - 1] is others[-1])


def _target_files_of(script: str) -> list[str]:
    """Returns the files whose targets a script may run, or how their names end."""
    return [file for name, files in _TARGET_FILES.items() if name in script for file in files]


_WORKTREE = re.compile(r"/.*/\.?worktrees/[^/]+(?=/|\Z)")


def _base_of(call: ToolCall) -> str:
    """Returns the folder from which a session gives the paths of files at a call: the one that it
    began in, or the worktree or the other folder that it went to; "" if that is not known.
    """
    folder = call.folder if call.folder.startswith("/") else ""
    if worktree := _WORKTREE.match(folder):
        return worktree[0]
    is_below = f"{folder}/".startswith(f"{call.first_folder.rstrip('/')}/")
    return call.first_folder if folder and is_below else folder


def _below(base: str, folder: str) -> str:
    """Returns the path of a folder within another; "" if they are the same, or not known."""
    path = posixpath.relpath(folder, base) if base else ""
    return "" if path == "." else path


def _note_texts(edits: Sequence[FileEdit], written: dict[str, str], folder: str) -> None:
    """Takes note of the texts of files, as far as they are shown as a whole.

    Args:
        folder: the one that paths begin from; "" if it is not known.
    """
    for edit in edits:
        path = _in_folder(edit, folder if folder.startswith("/") else "").path
        before = written.pop(path, None)
        if edit.is_whole and edit.is_shown and edit.added:
            written[path] = "\n".join(edit.added)
        elif before is not None and edit.is_shown and edit.added and not edit.removed:
            written[path] = "\n".join([before, *edit.added])
        elif before is not None and len(edit.removed) == len(edit.added) == 1:
            written[path] = before.replace(edit.removed[0], edit.added[0], 1)
        if len(written) > _MAX_WRITTEN:
            del written[next(iter(written))]


def _documents_for(
    script: str, written: Mapping[str, str], start: str
) -> tuple[tuple[str, str], ...]:
    """Returns the files with their texts that a script names, or whose targets it may run.

    Args:
        start: the folder that the script begins in; if it is relative, so are the paths to it.
    """
    if not written:
        return ()
    ends = tuple(_target_files_of(script))
    is_relative = bool(start) and not is_absolute(start)
    return tuple(
        (posixpath.relpath(path, start) if is_relative and not is_absolute(path) else path, text)
        for path, text in written.items()
        if posixpath.basename(path) in script or path.endswith(ends)
    )


class _WorkingFolders:
    """The working folder of each shell of a script, relative to the one that the script began in.

    A subshell begins in the folder of the shell around it, whose folder it leaves as it is.
    """

    def __init__(self, start: str) -> None:
        self._folders: dict[tuple[int, ...], str] = {(): start}
        self._left: list[str] = []  # the folders that `popd` goes back to

    def at(self, command: ShellCommand) -> str:
        """Returns the folder that a command runs in; "" if it is not known."""
        shell = command.subshells
        while shell not in self._folders:
            shell = shell[:-1]
        return self._folders[shell]

    def run(self, command: ShellCommand) -> None:
        """Changes the folder if a command does so."""
        program, *operands = command.arguments
        folder = self.at(command)
        if command.is_elsewhere or program not in (*_GO_TO_FOLDER, "popd"):
            return
        if program == "pushd":
            self._left.append(folder)
        if program != "popd":
            folder = _folder_after(folder, operands)
        elif self._left:
            folder = self._left.pop()
        self._folders[command.subshells] = folder


def _folder_after(folder: str, words: Sequence[str]) -> str:
    """Returns the folder that a `cd` with these arguments goes to; "" if it is not known."""
    target = words[0] if len(words) == 1 else ""
    if not target or target.startswith(("-", "~")) or "$" in target or "`" in target:
        return ""
    return posixpath.normpath(posixpath.join(folder, target))


def _with_slashes(edit: FileEdit) -> FileEdit:
    """Writes a path of Windows with `/`, as suites do."""
    if "\\" not in edit.path or not (DRIVE.match(edit.path) or "/" not in edit.path):
        return edit
    return replace(edit, path=edit.path.replace("\\", "/"))


def _in_folder(edit: FileEdit, folder: str) -> FileEdit:
    """Returns an edit whose path begins with the working folder, if it is not absolute."""
    if not folder or not edit.path or is_absolute(edit.path):
        return edit
    return replace(edit, path=posixpath.normpath(posixpath.join(folder, edit.path)))


_read_script = lru_cache(maxsize=1024)(read_script)  # several rules read the same turns


def commands_of(calls: Sequence[ToolCall]) -> list[ShellCommand]:
    """Returns every shell command among the calls, also those within other commands."""
    return [action.command for action in actions_of(calls) if action.is_shell]


def edits_of(calls: Sequence[ToolCall]) -> list[FileEdit]:
    """Returns the changes of files by tools and shell commands, in order."""
    return [edit for action in actions_of(calls) for edit in action.edits]


# what Git prints after a commit, and if it made none
_COMMITTED = re.compile(r"\[[^\]\n]+ (?:\(root-commit\) )?[0-9a-f]{7,}\]")
_NOT_COMMITTED = re.compile(
    r"nothing (?:added )?to commit|no changes added to commit|Aborting commit"
    r"|files were modified by this hook|- hook id: |husky - .*(?:failed|exited)|error: gpg failed"
    r"|pre-commit hook.*(?:failed|exited)|commit-msg.*(?:failed|exited)|✖ .*problems?"
)


def is_commit(action: Action) -> bool:
    """Whether an action is a commit to Git that did not fail, by the command or by a tool such as
    `git_commit`.
    """
    if _NOT_COMMITTED.search(action.result) and not _COMMITTED.search(action.result):
        return False
    if action.tool_call is not None:
        return COMMITS.search(action.tool_call.name) is not None
    words = action.command.arguments
    return words[:2] == ("git", "commit") and "--dry-run" not in words


def calls_since_commit(calls: Sequence[ToolCall]) -> Sequence[ToolCall]:
    """Returns the calls from the last that has a commit on; all calls if there is no commit."""
    for position in range(len(calls) - 1, -1, -1):  # parses only the end of a long session
        if any(map(is_commit, actions_of([calls[position]]))):
            return calls[position:]
    return calls


def mentions(call: ToolCall, path: str) -> bool:
    """Whether a path occurs in the arguments of a call."""
    texts = map(str, call.arguments.values())
    return any(path in text or path in text.replace("\\", "/") for text in texts)


def check_patterns(*patterns: str | None) -> None:
    """Refuses a regular expression that is not valid; skips None."""
    for pattern in patterns:
        if pattern is not None:
            compile_regex(pattern, "")
