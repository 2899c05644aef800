"""The effects of each command of Git on the files that are staged for the next commit.

For example:

    git add a.py b.py; git reset b.py          ->  staged: a.py
    git add a.py; git stash; git stash pop     ->  possibly staged: a.py
    git add .; git restore --staged b.py       ->  staged: all changed files but b.py
"""

import re
from collections.abc import Sequence

from holdfast.measures.agent_acts.agent_action import Action
from holdfast.measures.agent_acts.git.git_commands import GitCommand, git_command_of, listed_paths
from holdfast.measures.agent_acts.git.pathspecs import EVERYTHING
from holdfast.measures.agent_acts.git.staged_files import StagedFiles
from holdfast.measures.agent_acts.path_names import may_be_folder
from holdfast.measures.agent_acts.written_texts import WrittenTexts

_UNDO = ("checkout", "restore", "stash", "reset")  # what these do to files is no change by itself
_STAGES_NOTHING = frozenset(("--intent-to-add", "--dry-run"))
_ALL_CHANGES = frozenset(("--all", "--update", "--patch"))
# flags with which `git update-index` stages a file
_UPDATES_INDEX = frozenset(("--add", "--remove", "--force-remove", "--replace", "--verbose"))
# with which `git checkout` and `git switch` undo all changes
_DISCARDS = frozenset(("--force", "--?f", "--discard-changes"))
_NEW_BRANCH = frozenset(("-b", "-B", "--orphan"))  # options of `git checkout`
_KEEPS_INDEX = frozenset(("--keep-index", "--?k"))  # options of `git stash`
_STASH_ACTIONS = frozenset(
    ("push", "save", "pop", "apply", "drop", "list", "show", "clear", "branch", "create", "store")
)
# a revision such as HEAD, main, 1f2e3d4 or topic~2; other names may be those of files
_REVISION = re.compile(
    r"(HEAD|ORIG_HEAD|FETCH_HEAD|@|main|master|origin/.+|[0-9a-f]{7,40})([~^@].*)?"
    r"|.+(~\d*|\^\d*|@\{.+\})"
)
_LAST_COMMIT = (None, "HEAD", "@")  # revisions; None is the default
# how `git switch`, `git checkout` and `git branch` create a branch
_CREATES_BRANCH = {"switch": ("-c", "-C", "--create"), "checkout": ("-b", "-B"), "branch": ()}


def apply_action(action: Action, files: StagedFiles, texts: WrittenTexts) -> None:
    """Takes note of the files that an action changes, stages or unstages."""
    git = git_command_of(action)
    if git is None or git.name not in _UNDO:
        files.note_edits(action)
    if git is None:
        return
    match git.name:
        case "add" | "stage" | "rm" | "mv" | "update-index":
            _stage(git, listed_paths(git.options, action, texts), files)
        case "reset":
            _reset(git, files)
        case "restore":
            _restore(git, files)
        case "stash":
            _stash(git, files)
        case "apply" if git.flags & {"--cached", "--index"}:
            files.has_more = True
        case "clean" if "--dry-run" not in git.flags:
            files.discard_changes()
        case "checkout" if _checks_out_files(git, files):
            _check_out(git, files)
        case "checkout" | "switch" | "branch":
            _change_branch(git, files)


def _stage(git: GitCommand, listed: list[str] | None, files: StagedFiles) -> None:
    """Applies `git add`, `git rm`, `git mv` or `git update-index`.

    Args:
        listed: the paths in the file of `--pathspec-from-file`; None if they are not known.
    """
    if _stages_nothing(git):
        return
    operands = _operands_to_stage(git, listed)
    if listed is None and git.name != "update-index":
        files.has_more = True
    target = operands.pop() if git.name == "mv" and operands else None
    selection = files.select(operands)
    if git.asks_for_each_change:
        files.stage_possibly(selection)
        return
    paths = selection.paths
    if "--update" in git.flags:
        paths = tuple(path for path in paths if path not in files.untracked)
        files.excluded |= files.untracked
    if selection.takes_all:
        files.has_more = True
        files.excluded |= selection.excluded
    else:
        files.excluded -= set(paths)
    removes = git.name in ("rm", "mv") or "--force-remove" in git.flags
    for path in paths:
        files.stage(path, is_removed=removes or path in files.deleted)
    if target is not None:
        files.stage(target)


def _stages_nothing(git: GitCommand) -> bool:
    if git.name == "update-index" and git.flags - _UPDATES_INDEX:  # such as --assume-unchanged
        return True
    return bool(git.flags & _STAGES_NOTHING)


def _operands_to_stage(git: GitCommand, listed: list[str] | None) -> list[str]:
    """Returns the paths that a command stages: "." for `git add --all`."""
    operands = [*git.paths, *(listed or ())]
    if git.name == "update-index" and (info := git.options.last("--cacheinfo")):
        operands.append(info.rpartition(",")[2])
    if not operands and git.name in ("add", "stage") and git.flags & _ALL_CHANGES:
        operands = ["."]
    return operands


def _reset(git: GitCommand, files: StagedFiles) -> None:
    """Applies `git reset REVISION -- PATH`, which unstages the path.

    With an earlier commit, it stages the path as it was there; without a path, it unstages all.
    """
    if "--soft" in git.flags:
        files.has_more = True  # stages the files of the commits that it undoes
        return
    operands = git.operands
    revision = None
    before = git.before_dashes
    if before is not None:
        revision = before[0] if before else None
        operands = operands[len(before) :]
    elif operands and _is_revision(operands[0], files):
        revision = operands.pop(0)
    elif len(operands) == 1 and _may_be_branch(operands[0], git, files):
        files.unstage_possibly()
        if "--hard" in git.flags:
            files.discard_changes()
        return
    paths = git.resolve(operands)
    if paths and revision not in _LAST_COMMIT:
        files.stage_from_another_commit(paths)
        return
    _unstage(paths, git, files)
    if "--hard" in git.flags:
        files.discard_changes()


def _restore(git: GitCommand, files: StagedFiles) -> None:
    """Applies `git restore PATH`, which undoes changes, or unstages with `--staged`."""
    paths = git.paths
    is_staged = "--staged" in git.flags
    is_from_another = git.options.last("--source") not in _LAST_COMMIT
    if git.asks_for_each_change:
        files.unstage_possibly()
        files.discard_changes(paths)
        return
    if is_staged and is_from_another:
        files.stage_from_another_commit(paths)
    elif is_staged:
        files.unstage(paths)
    if is_from_another:
        files.note_changed(paths)
    elif not is_staged or "--worktree" in git.flags:
        files.discard_changes(paths)


def _stash(git: GitCommand, files: StagedFiles) -> None:
    """Applies `git stash`, which puts changes aside, and `git stash pop`."""
    stash_action, *paths = git.operands or ["push"]
    if stash_action not in _STASH_ACTIONS:
        stash_action, paths = "push", git.operands
    if stash_action in ("pop", "apply"):
        files.take_from_stash(restores_index="--index" in git.flags)
    elif stash_action in ("push", "save"):
        files.stash()
        stashed = paths if stash_action == "push" else []  # `save` takes a message
        if not git.flags & _KEEPS_INDEX:
            _unstage(stashed, git, files)
        files.discard_changes(stashed)


def _check_out(git: GitCommand, files: StagedFiles) -> None:
    """Applies `git checkout REVISION -- PATH`, which stages the path as it was in the revision.

    If the revision is the last commit, it undoes changes; without one, it keeps what is staged.
    """
    operands = git.operands
    has_revision = bool(operands) and not _is_known_path(operands[0], git, files)
    if git.before_dashes is not None:
        has_revision = bool(git.before_dashes)
    revision = operands.pop(0) if has_revision else None
    paths = git.resolve(operands)
    if git.asks_for_each_change:
        files.unstage_possibly()
        files.discard_changes(paths)
    elif revision is None:
        files.discard_changes(paths)
    elif revision in _LAST_COMMIT:
        files.unstage(paths)
        files.discard_changes(paths)
    else:
        files.stage_from_another_commit(paths)


def _change_branch(git: GitCommand, files: StagedFiles) -> None:
    """Applies `git switch`, `git checkout` or `git branch`.

    These may create a branch, and with `--force` undo all changes.
    """
    if git.name != "branch" and not _DISCARDS.isdisjoint(git.flags):
        _unstage((), git, files)
        files.discard_changes()
    options = _CREATES_BRANCH[git.name]
    if not options or set(git.words) & {*options}:
        files.branches |= set(git.operands[:1])


def _unstage(paths: Sequence[str], git: GitCommand, files: StagedFiles) -> None:
    """Unstages files, or possibly so, if the user chooses among the changes."""
    if git.asks_for_each_change:
        files.unstage_possibly()
    else:
        files.unstage(paths)


# --- Operands that may be branches or files


def _checks_out_files(git: GitCommand, files: StagedFiles) -> bool:
    """Whether `git checkout` is about files, not about a branch."""
    if not _NEW_BRANCH.isdisjoint(git.words):
        return False
    is_about_files = "--" in git.words or len(git.operands) > 1
    return is_about_files or any(_is_known_path(name, git, files) for name in git.operands)


def _is_revision(name: str, files: StagedFiles) -> bool:
    is_named_so = name in files.branches or _REVISION.fullmatch(name) is not None
    return is_named_so and name not in files.staged


def _may_be_branch(name: str, git: GitCommand, files: StagedFiles) -> bool:
    is_path = name.endswith("/") or not may_be_folder(name)
    return not is_path and not _is_known_path(name, git, files)


def _is_known_path(name: str, git: GitCommand, files: StagedFiles) -> bool:
    """Whether an operand that may be a branch is a path, by what the log has shown."""
    (path,) = git.resolve([name])
    return name in EVERYTHING or files.mentions(path)
