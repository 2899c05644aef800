"""Reads the sessions in a database of Google's Agent Development Kit.

A session, shortened:

    {"appName": "tickets", "userId": "u", "id": "1", "events": [{"author": "user", ...}, ...]}
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import shortened
from holdfast.transcripts.databases.database_tables import columns, rows_as_dicts
from holdfast.transcripts.parsing import load_json
from holdfast.transcripts.reader import Located, Unread
from holdfast.validation.json_values import fields_of

if TYPE_CHECKING:
    from sqlite3 import Connection


def adk_sessions(path: Path, database: "Connection") -> Iterator[Located | Unread]:
    """Reads the sessions of the ADK's session services.

    Its versions before 1.22 have a column for each field of an event, and the actions, among them
    summaries and rewinds, as pickled objects, which are not read.
    """
    sessions: dict[tuple[str, str, str], list[Any]] = {}
    is_pickled = "event_data" not in columns(database, "events")
    for row in rows_as_dicts(database, "events", "timestamp, rowid"):
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
