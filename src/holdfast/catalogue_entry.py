"""One line of `holdfast methods` or `holdfast measures`."""

from typing import NamedTuple


class CatalogueEntry(NamedTuple):
    """A method or a measure in one line.

    Attributes:
        name: its name in a spec.
        arguments: the names of its arguments; a measure's optional ones as "name=default".
        summary: a sentence on what it does.
    """

    name: str
    arguments: tuple[str, ...]
    summary: str

    @property
    def signature(self) -> str:
        """The name with the arguments, such as 'contains(words, all=true)', or the name alone."""
        return f"{self.name}({', '.join(self.arguments)})" if self.arguments else self.name
