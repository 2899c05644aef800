"""The base of every record's model."""

from operator import not_
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")

Number = Annotated[int, Field(ge=0)]
# a value that the JSON leaves out if it is None
Optional = Annotated[T | None, Field(exclude_if=lambda value: value is None)]
# a tuple here, a list in JSON
List = Annotated[tuple[T, ...], Field(strict=False)]
# a list that the JSON leaves out if it is empty
OptionalList = Annotated[tuple[T, ...], Field(strict=False, exclude_if=not_)]


class RecordModel(BaseModel):
    """A record, or a part of one: frozen, with the types of its JSON.

    Fields that a newer version added are kept and written again, though the code does not declare
    them.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="allow", allow_inf_nan=False)

    def to_json(self) -> dict[str, Any]:
        """Returns the record as JSON values, in the order of its fields, without absent ones."""
        return self.model_dump()


class Failure(RecordModel):
    """A request that failed, as `failures.jsonl` has it."""

    method: str  # with `conversation`, the key of the record that is missing
    conversation: int
    why: str  # "filter", "context" or "failure"
    reason: str  # the message of the error
