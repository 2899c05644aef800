"""Records the result, duration and picture of `make demo` or `make demo-real`.

    python benchmarks/demo.py
    python benchmarks/demo.py --target demo-real

The command is read from the Makefile. It always starts a new run, since resuming one takes no time.
The record of `demo-real` has the scores of each rule, and quotes a dialog.
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

from stamp import ROOT, measured_on, write_json

import holdfast
from holdfast.cli import main as command_line
from holdfast.records import Conversation, Probe, read_run

FIGURES = {"demo": "drift.png", "demo-real": "rules.png"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--target", choices=("demo", "demo-real"), default="demo")
    parser.add_argument("--runs", type=Path, default=Path("runs/record-demo"))
    parser.add_argument("--out", type=Path, help="default: benchmarks/results/TARGET.json")
    arguments = parser.parse_args()
    target = arguments.target
    name = target.replace("-", "_")
    out = arguments.out or ROOT / "benchmarks" / "results" / f"{name}.json"
    command = demo_command(target)
    model = command[command.index("--model") + 1] if "--model" in command else "default"
    stamp = measured_on(holdfast.load(model))
    cost = run_demo(command, arguments.runs)
    picture = out.with_suffix("") / FIGURES[target]
    picture.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(arguments.runs / "report_figures" / picture.name, picture)
    summary = json.loads((arguments.runs / "summary.json").read_text())
    record = {
        "benchmark": name,
        "command": " ".join(["holdfast", *command]),
        "measured_on": stamp,
        **cost,
        "conversations": summary["identity"]["settings"]["conversations"],
        "rounds": summary["identity"]["settings"]["rounds"],
        "methods": methods_of(summary["results"]),
    }
    if target == "demo-real":
        shutil.copyfile(arguments.runs / "report.html", picture.with_name("report.html"))
        record["rules"] = rules_of(summary["results"])
        record["quoted"] = quoted(arguments.runs)
    write_json(record, out)


def run_demo(command: list[str], runs: Path) -> dict[str, float]:
    """Runs the command, but with `runs` as its folder, which it empties; returns what it took."""
    shutil.rmtree(runs, ignore_errors=True)
    redirected = list(command)
    for option, path in {"--out": runs, "--report": runs / "report.html"}.items():
        redirected[redirected.index(option) + 1] = str(path)
    started = time.perf_counter()
    processor_started = processor_seconds()
    sys.argv = ["holdfast", *command]  # the page names it
    status = command_line(redirected)
    seconds = time.perf_counter() - started
    if status:
        raise SystemExit(status)
    return {
        "seconds": round(seconds, 1),
        "processor_seconds": round(processor_seconds() - processor_started, 1),
    }


def methods_of(results: list[dict]) -> list[dict]:
    """The stability of all rules with each method, and how many conversations collapsed."""
    return [
        {
            "method": row["method"],
            "stability": row["by_round"]["stability"],
            "change": row["change"]["stability"],
            "against": row["against"] and row["against"]["stability"],
            "collapsed": len(row["collapse"]["collapsed_from_round"]),
        }
        for row in results
    ]


def rules_of(results: list[dict]) -> list[dict]:
    """The stability of each rule with each method, in the order of the suite."""
    return [
        {
            "rule": rule["rule"],
            "method": row["method"],
            "by_round": rule["stability_by_round"],
            "change": rule["change"],
            "against": rule["against"],
        }
        for row in results
        for rule in row["rules"]
    ]


def quoted(folder: Path) -> dict | None:
    """Quotes the first and the last answer to a rule's probe, without a fix and with the first fix.

    They are from the first conversation in which both keep the rule in the first round, but only
    the fix keeps it in the last; None if there is no such conversation.
    """
    conversations: dict[int, list[Conversation]] = {}
    for record in read_run(folder).conversations:
        conversations.setdefault(record.conversation, []).append(record)
    pairs = [records[:2] for _, records in sorted(conversations.items()) if len(records) > 1]
    for rule in dict.fromkeys(probe.rule for probe in pairs[0][0].probes):
        for plain, fixed in pairs:
            plain_probes = _first_and_last(plain, rule)
            fixed_probes = _first_and_last(fixed, rule)
            plain_scores = [probe.score for probe in plain_probes]
            fixed_scores = [probe.score for probe in fixed_probes]
            if plain_scores != [1, 0] or fixed_scores != [1, 1]:
                continue
            return {
                "conversation": plain.conversation,
                "rule": rule,
                "system_prompt": plain.agent.system_prompt,
                "user": [turn.text for turn in plain.turns if turn.speaker == "user"],
                "rounds": [probe.round for probe in plain_probes],
                "questions": [probe.question for probe in plain_probes],
                "replies": {
                    plain.method: [probe.reply for probe in plain_probes],
                    fixed.method: [probe.reply for probe in fixed_probes],
                },
            }
    print("Nothing to quote: in no conversation does only the fix keep a rule to the end.")
    return None


def _first_and_last(record: Conversation, rule: str | None) -> tuple[Probe, Probe]:
    """The first and the last probe of a rule in a conversation."""
    probes = [probe for probe in record.probes if probe.rule == rule]
    return probes[0], probes[-1]


def processor_seconds() -> float:
    """CPU seconds of this process and its finished children, on all cores together."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def demo_command(target: str = "demo") -> list[str]:
    """The arguments of the `holdfast` command that a Makefile target runs."""
    makefile = (ROOT / "Makefile").read_text()
    (line,) = re.findall(rf"^{target}:.*\n(?:\t.*\n)*?\t.*/holdfast (.*)$", makefile, re.MULTILINE)
    return shlex.split(line)


if __name__ == "__main__":
    main()
