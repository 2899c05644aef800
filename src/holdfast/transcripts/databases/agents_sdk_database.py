"""Reads the sessions in a database of OpenAI's Agents SDK: lists of items of the Responses API.

A session, shortened:

    {"agent_session": "1", "items": [{"role": "user", "content": "Hi"}, ...]}
"""

from collections.abc import Iterator, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.plurals import count_of
from holdfast.transcripts.parsing import load_json
from holdfast.transcripts.reader import Located, Unread
from holdfast.validation.json_values import fields_of

if TYPE_CHECKING:
    from sqlite3 import Connection


def agents_sdk_sessions(
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
