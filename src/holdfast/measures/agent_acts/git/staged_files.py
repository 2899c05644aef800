"""The files that an agent has staged for its next commit, as far as the log shows them.

For example:

    git add a.py b.py; git reset b.py  ->  staged: a.py
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from holdfast.measures.agent_acts.agent_action import Action
from holdfast.measures.agent_acts.agent_tools import DELETES
from holdfast.measures.agent_acts.commands.command_options import ParsedOptions, options_of
from holdfast.measures.agent_acts.edits.path_globs import may_be_folder
from holdfast.measures.agent_acts.git.pathspecs import (
    EVERYTHING,
    EXCLUDED,
    folder_of,
    is_in,
    is_in_any,
    listed_paths,
    names_everything,
    operands_in,
)
from holdfast.measures.agent_acts.written_texts import WrittenTexts

# flags of the commands that stage files
_FLAGS = {
    "--all": "A",
    "--update": "u",
    "--patch": "p",
    "--staged": "S",
    "--worktree": "W",
    "--intent-to-add": "N",
    "--dry-run": "n",
}
_STAGES_NOTHING = frozenset(("--intent-to-add", "--dry-run"))
_VALUED_OPTIONS = {"--pathspec-from-file": "", "--source": "s", "--cacheinfo": ""}
_VALUED_OF_STASH = {"--message": "m", "--pathspec-from-file": ""}
_ALL_CHANGES = frozenset(("--all", "--update", "--patch"))
_CHOOSING = frozenset(("--patch", "--interactive"))
# flags with which `git update-index` stages a file
_UPDATES = frozenset(("--add", "--remove", "--force-remove", "--replace", "--verbose"))
# with which `git checkout` and `git switch` undo all changes
_DISCARDS = frozenset(("--force", "--?f", "--discard-changes"))
_STASH_ACTIONS = frozenset(
    ("push", "save", "pop", "apply", "drop", "list", "show", "clear", "branch", "create", "store")
)
# a revision such as HEAD, main, 1f2e3d4 or topic~2; other names may be those of files
_REVISION = re.compile(
    r"(HEAD|ORIG_HEAD|FETCH_HEAD|@|main|master|origin/.+|[0-9a-f]{7,40})([~^@].*)?"
    r"|.+(~\d*|\^\d*|@\{.+\})"
)
_LAST_COMMIT = (None, "HEAD", "@")
# how `git switch`, `git checkout` and `git branch` create a branch
_CREATES_BRANCH = {"switch": ("-c", "-C", "--create"), "checkout": ("-b", "-B"), "branch": ()}
_UNDO = ("checkout", "restore", "stash", "reset")  # what these do to files is no change by itself


@dataclass(frozen=True)
class _GitCommand:
    """A command of Git.

    Args:
        name: the subcommand, such as "add".
        words: the words after it.
        folder: the folder that it runs in, relative to that of the script.
    """

    name: str
    words: Sequence[str]
    folder: str
    options: ParsedOptions

    @property
    def flags(self) -> frozenset[str]:
        """Its options without a value, by their long names."""
        return self.options.flags

    @property
    def operands(self) -> list[str]:
        """The words that are no options, as they were written."""
        return list(self.options.rest)

    @property
    def paths(self) -> list[str]:
        """Its operands as paths, relative to the folder of the script."""
        return self.resolve(self.options.rest)

    def resolve(self, paths: Iterable[str]) -> list[str]:
        """Returns paths relative to the folder of the script."""
        return list(operands_in(self.folder, paths))

    @property
    def before_dashes(self) -> list[str] | None:
        """The operands before `--`, which are no paths; None without it."""
        if "--" not in self.words:
            return None
        return [word for word in self.words[: self.words.index("--")] if not word.startswith("-")]

    @property
    def chooses_changes(self) -> bool:
        """Whether the user is asked for each change, as with `--patch`."""
        return bool(self.flags & _CHOOSING)


def _git_command(action: Action) -> _GitCommand | None:
    """Reads the command of Git that an action is; None for any other action."""
    words = action.command.arguments if action.is_shell else ()
    if words[:1] != ("git",) or len(words) < 2:
        return None
    valued = _VALUED_OF_STASH if words[1] == "stash" else _VALUED_OPTIONS
    return _GitCommand(
        words[1], words[2:], folder_of(action), options_of(words[2:], valued, _FLAGS)
    )


@dataclass(frozen=True)
class Selection:
    """The files that the operands of a command of Git name.

    Args:
        paths: the operands, and the files changed in them.
        excluded: the operands that leave out files.
        takes_all: whether all files are named, or all but the excluded.
    """

    paths: tuple[str, ...]
    excluded: frozenset[str]
    takes_all: bool


@dataclass
class StagedFiles:
    """The files that are staged, and those changed since the last commit.

    Args:
        perhaps: files that may be staged or not.
        removed: those of the staged files that the commit deletes.
        deleted: those of the changed files that were deleted.
        excluded: what was left out when all files were staged.
        untracked: the files that were created since, and not staged.
        put_aside: the files that were staged when the changes were put aside.
        put_aside_changes: the files that were changed then.
        has_more: whether files may be staged that no command names.
        branches: the branches that the agent created.
    """

    staged: dict[str, None] = field(default_factory=dict)  # an ordered set, as are the next
    perhaps: dict[str, None] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    changed: dict[str, None] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    excluded: set[str] = field(default_factory=set)
    untracked: set[str] = field(default_factory=set)
    put_aside: dict[str, None] = field(default_factory=dict)
    put_aside_changes: dict[str, None] = field(default_factory=dict)
    has_more: bool = False
    branches: set[str] = field(default_factory=set)

    def apply(self, action: Action, texts: WrittenTexts) -> None:
        """Takes note of the files that an action changes or stages."""
        git = _git_command(action)
        if git is None or git.name not in _UNDO:
            self._note_edits(action)
        if git is None:
            return
        match git.name:
            case "add" | "stage" | "rm" | "mv" | "update-index":
                self._stage(git, listed_paths(git.options, action, texts))
            case "reset":
                self._reset(git)
            case "restore":
                self._restore(git)
            case "stash":
                self._stash(git)
            case "apply" if git.flags & {"--cached", "--index"}:
                self.has_more = True
            case "clean" if "--dry-run" not in git.flags:
                self._undo(())
            case "checkout" if self._checks_out_files(git):
                self._check_out(git)
            case "checkout" | "switch" | "branch":
                self._change_branch(git)

    def select(self, operands: Iterable[str]) -> Selection:
        """Returns the files that operands name, without those that others of them exclude."""
        operands = list(operands)
        excluded = frozenset(EXCLUDED.sub("", name) for name in operands if EXCLUDED.match(name))
        takes_all = names_everything(operands)
        paths: dict[str, None] = {}
        for name in operands:
            if not EXCLUDED.match(name) and name not in EVERYTHING:
                paths |= _ordered_set(self.within(name))
        if takes_all:
            paths |= self.changed
        kept = [path for path in paths if not is_in_any(path, excluded)]
        return Selection(tuple(kept), excluded, takes_all)

    def within(self, path: str) -> list[str]:
        """Returns a path and the changed files that are in it, or that it matches."""
        return [path, *(name for name in self.changed if name != path and is_in(name, path))]

    def after_commit_of(self, paths: Sequence[str]) -> "StagedFiles":
        """Returns what is staged after a commit of these files only."""
        return StagedFiles(
            staged=_without(self.staged, paths),
            perhaps=_without(self.perhaps, paths),
            removed=self.removed - set(paths),
            changed=_without(self.changed, paths),
            deleted=self.deleted - set(paths),
            excluded=self.excluded,
            has_more=self.has_more,
            branches=self.branches,
        )

    # Commands

    def _note_edits(self, action: Action) -> None:
        deleted = _deleted_by(action)
        for edit in action.edits:
            if not edit.path:
                continue
            self.changed[edit.path] = None
            self.excluded.discard(edit.path)
            if edit.is_new:
                self.untracked.add(edit.path)
            if edit.path in deleted:
                self.deleted |= set(self.within(edit.path))
            else:
                self.deleted.discard(edit.path)

    def _stage(self, git: _GitCommand, listed: list[str] | None) -> None:
        """Takes note of a command that stages files.

        Args:
            listed: the paths in the file of `--pathspec-from-file`; None if they are not known.
        """
        if git.flags & _STAGES_NOTHING:
            return
        if git.name == "update-index" and git.flags - _UPDATES:  # such as --assume-unchanged
            return
        operands = [*git.paths, *(listed or ())]
        if git.name == "update-index" and (info := git.options.last("--cacheinfo")):
            operands.append(info.rpartition(",")[2])
        if not operands and git.name in ("add", "stage") and git.flags & _ALL_CHANGES:
            operands = ["."]
        self.has_more = self.has_more or (listed is None and git.name != "update-index")
        target = operands.pop() if git.name == "mv" and operands else None
        files = self.select(operands)
        if git.chooses_changes:
            self.perhaps |= _ordered_set(files.paths)
            self.has_more = self.has_more or files.takes_all
            return
        paths = files.paths
        if "--update" in git.flags:
            paths = tuple(path for path in paths if path not in self.untracked)
            self.excluded |= self.untracked
        if files.takes_all:
            self.has_more = True
            self.excluded |= files.excluded
        else:
            self.excluded -= set(paths)
        removes = git.name in ("rm", "mv") or "--force-remove" in git.flags
        for path in paths:
            self._note_staged(path, is_removed=removes or path in self.deleted)
        if target is not None:
            self._note_staged(target, is_removed=False)

    def _reset(self, git: _GitCommand) -> None:
        """Takes note of `git reset REVISION -- PATH`, which unstages the path, or stages it as it
        was in an earlier commit; without a path, it unstages everything.
        """
        if "--soft" in git.flags:
            self.has_more = True  # stages the files of the commits that it undoes
            return
        paths = git.operands
        revision = None
        before = git.before_dashes
        if before is not None:
            revision = before[0] if before else None
            paths = paths[len(before) :]
        elif paths and self._is_revision(paths[0]):
            revision = paths.pop(0)
        elif len(paths) == 1 and self._may_be_branch(paths[0], git):
            self._doubt()
            if "--hard" in git.flags:
                self._undo(())
            return
        paths = git.resolve(paths)
        if paths and revision not in _LAST_COMMIT:
            self._stage_old(paths)
            return
        self._unstage(paths, git)
        if "--hard" in git.flags:
            self._undo(())

    def _restore(self, git: _GitCommand) -> None:
        """Takes note of `git restore PATH`, which undoes changes, or unstages with `--staged`."""
        paths = git.paths
        is_staged = "--staged" in git.flags
        is_old = git.options.last("--source") not in _LAST_COMMIT
        if git.chooses_changes:
            self._doubt()
            self._undo(paths)
            return
        if is_staged and is_old:
            self._stage_old(paths)
        elif is_staged:
            self._unstage(paths, git)
        if is_old:
            self.changed |= _ordered_set(paths)
        elif not is_staged or "--worktree" in git.flags:
            self._undo(paths)

    def _stash(self, git: _GitCommand) -> None:
        """Takes note of `git stash`, which puts changes aside, and of `git stash pop`."""
        action, *paths = git.operands or ["push"]
        if action not in _STASH_ACTIONS:
            action, paths = "push", git.operands
        if action in ("pop", "apply"):
            if "--index" in git.flags:
                self.staged |= self.put_aside
            else:  # files that are new are staged again
                self.perhaps |= self.put_aside
            self.changed |= self.put_aside_changes
            self.excluded -= {*self.put_aside, *self.put_aside_changes}
        elif action in ("push", "save"):
            self.put_aside = dict(self.staged)
            self.put_aside_changes = dict(self.changed)
            self.excluded |= {*self.put_aside, *self.put_aside_changes}
            named = paths if action == "push" else []
            if not git.flags & {"--keep-index", "--?k"}:
                self._unstage(named, git)
            self._undo(named)

    def _checks_out_files(self, git: _GitCommand) -> bool:
        """Whether `git checkout` is about files, not about a branch."""
        if {"-b", "-B", "--orphan"} & {*git.words}:
            return False
        is_about_files = "--" in git.words or len(git.operands) > 1
        return is_about_files or any(self._is_known(name, git) for name in git.operands)

    def _check_out(self, git: _GitCommand) -> None:
        """Takes note of `git checkout REVISION -- PATH`, which stages the path, or undoes its
        changes if the revision is the last commit; without a revision, it keeps what is staged.
        """
        paths = git.operands
        has_revision = bool(paths) and not self._is_known(paths[0], git)
        if git.before_dashes is not None:
            has_revision = bool(git.before_dashes)
        revision = paths.pop(0) if has_revision else None
        paths = git.resolve(paths)
        if git.chooses_changes:
            self._doubt()
            self._undo(paths)
        elif revision is None:
            self._undo(paths)
        elif revision in _LAST_COMMIT:
            self._unstage(paths, git)
            self._undo(paths)
        else:
            self._stage_old(paths)

    def _change_branch(self, git: _GitCommand) -> None:
        """Takes note of a branch that is created, and of changes that a change of branch undoes."""
        if git.name != "branch" and not _DISCARDS.isdisjoint(git.flags):
            self._unstage((), git)
            self._undo(())
        options = _CREATES_BRANCH[git.name]
        if not options or set(git.words) & {*options}:
            self.branches |= set(git.operands[:1])

    # What they do to files

    def _note_staged(self, path: str, *, is_removed: bool) -> None:
        self.staged[path] = None
        self.untracked.discard(path)
        if is_removed:
            self.removed.add(path)
        else:
            self.removed.discard(path)

    def _stage_old(self, paths: Sequence[str]) -> None:
        """Takes note that files are staged as they were in another commit."""
        files = self.select(paths)
        self.has_more = self.has_more or files.takes_all
        for path in files.paths:
            self._note_staged(path, is_removed=False)

    def _unstage(self, paths: Sequence[str], git: _GitCommand) -> None:
        if git.chooses_changes:
            self._doubt()
        elif paths and not names_everything(paths):
            if self.has_more:
                self.excluded |= set(paths)
            self.staged = {p: None for p in self.staged if not is_in_any(p, paths)}
            self.perhaps = {p: None for p in self.perhaps if not is_in_any(p, paths)}
        else:
            self.staged = {}
            self.perhaps = {}
            self.has_more = False

    def _doubt(self) -> None:
        """Takes note that the files that were staged may have been taken back."""
        self.perhaps |= self.staged
        self.staged = {}

    def _undo(self, paths: Sequence[str]) -> None:
        """Takes note that files are no longer changed, or may not be; all without paths.

        What then takes all changes may still take them, as no command shows all its files.
        """
        if not paths or names_everything(paths):
            self.changed = {}
            self.deleted = set()
        else:
            self.changed = {p: None for p in self.changed if not is_in_any(p, paths)}
            self.deleted = {p for p in self.deleted if not is_in_any(p, paths)}

    # Names that may be those of branches

    def _is_revision(self, name: str) -> bool:
        is_staged = name in self.staged
        return not is_staged and (name in self.branches or bool(_REVISION.fullmatch(name)))

    def _may_be_branch(self, name: str, git: _GitCommand) -> bool:
        is_path = name.endswith("/") or not may_be_folder(name)
        return not is_path and not self._is_known(name, git)

    def _is_known(self, name: str, git: _GitCommand) -> bool:
        """Whether an operand that may be a branch is a path, by what the log has shown."""
        paths = (*self.staged, *self.perhaps, *self.changed)
        (whole,) = git.resolve([name])
        return name in EVERYTHING or any(is_in(path, whole) for path in paths)


def _deleted_by(action: Action) -> Sequence[str]:
    """Returns the paths of the files that an action deletes, or moves elsewhere."""
    paths = [edit.path for edit in action.edits]
    if action.tool_call is not None:
        deletes = [e.path for e in action.edits if not (e.writes or e.removed or e.is_whole)]
        return deletes[:1] if DELETES.search(action.tool_call.name) or len(paths) == 1 else ()
    words = action.command.arguments
    program = words[1] if words[0] == "git" and len(words) > 1 else words[0]
    if program in ("rm", "unlink"):
        return paths if "--cached" not in words else ()
    return paths[:-1] if program == "mv" else ()


def _ordered_set(paths: Iterable[str]) -> dict[str, None]:
    """Returns paths as an ordered set."""
    return {path: None for path in paths}


def _without(paths: Iterable[str], others: Sequence[str]) -> dict[str, None]:
    excluded = set(others)
    return _ordered_set(path for path in paths if path not in excluded)
