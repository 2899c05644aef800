"""Reads the dialogs in databases of coding agents and of libraries as JSON.

For example:

    opencode.db            -> {"info": ..., "messages": [...]}, as `opencode export` writes it
    sessions.db of Goose   -> {"id": ..., "conversation": [...]}, as `goose session export` does
    session.db of the ADK  -> {"appName": ..., "events": [...]}
    agent_messages         -> {"agent_session": ..., "items": [...]}

The program that wrote a database is known by its tables.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.errors import UsageError
from holdfast.transcripts.databases.adk_database import adk_sessions
from holdfast.transcripts.databases.agents_sdk_database import agents_sdk_sessions
from holdfast.transcripts.databases.cursor_database import (
    cursor_agent_dialog,
    cursor_chats,
    cursor_dialogs,
)
from holdfast.transcripts.databases.database_tables import columns
from holdfast.transcripts.databases.goose_database import goose_sessions
from holdfast.transcripts.databases.opencode_database import opencode_sessions
from holdfast.transcripts.reader import Located, Unread

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
    """Reads the dialogs in a database of any program that is known."""
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
    if {"session", "message", "part"} <= tables or "session_message" in tables:
        yield from opencode_sessions(path, database, tables)
    elif {"blobs", "meta"} <= tables:
        yield from cursor_agent_dialog(path, database)
    elif tables & {"ItemTable", "cursorDiskKV"}:
        if "ItemTable" in tables:
            yield from cursor_chats(path, database)
        if "cursorDiskKV" in tables:
            yield from cursor_dialogs(path, database)
    elif "content_json" in columns(database, "messages"):
        yield from goose_sessions(path, database)
    elif "agent_messages" in tables:
        yield from agents_sdk_sessions(path, database, tables)
    elif "invocation_id" in columns(database, "events"):
        yield from adk_sessions(path, database)
    else:
        yield Unread(
            f"{path} is a database of none of Cursor, opencode, Goose, OpenAI's Agents SDK and"
            " Google's ADK"
        )
