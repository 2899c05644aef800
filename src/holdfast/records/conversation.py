"""The record of a conversation: its turns, and the scores of its probes.

A `Conversation` is a line of `records.jsonl`. Shortened:

    {"method": "none", "conversation": 0,
     "agent": {"id": "user_name-1", "category": "memorization",
               "system_prompt": "You are talking to Nancy. Hold on to this."},
     "user": {"id": "animal-3", "category": "multiple_choice", "system_prompt": "..."},
     "turns": [{"round": 1, "speaker": "user", "text": "Do you like yoga?", ...}, ...],
     "probes": [{"round": 1, "kind": "stability", "probe": 0, "question": "Tell me my name.",
                 "reply": "You are called Nancy.", "score": 1.0, "reason": "1 of 1 words occur",
                 "mass": 0.248769}, ...], ...}

Each model lists its fields in the order of the line. That is why `Turn`, `Probe`, `Unscored` and
`ProbeReply` repeat the fields that say how a reply came about (`mass` to `cut_at`): Pydantic would
put inherited ones first, but in a line they follow the text and its score.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from holdfast.records.cause_records import BreachCause, LoggedCompaction, RuleInContext
from holdfast.records.model import List, Number, Optional, OptionalList, RecordModel

MOSTLY_REPEATED = 0.5  # the share from which on a turn counts as repeated
RoundNumber = Annotated[int, Field(ge=1)]


class Participant(RecordModel):
    """One side of a conversation; a user model without a prompt has neither id nor category."""

    id: str | None
    category: str | None
    system_prompt: str


class Agent(Participant):
    """The side that is probed."""

    id: str


class Repeated(RecordModel):
    """How much of a turn is repeated, in shares from 0 to 1 (`measures.repeated_turns`)."""

    own: float  # from an earlier turn of the same speaker
    other: float  # from an earlier turn of the other speaker
    loops: float  # from earlier in the turn itself

    @property
    def broken(self) -> bool:
        """Whether at least half of the turn is repeated."""
        return max(self.own, self.other, self.loops) >= MOSTLY_REPEATED


# The stop reasons of turns that come from a recorded dialog or a script, not from a model.
RECORDED = "recorded"
SCRIPTED = "scripted"
GIVEN = (RECORDED, SCRIPTED)


class Turn(RecordModel):
    """One message of a conversation."""

    round: RoundNumber
    speaker: Literal["user", "agent"]
    text: str
    stop_reason: str
    # mean attention mass on the agent's prompt, over layers, heads and tokens
    mass: float | None = None
    reasoning: Optional[str] = None  # what the model thought before it replied
    prompt_tokens: Optional[int] = None  # of the chat, as an endpoint counted them
    left_out: Optional[int] = None  # how many of the oldest rounds the model did not see
    retries: Optional[int] = None  # how often the text was drawn again because it broke a rule
    retry_failed: Optional[bool] = None  # whether a further draw gave no text, so that it stayed
    # after how many tokens the reply was cut, if that was before the run's own limit: by a limit of
    # the server, or at the end of the model's context
    cut_at: Optional[int] = None
    # only of a replayed turn with tool calls: all its messages, in OpenAI's form
    messages: OptionalList[dict[str, Any]] = ()
    pressure: Optional[str] = None  # of a user's scripted message, if its file states it
    repeats: Optional[Repeated] = None
    # `repeats` without what the speaker's prompt asks it to say; measured if at least half of the
    # turn is repeated
    repeats_unprompted: Optional[Repeated] = None


class ProbeKey(RecordModel):
    """Identifies a probe in its conversation."""

    round: RoundNumber
    kind: str  # stability, adoption, canary, recall, baseline, capability or logged
    rule: Optional[str] = None  # which rule it asks about, if the prompt has several
    probe: Number  # its number, from 0
    reply_of: Optional[str] = None  # the rule whose probe generated the reply, if rules share it
    rule_kind: Optional[str] = None  # what the rule is about, if its suite states it
    polarity: Optional[str] = None  # how the rule binds, if its suite states it


class Probe(ProbeKey):
    """A question put to the agent, its reply, and the score of the reply."""

    question: str
    reply: str
    score: float  # 0 (broken) to 1 (kept); for a text, its log-probability per token
    reason: str
    judge: Optional[str] = None  # the model that scored it
    # as in a turn
    mass: float | None = None
    reasoning: Optional[str] = None
    prompt_tokens: Optional[int] = None
    left_out: Optional[int] = None
    retries: Optional[int] = None
    retry_failed: Optional[bool] = None
    cut_at: Optional[int] = None
    stop_reason: Optional[str] = None  # only if the reply has no content, or was cut
    measure: Optional[str] = None  # only in a baseline


class Unscored(ProbeKey):
    """A probe whose reply is no evidence, and why."""

    question: str
    reply: str
    why: str  # empty, cut, refusal or tool_calls; for a turn of a log, cut or not shown
    reason: str
    # as in a probe
    mass: float | None = None
    reasoning: Optional[str] = None
    prompt_tokens: Optional[int] = None
    left_out: Optional[int] = None
    retries: Optional[int] = None
    retry_failed: Optional[bool] = None
    cut_at: Optional[int] = None
    stop_reason: Optional[str] = None
    measure: Optional[str] = None


class Unanswered(ProbeKey):
    """A probe without a reply, and why."""

    why: str
    reason: str


class ProbeReply(ProbeKey):
    """A probe whose reply is yet to be scored; no line has one."""

    question: str
    reply: str
    # as in a probe
    mass: float | None = None
    reasoning: Optional[str] = None
    prompt_tokens: Optional[int] = None
    left_out: Optional[int] = None
    retries: Optional[int] = None
    retry_failed: Optional[bool] = None
    cut_at: Optional[int] = None
    stop_reason: Optional[str] = None
    measure: Optional[str] = None

    def scored(self, score: float, reason: str, judge: str | None = None) -> Probe:
        """Returns the probe with the score of its reply."""
        return Probe(**dict(self), score=score, reason=reason, judge=judge)

    def unscored(self, why: str, reason: str) -> Unscored:
        """Returns the probe without a score, because its reply is no evidence."""
        return Unscored(**dict(self), why=why, reason=reason)

    def unanswered(self, why: str, reason: str) -> Unanswered:
        """Returns the probe as unanswered, because the judge gave no verdict on its reply."""
        key = {name: getattr(self, name) for name in ProbeKey.model_fields}
        return Unanswered(**key, why=why, reason=reason)


class CapabilityAnswer(Probe):
    """A capability question, read in two ways; None where a way does not apply."""

    likeliest: float | None = None  # 1 if the likeliest option is right, else 0
    written: float | None = None  # 1 if the letter in the reply is right, else 0
    answer: int | None = None  # the index of the right option; None for a text
    log_probabilities: Annotated[tuple[float | None, ...], Field(strict=False)] | None = None
    tokens: int | None = None  # the length of the right option


class Tokens(RecordModel):
    """The tokens that a conversation cost."""

    forwarded: int = 0  # tokens that went through the model
    least: Optional[int] = None  # the number if every token of every view were forwarded once
    read: Optional[int] = None  # of all chats, where they are counted
    written: Optional[int] = None  # of all replies, where they are counted


class Ended(RecordModel):
    """Where a conversation ended early, and why."""

    round: RoundNumber
    why: str
    reason: Optional[str] = None


class ContextSummary(RecordModel):
    """A summary that replaced rounds which no longer fitted."""

    view: str  # "agent" or "user": whose view of the dialog it is in
    rounds: Annotated[tuple[int, int], Field(strict=False)]  # the first and the last
    text: str


class Replayed(RecordModel):
    """The recorded dialog that was replayed."""

    line: int  # its line in the file
    system_prompt: str  # "own", "added", or "in place of another"


class Scripted(RecordModel):
    """The script that the user's messages came from."""

    line: int  # its line in the file


class LastReply(RecordModel):
    """The probability of the agent's last reply under the model without methods."""

    log_probability: float
    tokens: int


class Conversation(RecordModel):
    """One conversation of a run."""

    method: str  # its spec string; with `conversation`, the key of the record
    # the same number under two methods means the same prompts, starter and seeds
    conversation: Number
    agent: Agent
    user: Participant
    turns: List[Turn]
    probes: List[Probe]
    tokens: Tokens = Tokens()
    seconds: float = 0  # since the previous conversation was recorded
    ended: Optional[Ended] = None
    unscored: OptionalList[Unscored] = ()
    unanswered: OptionalList[Unanswered] = ()
    summaries: OptionalList[ContextSummary] = ()
    replayed: Optional[Replayed] = None
    canary: Optional[str] = None  # the sentence added to the agent's system prompt
    scripted: Optional[Scripted] = None
    # the limit on requests at once, if it was lowered because the device ran out of memory
    rows_at_most: Optional[int] = None

    @property
    def stability_probes(self) -> list[Probe]:
        """The scored probes that ask the agent about its own prompt."""
        return [probe for probe in self.probes if probe.kind == "stability"]

    @property
    def answered(self) -> tuple[Probe | Unscored, ...]:
        """The probes that have a reply, with and without a score."""
        return (*self.probes, *self.unscored)

    @property
    def without_score(self) -> tuple[Unscored | Unanswered, ...]:
        """The probes that have no score, with and without a reply."""
        return (*self.unscored, *self.unanswered)


class CapabilityConversation(Conversation):
    """The capability questions that were asked in the middle of a conversation."""

    probes: List[CapabilityAnswer]
    last_reply: Optional[LastReply] = None


class LogPrompt(RecordModel):
    """The prompt of a logged dialog, by its id in the suite."""

    id: str
    category: str | None


class LogTurn(Turn):
    """A reply of a logged dialog."""

    tokens: int  # of the dialog up to this turn
    tools: List[str]  # the names of the tools that it called
    span: Optional[str] = None  # TRACE/SPAN of the call that ended it, if the log has spans


class LogProbe(Probe):
    """The score of a turn of a logged dialog."""

    context: Optional[RuleInContext] = None
    cause: Optional[BreachCause] = None  # if the turn broke the rule


class LogDialog(RecordModel):
    """The scores of a logged dialog."""

    method: str  # "logs"
    conversation: Number
    source: str
    agent: LogPrompt
    user: LogPrompt
    turns: List[LogTurn]
    probes: List[LogProbe]
    unscored: OptionalList[Unscored] = ()
    unanswered: OptionalList[Unanswered] = ()
    compactions: OptionalList[LoggedCompaction] = ()

    @property
    def answered(self) -> tuple[Probe | Unscored, ...]:
        """The probes that have a reply, with and without a score."""
        return (*self.probes, *self.unscored)


DialogRecord = Conversation | LogDialog
