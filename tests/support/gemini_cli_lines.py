"""Sessions of Gemini CLI and their messages, as it writes them."""

from typing import Any

from log_variations import lines


def session(*values: Any) -> dict:
    """The files of a session with these lines."""
    return {"s.jsonl": lines(*values)}


def message(name: str, kind: str, content: Any, **fields: Any) -> dict:
    """A message: `message("1", "user", "Hi")`."""
    return {
        "id": name,
        "timestamp": "2026-08-01T10:00:00Z",
        "type": kind,
        "content": content,
        **fields,
    }
