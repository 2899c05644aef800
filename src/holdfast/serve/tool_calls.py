"""Tool calls in the text of a reply, in the formats that transformers can parse."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

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
        for function in self._read(text, prompt, tools)[1]:
            arguments = json.dumps(function["arguments"], ensure_ascii=False)
            called = {"name": function["name"], "arguments": arguments}
            # an id in the form that Mistral's templates require
            calls.append(ParsedCall(id=secrets.token_hex(8)[:9], type="function", function=called))
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
        written = self._written_example()
        if written is None:
            return None
        prompt, reply = written
        arguments = re.search(r'\{\s*"holdfast_key"\s*:\s*"holdfast_value"\s*\}', reply)
        if arguments is None:
            return None
        before = reply[: arguments.start()]
        after = self._until_stop(reply[arguments.end() :])
        read_back = self._read(before + json.dumps(_ARGUMENTS) + after, prompt, [_TOOL])[1]
        if read_back != [_EXAMPLE]:
            return None
        space = before[: len(before) - len(before.lstrip())]
        before = before.lstrip()
        # up to the first line break, or the end of the first tag or bracket
        opening = re.split(r"\n|(?<=>)|(?<=\])", before, maxsplit=1)[0]
        return CallForm(space, before, after, _NAME, opening, self._added(before + after))

    def _written_example(self) -> tuple[str, str] | None:
        """A prompt, and a reply that calls a tool, as the chat template writes them; None if it
        writes no such reply, or another prompt in front of it.
        """
        question: list[Message] = [{"role": "user", "content": "?"}]
        call = {"id": _CALL_ID, "type": "function", "function": _EXAMPLE}
        called = [*question, {"role": "assistant", "content": "", "tool_calls": [call]}]
        try:
            prompt = self._rendered(question, add_generation_prompt=True)
            rendered = self._rendered(called)
        except Exception:  # whatever a template raises
            return None
        # a reply may begin otherwise, such as with reasoning
        return (prompt, rendered.removeprefix(prompt)) if rendered.startswith(prompt) else None

    def _until_stop(self, text: str) -> str:
        """A text up to the first token that ends a reply."""
        decoded = (str(self.model.tokenizer.decode([token])) for token in self.model.stop_ids)
        ends = list(filter(None, decoded))  # an id that the tokenizer lacks is no text
        return re.split("|".join(map(re.escape, ends)), text)[0] if ends else text

    def _rendered(self, messages: Sequence[Message], **more: Any) -> str:
        """The chat with the example's tool, as the chat template writes it."""
        return str(
            self.model.tokenizer.apply_chat_template(
                list(messages), tools=[_TOOL], tokenize=False, **more
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
        beside, functions = self._read(message["content"], "", tools)
        same = functions == [call["function"] for call in message["tool_calls"]]
        return {**message, "content": "", **beside} if same else message

    def _read(
        self, text: str, prompt: str, tools: Sequence[Tool]
    ) -> tuple[Message, list[dict[str, Any]]]:
        """The fields of a reply other than its calls, such as text and reasoning, and the function
        of each call, with its name, and its arguments as an object; {} and [] if a call lacks one.
        """
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
                others = ("role", "tool_calls")
                return {name: message[name] for name in message if name not in others}, functions
        except (ValueError, KeyError, TypeError):  # the model wrote something else there
            pass
        return {}, []


def _pattern(part: Mapping[str, Any], name: str) -> str:
    """The pattern of an anchor in a response template, given as such or as one or several texts."""
    texts = part.get(name, [])
    texts = [texts] if isinstance(texts, str) else texts
    return part.get(f"{name}_pattern") or "|".join(map(re.escape, texts))
