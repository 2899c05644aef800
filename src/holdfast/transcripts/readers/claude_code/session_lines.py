"""The lines of a session of Claude Code, each an event with its fields."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from holdfast.transcripts.reader import Unread, at, fields_of, position_of

BOUNDARY = "compact_boundary"
MICRO_BOUNDARY = "microcompact_boundary"
BOUNDARIES = (BOUNDARY, MICRO_BOUNDARY)
_TYPES = ("user", "assistant", "attachment")  # of lines that may lack a uuid
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
        return str(self.fields.get("type"))

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
        return self.fields.get("isSidechain") is True

    @property
    def content(self) -> Any:
        return at(self.fields, "message", "content")

    @cached_property
    def blocks(self) -> list[Mapping[str, Any]]:
        """The content's blocks that are objects."""
        listed = self.content if isinstance(self.content, list) else []
        return [block for block in listed if isinstance(block, Mapping)]

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
            self.fields.get("isApiErrorMessage") is True
            or at(self.fields, "message", "model") == _NOT_A_MODEL
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
        return self.fields.get("isCompactSummary") is True

    def flag(self, name: str) -> bool:
        """Whether a field is true."""
        return self.fields.get(name) is True

    def ids_in(self, kind: str, name: str) -> set[str]:
        """The ids that a field of the blocks of a type has."""
        return {str(block.get(name)) for block in self.blocks if block.get("type") == kind}

    @property
    def takes_back(self) -> list[str]:
        """The uuids of replies that another one replaced, or that a refusal took back."""
        listed = [self.fields.get(n) for n in ("supersedesUuids", "retractedMessageUuids")]
        return [str(uuid) for uuids in listed if isinstance(uuids, list) for uuid in uuids]

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


def lines_of(
    records: Sequence[tuple[str, Mapping[str, Any]]],
) -> tuple[list[SessionLine], list[Unread]]:
    """The lines that make up dialogs, each once, and those that were written again otherwise."""
    records = [
        (where, fields)
        for where, fields in records
        if fields.get("uuid") or fields.get("type") in _TYPES or _is_boundary(fields)
    ]
    identities = _identities([fields for _, fields in records])
    lines: dict[str, SessionLine] = {}
    unnamed: set[str] = set()  # the contents of replies and results without a uuid
    rewritten: list[Unread] = []
    for number, (where, fields) in enumerate(records):
        uuid = str(fields.get("uuid"))
        if uuid == "None" and _is_in(unnamed, fields):
            continue
        if uuid in identities and uuid in lines:
            if _content_of(fields) == _content_of(lines[uuid].fields):
                continue  # the history, written again into the same file
            sentence = "a later line reuses this message's uuid with other content"
            rewritten.append(Unread(f"{lines[uuid].where}: {sentence} ({position_of(where)})"))
        name = uuid if uuid in identities else f"event {number}"
        parent = fields.get("parentUuid") or fields.get("logicalParentUuid")
        parent = str(parent) if parent else None
        lines[name] = SessionLine(where, name, uuid in identities, parent, fields)
    return list(lines.values()), rewritten


def _is_boundary(fields: Mapping[str, Any]) -> bool:
    return fields.get("type") == "system" and fields.get("subtype") in BOUNDARIES


def _identities(records: Sequence[Mapping[str, Any]]) -> set[str]:
    """The uuids that identify a line: without parents, one that several messages have does not."""
    counts = Counter(str(fields.get("uuid")) for fields in records)
    contents: dict[str, set[str]] = {}  # of what has the uuid of another line
    if not any("parentUuid" in fields for fields in records):
        for fields in records:
            if counts[uuid := str(fields.get("uuid"))] > 1:
                contents.setdefault(uuid, set()).add(_content_of(fields))
    return {uuid for uuid in counts if len(contents.get(uuid, ())) < 2} - {"None"}


def _is_in(contents: set[str], fields: Mapping[str, Any]) -> bool:
    """Whether a line without a uuid, but with the id of a reply or a call, is among those before
    it; it is noted for the next.
    """
    content = at(fields, "message", "content")
    blocks = content if isinstance(content, list) else []
    is_result = any(at(block, "tool_use_id") for block in blocks)
    if not (at(fields, "message", "id") or is_result):
        return False
    whole = _content_of(fields)
    is_repeat = whole in contents
    contents.add(whole)
    return is_repeat


def _content_of(fields: Mapping[str, Any]) -> str:
    """The content of a line, without the reply's counts of tokens, which may come later."""
    message = fields.get("message")
    said = [at(message, "id"), at(message, "content")] if isinstance(message, Mapping) else message
    return json.dumps([fields.get("type"), said], sort_keys=True)
