"""How long `holdfast logs` takes on large logs, and how much memory.

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
from synthetic_logs import RULES, write_file, write_mixed

from holdfast.records import read_run

MEGABYTE = 1e6
SESSION = 10  # megabytes
_SCAN = """
import sys
from holdfast.drift import load_suite
from holdfast.logs import scan_logs

if __name__ == "__main__":
    logs, suite, out, workers = sys.argv[1:]
    scan_logs([logs], load_suite(suite, probed=False), out, workers=int(workers))
"""


def resident(process: int) -> int:
    """Returns the resident memory of a process and its children, in bytes."""
    try:
        fields = Path(f"/proc/{process}/statm").read_text().split()
        children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return 0
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") + sum(map(resident, map(int, children)))


def measured(words: list[str]) -> dict[str, float]:
    """Runs a command; returns its wall time, its processor time, and its peak memory."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    start = time.perf_counter()
    peak = 0
    before = _processor_seconds()
    process = subprocess.Popen(
        words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while process.poll() is None:
        peak = max(peak, resident(process.pid))
        time.sleep(0.02)
    if process.returncode:
        raise RuntimeError(f"{words} ended with {process.returncode}")
    return {
        "seconds": round(time.perf_counter() - start, 2),
        "processor_seconds": round(_processor_seconds() - before, 2),
        "peak_megabytes": round(peak / MEGABYTE),
    }


def _processor_seconds() -> float:
    """The processor time of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rows_of(name: str, logs: Path, folder: Path, workers: int, repeats: int) -> list[dict]:
    """Makes two rows: one for reading and scoring, one for the command."""
    script = folder / "scan.py"
    suite = folder / "rules.yaml"
    script.write_text(_SCAN)
    suite.write_text(RULES)
    rows = []
    for what in ("read and scored", "command"):
        timed = []
        for repeat in range(repeats):
            out = folder / f"{name}-{what.split()[0]}-{repeat}"
            given = [str(logs), str(suite), str(out), str(workers)]
            words = [sys.executable, str(script), *given]
            if what == "command":
                words = [sys.executable, "-m", "holdfast", "logs", given[0], "--suite", given[1]]
                words += ["--out", given[2], "--workers", given[3]]
            timed.append(measured(words))
        run = read_run(out)
        size = sum(path.stat().st_size for path in logs.rglob("*.jsonl"))
        rows.append(
            {
                "logs": name,
                "step": what,
                "megabytes": round(size / MEGABYTE, 1),
                "dialogs": len(run.records),
                "turns": run.log_scores.turns.total(),
                "seconds": min(one["seconds"] for one in timed),
                "processor_seconds": min(one["processor_seconds"] for one in timed),
                "peak_megabytes": max(one["peak_megabytes"] for one in timed),
                "page_kilobytes": round((out / "report.html").stat().st_size / 1e3)
                if what == "command"
                else None,
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--size", type=float, default=1000, help="megabytes of the mixed logs")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3, help="of the session; the best counts")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        session = min(SESSION, arguments.size)
        path = folder / "session" / "session.jsonl"
        write_file(path, "claude-code", session * MEGABYTE, seed=1, sessions=1)
        rows = rows_of("session", path.parent, folder, 1, arguments.repeats)
        write_mixed(folder / "mixed", arguments.size * MEGABYTE)
        rows += rows_of("mixed", folder / "mixed", folder, arguments.workers, 1)
    record = {"workers": arguments.workers, "repeats": arguments.repeats, "rows": rows}
    write_record({**record, "measured_on": measured_on()}, arguments.out)


if __name__ == "__main__":
    main()
