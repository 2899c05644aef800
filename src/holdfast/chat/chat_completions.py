"""The assistant's message in a chat completion of OpenAI's API, whole or streamed.

    message = AssistantMessage(is_strict=True)
    message.add({"content": "Hel"})
    message.add({"content": "lo."})
    message.text == "Hello."

Other servers write the same shape with small differences, which are read too. Content in an unknown
shape raises `MalformedResponse` in a strict reading, and is skipped in a lenient one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from holdfast.validation.json_values import fields_of, objects_in, text_or_empty


class MalformedResponse(ValueError):
    """An answer is not one complete chat completion; the message says in a few words why."""


@dataclass
class ToolCallText:
    """A tool call as received so far; its arguments are JSON."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    def add(self, part: Mapping[str, Any]) -> None:
        """Adds the whole call, or the next piece of it."""
        function = fields_of(part.get("function"))
        self.id = text_or_empty(part.get("id")) or self.id
        self.name += text_or_empty(function.get("name"))
        self.arguments += text_or_empty(function.get("arguments"))


class _Content(NamedTuple):
    text: str
    reasoning: str = ""


@dataclass
class AssistantMessage:
    """A message of the assistant as received so far.

    Attributes:
        is_strict: whether content in an unknown shape raises an error; otherwise it is skipped.
        content: the text of the message.
        refusal: the text of the `refusal` field, which replaces the content.
        reasoning: the reasoning in fields of its own; reasoning inside `content` stays there.
        calls_tools: whether the message calls tools, even in an unknown shape.
        calls: the tool calls by their index in the message.
    """

    is_strict: bool
    content: str = ""
    refusal: str = ""
    reasoning: str = ""
    calls_tools: bool = False
    calls: dict[int, ToolCallText] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The content, or the refusal if there is none."""
        return self.content or self.refusal

    @property
    def is_refusal(self) -> bool:
        """Whether the text is a refusal."""
        return bool(self.refusal) and not self.content

    def add(self, part: Mapping[str, Any]) -> str:
        """Adds the whole message or its next piece (`delta`); returns the text that was added.

        Raises:
            MalformedResponse: the reading is strict, and the content is in an unknown shape.
        """
        content = self._read_content(part.get("content"))
        refusal = text_or_empty(part.get("refusal"))
        self.content += content.text
        self.refusal += refusal
        self.reasoning += _reasoning_beside(part) or content.reasoning
        self._add_calls(part)
        return refusal if self.is_refusal else content.text

    def _add_calls(self, part: Mapping[str, Any]) -> None:
        calls = objects_in(part.get("tool_calls"))
        function = fields_of(part.get("function_call"))  # OpenAI's format before it had tools
        if function and not calls:
            calls = [{"function": function}]
        self.calls_tools |= bool(part.get("tool_calls") or part.get("function_call"))
        for number, call in enumerate(calls):
            self.calls.setdefault(index_of(call, default=number), ToolCallText()).add(call)

    def _read_content(self, content: object) -> _Content:
        """Reads a content: a text, null, or Mistral's list of parts."""
        if isinstance(content, list):
            parts = [self._read_part(part) for part in content]
            text = "".join(part.text for part in parts)
            return _Content(text, "".join(part.reasoning for part in parts))
        if content is None or isinstance(content, str):
            return _Content(content or "")
        return self._skip("no text in the message")

    def _read_part(self, part: object) -> _Content:
        fields = fields_of(part)
        thoughts = fields.get("thinking")
        if isinstance(fields.get("text"), str):
            return _Content(fields["text"])
        if isinstance(thoughts, (str, list)):
            return _Content("", reasoning=self._read_content(thoughts).text)
        return self._skip("no text in a part of the message")

    def _skip(self, why: str) -> _Content:
        """Returns no content for an unknown shape; raises an error if the reading is strict."""
        if self.is_strict:
            raise MalformedResponse(why)
        return _Content("")


def choices_in(answer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The choices of a chat completion, or of a chunk of one; the last chunk may have none."""
    return objects_in(answer.get("choices"))


def index_of(part: Mapping[str, Any], *, default: int) -> int:
    """The index of the choice or tool call that a part of a stream belongs to."""
    index = part.get("index")
    return index if isinstance(index, int) else default


def _reasoning_beside(message: Mapping[str, Any]) -> str:
    """The reasoning in a field of a message, or of a piece of it; "" if there is none.

    vLLM and OpenRouter call the field `reasoning`; DeepSeek, SGLang, llama.cpp and earlier versions
    of vLLM call it `reasoning_content`.
    """
    names = ("reasoning_content", "reasoning")
    return next(filter(None, (text_or_empty(message.get(name)) for name in names)), "")
