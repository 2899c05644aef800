"""The branch of Git that is checked out before each call of a dialog.

For example:

    Bash("git switch -c fix"), Bash("git push")  ->  branch "fix" before the second call
"""

from dataclasses import replace

from holdfast.measures.agent_acts.actions import actions_of
from holdfast.measures.agent_acts.agent_tools import script_of
from holdfast.measures.agent_acts.git.branch_tracker import BranchTracker
from holdfast.measures.agent_acts.git.git_branches import branch_in, may_change_branch
from holdfast.measures.turns import ToolCall


class CurrentBranch:
    """The branch that is checked out, while the calls of a dialog are gone through.

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
    """Returns the branch that is checked out after a call; "" if that is not known."""
    tracker = BranchTracker(call.branch)
    script = script_of(call)
    if may_change_branch(script) or ("git" in script and branch_in(script, call.result)):
        for action in actions_of([call]):
            tracker.before(action, call)
    return tracker.after_script(script, call.result)
