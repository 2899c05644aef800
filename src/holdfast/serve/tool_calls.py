"""Tool calls in the text of a reply, in the formats that transformers can parse."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from typing_extensions import TypedDict

from holdfast.chat.messages import Message, Tool
from holdfast.models.call_grammars import CallForm

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel


# the example of a call that the chat template writes, to see how it does
_NAME = "holdfast_name"
_TOOL = {"type": "function", "function": {"name": _NAME, "parameters": {}}}
_ARGUMENTS = {"holdfast_key": "holdfast_value"}
_EXAMPLE = {"name": _NAME, "arguments": _ARGUMENTS}
_CALL_ID = "holdfast0"  # nine characters, as Mistral's templates require


class ParsedCall(TypedDict):
    """A tool call in a reply; its function has a name, and arguments as a JSON string."""

    id: str
    type: str
    function: dict[str, str]


class _WrittenCall(NamedTuple):
    """A call of the example's tool, as a chat template writes it."""

    prompt: str
    reply: str


class _ReplyParts(NamedTuple):
    """A reply as a response template reads it."""

    other_fields: Message  # other than its calls, such as text and reasoning
    functions: list[dict[str, Any]]  # of each call, with its name, and its arguments as an object


@dataclass(frozen=True)
class CallParser:
    """Parses tool calls by a response template, transformers' description of a model's format."""

    name: str  # of the model, for errors
    model: LocalModel

    @cached_property
    def template(self) -> dict[str, Any] | None:
        """The tokenizer's response template, or transformers' for the model type; else None."""
        template: dict[str, Any] | None = getattr(self.model.tokenizer, "response_template", None)
        if template is None and (hf_model := getattr(self.model, "hf_model", None)) is not None:
            try:
                from transformers.cli.serving.utils import get_response_template
            except ImportError:  # an older transformers
                return None
            template = get_response_template(self.model.tokenizer, hf_model)
        return template

    def parse(self, text: str, prompt: str, tools: Sequence[Tool]) -> list[ParsedCall]:
        """The calls in a reply; [] if any call is malformed.

        Args:
            text: the reply, with its special tokens.
            prompt: may end with the beginning of the reply.
            tools: declare the types of arguments.
        """
        calls = []
        for call in self._read(text, prompt, tools).functions:
            arguments = json.dumps(call["arguments"], ensure_ascii=False)
            function = {"name": call["name"], "arguments": arguments}
            call_id = secrets.token_hex(8)[:9]  # in the form that Mistral's templates require
            calls.append(ParsedCall(id=call_id, type="function", function=function))
        return calls

    def is_unparsed(self, text: str) -> bool:
        """Whether a reply without parsed calls has the beginning of one, by the template."""
        opening = _pattern((self.template or {}).get("fields", {}).get("tool_calls", {}), "open")
        return bool(opening and re.search(opening, text, re.DOTALL))

    @cached_property
    def form(self) -> CallForm | None:
        """How the chat template writes a call; None unless its arguments are a JSON object and the
        response template reads it back.
        """
        example = self._example()
        if example is None:
            return None
        arguments = re.search(r'\{\s*"holdfast_key"\s*:\s*"holdfast_value"\s*\}', example.reply)
        if arguments is None:
            return None
        start = example.reply[: arguments.start()]
        end = self._until_stop(example.reply[arguments.end() :])
        reply = start + json.dumps(_ARGUMENTS) + end
        if self._read(reply, example.prompt, [_TOOL]).functions != [_EXAMPLE]:
            return None
        without_space = start.lstrip()
        space = start.removesuffix(without_space)
        # up to the first line break, or the end of the first tag or bracket
        opening = re.split(r"\n|(?<=>)|(?<=\])", without_space, maxsplit=1)[0]
        added = self._added(without_space + end)
        return CallForm(space, without_space, end, _NAME, opening, added)

    def _example(self) -> _WrittenCall | None:
        """A call as the chat template writes it; None if it writes none, or another prompt in front
        of it.
        """
        question: list[Message] = [{"role": "user", "content": "?"}]
        call = {"id": _CALL_ID, "type": "function", "function": _EXAMPLE}
        answer = {"role": "assistant", "content": "", "tool_calls": [call]}
        try:
            prompt = self._rendered(question, add_generation_prompt=True)
            dialog = self._rendered([*question, answer])
        except Exception:  # whatever a template raises
            return None
        if not dialog.startswith(prompt):  # a reply may begin otherwise, such as with reasoning
            return None
        return _WrittenCall(prompt, dialog.removeprefix(prompt))

    def _until_stop(self, text: str) -> str:
        """A text up to the first token that ends a reply."""
        decoded = (str(self.model.tokenizer.decode([token])) for token in self.model.stop_ids)
        ends = list(filter(None, decoded))  # an id that the tokenizer lacks is no text
        if not ends:
            return text
        return re.split("|".join(map(re.escape, ends)), text)[0]

    def _rendered(self, messages: Sequence[Message], **options: Any) -> str:
        """The chat with the example's tool, as the chat template writes it."""
        return str(
            self.model.tokenizer.apply_chat_template(
                list(messages), tools=[_TOOL], tokenize=False, **options
            )
        )

    def _added(self, text: str) -> dict[str, int]:
        """The tokens in a text that are added to the vocabulary, which no other tokens spell."""
        added: Mapping[int, Any] = self.model.tokenizer.added_tokens_decoder
        return {
            token.content: number
            for number, token in added.items()
            if token.content in text and token.content.strip()  # spaces are spelt by others too
        }

    def without_calls(self, message: Message, tools: Sequence[Tool]) -> Message:
        """A message of the assistant whose content has no calls that `tool_calls` has too."""
        if not message.get("tool_calls") or not message["content"] or self.template is None:
            return message
        parts = self._read(message["content"], "", tools)
        if parts.functions != [call["function"] for call in message["tool_calls"]]:
            return message
        return {**message, "content": "", **parts.other_fields}

    def _read(self, text: str, prompt: str, tools: Sequence[Tool]) -> _ReplyParts:
        """The parts of a reply; none if a call lacks its name or its arguments."""
        template = self.template or {}
        begins = re.search(_pattern(template, "start_anchor"), prompt, re.DOTALL)
        prefix = prompt if begins else ""
        try:
            message = self.model.tokenizer.parse_response(
                text, template, prefix=prefix, tools=list(tools)
            )
            functions = [call["function"] for call in message.get("tool_calls") or ()]
            if all(
                isinstance(function["name"], str) and isinstance(function["arguments"], dict)
                for function in functions
            ):
                other_fields = {
                    name: value
                    for name, value in message.items()
                    if name not in ("role", "tool_calls")
                }
                return _ReplyParts(other_fields, functions)
        except (ValueError, KeyError, TypeError):  # the model wrote something else there
            pass
        return _ReplyParts({}, [])


def _pattern(part: Mapping[str, Any], name: str) -> str:
    """The pattern of an anchor in a response template, given as such or as one or several texts."""
    texts = part.get(name, [])
    texts = [texts] if isinstance(texts, str) else texts
    return part.get(f"{name}_pattern") or "|".join(map(re.escape, texts))
