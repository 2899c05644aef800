"""Lines of the logs of Claude Code, Codex and Gemini CLI, for tests that write such logs."""

import json

SESSION = "3f0c9a52-6f0e-4b57-9c0a-1d2e3f405162"


def claude(kind, uuid, parent, content, session=SESSION, **fields):
    """An event of Claude Code; `fields` are the event's, except for `message`, which is updated."""
    message = {"role": kind, "content": content, **fields.pop("message", {})}
    event = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": session}
    return {**event, "isSidechain": False, "message": message, **fields}


def user(uuid, parent, text, **fields):
    return claude("user", uuid, parent, text, **fields)


def reply(uuid, parent, *blocks, **fields):
    content_blocks = [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]
    return claude("assistant", uuid, parent, content_blocks, **fields)


def bash(call_id, command="ls"):
    return {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": command}}


def result(uuid, parent, call_id):
    block = {"type": "tool_result", "tool_use_id": call_id, "content": "ok"}
    return claude("user", uuid, parent, [block], toolUseResult={"stdout": "ok"})


def boundary(uuid, parent):
    event = {"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted"}
    return {**event, "uuid": uuid, "parentUuid": None, "logicalParentUuid": parent} | {
        "sessionId": SESSION
    }


def summary(uuid, parent, text):
    return user(uuid, parent, text, isCompactSummary=True, isVisibleInTranscriptOnly=True)


def codex(kind, **payload):
    return {"timestamp": "2026-05-01T10:00:00Z", "type": kind, "payload": payload}


def codex_says(role, text):
    kind = "output_text" if role == "assistant" else "input_text"
    item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
    return codex("response_item", **item)


def write(folder, *values, name="log.jsonl"):
    path = folder / name
    path.parent.mkdir(exist_ok=True, parents=True)
    lines = [value if isinstance(value, str) else json.dumps(value) for value in values]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


FIRST = (user("u1", None, "Rename it."), reply("a1", "u1", "Done."))
GEMINI = {"sessionId": "s1", "projectHash": "f", "startTime": "2026-05-22T14:59:00Z"}


def gemini(number, kind, text):
    return {"id": str(number), "timestamp": "2026-05-22T14:59:00Z", "type": kind, "content": text}
