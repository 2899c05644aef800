"""The lines of a session of Claude Code, each an event with its fields."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from holdfast.transcripts.json_fields import at, list_of
from holdfast.validation.json_values import fields_of

BOUNDARY = "compact_boundary"
MICRO_BOUNDARY = "microcompact_boundary"
BOUNDARIES = (BOUNDARY, MICRO_BOUNDARY)
_NOT_A_MODEL = "<synthetic>"  # in place of a model's name, in what Claude Code itself wrote


@dataclass(frozen=True)
class SessionLine:
    """A line of a session.

    Args:
        where: its file and position.
        id: its uuid; a made-up one if it has none, or one that other lines have.
        has_uuid: whether `id` is its uuid.
        parent: the uuid of the line before it; None for a first one.
        fields: of its JSON.
    """

    where: str
    id: str
    has_uuid: bool
    parent: str | None
    fields: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """Its type; "" if it has none."""
        return str(self.fields.get("type") or "")

    @property
    def is_message(self) -> bool:
        """Whether it is a message in either role; most lines of both are results and calls."""
        return self.kind in ("user", "assistant")

    @property
    def is_root(self) -> bool:
        """Whether it says that nothing precedes it."""
        return "parentUuid" in self.fields and self.parent is None

    @property
    def session(self) -> str:
        return str(self.fields.get("sessionId") or self.fields.get("session_id") or "")

    @property
    def agent(self) -> str:
        """The subagent whose line it is; "" for the session itself and for unnamed subagents."""
        return str(self.fields.get("agentId") or self.fields.get("parent_tool_use_id") or "")

    @property
    def is_of_sidechain(self) -> bool:
        return self.flag("isSidechain")

    @property
    def content(self) -> Any:
        return at(self.fields, "message", "content")

    @cached_property
    def blocks(self) -> list[Mapping[str, Any]]:
        """The content's blocks that are objects."""
        return [block for block in list_of(self.content) if isinstance(block, Mapping)]

    @cached_property
    def texts(self) -> list[str]:
        """The texts of a message, which is one text or has several blocks."""
        texts = [self.content, *(block.get("text") for block in self.blocks)]
        return [text for text in texts if isinstance(text, str)]

    @property
    def text(self) -> str:
        return "\n".join(self.texts)

    @property
    def reply_id(self) -> str:
        """The id of the model's reply, whose blocks are a line each; "" for other lines."""
        return str(at(self.fields, "message", "id") or "") if self.kind == "assistant" else ""

    @property
    def is_by_the_program(self) -> bool:
        """Whether a reply was written by Claude Code itself, such as an API's error."""
        return self.kind == "assistant" and (
            self.flag("isApiErrorMessage") or at(self.fields, "message", "model") == _NOT_A_MODEL
        )

    @property
    def is_boundary(self) -> bool:
        return self.kind == "system" and self.fields.get("subtype") == BOUNDARY

    @property
    def clears_context(self) -> bool:
        """Whether it is the command that clears the context."""
        return "<command-name>/clear</command-name>" in self.text

    @property
    def is_summary(self) -> bool:
        return self.flag("isCompactSummary")

    def flag(self, name: str) -> bool:
        """Whether a field is true."""
        return self.fields.get(name) is True

    def ids_in(self, kind: str, name: str) -> set[str]:
        """The ids in a field of the blocks of a type; a block without one has none."""
        blocks = (block for block in self.blocks if block.get("type") == kind)
        return {str(block[name]) for block in blocks if block.get(name)}

    def has_block(self, kind: str) -> bool:
        """Whether one of the blocks is of a type."""
        return any(block.get("type") == kind for block in self.blocks)

    @property
    def takes_back(self) -> list[str]:
        """The uuids of replies that another one replaced, or that a refusal took back."""
        replaced = list_of(self.fields.get("supersedesUuids"))
        retracted = list_of(self.fields.get("retractedMessageUuids"))
        return [*map(str, replaced), *map(str, retracted)]

    @property
    def compaction(self) -> Mapping[str, Any]:
        """The details of a compaction that its boundary gives."""
        return fields_of(self.fields.get("compactMetadata", self.fields.get("compact_metadata")))

    def preserved(self, end: str) -> str:
        """The uuid at an end (`head`, `anchor`, `tail`) of the lines that a compaction kept as they
        are; "" if it kept none.
        """
        segment = self.compaction.get("preservedSegment", self.compaction.get("preserved_segment"))
        return str(at(segment, f"{end}Uuid") or at(segment, f"{end}_uuid") or "")
