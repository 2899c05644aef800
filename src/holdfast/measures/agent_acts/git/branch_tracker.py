"""Follows which branch of Git is checked out, from one command of a script to the next.

For example:

    git switch -c fix; git commit -m a; cd ../other; git commit -m b
    -> before the first commit: "fix"; before the second, which is of another repository: ""
"""

import posixpath
import re

from holdfast.measures.agent_acts.agent_action import Action
from holdfast.measures.agent_acts.git.git_branches import branch_after, branch_in, may_keep_branch
from holdfast.measures.agent_acts.path_names import is_absolute
from holdfast.measures.turns import ToolCall

_GIT_FOLDER_OPTIONS = ("--git-dir", "--work-tree")
_WORK_TREE = re.compile("work-?tree")  # in the name of a folder


class BranchTracker:
    """The branch that is checked out, while the actions of a script are gone through.

    Args:
        name: the one before the script; "" if that is not known.
    """

    def __init__(self, name: str) -> None:
        self._first = self._name = name
        self._may_be_of_another = False  # whether a command may be for another repository

    def before(self, action: Action, call: ToolCall) -> str:
        """Returns the branch before an action, and takes note of the one after it."""
        words = action.command.arguments
        if action.command.is_elsewhere:
            return ""
        if words[0] == "git" and _may_be_in_another_repository(action, call):
            self._may_be_of_another = True
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
            return "" if self._may_be_of_another and shown != self._name else shown
        has_changed = self._name != self._first
        return "" if has_changed and may_keep_branch(result) else self._name


def _may_be_in_another_repository(action: Action, call: ToolCall) -> bool:
    """Whether a command of Git's may run in another repository or work tree than the session's."""
    folder = action.folder
    for reading in action.command.readings:
        if reading.words[:2] == ("git", "-C") and len(reading.words) > 2:
            folder = posixpath.join(folder, reading.words[2])
        if any(word.startswith(_GIT_FOLDER_OPTIONS) for word in reading.words[1:3]):
            return True
    if _WORK_TREE.search(folder):
        return True
    if not is_absolute(folder):
        return posixpath.normpath(folder).startswith("..")
    return bool(call.folder) and not any(
        _are_nested(folder, root) for root in (call.first_folder, call.folder) if root
    )


def _are_nested(folder: str, root: str) -> bool:
    """Whether one of two folders is the other, or within it."""
    return (
        folder == root or folder.startswith(f"{root}/") or root.startswith(f"{folder.rstrip('/')}/")
    )
