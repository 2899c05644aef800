"""Checks that a chat template keeps the text of every message, and every part of the tools.

A template is a program, and may leave out a role, a first message or a long text that it does not
expect. To find out, a chat of the same form is rendered with a mark in each part: if a user's
message "x0" and a tool's result "x1" become "<|user|>x0<|assistant|>", the template leaves out
results of tools.

Two things that templates do on purpose are not a loss: they change white space, and they leave out
the reasoning of earlier replies.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.chat.messages import Message, Messages, Tool
from holdfast.chat.templates import render_text
from holdfast.errors import PromptError, shortened

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_MAX_ROLE_SEQUENCES = 1_000  # entries of the cache below; each turn of a dialog adds one
# By template and sequence of roles: the messages that the template leaves out, whatever they say.
_LEFT_OUT_OF_ROLES: OrderedDict[tuple[str, tuple[str, ...]], frozenset[int]] = OrderedDict()
# How reasoning in the text of a reply ends: </think>, [/THINK], <channel|>, ◁/think▷ and the like.
_REASONING_ENDS = re.compile(
    r"(?:<|\[|◁)[/|]*\w*(?:think|thought|reason|reflect|channel)\w*\|?(?:>|\]|▷)", re.IGNORECASE
)
_MARK = "h7f3d"  # begins the marks that stand for messages: h7f3d0x, h7f3d1x, ...


def check_kept(
    text: str,
    messages: Messages,
    template: str,
    write: Callable[[Messages], str],
    *,
    tools_checked: bool = False,
) -> None:
    """Raises a `PromptError` if a rendered chat lacks the text of a message.

    It skips system prompts, which are found when their spans are, and results of tools, which a
    template may write in another notation (`check_tools` looks for a mark in them).

    Args:
        text: the rendered chat.
        messages: the chat.
        template: the source of the template.
        write: renders other messages the same way.
        tools_checked: whether `check_tools` has already looked for a mark in every message.
    """
    left_out = frozenset[int]()
    if not tools_checked:
        left_out = _find_left_out(tuple(message["role"] for message in messages), template, write)
    text_without_space = ""  # made once it is needed
    for number, message in enumerate(messages):
        if message["role"] in ("system", "tool") or not message["content"].strip():
            continue
        if number in left_out:
            raise PromptError(_lost_message(messages, number))
        if message["content"].strip() not in text:
            text_without_space = text_without_space or _without_space(text)
            if not _is_kept(message, text_without_space):
                raise PromptError(_lost_message(messages, number))


def _lost_message(messages: Messages, number: int) -> str:
    """The sentence about a message that the template does not keep."""
    role = messages[number]["role"]
    count = Counter(message["role"] for message in messages[: number + 1])[role]
    return (
        f"The chat template leaves out or rewrites {role} message {count}"
        f" ({shortened(messages[number]['content'])}); use a model whose template keeps every"
        " message, or load it with another chat template."
    )


def _is_kept(message: Message, text_without_space: str) -> bool:
    """Whether a rendered chat, given without white space, has a message; a reply may have lost its
    reasoning.
    """
    content = message["content"]
    if _without_space(content) in text_without_space:
        return True
    if message["role"] != "assistant":
        return False
    ends = (match.end() for match in _REASONING_ENDS.finditer(content))
    return any(_without_space(content[end:]) in text_without_space for end in ends)


def _find_left_out(
    roles: tuple[str, ...], template: str, write: Callable[[Messages], str]
) -> frozenset[int]:
    """The numbers of the messages that the template leaves out of every chat with these roles."""
    key = template, roles
    if key not in _LEFT_OUT_OF_ROLES:
        marks = [f"{_MARK}{number}x" for number in range(len(roles))]
        chat = [{"role": role, "content": mark} for role, mark in zip(roles, marks, strict=True)]
        try:
            text = write(chat)
            left_out = frozenset(n for n, mark in enumerate(marks) if mark not in text)
        except PromptError:  # the template needs more of a message than a role and a text
            left_out = frozenset()
        _LEFT_OUT_OF_ROLES[key] = left_out
        while len(_LEFT_OUT_OF_ROLES) > _MAX_ROLE_SEQUENCES:
            _LEFT_OUT_OF_ROLES.popitem(last=False)
    return _LEFT_OUT_OF_ROLES[key]


def _without_space(text: str) -> str:
    return "".join(text.split())


def check_tools(
    messages: Messages, tokenizer: PreTrainedTokenizerFast, tools: Sequence[Tool] = ()
) -> None:
    """Raises a `PromptError` if the template drops a part of a chat with tools.

    The chat is rendered with a mark in every tool, call, result and message; a missing mark shows
    the part that was dropped.
    """
    digest = hashlib.sha256(repr((messages, tools)).encode("utf-8", "replace")).hexdigest()
    marks = _PartMarks(f"x{digest[:16]}")
    declared = [marks.mark_tool(tool) for tool in tools]
    chat = [marks.mark_message(message) for message in messages]
    rendered = render_text(chat, tokenizer, declared)
    for mark, part in marks.parts.items():
        if mark not in rendered:
            raise PromptError(
                f"The chat template of {tokenizer.name_or_path or 'this model'} leaves out {part};"
                " use a model whose template renders tools, or leave them out."
            )


class _PartMarks:
    """Adds a mark to each part of a chat; every mark begins with `stem`, which the chat lacks.

    Attributes:
        parts: the marked parts in words, by their marks.
    """

    def __init__(self, stem: str):
        self.parts: dict[str, str] = {}
        self._stem = stem

    def mark_tool(self, tool: Tool) -> Tool:
        """Marks the name of a declared tool."""
        function = tool["function"]
        name = function["name"] + self._add(f"the declared tool {function['name']!r}")
        return {**tool, "function": {**function, "name": name}}

    def mark_message(self, message: Message) -> Message:
        """Marks the text of a message, except a system prompt, and its calls."""
        marked = dict(message)
        text = message["content"]
        calls = [self._mark_call(call) for call in message.get("tool_calls") or ()]
        if calls:
            marked["tool_calls"] = calls
        if message["role"] == "tool":
            marked["content"] += self._add(f"the tool's result {shortened(text)}")
        elif calls and text.strip():
            marked["content"] += self._add(f"the text {shortened(text)} beside a tool call")
        elif message["role"] != "system" and text.strip():
            marked["content"] += self._add(f"the {message['role']} message {shortened(text)}")
        return marked

    def _mark_call(self, call: dict[str, Any]) -> dict[str, Any]:
        """Marks the name and the arguments of a call."""
        function = call["function"]
        name = function["name"] + self._add(f"the call of {function['name']!r}")
        value = self._add(f"the arguments {shortened(function['arguments'])} of a tool call")
        arguments = {**function["arguments"], self._stem: value}
        return {**call, "function": {"name": name, "arguments": arguments}}

    def _add(self, part: str) -> str:
        """Returns a new mark for a part, which is described in words."""
        mark = f"{self._stem}n{len(self.parts)}x"
        self.parts[mark] = part
        return mark
