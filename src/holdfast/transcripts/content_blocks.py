"""Reads the content of a message into blocks: its texts, tool calls and tool results.

For example:

    [{"type": "text", "text": "Let me look."}, {"type": "tool_use", "name": "ls", "input": {}}]
    -> TextBlock("Let me look."), ToolCall("ls", {})
"""

from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.transcripts.content_texts import kind_of_part, parts_of
from holdfast.transcripts.part_blocks import ContentBlock, TextBlock, UnreadPart, blocks_in
from holdfast.validation.json_values import fields_of


def blocks_of(content: Any) -> Iterator[ContentBlock]:
    """Reads the blocks in a content.

    Raises:
        Malformed: a part cannot be read.
    """
    was_cited = False
    for part in parts_of(content):
        is_cited = isinstance(part, Mapping) and bool(part.get("citations"))  # Anthropic's
        blocks = blocks_in(part)
        for block in [UnreadPart(kind_of_part(part))] if blocks is None else blocks:
            if isinstance(block, TextBlock):
                yield TextBlock(block.text, continues=is_cited or was_cited)
            else:
                yield block
        was_cited = is_cited


def first_unread(content: Any) -> Any:
    """Returns the first part that is not read, such as an image; None without one.

    Parts of a tool's result in the content count too.

    Raises:
        Malformed: a part cannot be read.
    """
    for part in parts_of(content):
        if blocks_in(part) is None:
            return part
        nested = fields_of(part).get("content")
        if isinstance(nested, list) and (unread := first_unread(nested)) is not None:
            return unread
    return None
