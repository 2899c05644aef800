"""The files that are staged for the next commit, and those changed since the last.

    files.stage("a.py"); files.stage("b.py"); files.unstage(["b.py"])  ->  staged: a.py

`staging_commands` says what each command of Git does to them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from holdfast.measures.agent_acts.agent_action import Action
from holdfast.measures.agent_acts.agent_tools import DELETES
from holdfast.measures.agent_acts.git.pathspecs import (
    EVERYTHING,
    EXCLUDED,
    is_in,
    is_in_any,
    names_everything,
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

    The dicts are ordered sets of paths.

    Args:
        staged: files that are staged.
        possibly_staged: files that may be staged or not.
        removed: those of the staged files that the commit deletes.
        changed: files that were changed since the last commit.
        deleted: those of the changed files that were deleted.
        excluded: what was left out when all files were staged.
        untracked: the files that were created since, and not staged.
        stashed: the files that were staged when `git stash` put the changes aside.
        stashed_changes: the files that were changed then.
        has_more: whether files may be staged that no command names.
        branches: the branches that the agent created.
    """

    staged: dict[str, None] = field(default_factory=dict)
    possibly_staged: dict[str, None] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    changed: dict[str, None] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    excluded: set[str] = field(default_factory=set)
    untracked: set[str] = field(default_factory=set)
    stashed: dict[str, None] = field(default_factory=dict)
    stashed_changes: dict[str, None] = field(default_factory=dict)
    has_more: bool = False
    branches: set[str] = field(default_factory=set)

    # Queries

    def select(self, operands: Iterable[str]) -> Selection:
        """Returns the files that operands name, without those that others of them exclude."""
        operands = list(operands)
        excluded = frozenset(EXCLUDED.sub("", name) for name in operands if EXCLUDED.match(name))
        takes_all = names_everything(operands)
        paths: dict[str, None] = {}
        for name in operands:
            if not EXCLUDED.match(name) and name not in EVERYTHING:
                paths |= _ordered_set(self._within(name))
        if takes_all:
            paths |= self.changed
        kept = [path for path in paths if not is_in_any(path, excluded)]
        return Selection(tuple(kept), excluded, takes_all)

    def _within(self, path: str) -> list[str]:
        """Returns a path and the changed files that are in it, or that it matches."""
        return [path, *(name for name in self.changed if name != path and is_in(name, path))]

    def mentions(self, path: str) -> bool:
        """Whether a path is that of a staged or a changed file, or of a folder with one."""
        paths = (*self.staged, *self.possibly_staged, *self.changed)
        return any(is_in(name, path) for name in paths)

    def after_commit_of(self, paths: Sequence[str]) -> "StagedFiles":
        """Returns what is staged after a commit of these files only."""
        return StagedFiles(
            staged=_without(self.staged, paths),
            possibly_staged=_without(self.possibly_staged, paths),
            removed=self.removed - set(paths),
            changed=_without(self.changed, paths),
            deleted=self.deleted - set(paths),
            excluded=self.excluded,
            has_more=self.has_more,
            branches=self.branches,
        )

    # Changes

    def note_edits(self, action: Action) -> None:
        """Takes note of the files that an action changes."""
        deleted = _deleted_by(action)
        for edit in action.edits:
            if not edit.path:
                continue
            self.changed[edit.path] = None
            self.excluded.discard(edit.path)
            if edit.is_new:
                self.untracked.add(edit.path)
            if edit.path in deleted:
                self.deleted |= set(self._within(edit.path))
            else:
                self.deleted.discard(edit.path)

    def note_changed(self, paths: Iterable[str]) -> None:
        """Takes note of changed files."""
        self.changed |= _ordered_set(paths)

    def stage(self, path: str, *, is_removed: bool = False) -> None:
        """Takes note that a file is staged.

        Args:
            is_removed: whether the commit deletes it.
        """
        self.staged[path] = None
        self.untracked.discard(path)
        if is_removed:
            self.removed.add(path)
        else:
            self.removed.discard(path)

    def stage_possibly(self, files: Selection) -> None:
        """Takes note that files may be staged or not, as the user chooses among the changes."""
        self.possibly_staged |= _ordered_set(files.paths)
        self.has_more = self.has_more or files.takes_all

    def stage_from_another_commit(self, operands: Sequence[str]) -> None:
        """Takes note that files are staged as they were in another commit."""
        files = self.select(operands)
        self.has_more = self.has_more or files.takes_all
        for path in files.paths:
            self.stage(path)

    def unstage(self, operands: Sequence[str]) -> None:
        """Takes note that files are no longer staged; all without operands."""
        if operands and not names_everything(operands):
            if self.has_more:
                self.excluded |= set(operands)
            self.staged = _outside(self.staged, operands)
            self.possibly_staged = _outside(self.possibly_staged, operands)
        else:
            self.staged = {}
            self.possibly_staged = {}
            self.has_more = False

    def unstage_possibly(self) -> None:
        """Takes note that any of the staged files may have been unstaged."""
        self.possibly_staged |= self.staged
        self.staged = {}

    def discard_changes(self, operands: Sequence[str] = ()) -> None:
        """Takes note that files are no longer changed, or may not be; all without operands.

        What then takes all changes may still take them, as no command shows all its files.
        """
        if not operands or names_everything(operands):
            self.changed = {}
            self.deleted = set()
        else:
            self.changed = _outside(self.changed, operands)
            self.deleted = {*_outside(self.deleted, operands)}

    def stash(self) -> None:
        """Takes note that `git stash` puts the changes aside."""
        self.stashed = dict(self.staged)
        self.stashed_changes = dict(self.changed)
        self.excluded |= {*self.stashed, *self.stashed_changes}

    def take_from_stash(self, *, restores_index: bool) -> None:
        """Takes note that `git stash pop` brings the changes back.

        Args:
            restores_index: whether what was staged is staged again, and not only what is new.
        """
        if restores_index:
            self.staged |= self.stashed
        else:
            self.possibly_staged |= self.stashed
        self.changed |= self.stashed_changes
        self.excluded -= {*self.stashed, *self.stashed_changes}


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
    return dict.fromkeys(paths)


def _without(paths: Iterable[str], others: Sequence[str]) -> dict[str, None]:
    excluded = set(others)
    return _ordered_set(path for path in paths if path not in excluded)


def _outside(paths: Iterable[str], operands: Sequence[str]) -> dict[str, None]:
    """Returns the paths that are not among those which operands of Git name."""
    return _ordered_set(path for path in paths if not is_in_any(path, operands))
