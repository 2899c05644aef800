"""Re-measures the records under benchmarks/results/: `make records`.

Each command writes its record into a separate folder, and the new record then replaces the old one.
An interrupted call continues with the records not yet measured on this commit. At the end, the
tables in the documents are rewritten.

    python benchmarks/records.py                        # all: hours, for a machine left alone
    python benchmarks/records.py default_model li2024   # some
    python benchmarks/records.py --list                 # what there is, and how long each took
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from record_list import RECORDS, Record
from stamp import commit, machine

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
# the data that some commands need, by the name in braces, and the options that give them
DATA = {
    "corpus": "--self-dialogue",
    "facts": "--counterfact",
    "prompts": "--prompts",
    "rules": "--rules-files",
    "llama_server": "--llama-server",
}

Data = dict[str, Path | None]  # the data that the user gave, by name


def measure(record: Record, runs: Path, data: Data) -> Path:
    """Runs the record's command, resuming an earlier call's runs; returns the new record."""
    measured = runs / "records" / f"{record.name}.json"
    measured.parent.mkdir(parents=True, exist_ok=True)
    folder = runs / record.name.replace("/", "-")
    command = record.command.format(out=measured, runs=folder, **data)
    started = time.perf_counter()
    print(f"{record.name}: {command}", flush=True)
    subprocess.run([record.python or sys.executable, *command.split()], cwd=ROOT, check=True)
    print(f"{record.name}: {(time.perf_counter() - started) / 60:.0f} minutes", flush=True)
    done_at(measured).write_text(commit())
    return measured


def done_at(measured: Path) -> Path:
    """The file that marks a record as complete and names its commit; some benchmarks write their
    records incrementally.
    """
    return measured.with_suffix(".done")


def is_measured(record: Record, runs: Path) -> bool:
    """Whether an earlier, interrupted call has measured a record on this exact commit."""
    done = done_at(runs / "records" / f"{record.name}.json")
    return done.exists() and done.read_text() == commit()


def replace(record: Record, runs: Path, data: Data) -> None:
    """Measures a record and replaces the old one with it."""
    measured = measure(record, runs, data)
    old = RESULTS / f"{record.name}.json"
    for name in record.beside:
        if (runs / "records" / name).exists():
            shutil.rmtree(RESULTS / name, ignore_errors=True)
            shutil.copytree(runs / "records" / name, RESULTS / name)
    old.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(measured, old)


def unmet_need(record: Record, data: Data) -> str | None:
    """The first need of a record that is not met here; None if all are."""
    for name, option in DATA.items():
        if f"{{{name}}}" in record.command and data[name] is None:
            return f"{option} FILE is needed"
    if record.gpu and "no GPU" in machine():
        return "a GPU is needed"
    return None


def measure_all(records: Sequence[Record], runs: Path, data: Data) -> None:
    """Measures records one after another, and rewrites the tables."""
    for number, record in enumerate(records):
        hours = sum(later.minutes for later in records[number:]) / 60
        print(
            f"{record.name}: {number + 1} of {len(records)}, about {record.minutes} minutes of"
            f" {hours:.1f} hours left",
            flush=True,
        )
        replace(record, runs, data)
    subprocess.run([sys.executable, "benchmarks/tables.py"], cwd=ROOT, check=True)


def main() -> None:
    parser = make_parser()
    arguments = parser.parse_args()
    if arguments.list:
        for record in RECORDS:
            print(f"{record.name:20} about {record.minutes:3} minutes  python {record.command}")
        return
    by_name = {record.name: record for record in RECORDS}
    if unknown := [name for name in arguments.names if name not in by_name]:
        parser.error(f"no record {unknown[0]!r}; there are {', '.join(by_name)}")
    data = {name: getattr(arguments, name) for name in DATA}
    runs = arguments.runs.resolve()
    to_measure = []
    for record in (by_name[name] for name in arguments.names or by_name):
        need = unmet_need(record, data)
        if need is not None and arguments.names:
            parser.error(f"{record.name}: {need}")
        if need is not None:
            print(f"left out: {record.name}: {need}", flush=True)
        elif not is_measured(record, runs):
            to_measure.append(record)
    measure_all(to_measure, runs, data)


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="RECORD", help="default: all")
    parser.add_argument("--runs", type=Path, default=Path("runs/records"))
    parser.add_argument(
        "--self-dialogue",
        type=Path,
        dest="corpus",
        metavar="FILE",
        help="self_dialogue.jsonl.gz, for the ablation",
    )
    parser.add_argument(
        "--counterfact",
        type=Path,
        dest="facts",
        metavar="FILE",
        help="its core as CSV, for the real models",
    )
    parser.add_argument(
        "--prompts", type=Path, help="hundred_system_prompts.py of Li et al. 2024 (docs/suites.md)"
    )
    parser.add_argument(
        "--rules-files",
        type=Path,
        dest="rules",
        metavar="FOLDER",
        help="the folder of the files of suite_init_labels.json",
    )
    parser.add_argument("--llama-server", type=Path, help="llama.cpp's binary, a peer of ours")
    parser.add_argument("--list", action="store_true", help="print the records and their commands")
    return parser


if __name__ == "__main__":
    main()
