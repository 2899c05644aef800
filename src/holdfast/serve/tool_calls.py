"""Parses tool calls in the text of a reply, in the formats that transformers knows."""

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
from holdfast.models.grammars import CallForm

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel


# an example of a call, which the chat template writes to show its format
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
    """The call of the example, as a chat template writes it."""

    prompt: str
    reply: str  # with the call


class _ReplyParts(NamedTuple):
    """The parts of a reply, as a response template reads it."""

    other_fields: Message  # all fields except the calls, such as the text and the reasoning
    functions: list[dict[str, Any]]  # the name, and the arguments as an object, of each call


@dataclass(frozen=True)
class CallParser:
    """Parses tool calls with a response template, transformers' description of their format."""

    name: str  # of the model, for errors
    model: LocalModel

    @cached_property
    def template(self) -> dict[str, Any] | None:
        """The tokenizer's response template, or transformers' own for the model type; None if there
        is neither.
        """
        template: dict[str, Any] | None = getattr(self.model.tokenizer, "response_template", None)
        if template is None and (hf_model := getattr(self.model, "hf_model", None)) is not None:
            try:
                from transformers.cli.serving.utils import get_response_template
            except ImportError:  # an older transformers
                return None
            template = get_response_template(self.model.tokenizer, hf_model)
        return template

    def parse(self, text: str, prompt: str, tools: Sequence[Tool]) -> list[ParsedCall]:
        """Parses the calls in a reply; [] if there is none, or if any is malformed.

        Args:
            text: the reply, with its special tokens.
            prompt: the prompt, which may end with the beginning of the reply.
            tools: the declared tools, with the types of their arguments.
        """
        calls = []
        for call in self._read(text, prompt, tools).functions:
            arguments = json.dumps(call["arguments"], ensure_ascii=False)
            function = {"name": call["name"], "arguments": arguments}
            call_id = secrets.token_hex(8)[:9]  # nine characters, as Mistral's templates require
            calls.append(ParsedCall(id=call_id, type="function", function=function))
        return calls

    def is_unparsed(self, text: str) -> bool:
        """Whether a reply without parsed calls has the beginning of one."""
        opening = _pattern((self.template or {}).get("fields", {}).get("tool_calls", {}), "open")
        return bool(opening and re.search(opening, text, re.DOTALL))

    @cached_property
    def form(self) -> CallForm | None:
        """How the chat template writes a call.

        None if the arguments are not a JSON object there, or if the response template does not read
        the call back.
        """
        example = self._write_example()
        if example is None:
            return None
        arguments = re.search(r'\{\s*"holdfast_key"\s*:\s*"holdfast_value"\s*\}', example.reply)
        if arguments is None:
            return None
        start = example.reply[: arguments.start()]
        end = self._cut_at_stop(example.reply[arguments.end() :])
        reply = start + json.dumps(_ARGUMENTS) + end
        if self._read(reply, example.prompt, [_TOOL]).functions != [_EXAMPLE]:
            return None
        without_space = start.lstrip()
        space = start.removesuffix(without_space)
        # up to the first line break, or to the end of the first tag or bracket
        opening = re.split(r"\n|(?<=>)|(?<=\])", without_space, maxsplit=1)[0]
        special = self._added_tokens(without_space + end)
        return CallForm(space, without_space, end, _NAME, opening, special)

    def _write_example(self) -> _WrittenCall | None:
        """Has the chat template write the call; None if it cannot, or writes another prompt before
        it than before a reply.
        """
        question: list[Message] = [{"role": "user", "content": "?"}]
        call = {"id": _CALL_ID, "type": "function", "function": _EXAMPLE}
        answer = {"role": "assistant", "content": "", "tool_calls": [call]}
        try:
            prompt = self._render(question, add_generation_prompt=True)
            dialog = self._render([*question, answer])
        except Exception:  # a template is a program, and may raise any error
            return None
        if not dialog.startswith(prompt):  # the prompt may already begin the reasoning, say
            return None
        return _WrittenCall(prompt, dialog.removeprefix(prompt))

    def _cut_at_stop(self, text: str) -> str:
        """Cuts a text at the first token that ends a reply."""
        decoded = (str(self.model.tokenizer.decode([token])) for token in self.model.stop_ids)
        ends = list(filter(None, decoded))  # an id that the tokenizer lacks is decoded to ""
        if not ends:
            return text
        return re.split("|".join(map(re.escape, ends)), text)[0]

    def _render(self, messages: Sequence[Message], **options: Any) -> str:
        """Renders a chat that declares the example's tool."""
        return str(
            self.model.tokenizer.apply_chat_template(
                list(messages), tools=[_TOOL], tokenize=False, **options
            )
        )

    def _added_tokens(self, text: str) -> dict[str, int]:
        """The tokens in a text that were added to the vocabulary; no sequence of other tokens has
        their text.
        """
        added: Mapping[int, Any] = self.model.tokenizer.added_tokens_decoder
        return {
            token.content: number
            for number, token in added.items()
            if token.content in text and token.content.strip()  # other tokens also have spaces
        }

    def without_calls(self, message: Message, tools: Sequence[Tool]) -> Message:
        """Removes the calls from the content of a message if it also has them in `tool_calls`."""
        if not message.get("tool_calls") or not message["content"] or self.template is None:
            return message
        parts = self._read(message["content"], "", tools)
        if parts.functions != [call["function"] for call in message["tool_calls"]]:
            return message
        return {**message, "content": "", **parts.other_fields}

    def _read(self, text: str, prompt: str, tools: Sequence[Tool]) -> _ReplyParts:
        """Reads the parts of a reply; both are empty if any call lacks a name or arguments."""
        template = self.template or {}
        begins = re.search(_pattern(template, "start_anchor"), prompt, re.DOTALL)
        prefix = prompt if begins else ""
        try:
            message = self.model.tokenizer.parse_response(
                text, template, prefix=prefix, tools=list(tools)
            )
            functions = [call["function"] for call in message.get("tool_calls") or ()]
            are_complete = all(
                isinstance(function["name"], str) and isinstance(function["arguments"], dict)
                for function in functions
            )
        except (ValueError, KeyError, TypeError):  # the model wrote something else there
            return _ReplyParts({}, [])
        if not are_complete:
            return _ReplyParts({}, [])
        other_fields = {
            name: value for name, value in message.items() if name not in ("role", "tool_calls")
        }
        return _ReplyParts(other_fields, functions)


def _pattern(part: Mapping[str, Any], name: str) -> str:
    """The pattern of an anchor in a response template, which has it as a pattern, as a text or as
    several texts; "" if it has none.
    """
    if pattern := part.get(f"{name}_pattern"):
        return str(pattern)
    texts = part.get(name, [])
    if isinstance(texts, str):
        texts = [texts]
    return "|".join(map(re.escape, texts))
