"""Reads the sessions in Goose's database `sessions.db`, as `goose session export` writes them.

A session, shortened:

    {"id": "20260102_1", "working_dir": "/repo", "conversation": [{"role": "user", ...}, ...]}
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.transcripts.databases.database_tables import columns, rows_as_dicts
from holdfast.transcripts.parsing import load_json
from holdfast.transcripts.reader import Located, Unread

if TYPE_CHECKING:
    from sqlite3 import Connection


def goose_sessions(path: Path, database: "Connection") -> Iterator[Located | Unread]:
    """Reads the sessions in Goose's `sessions.db`, in the form of its exports."""
    sessions: dict[str, dict[str, Any]] = {}
    if "id" in columns(database, "sessions"):
        for row in rows_as_dicts(database, "sessions", "rowid"):
            names = ("id", "name", "working_dir", "session_type")
            sessions[str(row["id"])] = {name: row[name] for name in names if name in row}
    dialogs: dict[str, list[dict[str, Any]]] = {}
    for row in rows_as_dicts(database, "messages", "created_timestamp, id"):
        name = str(row["session_id"])
        source = f"{path}, session {name}, message {row['id']}"
        content = load_json(source, row["content_json"])
        metadata = load_json(source, row.get("metadata_json") or "{}")
        if isinstance(content, Unread):
            yield content
            continue
        message = {"role": row["role"], "content": content.value}
        message |= {"id": row.get("message_id"), "created": row["created_timestamp"]}
        if isinstance(metadata, Located):
            message["metadata"] = metadata.value
        dialogs.setdefault(name, []).append(message)
    for name, messages in dialogs.items():
        session = {"id": name, "working_dir": "", **sessions.get(name, {})}
        yield Located(f"{path}, session {name}", {**session, "conversation": messages})
