"""Reads the sessions in opencode's database `opencode.db`, as `opencode export` writes them.

A session, shortened:

    {"info": {"id": "ses_1", ...}, "messages": [{"info": {...}, "parts": [...]}, ...]}
"""

from collections.abc import Iterator, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.transcripts.databases.database_tables import rows_as_dicts
from holdfast.transcripts.parsing import load_json
from holdfast.transcripts.reader import Located, Unread
from holdfast.validation.json_values import fields_of

if TYPE_CHECKING:
    from sqlite3 import Connection


def opencode_sessions(
    path: Path, database: "Connection", tables: Set[str]
) -> Iterator[Located | Unread]:
    """Reads the sessions of opencode's versions 1 and 2.

    Version 2 has its own tables. A session of version 1 that is continued is copied there, so each
    session is read from the tables that have its latest message.
    """
    times_in_1: dict[str, float] = {}
    times_in_2: dict[str, float] = {}
    if {"message", "part"} <= tables:
        times_in_1 = _last_times(database, "message")
    if "session_message" in tables:
        times_in_2 = _last_times(database, "session_message", "type IN ('user', 'assistant')")
    infos = _session_infos(database, tables)
    for name in sorted(times_in_1.keys() | times_in_2.keys()):
        source = f"{path}, session {name}"
        is_in_version_2 = times_in_2.get(name, 0) > times_in_1.get(name, 0)
        read_messages = _messages_of_version_2 if is_in_version_2 else _messages_of_version_1
        messages: list[dict[str, Any]] = []
        for message in read_messages(database, source, name):
            if isinstance(message, Unread):
                yield message
            else:
                messages.append(message)
        if messages:
            info = infos.get(name, {"id": name})
            yield Located(source, {"info": info, "messages": messages})


def _last_times(database: "Connection", table: str, condition: str = "1") -> dict[str, float]:
    """Returns for each session the time at which its last message in a table was created."""
    query = f"SELECT session_id, max(time_created) FROM {table} WHERE {condition} GROUP BY 1"
    return dict(database.execute(query).fetchall())


def _session_infos(database: "Connection", tables: Set[str]) -> dict[str, dict[str, Any]]:
    """Returns the sessions by id, each with its row; version 2's row if both versions have one."""
    infos: dict[str, dict[str, Any]] = {}
    for table in ("session", "session_v2"):
        if table in tables:
            for info in rows_as_dicts(database, table, "rowid"):
                infos[str(info.get("id"))] = info
    return infos


def _messages_of_version_1(
    database: "Connection", source: str, session: str
) -> Iterator[dict[str, Any] | Unread]:
    """Reads the messages of a session, in the form in which `opencode export` writes them."""
    rows = database.execute(
        "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id", (session,)
    )
    for identity, text in rows.fetchall():
        message = load_json(f"{source}, message {identity}", text)
        if isinstance(message, Unread):
            yield message
            continue
        query = "SELECT id, data FROM part WHERE message_id = ? ORDER BY id"
        part_rows = database.execute(query, (identity,)).fetchall()
        parts = [load_json(f"{source}, part {part_id}", data) for part_id, data in part_rows]
        yield from (part for part in parts if isinstance(part, Unread))
        values = [part.value for part in parts if isinstance(part, Located)]
        yield {"info": {**fields_of(message.value), "id": identity}, "parts": values}


def _messages_of_version_2(
    database: "Connection", source: str, session: str
) -> Iterator[dict[str, Any] | Unread]:
    rows = database.execute(
        "SELECT id, type, data FROM session_message WHERE session_id = ? ORDER BY seq, id",
        (session,),
    )
    for identity, kind, text in rows.fetchall():
        message = load_json(f"{source}, message {identity}", text)
        if isinstance(message, Unread):
            yield message
        else:
            yield {**fields_of(message.value), "id": identity, "type": kind}
