"""Examples that a method learns from, files of custom examples, and the result."""

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
    """A text with a part that one question asks for and another does not."""

    context: str
    answer: str  # the part of the context whose keys are compared, in its last occurrence
    relevant: str  # the questions, which are put before the text
    irrelevant: str

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
    """Two chats; the first asks for what a reply should show, for example by a system prompt."""

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


def read_triplets(path: Path | str) -> tuple[Triplet, ...]:
    """Reads a JSONL file of `TripletLine`s."""

    def triplet(line: TripletLine) -> Triplet:
        return Triplet(line.context, line.answer, line.relevant, line.irrelevant)

    return _read(path, TripletLine, triplet)


def read_contrasts(path: Path | str) -> tuple[Contrast, ...]:
    """Reads a JSONL file of `ContrastLine`s."""

    def contrast(line: ContrastLine) -> Contrast:
        return Contrast(tuple(line.prompted), tuple(line.plain))

    return _read(path, ContrastLine, contrast)


def _read(
    path: Path | str, model: type[Line], make: Callable[[Line], Example]
) -> tuple[Example, ...]:
    """The examples that are made of the lines of a file; a `UsageError` names the line at fault."""
    examples: list[Example] = []
    for number, value in read_json_lines(path):
        try:
            examples.append(make(model.model_validate(value)))
        except ValidationError as error:
            problem = problem_of(error, model, value, lambda path: format_path(path) or "the line")
            raise _refused(path, number, problem.sentence) from None
        except HoldfastError as error:
            raise _refused(path, number, str(error)) from None
    if not examples:
        raise UsageError(
            f"The data {str(path)!r} has no lines; write at least one example.",
            option="data",
            value=str(path),
        )
    return tuple(examples)


def _refused(path: Path | str, number: int, why: str) -> UsageError:
    """The refusal of a line; `why` is a sentence."""
    return UsageError(
        f"Line {number} of {str(path)!r} is no example: {why} `holdfast docs methods` shows its"
        " form.",
        option=str(path),
        value=number,
    )


@dataclass(frozen=True)
class Learned:
    """Tensors learned for a method on a model, float32; their first dimension is `layers`."""

    tensors: Mapping[str, Tensor]
    layers: tuple[int, ...]
    chosen: tuple[int, ...]  # the layers that are steered unless others are named
    of_keys: bool = False  # whether the tensors are per key head
    facts: Mapping[str, Any] = field(default_factory=dict)  # further facts to write to the file
