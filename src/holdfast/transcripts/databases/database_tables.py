"""Reads the tables of a database of SQLite."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlite3 import Connection


def columns(database: "Connection", table: str) -> list[str]:
    """Returns the names of a table's columns; [] if there is no such table."""
    return [row[1] for row in database.execute(f"PRAGMA table_info({table})")]


def rows_as_dicts(database: "Connection", table: str, order: str) -> Iterator[dict[str, Any]]:
    """Yields the rows of a table, each with its values by the names of their columns."""
    names = columns(database, table)
    for row in database.execute(f"SELECT * FROM {table} ORDER BY {order}"):
        yield dict(zip(names, row, strict=True))
