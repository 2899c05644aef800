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


_UNSTEERED = "none"  # stands in the place of a head's name


def head_name(head: tuple[int, int] | None) -> str:
    """The name of a head, (layer, head), in a record: "3.5"; None is the unsteered model."""
    return _UNSTEERED if head is None else f"{head[0]}.{head[1]}"


class HeadScores(RecordModel):
    """A sample of a profile: its score without steering, and with each head steered alone."""

    method: str  # the stage; with `conversation`, the key of the record
    conversation: Number  # the sample's number
    scores: Scores  # by the `head_name` of the head that was steered
    # each distinct reply, with the names of the heads that gave it
    replies: Optional[dict[str, List[str]]] = None
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
