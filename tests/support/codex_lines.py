"""Lines of Codex's rollouts, for tests that write such files.

`rollout(META, says("user", "Hi"), says("assistant", "A."))` is a session of one turn.
"""

import json
from typing import Any

from log_variations import lines


def line(kind: str, **payload: Any) -> dict:
    return {"timestamp": "2026-10-01T10:00:00Z", "type": kind, "payload": payload}


def item(**payload: Any) -> dict:
    return line("response_item", **payload)


def says(role: str, *texts: str, kinds: list[str | None] | None = None, **fields: Any) -> dict:
    """A message with these texts; newer versions say of which kind each of them is."""
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": words} for words in texts]
    if kinds:
        passed = {"turn_id": "t1", "content_item_kinds": kinds}
        fields["internal_chat_message_metadata_passthrough"] = passed
    return item(type="message", role=role, content=content, **fields)


def call(name: str, arguments: Any, call_id: str = "c1") -> dict:
    return item(type="function_call", name=name, arguments=json.dumps(arguments), call_id=call_id)


def output(value: Any, call_id: str = "c1", kind: str = "function_call_output") -> dict:
    return item(type=kind, call_id=call_id, output=value)


def rollout(*values: Any) -> dict:
    """The file of a session with these lines."""
    return {"r.jsonl": lines(*values)}


META = line("session_meta", id="x1", base_instructions={"text": "Be brief."}, source="cli")
HI, A = says("user", "Hi"), says("assistant", "A.")
MORE, B = says("user", "More?"), says("assistant", "B.")
