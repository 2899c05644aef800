"""The records of samples, which have scores and no dialog."""

from typing import Annotated, Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from holdfast.records.model import List, Number, Optional, OptionalList, RecordModel

Scores = Annotated[dict[str, float], Field(min_length=1)]


class Usage(RecordModel):
    """The tokens of a request."""

    read: int
    written: int


class TaskSample(RecordModel):
    """A sample of a task under one prompt or method."""

    method: str  # task and variant; with `conversation`, the key of the record
    conversation: Number  # the sample's number
    task: str
    variant: str
    draw: Number = 0  # of demonstrations; 0: none
    prompt: str = ""
    target: str = ""  # the right answer
    # of every continuation, under every prompt
    log_probabilities: OptionalList[List[float | None]] = ()
    scores: Scores  # by metric
    reply: Optional[str] = None
    stop_reason: Optional[str] = None
    tokens: Optional[Usage] = None
    fluency: float | None = None  # only of a reply that is to be fluent; None: it is too short
    seconds: float = 0

    @property
    def has_fluency(self) -> bool:
        """Whether the fluency of the reply counts, even if it is too short to have one."""
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
    scores: Scores  # by the head that was steered, or "none"
    # each distinct reply, with the heads that gave it
    replies: Optional[dict[str, List[str]]] = None
    seconds: float = 0
