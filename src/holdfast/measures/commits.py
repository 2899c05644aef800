"""Measures of the commits that an agent makes: their messages, and the files in them."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from holdfast.errors import UsageError
from holdfast.measures.actions import (
    Action,
    Globs,
    Pattern,
    actions_of,
    calls_since_commit,
    check_patterns,
    is_among,
    is_commit,
)
from holdfast.measures.command_options import options_of
from holdfast.measures.patterns import matches
from holdfast.measures.reasons import mismatch
from holdfast.measures.registry import Score, Undecided, WhenCut, measure
from holdfast.measures.turns import AssistantTurn
from holdfast.measures.written_texts import WrittenTexts, shown_text, text_of_file


@dataclass(frozen=True)
class Commit:
    """A commit that an agent makes.

    Args:
        message: None if the log does not show it.
        is_worded: whether the agent gives a message, or opens an editor for it.
        trailers: those that options add to the message.
        is_signed_off: whether `--signoff` adds the committer's, whose name no log shows.
        paths: the files and folders that were staged for it.
        is_all_shown: whether these are all, as far as commands say.
    """

    message: str | None
    is_worded: bool
    trailers: tuple[str, ...]
    is_signed_off: bool
    paths: tuple[str, ...]
    is_all_shown: bool

    def message_for(self, pattern: str) -> str | None:
        """The message with its trailers; None if the log does not show it.

        The line of `--signoff` is left out for a pattern that does not name it, so that a rule
        about messages of one line can be kept together with it.
        """
        if self.message is None:
            return None
        signs = self.is_signed_off and _names_sign_off(pattern)
        added = "\n".join([*self.trailers, *([_SIGN_OFF] if signs else [])])
        message = self.message.strip()
        separator = "\n" if _ENDS_WITH_TRAILER.search(message) else "\n\n"
        return f"{message}{separator}{added}" if added else message

    def may_fit(self, pattern: str) -> bool:
        """Whether a pattern that does not match could, for the name of the committer."""
        return self.is_signed_off and _names_sign_off(pattern)


def _names_sign_off(pattern: str) -> bool:
    return "signed-off" in pattern.lower().replace("\\-", "-")


_SIGN_OFF = "Signed-off-by: Author <author@example.com>"
_ENDS_WITH_TRAILER = re.compile(r"\n[A-Za-z][\w-]*: [^\n]*\Z")

_VALUED = {
    **{"--message": "m", "--file": "F", "--author": "", "--date": "", "--trailer": ""},
    **{"--reuse-message": "C", "--reedit-message": "c", "--fixup": "", "--squash": ""},
    **{"--template": "t", "--cleanup": "", "--pathspec-from-file": ""},
}
_EVERYTHING = (".", "*", ":/", "./")
_KEY_OR_MODE = re.compile(r"^(-[aeinpqsvz]*[Su]).+")  # of `-SKEY` and `-uno`


@dataclass
class _Index:
    """The files that are staged, and those that were changed since the last commit."""

    staged: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    has_more: bool = False  # such as everything that was changed

    def apply(self, action: Action) -> None:
        """Takes note of a command that stages files, and of changed files."""
        self.changed += [edit.path for edit in action.edits if edit.path]
        words = action.command.arguments if action.is_shell else ()
        if words[:1] != ("git",) or len(words) < 2:
            return
        options = options_of(words[2:], {}, {"--all": "A", "--update": "u", "--patch": "p"})
        if words[1] in ("add", "stage", "rm", "mv"):
            every = options.flags & {"--all", "--update", "--patch"}
            self._stage(options.rest, bool(every) or any(p in _EVERYTHING for p in options.rest))
        elif words[1] == "reset" or (words[1] == "restore" and "--staged" in options.flags):
            self._unstage(options.rest)

    def _stage(self, paths: Sequence[str], everything: bool) -> None:
        self.has_more = self.has_more or everything
        self.staged += self.changed if everything else paths

    def _unstage(self, paths: Sequence[str]) -> None:
        names = {path for path in paths if path != "HEAD"}
        some = bool(names) and names.isdisjoint(_EVERYTHING)
        self.staged = [path for path in self.staged if some and path not in names]
        self.has_more = self.has_more and some


def commits_in(turn: AssistantTurn) -> Iterator[Commit]:
    """The commits of a turn, with what was staged in earlier turns."""
    if not any(map(is_commit, actions_of(turn.calls))):
        return
    before, texts, index = calls_since_commit(turn.earlier), WrittenTexts(turn.earlier), _Index()
    for action in actions_of([*before, *turn.calls]):
        is_earlier = action.position < len(before)
        index.apply(action)
        texts.note([] if is_earlier else action.edits)
        if is_commit(action):
            if not is_earlier:
                yield _commit(action, index, texts)
            index = _Index()


def _commit_by_tool(action: Action, index: _Index) -> Commit:
    """The commit of a tool, whose message is an argument."""
    arguments = json.loads(action.command.words[1])
    message = arguments.get("message", arguments.get("commit_message"))
    paths = (*index.staged, *(p for p in arguments.get("files") or () if isinstance(p, str)))
    return Commit(
        message=message if isinstance(message, str) else None,
        is_worded=True,
        trailers=(),
        is_signed_off=False,
        paths=paths,
        is_all_shown=False,
    )


def _commit(action: Action, index: _Index, texts: WrittenTexts) -> Commit:
    if not action.is_shell:
        return _commit_by_tool(action, index)
    words = [_KEY_OR_MODE.sub(r"\1", word) for word in action.command.arguments[2:]]
    options = options_of(words, _VALUED, {"--all": "a", "--no-verify": "n", "--signoff": "s"})
    messages = [shown_text(text, texts) for text in options.values.get("--message", [])]
    message = "\n\n".join(text or "" for text in messages) if all(messages) else None
    if (file := options.last("--file")) is not None:
        message = text_of_file(file, action, texts)
    paths = [*index.staged, *options.rest]
    has_more = index.has_more
    if "--all" in options.flags:
        paths, has_more = [*paths, *index.changed], True
    given = bool(messages) or file is not None
    reused = {"--reuse-message", "--fixup", "--squash"} & options.values.keys()
    is_worded = given or not (reused or "--no-edit" in options.flags)
    trailers = tuple(options.values.get("--trailer", []))
    is_all_shown = bool(paths) and not has_more and "--amend" not in options.flags
    return Commit(
        message=message if given else None,
        is_worded=is_worded,
        trailers=trailers,
        is_signed_off="--signoff" in options.flags and "--no-signoff" not in options.flags,
        paths=tuple(paths),
        is_all_shown=is_all_shown,
    )


@measure(
    check=lambda pattern: check_patterns(pattern), when_cut=WhenCut.IF_BROKEN, reads_earlier=True
)
def commit_message(turn: AssistantTurn, pattern: Pattern) -> Score | Undecided | None:
    """Share of the turn's commit messages that match the regular expression; turns without a
    commit do not count.
    """
    commits = [commit for commit in commits_in(turn) if commit.is_worded]
    messages = [(commit, commit.message_for(pattern)) for commit in commits]
    shown = [message for _, message in messages if message is not None]
    others = [(commit, text) for commit, text in messages if text and not matches(pattern, text)]
    broken = [text for commit, text in others if not commit.may_fit(pattern)]
    if len(shown) - len(others) + len(broken) < len(messages) and not broken:
        return Undecided("the log does not show the message of a commit")
    if not messages:
        return None
    kept = "every message matches the rule's pattern"
    reason = mismatch("the message", broken[0], pattern) if broken else kept
    return Score(1 - len(broken) / len(shown), reason)


def _check(name: str, paths: Globs | None, trailer: str | None) -> None:
    check_patterns(trailer)
    if (paths is None) is (trailer is None):
        raise UsageError(
            f"The measure {name!r} takes either paths or a trailer; give one of the two.",
            value=name,
        )


@measure(
    check=lambda paths, trailer: _check("commit_includes", paths, trailer),
    when_cut=WhenCut.IF_BROKEN,
    reads_earlier=True,
)
def commit_includes(
    turn: AssistantTurn, paths: Globs | None = None, trailer: Pattern | None = None
) -> Score | Undecided | None:
    """Share of the turn's commits that include a file with one of these paths, or that have a line
    below the subject, such as a trailer, that the regular expression matches.
    """
    return _share(turn, paths, trailer, wanted=True)


@measure(
    check=lambda paths, trailer: _check("commit_excludes", paths, trailer),
    when_cut=WhenCut.IF_BROKEN,
    reads_earlier=True,
)
def commit_excludes(
    turn: AssistantTurn, paths: Globs | None = None, trailer: Pattern | None = None
) -> Score | Undecided | None:
    """Share of the turn's commits that include no file with one of these paths, or that have no
    line below the subject, such as a trailer, that the regular expression matches.
    """
    return _share(turn, paths, trailer, wanted=False)


def _share(
    turn: AssistantTurn, paths: Globs | None, trailer: str | None, wanted: bool
) -> Score | Undecided | None:
    commits = list(commits_in(turn))
    has = [
        _has_path(commit, paths) if paths is not None else _has_trailer(commit, trailer or "")
        for commit in commits
    ]
    if not commits:
        return None
    if None in has:
        what = "files" if paths is not None else "message"
        return Undecided(f"the log does not show the {what} of a commit")
    kept = sum(value is wanted for value in has)
    sought, broken = _sought(paths), len(has) - kept
    if not broken:
        return Score(1.0, f"{'every' if wanted else 'no'} commit includes {sought}")
    which = "the commit" if len(has) == 1 else f"{broken} of {len(has)} commits"
    verb = "without" if wanted else "with"
    return Score(
        kept / len(has), f"{which} {'was' if len(has) == 1 else 'were'} made {verb} {sought}"
    )


def _sought(paths: Globs | None) -> str:
    """The paths or the line that a rule wants or forbids in a commit, in words."""
    if paths is None:
        return "a line of the form that the rule names"
    return " or ".join([paths] if isinstance(paths, str) else paths)


def _has_path(commit: Commit, paths: Globs) -> bool | None:
    if any(is_among(path, paths) for path in commit.paths):
        return True
    return False if commit.is_all_shown else None


def _has_trailer(commit: Commit, trailer: str) -> bool | None:
    below = (commit.message or "").strip().splitlines()[1:]
    added = [*commit.trailers, *([_SIGN_OFF] if commit.is_signed_off else [])]
    if any(matches(trailer, line.strip()) for line in (*below, *added)):
        return True
    return None if commit.message is None or commit.may_fit(trailer) else False
