"""Puts together the context of Cursor's agent from the state of a dialog.

Cursor keeps the messages that the model sees apart from those that it shows. Each is a JSON text,
stored under its SHA-256 hash: in the rows `agentKv:blob:...` of `state.vscdb`, or in the table
`blobs` of the agent's `store.db`. A state is a message of Protocol Buffers. It lists the hashes
of the messages in its field 1, and refers in field 8 to all turns of the dialog, including those
that a summary has replaced in the context.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

from holdfast.transcripts.transcript import Malformed

_MESSAGES = 1  # the fields of a state
_TURNS = 8
_HASH_LENGTH = 32  # of SHA-256, in bytes
# how Protocol Buffers writes the value of a field
_VARINT = 0
_EIGHT_BYTES = 1
_LENGTH_DELIMITED = 2
_FOUR_BYTES = 5
_LENGTHS = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}


def read_state(state: bytes, find_blob: Callable[[str], bytes | None]) -> dict[str, Any]:
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
