"""The branch of Git that an agent works on, as far as commands and what they print show it.

For example:

    branch_after(["git", "switch", "-c", "fix"], "main")   ->  "fix"
    commit_branches_in("[main 1a2b3c4] Fix the cart")      ->  ["main"]
"""

import re
from collections.abc import Sequence

from holdfast.measures.agent_acts.commands.command_options import options_of
from holdfast.measures.agent_acts.path_names import may_be_folder

DETACHED = "HEAD"  # in place of a name, if no branch is checked out

# --- What Git prints

# "[main 1a2b3c4] Fix the cart"
_COMMITTED = re.compile(
    r"^\[(?:detached HEAD|(?P<name>\S+)) (?:\(root-commit\) )?[0-9a-f]{7,}\]", re.MULTILINE
)
# "On branch main", "Switched to a new branch 'fix'"
_CHECKED_OUT = re.compile(
    r"^(?:On branch (?P<on>\S+)|Switched to (?:a new )?branch '(?P<switched>[^'\n]+)'"
    r"|Already on '(?P<already>[^'\n]+)'|HEAD detached at )",
    re.MULTILINE,
)
# "   1a2b3c4..5d6e7f8  main -> main", " * [new branch]  fix -> fix"
_PUSHED = re.compile(
    r"^[ \t]*(?:[*+!=-][ \t]+)?(?:\[[^\]\n]+\]|[0-9a-f]{7,}\.{2,3}[0-9a-f]{7,})[ \t]+(\S+)[ \t]+->"
    r"[ \t]+(\S+)",
    re.MULTILINE,
)
_RESTORED = re.compile(r"^Updated \d+ paths? from ", re.MULTILINE)  # after `git checkout a.py`
_FAILED = re.compile(r"^(?:fatal|error): ", re.MULTILINE)
# commands that print nothing but the name of the branch
_SHOWS_BRANCH = re.compile(
    r"git (?:branch --show-current|rev-parse --abbrev-ref HEAD|symbolic-ref --short HEAD)\s*\Z"
)
_LISTED = re.compile(r"^\* (\S+)$", re.MULTILINE)  # "* main"
_LISTS_BRANCHES = re.compile(r"git branch(?: -\w+| --list| --all)*\s*\Z")


def commit_branches_in(output: str) -> list[str]:
    """Returns the branch of each commit that Git reports."""
    return [commit["name"] or DETACHED for commit in _COMMITTED.finditer(output)]


def pushed_branches_in(output: str) -> list[str]:
    """Returns the branches of the server that Git reports to have pushed to, or tried to.

    `main -> origin/main` is a line of a fetch or a pull.
    """
    pairs = _PUSHED.findall(output)
    return [target for source, target in pairs if not target.endswith(f"/{source}")]


def branch_in(script: str, output: str) -> str:
    """Returns the branch that is checked out after a script, by its output; "" if that names none.

    Args:
        script: has a command of Git's.
    """
    lines = output.strip().splitlines()
    if _SHOWS_BRANCH.search(script) and lines and re.fullmatch(r"\S+", lines[-1]):
        return lines[-1]
    if _LISTS_BRANCHES.search(script) and (listed := _LISTED.findall(output)):
        return str(listed[-1])
    last_match = max(
        (*_CHECKED_OUT.finditer(output), *_COMMITTED.finditer(output)),
        key=lambda match: match.start(),
        default=None,
    )
    if last_match is None:
        return ""
    return next((name for name in last_match.groupdict().values() if name), DETACHED)


def may_keep_branch(output: str) -> bool:
    """Whether a command of Git's may not have changed the branch: it failed, or restored files."""
    return _FAILED.search(output) is not None or _RESTORED.search(output) is not None


# --- What commands do

# commands after which another branch may be checked out, or the branch may have another name
_CHANGES_BRANCH = re.compile(r"\b(?:switch|checkout|branch|init|clone|bisect|worktree)\b")
# by the command: the options whose value is the name of a new branch, and their letters
_NEW_BRANCH = {
    "switch": {"--create": "c", "--force-create": "C", "--orphan": ""},
    "checkout": {"--new": "b", "--reset": "B", "--orphan": ""},  # the long names are our own
}
_RENAMES = ("-m", "-M", "--move")
_REVISION = re.compile(r"[0-9a-f]{7,40}|HEAD\b.*|.*[~^@]\d*")  # 1a2b3c4, HEAD~2
_VERSION = re.compile(r"v?\d+(?:\.(?:\d+|x))+")  # v1.2
_PUSH_OPTIONS = {"--push-option": "o", "--repo": "", "--receive-pack": "", "--exec": ""}
_CURRENT = ("HEAD", "@")  # refspecs


def may_change_branch(script: str) -> bool:
    """Whether a script may check out or rename a branch, for a quick look."""
    return ("git" in script or "gh " in script) and _CHANGES_BRANCH.search(script) is not None


def branch_after(words: Sequence[str], branch: str) -> str:
    """Returns the branch that is checked out after a command; "" if that is not known.

    Args:
        branch: the one before it.
    """
    match tuple(words[:2]):
        case ("git", "switch" | "checkout" as name):
            return _branch_after_checkout(name, words[2:], branch)
        case ("git", "branch"):
            return _branch_after_renaming(words[2:], branch)
        case ("git", "init"):
            return options_of(words[2:], {"--initial-branch": "b"}).last("--initial-branch") or ""
        case ("gh", "pr") if "checkout" in words[2:3]:
            return ""
        case ("git", "bisect"):
            return ""
    return branch


def _branch_after_checkout(name: str, words: Sequence[str], branch: str) -> str:
    options = options_of(words, _NEW_BRANCH[name])
    for option in _NEW_BRANCH[name]:
        if created := options.last(option):
            return created
    if "--detach" in options.flags or "--?d" in options.flags:
        return DETACHED
    operands = options.rest
    if "--" in words or len(operands) != 1:
        is_of_files = name == "checkout" and bool(operands or "--" in words)
        return branch if is_of_files or not operands else ""
    (target,) = operands
    if not {"--track", "--?t"}.isdisjoint(options.flags):
        return target.partition("/")[2]
    if target == "-":
        return ""
    if name == "switch":  # takes no files, and other revisions only with `--detach`
        return target
    if _VERSION.fullmatch(target):  # a tag, or a branch
        return ""
    if target.endswith(("/", ".")) or not may_be_folder(target):
        return branch  # a file
    return DETACHED if _REVISION.fullmatch(target) else target


def _branch_after_renaming(words: Sequence[str], branch: str) -> str:
    """Returns the branch after `git branch`, which may give it another name."""
    if not set(words) & {*_RENAMES}:
        return branch
    names = [word for word in words if not word.startswith("-")]
    is_renamed = len(names) == 1 or (len(names) == 2 and names[0] == branch)
    return names[-1] if names and is_renamed else branch


def pushes_current_branch(words: Sequence[str]) -> bool:
    """Whether a command pushes the branch that is checked out, without naming it."""
    if tuple(words[:2]) != ("git", "push"):
        return False
    options = options_of(words[2:], _PUSH_OPTIONS)
    others = {"--all", "--mirror", "--tags", "--delete", "--?d", "--help"}
    if not others.isdisjoint(options.flags):
        return False
    refspecs = options.rest[1:]
    return not refspecs or any(refspec in _CURRENT for refspec in refspecs)
