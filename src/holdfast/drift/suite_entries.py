"""The fields of a suite's file: one Pydantic model for each kind of entry (docs/suites.md)."""

from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, field_validator

from holdfast.drift.cases import NO_CATEGORY, LabelledTurn
from holdfast.drift.yaml_documents import YamlMapping
from holdfast.measures.rule_kinds import Polarity, RuleKind
from holdfast.measures.turns import AssistantTurn, ToolCall, UserAnswer
from holdfast.validation.pydantic_errors import StrictModel

NonEmptyText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
NonEmptyTexts = Annotated[list[NonEmptyText], Field(min_length=1)]


class WhenEntry(StrictModel):
    """The turns of a log that a rule applies to (`measures.turns.When`)."""

    user: NonEmptyText = ""
    reply: NonEmptyText = ""
    tool: NonEmptyText = ""
    role: Literal["user", "tool", ""] = ""


class CallEntry(StrictModel):
    """A tool call of a labelled turn."""

    tool: NonEmptyText
    arguments: dict[str, Any] = Field({})
    answers: dict[str, str] = Field({})  # of the user, by the question, for a tool that asks

    @field_validator("answers", mode="before")
    @classmethod
    def _as_written(cls, answers: object) -> object:
        """Takes an answer such as `Yes` or `8080`, which YAML reads as no text, as its words."""
        return {**answers, **answers.written} if isinstance(answers, YamlMapping) else answers

    def as_tool_call(self) -> ToolCall:
        """The call as measures see it."""
        answers = tuple(UserAnswer(question, text) for question, text in self.answers.items())
        return ToolCall(self.tool, self.arguments, answers=answers)


class TurnEntry(StrictModel):
    """A turn under 'follows' or 'breaks': what the assistant said and did, and what came before."""

    reply: str = ""
    run: NonEmptyText | NonEmptyTexts = Field([])  # shell commands, each in a separate call
    calls: list[CallEntry] = Field([])
    earlier: list[CallEntry] = Field([])
    user: str = ""
    previous: str = ""

    def labelled(self, follows: bool) -> LabelledTurn:
        """Builds the labelled turn that measures score."""
        scripts = [self.run] if isinstance(self.run, str) else self.run
        commands = (ToolCall("Bash", {"command": script}) for script in scripts)
        calls = (call.as_tool_call() for call in self.calls)
        earlier = tuple(call.as_tool_call() for call in self.earlier)
        turn = AssistantTurn(
            self.reply, (*commands, *calls), earlier, user=self.user, previous=self.previous
        )
        return LabelledTurn(follows, turn, self.user)


Examples = Annotated[list[NonEmptyText | TurnEntry], Field(min_length=1)]


class UnlessEntry(StrictModel):
    """Words of the user that lift a rule for a turn (`measures.turns.Unless`)."""

    user: NonEmptyText


class RuleEntry(StrictModel):
    """An entry under 'rules'. A case with a single rule has the same fields itself."""

    id: NonEmptyText
    when: WhenEntry = Field(WhenEntry())
    probe: NonEmptyText = ""
    probes: NonEmptyTexts = Field([])
    measure: str | dict[str, Any] = ""
    follows: Examples = Field([])
    breaks: Examples = Field([])
    kind: RuleKind | None = None
    polarity: Polarity | None = None
    text: NonEmptyText = ""
    recalled: str | dict[str, Any] = ""
    unless: UnlessEntry | None = None


class CaseEntry(RuleEntry):
    """An entry under 'cases'."""

    category: NonEmptyText = NO_CATEGORY
    system_prompt: NonEmptyText
    rules: list[RuleEntry] = Field([], min_length=1)


class SuiteFile(StrictModel):
    """The contents of a suite's file."""

    name: NonEmptyText = ""
    starters: NonEmptyTexts = Field([])
    personas: NonEmptyTexts = Field([])
    notes: NonEmptyTexts = Field([])
    cases: list[CaseEntry] = Field(min_length=1)
