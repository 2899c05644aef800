"""Databases of SQLite in which agents keep their sessions."""

import json
import sqlite3
import tempfile
from pathlib import Path
from typing import Any


def database(**tables: list[dict[str, Any]]) -> bytes:
    """A database with these tables, whose columns are the fields of their first rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.db")
        db = sqlite3.connect(path)
        for name, rows in tables.items():
            columns = [*rows[0]]
            db.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
            marks = ", ".join("?" * len(columns))
            db.executemany(f"INSERT INTO {name} VALUES ({marks})", [[*r.values()] for r in rows])
        db.commit()
        db.close()
        return path.read_bytes()


def visible(to_user: bool, to_agent: bool) -> dict:
    return {"userVisible": to_user, "agentVisible": to_agent}


def goose_row(number: int, message: dict, session: str = "20260101_1", **fields: Any) -> dict:
    row = {"id": number, "message_id": f"m{number}", "session_id": session, "role": message["role"]}
    row |= {"content_json": json.dumps(message["content"]), "created_timestamp": 1760000000}
    return {**row, "metadata_json": json.dumps(message.get("metadata", visible(True, True)))}


def goose_database(*rows: dict, kind: str = "user") -> bytes:
    session = {"id": "20260101_1", "name": "x", "working_dir": "/app", "session_type": kind}
    return database(sessions=[session], messages=[*rows], schema_version=[{"version": 12}])


def adk_row(number: int, author: str, words: str, **fields: Any) -> dict:
    role = "user" if author == "user" else "model"
    event = {"author": author, "content": {"role": role, "parts": [{"text": words}]}, **fields}
    row = {"id": f"e{number}", "app_name": "shop", "user_id": "u", "session_id": "s1"}
    row |= {"invocation_id": f"i{number}", "timestamp": float(number)}
    return {**row, "event_data": json.dumps({"timestamp": float(number), "actions": {}, **event})}
