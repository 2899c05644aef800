"""Checks that a chat template keeps the text of every message.

A template is a program, and may leave out a role, a first message or a long text that it does not
expect. Two things that templates do on purpose are not a loss: they change white space, and they
leave out the reasoning of earlier replies.
"""

from __future__ import annotations

import re
from collections import Counter, OrderedDict
from collections.abc import Callable

from holdfast.chat.messages import Message, Messages
from holdfast.errors import PromptError, shortened

_MAX_ROLE_SEQUENCES = 1_000  # entries of the cache below; each turn of a dialog adds one
# By template and sequence of roles: the messages that the template leaves out, whatever they say.
_LEFT_OUT: OrderedDict[tuple[str, tuple[str, ...]], frozenset[int]] = OrderedDict()
# How reasoning in the text of a reply ends: </think>, [/THINK], <channel|>, ◁/think▷ and the like.
_REASONING_ENDS = re.compile(
    r"(?:<|\[|◁)[/|]*\w*(?:think|thought|reason|reflect|channel)\w*\|?(?:>|\]|▷)", re.IGNORECASE
)
_MARK = "h7f3d"  # begins the text of each message in the chats rendered to find the lost ones


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
    packed = ""
    for number, message in enumerate(messages):
        if message["role"] in ("system", "tool") or not message["content"].strip():
            continue
        if number in left_out:
            raise PromptError(_lost_message(messages, number))
        if message["content"].strip() not in text:
            packed = packed or _without_space(text)
            if not _is_kept(message, packed):
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


def _is_kept(message: Message, packed: str) -> bool:
    """Whether a rendered chat has a message, both without white space.

    A reply may have lost its reasoning.
    """
    content = message["content"]
    if _without_space(content) in packed:
        return True
    if message["role"] != "assistant":
        return False
    ends = (match.end() for match in _REASONING_ENDS.finditer(content))
    return any(_without_space(content[end:]) in packed for end in ends)


def _find_left_out(
    roles: tuple[str, ...], template: str, write: Callable[[Messages], str]
) -> frozenset[int]:
    """The numbers of the messages that the template leaves out of every chat with these roles."""
    key = template, roles
    if key not in _LEFT_OUT:
        marks = [f"{_MARK}{number}x" for number in range(len(roles))]
        chat = [{"role": role, "content": mark} for role, mark in zip(roles, marks, strict=True)]
        try:
            text = write(chat)
            _LEFT_OUT[key] = frozenset(n for n, mark in enumerate(marks) if mark not in text)
        except PromptError:  # the template needs more of a message than a role and a text
            _LEFT_OUT[key] = frozenset()
        while len(_LEFT_OUT) > _MAX_ROLE_SEQUENCES:
            _LEFT_OUT.popitem(last=False)
    return _LEFT_OUT[key]


def _without_space(text: str) -> str:
    return "".join(text.split())
