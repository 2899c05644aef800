"""The result, duration and picture of `make demo` or `make demo-real`.

    python benchmarks/demo.py
    python benchmarks/demo.py --target demo-real

The command is read from the Makefile. It always starts a new run, since resuming one takes no time.
The record of `demo-real` quotes a dialog.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import shlex
import shutil
import sys
import time
from pathlib import Path

from stamp import ROOT, measured_on

import holdfast
from holdfast.cli import main as command_line
from holdfast.measures.repeated_turns import loops
from holdfast.records import read_run

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
    for option, path in places.items():
        words[words.index(option) + 1] = str(path)
    began, busy = time.perf_counter(), processor_seconds()
    sys.argv = ["holdfast", *demo_words(arguments.target)]  # the page names the command
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
                "collapsed": len(row["collapse"]["collapsed_from_round"]),
            }
            for row in summary["results"]
        ],
    }
    if arguments.target == "demo-real":
        shutil.copyfile(arguments.runs / "report.html", picture.with_name("report.html"))
        record["quoted"] = quoted(arguments.runs)
        record["elsewhere"] = elsewhere(stamp["machine"])
    arguments.out.write_text(json.dumps(record, indent=1) + "\n")


def elsewhere(machine: str) -> list[dict]:
    """The gains that the record has from machines other than this one, the latest of each."""
    old = json.loads((ROOT / "benchmarks" / "results" / "demo_real.json").read_text())
    entry = {
        "machine": old["measured_on"]["machine"],
        "commit": old["measured_on"]["commit"],
        "against": old["methods"][1]["against"],
    }
    known = [row for row in old.get("elsewhere", []) if row["machine"] != entry["machine"]]
    return [row for row in [*known, entry] if row["machine"] != machine]


def quoted(folder: Path) -> dict | None:
    """The probes of the conversation in which the fix gains most over all rounds, of those whose
    prompt is followed in round 1 with both methods, and in the last round with the fix only,
    without a loop in the replies; None if there is none.
    """
    conversations: dict[int, dict[str, dict]] = {}
    for record in read_run(folder).records:
        conversations.setdefault(record.conversation, {})[record.method] = record
    candidates = []
    for number, by_method in sorted(conversations.items()):
        plain, fixed = by_method["none"], next(v for k, v in by_method.items() if k != "none")
        first_and_last = [(record.probes[0], record.probes[-1]) for record in (plain, fixed)]
        shown = [probe for pair in first_and_last for probe in pair]
        if [probe.score for probe in shown] == [1, 0, 1, 1] and not any(
            loops(probe.reply) for probe in shown
        ):
            dialog = {
                "conversation": number,
                "rounds": [probe.round for probe in first_and_last[0]],
                "system_prompt": plain.agent.system_prompt,
                "user": [turn.text for turn in plain.turns if turn.speaker == "user"],
                "probe": plain.probes[0].question,
                "replies": {
                    record.method: [probe.reply for probe in pair]
                    for record, pair in zip((plain, fixed), first_and_last, strict=True)
                },
            }
            totals = [sum(p.score for p in record.probes) for record in (fixed, plain)]
            candidates.append((totals[0] - totals[1], -number, dialog))
    if not candidates:
        print("Nothing to quote: in no conversation does the fix alone keep the prompt to the end.")
        return None
    return max(candidates)[2]


def processor_seconds() -> float:
    """CPU seconds of this process and its finished children, on all cores together."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def demo_words(target: str = "demo") -> list[str]:
    """The arguments of the `holdfast` command that a Makefile target runs."""
    makefile = (ROOT / "Makefile").read_text()
    (line,) = re.findall(rf"^{target}:.*\n(?:\t.*\n)*?\t.*/holdfast (.*)$", makefile, re.MULTILINE)
    return shlex.split(line)


if __name__ == "__main__":
    main()
