"""Records of why a rule was broken in a logged dialog, as far as the log shows it."""

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
    turn: int  # the turn that the event precedes or is in; 0 if it is in an earlier dialog
    source: str  # the file, and the line or the session in it
    event: Optional[str] = None  # its id in the log
    quote: str = ""  # the passage, cut short


class BreachStep(RecordModel):
    """The tool call with which a turn broke a rule."""

    call: int  # its number in the turn, from 1
    tool: str
    text: str  # its command with its lines, or its arguments as JSON, cut short
    source: str  # the file, and the line in it
    event: Optional[str] = None  # its id in the log


class BreachCause(RecordModel):
    """Why a turn broke a rule, and with which step."""

    cause: Cause
    why: str  # in a sentence
    evidence: OptionalList[Evidence] = ()
    step: Optional[BreachStep] = None  # if the breach can be traced to one of its tool calls


class RecallAnswer(RecordModel):
    """A model's answer when it was asked for its rules, as `recall.jsonl` has it."""

    form: int  # the version of the question
    model: str  # the model's fingerprint
    digest: str  # of the messages before the answer
    answer: str  # "" if the request was refused
    stop_reason: str  # why the answer ended, or why the request was refused


class RuleInContext(RecordModel):
    """Where a rule was when a turn began."""

    in_context: bool
    tokens: Optional[int] = None  # since it was last said in the context, estimated
    calls: Number  # how many tool calls the dialog had so far
    compactions: Number  # how many compactions the dialog had so far


class CompactedRule(RecordModel):
    """A rule that was in the context before a compaction."""

    rule: Optional[str] = None  # as a probe names it
    in_summary: bool  # whether the text that replaced the context states the rule
    in_context: bool  # whether the rule was still in the context, if only in the system prompt
    quote: str = ""  # the passage of the summary that states it


class LoggedCompaction(RecordModel):
    """A compaction of a logged dialog."""

    turn: int  # the turn that the compaction precedes or is in
    source: str
    event: Optional[str] = None
    rules: OptionalList[CompactedRule] = ()
