"""The commits that an agent makes in a turn, as far as the log shows them.

For example:

    git add a.py; git commit -m "fix: b"
    -> Commit(CommitMessage("fix: b"), CommitFiles(("a.py",)))
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from holdfast.measures.agent_acts.actions import actions_of
from holdfast.measures.agent_acts.agent_action import Action
from holdfast.measures.agent_acts.agent_tools import MESSAGES, first_text, normalised_fields
from holdfast.measures.agent_acts.commands.command_options import ParsedOptions, options_of
from holdfast.measures.agent_acts.git.commit_actions import calls_since_commit, is_commit
from holdfast.measures.agent_acts.git.git_commands import (
    ASKS_FOR_EACH_CHANGE,
    folder_of,
    listed_paths,
)
from holdfast.measures.agent_acts.git.pathspecs import names_everything, operands_in
from holdfast.measures.agent_acts.git.staged_files import StagedFiles
from holdfast.measures.agent_acts.git.staging_commands import apply_action
from holdfast.measures.agent_acts.written_texts import WrittenTexts, text_of_argument, text_of_file
from holdfast.measures.turns import AssistantTurn, ToolCall

# --- A commit

# the line that `--signoff` adds; no log shows the committer's name, so any name stands for it
SIGN_OFF = "Signed-off-by: Author <author@example.com>"
_ENDS_WITH_TRAILER = re.compile(r"\n[A-Za-z][\w-]*: [^\n]*\Z")


@dataclass(frozen=True)
class CommitMessage:
    """The message of a commit.

    Args:
        text: None if the log does not show it.
        is_worded: whether the agent gives a message, or opens an editor for it.
        lacks_subject: whether the text stands below a subject that the log does not show, as that
            of a fixup.
        trailers: the trailers that options add to the message.
        is_signed_off: whether `--signoff` adds a trailer with the committer's name.
    """

    text: str | None
    is_worded: bool
    lacks_subject: bool = False
    trailers: tuple[str, ...] = ()
    is_signed_off: bool = False

    def text_for(self, pattern: str) -> str | None:
        """Returns the message with its trailers; None if the log does not show all of it.

        The line of `--signoff` is left out for a pattern that does not name it. So a rule that
        messages have one line can be kept by a commit that is signed off.
        """
        if self.text is None or self.lacks_subject:
            return None
        trailers = list(self.trailers)
        if self.is_signed_off and _names_sign_off(pattern):
            trailers.append(SIGN_OFF)
        message = self.text.strip()
        if not trailers:
            return message
        separator = "\n" if _ENDS_WITH_TRAILER.search(message) else "\n\n"
        return message + separator + "\n".join(trailers)

    def lines_below(self) -> list[str]:
        """Returns the lines below the subject, with the trailers, as far as the log shows them."""
        lines = (self.text or "").strip().splitlines()[0 if self.lacks_subject else 1 :]
        return [*lines, *self.trailers, *([SIGN_OFF] if self.is_signed_off else [])]

    def may_fit(self, pattern: str) -> bool:
        """Whether a pattern that does not match might, if the committer's name were known."""
        return self.is_signed_off and _names_sign_off(pattern)


def _names_sign_off(pattern: str) -> bool:
    return "signed-off" in pattern.lower().replace("\\-", "-")


@dataclass(frozen=True)
class CommitFiles:
    """The files of a commit.

    Args:
        paths: the files and folders that were staged for it.
        possible_paths: files that may be in it or not.
        removed: those of the paths that the commit deletes.
        excluded: what was left out when all files were staged.
        is_all_shown: whether commands name all its files.
    """

    paths: tuple[str, ...]
    possible_paths: tuple[str, ...] = ()
    removed: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()
    is_all_shown: bool = True


@dataclass(frozen=True)
class Commit:
    """A commit that an agent makes."""

    message: CommitMessage
    files: CommitFiles


# --- The commits of a turn


def commits_in(turn: AssistantTurn) -> Iterator[Commit]:
    """Yields the commits of a turn; files may have been staged in earlier turns."""
    if not any(map(is_commit, actions_of(turn.calls))):
        return
    before = calls_since_commit(turn.earlier)
    texts = WrittenTexts(turn.earlier)
    files = StagedFiles()
    for action in actions_of([*before, *turn.calls]):
        is_earlier = action.position < len(before)
        apply_action(action, files, texts)
        texts.note([] if is_earlier else action.edits)
        if is_commit(action):
            if not is_earlier:
                yield _read_commit(action, files, texts)
            files = _staged_after_commit(action, files, texts)


def _staged_after_commit(action: Action, files: StagedFiles, texts: WrittenTexts) -> StagedFiles:
    """Returns the files that are still staged, or changed, after a commit."""
    if action.tool_call is not None:
        return StagedFiles(branches=files.branches)
    options = _commit_options(action)
    if _is_rewording(options):
        return files
    if options.flags & ASKS_FOR_EACH_CHANGE:
        return StagedFiles(changed=files.changed, branches=files.branches)
    if not _is_partial(options) or names_everything(options.rest):
        return StagedFiles(branches=files.branches)
    named = (*options.rest, *(listed_paths(options, action, texts) or ()))
    return files.after_commit_of(files.select(named).paths)


def _read_commit(action: Action, files: StagedFiles, texts: WrittenTexts) -> Commit:
    if action.tool_call is not None:
        return _commit_by_tool(action.tool_call, files)
    return _commit_by_command(action, files, texts)


def _commit_by_tool(call: ToolCall, staged: StagedFiles) -> Commit:
    """Reads the commit of a tool such as `git_commit`, whose message is an argument."""
    fields = normalised_fields(call.arguments)
    files = fields.get("files")
    entries = files if isinstance(files, list) else [files]  # one file may not be in a list
    paths = [path for path in entries if isinstance(path, str)]
    message = CommitMessage(first_text(fields, MESSAGES), is_worded=True)
    return Commit(message, CommitFiles((*staged.staged, *paths), is_all_shown=False))


def _commit_by_command(action: Action, files: StagedFiles, texts: WrittenTexts) -> Commit:
    options = _commit_options(action)
    return Commit(
        _read_message(action, options, texts),
        _read_files(options, files, listed_paths(options, action, texts)),
    )


# --- The options of a commit

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
_COMMIT_FLAGS = {
    "--all": "a",
    "--include": "i",
    "--only": "o",
    "--no-verify": "n",
    "--patch": "p",
    "--signoff": "s",
}
_ATTACHED_VALUE = re.compile(r"^(-[aeinpqsvz]*[Su]).+")  # -SKEY, -uno


def _commit_options(action: Action) -> ParsedOptions:
    words = [_ATTACHED_VALUE.sub(r"\1", word) for word in action.command.arguments[2:]]
    options = options_of(words, _VALUED_OPTIONS, _COMMIT_FLAGS)
    return replace(options, rest=operands_in(folder_of(action), options.rest))


def _is_partial(options: ParsedOptions) -> bool:
    """Whether a commit takes only the files that it names, and leaves others staged."""
    names_files = bool(options.rest) or "--pathspec-from-file" in options.values
    return names_files and options.flags.isdisjoint({"--include", *ASKS_FOR_EACH_CHANGE})


def _is_rewording(options: ParsedOptions) -> bool:
    """Whether a commit has no files, and only a new message for another commit."""
    return (options.last("--fixup") or "").startswith("reword:")


# --- Its message

_EDITED_FIXUPS = ("amend:", "reword:")  # of `--fixup`: these open an editor
_KEEP_OLD_MESSAGE = frozenset(("--reuse-message", "--fixup"))  # these open no editor


def _read_message(action: Action, options: ParsedOptions, texts: WrittenTexts) -> CommitMessage:
    message_options = options.values.get("--message", [])
    file = options.last("--file")
    text: str | None = None
    if file is not None:
        text = text_of_file(file, action, texts)
    elif message_options:
        text = _join_paragraphs([text_of_argument(part, texts) for part in message_options])
    has_message = file is not None or bool(message_options)
    is_edited_fixup = (options.last("--fixup") or "").startswith(_EDITED_FIXUPS)
    reuses_message = bool(_KEEP_OLD_MESSAGE & options.values.keys()) and not is_edited_fixup
    return CommitMessage(
        text,
        is_worded=has_message or not (reuses_message or "--no-edit" in options.flags),
        lacks_subject=not {"--fixup", "--squash"}.isdisjoint(options.values),
        trailers=tuple(options.values.get("--trailer", [])),
        is_signed_off="--signoff" in options.flags and "--no-signoff" not in options.flags,
    )


def _join_paragraphs(paragraphs: Sequence[str | None]) -> str | None:
    """Joins the texts of several options `-m`; None if the log does not show one of them."""
    texts = [text for text in paragraphs if text]
    return "\n\n".join(texts) if len(texts) == len(paragraphs) else None


# --- Its files


def _read_files(
    options: ParsedOptions, files: StagedFiles, listed: list[str] | None
) -> CommitFiles:
    """Returns the files of a commit.

    Args:
        listed: the paths in the file of `--pathspec-from-file`; None if they are not known.
    """
    if _is_rewording(options):
        return CommitFiles((), is_all_shown=True)
    selection = files.select((*options.rest, *(listed or ())))
    takes_all = "--all" in options.flags or selection.takes_all
    is_partial = _is_partial(options) and not takes_all
    has_more = listed is None or takes_all or "--amend" in options.flags
    paths: list[str] = [] if is_partial else [*files.staged]
    possible_paths: list[str] = [] if is_partial else [*files.possibly_staged]
    if options.flags & ASKS_FOR_EACH_CHANGE:
        possible_paths += selection.paths
        has_more = has_more or not selection.paths
    else:
        paths += selection.paths
    committed = {*selection.paths}
    if "--all" in options.flags:
        changed = [path for path in files.changed if path not in files.untracked]
        paths += changed
        committed |= {*changed}
    has_more = has_more or (files.has_more and not is_partial)
    return CommitFiles(
        tuple(paths),
        possible_paths=tuple(possible_paths),
        removed=frozenset(files.removed | (files.deleted & committed)),
        excluded=frozenset(files.excluded | (files.untracked - {*paths})) | selection.excluded,
        is_all_shown=bool(paths or possible_paths) and not has_more,
    )
