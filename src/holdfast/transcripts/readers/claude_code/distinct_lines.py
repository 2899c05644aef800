"""The lines that make up the dialogs in a file of Claude Code's, without repetitions.

A file may repeat its history: a session that is resumed writes it again, and some programs copy all
lines so far with each message.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.transcripts.json_fields import at, list_or_empty
from holdfast.transcripts.reader import Record, Unread, position_of
from holdfast.transcripts.readers.claude_code.session_lines import BOUNDARIES, SessionLine

_TYPES = ("user", "assistant", "attachment")  # of lines that may lack a uuid


def distinct_lines(records: Sequence[Record]) -> tuple[list[SessionLine], list[Unread]]:
    """Returns the lines, and a note on each whose uuid a later line reuses for other content."""
    records = [record for record in records if _is_of_dialog(record.fields)]
    identifying = _identifying_uuids([fields for _, fields in records])
    lines: dict[str, SessionLine] = {}
    contents: set[str] = set()  # of replies and results without a uuid
    reused: list[Unread] = []
    for number, (source, fields) in enumerate(records):
        uuid = _uuid_of(fields)
        has_uuid = uuid in identifying
        if not uuid and (content := _unique_content(fields)):
            if content in contents:
                continue
            contents.add(content)
        if has_uuid and (earlier := lines.get(uuid)) is not None:
            if _content_of(fields) == _content_of(earlier.fields):
                continue
            sentence = (
                f"{earlier.source}: a later line ({position_of(source)}) reuses this message's uuid"
                " with other content"
            )
            reused.append(Unread(sentence))
        name = uuid if has_uuid else f"event {number}"
        parent = fields.get("parentUuid") or fields.get("logicalParentUuid")
        lines[name] = SessionLine(source, name, has_uuid, str(parent) if parent else None, fields)
    return list(lines.values()), reused


def _is_of_dialog(fields: Mapping[str, Any]) -> bool:
    is_boundary = fields.get("type") == "system" and fields.get("subtype") in BOUNDARIES
    return bool(_uuid_of(fields)) or fields.get("type") in _TYPES or is_boundary


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
