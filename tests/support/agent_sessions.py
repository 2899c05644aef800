"""Lines of the logs of Claude Code, Codex and Gemini CLI, for tests that write such logs.

For example, a session of Claude Code in which a command is run:

    write(
        tmp_path,
        user("u1", None, "List the files."),
        reply("a1", "u1", "I look.", bash("t1", "ls")),
        result("u2", "a1", "t1"),
        reply("a2", "u2", "Done."),
    )

Each event has an id and that of the event before it, its parent.
"""

import json

SESSION = "3f0c9a52-6f0e-4b57-9c0a-1d2e3f405162"


def write(folder, *values, name="log.jsonl"):
    """Writes a log with one value per line and returns its path; a text is a line as it is."""
    path = folder / name
    path.parent.mkdir(exist_ok=True, parents=True)
    lines = [value if isinstance(value, str) else json.dumps(value) for value in values]
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


# Claude Code


def claude(kind, uuid, parent, content, session=SESSION, **fields):
    """An event of Claude Code; `fields` are the event's, except for `message`, which is updated."""
    message = {"role": kind, "content": content, **fields.pop("message", {})}
    event = {"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": session}
    return {**event, "isSidechain": False, "message": message, **fields}


def user(uuid, parent, text, **fields):
    """A message of the user."""
    return claude("user", uuid, parent, text, **fields)


def reply(uuid, parent, *blocks, **fields):
    """A message of the assistant, of texts and tool calls."""
    content = [
        {"type": "text", "text": block} if isinstance(block, str) else block for block in blocks
    ]
    return claude("assistant", uuid, parent, content, **fields)


def bash(call_id, command="ls"):
    """A tool call that runs a command, as a block of `reply`."""
    return {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": command}}


def result(uuid, parent, call_id):
    """The result "ok" of a tool call, which Claude Code logs as a message of the user."""
    block = {"type": "tool_result", "tool_use_id": call_id, "content": "ok"}
    return claude("user", uuid, parent, [block], toolUseResult={"stdout": "ok"})


def boundary(uuid, parent):
    """The event that says that the conversation before it was compacted."""
    return {
        "type": "system",
        "subtype": "compact_boundary",
        "content": "Conversation compacted",
        "uuid": uuid,
        "parentUuid": None,
        "logicalParentUuid": parent,
        "sessionId": SESSION,
    }


def summary(uuid, parent, text):
    """The summary of what was compacted, which follows a `boundary`."""
    return user(uuid, parent, text, isCompactSummary=True, isVisibleInTranscriptOnly=True)


FIRST = (user("u1", None, "Rename it."), reply("a1", "u1", "Done."))  # a first turn


# Codex


def codex(kind, **payload):
    """An event of Codex, such as `codex("session_meta", id="s1")`."""
    return {"timestamp": "2026-05-01T10:00:00Z", "type": kind, "payload": payload}


def codex_says(role, text):
    """A message of Codex by "user", "assistant" or "developer"."""
    kind = "output_text" if role == "assistant" else "input_text"
    item = {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}
    return codex("response_item", **item)


# Gemini CLI


# the first line of a log
GEMINI = {"sessionId": "s1", "projectHash": "f", "startTime": "2026-05-22T14:59:00Z"}


def gemini(number, kind, text):
    """A message of Gemini CLI by "user" or "gemini"."""
    return {"id": str(number), "timestamp": "2026-05-22T14:59:00Z", "type": kind, "content": text}
