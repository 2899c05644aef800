"""The examples that a method learns from, reading them from files, and what it learns."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

from pydantic import ConfigDict, Field, ValidationError, field_validator, model_validator
from torch import Tensor

from holdfast.chat.messages import Message, read_message
from holdfast.errors import HoldfastError, UsageError
from holdfast.files import read_json_lines
from holdfast.validation.pydantic_errors import StrictModel, format_path, problem_of


class Triplet(StrictModel):
    """A text, and two questions to put before it, of which only one asks for a part of the text."""

    context: str
    answer: str  # the part of the context; its keys are compared, where it last occurs
    relevant: str  # the question that asks for this part
    irrelevant: str  # the other question

    @model_validator(mode="after")
    def _check(self) -> Self:
        for name, text in self:
            if not text.strip():
                raise UsageError(f"{name} is blank; give a text.", option=name)
        if self.answer not in self.context:
            raise UsageError(
                f"the answer {self.answer!r} does not occur in {self.context!r}.",
                option="answer",
                value=self.answer,
            )
        return self


class Contrast(StrictModel):
    """Two chats, of which only the first asks for a behaviour, for example by a system prompt."""

    model_config = ConfigDict(extra="ignore")

    prompted: tuple[Message, ...] = Field(strict=False)
    plain: tuple[Message, ...] = Field(strict=False)

    @field_validator("prompted", "plain")
    @classmethod
    def _read_messages(cls, chat: tuple[Message, ...]) -> tuple[Message, ...]:
        if not chat:
            raise UsageError("a chat has at least one message.")
        return tuple(read_message(number, message) for number, message in enumerate(chat, 1))


Example = TypeVar("Example", bound=StrictModel)


@dataclass(frozen=True)
class FitResult:
    """The result of fitting a method on a model."""

    tensors: Mapping[str, Tensor]  # float32, [layer, ...]
    layers: tuple[int, ...]  # the numbers of these layers
    default_layers: tuple[int, ...]  # the layers that are steered unless the user names others
    per_key_head: bool = False  # whether the tensors are per key head
    facts: Mapping[str, Any] = field(default_factory=dict)  # further facts to write to the file


def read_examples(path: Path | str, kind: type[Example]) -> tuple[Example, ...]:
    """Reads a JSON Lines file of examples; raises a `UsageError` that names the line at fault."""
    examples: list[Example] = []
    for number, value in read_json_lines(path):
        try:
            examples.append(kind.model_validate(value))
        except ValidationError as error:
            problem = problem_of(error, kind, value, lambda path: format_path(path) or "the line")
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
