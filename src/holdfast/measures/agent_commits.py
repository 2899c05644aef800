"""The commits that an agent makes in a turn, as far as the log shows them."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from holdfast.measures.actions import Action, actions_of, calls_since_commit, is_commit
from holdfast.measures.agent_tools import MESSAGES, fields_of, first_text
from holdfast.measures.command_options import Options, options_of
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
        added = "\n".join([*self.trailers, *([SIGN_OFF] if signs else [])])
        message = self.message.strip()
        separator = "\n" if _ENDS_WITH_TRAILER.search(message) else "\n\n"
        return f"{message}{separator}{added}" if added else message

    def may_fit(self, pattern: str) -> bool:
        """Whether a pattern that does not match could, for the name of the committer."""
        return self.is_signed_off and _names_sign_off(pattern)


def _names_sign_off(pattern: str) -> bool:
    return "signed-off" in pattern.lower().replace("\\-", "-")


SIGN_OFF = "Signed-off-by: Author <author@example.com>"
_ENDS_WITH_TRAILER = re.compile(r"\n[A-Za-z][\w-]*: [^\n]*\Z")

_VALUED = {
    **{"--message": "m", "--file": "F", "--author": "", "--date": "", "--trailer": ""},
    **{"--reuse-message": "C", "--reedit-message": "c", "--fixup": "", "--squash": ""},
    **{"--template": "t", "--cleanup": "", "--pathspec-from-file": ""},
}
_OLD_MESSAGES = frozenset(("--reuse-message", "--fixup"))  # which open no editor
_EVERYTHING = frozenset((".", "*", ":/", "./"))
_STAGING = {"--all": "A", "--update": "u", "--patch": "p", "--staged": "S"}
_ALL_CHANGES = frozenset(("--all", "--update", "--patch"))
_REVISION = re.compile(  # such as HEAD, main, 1f2e3d4 or topic~2; other names may be of files
    r"(HEAD|ORIG_HEAD|FETCH_HEAD|@|main|master|origin/.+|[0-9a-f]{7,40})([~^@].*)?"
    r"|.+(~\d*|\^\d*|@\{.+\})"
)
_COMMIT_FLAGS = {"--all": "a", "--include": "i", "--no-verify": "n", "--signoff": "s"}
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
        options = options_of(words[2:], {}, _STAGING)
        if words[1] in ("add", "stage", "rm", "mv"):
            if options.flags & _ALL_CHANGES or not _EVERYTHING.isdisjoint(options.rest):
                self.has_more = True
                self.staged += self.changed
            else:
                self.staged += options.rest
        elif words[1] == "reset" and "--soft" in options.flags:
            self.has_more = True  # the files of the commits that are undone
        elif words[1] == "reset" or (words[1] == "restore" and "--staged" in options.flags):
            self._unstage(options.rest)

    def _unstage(self, paths: Sequence[str]) -> None:
        names = {path for path in paths if path in self.staged or not _REVISION.fullmatch(path)}
        if names and names.isdisjoint(_EVERYTHING):
            self.staged = [path for path in self.staged if path not in names]
        else:
            self.staged = []
            self.has_more = False


def commits_in(turn: AssistantTurn) -> Iterator[Commit]:
    """The commits of a turn, with what was staged in earlier turns."""
    if not any(map(is_commit, actions_of(turn.calls))):
        return
    before = calls_since_commit(turn.earlier)
    texts = WrittenTexts(turn.earlier)
    index = _Index()
    for action in actions_of([*before, *turn.calls]):
        is_earlier = action.position < len(before)
        index.apply(action)
        texts.note([] if is_earlier else action.edits)
        if is_commit(action):
            if not is_earlier:
                yield _commit(action, index, texts)
            index = _after_commit(action, index)


def _commit_by_tool(action: Action, index: _Index) -> Commit:
    """The commit of a tool, whose message is an argument."""
    fields = fields_of(json.loads(action.command.words[1]))
    paths = (*index.staged, *(p for p in fields.get("files") or () if isinstance(p, str)))
    return Commit(
        message=first_text(fields, MESSAGES),
        is_worded=True,
        trailers=(),
        is_signed_off=False,
        paths=paths,
        is_all_shown=False,
    )


def _commit(action: Action, index: _Index, texts: WrittenTexts) -> Commit:
    if not action.is_shell:
        return _commit_by_tool(action, index)
    options = _commit_options(action)
    message_options = options.values.get("--message", [])
    file = options.last("--file")
    message: str | None = None
    if file is not None:
        message = text_of_file(file, action, texts)
    elif message_options:
        message = _joined([shown_text(text, texts) for text in message_options])
    takes_all = "--all" in options.flags or not _EVERYTHING.isdisjoint(options.rest)
    paths = list(options.rest)
    if takes_all or not _is_partial(options):
        paths += index.staged
    if takes_all:
        paths += index.changed
    has_message = file is not None or bool(message_options)
    reuses_message = bool(_OLD_MESSAGES & options.values.keys()) or "--no-edit" in options.flags
    stages_more = index.has_more and not _is_partial(options)
    has_more = stages_more or takes_all or "--amend" in options.flags
    return Commit(
        message=message,
        is_worded=has_message or not reuses_message,
        trailers=tuple(options.values.get("--trailer", [])),
        is_signed_off="--signoff" in options.flags and "--no-signoff" not in options.flags,
        paths=tuple(paths),
        is_all_shown=bool(paths) and not has_more,
    )


def _commit_options(action: Action) -> Options:
    words = [_KEY_OR_MODE.sub(r"\1", word) for word in action.command.arguments[2:]]
    return options_of(words, _VALUED, _COMMIT_FLAGS)


def _is_partial(options: Options) -> bool:
    """Whether a commit names its files, and leaves others staged."""
    return bool(options.rest) and "--include" not in options.flags


def _after_commit(action: Action, index: _Index) -> _Index:
    """The files that are still staged, or changed, after a commit."""
    if not action.is_shell:
        return _Index()
    options = _commit_options(action)
    if not _is_partial(options) or not _EVERYTHING.isdisjoint(options.rest):
        return _Index()
    return _Index(
        staged=[path for path in index.staged if path not in options.rest],
        changed=[path for path in index.changed if path not in options.rest],
        has_more=index.has_more,
    )


def _joined(paragraphs: Sequence[str | None]) -> str | None:
    """The message of several options `-m`; None if the log does not show one of them."""
    texts = [text for text in paragraphs if text]
    return "\n\n".join(texts) if len(texts) == len(paragraphs) else None
