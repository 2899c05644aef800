"""Reads the dialogs in Cursor's databases as JSON.

    state.vscdb -> the messages that are shown, and the context that the model saw
    store.db    -> the context that the model saw

Cursor's reader turns these values into transcripts.
"""

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.plurals import count_of
from holdfast.transcripts.databases.cursor_state import read_state
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

    has_context = False
    query = "SELECT key, value FROM cursorDiskKV WHERE key LIKE 'composerData:%' ORDER BY key"
    for key, text in database.execute(query).fetchall():
        name = str(key).partition(":")[2]
        composer = load_json(f"{path}, composer {name}", text)
        if isinstance(composer, Unread):
            yield composer
            continue
        bubbles: dict[str, Any] = {}
        for bubble in _bubbles(path, database, name):
            if isinstance(bubble, Unread):
                yield bubble
            else:
                bubbles[bubble.id] = bubble.fields
        value: dict[str, Any] = {"composerData": composer.value, "bubbles": bubbles}
        state = text_or_empty(fields_of(composer.value).get("conversationState"))
        if encoded := state.removeprefix("~"):
            has_context = True
            context = _context(composer.source, encoded, find_blob)
            if isinstance(context, Unread):
                yield context
            else:
                value["context"] = context
        yield Located(composer.source, value)
    if not has_context:
        yield from _unclaimed_messages(path, database)


class _Bubble(NamedTuple):
    """A message that Cursor shows."""

    id: str
    fields: dict[str, Any]


def _bubbles(path: Path, database: "Connection", composer: str) -> Iterator[_Bubble | Unread]:
    """Yields the messages that are shown of a dialog, with the fields that the reader needs."""
    rows = database.execute(
        "SELECT key, value FROM cursorDiskKV WHERE key >= ? AND key < ? ORDER BY key",
        (f"bubbleId:{composer}:", f"bubbleId:{composer};"),  # ";" follows ":"
    )
    for key, text in rows:
        bubble = load_json(f"{path}, {key}", text)
        if isinstance(bubble, Unread):
            yield bubble
        elif fields := fields_of(bubble.value):
            needed = {name: fields[name] for name in _BUBBLE_FIELDS if name in fields}
            yield _Bubble(str(key).rpartition(":")[2], needed)


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
        return read_state(base64.b64decode(padded, validate=True), find_blob)
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
        yield Located(str(path), {"context": read_state(state, find_blob)})
    except Malformed as error:
        yield Unread(f"{path}: {error}")


def _bytes_in(row: tuple[Any, ...] | None) -> bytes | None:
    """Returns the bytes or the text in a row; None without a row, or if it has another type."""
    value = row[0] if row else None
    if isinstance(value, str):
        return value.encode()
    return value if isinstance(value, bytes) else None
