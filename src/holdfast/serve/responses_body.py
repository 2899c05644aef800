"""The bodies of `/v1/responses`, OpenAI's Responses API, and their conversion to those of chats."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from holdfast.errors import shortened
from holdfast.generation.sampling import TEMPERATURES
from holdfast.serve.bodies import MAX_SPEC, MAX_TOOLS, ChatBody, ChatFields, Seed
from holdfast.serve.body_model import (
    Body,
    check_arguments,
    check_object,
    ignored,
    read_body,
    unsupported,
)
from holdfast.serve.body_parts import FunctionDefinition, Name
from holdfast.serve.refusals import refused_field


class ContentPart(Body):
    """A part of a message; this server reads only text."""

    type: Literal["input_text", "output_text", "text"]
    text: str
    annotations: Any = unsupported([])
    logprobs: Any = unsupported([])


Content = str | Annotated[list[ContentPart], Field(min_length=1)]

# the fields that a chat has as well, under the same names
_SHARED_FIELDS = (
    "model",
    "emphasis",
    "marks",
    "system_as",
    "temperature",
    "top_p",
    "seed",
    "steering",
    "continue_final_message",
    "add_generation_prompt",
)


class InputItem(Body):
    """A message, a call of a tool from an earlier response, or the result of one."""

    type: Literal["message", "function_call", "function_call_output"] = "message"
    role: Literal["system", "developer", "user", "assistant"] | None = Field(
        None, description="Of a message: its role."
    )
    content: Content | None = Field(None, description="Of a message: its text.")
    call_id: Name | None = Field(None, description="Of a call and its result: their common id.")
    name: Name | None = Field(None, description="Of a call: the name of the function.")
    arguments: str | None = Field(None, description="Of a call: a JSON object.")
    output: Content | None = Field(None, description="Of a result: its text.")
    id: Name | None = ignored("items are not stored")
    status: Literal["in_progress", "completed", "incomplete"] | None = ignored(
        "an incomplete message is read as it is"
    )

    # the fields that an item needs, by its type
    _FIELDS: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "message": ("role", "content"),
        "function_call": ("call_id", "name", "arguments"),
        "function_call_output": ("call_id", "output"),
    }

    @field_validator("arguments")
    @classmethod
    def _check_arguments(cls, text: str | None) -> str | None:
        return None if text is None else check_arguments(text)

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        needed = self._FIELDS[self.type]
        all_names = chain.from_iterable(self._FIELDS.values())
        for name in dict.fromkeys(all_names):
            is_missing = getattr(self, name) is None
            if is_missing and name in needed:
                raise refused_field("input", f"An input item of the type {self.type} needs {name}.")
            if not is_missing and name not in needed:
                raise refused_field(
                    "input", f"An input item of the type {self.type} takes no {name}; leave it out."
                )
        return self


class ResponseTool(FunctionDefinition):
    """A function that the model may call."""

    type: Literal["function"]


class ResponseToolChoice(Body):
    """A tool that a reply must call."""

    type: Literal["function"]
    name: Annotated[Name, Field(min_length=1)]


class TextFormat(Body):
    """The texts that a reply may be; the last four fields belong to `json_schema`."""

    model_config = ConfigDict(serialize_by_alias=True)

    type: Literal["text", "json_object", "json_schema"]
    name: Annotated[Name, Field(min_length=1)] | None = None
    description: str | None = ignored("the model does not see it")
    json_schema: dict[str, Any] | None = Field(None, alias="schema", description="The schema.")
    strict: bool | None = ignored("a reply always follows the schema")

    @model_validator(mode="after")
    def _check_schema(self) -> Self:
        """Refuses a schema without its type, and the type without a schema."""
        if self.type == "json_schema" and self.json_schema is None:
            raise refused_field(
                "text",
                "text.format has the type json_schema, but schema is missing; give both, or"
                " neither.",
            )
        if self.type != "json_schema" and self.json_schema is not None:
            raise refused_field(
                "text",
                f"text.format has a schema, but the type {self.type}; give the type json_schema, or"
                " leave the schema out.",
            )
        check_object("schema", self.json_schema or {})
        return self


class TextOptions(Body):
    """How a reply is written."""

    format: TextFormat | None = None
    verbosity: Any = unsupported()


class ResponsesBody(ChatFields):
    """The body of `/v1/responses`."""

    input: str | Annotated[list[InputItem], Field(min_length=1)] = Field(
        description="A message of the user, or the dialog so far as items."
    )
    instructions: str | None = Field(None, description="The system prompt.")
    max_output_tokens: int | None = Field(None, ge=1, description="The most new tokens.")
    temperature: float = Field(1.0, ge=TEMPERATURES.low, le=TEMPERATURES.high)
    top_p: float = Field(1.0, gt=0, le=1)
    seed: Seed | None = Field(None, description="Determines the draws; random if left out.")
    stream: bool = Field(False, description="Whether the response comes in server-sent events.")
    steering: str | None = Field(
        None, max_length=MAX_SPEC, description="As in `/v1/chat/completions`."
    )
    text: TextOptions | None = None
    tools: list[ResponseTool] = Field([], max_length=MAX_TOOLS)
    tool_choice: Literal["auto", "none", "required"] | ResponseToolChoice = "auto"
    parallel_tool_calls: bool = True
    previous_response_id: str | None = Field(
        None, description="Refused: no response is stored, so send the whole dialog as input."
    )
    store: bool | None = ignored("no response is stored, and the answer says so")
    metadata: dict[str, str] | None = Field(None, description="Returned as it is.")
    user: Name | None = ignored("this server keeps nothing by user")
    safety_identifier: Name | None = ignored("this server keeps nothing by user")
    prompt_cache_key: Name | None = ignored("prefixes are shared wherever they agree")
    include: Any = unsupported([])
    truncation: Any = unsupported("disabled")
    background: Any = unsupported(False)
    service_tier: Any = unsupported("auto", "default")
    stream_options: Any = unsupported({})
    top_logprobs: Any = unsupported(0)
    max_tool_calls: Any = unsupported()
    reasoning: Any = unsupported({})
    conversation: Any = unsupported()
    prompt: Any = unsupported()

    @model_validator(mode="after")
    def _check_stored(self) -> Self:
        if self.previous_response_id is not None:
            raise refused_field(
                "previous_response_id",
                f"previous_response_id {shortened(self.previous_response_id)} names a response, but"
                " this server stores none; send the whole dialog as input.",
                "previous_response_not_found",
            )
        return self

    def chat_fields(self) -> dict[str, Any]:
        """The fields of the same request as the body of a chat."""
        fields: dict[str, Any] = {name: getattr(self, name) for name in _SHARED_FIELDS}
        fields |= {
            "messages": self._messages(),
            "max_completion_tokens": self.max_output_tokens,
            "stream": self.stream,
            "parallel_tool_calls": self.parallel_tool_calls,
            "tools": [
                {"type": "function", "function": tool.model_dump(exclude={"type"})}
                for tool in self.tools
            ],
            "tool_choice": self.tool_choice,
        }
        if isinstance(self.tool_choice, ResponseToolChoice):
            function = {"name": self.tool_choice.name}
            fields["tool_choice"] = {"type": "function", "function": function}
        if self.text is not None and self.text.format is not None:
            text_format = self.text.format
            fields["response_format"] = {"type": text_format.type}
            if text_format.type == "json_schema":
                name = text_format.name or "response"
                schema = {"name": name, "schema": text_format.json_schema}
                fields["response_format"]["json_schema"] = schema
        return fields

    def _messages(self) -> list[dict[str, Any]]:
        """The messages: the instructions, then the items; the assistant's message has the calls
        that follow it.
        """
        messages = list[dict[str, Any]]()
        if self.instructions is not None:
            messages.append({"role": "system", "content": self.instructions})
        if isinstance(self.input, str):
            return [*messages, {"role": "user", "content": self.input}]
        for item in self.input:
            if item.type == "function_call":
                call = {"name": item.name, "arguments": item.arguments}
                if not messages or messages[-1]["role"] != "assistant":
                    messages.append({"role": "assistant", "content": ""})
                messages[-1].setdefault("tool_calls", []).append(
                    {"id": item.call_id, "type": "function", "function": call}
                )
            elif item.type == "function_call_output":
                content = _text_of(item.output)
                messages.append({"role": "tool", "tool_call_id": item.call_id, "content": content})
            else:
                messages.append({"role": item.role, "content": _text_of(item.content)})
        return messages


def chat_of(body: ResponsesBody, bounded: type[ChatBody]) -> ChatBody:
    """Converts a body to that of a chat, whose model has the limits of the server."""
    return read_body(bounded, body.chat_fields())


def _text_of(content: Content | None) -> Any:
    """The content of a message in the format of chats."""
    if isinstance(content, list):
        return [{"type": "text", "text": part.text} for part in content]
    return content
