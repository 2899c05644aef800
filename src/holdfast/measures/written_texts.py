"""Texts that the arguments of commands stand for: those of files that the agent wrote before."""

import re
from collections.abc import Sequence

from holdfast.measures.actions import Action, edits_of, mentions
from holdfast.measures.edit_texts import FileEdit
from holdfast.measures.turns import ToolCall


class WrittenTexts:
    """The texts of files that were written as a whole, as far as the log shows them."""

    def __init__(self, calls: Sequence[ToolCall]):
        self._calls = calls  # of which only those are parsed that mention a file
        self._edits: list[FileEdit] = []

    def note(self, edits: Sequence[FileEdit]) -> None:
        """Adds later changes."""
        self._edits += edits

    def of(self, path: str) -> str | None:
        """The text of a file; None if it is not known."""
        text: str | None = None
        calls = [call for call in self._calls if mentions(call, path)]
        for edit in [*edits_of(calls), *self._edits]:
            if edit.path == path or edit.path.endswith(f"/{path.removeprefix('./')}"):
                text = "\n".join(edit.added) if edit.is_whole and edit.is_shown else None
        return text


_READ = re.compile(r"\$\((?:cat |<) *([^\s$`;|&]+) *\)\s*")
_EXPANDED = re.compile(r"\$\{?\w+\}?|\$\(.*\)|`.*`", re.DOTALL)


def shown_text(word: str | None, texts: WrittenTexts) -> str | None:
    """The text of an argument; None if it is nothing but an expansion that is not known."""
    if word is not None and (read := _READ.fullmatch(word)):
        return texts.of(read[1])
    return None if word is None or _EXPANDED.fullmatch(word) else word


def text_of_file(file: str, action: Action, texts: WrittenTexts) -> str | None:
    """The text of a file, for which the words of a command may already have its text."""
    text = action.command.input
    if file == text or any(character.isspace() for character in file.strip()):
        return file
    return texts.of(file)
