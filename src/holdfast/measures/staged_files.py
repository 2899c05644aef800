"""The files that an agent has staged for its next commit, as far as the log shows them."""

import fnmatch
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from holdfast.measures.actions import Action
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
_VALUED_OPTIONS = {"--pathspec-from-file": "", "--source": "s"}
_ALL_CHANGES = frozenset(("--all", "--update", "--patch"))
_EVERYTHING = frozenset((".", "*", ":/", "./"))
_CHOOSING = frozenset(("--patch", "--interactive"))
# a revision such as HEAD, main, 1f2e3d4 or topic~2; other names may be those of files
_REVISION = re.compile(
    r"(HEAD|ORIG_HEAD|FETCH_HEAD|@|main|master|origin/.+|[0-9a-f]{7,40})([~^@].*)?"
    r"|.+(~\d*|\^\d*|@\{.+\})"
)
# how `git switch`, `git checkout` and `git branch` create a branch
_CREATES_BRANCH = {"switch": ("-c", "-C", "--create"), "checkout": ("-b", "-B"), "branch": ()}
_EXCLUDED = re.compile(r":(?:[!^]|\(exclude\))/?")  # a pathspec that leaves out files
# names of folders with a dot, unlike those of files
_DOT_FOLDERS = frozenset((".github", ".claude", ".cursor", ".vscode", ".husky", ".circleci"))


def names_everything(paths: Iterable[str]) -> bool:
    """Whether one of these operands of Git stands for all files."""
    return not _EVERYTHING.isdisjoint(paths)


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
    """Whether a path may be that of a folder, by its name: `src` or `src/`, but not `Makefile`."""
    name = path.rstrip("/").rpartition("/")[2]
    is_plain = "." not in name and "*" not in name and not name[:1].isupper()
    return path.endswith("/") or name in _DOT_FOLDERS or is_plain


@dataclass
class StagedFiles:
    """The files that are staged, and those changed since the last commit.

    Args:
        perhaps: files that may be staged or not.
        removed: those of the staged files that the commit deletes.
        excluded: what was left out when all files were staged.
        put_aside: the files that were staged when the changes were put aside.
        has_more: whether files may be staged that no command names.
        branches: the branches that the agent created.
    """

    staged: list[str] = field(default_factory=list)
    perhaps: list[str] = field(default_factory=list)
    removed: set[str] = field(default_factory=set)
    changed: list[str] = field(default_factory=list)
    excluded: set[str] = field(default_factory=set)
    put_aside: list[str] = field(default_factory=list)
    has_more: bool = False
    branches: set[str] = field(default_factory=set)

    def apply(self, action: Action, texts: WrittenTexts) -> None:
        """Takes note of the files that an action changes or stages."""
        self.changed += [edit.path for edit in action.edits if edit.path]
        words = action.command.arguments if action.is_shell else ()
        if words[:1] != ("git",) or len(words) < 2:
            return
        subcommand = words[1]
        options = options_of(words[2:], _VALUED_OPTIONS, _FLAGS)
        if subcommand in ("add", "stage", "rm", "mv", "update-index"):
            self._stage(subcommand, options, listed_paths(options, action, texts))
        elif subcommand == "reset":
            self._reset(words[2:], options)
        elif subcommand == "restore" and "--staged" in options.flags:
            self._unstage(options.rest, options)
        elif subcommand == "stash":
            self._stash(options)
        elif subcommand == "apply" and options.flags & {"--cached", "--index"}:
            self.has_more = True
        elif subcommand in _CREATES_BRANCH:
            if (
                subcommand == "checkout" and "--" in words[3:]
            ):  # `git checkout REVISION -- PATH` stages the path
                self.staged += words[words.index("--") + 1 :]
                return
            creates = not _CREATES_BRANCH[subcommand] or set(words) & {*_CREATES_BRANCH[subcommand]}
            self.branches |= set(options.rest[:1]) if creates else set()

    def within(self, path: str) -> list[str]:
        """Returns a path and the files changed in it, if it is a folder."""
        folder = "" if path in _EVERYTHING else f"{path.rstrip('/')}/"
        return [path, *(name for name in self.changed if name.startswith(folder))]

    def after_commit_of(self, paths: Sequence[str]) -> "StagedFiles":
        """Returns what is staged after a commit of these files only."""
        return StagedFiles(
            staged=[path for path in self.staged if path not in paths],
            perhaps=[path for path in self.perhaps if path not in paths],
            removed=self.removed - set(paths),
            changed=[path for path in self.changed if path not in paths],
            excluded=self.excluded,
            has_more=self.has_more,
            branches=self.branches,
        )

    def _stage(self, subcommand: str, options: Options, listed: list[str] | None) -> None:
        if options.flags & _STAGES_NOTHING:
            return
        excluded = {_EXCLUDED.sub("", path) for path in options.rest if _EXCLUDED.match(path)}
        if options.flags & _ALL_CHANGES or names_everything(options.rest):
            self.has_more = True
            self.excluded |= excluded
            for path in self.changed:
                self.staged += [] if any(_is_in(path, name) for name in excluded) else [path]
            return
        self.has_more = self.has_more or listed is None
        paths = [path for path in options.rest if not _EXCLUDED.match(path)] + (listed or [])
        self.excluded -= set(paths)
        self.removed -= set(paths)
        if subcommand in ("rm", "mv"):
            self.removed |= set(paths if subcommand == "rm" else paths[:-1])
        for path in paths:
            self.staged += self.within(path)

    def _reset(self, words: Sequence[str], options: Options) -> None:
        if "--soft" in options.flags:
            self.has_more = True  # stages the files of the commits that it undoes
            return
        paths = [*options.rest]
        if "--" in words:
            paths = [*words[words.index("--") + 1 :]]
        elif paths and self._is_revision(paths[0]):
            paths.pop(0)
        elif len(paths) == 1 and not self._may_be_file(paths[0]):
            self._doubt()
            return
        self._unstage(paths, options)

    def _is_revision(self, name: str) -> bool:
        is_staged = name in self.staged
        return not is_staged and (name in self.branches or bool(_REVISION.fullmatch(name)))

    def _may_be_file(self, name: str) -> bool:
        """Whether an operand of `git reset` is a path rather than a branch, by what is known."""
        is_known = any(_is_in(path, name) for path in (*self.staged, *self.changed))
        return is_known or name in _EVERYTHING or not may_be_folder(name) or name.endswith("/")

    def _unstage(self, paths: Sequence[str], options: Options) -> None:
        if options.flags & _CHOOSING:
            self._doubt()
        elif paths and not names_everything(paths):
            self.staged = [p for p in self.staged if not any(_is_in(p, name) for name in paths)]
            self.perhaps = [p for p in self.perhaps if not any(_is_in(p, name) for name in paths)]
        else:
            self.staged = []
            self.perhaps = []
            self.has_more = False

    def _doubt(self) -> None:
        """Takes note that the files that were staged may have been taken back."""
        self.perhaps += self.staged
        self.staged = []

    def _stash(self, options: Options) -> None:
        action, *paths = options.rest or ("push",)
        keeps = options.flags & {"--keep-index", "--?k"}
        if action in ("pop", "apply") and "--index" in options.flags:
            self.staged += self.put_aside
        if action in ("push", "save"):
            self.put_aside = [*self.staged]
        if action in ("push", "save") and not keeps:
            self._unstage(paths if action == "push" else (), options)


def _is_in(path: str, name: str) -> bool:
    """Whether a path is this file, in this folder, or matches this pattern of Git."""
    return path == name or path.startswith(f"{name.rstrip('/')}/") or fnmatch.fnmatch(path, name)
