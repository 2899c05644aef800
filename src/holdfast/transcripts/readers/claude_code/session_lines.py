"""The lines that make up the dialogs in a file of Claude Code's, without repetitions.

    {"type": "user", "uuid": "b", "parentUuid": "a", "message": {"content": "Hi"}}
    -> SessionLine(id="b", parent="a", text "Hi")

A file may repeat its history: a session that is resumed writes it again, and some programs copy all
lines so far with each message. `distinct_lines` returns each line once.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from holdfast.transcripts.json_fields import at, list_or_empty
from holdfast.transcripts.reader import SourcedRecord, Unread, position_of
from holdfast.validation.json_values import fields_of

BOUNDARY = "compact_boundary"
MICRO_BOUNDARY = "microcompact_boundary"
BOUNDARIES = (BOUNDARY, MICRO_BOUNDARY)
SNIP_BOUNDARY = "snip_boundary"  # after messages that were removed from the context
# types of lines outside the tree that change the context: tool results of which the model sees an
# excerpt, and messages that a summary replaced
EXCERPTS = "content-replacement"
COLLAPSE = "marble-origami-commit"
CHANGES = (EXCERPTS, COLLAPSE)
_NOT_A_MODEL = "<synthetic>"  # in place of a model's name, in what Claude Code itself wrote


@dataclass(frozen=True)
class SessionLine:
    """A line of a session.

    Args:
        source: the file, and the line's position in it.
        id: its uuid, or a made-up id if it has none or shares it with other lines.
        has_uuid: whether `id` is the uuid.
        parent: the uuid of the line before it; None if no line precedes it.
        fields: the fields of its JSON object.
        changes: the lines before it that change the context, of the types `CHANGES`.
    """

    source: str
    id: str
    has_uuid: bool
    parent: str | None
    fields: Mapping[str, Any]
    changes: tuple[Mapping[str, Any], ...] = ()

    @property
    def kind(self) -> str:
        """The line's type; "" if it has none."""
        return str(self.fields.get("type") or "")

    @property
    def is_message(self) -> bool:
        """Whether the line has the role of the user or the assistant.

        Most of these lines are tool calls and results.
        """
        return self.kind in ("user", "assistant")

    @property
    def is_root(self) -> bool:
        """Whether the line states that no line precedes it."""
        return "parentUuid" in self.fields and self.parent is None

    @property
    def session(self) -> str:
        return str(self.fields.get("sessionId") or self.fields.get("session_id") or "")

    @property
    def agent(self) -> str:
        """The subagent that wrote the line; "" for the session itself and unnamed subagents."""
        return str(self.fields.get("agentId") or self.fields.get("parent_tool_use_id") or "")

    @property
    def is_of_sidechain(self) -> bool:
        return self.flag("isSidechain")

    @property
    def content(self) -> Any:
        return at(self.fields, "message", "content")

    @cached_property
    def blocks(self) -> list[Mapping[str, Any]]:
        """The blocks of the content that are objects."""
        return [block for block in list_or_empty(self.content) if isinstance(block, Mapping)]

    @cached_property
    def texts(self) -> list[str]:
        """The texts of a message, whose content is a single text or a list of blocks."""
        texts = [self.content, *(block.get("text") for block in self.blocks)]
        return [text for text in texts if isinstance(text, str)]

    @property
    def text(self) -> str:
        return "\n".join(self.texts)

    @property
    def reply_id(self) -> str:
        """The id of the model's reply, each of whose blocks is a line; "" for other lines."""
        return str(at(self.fields, "message", "id") or "") if self.kind == "assistant" else ""

    @property
    def is_by_the_program(self) -> bool:
        """Whether Claude Code itself wrote this reply, such as an error of the API."""
        return self.kind == "assistant" and (
            self.flag("isApiErrorMessage") or at(self.fields, "message", "model") == _NOT_A_MODEL
        )

    @property
    def is_boundary(self) -> bool:
        return self.kind == "system" and self.fields.get("subtype") == BOUNDARY

    @property
    def clears_context(self) -> bool:
        """Whether the line is the command that clears the context."""
        return "<command-name>/clear</command-name>" in self.text

    @property
    def is_summary(self) -> bool:
        return self.flag("isCompactSummary")

    def flag(self, name: str) -> bool:
        """Whether a field is `true`."""
        return self.fields.get(name) is True

    def ids_in(self, kind: str, name: str) -> set[str]:
        """Returns the ids in the field `name` of the blocks of type `kind` that have one."""
        blocks = (block for block in self.blocks if block.get("type") == kind)
        return {str(block[name]) for block in blocks if block.get(name)}

    def has_block(self, kind: str) -> bool:
        """Whether the line has a block of this type."""
        return any(block.get("type") == kind for block in self.blocks)

    def denial_kind(self, call_id: str) -> str:
        """Returns why a call whose result is in the line was denied; "" if the line does not say.

        Sessions say it of the whole line, and stream-json of each result.
        """
        for details in list_or_empty(self.fields.get("tool_result_meta")):
            if str(at(details, "id") or "") == call_id:
                return str(at(details, "non_execution_kind") or "")
        return str(self.fields.get("toolDenialKind") or "")

    @property
    def retracted_ids(self) -> list[str]:
        """The uuids of the replies that this line replaces, or that a refusal took back."""
        replaced = list_or_empty(self.fields.get("supersedesUuids"))
        retracted = list_or_empty(self.fields.get("retractedMessageUuids"))
        return [*map(str, replaced), *map(str, retracted)]

    @property
    def compaction(self) -> Mapping[str, Any]:
        """The details that the boundary of a compaction gives; {} for other lines."""
        return fields_of(self.fields.get("compactMetadata", self.fields.get("compact_metadata")))

    def preserved(self, end: str) -> str:
        """Returns the uuid at an end of the lines that a compaction kept; "" if it kept none.

        Args:
            end: `head`, `anchor` or `tail`.
        """
        segment = self.compaction.get("preservedSegment", self.compaction.get("preserved_segment"))
        return str(at(segment, f"{end}Uuid") or at(segment, f"{end}_uuid") or "")


# --- Each line once

_TYPES = ("user", "assistant", "attachment")  # of lines that may lack a uuid


def distinct_lines(records: Sequence[SourcedRecord]) -> tuple[list[SessionLine], list[Unread]]:
    """Returns the lines, and a note on each whose uuid a later line reuses for other content."""
    changes: dict[tuple[str, str], list[Mapping[str, Any]]] = {}  # by session and subagent
    records = [record for record in records if _is_of_dialog(record.fields)]
    identifying = _identifying_uuids([fields for _, fields in records])
    lines: dict[str, SessionLine] = {}
    contents: set[str] = set()  # of replies and results without a uuid
    reused: list[Unread] = []
    for number, (source, fields) in enumerate(records):
        owner = (str(fields.get("sessionId") or ""), str(fields.get("agentId") or ""))
        if fields.get("type") in CHANGES:
            changes.setdefault(owner, []).append(fields)
            continue
        uuid = _uuid_of(fields)
        has_uuid = uuid in identifying
        content = "" if uuid else _unique_content(fields)
        if content and content in contents:
            continue
        contents.add(content)
        earlier = lines.get(uuid) if has_uuid else None
        if earlier is not None and _content_of(fields) == _content_of(earlier.fields):
            continue
        if earlier is not None:
            sentence = (
                f"{earlier.source}: a later line ({position_of(source)}) reuses this message's uuid"
                " with other content"
            )
            reused.append(Unread(sentence))
        name = uuid if has_uuid else f"event {number}"
        parent = fields.get("parentUuid") or fields.get("logicalParentUuid")
        before = tuple(changes.pop(owner, ()))
        parent = str(parent) if parent else None
        lines[name] = SessionLine(source, name, has_uuid, parent, fields, before)
    return list(lines.values()), reused


def _is_of_dialog(fields: Mapping[str, Any]) -> bool:
    is_boundary = fields.get("type") == "system" and fields.get("subtype") in BOUNDARIES
    is_typed = fields.get("type") in (*_TYPES, *CHANGES)
    return bool(_uuid_of(fields)) or is_typed or is_boundary


def _uuid_of(fields: Mapping[str, Any]) -> str:
    return str(fields.get("uuid") or "")


def _identifying_uuids(records: Sequence[Mapping[str, Any]]) -> set[str]:
    """Returns the uuids that identify a single line.

    In a file whose lines name no parents, several messages may share a uuid, which then identifies
    none of them.
    """
    counts = Counter(map(_uuid_of, records))
    del counts[""]
    if any("parentUuid" in fields for fields in records):
        return set(counts)
    contents: dict[str, set[str]] = {}  # of the uuids that several lines have
    for fields in records:
        if counts[uuid := _uuid_of(fields)] > 1:
            contents.setdefault(uuid, set()).add(_content_of(fields))
    return {uuid for uuid in counts if len(contents.get(uuid, ())) < 2}


def _unique_content(fields: Mapping[str, Any]) -> str:
    """Returns the content of a reply or a tool result, which its id makes unique.

    For other lines it returns "", as a user may say the same thing twice.
    """
    blocks = list_or_empty(at(fields, "message", "content"))
    is_result = any(at(block, "tool_use_id") for block in blocks)
    return _content_of(fields) if is_result or at(fields, "message", "id") else ""


def _content_of(fields: Mapping[str, Any]) -> str:
    """Returns a line's content, without the counts of tokens, which a copy may have updated."""
    message = fields.get("message")
    if isinstance(message, Mapping):
        message = [message.get("id"), message.get("content")]
    return json.dumps([fields.get("type"), message], sort_keys=True)
