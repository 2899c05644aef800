"""Lines of the sessions of Claude Code, in variations of its logs.

A session is a tree: `assistant("a1", "u1", "A.")` follows the line whose `uuid` is `u1`.
"""

from collections.abc import Sequence
from typing import Any

from log_variations import text


def line(kind: str, uuid: str, parent: str | None, content: Any, **fields: Any) -> dict:
    """A line of a session; `mid` is the id of the reply."""
    message = {"role": kind, "content": content}
    if mid := fields.pop("mid", None):
        message |= {"id": mid, "model": "claude-x", "type": "message"}
    line = {"parentUuid": parent, "isSidechain": False, "sessionId": "s1", "version": "2.1.0"}
    return {**line, "type": kind, "message": message, "uuid": uuid, **fields}


def user(uuid: str, parent: str | None, content: Any, **fields: Any) -> dict:
    return line("user", uuid, parent, content, **fields)


def assistant(uuid: str, parent: str | None, *blocks: Any, **fields: Any) -> dict:
    content_blocks = [text(block) if isinstance(block, str) else block for block in blocks]
    return line("assistant", uuid, parent, content_blocks, **fields)


def bash_call(call: str, command: str = "ls") -> dict:
    return {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}}


def result(uuid: str, parent: str, call: str, content: Any = "ok", **fields: Any) -> dict:
    block = {"type": "tool_result", "tool_use_id": call, "content": content}
    return user(uuid, parent, [block], toolUseResult={"stdout": "ok"}, **fields)


def system(uuid: str, parent: str | None, subtype: str, **fields: Any) -> dict:
    line = {"parentUuid": parent, "isSidechain": False, "sessionId": "s1", "type": "system"}
    return {**line, "subtype": subtype, "uuid": uuid, "content": "", **fields}


def without(events: Sequence[dict], *names: str) -> list[dict]:
    return [{n: v for n, v in event.items() if n not in names} for event in events]


HI = user("u1", None, "Hi", timestamp="2026-05-01T10:00:00.000Z")
A = assistant("a1", "u1", "A.", mid="msg_1", timestamp="2026-05-01T10:00:01.000Z")
MORE = user("u2", "a1", "More?", timestamp="2026-05-01T10:00:02.000Z")
B = assistant("a2", "u2", "B.", mid="msg_2", timestamp="2026-05-01T10:00:03.000Z")
