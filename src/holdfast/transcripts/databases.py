"""Reads the dialogs in databases as JSON: of Cursor, of its agent, and of opencode.

For example:

    state.vscdb, store.db -> the messages that are shown, and the context that the model saw
    opencode.db           -> {"info": ..., "messages": [...]}, as `opencode export` writes it
"""

import base64
import json
from collections.abc import Callable, Iterator, Set
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.errors import UsageError
from holdfast.plurals import count_of
from holdfast.transcripts.parsing import load_json
from holdfast.transcripts.reader import Located, Unread
from holdfast.transcripts.transcript import Malformed
from holdfast.validation.json_values import fields_of, text_or_empty

if TYPE_CHECKING:
    from sqlite3 import Connection

_CHATS = "workbench.panel.aichat.view.aichat.chatdata"  # Cursor's key before it had a composer
# The fields of a message that Cursor's reader needs. The others hold the context that the model
# saw, often megabytes of it.
_BUBBLE_FIELDS = ("bubbleId", "type", "text", "toolFormerData")


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
            tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master")}
            if {"session", "message", "part"} <= tables or "session_message" in tables:
                yield from _opencode_sessions(path, database, tables)
            elif {"blobs", "meta"} <= tables:
                yield from _cursor_agent_dialog(path, database)
            elif not tables & {"cursorDiskKV", "ItemTable"}:
                yield Unread(f"{path} is a database of neither Cursor nor opencode")
            if "ItemTable" in tables:
                query = "SELECT value FROM ItemTable WHERE key = ?"
                for (value,) in database.execute(query, (_CHATS,)):
                    yield load_json(f"{path}, chats", value)
            if "cursorDiskKV" in tables:
                yield from _cursor_dialogs(path, database)
    except sqlite3.Error as error:
        raise UsageError(
            f"{path} cannot be read as a database of SQLite ({error}); give it whole, and close the"
            " program that writes it."
        ) from error


def _cursor_dialogs(path: Path, database: "Connection") -> Iterator[Located | Unread]:
    """Reads the dialogs ("composers").

    Each has the messages that are shown ("bubbles"), by their ids, and those of its context.
    """

    def find_blob(name: str) -> bytes | None:
        query = "SELECT value FROM cursorDiskKV WHERE key = ?"
        return _bytes_in(database.execute(query, (f"agentKv:blob:{name}",)).fetchone())

    has_states = False
    query = "SELECT key, value FROM cursorDiskKV WHERE key LIKE 'composerData:%' ORDER BY key"
    for key, value in database.execute(query).fetchall():
        name = str(key).partition(":")[2]
        composer = load_json(f"{path}, composer {name}", value)
        if isinstance(composer, Unread):
            yield composer
            continue
        bubbles: dict[str, Any] = {}
        rows = database.execute(
            "SELECT key, value FROM cursorDiskKV WHERE key >= ? AND key < ? ORDER BY key",
            (f"bubbleId:{name}:", f"bubbleId:{name};"),  # ";" follows ":"
        )
        for bubble_key, text in rows:
            bubble = load_json(f"{path}, {bubble_key}", text)
            if isinstance(bubble, Unread):
                yield bubble
            elif fields := fields_of(bubble.value):
                identity = str(bubble_key).rpartition(":")[2]
                bubbles[identity] = {n: fields[n] for n in _BUBBLE_FIELDS if n in fields}
        value = {"composerData": composer.value, "bubbles": bubbles}
        state = text_or_empty(fields_of(composer.value).get("conversationState"))
        if encoded := state.removeprefix("~"):
            has_states = True
            context = _context(composer.source, encoded, find_blob)
            if isinstance(context, Unread):
                yield context
            else:
                value["context"] = context
        yield Located(composer.source, value)
    if not has_states:
        yield from _unclaimed_messages(path, database)


def _unclaimed_messages(path: Path, database: "Connection") -> Iterator[Unread]:
    """Says how many messages of an agent there are, to which no dialog refers."""
    rows = database.execute(
        "SELECT count(*) FROM cursorDiskKV WHERE key >= 'agentKv:blob:' AND key < 'agentKv:blob;'"
    )
    if messages := rows.fetchone()[0]:
        yield Unread(
            f"{path}: left out {count_of(messages, 'message')} of an agent (agentKv:blob), because"
            " no dialog refers to them"
        )


def _context(
    source: str, encoded: str, find_blob: Callable[[str], bytes | None]
) -> dict[str, Any] | Unread:
    """Reads the context of a dialog, whose state is written in base64."""
    try:
        padded = encoded + "=" * (-len(encoded) % 4)
        return _read_state(base64.b64decode(padded, validate=True), find_blob)
    except (Malformed, ValueError):
        return Unread(f"{source}: its context (conversationState) is in no known form")


def _cursor_agent_dialog(path: Path, database: "Connection") -> Iterator[Located | Unread]:
    """Reads the dialog of a `store.db`: the messages in the context of Cursor's agent."""

    def find_blob(name: str) -> bytes | None:
        query = "SELECT data FROM blobs WHERE id = ?"
        return _bytes_in(database.execute(query, (name,)).fetchone())

    row = database.execute("SELECT value FROM meta WHERE key = '0'").fetchone()
    try:
        text = bytes.fromhex(row[0]) if row else b""
    except (TypeError, ValueError):
        text = row[0]
    info = load_json(f"{path}, its entry in meta", text)
    if isinstance(info, Unread):
        yield info
        return
    root = text_or_empty(fields_of(info.value).get("latestRootBlobId"))
    state = find_blob(root) if root.isascii() else None  # a hash in hexadecimal
    if state is None:
        yield Unread(f"{path}: its dialog (latestRootBlobId) is empty or missing")
        return
    try:
        yield Located(str(path), {"context": _read_state(state, find_blob)})
    except Malformed as error:
        yield Unread(f"{path}: {error}")


def _bytes_in(row: tuple[Any, ...] | None) -> bytes | None:
    """Returns the bytes or the text in a row; None without a row, or if it has another type."""
    value = row[0] if row else None
    if isinstance(value, str):
        return value.encode()
    return value if isinstance(value, bytes) else None


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
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            for row in database.execute(f"SELECT * FROM {table}"):
                info = dict(zip(columns, row, strict=True))
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


# --- The state of a dialog of Cursor's agent, from which its context can be put together
#
# Cursor keeps the messages that the model sees apart from those that it shows. Each is a JSON text,
# stored under its SHA-256 hash: in the rows `agentKv:blob:...` of `state.vscdb`, or in the table
# `blobs` of the agent's `store.db`. A state is a message of Protocol Buffers. It lists the hashes
# of the messages in its field 1, and refers in field 8 to all turns of the dialog, including those
# that a summary has replaced in the context.

_MESSAGES = 1  # the fields of a state
_TURNS = 8
_HASH_LENGTH = 32  # of SHA-256, in bytes
# how Protocol Buffers writes the value of a field
_VARINT = 0
_EIGHT_BYTES = 1
_LENGTH_DELIMITED = 2
_FOUR_BYTES = 5
_LENGTHS = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}


def _read_state(state: bytes, find_blob: Callable[[str], bytes | None]) -> dict[str, Any]:
    """Puts together the context of a dialog, in the form that Cursor's reader takes.

    Args:
        find_blob: returns the blob of a hash, given in hexadecimal; None if there is none.

    Returns:
        The `messages` of the context, how many are `missing` from the store and how many `unread`
        because they are not JSON, and the number of `turns` that are shown.

    Raises:
        Malformed: the state cannot be read.
    """
    messages: list[Any] = []
    missing = unread = turns = 0
    for field, value in _fields_of(state):
        turns += field == _TURNS
        if field != _MESSAGES:
            continue
        may_be_hash = len(value) == _HASH_LENGTH  # or a message of this length
        blob = find_blob(value.hex()) if may_be_hash else None
        try:
            messages.append(json.loads(value if blob is None else blob))
        except (ValueError, RecursionError):
            if may_be_hash and blob is None:
                missing += 1
            else:
                unread += 1
    return {"messages": messages, "missing": missing, "unread": unread, "turns": turns}


def _fields_of(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the length-delimited fields of a Protocol Buffers message: number and value."""
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        field, form = key >> 3, key & 7
        if form == _VARINT:
            _, position = _varint(message, position)
            continue
        length = _LENGTHS.get(form)
        if form == _LENGTH_DELIMITED:
            length, position = _varint(message, position)
        if length is None or position + length > len(message):
            raise Malformed("its state is not a message of Protocol Buffers")
        if form == _LENGTH_DELIMITED:
            yield field, message[position : position + length]
        position += length


def _varint(message: bytes, position: int) -> tuple[int, int]:
    """Reads a number of variable length; returns it, and the position after it."""
    number = shift = 0
    while position < len(message):
        byte = message[position]
        number |= (byte & 0x7F) << shift
        position += 1
        shift += 7
        if byte < 0x80:
            return number, position
    raise Malformed("its state is not a message of Protocol Buffers")
