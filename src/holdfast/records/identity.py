"""The manifest of a run: the command that made it, and the run's identity.

Fields have defaults, as earlier versions wrote fewer of them. Fields that are not declared here are
kept, and compared when a run is resumed (`records.compatibility`).
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import ConfigDict, Field, PrivateAttr

from holdfast.records.model import List, Optional, RecordModel


class Named(RecordModel):
    """The name and the fingerprint of a model or a file that took part in a run."""

    name: str
    fingerprint: str = ""


class SamplingSettings(RecordModel):
    """How replies were drawn, as `holdfast.Sampling`."""

    temperature: float | None = None
    top_p: float | None = None
    max_new_tokens: int | None = None


class ProtocolSettings(RecordModel):
    """The protocol of conversations, as `drift.Settings`."""

    rounds: int | None = None
    conversations: int | None = None
    seed: int | None = None
    sampling: SamplingSettings = SamplingSettings()
    user_prompt: str = ""
    probe_at: str = "in-place"
    pairs: str = ""
    context: str = "stop"


class TaskRunSettings(RecordModel):
    """How samples were asked, as `tasks.Settings`."""

    tasks: List[str] = ()
    samples: int | None = None
    seed: int | None = None
    split: str = ""
    instruction: str = ""


class Identity(RecordModel):
    """The facts that distinguish a run from others."""

    command: ClassVar[str] = "drift"  # the command that makes runs with such an identity
    contents: ClassVar[str] = "records"  # a name for the records of such a run, for messages

    model: str | None = None
    model_fingerprint: str | None = None
    runtime: dict[str, Any] = Field(default_factory=dict)  # whatever affects rounding
    _stored: dict[str, Any] = PrivateAttr(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Returns the identity exactly as the manifest has it."""
        return self._stored

    @classmethod
    def read(cls, stored: dict[str, Any]) -> Self:
        """Reads the identity in a manifest."""
        identity = cls.model_validate(stored)
        identity._stored = stored
        return identity


class ConversationsIdentity(Identity):
    """The identity of a run of conversations."""

    contents: ClassVar[str] = "conversations"

    suite: str | None = None
    suite_fingerprint: str | None = None
    methods: List[str] = ()
    settings: ProtocolSettings = ProtocolSettings()
    user_model: Optional[Named] = None
    dialogs: Optional[Named] = None
    user_turns: Optional[Named] = None
    judges: Optional[dict[str, str]] = None  # fingerprints, by name


class SweepIdentity(RecordModel):
    """A method with the values of its parameter that a calibration tried."""

    name: str
    parameter: str = Field(alias="knob")  # the name that version 0.1 wrote, and folders still have
    values: List[str]
    methods: List[str]

    def to_json(self) -> dict[str, Any]:
        return self.model_dump(by_alias=True)


class PlanIdentity(RecordModel):
    """How a calibration was run, as `study.CalibrationPlan`."""

    draws: int | None = None
    rounds: int | None = None
    ask_at: int | None = None
    conversations: int | None = None


class CalibrationIdentity(ConversationsIdentity):
    """The identity of the capability questions of a calibration."""

    command: ClassVar[str] = "calibrate"
    contents: ClassVar[str] = "capability questions"

    prompts: List[str] = ()
    capability: str = ""
    capability_fingerprint: str = ""
    is_text: bool = False
    sweeps: List[SweepIdentity] = ()
    plan: PlanIdentity = PlanIdentity()


class TasksIdentity(Identity):
    """The identity of a run of tasks."""

    command: ClassVar[str] = "tasks"
    contents: ClassVar[str] = "samples of tasks"

    variants: List[str] = ()
    settings: TaskRunSettings = TaskRunSettings()
    data: str | None = None
    data_fingerprint: str | None = None


class ProfileIdentity(Identity):
    """The identity of a profile of heads."""

    command: ClassVar[str] = "profile"
    contents: ClassVar[str] = "scores of heads"

    layers: int = 0
    heads: int = 0
    method: str = ""  # without heads
    samples: int | None = None
    by: str = ""


class LogsIdentity(Identity):
    """The identity of the scores of logs."""

    command: ClassVar[str] = "logs"
    contents: ClassVar[str] = "scores of logs"

    suite: str = ""
    rules: str = ""  # a fingerprint
    logs: str = ""  # a fingerprint


IDENTITIES: dict[str, type[Identity]] = {  # by command; all others have a ConversationsIdentity
    kind.command: kind
    for kind in (CalibrationIdentity, TasksIdentity, ProfileIdentity, LogsIdentity)
}


class DefaultPrompt(RecordModel):
    """The system prompt that a chat template inserts by itself."""

    text: str
    can_be_left_out: bool


class Resumed(RecordModel):
    """A command that continued a run."""

    created: str | None = None
    argv: str | None = None
    versions: dict[str, str] = Field(default_factory=dict)


class Manifest(RecordModel):
    """The manifest of a run."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    version: int = Field(default=1, alias="schema")  # of the folder's format
    created: str | None = None
    command: str = "drift"
    argv: str | None = None
    extended_by: str | None = None  # the command that last made the run larger
    earlier_sizes: List[int] = ()  # how many conversations the run had each time it was extended
    resumed: List[Resumed] = ()
    versions: dict[str, str] = Field(default_factory=dict)
    identity: Identity = Identity()
    notes: List[str] = ()
    default_system_prompt: Optional[DefaultPrompt] = None
    servers: List[str] = ()  # the endpoints that answered
    ray: Optional[dict[str, Any]] = None  # the actors that answered
    dtype: Optional[str] = None
    layers: Optional[int] = None
    heads: Optional[int] = None
    checkable: bool = False  # whether each prompt has a rule with a text that a program checks
    lines_without_crc32: Optional[int] = None  # how many leading lines were written without one
    # The following fields are only of runs of `holdfast logs`.
    dialogs: int = 0  # how many were read
    unmatched: int = 0  # how many of them are under none of the suite's prompts
    other_prompts: int = 0  # how many have another system prompt
    reasoning_turns: int = 0
    refused_calls: int = 0  # how many tool calls never ran, and so are not scored
    formats: dict[str, int] = Field(default_factory=dict)
    problems: List[str] = ()  # sentences on what was not read, or was left out
    rules: dict[str, Any] = Field(default_factory=dict)  # how each rule was scored
    rule_texts: dict[str, str] = Field(default_factory=dict)  # the words of rules that have any
    probe_rules: List[str] = ()  # the rules made for the answers to probes
    loaded: List[str] = ()  # files that every context began with, according to the command

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Self:
        """Reads a manifest, with the kind of identity that its command has."""
        kind = IDENTITIES.get(str(stored.get("command")), ConversationsIdentity)
        return cls.model_validate({**stored, "identity": kind.read(stored.get("identity", {}))})


def flatten(settings: Mapping[str, Any], path: str = "") -> dict[str, str]:
    """Flattens nested settings into texts by dotted name, with "–" for None."""
    flat_settings: dict[str, str] = {}
    for name, value in settings.items():
        full_name = f"{path}.{name}" if path else str(name)
        if isinstance(value, Mapping):
            flat_settings |= flatten(value, full_name)
        elif isinstance(value, list):
            flat_settings[full_name] = ", ".join(map(str, value)) or "none"
        else:
            flat_settings[full_name] = "–" if value is None else str(value)
    return flat_settings
