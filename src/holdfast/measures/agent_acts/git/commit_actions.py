"""Which actions are commits to Git.

For example:

    git commit -m "fix: b"                         ->  a commit
    git commit --dry-run                           ->  none
    git commit -m c, "nothing to commit" printed   ->  none
"""

import re
from collections.abc import Sequence

from holdfast.measures.agent_acts.actions import actions_of
from holdfast.measures.agent_acts.agent_action import Action
from holdfast.measures.agent_acts.agent_tools import COMMITS
from holdfast.measures.turns import ToolCall

# what Git prints after a commit, "[main 1a2b3c4] Fix the cart", and if it made none
_COMMITTED = re.compile(r"\[[^\]\n]+ (?:\(root-commit\) )?[0-9a-f]{7,}\]")
_NOT_COMMITTED = re.compile(
    r"nothing (?:added )?to commit|no changes added to commit|Aborting commit"
    r"|files were modified by this hook|- hook id: |husky - .*(?:failed|exited)|error: gpg failed"
    r"|pre-commit hook.*(?:failed|exited)|commit-msg.*(?:failed|exited)|✖ .*problems?"
)


def is_commit(action: Action) -> bool:
    """Whether an action is a commit that did not fail.

    It may be the command, or a tool such as `git_commit`.
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
