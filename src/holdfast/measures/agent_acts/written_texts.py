"""Finds the texts that the arguments of commands stand for, such as those of files.

For example:

    gh pr create --body-file body.md  ->  the text that the agent wrote to body.md before
    git commit -m "$(cat msg.txt)"    ->  the text that it wrote to msg.txt
"""

import re
from collections.abc import Sequence

from holdfast.measures.agent_acts.actions import edits_of
from holdfast.measures.agent_acts.agent_action import Action
from holdfast.measures.agent_acts.edits.file_edits import FileEdit
from holdfast.measures.turns import ToolCall

# "$(cat msg.txt)", "$(< msg.txt)"
_READ_FILE = re.compile(r"\$\((?:cat |<) *(?P<file>[^\s$`;|&]+) *\)\s*")
_EXPANSION = re.compile(r"\$\{?\w+\}?|\$\(.*\)|`.*`", re.DOTALL)  # $MESSAGE, $(date)


class WrittenTexts:
    """The texts of files that an agent wrote as a whole, as far as the log shows them.

    Args:
        calls: the earlier calls, of which only those that mention a file are parsed.
    """

    def __init__(self, calls: Sequence[ToolCall]):
        self._calls = calls
        self._edits: list[FileEdit] = []

    def note(self, edits: Sequence[FileEdit]) -> None:
        """Takes note of later changes."""
        self._edits += edits

    def of(self, path: str) -> str | None:
        """Returns the text of a file; None if it is not known."""
        text: str | None = None
        calls = [call for call in self._calls if mentions(call, path)]
        for edit in [*edits_of(calls), *self._edits]:
            if edit.path == path or edit.path.endswith(f"/{path.removeprefix('./')}"):
                text = "\n".join(edit.added) if edit.is_whole and edit.is_shown else None
        return text


def text_of_argument(word: str | None, texts: WrittenTexts) -> str | None:
    """Returns the text of an argument; None if there is none, or it is an unknown expansion."""
    if word is None:
        return None
    if read := _READ_FILE.fullmatch(word):
        return texts.of(read["file"])
    return None if _EXPANSION.fullmatch(word) else word


def text_of_file(file: str, action: Action, texts: WrittenTexts) -> str | None:
    """Returns the text of a file that a command reads; None if it is not known.

    In place of the file's name, the words of a command may already have its text.
    """
    text = action.command.input
    if file == text or any(character.isspace() for character in file.strip()):
        return file
    return texts.of(file)


def mentions(call: ToolCall, path: str) -> bool:
    """Whether a path occurs in the arguments of a call."""
    texts = map(str, call.arguments.values())
    return any(path in text or path in text.replace("\\", "/") for text in texts)
