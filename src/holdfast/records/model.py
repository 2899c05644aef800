"""The base of every record's model."""

from operator import not_
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")

Number = Annotated[int, Field(ge=0)]
Optional = Annotated[T | None, Field(exclude_if=lambda value: value is None)]  # left out if None
List = Annotated[tuple[T, ...], Field(strict=False)]  # a list in JSON
OptionalList = Annotated[tuple[T, ...], Field(strict=False, exclude_if=not_)]  # left out if empty


class RecordModel(BaseModel):
    """A record, or a part of one: frozen, with the types of its JSON.

    Fields that a newer version added are kept, and written again, but have no attribute of their
    own in the code.
    """

    model_config = ConfigDict(frozen=True, strict=True, extra="allow", allow_inf_nan=False)

    def to_json(self) -> dict[str, Any]:
        """The record as JSON values, fields in their order; absent ones are left out."""
        return self.model_dump()


class Failure(RecordModel):
    """A request that was not answered, as `failures.jsonl` has it."""

    method: str  # with `conversation`, the key of the record that is missing
    conversation: int
    why: str  # of `RequestFailed`
    reason: str
