"""Renders chats with a model's own chat template, or with the plain one.

For example, a template writes the messages [{"role": "user", "content": "Hello."}] as
"<|user|>Hello.<|assistant|>".
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.chat.messages import ROLES, Message, Messages, Tool, uses_tools
from holdfast.errors import NoSystemRole, PromptError, UsageError, option, reason_of
from holdfast.plurals import listing

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

# --- Templates of tokenizers

PLAIN = "plain"
# For a base model, which has no template: the messages as one text, which the model continues.
_PLAIN_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ message['content'] }}"
    "{% if not loop.last %}{{ '\n\n' }}{% endif %}{% endfor %}"
)


def read_template(name: str) -> str:
    """Reads a chat template by its name: "plain", or the path of a Jinja file."""
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
    """Returns the tokenizer's chat template, changed if necessary so that it begins with the BOS
    token.

    For tokenizers that add this token to every text: chats are tokenized exactly as they are
    rendered, so the template has to write it. None if the tokenizer has no template.
    """
    template: str | None = tokenizer.chat_template
    if template is None or not tokenizer.bos_token:
        return template
    hello: Message = {"role": "user", "content": "Hello."}
    for chat in ([hello], [{"role": "system", "content": "Be kind."}, hello]):
        try:
            text = render_text(chat, tokenizer)
        except PromptError:  # some templates need a system prompt, others refuse one
            continue
        if not text.startswith(str(tokenizer.bos_token)):
            return "{{ bos_token }}" + template
    return template


def continues_text(tokenizer: PreTrainedTokenizerFast) -> bool:
    """Whether the tokenizer has the plain template, so that a reply continues a text."""
    return bool(tokenizer.chat_template == _PLAIN_TEMPLATE)


# --- Rendering

_MAX_REASON = 200  # characters of a template's own error message in ours
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


def render_text(
    messages: Messages, tokenizer: PreTrainedTokenizerFast, tools: Sequence[Tool] = ()
) -> str:
    """Renders a chat with the tokenizer's template, dated `TODAY`.

    Does not check that the template keeps the whole chat; `lost_messages` does.

    Raises:
        PromptError: there is no template, or it refuses the chat.
    """
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
    """Renders a chat with a template as transformers does, ready for the reply."""
    text = tokenizer.apply_chat_template(
        list(messages), tools, chat_template=template, tokenize=False, add_generation_prompt=True
    )
    return str(text)


def _with_tool_names(messages: Messages) -> list[Message]:
    """Adds the name of the tool to each result, because some templates print it."""
    names: dict[str, str] = {}  # by the id of the call
    with_names = []
    for message in messages:
        for call in message.get("tool_calls") or ():
            names[call.get("id")] = call["function"]["name"]
        name = names.get(message.get("tool_call_id", ""))
        with_names.append({"name": name, **message} if name else message)
    return with_names


def _template_refusal(messages: Messages, reason: str) -> PromptError:
    """The error for a chat without tools that the template refuses for this reason."""
    if "system" in reason.lower() and any(message["role"] == "system" for message in messages):
        return NoSystemRole(
            f"The chat template has no system role ({reason}); put the system prompt before the"
            f" first user message ({option('system_as', 'first-user')})."
        )
    roles = dict.fromkeys(message["role"] for message in messages)
    if others := [repr(role) for role in roles if role not in ROLES]:
        known = f"{', '.join(ROLES[:-1])} or {ROLES[-1]}"
        cure = f"it may not know the role {listing(others)}; use {known}"
    else:
        cure = "check that its roles alternate, beginning with the user"
    return PromptError(f"The chat template refuses this chat ({reason}); {cure}.")


# --- Content in parts

# By template: the roles whose content it reads as a list of parts, [{"type": "text", "text": ...}],
# and drops as a string.
_ROLES_IN_PARTS: OrderedDict[str, frozenset[str]] = OrderedDict()
_MAX_TEMPLATES = 100  # entries of this cache
_PRINTED_PARTS = ("'type': 'text'", '"type": "text"')  # a template prints the list itself


def _as_parts(messages: Sequence[Message], roles: frozenset[str]) -> list[Message]:
    """Turns the content of messages with these roles into a list of one part."""
    return [
        {**message, "content": [{"type": "text", "text": message["content"]}]}
        if message["role"] in roles
        else message
        for message in messages
    ]


def _roles_in_parts(template: str, tokenizer: PreTrainedTokenizerFast) -> frozenset[str]:
    """The roles whose messages this template keeps only if their content is a list of parts."""
    if template not in _ROLES_IN_PARTS:
        _ROLES_IN_PARTS[template] = _find_roles_in_parts(template, tokenizer)
        while len(_ROLES_IN_PARTS) > _MAX_TEMPLATES:
            _ROLES_IN_PARTS.popitem(last=False)
    return _ROLES_IN_PARTS[template]


def _find_roles_in_parts(template: str, tokenizer: PreTrainedTokenizerFast) -> frozenset[str]:
    """Finds these roles by rendering marked messages, as strings and as lists of parts."""
    roles = ("system", "user", "assistant", "user")
    marks = [f"h7f3d{number}x" for number in range(len(roles))]
    longest = [{"role": role, "content": mark} for role, mark in zip(roles, marks, strict=True)]
    for chat in (longest, longest[1:], longest[1:2]):  # a template may refuse a role
        roles_in_chat = frozenset(message["role"] for message in chat)
        kept = _find_kept_roles(chat, frozenset(), template, tokenizer)
        if kept == roles_in_chat:
            return frozenset()
        for in_parts in (roles_in_chat - kept, roles_in_chat):
            if _find_kept_roles(chat, in_parts, template, tokenizer) == roles_in_chat:
                # templates read a tool's result like a user's message
                return in_parts | ({"tool"} if "user" in in_parts else set())
    return frozenset()


def _find_kept_roles(
    chat: list[Message],
    in_parts: frozenset[str],
    template: str,
    tokenizer: PreTrainedTokenizerFast,
) -> frozenset[str]:
    """The roles whose messages the template keeps, all of them, if the content of the roles
    `in_parts` is a list; none if the template fails.
    """
    try:
        text = _apply(_as_parts(chat, in_parts), tokenizer, template)
    except Exception:  # a template is a program, and may raise any error
        return frozenset()
    if any(quote in text for quote in _PRINTED_PARTS):
        return frozenset()
    lost = {message["role"] for message in chat if message["content"] not in text}
    return frozenset(message["role"] for message in chat) - lost
