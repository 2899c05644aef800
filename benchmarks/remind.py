"""Measures how long the hook `holdfast remind` takes on a coding agent's session of ten megabytes.

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
RESULT_CHARACTERS = 8_000
CALLS = 5  # of tools, per turn


def event(kind: str, name: str, parent: str | None, content, **fields) -> dict:
    """A message as Claude Code logs it, after the one with the name `parent`."""
    return {
        "type": kind,
        "uuid": name,
        "parentUuid": parent,
        "message": {"role": kind, "content": content},
        "sessionId": SESSION,
        "isSidechain": False,
        **fields,
    }


def turn(number: int) -> list[dict]:
    """A question, commands with their output, and an answer, as Claude Code logs them."""
    last = f"end{number - 1}" if number else None
    events = [event("user", f"ask{number}", last, f"Please look into part {number}.")]
    for index in range(CALLS):
        call = f"{number}-{index}"
        before = str(events[-1]["uuid"])
        tool = {"type": "tool_use", "id": call, "name": "Bash"}
        block = {**tool, "input": {"command": f"sed -n '1,40p' src/part_{number}_{index}.py"}}
        events.append(event("assistant", f"call{call}", before, [block]))
        output = "x = 1  # a line of a file\n" * (RESULT_CHARACTERS // 26)
        result = {"type": "tool_result", "tool_use_id": call, "content": output}
        events.append(
            event("user", f"result{call}", f"call{call}", [result], toolUseResult={"stdout": ""})
        )
    text = [{"type": "text", "text": f"Part {number} is fine. Nothing has to change."}]
    return [*events, event("assistant", f"end{number}", str(events[-1]["uuid"]), text)]


def lines_of(events: list[dict]) -> str:
    """The lines of a log with these events."""
    return "".join(json.dumps(event) + "\n" for event in events)


def write_session(log: Path, megabytes: float) -> int:
    """Writes a session of about this size; returns the number of its turns."""
    number = 0
    with log.open("w") as file:
        while file.tell() < megabytes * 1e6:
            file.write(lines_of(turn(number)))
            number += 1
    return number


def seconds_of(command: list[str], hook_input: dict, cache: Path) -> float:
    """Returns the wall time of a process that reads the input of a hook."""
    env = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    started = time.perf_counter()
    subprocess.run(command, input=json.dumps(hook_input), env=env, text=True, check=True)
    return time.perf_counter() - started


def measure(megabytes: float, repeats: int) -> dict[str, list[float]]:
    """Measures the seconds of each kind of call."""
    seconds: dict[str, list[float]] = {"python": [], "first": [], "later": [], "tool": []}
    python = [sys.executable, "-c", ""]
    remind = [sys.executable, "-m", "holdfast", "remind", "--suite", str(RULES), "--strict"]
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "session.jsonl"
        num_turns = write_session(log, megabytes)
        session = {"session_id": SESSION, "transcript_path": str(log), "cwd": folder}
        prompt = {**session, "hook_event_name": "UserPromptSubmit", "prompt": "Go on."}
        tool = {
            **session,
            "hook_event_name": "PostToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": "ls"},
            "tool_use_id": "new",
        }
        for repeat in range(repeats):
            cache = Path(folder) / f"cache{repeat}"
            seconds["python"].append(seconds_of(python, prompt, cache))
            seconds["first"].append(seconds_of(remind, prompt, cache))
            with log.open("a") as file:
                file.write(lines_of(turn(num_turns)))
            num_turns += 1
            seconds["later"].append(seconds_of(remind, prompt, cache))
            seconds["tool"].append(seconds_of(remind, tool, cache))
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
