"""The files that an agent has staged for its next commit, as far as the log shows them.

For example:

    git add a.py b.py; git reset b.py  ->  staged: a.py
"""

import fnmatch
import posixpath
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from holdfast.measures.actions import Action
from holdfast.measures.agent_tools import DELETES
from holdfast.measures.command_options import Options, options_of
from holdfast.measures.written_texts import WrittenTexts

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
_EVERYTHING = frozenset((".", "*", "/", ":/", "./", ":/."))
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
_EXCLUDED = re.compile(r":(?:[!^]|\(exclude\))/?")  # a pathspec that leaves out files
_MAGIC = re.compile(r":(?:\([\w,]*\)|/)")  # in front of a path, as in `:(glob)*.lock`
# names of files; others may be folders, such as `Docs`, `v1.2` and `.config`
_FILE_NAME = re.compile(
    r"\.?[^.].*\.[a-z][a-z0-9]{0,10}|\.env|\.\w*(?:rc|ignore|attributes)"
    r"|(?:Make|Docker|Gem|Pip|Proc|Rake|Brew|Vagrant|Container|Jenkins)file"
    r"|LICENSE|README|CHANGELOG|NOTICE|AUTHORS|CODEOWNERS|VERSION"
)


def names_everything(paths: Iterable[str]) -> bool:
    """Whether one of these operands of Git stands for all files, or all but some."""
    paths = list(paths)
    only_excludes = bool(paths) and all(map(_EXCLUDED.match, paths))
    return only_excludes or not _EVERYTHING.isdisjoint(paths)


def listed_paths(options: Options, action: Action, texts: WrittenTexts) -> list[str] | None:
    """Returns the paths in the file of `--pathspec-from-file`; [] without this option, and None if
    the log does not show them.
    """
    file = options.last("--pathspec-from-file")
    if file is None:
        return []
    text = action.command.input if file in ("-", "/dev/stdin") else texts.of(file)
    if text is None:
        return None
    separator = "\0" if "--pathspec-file-nul" in options.flags else "\n"
    return [path.strip('"') for path in text.split(separator) if path.strip()]


def may_be_folder(path: str) -> bool:
    """Whether a path may be that of a folder, by its name: `src`, `v1.2` or `src/`, but not
    `Makefile` or `a.py`.
    """
    name = path.rpartition("/")[2]
    return not name or (not is_pattern(path) and not _FILE_NAME.fullmatch(name))


def is_pattern(path: str) -> bool:
    """Whether an operand of Git is a pattern of files."""
    return any(sign in path for sign in "*?[")


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
    put_aside: dict[str, None] = field(default_factory=dict)
    put_aside_changes: dict[str, None] = field(default_factory=dict)
    has_more: bool = False
    branches: set[str] = field(default_factory=set)

    def apply(self, action: Action, texts: WrittenTexts) -> None:
        """Takes note of the files that an action changes or stages."""
        words = action.command.arguments if action.is_shell else ()
        is_git = words[:1] == ("git",) and len(words) > 1
        subcommand = words[1] if is_git else ""
        if subcommand not in _UNDO:
            self._note_edits(action)
        if not is_git:
            return
        folder = folder_of(action)
        valued = _VALUED_OF_STASH if subcommand == "stash" else _VALUED_OPTIONS
        options = options_of(words[2:], valued, _FLAGS)
        if subcommand in ("add", "stage", "rm", "mv", "update-index", "restore"):
            options = replace(options, rest=operands_in(folder, options.rest))
        if subcommand in ("add", "stage", "rm", "mv", "update-index"):
            self._stage(subcommand, options, listed_paths(options, action, texts))
        elif subcommand == "reset":
            self._reset(words[2:], options, folder)
        elif subcommand == "restore":
            self._restore(options)
        elif subcommand == "stash":
            self._stash(options)
        elif subcommand == "apply" and options.flags & {"--cached", "--index"}:
            self.has_more = True
        elif subcommand == "checkout" and self._names_files(words[2:], options, folder):
            self._check_out(words[2:], options, folder)
        elif subcommand == "clean" and "--dry-run" not in options.flags:
            self._undo(())
        elif subcommand in _CREATES_BRANCH:
            if subcommand != "branch" and not _DISCARDS.isdisjoint(options.flags):
                self._unstage((), options)
                self._undo(())
            creates = not _CREATES_BRANCH[subcommand] or set(words) & {*_CREATES_BRANCH[subcommand]}
            self.branches |= set(options.rest[:1]) if creates else set()

    def select(self, operands: Iterable[str]) -> Selection:
        """Returns the files that operands name, without those that others of them exclude."""
        operands = list(operands)
        excluded = frozenset(_EXCLUDED.sub("", name) for name in operands if _EXCLUDED.match(name))
        takes_all = names_everything(operands)
        paths: dict[str, None] = {}
        for name in operands:
            if not _EXCLUDED.match(name) and name not in _EVERYTHING:
                paths |= _ordered_set(self.within(name))
        if takes_all:
            paths |= self.changed
        kept = [path for path in paths if not _is_in_any(path, excluded)]
        return Selection(tuple(kept), excluded, takes_all)

    def within(self, path: str) -> list[str]:
        """Returns a path and the changed files that are in it, or that it matches."""
        return [path, *(name for name in self.changed if name != path and _is_in(name, path))]

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

    def _note_edits(self, action: Action) -> None:
        deleted = _deleted_by(action)
        for edit in action.edits:
            if not edit.path:
                continue
            self.changed[edit.path] = None
            if edit.path in deleted:
                self.deleted |= set(self.within(edit.path))
            else:
                self.deleted.discard(edit.path)

    def _stage(self, subcommand: str, options: Options, listed: list[str] | None) -> None:
        if options.flags & _STAGES_NOTHING:
            return
        if subcommand == "update-index":
            if options.flags - _UPDATES:  # such as --assume-unchanged
                return
            info = options.last("--cacheinfo")
            listed = [*(listed or ()), *([info.rpartition(",")[2]] if info else [])]
        self.has_more = self.has_more or listed is None
        operands = [*options.rest, *(listed or ())]
        if not operands and subcommand in ("add", "stage") and options.flags & _ALL_CHANGES:
            operands = ["."]
        target = operands.pop() if subcommand == "mv" and operands else None
        files = self.select(operands)
        if options.flags & _CHOOSING:
            self.perhaps |= _ordered_set(files.paths)
            self.has_more = self.has_more or files.takes_all
            return
        is_removal = subcommand in ("rm", "mv") or "--force-remove" in options.flags
        if files.takes_all:
            self.has_more = True
            self.excluded |= files.excluded
        else:
            self.excluded -= set(files.paths)
        for path in files.paths:
            self._note_staged(path, is_removed=is_removal or path in self.deleted)
        if target is not None:
            self._note_staged(target, is_removed=False)

    def _note_staged(self, path: str, *, is_removed: bool) -> None:
        self.staged[path] = None
        if is_removed:
            self.removed.add(path)
        else:
            self.removed.discard(path)

    def _reset(self, words: Sequence[str], options: Options, folder: str) -> None:
        if "--soft" in options.flags:
            self.has_more = True  # stages the files of the commits that it undoes
            return
        paths = [*options.rest]
        revision = None
        if "--" in words:
            before = [word for word in words[: words.index("--")] if not word.startswith("-")]
            revision = before[0] if before else None
            paths = paths[len(before) :]
        elif paths and self._is_revision(paths[0]):
            revision = paths.pop(0)
        elif len(paths) == 1 and self._may_be_branch(paths[0], folder):
            self._doubt()
            if "--hard" in options.flags:
                self._undo(())
            return
        paths = [*operands_in(folder, paths)]
        if paths and revision not in _LAST_COMMIT:
            self._stage_old(paths)
            return
        self._unstage(paths, options)
        if "--hard" in options.flags:
            self._undo(())

    def _restore(self, options: Options) -> None:
        source = options.last("--source")
        is_staged = "--staged" in options.flags
        is_old = source not in _LAST_COMMIT
        if options.flags & _CHOOSING:
            self._doubt()
            self._undo(options.rest)
            return
        if is_staged and is_old:
            self._stage_old(options.rest)
        elif is_staged:
            self._unstage(options.rest, options)
        if is_old:
            self.changed |= _ordered_set(options.rest)
        elif not is_staged or "--worktree" in options.flags:
            self._undo(options.rest)

    def _names_files(self, words: Sequence[str], options: Options, folder: str) -> bool:
        """Whether `git checkout` is about files, not about a branch."""
        if {"-b", "-B", "--orphan"} & {*words}:
            return False
        is_about_files = "--" in words or len(options.rest) > 1
        return is_about_files or any(self._is_known(name, folder) for name in options.rest)

    def _check_out(self, words: Sequence[str], options: Options, folder: str) -> None:
        """Takes note of `git checkout REVISION -- PATH`, which stages the path, or undoes its
        changes if the revision is the last commit; without a revision, it keeps what is staged.
        """
        paths = [*options.rest]
        has_revision = bool(paths) and not self._is_known(paths[0], folder)
        if "--" in words:
            has_revision = any(not word.startswith("-") for word in words[: words.index("--")])
        revision = paths.pop(0) if has_revision else None
        paths = [*operands_in(folder, paths)]
        if options.flags & _CHOOSING:
            self._doubt()
            self._undo(paths)
        elif revision is None:
            self._undo(paths)
        elif revision in _LAST_COMMIT:
            self._unstage(paths, options)
            self._undo(paths)
        else:
            self._stage_old(paths)

    def _stage_old(self, paths: Sequence[str]) -> None:
        """Takes note that files are staged as they were in another commit."""
        files = self.select(paths)
        self.has_more = self.has_more or files.takes_all
        for path in files.paths:
            self._note_staged(path, is_removed=False)

    def _undo(self, paths: Sequence[str]) -> None:
        """Takes note that files are no longer changed, or may not be; all without paths.

        What then takes all changes may still take them, as no command shows all its files.
        """
        if not paths or names_everything(paths):
            self.changed = {}
            self.deleted = set()
        else:
            self.changed = {p: None for p in self.changed if not _is_in_any(p, paths)}
            self.deleted = {p for p in self.deleted if not _is_in_any(p, paths)}

    def _is_revision(self, name: str) -> bool:
        is_staged = name in self.staged
        return not is_staged and (name in self.branches or bool(_REVISION.fullmatch(name)))

    def _may_be_branch(self, name: str, folder: str) -> bool:
        is_path = name.endswith("/") or not may_be_folder(name)
        return not is_path and not self._is_known(name, folder)

    def _is_known(self, name: str, folder: str) -> bool:
        """Whether an operand that may be a branch is a path, by what the log has shown."""
        paths = (*self.staged, *self.perhaps, *self.changed)
        (whole,) = operands_in(folder, [name])
        return name in _EVERYTHING or any(_is_in(path, whole) for path in paths)

    def _unstage(self, paths: Sequence[str], options: Options) -> None:
        if options.flags & _CHOOSING:
            self._doubt()
        elif paths and not names_everything(paths):
            self.staged = {p: None for p in self.staged if not _is_in_any(p, paths)}
            self.perhaps = {p: None for p in self.perhaps if not _is_in_any(p, paths)}
        else:
            self.staged = {}
            self.perhaps = {}
            self.has_more = False

    def _doubt(self) -> None:
        """Takes note that the files that were staged may have been taken back."""
        self.perhaps |= self.staged
        self.staged = {}

    def _stash(self, options: Options) -> None:
        is_action = bool(options.rest) and options.rest[0] in _STASH_ACTIONS
        action, paths = (options.rest[0], options.rest[1:]) if is_action else ("push", options.rest)
        if action in ("pop", "apply"):
            if "--index" in options.flags:
                self.staged |= self.put_aside
            else:  # files that are new are staged again
                self.perhaps |= self.put_aside
            self.changed |= self.put_aside_changes
        if action not in ("push", "save"):
            return
        self.put_aside = dict(self.staged)
        self.put_aside_changes = dict(self.changed)
        named = paths if action == "push" else ()
        keeps = options.flags & {"--keep-index", "--?k"}
        if not keeps:
            self._unstage(named, options)
        self._undo(named)


def folder_of(action: Action) -> str:
    """Returns the folder that a command of Git runs in, as far as `cd` and `git -C` tell it."""
    for reading in action.command.readings:
        words = reading.words
        if (
            words[:2] == ("git", "-C")
            and len(words) > 2
            and not words[2].startswith(("/", "~", "$"))
        ):
            return posixpath.join(action.folder, words[2])
    return action.folder


def operands_in(folder: str, operands: Iterable[str]) -> tuple[str, ...]:
    """Returns operands of Git relative to the folder that the script began in: `a` for `./a`."""
    return tuple(_operand_in(folder, operand) for operand in operands)


def _operand_in(folder: str, operand: str) -> str:
    if _EXCLUDED.match(operand) or (operand in _EVERYTHING and not folder) or "@{" in operand:
        return operand
    if operand.startswith((":/", ":(top)")):
        return _MAGIC.sub("", operand) or "."
    path = _MAGIC.sub("", operand)
    whole = posixpath.normpath(posixpath.join(folder, path)) if path else path
    return f"{whole}/" if path.endswith("/") and whole != "." else whole


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


def _is_in_any(path: str, names: Iterable[str]) -> bool:
    return any(_is_in(path, name) for name in names)


def _is_in(path: str, name: str) -> bool:
    """Whether a path is this file, in this folder, or matches this pattern of Git.

    If only one of them is absolute, as tools write paths, the other is compared with its end.
    """
    path = posixpath.normpath(path)
    name = posixpath.normpath(name)
    if name in _EVERYTHING:
        return True
    if path.startswith("/") and not name.startswith("/"):
        return f"/{name}/" in f"{path}/" or fnmatch.fnmatchcase(path, f"*/{name}")
    if name.startswith("/") and not path.startswith("/"):
        parts = path.split("/")
        parents = ("/".join(parts[: number + 1]) for number in range(len(parts)))
        return any(name.endswith(f"/{parent}") for parent in parents)
    return path == name or path.startswith(f"{name}/") or fnmatch.fnmatchcase(path, name)
