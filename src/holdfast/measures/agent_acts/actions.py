"""An agent's actions in a turn, in order: the commands it ran, the tools it called, and the files
that each of these changed.

    ToolCall("Bash", {"command": "cd app && git push"})
    -> Action(`cd app`), Action(`git push`, folder="app")
"""

import json
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from holdfast.measures.agent_acts.agent_action import Action
from holdfast.measures.agent_acts.agent_tools import script_of
from holdfast.measures.agent_acts.commands.shell_commands import Reading, ShellCommand
from holdfast.measures.agent_acts.edits.command_edits import edits_by_command
from holdfast.measures.agent_acts.edits.file_edits import FileEdit
from holdfast.measures.agent_acts.edits.side_effects import side_effects_of
from holdfast.measures.agent_acts.edits.tool_edits import edits_by_call
from holdfast.measures.agent_acts.git.branch_tracker import BranchTracker
from holdfast.measures.agent_acts.path_names import is_absolute
from holdfast.measures.agent_acts.script_files import ScriptFiles, files_run_by
from holdfast.measures.agent_acts.scripts.shell import read_script
from holdfast.measures.agent_acts.typed_input import TypedInput
from holdfast.measures.agent_acts.working_folders import (
    WorkingFolders,
    base_of,
    start_of_script,
    with_folder,
    with_slashes,
)
from holdfast.measures.turns import ToolCall

_KEEP_TEXT = ("chmod", "chown", "touch")  # the files that they name have the same text after
_read_script = lru_cache(maxsize=1024)(read_script)  # several rules read the same turns


def actions_of(calls: Sequence[ToolCall], earlier: Sequence[ToolCall] = ()) -> Iterator[Action]:
    """Yields every shell command and every other call, in order.

    Also the commands within other commands, and in scripts that the agent wrote before it ran them.

    Args:
        earlier: the calls before these, which may have written the scripts.
    """
    return _read_calls(calls, earlier, ScriptFiles())


def commands_of(calls: Sequence[ToolCall]) -> list[ShellCommand]:
    """Returns every shell command among the calls, also those within other commands."""
    return [action.command for action in actions_of(calls) if action.is_shell]


def edits_of(calls: Sequence[ToolCall]) -> list[FileEdit]:
    """Returns the changes of files by tools and shell commands, in order."""
    return [edit for action in actions_of(calls) for edit in action.edits]


def _read_calls(
    calls: Sequence[ToolCall], earlier: Sequence[ToolCall], files: ScriptFiles
) -> Iterator[Action]:
    """Yields the actions, and takes note of the files that they write."""
    branch = ""  # that is checked out
    typed = TypedInput()
    for position, call in enumerate(calls):
        branch = call.branch or branch
        following = next(iter(calls[position + 1 : position + 2]), None)
        script = typed.complete(script_of(call), call, following)
        if not script:
            yield replace(_action_of_tool(call, position, files), branch=branch)
            continue
        tracker = BranchTracker(branch)
        for action in _actions_of_script(script, call, position, earlier, files):
            yield replace(action, branch=tracker.before(action, call))
            typed.note_program(action.command.arguments)
        branch = tracker.after_script(script, call.result)


def _action_of_tool(call: ToolCall, position: int, files: ScriptFiles) -> Action:
    """Returns the action of a call that runs no script, and takes note of the files it writes."""
    arguments = json.dumps(dict(call.arguments), ensure_ascii=False)
    command = ShellCommand((Reading((call.name, arguments)),))
    edits = tuple(map(with_slashes, edits_by_call(call)))
    files.note(edits, call.folder)
    return Action(command, edits, position, call, result=call.result)


def _actions_of_script(
    script: str,
    call: ToolCall,
    position: int,
    earlier: Sequence[ToolCall],
    files: ScriptFiles,
) -> Iterator[Action]:
    """Yields the commands of a script that a call runs, and takes note of the files they write."""
    base = base_of(call)  # the folder from which the session gives paths
    first = start_of_script(call)  # the script's first folder, relative to the base
    start = posixpath.join(base, first)
    written = ScriptFiles({**_texts_before(script, earlier), **files.texts}) if earlier else files
    scripts = written.named_in(script, start)
    # relative to the base, or in a folder outside of it, relative to that
    folders = WorkingFolders("" if is_absolute(first) else first)
    for command in _read_script(script, scripts, start if start.startswith("/") else ""):
        folder = folders.at(command)
        path = posixpath.join(first, folder) if is_absolute(first) else folder
        changes = map(with_slashes, edits_by_command(command))
        edits = tuple(with_folder(edit, path) for edit in changes)
        if command.arguments[0] not in _KEEP_TEXT:
            files.note(edits, base)
        side_effects = tuple(with_folder(edit, path) for edit in side_effects_of(command))
        yield Action(command, edits, position, None, folder, side_effects, call.result)
        folders.run(command)


# --- The files that earlier calls wrote


def _texts_before(script: str, earlier: Sequence[ToolCall]) -> Mapping[str, str]:
    """Returns the texts of files that a script may run, as earlier calls wrote them."""
    names = files_run_by(script)
    return _earlier_texts(names).before(earlier) if names else {}


class _EarlierTexts:
    """The texts of the files with some names, as the calls of a dialog write them.

    The turns of a dialog are judged in order, each by several rules, so the calls before a turn
    mostly begin with those before the last one: only the others are read.
    """

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        # the calls that were read, and the texts after these; replaced together, for other threads
        self._read: tuple[Sequence[ToolCall], dict[str, str]] = ((), {})

    def before(self, earlier: Sequence[ToolCall]) -> Mapping[str, str]:
        """Returns the texts by the paths of their files, after these calls."""
        calls, texts = self._read
        if not _begins_with(earlier, calls):
            calls, texts = (), {}
        if len(calls) < len(earlier):
            files = ScriptFiles(texts)  # a copy
            unread = filter(self._is_named_in, earlier[len(calls) :])
            for _ in _read_calls([*unread], (), files):
                pass
            texts = files.texts
            self._read = (earlier, texts)
        return texts

    def _is_named_in(self, call: ToolCall) -> bool:
        values = [str(value) for value in call.arguments.values()]
        return any(name in value for value in values for name in self._names)


@lru_cache(maxsize=64)
def _earlier_texts(names: frozenset[str]) -> _EarlierTexts:
    return _EarlierTexts(names)


def _begins_with(calls: Sequence[ToolCall], others: Sequence[ToolCall]) -> bool:
    """Whether calls begin with others of the same dialog, in which no two are the same object."""
    if len(calls) < len(others):
        return False
    return not others or (calls[0] is others[0] and calls[len(others) - 1] is others[-1])
