"""The bodies of requests as Pydantic models, from which the OpenAPI document is generated.

SpanFields     what every body has: the model and the span
  ChatFields      + how a chat is rendered
    TokenizeBody     /tokenize
  GeneratingBody  + how replies are drawn, and steered
    ChatBody         /v1/chat/completions, with the `ChatFields` too
    CompletionBody   /v1/completions
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from holdfast.chat.messages import Message
from holdfast.client import TraceRequest
from holdfast.errors import option, shortened
from holdfast.generation.sampling import PENALTIES, TEMPERATURES
from holdfast.models.grammars import Grammar, read_response_format
from holdfast.serve.body_model import Body, ignored, unsupported
from holdfast.serve.body_parts import ChatMessage, FunctionTool, Name, NamedTool, ResponseFormat
from holdfast.serve.refusals import refused_field
from holdfast.validation.pydantic_errors import as_json

MAX_SEED = 2**63 - 1
MAX_TOOLS = 128  # OpenAI's limit
MAX_SPEC = 20_000  # characters of a method spec, which may list every head of a model
_MAX_TEXT = 100_000  # characters of an emphasised text

EmphasisedText = Annotated[str, Field(min_length=1, max_length=_MAX_TEXT)]
Stop = Annotated[str, Field(min_length=1, max_length=1_000)]
Index = Annotated[int, Field(ge=0)]
Seed = Annotated[int, Field(ge=0, le=MAX_SEED)]
Ids = Annotated[list[Index], Field(min_length=1)]
Occurrence = Annotated[
    tuple[EmphasisedText, Annotated[int, Field(ge=1)]],
    Field(strict=False, description="a text, and which occurrence of it, from 1"),
]
Characters = Annotated[
    tuple[Index, Index, Index],
    Field(strict=False, description="message from 0, first and last character"),
]


class VllmArguments(Body):
    """The steering of a request, under the names of the vLLM plug-in."""

    holdfast: str | None = Field(None, max_length=MAX_SPEC)
    holdfast_text: EmphasisedText | None = None
    holdfast_trace: bool | Literal[0, 1] = False


class SpanFields(Body):
    """The span (the system prompt, or emphasis in its place), and the system prompt's role."""

    model: Name | None = Field(None, description="Without it, the model that is served.")
    emphasis: list[EmphasisedText | Occurrence | Characters] = Field(
        [], max_length=64, description="The text to emphasise in place of the system prompt."
    )
    marks: bool = Field(False, description="Whether `*like this*` is emphasis, `\\*` an asterisk.")
    system_as: Literal["role", "first-user"] = Field(
        "role", description="`first-user` is for models without a system role."
    )


class ChatFields(SpanFields):
    """Further fields that affect how a chat is rendered."""

    continue_final_message: bool = Field(
        False,
        description="Whether the reply continues the last message, which must be the assistant's;"
        " without it, a chat that ends with such a message is refused.",
    )
    add_generation_prompt: bool | None = Field(
        None,
        description="vLLM's name for answering (true) or continuing (false) the last message;"
        " `continue_final_message` decides it.",
    )

    @model_validator(mode="after")
    def _check_generation_prompt(self) -> Self:
        # None, the default, equals neither
        if self.add_generation_prompt == self.continue_final_message:
            value = json.dumps(self.add_generation_prompt)
            raise refused_field(
                "add_generation_prompt",
                f"add_generation_prompt {value} and continue_final_message {value} exclude each"
                " other; leave add_generation_prompt out.",
            )
        return self


class TokenizeBody(ChatFields):
    """The body of `/tokenize`."""

    messages: list[ChatMessage] | None = Field(None, min_length=1, description="Or `prompt`.")
    tools: list[FunctionTool] = Field(
        [], max_length=MAX_TOOLS, description="The tools that the chat declares."
    )
    prompt: str | None = Field(None, description="A text, without a chat template.")

    @property
    def text_field(self) -> str:
        """The field with the text that the model reads."""
        return "messages" if self.prompt is None else "prompt"


class StreamOptions(Body):
    """Options of a stream."""

    include_usage: bool = Field(False, description="Whether a last chunk has the token counts.")
    include_obfuscation: Any = unsupported(False)


class GeneratingBody(SpanFields):
    """Fields shared by all requests that generate replies."""

    temperature: float = Field(
        1.0, ge=TEMPERATURES.low, le=TEMPERATURES.high, description="0 takes the likeliest token."
    )
    top_p: float = Field(
        1.0, gt=0, le=1, description="Probability mass of the tokens that are drawn from."
    )
    frequency_penalty: float = Field(
        0.0,
        ge=PENALTIES.low,
        le=PENALTIES.high,
        description="Subtracted from a token's logit for each time that the reply already has it.",
    )
    presence_penalty: float = Field(
        0.0,
        ge=PENALTIES.low,
        le=PENALTIES.high,
        description="Subtracted from the logit of every token that the reply already has.",
    )
    max_tokens: int | None = Field(None, ge=1, description="The most new tokens of a reply.")
    n: int = Field(
        1, ge=1, description="Number of replies; reply i, from 0, is drawn with `seed` + i."
    )
    seed: Seed | None = Field(None, description="Determines the draws; random if left out.")
    stop: Stop | Annotated[list[Stop], Field(max_length=4)] = Field(
        [], description="Texts that end a reply, and are not part of it."
    )
    stream: bool = Field(False, description="Whether the reply comes in server-sent events.")
    stream_options: StreamOptions | None = Field(None, description="Needs `stream`.")
    steering: str | None = Field(
        None,
        max_length=MAX_SPEC,
        description="Methods that keep the model on the system prompt, or on the emphasis:"
        " `boost:factor=2`, several joined by `+`, or `none`; `/v1/steering` lists them.",
    )
    trace: TraceRequest = Field(
        False,
        description="Whether each token comes with its mass on the prompt: true for the mean over"
        " all heads, `heads` for every head as well.",
    )
    vllm_xargs: VllmArguments | None = Field(
        None, description="Steering, emphasis and trace, under the names of the vLLM plug-in."
    )
    user: Name | None = ignored("this server keeps nothing by user")
    safety_identifier: Name | None = ignored("this server keeps nothing by user")
    prompt_cache_key: Name | None = ignored("prefixes are shared wherever they agree")
    metadata: dict[str, str] | None = ignored("it belongs to stored replies, and none is stored")
    store: Any = unsupported(False)
    service_tier: Any = unsupported("auto", "default")
    logit_bias: Any = unsupported({})
    # fields of vLLM and other servers
    top_k: Any = unsupported(-1, 0)
    min_p: Any = unsupported(0)
    repetition_penalty: Any = unsupported(1)

    text_field: ClassVar[str]  # the field with the text that the model reads

    @property
    def token_limit(self) -> int | None:
        """The most new tokens of a reply; None if the body sets no limit."""
        return self.max_tokens

    @property
    def stops(self) -> tuple[str, ...]:
        """The texts that end a reply."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop)

    @model_validator(mode="after")
    def _check_stream_options(self) -> Self:
        if self.stream_options is not None and not self.stream:
            raise refused_field(
                "stream_options",
                'stream_options needs a stream; add "stream": true, or leave it out.',
            )
        return self

    @model_validator(mode="after")
    def _read_vllm_names(self) -> Self:
        """Moves the steering under the vLLM plug-in's names to our fields."""
        if (arguments := self.vllm_xargs) is None:
            return self
        text = arguments.holdfast_text
        values = {
            "steering": arguments.holdfast,
            "emphasis": [] if text is None else [text],
            "trace": bool(arguments.holdfast_trace),
        }
        for name, value in values.items():
            field = getattr(self, name)
            if field and value and field != value:
                raise refused_field(
                    "vllm_xargs",
                    f"{name} is {shortened(field)}, but vllm_xargs has {shortened(value)} for it;"
                    " give it once.",
                )
        return self.model_copy(update={name: value for name, value in values.items() if value})


class ChatBody(GeneratingBody, ChatFields):
    """The body of `/v1/chat/completions`."""

    text_field: ClassVar[str] = "messages"
    messages: list[ChatMessage] = Field(
        min_length=1, description="The chat so far; `developer` is read as `system`."
    )
    max_completion_tokens: int | None = Field(None, ge=1, description="The same as `max_tokens`.")
    logprobs: bool = Field(False, description="Whether each token has its log-probability.")
    top_logprobs: int | None = Field(
        None, ge=0, le=20, description="Likeliest tokens at each position; needs `logprobs`."
    )
    tools: list[FunctionTool] = Field(
        [], max_length=MAX_TOOLS, description="Functions that the model may call."
    )
    tool_choice: Literal["auto", "none", "required"] | NamedTool = Field(
        "auto",
        description="With `none`, every reply is returned as text; with `required` or a named tool,"
        " it is exactly one call.",
    )
    parallel_tool_calls: bool = Field(
        True, description="With `auto`, a reply may have any number of calls."
    )
    response_format: ResponseFormat | None = Field(
        None, description="The form of JSON that the reply must have."
    )
    functions: Any = unsupported([])
    function_call: Any = unsupported("none", "auto")
    modalities: Any = unsupported(["text"])
    audio: Any = unsupported()
    prediction: Any = unsupported()
    reasoning_effort: Any = unsupported()
    verbosity: Any = unsupported()
    web_search_options: Any = unsupported()
    chat_template_kwargs: Any = unsupported({})

    @property
    def token_limit(self) -> int | None:
        newer = self.max_completion_tokens
        if self.max_tokens and newer and self.max_tokens != newer:
            raise refused_field(
                "max_tokens",
                f"max_tokens is {self.max_tokens}, but max_completion_tokens is {newer}; give only"
                " one of them.",
            )
        return self.max_tokens or newer

    @property
    def likeliest(self) -> int | None:
        """The number of likeliest tokens per position; None without log-probabilities."""
        return (self.top_logprobs or 0) if self.logprobs else None

    @property
    def parses_calls(self) -> bool:
        """Whether tool calls in the replies are parsed."""
        return bool(self.tools) and self.tool_choice != "none"

    @property
    def forced_tools(self) -> list[FunctionTool]:
        """The tools of which a reply must call one; [] if it need not call any."""
        if isinstance(self.tool_choice, NamedTool):
            name = self.tool_choice.function.name
            return [tool for tool in self.tools if tool.function.name == name][:1]
        return list(self.tools) if self.tool_choice == "required" else []

    @property
    def strict_tools(self) -> bool:
        """Whether the model decides if it calls a tool, and a call must follow its parameters."""
        strict = any(tool.function.strict for tool in self.tools)
        return self.tool_choice == "auto" and strict

    @property
    def format_grammar(self) -> Grammar | None:
        """The grammar of the response format; None if a reply may be any text."""
        if self.response_format is None:
            return None
        return read_response_format(self.response_format.model_dump(by_alias=True))

    @property
    def chat(self) -> list[Message]:
        """The messages in the form that chat templates expect."""
        return [message.plain() for message in self.messages]

    @field_validator("tool_choice", mode="before")
    @classmethod
    def _check_tool_choice(cls, value: Any) -> Any:
        if value in ("auto", "none", "required"):
            return value
        if isinstance(value, Mapping) and value.get("type") == "function":
            return value
        raise PydanticCustomError(
            "unsupported",
            "tool_choice {value} is unknown; give auto, none, required or {example}.",
            {
                "value": as_json(value),
                "example": '{"type": "function", "function": {"name": NAME}}',
            },
        )

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        """Refuses fields that contradict each other."""
        self._check_tools()
        is_formatted = self.response_format is not None and self.response_format.type != "text"
        if is_formatted and self.parses_calls:
            raise refused_field(
                "response_format",
                f"{option('response_format')} describes the whole reply, which could then not call"
                " a tool; leave tools out, or give tool_choice none.",
            )
        if self.top_logprobs and not self.logprobs:
            raise refused_field(
                "top_logprobs",
                f'top_logprobs {self.top_logprobs} needs logprobs; add "logprobs": true.',
            )
        return self

    def _check_tools(self) -> None:
        """Refuses a choice of tools that the declared tools do not allow."""
        forced = self.tool_choice not in ("auto", "none")
        if forced and not self.forced_tools:
            declared = ", ".join(tool.function.name[:60] for tool in self.tools[:8])
            choice = "required"
            if isinstance(self.tool_choice, NamedTool):
                choice = shortened(self.tool_choice.function.name)
            raise refused_field(
                "tool_choice",
                f"tool_choice asks for {choice}, but the declared tools are {declared or 'none'};"
                " declare it in tools, or give auto.",
            )
        if self.parses_calls and not forced and not self.parallel_tool_calls:
            raise refused_field(
                "parallel_tool_calls",
                "parallel_tool_calls false cannot be enforced with tool_choice auto, because the"
                " model itself decides how many tools it calls; leave it out, or give tool_choice"
                " required.",
            )


class CompletionBody(GeneratingBody):
    """The body of `/v1/completions`."""

    text_field: ClassVar[str] = "prompt"
    prompt: str | Ids | Annotated[list[str | Ids], Field(min_length=1)] = Field(
        description="A text, a list of token ids, or a list of either; no chat template."
    )
    logprobs: int | None = Field(
        None, ge=0, le=5, description="Likeliest tokens at each position, beside the drawn one."
    )
    echo: Any = unsupported(False)
    suffix: Any = unsupported("")
    best_of: Any = unsupported(1)

    @property
    def likeliest(self) -> int | None:
        """The number of likeliest tokens to list; None for no log-probabilities."""
        return self.logprobs

    @property
    def prompts(self) -> list[str | list[int]]:
        """The prompts to continue, each a text or a list of token ids."""
        match self.prompt:
            case [int(), *_]:
                return [self.prompt]  # type: ignore[list-item]
            case list():
                return list(self.prompt)  # type: ignore[arg-type]
        return [self.prompt]
