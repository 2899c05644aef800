"""Examples that a method learns from, files of custom examples, and the result."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from torch import Tensor

from holdfast.chat.messages import Message, read_message
from holdfast.errors import HoldfastError, UsageError
from holdfast.files import read_json_lines

T = TypeVar("T")


@dataclass(frozen=True)
class Triplet:
    """A text with a part that one question asks for and another does not."""

    context: str
    answer: str  # the part of the context whose keys are compared, in its last occurrence
    relevant: str  # the questions, which are put before the text
    irrelevant: str

    def __post_init__(self) -> None:
        for name in ("context", "answer", "relevant", "irrelevant"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name).strip():
                raise UsageError(f"{name} is a text, not {getattr(self, name)!r}.")
        if self.answer not in self.context:
            raise UsageError(
                f"the answer {self.answer!r} does not occur in {self.context!r}.",
                option="answer",
                value=self.answer,
            )


@dataclass(frozen=True)
class Contrast:
    """Two chats; the first asks for what a reply should show, for example by a system prompt."""

    prompted: tuple[Message, ...]
    plain: tuple[Message, ...]

    def __post_init__(self) -> None:
        for name in ("prompted", "plain"):
            chat = getattr(self, name)
            if not chat:
                raise UsageError("a chat has at least one message.")
            read = tuple(read_message(number, message) for number, message in enumerate(chat, 1))
            object.__setattr__(self, name, read)


def read_triplets(path: Path | str) -> tuple[Triplet, ...]:
    """Reads lines {"context", "answer", "relevant", "irrelevant"}."""
    return tuple(_lines(Path(path), lambda line: Triplet(**line)))


def read_contrasts(path: Path | str) -> tuple[Contrast, ...]:
    """Reads lines {"prompted": [messages], "plain": [messages]}."""
    return tuple(
        _lines(Path(path), lambda line: Contrast(tuple(line["prompted"]), tuple(line["plain"])))
    )


def _lines(path: Path, make: Callable[[dict[str, Any]], T]) -> Iterator[T]:
    count = 0
    for number, value in read_json_lines(path):
        try:
            yield make(value)
        except (ValueError, TypeError, KeyError, HoldfastError) as error:
            raise UsageError(
                f"Line {number} of {str(path)!r} is no example ({type(error).__name__}: {error});"
                " see `holdfast docs methods` for its form.",
                option=str(path),
                value=number,
            ) from None
        count += 1
    if not count:
        raise UsageError(
            f"The data {str(path)!r} has no lines; write at least one example.",
            option="data",
            value=str(path),
        )


@dataclass(frozen=True)
class Learned:
    """Tensors learned for a method on a model, float32; their first dimension is `layers`."""

    tensors: Mapping[str, Tensor]
    layers: tuple[int, ...]
    chosen: tuple[int, ...]  # the layers that are steered unless others are named
    of_keys: bool = False  # whether the tensors are per key head
    facts: Mapping[str, Any] = field(default_factory=dict)  # further facts to write to the file
