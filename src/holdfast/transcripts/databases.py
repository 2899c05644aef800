"""Reads the dialogs in databases of coding agents and of libraries as JSON.

For example:

    opencode.db            -> {"info": ..., "messages": [...]}, as `opencode export` writes it
    sessions.db of Goose   -> {"id": ..., "conversation": [...]}, as `goose session export` does
    session.db of the ADK  -> {"appName": ..., "events": [...]}
    agent_messages         -> {"agent_session": ..., "items": [...]}

The program is known by its tables. Cursor's are read in `cursor_databases.py`.
"""

from collections.abc import Iterator, Set
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import UsageError, shortened
from holdfast.plurals import count_of
from holdfast.transcripts.cursor_databases import (
    cursor_agent_dialog,
    cursor_chats,
    cursor_dialogs,
)
from holdfast.transcripts.parsing import load_json
from holdfast.transcripts.reader import Located, Unread
from holdfast.validation.json_values import fields_of

if TYPE_CHECKING:
    from sqlite3 import Connection


def read_database(path: Path) -> Iterator[Located | Unread]:
    """Reads the dialogs in a database, which is opened for reading only.

    Raises:
        UsageError: SQLite cannot read it.
    """
    import sqlite3

    address = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True)) as database:
            database.text_factory = lambda data: data.decode("utf-8", "replace")
            yield from _dialogs_in(path, database)
    except sqlite3.Error as error:
        raise UsageError(
            f"{path} cannot be read as a database of SQLite ({error}); give it whole, and close the"
            " program that writes it."
        ) from error


def _dialogs_in(path: Path, database: "Connection") -> Iterator[Located | Unread]:
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    if {"session", "message", "part"} <= tables or "session_message" in tables:
        yield from _opencode_sessions(path, database, tables)
    elif {"blobs", "meta"} <= tables:
        yield from cursor_agent_dialog(path, database)
    elif tables & {"ItemTable", "cursorDiskKV"}:
        if "ItemTable" in tables:
            yield from cursor_chats(path, database)
        if "cursorDiskKV" in tables:
            yield from cursor_dialogs(path, database)
    elif "content_json" in _columns(database, "messages"):
        yield from _goose_sessions(path, database)
    elif "agent_messages" in tables:
        yield from _agents_sdk_sessions(path, database, tables)
    elif "invocation_id" in _columns(database, "events"):
        yield from _adk_sessions(path, database)
    else:
        yield Unread(
            f"{path} is a database of none of Cursor, opencode, Goose, OpenAI's Agents SDK and"
            " Google's ADK"
        )


def _columns(database: "Connection", table: str) -> list[str]:
    """Returns the names of a table's columns; [] if there is no such table."""
    return [row[1] for row in database.execute(f"PRAGMA table_info({table})")]


def _rows_as_dicts(database: "Connection", table: str, order: str) -> Iterator[dict[str, Any]]:
    names = _columns(database, table)
    for row in database.execute(f"SELECT * FROM {table} ORDER BY {order}"):
        yield dict(zip(names, row, strict=True))


# --- opencode


def _opencode_sessions(
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
            for info in _rows_as_dicts(database, table, "rowid"):
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


# --- Goose


def _goose_sessions(path: Path, database: "Connection") -> Iterator[Located | Unread]:
    """Reads the sessions in Goose's `sessions.db`, in the form of its exports."""
    sessions: dict[str, dict[str, Any]] = {}
    if "id" in _columns(database, "sessions"):
        for row in _rows_as_dicts(database, "sessions", "rowid"):
            names = ("id", "name", "working_dir", "session_type")
            sessions[str(row["id"])] = {name: row[name] for name in names if name in row}
    dialogs: dict[str, list[dict[str, Any]]] = {}
    for row in _rows_as_dicts(database, "messages", "created_timestamp, id"):
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


# --- OpenAI's Agents SDK


def _agents_sdk_sessions(
    path: Path, database: "Connection", tables: Set[str]
) -> Iterator[Located | Unread]:
    """Reads the sessions of the Agents SDK: lists of items of the Responses API.

    A session with branches (`AdvancedSQLiteSession`) is read along the branch that was written to
    last, and the items that are only in others are counted.
    """
    sessions: dict[str, list[tuple[int, str]]] = {}
    query = "SELECT session_id, id, message_data FROM agent_messages ORDER BY id"
    for name, number, data in database.execute(query):
        sessions.setdefault(str(name), []).append((number, data))
    for name, rows in sessions.items():
        source = f"{path}, session {name}"
        if "message_structure" in tables and (active := _last_branch(database, name)):
            active_rows = [row for row in rows if row[0] in active]
            if len(active_rows) < len(rows):
                count = count_of(len(rows) - len(active_rows), "item")
                yield Unread(f"{source}: left out {count} of branches that were given up")
            rows = active_rows
        items: list[Any] = []
        for number, data in rows:
            item = load_json(f"{source}, item {number}", data)
            if isinstance(item, Unread):
                yield item
            elif "__enc__" in fields_of(item.value):
                yield Unread(f"{item.source} is encrypted")
            else:
                items.append(item.value)
        if items:
            yield Located(source, {"agent_session": name, "items": items})


def _last_branch(database: "Connection", session: str) -> set[int]:
    """Returns the ids of the items on the branch of a session that was written to last."""
    query = (
        "SELECT message_id FROM message_structure WHERE session_id = ?1 AND branch_id ="
        " (SELECT branch_id FROM message_structure WHERE session_id = ?1 ORDER BY id DESC LIMIT 1)"
    )
    return {number for (number,) in database.execute(query, (session,))}


# --- Google's Agent Development Kit


def _adk_sessions(path: Path, database: "Connection") -> Iterator[Located | Unread]:
    """Reads the sessions of the ADK's session services.

    Its versions before 1.22 have a column for each field of an event, and the actions, among them
    summaries and rewinds, as pickled objects, which are not read.
    """
    columns = _columns(database, "events")
    sessions: dict[tuple[str, str, str], list[Any]] = {}
    is_pickled = "event_data" not in columns
    for row in _rows_as_dicts(database, "events", "timestamp, rowid"):
        source = f"{path}, event {shortened(row.get('id'))}"
        if is_pickled:
            event = Located(source, _adk_event(row))
        else:
            loaded = load_json(source, row["event_data"])
            if isinstance(loaded, Unread):
                yield loaded
                continue
            ids = {"id": row["id"], "invocation_id": row["invocation_id"]}
            event = Located(source, {**fields_of(loaded.value), **ids})
        key = (str(row["app_name"]), str(row["user_id"]), str(row["session_id"]))
        sessions.setdefault(key, []).append(event.value)
    if is_pickled and sessions:
        yield Unread(
            f"{path}: left out the actions of its events, such as summaries and rewinds, which this"
            " version of the ADK pickled"
        )
    for (app, user, name), events in sessions.items():
        session = {"appName": app, "userId": user, "id": name, "events": events}
        yield Located(f"{path}, session {name}", session)


def _adk_event(row: dict[str, Any]) -> dict[str, Any]:
    """Returns an event from a row that has a column for each of its fields."""
    event: dict[str, Any] = {"id": row["id"], "invocation_id": row["invocation_id"]}
    for name in ("author", "branch", "error_message"):
        event[name] = row.get(name)
    for name in ("content", "input_transcription", "output_transcription"):
        loaded = load_json(name, row.get(name) or "null")
        event[name] = loaded.value if isinstance(loaded, Located) else None
    return {**event, "partial": bool(row.get("partial"))}
