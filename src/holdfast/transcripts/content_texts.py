"""Reads the texts in the content of a message.

    "Hello"                                                 -> "Hello"
    [{"type": "text", "text": "Hello"}, {"type": "image"}]  -> "Hello", and a part of the kind image

A content is a text, or a list of parts, some of which have a text.
"""

from collections.abc import Mapping
from typing import Any

from holdfast.errors import shortened
from holdfast.transcripts.json_fields import at, first_of
from holdfast.transcripts.transcript import Malformed

# types of parts and items that are in a log but are not shown in the reply
HIDDEN_TYPES = (
    "reasoning",
    "thinking",
    "redacted_thinking",
    "think",
    "tool_reference",  # to a tool that a search for tools found
    *("flag", "token_budget"),  # of Claude.ai
    "agent_update",  # of LibreChat, where another agent goes on
    "step-start",  # of Vercel's AI SDK
    # items of the Responses API about the dialog itself, and about tools that its server runs
    "item_reference",
    "compaction",
    "compaction_trigger",
    "additional_tools",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "program",
    "program_output",
    "tool_search_output",
)


def text_of(content: Any) -> str:
    """Returns the texts in a content, joined by line breaks.

    Raises:
        Malformed: it is neither text nor a list of parts.
    """
    texts = (text_of_part(part) for part in parts_of(content))
    return "\n".join(text for text in texts if text is not None)


def kinds_without_text(content: Any) -> tuple[str, ...]:
    """Returns the types of the parts that `text_of` leaves out, except those that are hidden.

    Raises:
        Malformed: it is neither text nor a list of parts.
    """
    parts = (part for part in parts_of(content) if text_of_part(part) is None)
    return tuple(kind_of_part(part) for part in parts if type_of_part(part) not in HIDDEN_TYPES)


def parts_of(content: Any) -> list[Any]:
    """Returns the parts of a content; a text is one.

    Raises:
        Malformed: it is neither text nor a list of parts.
    """
    if content is None:
        return []
    if isinstance(content, list):
        return content
    if isinstance(content, (str, Mapping)):
        return [content]
    raise Malformed(f"{shortened(content)} is neither text nor a list of parts")


def text_of_part(part: Any) -> str | None:
    """Returns the text of a part; None if it has none, or its text is not shown in the reply."""
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        raise Malformed(f"{shortened(part)} is not a part of a message")
    if isinstance(part.get("message_content"), Mapping):  # OpenInference
        part = part["message_content"]
    text = first_of(part, "text", "refusal")
    if text is None and part.get("type") == "resource":  # of the Model Context Protocol
        text = at(part, "resource", "text")
    if isinstance(text, Mapping):  # LibreChat, and OpenAI's Assistants
        text = text.get("value")
    return text if isinstance(text, str) and part.get("type") not in HIDDEN_TYPES else None


def type_of_part(part: Mapping[str, Any]) -> Any:
    """Returns the type of a part; None if it has no type."""
    nested = part.get("message_content")  # OpenInference
    return at(nested, "type") if isinstance(nested, Mapping) else part.get("type")


def kind_of_part(part: Mapping[str, Any]) -> str:
    """Returns the type of a part; the name of its first field if it has no type."""
    names = (name for name, value in part.items() if value is not None)
    return str(type_of_part(part) or part.get("kind") or next(names, "empty"))
