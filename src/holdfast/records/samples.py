"""The records of samples, which have scores and no dialog."""

from typing import Annotated, Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from holdfast.records.model import List, Number, Optional, OptionalList, RecordModel

_UNSTEERED = "none"  # in place of a head's name, for the unsteered model

Scores = Annotated[dict[str, float], Field(min_length=1)]


class TokenCounts(RecordModel):
    """The tokens of a request."""

    read: int
    written: int


class TaskSample(RecordModel):
    """A sample of a task under one prompt or method."""

    method: str  # task and variant; with `conversation`, the key of the record
    conversation: Number  # the sample's number
    task: str
    variant: str
    draw: Number = 0  # the number of the draw of demonstrations; 0 if there are none
    prompt: str = ""
    target: str = ""  # the right answer
    log_probabilities: OptionalList[List[float | None]] = ()  # [prompt][continuation]
    scores: Scores  # by metric
    reply: Optional[str] = None
    stop_reason: Optional[str] = None
    tokens: Optional[TokenCounts] = None
    # set only for a reply that is meant to be fluent: None then means that it is too short
    fluency: float | None = None
    seconds: float = 0

    @property
    def has_fluency(self) -> bool:
        """Whether the reply is meant to be fluent, even if it is too short to have a fluency."""
        return "fluency" in self.model_fields_set

    @model_serializer(mode="wrap")
    def _without_fluency(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = serialize(self)
        if not self.has_fluency:
            fields.pop("fluency", None)
        return fields


class HeadScores(RecordModel):
    """A sample of a profile: its score without steering, and with each head steered alone."""

    method: str  # the stage; with `conversation`, the key of the record
    conversation: Number  # the sample's number
    scores: Scores  # by the `head_name` of the head that was steered
    replies: Optional[dict[str, List[str]]] = None  # the heads that gave each distinct reply
    seconds: float = 0

    @property
    def unsteered(self) -> float:
        """The score without steering."""
        return self.scores[_UNSTEERED]

    @property
    def by_head(self) -> dict[tuple[int, int], float]:
        """The score with each head steered alone, by (layer, head)."""
        heads = {}
        for name, score in self.scores.items():
            if name != _UNSTEERED:
                layer, head = name.split(".")
                heads[int(layer), int(head)] = score
        return heads


def head_name(head: tuple[int, int] | None) -> str:
    """Returns the name of a head in a record: "3.5" for (3, 5); None is the unsteered model."""
    return _UNSTEERED if head is None else f"{head[0]}.{head[1]}"
