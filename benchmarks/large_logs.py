"""Measures how long `holdfast logs` takes on large logs, and how much memory.

The logs are synthetic (synthetic_logs.py): a session of Claude Code of ten megabytes, and a
gigabyte in four formats (`--size` in megabytes). Each row is a separate process; memory is the sum
of the resident sizes of all its processes, sampled, so that shared pages count twice. On a machine
that does other work, processor time says more than wall time.

- "read and scored": a Python process that starts, reads and scores the logs, and writes the records
- "command": `holdfast logs`, which also tests the rules, and writes figures and the page

    python benchmarks/large_logs.py --out benchmarks/results/large_logs.json
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from stamp import ROOT, measured_on, write_record
from synthetic_logs import RULES, write_mixed, write_session

from holdfast.records import read_run

MEGABYTE = 1e6
SESSION_SIZE = 10  # megabytes
READ_AND_SCORED = "read and scored"
COMMAND = "command"
SCAN = """
import sys
from holdfast.drift import load_suite
from holdfast.logs import scan_logs

if __name__ == "__main__":
    logs, suite, out, workers = sys.argv[1:]
    scan_logs([logs], load_suite(suite, probed=False), out, workers=int(workers))
"""


def resident_bytes(process: int) -> int:
    """Returns the resident memory of a process and its children, in bytes."""
    try:
        fields = Path(f"/proc/{process}/statm").read_text().split()
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return 0
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") + sum(
        resident_bytes(int(child)) for child in children
    )


def run_measured(command: list[str]) -> dict[str, float]:
    """Runs a command; returns its wall time, its processor time, and its peak memory."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    start = time.perf_counter()
    peak = 0
    before = _processor_seconds()
    process = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while process.poll() is None:
        peak = max(peak, resident_bytes(process.pid))
        time.sleep(0.02)
    if process.returncode:
        raise RuntimeError(f"{command} ended with {process.returncode}")
    return {
        "seconds": round(time.perf_counter() - start, 2),
        "processor_seconds": round(_processor_seconds() - before, 2),
        "peak_megabytes": round(peak / MEGABYTE),
    }


def _processor_seconds() -> float:
    """The processor time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def row_of(step: str, name: str, logs: Path, folder: Path, workers: int, repeats: int) -> dict:
    """Measures one of the two steps on some logs, and makes a row of the record.

    Args:
        step: `READ_AND_SCORED` or `COMMAND`.
        name: of the logs.
        folder: for scripts and runs.
        repeats: how often; times are the best, memory is the most.
    """
    outs = [folder / f"{name}-{step.split()[0]}-{number}" for number in range(repeats)]
    repetitions = [run_measured(command_of(step, logs, folder, out, workers)) for out in outs]
    run = read_run(outs[0])
    size = sum(path.stat().st_size for path in logs.rglob("*.jsonl"))
    page_size = (outs[0] / "report.html").stat().st_size if step == COMMAND else None
    return {
        "logs": name,
        "step": step,
        "megabytes": round(size / MEGABYTE, 1),
        "dialogs": len(run.records),
        "turns": run.log_scores.turns.total(),
        "seconds": min(repetition["seconds"] for repetition in repetitions),
        "processor_seconds": min(repetition["processor_seconds"] for repetition in repetitions),
        "peak_megabytes": max(repetition["peak_megabytes"] for repetition in repetitions),
        "page_kilobytes": None if page_size is None else round(page_size / 1e3),
    }


def command_of(step: str, logs: Path, folder: Path, out: Path, workers: int) -> list[str]:
    """The command of a step; its script and the rules are written into the folder."""
    suite = folder / "rules.yaml"
    suite.write_text(RULES)
    if step == COMMAND:
        command = [sys.executable, "-m", "holdfast", "logs", str(logs), "--suite", str(suite)]
        return [*command, "--out", str(out), "--workers", str(workers)]
    script = folder / "scan.py"
    script.write_text(SCAN)
    return [sys.executable, str(script), str(logs), str(suite), str(out), str(workers)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=float, default=1000, help="megabytes of the mixed logs")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3, help="of the session; the best counts")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        session = folder / "session" / "session.jsonl"
        size = min(SESSION_SIZE, arguments.size) * MEGABYTE
        write_session(session, "claude-code", size, seed=1)
        mixed = folder / "mixed"
        rows = [
            row_of(step, "session", session.parent, folder, 1, arguments.repeats)
            for step in (READ_AND_SCORED, COMMAND)
        ]
        write_mixed(mixed, arguments.size * MEGABYTE)
        rows += [
            row_of(step, "mixed", mixed, folder, arguments.workers, 1)
            for step in (READ_AND_SCORED, COMMAND)
        ]
    record = {"workers": arguments.workers, "repeats": arguments.repeats, "rows": rows}
    write_record({**record, "measured_on": measured_on()}, arguments.out)


if __name__ == "__main__":
    main()
