"""The messages of a chat, in the form of OpenAI and Hugging Face, unchanged."""

from __future__ import annotations

from holdfast.errors import UsageError

Message = dict[str, str]

ROLES = ("system", "user", "assistant")  # a chat template may know more, such as "tool"
SYSTEM_AS = ("role", "first-user")


def check_message(number: int, message: object) -> None:
    """Refuses what is no message with a role and a text.

    Raises:
        UsageError: says which message it is, and what stands there.
    """
    if not isinstance(message, dict):
        raise UsageError(
            f"Message {number} is {shortened(message)}; write it as {{'role': 'user', 'content':"
            " 'Hello.'}."
        )
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str) or (role not in ROLES and role.strip().lower() in ("", *ROLES)):
        raise UsageError(
            f"Message {number} has the role {shortened(role)}; use {', '.join(ROLES[:-1])} or"
            f" {ROLES[-1]}."
        )
    if isinstance(content, list):
        raise UsageError(
            f"Message {number} has a list as its content ({shortened(content)}), and only text is"
            " supported; join its texts into one string."
        )
    if not isinstance(content, str):
        raise UsageError(
            f"Message {number} has the content {shortened(content)}, and only text is supported;"
            " give a string."
        )


def shortened(value: object) -> str:
    """A value as it is shown in an error."""
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"
