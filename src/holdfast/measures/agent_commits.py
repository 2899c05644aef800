"""The commits that an agent makes in a turn, as far as the log shows them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from holdfast.measures.actions import Action, actions_of, calls_since_commit, is_commit
from holdfast.measures.agent_tools import MESSAGES, fields_of, first_text
from holdfast.measures.command_options import Options, options_of
from holdfast.measures.turns import AssistantTurn, ToolCall
from holdfast.measures.written_texts import WrittenTexts, text_of_argument, text_of_file

# the line that `--signoff` adds; no log shows the committer's name, so any name stands for it
SIGN_OFF = "Signed-off-by: Author <author@example.com>"
_ENDS_WITH_TRAILER = re.compile(r"\n[A-Za-z][\w-]*: [^\n]*\Z")

# options of `git commit` with an argument, and the letter of each
_VALUED_OPTIONS = {
    "--message": "m",
    "--file": "F",
    "--author": "",
    "--date": "",
    "--trailer": "",
    "--reuse-message": "C",
    "--reedit-message": "c",
    "--fixup": "",
    "--squash": "",
    "--template": "t",
    "--cleanup": "",
    "--pathspec-from-file": "",
}
_COMMIT_FLAGS = {"--all": "a", "--include": "i", "--no-verify": "n", "--signoff": "s"}
_KEEP_OLD_MESSAGE = frozenset(("--reuse-message", "--fixup"))  # these open no editor
_KEY_OR_MODE = re.compile(r"^(-[aeinpqsvz]*[Su]).+")  # -SKEY and -uno: the argument is attached
# flags of the commands that stage files
_STAGING_FLAGS = {"--all": "A", "--update": "u", "--patch": "p", "--staged": "S"}
_ALL_CHANGES = frozenset(("--all", "--update", "--patch"))
_EVERYTHING = frozenset((".", "*", ":/", "./"))
# a revision such as HEAD, main, 1f2e3d4 or topic~2; other names may be those of files
_REVISION = re.compile(
    r"(HEAD|ORIG_HEAD|FETCH_HEAD|@|main|master|origin/.+|[0-9a-f]{7,40})([~^@].*)?"
    r"|.+(~\d*|\^\d*|@\{.+\})"
)


@dataclass(frozen=True)
class Commit:
    """A commit that an agent makes.

    Args:
        message: None if the log does not show it.
        is_worded: whether the agent gives a message, or opens an editor for it.
        trailers: the trailers that options add to the message.
        is_signed_off: whether `--signoff` adds a trailer with the committer's name.
        paths: the files and folders that were staged for it.
        is_all_shown: whether `paths` are all its files, as far as commands say.
    """

    message: str | None
    is_worded: bool
    trailers: tuple[str, ...]
    is_signed_off: bool
    paths: tuple[str, ...]
    is_all_shown: bool

    def message_for(self, pattern: str) -> str | None:
        """Returns the message with its trailers; None if the log does not show it.

        The line of `--signoff` is left out for a pattern that does not name it. So a rule that
        messages have one line can be kept by a commit that is signed off.
        """
        if self.message is None:
            return None
        trailers = list(self.trailers)
        if self.is_signed_off and _names_sign_off(pattern):
            trailers.append(SIGN_OFF)
        message = self.message.strip()
        if not trailers:
            return message
        separator = "\n" if _ENDS_WITH_TRAILER.search(message) else "\n\n"
        return message + separator + "\n".join(trailers)

    def may_fit(self, pattern: str) -> bool:
        """Whether a pattern that does not match might, if the committer's name were known."""
        return self.is_signed_off and _names_sign_off(pattern)


def _names_sign_off(pattern: str) -> bool:
    return "signed-off" in pattern.lower().replace("\\-", "-")


def commits_in(turn: AssistantTurn) -> Iterator[Commit]:
    """Yields the commits of a turn; files may have been staged in earlier turns."""
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
                yield _read_commit(action, index, texts)
            index = _index_after_commit(action, index)


@dataclass
class _Index:
    """The files that are staged, and those changed since the last commit."""

    staged: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    has_more: bool = False  # whether files may be staged that no command names

    def apply(self, action: Action) -> None:
        """Takes note of the files that an action changes or stages."""
        self.changed += [edit.path for edit in action.edits if edit.path]
        words = action.command.arguments if action.is_shell else ()
        if words[:1] != ("git",) or len(words) < 2:
            return
        subcommand = words[1]
        options = options_of(words[2:], {}, _STAGING_FLAGS)
        if subcommand in ("add", "stage", "rm", "mv"):
            if options.flags & _ALL_CHANGES or not _EVERYTHING.isdisjoint(options.rest):
                self.has_more = True
                self.staged += self.changed
            else:
                self.staged += options.rest
        elif subcommand == "reset" and "--soft" in options.flags:
            self.has_more = True  # stages the files of the commits that it undoes
        elif subcommand == "reset" or (subcommand == "restore" and "--staged" in options.flags):
            self._unstage(options.rest)

    def _unstage(self, paths: Sequence[str]) -> None:
        names = {path for path in paths if path in self.staged or not _REVISION.fullmatch(path)}
        if names and names.isdisjoint(_EVERYTHING):
            self.staged = [path for path in self.staged if path not in names]
        else:
            self.staged = []
            self.has_more = False


def _index_after_commit(action: Action, index: _Index) -> _Index:
    """Returns the files that are still staged, or changed, after a commit."""
    if action.tool_call is not None:
        return _Index()
    options = _commit_options(action)
    if not _is_partial(options) or not _EVERYTHING.isdisjoint(options.rest):
        return _Index()
    return _Index(
        staged=[path for path in index.staged if path not in options.rest],
        changed=[path for path in index.changed if path not in options.rest],
        has_more=index.has_more,
    )


def _read_commit(action: Action, index: _Index, texts: WrittenTexts) -> Commit:
    if action.tool_call is not None:
        return _commit_by_tool(action.tool_call, index)
    return _commit_by_command(action, index, texts)


def _commit_by_tool(call: ToolCall, index: _Index) -> Commit:
    """Reads the commit of a tool such as `git_commit`, whose message is an argument."""
    fields = fields_of(call.arguments)
    files = fields.get("files")
    entries = files if isinstance(files, list) else [files]  # one file may not be in a list
    paths = [path for path in entries if isinstance(path, str)]
    return Commit(
        message=first_text(fields, MESSAGES),
        is_worded=True,
        trailers=(),
        is_signed_off=False,
        paths=(*index.staged, *paths),
        is_all_shown=False,
    )


def _commit_by_command(action: Action, index: _Index, texts: WrittenTexts) -> Commit:
    options = _commit_options(action)
    message_options = options.values.get("--message", [])
    file = options.last("--file")
    message: str | None = None
    if file is not None:
        message = text_of_file(file, action, texts)
    elif message_options:
        message = _join_paragraphs([text_of_argument(text, texts) for text in message_options])
    takes_all = "--all" in options.flags or not _EVERYTHING.isdisjoint(options.rest)
    paths = list(options.rest)
    if takes_all or not _is_partial(options):
        paths += index.staged
    if takes_all:
        paths += index.changed
    has_message = file is not None or bool(message_options)
    reuses_message = bool(_KEEP_OLD_MESSAGE & options.values.keys()) or "--no-edit" in options.flags
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
    return options_of(words, _VALUED_OPTIONS, _COMMIT_FLAGS)


def _is_partial(options: Options) -> bool:
    """Whether a commit takes only the files that it names, and leaves others staged."""
    return bool(options.rest) and "--include" not in options.flags


def _join_paragraphs(paragraphs: Sequence[str | None]) -> str | None:
    """Joins the texts of several options `-m`; None if the log does not show one of them."""
    texts = [text for text in paragraphs if text]
    return "\n\n".join(texts) if len(texts) == len(paragraphs) else None
