"""Why a rule was broken in a logged dialog, as far as the log shows it."""

from typing import Literal

from holdfast.records.model import Number, Optional, OptionalList, RecordModel

Cause = Literal[
    "never_sent",
    "removed",
    "outweighed",
    "present",
    "present_recalled",
    "present_not_recalled",
    "unknown",
]
CAUSES: tuple[Cause, ...] = ("never_sent", "removed", "outweighed", "present", "unknown")
# in place of `present`, where a model was asked for its rules
RECALL_CAUSES: tuple[Cause, ...] = ("present_recalled", "present_not_recalled")


class Evidence(RecordModel):
    """An event of a log that shows where a rule was said, left the context, or was overruled."""

    what: Literal["said", "left", "ordered"]
    turn: int  # the turn that it precedes or is in; 0 if it is in an earlier dialog
    source: str  # the file, and the line or the session in it
    event: Optional[str] = None  # its id in the log
    quote: str = ""  # the passage, cut short


class BreachStep(RecordModel):
    """The tool call with which a turn broke a rule."""

    call: int  # its number in the turn, from 1
    tool: str
    text: str  # its command, or its arguments as JSON, cut short
    source: str  # the file, and the line in it
    event: Optional[str] = None  # its id in the log


class BreachCause(RecordModel):
    """Why a turn broke a rule, and with which step."""

    cause: Cause
    why: str  # in a sentence
    evidence: OptionalList[Evidence] = ()
    step: Optional[BreachStep] = None  # if its tool calls up to one show the breach


class RecallAnswer(RecordModel):
    """A model's answer to the question what its rules are, as `recall.jsonl` has it."""

    form: int  # version of the question
    model: str  # its fingerprint
    digest: str  # of the messages before the answer
    answer: str
    stop_reason: str  # why it ended; why the request was refused if there is none


class RuleInContext(RecordModel):
    """Where a rule was when a turn began."""

    in_context: bool
    tokens: Optional[int] = None  # since it was last said in the context, estimated
    calls: Number  # tool calls in the dialog so far
    compactions: Number  # compactions of the dialog so far


class CompactedRule(RecordModel):
    """A rule that was in the context before a compaction."""

    rule: Optional[str] = None  # as a probe names it
    in_summary: bool  # whether what replaced the context says it
    in_context: bool  # whether it still was in the context, in a system prompt if nowhere else
    quote: str = ""  # what the summary says of it


class LoggedCompaction(RecordModel):
    """A compaction of a logged dialog."""

    turn: int  # the turn that it precedes or is in
    source: str
    event: Optional[str] = None
    rules: OptionalList[CompactedRule] = ()
