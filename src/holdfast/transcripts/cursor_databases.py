"""Reads the dialogs in Cursor's databases as JSON.

    state.vscdb -> the messages that are shown, and the context that the model saw
    store.db    -> the context that the model saw

Cursor's reader turns these values into transcripts.
"""

import base64
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.plurals import count_of
from holdfast.transcripts.parsing import load_json
from holdfast.transcripts.reader import Located, Unread
from holdfast.transcripts.transcript import Malformed
from holdfast.validation.json_values import fields_of, text_or_empty

if TYPE_CHECKING:
    from sqlite3 import Connection

_CHATS = "workbench.panel.aichat.view.aichat.chatdata"  # the key before Cursor had a composer
# The fields of a message that Cursor's reader needs. The others hold the context that the model
# saw, often megabytes of it.
_BUBBLE_FIELDS = ("bubbleId", "type", "text", "toolFormerData", "images")


def cursor_chats(path: Path, database: "Connection") -> Iterator[Located | Unread]:
    """Reads the chats in a `state.vscdb` that older versions wrote."""
    query = "SELECT value FROM ItemTable WHERE key = ?"
    for (value,) in database.execute(query, (_CHATS,)):
        yield load_json(f"{path}, chats", value)


def cursor_dialogs(path: Path, database: "Connection") -> Iterator[Located | Unread]:
    """Reads the dialogs ("composers") in a `state.vscdb`.

    Each has the messages that are shown ("bubbles"), by their ids, and those of its context.
    """

    def find_blob(name: str) -> bytes | None:
        query = "SELECT value FROM cursorDiskKV WHERE key = ?"
        return _bytes_in(database.execute(query, (f"agentKv:blob:{name}",)).fetchone())

    has_states = False
    query = "SELECT key, value FROM cursorDiskKV WHERE key LIKE 'composerData:%' ORDER BY key"
    for key, text in database.execute(query).fetchall():
        name = str(key).partition(":")[2]
        composer = load_json(f"{path}, composer {name}", text)
        if isinstance(composer, Unread):
            yield composer
            continue
        value: dict[str, Any] = {"composerData": composer.value, "bubbles": {}}
        for bubble in _bubbles(path, database, name):
            if isinstance(bubble, Unread):
                yield bubble
            else:
                identity, fields = bubble
                value["bubbles"][identity] = fields
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


def _bubbles(
    path: Path, database: "Connection", composer: str
) -> Iterator[tuple[str, dict[str, Any]] | Unread]:
    """Yields the id and the fields of each message that is shown of a dialog."""
    rows = database.execute(
        "SELECT key, value FROM cursorDiskKV WHERE key >= ? AND key < ? ORDER BY key",
        (f"bubbleId:{composer}:", f"bubbleId:{composer};"),  # ";" follows ":"
    )
    for key, text in rows:
        bubble = load_json(f"{path}, {key}", text)
        if isinstance(bubble, Unread):
            yield bubble
        elif fields := fields_of(bubble.value):
            identity = str(key).rpartition(":")[2]
            yield identity, {name: fields[name] for name in _BUBBLE_FIELDS if name in fields}


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


def cursor_agent_dialog(path: Path, database: "Connection") -> Iterator[Located | Unread]:
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
    missing = 0
    unread = 0
    turns = 0
    for field, value in _protobuf_fields(state):
        if field == _TURNS:
            turns += 1
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


def _protobuf_fields(message: bytes) -> Iterator[tuple[int, bytes]]:
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
