"""What a chat shows: colours and columns on a terminal, plain lines elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from holdfast.cli.chat.dialog import Heard

_NARROWEST = 36  # characters of a column that can be read
_ENDINGS = {  # what is said of a reply that did not simply end
    "stopped": "stopped",
    "length": "cut off at --max-new-tokens, or where the model's context ends",
    "empty": "no content",
    "refusal": "a refusal",
    "tool_calls": "a tool was called",
}

Tell = Callable[[int, str], None]


class Screen:
    """The standard output; notices go to the error output where it is no terminal."""

    def __init__(self) -> None:
        self._console = _console()
        self._notices = self._console if self.terminal else _console(stderr=True)

    @property
    def terminal(self) -> bool:
        """Whether someone looks at it."""
        return self._console.is_terminal

    @property
    def width(self) -> int:
        """Characters of a line."""
        return self._console.width

    def notice(self, text: str) -> None:
        """Says something of the chat itself."""
        self._notices.print(Text(printable(text), "dim"))

    def refuse(self, text: str) -> None:
        """Says what was refused, and why."""
        self._notices.print(Text(printable(text), "red"))

    def heading(self, text: str) -> None:
        """Names what follows."""
        self._console.print(Text(printable(text), "bold"))

    def line(self, text: str) -> None:
        """Prints a line as it is."""
        self._console.print(Text(printable(text)))

    @contextmanager
    def reply(self) -> Iterator[Tell]:
        """Shows a reply piece by piece."""

        def tell(number: int, piece: str) -> None:
            self._console.file.write(printable(piece))
            self._console.file.flush()

        try:
            yield tell
        finally:
            self._console.file.write("\n")
            self._console.file.flush()

    def ending(self, heard: Heard) -> None:
        """Says why a reply ended, where that is worth saying."""
        if heard.ending in _ENDINGS:
            self.notice(f"({_ENDINGS[heard.ending]})")

    def has_room_for(self, columns: int) -> bool:
        """Whether so many replies can be read side by side."""
        return self.terminal and self.width >= columns * _NARROWEST

    @contextmanager
    def columns(self, headings: Sequence[str]) -> Iterator[Tell]:
        """Shows replies side by side, piece by piece; at last all of them stand there whole."""
        texts = ["" for _ in headings]

        def table() -> Table:
            made = Table(expand=True, show_lines=False)
            for heading in headings:
                made.add_column(Text(heading), ratio=1)
            made.add_row(*map(Text, texts))
            return made

        with Live(console=self._console, transient=True, auto_refresh=False) as live:

            def tell(number: int, piece: str) -> None:
                texts[number] += printable(piece)
                live.update(table(), refresh=True)

            yield tell
        self._console.print(table(), soft_wrap=False)


def _console(*, stderr: bool = False) -> Console:
    """One that shows text as it is: a reply may hold what a terminal's markup would eat."""
    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def printable(text: str) -> str:
    """Text that no terminal obeys: control characters but tabs and line breaks, and half pairs of
    surrogates, become spaces.
    """
    return "".join(ch if ch in "\t\n" or ch.isprintable() else " " for ch in text)
