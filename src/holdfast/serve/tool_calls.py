"""Tool calls in the text of a reply, in the formats that transformers can parse."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from holdfast.chat.messages import Message, Tool

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel


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
        """The calls in a reply with its special tokens; [] if any call is malformed. The prompt
        may end with the beginning of the reply; tools declare the types of arguments.
        """
        calls = []
        for function in self._read(text, prompt, tools)[1]:
            arguments = json.dumps(function["arguments"], ensure_ascii=False)
            called = {"name": function["name"], "arguments": arguments}
            # an id in the form that Mistral's templates require
            calls.append(ParsedCall(id=secrets.token_hex(8)[:9], type="function", function=called))
        return calls

    def without_calls(self, message: Message, tools: Sequence[Tool]) -> Message:
        """Removes from an assistant's content the calls that `tool_calls` has too."""
        if not message.get("tool_calls") or not message["content"] or self.template is None:
            return message
        beside, functions = self._read(message["content"], "", tools)
        same = functions == [call["function"] for call in message["tool_calls"]]
        return {**message, "content": "", **beside} if same else message

    def _read(
        self, text: str, prompt: str, tools: Sequence[Tool]
    ) -> tuple[Message, list[dict[str, Any]]]:
        """The fields other than calls, such as text and reasoning, and each called function."""
        template = self.template or {}
        anchors = template.get("start_anchor", [])
        anchors = [anchors] if isinstance(anchors, str) else anchors
        pattern = template.get("start_anchor_pattern") or "|".join(map(re.escape, anchors))
        prefix = prompt if re.search(pattern, prompt, re.DOTALL) else ""
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
