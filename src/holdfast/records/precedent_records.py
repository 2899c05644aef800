"""The records of `holdfast precedent`: replies after a history of kept or broken replies."""

from typing import Literal

from pydantic import Field

from holdfast.records.conversation import Agent, Tokens
from holdfast.records.model import List, Number, RecordModel

ReplyScores = dict[str, float | None]  # by rule; None for a reply that cannot be scored


class History(RecordModel):
    """The agent's replies in a history that was made to keep, or to break, its rules."""

    replies: List[str]
    scores: List[ReplyScores]  # one for each reply


class NextReply(RecordModel):
    """The reply to the last question, with a part of a history in view."""

    history: Literal["kept", "broken"]
    seen: Number  # how many replies of the history the model was shown
    prompted: bool  # whether the model was shown the system prompt too
    reply: str
    scores: ReplyScores
    stop_reason: str
    mass: float | None = None  # mean attention mass on the system prompt


class PrecedentChat(RecordModel):
    """The histories of one prompt, and the replies of the model after them."""

    method: str  # with `conversation`, the key of the record
    conversation: Number
    agent: Agent
    questions: List[str] = Field(min_length=2)  # those of the histories, then the last one
    kept: History
    broken: History
    next_replies: List[NextReply]
    tokens: Tokens = Tokens()  # those read and written, where they are counted
    seconds: float = 0
