"""Renders chats with a model's own template."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.chat.messages import Message, Messages, Tool, uses_tools
from holdfast.errors import NoSystemRole, PromptError, UsageError, option, reason_of, shortened

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_MAX_REASON = 200  # characters of a template's own text that an error quotes

# Some templates write today's date into the prompt, which would change replies from day to day.
# Here it is always midnight of 26 July 2024, the default date of Llama 3's templates.
TODAY = {
    "%a": "Fri", "%A": "Friday", "%u": "5", "%w": "5", "%d": "26", "%-d": "26", "%e": "26",
    "%j": "208", "%b": "Jul", "%B": "July", "%m": "07", "%-m": "7", "%y": "24", "%Y": "2024",
    "%F": "2024-07-26", "%D": "07/26/24", "%H": "00", "%-H": "0", "%I": "12", "%-I": "12",
    "%M": "00", "%-M": "0", "%S": "00", "%-S": "0", "%p": "AM", "%T": "00:00:00", "%R": "00:00",
    "%Z": "", "%z": "",
}  # fmt: skip
# Replaces transformers' function of that name. It is a macro because functions cannot be passed to
# a template. The line break belongs to the block, so the template after it starts as before.
_CLOCK = (
    "{% macro strftime_now(format) %}{{ format"
    + "".join(f"|replace('{code}', '{value}')" for code, value in TODAY.items())
    + " }}{% endmacro %}\n"
)

PLAIN = "plain"
# For a base model, which has no template: the messages as one text, which the model continues.
_PLAIN_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ message['content'] }}"
    "{% if not loop.last %}{{ '\n\n' }}{% endif %}{% endfor %}"
)


def read_template(name: str) -> str:
    """A chat template by name: "plain", or the path of a Jinja file."""
    if name == PLAIN:
        return _PLAIN_TEMPLATE
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            f"The chat template {name!r} cannot be read ({reason_of(error)}); give {PLAIN}, or"
            " the path of a Jinja file in UTF-8.",
            option="chat_template",
            value=name,
        ) from error


def begin_with_bos(tokenizer: PreTrainedTokenizerFast) -> str | None:
    """The tokenizer's chat template, which writes the token for the beginning of a text first if it
    does not yet; for a tokenizer that begins every text with it, as chats are tokenized as they are
    rendered.
    """
    template: str | None = tokenizer.chat_template
    if template is None or not tokenizer.bos_token:
        return template
    hello: Message = {"role": "user", "content": "Hello."}
    for chat in ([hello], [{"role": "system", "content": "Be kind."}, hello]):
        try:
            text = render_text(chat, tokenizer)
        except PromptError:  # a template may refuse a chat with, or without, a system prompt
            continue
        if not text.startswith(str(tokenizer.bos_token)):
            return "{{ bos_token }}" + template
    return template


def continues_text(tokenizer: PreTrainedTokenizerFast) -> bool:
    """Whether the plain template is in use, with which a reply continues a text."""
    return bool(tokenizer.chat_template == _PLAIN_TEMPLATE)


def render_text(
    messages: Messages, tokenizer: PreTrainedTokenizerFast, tools: Sequence[Tool] = ()
) -> str:
    """The chat rendered by its template, dated `TODAY`; does not check that its tools are in."""
    from jinja2 import TemplateError

    if not tokenizer.chat_template:
        raise PromptError(
            f"{tokenizer.name_or_path or 'This model'} has no chat template (a base model?); "
            f"use a chat model, or {option('chat_template', PLAIN)}."
        )
    try:
        declared: Any = list(tools) or None
        template = tokenizer.get_chat_template(tools=declared)
        if "strftime_now" in template:
            template = _CLOCK + template
        chat = _as_parts(_with_tool_names(messages), _roles_in_parts(template, tokenizer))
        return _apply(chat, tokenizer, template, declared)
    except RecursionError:
        raise PromptError(
            f"The chat template of {tokenizer.name_or_path or 'this model'} calls itself without "
            "end; set tokenizer.chat_template to one that ends, or use another model."
        ) from None
    except Exception as error:  # a template is a program: dividing by zero is not a TemplateError
        kind = "" if isinstance(error, TemplateError) else f"{type(error).__name__}: "
        reason = f"{kind}{error}"[:_MAX_REASON]
        if tools or uses_tools(messages):
            raise PromptError(
                f"The chat template refuses this chat with tools ({reason}); use a model whose"
                " template renders them."
            ) from error
        raise _template_refusal(messages, reason) from error


def _apply(
    messages: Messages, tokenizer: PreTrainedTokenizerFast, template: str, tools: Any = None
) -> str:
    text = tokenizer.apply_chat_template(
        list(messages), tools, chat_template=template, tokenize=False, add_generation_prompt=True
    )
    return str(text)


def _as_parts(messages: Sequence[Message], roles: frozenset[str]) -> list[Message]:
    """The messages, with the content of some roles as a list of one part."""
    return [
        {**message, "content": [{"type": "text", "text": message["content"]}]}
        if message["role"] in roles
        else message
        for message in messages
    ]


# By template: the roles whose content it reads as a list of parts, and drops as a string.
_IN_PARTS: OrderedDict[str, frozenset[str]] = OrderedDict()
_MAX_TEMPLATES = 100  # templates
_PRINTED_PARTS = ("'type': 'text'", '"type": "text"')  # a template that prints the list itself


def _roles_in_parts(template: str, tokenizer: PreTrainedTokenizerFast) -> frozenset[str]:
    """The roles whose messages this template keeps only if their content is a list of parts."""
    if template not in _IN_PARTS:
        _IN_PARTS[template] = _find_roles_in_parts(template, tokenizer)
        while len(_IN_PARTS) > _MAX_TEMPLATES:
            _IN_PARTS.popitem(last=False)
    return _IN_PARTS[template]


def _find_roles_in_parts(template: str, tokenizer: PreTrainedTokenizerFast) -> frozenset[str]:
    roles = ("system", "user", "assistant", "user")
    marks = [f"h7f3d{number}x" for number in range(len(roles))]
    longest = [{"role": role, "content": mark} for role, mark in zip(roles, marks, strict=True)]
    for chat in (longest, longest[1:], longest[1:2]):  # a template may refuse a role
        roles_in_chat = frozenset(message["role"] for message in chat)
        rendered = _rendered_roles(chat, frozenset(), template, tokenizer)
        if rendered == roles_in_chat:
            return frozenset()
        for in_parts in (roles_in_chat - rendered, roles_in_chat):
            if _rendered_roles(chat, in_parts, template, tokenizer) == roles_in_chat:
                # a tool's result is read as a user's message is
                return in_parts | ({"tool"} if "user" in in_parts else set())
    return frozenset()


def _rendered_roles(
    chat: list[Message],
    in_parts: frozenset[str],
    template: str,
    tokenizer: PreTrainedTokenizerFast,
) -> frozenset[str]:
    """The roles whose messages are all rendered, with the content of some as a list of parts; a
    template that fails renders none.
    """
    try:
        text = _apply(_as_parts(chat, in_parts), tokenizer, template)
    except Exception:  # a template is a program
        return frozenset()
    if any(quote in text for quote in _PRINTED_PARTS):
        return frozenset()
    lost = {message["role"] for message in chat if message["content"] not in text}
    return frozenset(message["role"] for message in chat) - lost


def _with_tool_names(messages: Messages) -> list[Message]:
    """The messages, with the tool's name added to each result, as some templates print it."""
    names: dict[str, str] = {}  # by the id of the call
    with_names = []
    for message in messages:
        for call in message.get("tool_calls") or ():
            names[call.get("id")] = call["function"]["name"]
        name = names.get(message.get("tool_call_id", ""))
        with_names.append({"name": name, **message} if name else message)
    return with_names


def check_tools(
    messages: Messages, tokenizer: PreTrainedTokenizerFast, tools: Sequence[Tool] = ()
) -> None:
    """Refuses a chat if its template drops part of its tools, detected by a mark in every part."""
    mark = "x" + hashlib.sha256(repr((messages, tools)).encode("utf-8", "replace")).hexdigest()[:16]
    parts: list[str] = []

    def marked(part: str) -> str:
        parts.append(part)
        return f"{mark}n{len(parts)}x"

    declared = []
    for tool in tools:
        function = tool["function"]
        name = function["name"] + marked(f"the declared tool {function['name']!r}")
        declared.append({**tool, "function": {**function, "name": name}})
    chat: list[Message] = []
    for message in messages:
        text = message["content"]
        calls = []
        for call in message.get("tool_calls") or ():
            function = call["function"]
            name = function["name"] + marked(f"the call of {function['name']!r}")
            value = marked(f"the arguments {shortened(function['arguments'])} of a tool call")
            arguments = {**function["arguments"], mark: value}
            calls.append({**call, "function": {"name": name, "arguments": arguments}})
        if message["role"] == "tool":
            text += marked(f"the tool's result {shortened(text)}")
        elif calls and text.strip():
            text += marked(f"the text {shortened(text)} beside a tool call")
        elif message["role"] != "system" and text.strip():
            text += marked(f"the {message['role']} message {shortened(text)}")
        chat.append({**message, "content": text, **({"tool_calls": calls} if calls else {})})
    rendered = render_text(chat, tokenizer, declared)
    for number, part in enumerate(parts, start=1):
        if f"{mark}n{number}x" not in rendered:
            raise PromptError(
                f"The chat template of {tokenizer.name_or_path or 'this model'} leaves out {part};"
                " use a model whose template renders tools, or leave them out."
            )


def _template_refusal(messages: Messages, reason: str) -> PromptError:
    if "system" in reason.lower() and any(message["role"] == "system" for message in messages):
        return NoSystemRole(
            f"The chat template has no system role ({reason}); put the system prompt before the"
            f" first user message ({option('system_as', 'first-user')})."
        )
    return PromptError(
        f"The chat template refuses this chat ({reason}); check that its roles alternate, beginning"
        " with the user."
    )
