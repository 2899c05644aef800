"""How long a hook of a coding agent takes: `holdfast remind` on a session of ten megabytes.

Each call is a separate process, as in an agent, so that the start of Python and the imports count.
The session has turns with tool calls and their results; between the calls, it grows by one turn.

- "python": the start of Python alone
- "first": the first call, which reads the whole session and checks the suite
- "later": a call after a message of the user, which reads the last turn and the new one
- "tool": a call after a tool, in the same turn

    python benchmarks/remind.py --out benchmarks/results/remind.json
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from stamp import measured_on, write_record

RULES = Path(__file__).parents[1] / "examples" / "remind" / "rules.yaml"
SESSION = "00000000-0000-4000-8000-000000000001"
RESULT = 8_000  # characters of a tool's result
CALLS = 5  # per turn


def event(kind: str, name: str, parent: str | None, content, **fields) -> dict:
    message = {"role": kind, "content": content}
    of_session = {"sessionId": SESSION, "isSidechain": False}
    return {"type": kind, "uuid": name, "parentUuid": parent, "message": message} | {
        **of_session,
        **fields,
    }


def turn(number: int) -> list[dict]:
    """A question, commands with their output, and an answer, as Claude Code logs them."""
    last = f"end{number - 1}" if number else None
    events = [event("user", f"ask{number}", last, f"Please look into part {number}.")]
    for place in range(CALLS):
        call = f"{number}-{place}"
        before = str(events[-1]["uuid"])
        tool = {"type": "tool_use", "id": call, "name": "Bash"}
        block = {**tool, "input": {"command": f"sed -n '1,40p' src/part_{number}_{place}.py"}}
        events.append(event("assistant", f"call{call}", before, [block]))
        output = "x = 1  # a line of a file\n" * (RESULT // 26)
        result = {"type": "tool_result", "tool_use_id": call, "content": output}
        events.append(
            event("user", f"result{call}", f"call{call}", [result], toolUseResult={"stdout": ""})
        )
    text = [{"type": "text", "text": f"Part {number} is fine. Nothing has to change."}]
    return [*events, event("assistant", f"end{number}", str(events[-1]["uuid"]), text)]


def lines_of(events: list[dict]) -> str:
    return "".join(json.dumps(item) + "\n" for item in events)


def seconds_of(words: list[str], payload: dict, cache: Path) -> float:
    """Returns the wall time of a process that reads the payload."""
    env = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    started = time.perf_counter()
    subprocess.run(words, input=json.dumps(payload), env=env, text=True, check=True)
    return time.perf_counter() - started


def measure(megabytes: float, repeats: int) -> dict[str, list[float]]:
    """Measures the seconds of each kind of call."""
    seconds: dict[str, list[float]] = {"python": [], "first": [], "later": [], "tool": []}
    words = [sys.executable, "-m", "holdfast", "remind", "--suite", str(RULES), "--strict"]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "session.jsonl"
        number = 0
        with log.open("w") as file:
            while file.tell() < megabytes * 1e6:
                file.write(lines_of(turn(number)))
                number += 1
        payload = {"session_id": SESSION, "transcript_path": str(log), "cwd": folder}
        prompt = {**payload, "hook_event_name": "UserPromptSubmit", "prompt": "Go on."}
        tool = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "new"}
        tool = {**payload, "hook_event_name": "PostToolUse", **tool}
        for repeat in range(repeats):
            cache = Path(folder) / f"cache{repeat}"
            seconds["python"].append(seconds_of([sys.executable, "-c", ""], prompt, cache))
            seconds["first"].append(seconds_of(words, prompt, cache))
            with log.open("a") as file:
                file.write(lines_of(turn(number)))
            number += 1
            seconds["later"].append(seconds_of(words, prompt, cache))
            seconds["tool"].append(seconds_of(words, tool, cache))
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=10.0)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    seconds = measure(arguments.megabytes, arguments.repeats)
    rows = [
        {
            "call": name,
            "median_ms": round(1000 * statistics.median(values), 1),
            "max_ms": round(1000 * max(values), 1),
        }
        for name, values in seconds.items()
    ]
    record = {
        "megabytes": arguments.megabytes,
        "repeats": arguments.repeats,
        "rows": rows,
        "measured_on": measured_on(),
    }
    write_record(record, arguments.out)


if __name__ == "__main__":
    main()
