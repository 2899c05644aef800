"""A small record, and the identity of a run that it belongs to."""

import json
from pathlib import Path

from holdfast.records import Conversation

METHODS = ["none", "split-softmax:exponent=0.5"]
RUNTIME = {"device": "cpu", "torch": "2.13.0"}
IDENTITY = {"model": "default", "runtime": RUNTIME, "rounds": 8, "methods": METHODS, "seed": 0}
ABOUT = {"holdfast": "0.1.0", "command": "drift", "argv": "holdfast drift --seed 0"}
ABOUT |= {"versions": {"python": "3.11"}}


def record(number: int, method: str = "none", text: str = "hello") -> Conversation:
    """A small complete record."""
    return Conversation.model_validate(as_written(number, method, text))


def as_written(number: int, method: str = "none", text: str = "hello") -> dict:
    """The JSON of a small complete record."""
    turn = {"round": 1, "speaker": "user", "text": text, "stop_reason": "stop", "mass": None}
    probe = {"round": 1, "kind": "stability", "probe": 0, "question": "?", "reply": text}
    return {
        "method": method,
        "conversation": number,
        "agent": {"id": "a", "category": "pattern", "system_prompt": "Be brief."},
        "user": {"id": None, "category": None, "system_prompt": ""},
        "turns": [turn],
        "probes": [{**probe, "score": 1.0, "reason": "short", "mass": 0.1}],
        "tokens": {"forwarded": 10, "least": 9},
        "seconds": 0.1,
    }


def write_without_checksums(folder: Path, *lines: bytes | dict, **manifest: object) -> None:
    """Writes a run as a version without checksums did."""
    folder.mkdir(exist_ok=True)
    manifest = {**ABOUT, "identity": IDENTITY, **manifest}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
    encoded = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    (folder / "records.jsonl").write_bytes(b"".join(line + b"\n" for line in encoded))
