"""The examples that a method learns from, reading them from files, and what it learns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ConfigDict, ValidationError
from torch import Tensor

from holdfast.chat.messages import Message, read_message
from holdfast.errors import HoldfastError, UsageError
from holdfast.files import read_json_lines
from holdfast.validation.pydantic_errors import StrictModel, format_path, problem_of


@dataclass(frozen=True)
class Triplet:
    """A text, and two questions to put before it, of which only one asks for a part of the text."""

    context: str
    answer: str  # the part of the context; its keys are compared, where it last occurs
    relevant: str  # the question that asks for this part
    irrelevant: str  # the other question

    def __post_init__(self) -> None:
        for name in ("context", "answer", "relevant", "irrelevant"):
            text = getattr(self, name)
            if not isinstance(text, str):
                raise UsageError(f"{name} is a text, not {text!r}.", option=name)
            if not text.strip():
                raise UsageError(f"{name} is blank; give a text.", option=name)
        if self.answer not in self.context:
            raise UsageError(
                f"the answer {self.answer!r} does not occur in {self.context!r}.",
                option="answer",
                value=self.answer,
            )


@dataclass(frozen=True)
class Contrast:
    """Two chats, of which only the first asks for a behaviour, for example by a system prompt."""

    prompted: tuple[Message, ...]
    plain: tuple[Message, ...]

    def __post_init__(self) -> None:
        for name in ("prompted", "plain"):
            chat = getattr(self, name)
            if not chat:
                raise UsageError("a chat has at least one message.")
            messages = [read_message(number, message) for number, message in enumerate(chat, 1)]
            object.__setattr__(self, name, tuple(messages))


class TripletLine(StrictModel):
    """A line of a file of triplets."""

    context: str
    answer: str
    relevant: str
    irrelevant: str


class ContrastLine(StrictModel):
    """A line of a file of contrasts; further fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    prompted: list[dict[str, Any]]
    plain: list[dict[str, Any]]


Line = TypeVar("Line", TripletLine, ContrastLine)
Example = TypeVar("Example", Triplet, Contrast)


@dataclass(frozen=True)
class Learned:
    """The result of fitting a method on a model."""

    tensors: Mapping[str, Tensor]  # float32, [layer, ...]
    layers: tuple[int, ...]  # the numbers of these layers
    chosen: tuple[int, ...]  # the layers that are steered unless the user names others
    of_keys: bool = False  # whether the tensors are per key head
    facts: Mapping[str, Any] = field(default_factory=dict)  # further facts to write to the file


def read_triplets(path: Path | str) -> tuple[Triplet, ...]:
    """Reads a JSON Lines file of triplets; raises a `UsageError` that names the line at fault."""

    def triplet(line: TripletLine) -> Triplet:
        return Triplet(line.context, line.answer, line.relevant, line.irrelevant)

    return _read(path, TripletLine, triplet)


def read_contrasts(path: Path | str) -> tuple[Contrast, ...]:
    """Reads a JSON Lines file of contrasts; raises a `UsageError` that names the line at fault."""

    def contrast(line: ContrastLine) -> Contrast:
        return Contrast(tuple(line.prompted), tuple(line.plain))

    return _read(path, ContrastLine, contrast)


def _read(
    path: Path | str, model: type[Line], make: Callable[[Line], Example]
) -> tuple[Example, ...]:
    """Reads the lines of a file as `model`, and makes an example of each."""
    examples: list[Example] = []
    for number, value in read_json_lines(path):
        try:
            examples.append(make(model.model_validate(value)))
        except ValidationError as error:
            problem = problem_of(error, model, value, lambda path: format_path(path) or "the line")
            raise _refuse_line(path, number, problem.sentence) from None
        except HoldfastError as error:
            raise _refuse_line(path, number, str(error)) from None
    if not examples:
        raise UsageError(
            f"The data {str(path)!r} has no lines; write at least one example.",
            option="data",
            value=str(path),
        )
    return tuple(examples)


def _refuse_line(path: Path | str, number: int, sentence: str) -> UsageError:
    """Makes the error for a line; the sentence says what is wrong with it."""
    return UsageError(
        f"Line {number} of {str(path)!r} is no example: {sentence} `holdfast docs methods` shows"
        " the form of a line.",
        option=str(path),
        value=number,
    )
