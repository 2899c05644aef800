"""The entry of a method or a measure in the list that a command prints."""

from typing import NamedTuple


class CatalogueEntry(NamedTuple):
    """A method or a measure in one line.

    Attributes:
        name: as a spec has it.
        arguments: the names of its arguments, of a measure with their values or defaults.
        summary: a sentence on what it does.
    """

    name: str
    arguments: tuple[str, ...]
    summary: str

    @property
    def signature(self) -> str:
        """'contains(words, all=true)', or the name if it takes no arguments."""
        return f"{self.name}({', '.join(self.arguments)})" if self.arguments else self.name
