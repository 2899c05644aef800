"""The score of a turn that was read from a log of chat messages."""

import json

from holdfast.logs import read_logs
from holdfast.measures import build


def bash(command: str) -> tuple[str, dict]:
    return "Bash", {"command": command}


def wrote(path: str, text: str) -> tuple[str, dict]:
    return "Write", {"file_path": path, "content": text}


def edited(path: str, old: str = "x", new: str = "y") -> tuple[str, dict]:
    return "Edit", {"file_path": path, "old_string": old, "new_string": new}


def value_of_last_turn(spec, turns, folder):
    """The value of the last of these turns; each has the user's words, the reply and the calls."""
    messages: list[dict] = []
    for user, reply, calls in turns:
        messages.append({"role": "user", "content": user})
        for name, arguments, *results in calls:
            identity = f"c{len(messages)}"
            function = {"name": name, "arguments": json.dumps(arguments)}
            call = {"id": identity, "type": "function", "function": function}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            result = results[0] if results else "ok"
            messages.append({"role": "tool", "tool_call_id": identity, "content": result})
        messages.append({"role": "assistant", "content": reply})
    (folder / "log.jsonl").write_text(json.dumps({"messages": messages}), encoding="utf-8")
    (dialog,) = read_logs([folder / "log.jsonl"]).dialogs
    score = build(spec).score_turn(dialog.turns[-1].done)
    return None if score is None else score.value
