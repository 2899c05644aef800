"""What `make demo` or `make demo-real` measures, how long it takes, and its picture.

    python benchmarks/demo.py
    python benchmarks/demo.py --target demo-real

The command is read from the Makefile. Its run is made anew, since a resumed one takes no time.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import shlex
import shutil
import time
from pathlib import Path

from stamp import ROOT, measured_on

import holdfast
from holdfast.cli import main as command_line

FIGURE = "drift.png"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", choices=("demo", "demo-real"), default="demo")
    parser.add_argument("--runs", type=Path, default=Path("runs/record-demo"))
    parser.add_argument("--out", type=Path, help="default: benchmarks/results/TARGET.json")
    arguments = parser.parse_args()
    name = arguments.target.replace("-", "_")
    arguments.out = arguments.out or ROOT / "benchmarks" / "results" / f"{name}.json"
    shutil.rmtree(arguments.runs, ignore_errors=True)
    words = demo_words(arguments.target)
    model = words[words.index("--model") + 1] if "--model" in words else "default"
    stamp = measured_on(holdfast.load(model))

    places = {"--out": arguments.runs, "--report": arguments.runs / "report.html"}
    for option, place in places.items():
        words[words.index(option) + 1] = str(place)
    began, busy = time.perf_counter(), processor_seconds()
    status = command_line(words)
    seconds, busy = time.perf_counter() - began, processor_seconds() - busy
    if status:
        raise SystemExit(status)

    picture = arguments.out.with_suffix("") / FIGURE
    picture.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(arguments.runs / "report_figures" / FIGURE, picture)
    summary = json.loads((arguments.runs / "summary.json").read_text())
    record = {
        "benchmark": name,
        "command": " ".join(["holdfast", *demo_words(arguments.target)]),
        "measured_on": stamp,
        "seconds": round(seconds, 1),
        "processor_seconds": round(busy, 1),
        "conversations": summary["identity"]["settings"]["conversations"],
        "rounds": summary["identity"]["settings"]["rounds"],
        "methods": [
            {
                "method": row["method"],
                "stability": row["by_round"]["stability"],
                "change": row["change"]["stability"],
                "against": row["against"] and row["against"]["stability"],
            }
            for row in summary["results"]
        ],
    }
    arguments.out.write_text(json.dumps(record, indent=1) + "\n")


def processor_seconds() -> float:
    """Of this process and of those that it forked and waited for, on all cores together."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def demo_words(target: str = "demo") -> list[str]:
    """The words of the command that a target of the Makefile runs, without `holdfast`."""
    makefile = (ROOT / "Makefile").read_text()
    (line,) = re.findall(rf"^{target}:.*\n(?:\t.*\n)*?\t.*/holdfast (.*)$", makefile, re.MULTILINE)
    return shlex.split(line)


if __name__ == "__main__":
    main()
