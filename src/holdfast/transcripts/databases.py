"""The dialogs in the databases of Cursor (`state.vscdb`) and opencode (`opencode.db`), as JSON."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import UsageError
from holdfast.transcripts.parsing import loaded
from holdfast.transcripts.reader import Located, Unread, fields_of

if TYPE_CHECKING:
    from sqlite3 import Connection

_CHATS = "workbench.panel.aichat.view.aichat.chatdata"  # of Cursor before its composer
# what Cursor's reader takes of a message; the rest is what the model saw, often megabytes of it
_OF_BUBBLE = ("bubbleId", "type", "text", "toolFormerData")


def read_database(path: Path) -> Iterator[Located | Unread]:
    """The dialogs in a database, which is opened for reading only.

    Raises:
        UsageError: SQLite cannot read it.
    """
    import sqlite3

    address = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True)) as database:
            database.text_factory = lambda data: data.decode("utf-8", "replace")
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
            if {"session", "message", "part"} <= tables:
                yield from _opencode_sessions(path, database)
            elif not tables & {"cursorDiskKV", "ItemTable"}:
                yield Unread(f"{path} is a database of neither Cursor nor opencode")
            if "ItemTable" in tables:
                query = "SELECT value FROM ItemTable WHERE key = ?"
                for (value,) in database.execute(query, (_CHATS,)):
                    yield loaded(f"{path}, chats", value)
            if "cursorDiskKV" in tables:
                yield from _cursor_dialogs(path, database)
    except sqlite3.Error as error:
        raise UsageError(
            f"{path} cannot be read as a database of SQLite ({error}); give it whole, and close the"
            " program that writes it."
        ) from error


def _cursor_dialogs(path: Path, database: "Connection") -> Iterator[Located | Unread]:
    """Each dialog (a "composer") with its messages ("bubbles") by their ids."""
    query = "SELECT key, value FROM cursorDiskKV WHERE key LIKE 'composerData:%' ORDER BY key"
    for key, value in database.execute(query).fetchall():
        name = str(key).partition(":")[2]
        composer = loaded(f"{path}, composer {name}", value)
        if isinstance(composer, Unread):
            yield composer
            continue
        bubbles: dict[str, Any] = {}
        rows = database.execute(
            "SELECT key, value FROM cursorDiskKV WHERE key >= ? AND key < ? ORDER BY key",
            (f"bubbleId:{name}:", f"bubbleId:{name};"),  # ";" follows ":"
        )
        for bubble_key, text in rows:
            bubble = loaded(f"{path}, {bubble_key}", text)
            if isinstance(bubble, Unread):
                yield bubble
            elif fields := fields_of(bubble.value):
                identity = str(bubble_key).rpartition(":")[2]
                bubbles[identity] = {n: fields[n] for n in _OF_BUBBLE if n in fields}
        yield Located(composer.source, {"composerData": composer.value, "bubbles": bubbles})


def _opencode_sessions(path: Path, database: "Connection") -> Iterator[Located | Unread]:
    """Each session as `opencode export` writes it."""
    columns = [row[1] for row in database.execute("PRAGMA table_info(session)")]
    for row in database.execute("SELECT * FROM session ORDER BY id").fetchall():
        info = dict(zip(columns, row, strict=True))
        source = f"{path}, session {info.get('id')}"
        messages: list[dict[str, Any]] = []
        rows = database.execute(
            "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id",
            (info.get("id"),),
        )
        for identity, text in rows.fetchall():
            message = loaded(f"{source}, message {identity}", text)
            if isinstance(message, Unread):
                yield message
                continue
            query = "SELECT id, data FROM part WHERE message_id = ? ORDER BY id"
            found = database.execute(query, (identity,)).fetchall()
            parts = [loaded(f"{source}, part {part}", data) for part, data in found]
            yield from (part for part in parts if isinstance(part, Unread))
            values = [part.value for part in parts if isinstance(part, Located)]
            messages.append({"info": {**fields_of(message.value), "id": identity}, "parts": values})
        if messages:
            yield Located(source, {"info": info, "messages": messages})
