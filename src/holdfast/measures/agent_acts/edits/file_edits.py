"""The change that is made to a file, by a tool or by a command.

For example:

    replacement_edit("a.py", "x = 1\\ny = 1", "x = 2\\ny = 1")
    -> FileEdit("a.py", added=("x = 2",), removed=("x = 1",))
    whole_file_edit("a.py", "x = 2")
    -> FileEdit("a.py", added=("x = 2",), is_whole=True)
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class FileEdit:
    """A change of a file.

    Args:
        path: "" if the log does not show it.
        added: the text that it adds, in pieces of consecutive lines.
        removed: the text that it removes, in such pieces, as far as the log shows it.
        is_whole: whether the added text is then the whole file.
        is_shown: whether the log shows the added text.
        is_folder: whether it may be a folder that is moved or deleted with all its files.
        is_new: whether the log says that the file was created.
        takes_back: whether it only undoes changes that were not committed, as `git restore` does.
    """

    path: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    is_whole: bool = False
    is_shown: bool = True
    is_folder: bool = False
    is_new: bool = False
    takes_back: bool = False

    @property
    def writes(self) -> bool:
        """Whether it puts text into the file; moving and deleting do not."""
        return bool(self.added) or not self.is_shown


def whole_file_edit(path: str, text: str) -> FileEdit:
    """Returns the edit that writes a file as a whole; of a notebook, the text of its cells."""
    if path.endswith(".ipynb"):
        text = _text_of_notebook(text)
    return FileEdit(path, (text,), is_whole=True)


def _text_of_notebook(text: str) -> str:
    """Returns the text of a notebook's cells, or the text as it is if it is not a notebook."""
    try:
        cells = json.loads(text)["cells"]
        sources = [cell["source"] for cell in cells]
        texts = (source if isinstance(source, str) else "".join(source) for source in sources)
        return "\n\n".join(texts)
    except (ValueError, TypeError, KeyError, RecursionError):
        return text


def replacement_edit(path: str, old: str, new: str) -> FileEdit:
    """Returns the edit that puts a text in place of another.

    Lines that both texts have are neither added nor removed.
    """
    if not old:
        return FileEdit(path, (new,) if new else ())
    before = old.splitlines()
    after = new.splitlines()
    return FileEdit(path, _pieces(after, before), _pieces(before, after))


def _pieces(lines: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """Returns the lines that are not among `others`, joining those that follow each other."""
    unmatched = Counter(others)
    pieces = list[list[str]]()
    continues_piece = False
    for line in lines:
        if unmatched[line]:
            unmatched[line] -= 1
            continues_piece = False
            continue
        if not continues_piece:
            pieces.append([])
        pieces[-1].append(line)
        continues_piece = True
    return tuple("\n".join(piece) for piece in pieces)


def hidden_edit(path: str) -> FileEdit:
    """Returns a change whose text the log does not show."""
    return FileEdit(path, is_shown=False)
