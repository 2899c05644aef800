"""The parts of request bodies as Pydantic models: messages, tools and response formats."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from holdfast.chat.messages import Message, Tool
from holdfast.serve.body_model import Body, check_arguments, check_object, ignored, unsupported
from holdfast.serve.refusals import refused_field

_JOINT = "\n"  # joins the text parts of a message, as vLLM does

Name = Annotated[str, Field(max_length=1_000)]


class TextPart(Body):
    """A part of a message; this server reads only text."""

    type: Literal["text"]
    text: str


class FunctionDefinition(Body):
    """A function that the model may call."""

    name: Annotated[Name, Field(min_length=1)]
    description: str | None = None
    parameters: dict[str, Any] | None = Field(None, description="A JSON Schema.")
    strict: bool = Field(
        False, description="Whether the arguments of every call must follow `parameters`."
    )

    @field_validator("parameters")
    @classmethod
    def _check_parameters(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        check_object("parameters", parameters)
        return parameters


class FunctionTool(Body):
    """A declared tool, which the chat template shows to the model."""

    type: Literal["function"]
    function: FunctionDefinition


def plain_tools(tools: Sequence[FunctionTool]) -> list[Tool]:
    """Converts tools to the form that chat templates expect."""
    plain = [tool.model_dump(exclude_none=True) for tool in tools]
    for tool in plain:
        del tool["function"]["strict"]  # not shown by any template
    return plain


class CalledFunction(Body):
    """A function that the model called."""

    name: Name
    arguments: str = Field(description="A JSON object.")

    @field_validator("arguments")
    @classmethod
    def _check_arguments(cls, text: str) -> str:
        return check_arguments(text)


class MessageToolCall(Body):
    """A tool call from an earlier answer."""

    id: Name
    type: Literal["function"]
    function: CalledFunction


class ChatMessage(Body):
    """A message, including the fields that OpenAI's clients return in the assistant's messages."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | Annotated[list[TextPart], Field(min_length=1)] = Field(
        description="May be null beside `tool_calls`."
    )
    name: Any = unsupported()
    refusal: Any = unsupported()
    audio: Any = unsupported()
    function_call: Any = unsupported()
    tool_calls: list[MessageToolCall] = Field([], description="Tool calls of an earlier answer.")
    tool_call_id: Name | None = Field(None, description="The id of the call with this result.")
    annotations: Any = unsupported([])
    reasoning: Any = unsupported("")
    reasoning_content: Any = unsupported("")

    @model_validator(mode="before")
    @classmethod
    def _allow_calls_alone(cls, body: Any) -> Any:
        alone = isinstance(body, Mapping) and body.get("tool_calls") and body.get("content") is None
        return {**body, "content": ""} if alone else body

    def plain(self) -> Message:
        """Converts the message to the form that chat templates expect."""
        role = "system" if self.role == "developer" else self.role
        text = self.content
        if not isinstance(text, str):
            text = _JOINT.join(part.text for part in text)
        message: Message = {"role": role, "content": text}
        if self.tool_call_id is not None:
            message["tool_call_id"] = self.tool_call_id
        if self.tool_calls:
            message["tool_calls"] = [call.model_dump() for call in self.tool_calls]
            for call in message["tool_calls"]:
                call["function"]["arguments"] = json.loads(call["function"]["arguments"])
        return message


class NamedFunction(Body):
    """The name of a declared tool."""

    name: Annotated[Name, Field(min_length=1)]


class NamedTool(Body):
    """A tool that a reply must call."""

    type: Literal["function"]
    function: NamedFunction


class JsonSchema(Body):
    """A JSON Schema that a reply must follow."""

    model_config = ConfigDict(serialize_by_alias=True)

    name: Annotated[Name, Field(min_length=1)]
    description: str | None = ignored("the model does not see it")
    json_schema: dict[str, Any] = Field(alias="schema", description="The schema.")
    strict: bool | None = ignored("a reply always follows the schema")

    @field_validator("json_schema")
    @classmethod
    def _check_schema(cls, schema: dict[str, Any]) -> dict[str, Any]:
        check_object("schema", schema)
        return schema


class ResponseFormat(Body):
    """The texts that a reply may be."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = Field(None, description="Needed by `json_schema`.")

    @model_validator(mode="after")
    def _check_schema_given(self) -> Self:
        if self.type == "json_schema" and self.json_schema is None:
            raise refused_field(
                "response_format",
                "response_format has the type json_schema, but json_schema is missing; give both,"
                " or neither.",
            )
        if self.type != "json_schema" and self.json_schema is not None:
            raise refused_field(
                "response_format",
                f"response_format has a json_schema, but the type {self.type}; give the type"
                " json_schema, or leave the schema out.",
            )
        return self
