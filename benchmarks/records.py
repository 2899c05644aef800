"""Re-measures every record under benchmarks/results/: `make records`.

Each command writes its record into a separate folder, and the new records then replace the old
ones. An interrupted call continues with the records not yet measured on this commit. The tables in
the documents are rewritten. If all are measured, benchmarks/results/changed_records.md compares
each with that of the last commit, number by number. A number has changed if its interval and the
old one do not overlap: the 95% interval of an estimate, the range over repetitions of a ratio.

    python benchmarks/records.py                        # all of them: hours, for a machine left
                                                        alone
    python benchmarks/records.py default_model li2024   # some
    python benchmarks/records.py --list                 # what there is, and how long each took
    python benchmarks/records.py --compare v0.1.0       # compares with a commit, measures nothing
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from stamp import commit, machine

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = RESULTS / "changed_records.md"
MARKERS = ("<!-- changes -->", "<!-- /changes -->")


@dataclass(frozen=True)
class Record:
    """One record, and how it is measured.

    Args:
        name: of its file in benchmarks/results/, without ".json".
        command: for Python, from the repository's root; {out} is the file, {runs} a folder for its
            runs, {corpus} the Self-dialogue Corpus (training/README.md), {facts} CounterFact,
            {rules} the rules files of `suite_init_labels.json`, {llama_server} llama.cpp's binary.
        default_model: whether its numbers are the default model's, so that new weights invalidate
            it.
        minutes: about how long it takes on 2 cores.
        beside: files and folders that it writes beside the record.
        python: the interpreter that runs it, relative to the root; None: the current one.
        gpu: whether it needs a GPU.
    """

    name: str
    command: str
    default_model: bool
    minutes: int
    beside: tuple[str, ...] = ()
    python: str | None = None
    gpu: bool = False


RECORDS = (
    Record("demo", "benchmarks/demo.py --runs {runs} --out {out}", True, 3, ("demo",)),
    Record(
        "demo_real",
        "benchmarks/demo.py --target demo-real --runs {runs} --out {out}",
        False,
        7,
        ("demo_real",),
    ),
    Record("bot", "benchmarks/bot.py --runs {runs} --out {out}", True, 4),
    Record("default_model", "benchmarks/default_model.py --runs {runs} --out {out}", True, 20),
    Record(
        "screen_smollm2",
        "benchmarks/screen.py --model smollm2 --runs {runs} --out {out}",
        False,
        10,
    ),
    Record(
        "smollm2_drift",
        "benchmarks/on_smollm2.py drift --runs {runs} --out {out}",
        False,
        110,
    ),
    Record(
        "smollm2_explored",
        "benchmarks/on_smollm2.py explore --facts {facts} --runs {runs} --out {out}",
        False,
        120,
    ),
    Record(
        "smollm2_confirmed",
        "benchmarks/on_smollm2.py confirm --facts {facts} --runs {runs} --out {out}",
        False,
        150,
    ),
    Record("window", "benchmarks/window.py --runs {runs} --out {out}", False, 25),
    Record("front_door", "benchmarks/front_door.py --out {out}", False, 8, ("front_door",)),
    Record("logs_smollm2", "benchmarks/logs_smollm2.py --runs {runs} --out {out}", False, 40),
    Record("truncation_smollm2", "benchmarks/truncation.py --runs {runs} --out {out}", False, 10),
    Record("decodable", "benchmarks/decodable.py --runs {runs} --out {out}", True, 45),
    Record(
        "loss/qwen-0.5b",
        "benchmarks/loss.py --model qwen-0.5b --seeds 0 1 --runs {runs} --out {out}",
        False,
        80,
    ),
    Record(
        "loss/qwen-1.5b",
        "benchmarks/loss.py --model qwen-1.5b --dtype bfloat16 --seeds 0 1 2 --conversations 24"
        " --rounds 8 --batch 8 --runs {runs} --out {out}",
        False,
        100,
    ),
    Record(
        "precedent/qwen-0.5b",
        "benchmarks/precedent.py --model qwen-0.5b --dtype float32 --runs {runs} --out {out}",
        False,
        75,
    ),
    Record(
        "precedent/qwen-1.5b",
        "benchmarks/precedent.py --model qwen-1.5b --dtype float32 --every 10 --runs {runs}"
        " --out {out}",
        False,
        30,
    ),
    Record(
        "precedent_methods/qwen-0.5b",
        "benchmarks/precedent.py --model qwen-0.5b --dtype float32 --every 6"
        " --method repetition:probability=1 boost:factor=4 --runs {runs} --out {out}",
        False,
        60,
    ),
    Record(
        "edit_costs/qwen-0.5b",
        "benchmarks/edit_costs.py --model qwen-0.5b --runs {runs} --out {out}",
        False,
        35,
    ),
    Record(
        "message_edits/smollm2",
        "benchmarks/message_edits.py --model smollm2 --fewer --seeds 2 --runs {runs} --out {out}",
        False,
        45,
    ),
    Record(
        "message_edits/qwen-0.5b",
        "benchmarks/message_edits.py --model qwen-0.5b --seeds 2 3 --runs {runs} --out {out}",
        False,
        45,
    ),
    Record(
        "message_edits/qwen-1.5b",
        "benchmarks/message_edits.py --model qwen-1.5b --fewer --seeds 2 --runs {runs} --out {out}",
        False,
        45,
    ),
    Record("drift_loop", "benchmarks/drift_loop.py --out {out}", True, 6),
    Record(
        "drift_loop_qwen",
        "benchmarks/drift_loop.py --model qwen-0.5b --suite everyday --temperature 0.7"
        " --max-new-tokens 60 --peers lock_step --repetitions 1 --out {out}",
        False,
        28,
    ),
    Record(
        "drift_loop_qwen_few",
        "benchmarks/drift_loop.py --model qwen-0.5b --suite everyday --temperature 0.7"
        " --max-new-tokens 60 --peers lock_step --conversations 16 --rounds 4"
        " --repetitions 2 --out {out}",
        False,
        12,
    ),
    Record(
        "drift_loop_qwen15",
        "benchmarks/drift_loop.py --model qwen-1.5b --suite everyday --temperature 0.7"
        " --max-new-tokens 60 --peers lock_step --conversations 8 --rounds 2"
        " --repetitions 2 --out {out}",
        False,
        8,
    ),
    Record(
        "drift_loop_smollm2",
        "benchmarks/drift_loop.py --model smollm2 --suite everyday --temperature 0.7"
        " --max-new-tokens 60 --peers lock_step --repetitions 2 --out {out}",
        False,
        80,
    ),
    Record(
        "drift_loop_few",
        "benchmarks/drift_loop.py --model smollm2 --suite everyday --temperature 0.7"
        " --max-new-tokens 60 --peers lock_step --conversations 8 --rounds 2"
        " --repetitions 2 --out {out}",
        False,
        3,
    ),
    Record(
        "drift_loop_busy",
        "benchmarks/drift_loop.py --model smollm2 --suite everyday --temperature 0.7"
        " --max-new-tokens 60 --peers lock_step --conversations 8 --rounds 2 --busy 2"
        " --repetitions 2 --out {out}",
        False,
        10,
    ),
    Record(
        "drift_loop_gemma",
        "benchmarks/drift_loop.py --model gemma-3-270m --chat-template plain --suite everyday"
        " --temperature 0.7 --max-new-tokens 60 --peers lock_step --conversations 8 --rounds 4"
        " --repetitions 2 --out {out}",
        False,
        12,
    ),
    Record("faster_layers", "benchmarks/faster_layers.py --repetitions 9 --out {out}", False, 5),
    Record("decode_step", "benchmarks/decode_step.py --out {out}", False, 15),
    Record(
        "decode_step_qwen",
        "benchmarks/decode_step.py --model qwen-0.5b --rows 1 16 --repetitions 3 --only time"
        " --out {out}",
        False,
        6,
    ),
    Record(
        "run_memory_qwen",
        "benchmarks/decode_step.py --model qwen-0.5b --only memory --out {out}",
        False,
        7,
    ),
    Record("loading", "benchmarks/loading.py --repetitions 3 --out {out}", False, 10),
    Record("checking", "benchmarks/checking.py --out {out}", False, 2),
    Record("verdicts", "benchmarks/verdicts.py --out {out}", False, 6),
    Record("other_prompts", "benchmarks/other_prompts.py --out {out}", False, 6),
    Record("growth", "benchmarks/growth.py --out {out}", True, 12),
    Record(
        "growth_qwen",
        "benchmarks/growth.py --model qwen-0.5b --repetitions 1 --out {out}",
        False,
        14,
    ),
    Record(
        "vllm_loop",
        "plugins/holdfast-vllm/benchmarks/drift_loop.py --repetitions 1 --out {out}",
        False,
        8,
        python=".venv-vllm/bin/python",
    ),
    Record(
        "vllm_steering",
        "plugins/holdfast-vllm/benchmarks/speed.py --repetitions 1 --out {out}",
        False,
        30,
        python=".venv-vllm/bin/python",
    ),
    Record(
        "llama_steering",
        "plugins/holdfast-llama/benchmarks/speed.py --folder {runs} --out {out}",
        False,
        14,
        python=".venv-llama/bin/python",
    ),
    Record(
        "llama_steering_qwen",
        "plugins/holdfast-llama/benchmarks/speed.py --model qwen-0.5b --rows 1 --rows 16"
        " --threads 2 --out {out}",
        False,
        4,
        python=".venv-llama/bin/python",
    ),
    Record(
        "llama_server",
        "plugins/holdfast-llama/benchmarks/engines.py --without-plugin --repetitions 3"
        " --server {llama_server} --out {out}",
        False,
        30,
        python=".venv-llama/bin/python",
    ),
    Record(
        "llama_chat",
        "plugins/holdfast-llama/benchmarks/engines.py --conversations 1 --rounds 1"
        " --repetitions 5 --server {llama_server} --out {out}",
        False,
        6,
        python=".venv-llama/bin/python",
    ),
    Record("cluster", "benchmarks/cluster.py --out {out}", False, 1),
    Record("modern", "benchmarks/modern.py --out {out}", False, 6),
    Record("serve", "benchmarks/serve.py --out {out}", True, 4),
    Record(
        "serve_qwen",
        "benchmarks/serve.py --model qwen-0.5b --dtype bfloat16 --requests 0 --per-phase 32"
        " --long --repetitions 3 --engines torch llama --peers transformers_continuous"
        " --llama-server {llama_server} --out {out}",
        False,
        25,
        python=".venv-llama/bin/python",
    ),
    Record("proxy", "benchmarks/proxy.py --out {out}", False, 3),
    Record("remind", "benchmarks/remind.py --out {out}", False, 1),
    Record("causes", "benchmarks/causes.py --out {out}", False, 1),
    Record("large_logs", "benchmarks/large_logs.py --size 200 --out {out}", False, 5),
    Record(
        "ray_qwen",
        "benchmarks/on_ray.py --model qwen-0.5b --conversations 24 --rounds 1 --nodes 1 2 4"
        " --repetitions 2 --out {out}",
        False,
        12,
        python=".venv-integrations/bin/python",
    ),
    Record("scaling", "benchmarks/scaling.py --out {out}", True, 1),
    Record("batching", "benchmarks/batching.py --out {out}", True, 1),
    Record(
        "batching_smollm2",
        "benchmarks/batching.py --model smollm2 --dtypes bfloat16 float32 --suite everyday"
        " --conversations 24 --rounds 3 --max-new-tokens 60 --out {out}",
        False,
        5,
    ),
    Record(
        "li2024/findings",
        "benchmarks/reproduction.py li2024 --runs {runs} --out {out}",
        True,
        8,
        ("li2024/figures",),
    ),
    Record(
        "li2024_smollm2/findings",
        "benchmarks/reproduction.py li2024 --model smollm2 --dtype bfloat16 --scale brief --suite"
        " examples/small-model.yaml --runs {runs} --out {out}",
        False,
        25,
        ("li2024_smollm2/figures",),
    ),
    Record(
        "zhang2024/findings",
        "benchmarks/reproduction.py zhang2024 --runs {runs} --out {out}",
        True,
        36,
        ("zhang2024/figures",),
    ),
    Record(
        "zhang2024_smollm2/findings",
        "benchmarks/reproduction.py zhang2024 --model smollm2 --dtype bfloat16 --scale brief"
        " --task counterfact --facts {facts} --others --runs {runs} --out {out}",
        False,
        25,
        ("zhang2024_smollm2/figures",),
    ),
    Record(
        "zhang2024_gemma/findings",
        "benchmarks/reproduction.py zhang2024 --model gemma-3-270m --chat-template plain --dtype"
        " bfloat16 --scale brief --task counterfact --facts {facts} --others --runs {runs} --out"
        " {out}",
        False,
        20,
        ("zhang2024_gemma/figures",),
    ),
    Record(
        "chosen_heads",
        "benchmarks/chosen_heads.py --draws 5 --runs {runs} --out {out}",
        True,
        60,
        ("chosen_heads",),
    ),
    Record(
        "equal_cost_explored",
        "benchmarks/equal_cost.py explore --runs {runs} --out {out}",
        True,
        60,
    ),
    Record(
        "equal_cost",
        "benchmarks/equal_cost.py confirm --runs {runs} --out {out}",
        True,
        45,
    ),
    Record(
        "equal_cost_explored_many",
        "benchmarks/equal_cost.py explore-many --runs {runs} --out {out}",
        True,
        40,
    ),
    Record(
        "equal_cost_many",
        "benchmarks/equal_cost.py confirm-many --runs {runs} --out {out}",
        True,
        45,
    ),
    Record(
        "ablation",
        "benchmarks/ablation.py --self-dialogue {corpus} --runs {runs} --out {out}",
        False,
        30,
    ),
    Record("attention", "benchmarks/attention.py --out {out}", False, 30),
    Record(
        "gpu/attention_8b",
        "benchmarks/attention.py --shape 8b --repetitions 8 --dtypes bfloat16 --out {out}",
        False,
        1,
        gpu=True,
    ),
    Record(
        "gpu/decode_step",
        "benchmarks/decode_step.py --repetitions 2 --out {out}",
        False,
        1,
        gpu=True,
    ),
    Record("profiling", "benchmarks/profiling.py --out {out}", False, 4),
    Record("census", "benchmarks/census.py --out {out}", False, 2),
    Record("cold_start", "benchmarks/cold_start.py --out {out}", True, 4),
    Record(
        "cold_start_smollm2",
        "benchmarks/cold_start.py --model smollm2 --prompts 5 --out {out}",
        False,
        15,
    ),
    Record(
        "suite_init",
        "benchmarks/suite_init.py {rules} --out {out}",
        default_model=False,
        minutes=1,
    ),
    Record(
        "ifeval",
        "benchmarks/ifeval.py --out {out}",
        True,
        4,
        python=".venv-integrations/bin/python",
    ),
)


@dataclass(frozen=True)
class Number:
    """A number of a record, with its interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} [{self.low:.3f}, {self.high:.3f}]"


def numbers(value: object, path: str = "") -> Iterator[tuple[str, Number]]:
    """The numbers of a record that have an interval or repetitions, by their path in it."""
    if isinstance(value, dict):
        if {"mean", "low", "high"} <= value.keys():
            if None not in (value["mean"], value["low"], value["high"]):
                yield path, Number(value["mean"], value["low"], value["high"])
            return
        for key, inner in value.items():
            if key != "measured_on":
                yield from numbers(inner, f"{path}/{key}")
    elif isinstance(value, list) and path.endswith("/repetitions"):
        yield from _ranges(value, path)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from numbers(inner, f"{path}/{_label(inner, index)}")


def _label(inner: object, index: int) -> str:
    """The label of a list element: its method, work or number, or else its index."""
    names = (
        [inner[key] for key in ("method", "work", "number") if key in inner]
        if isinstance(inner, dict)
        else []
    )
    return str(names[0]) if names else str(index)


def _ranges(repetitions: list[dict] | list[float], path: str) -> Iterator[tuple[str, Number]]:
    """Median and range of every ratio over the repetitions."""
    if not all(isinstance(row, dict) for row in repetitions):  # plain ratios
        values = sorted(repetitions)
        yield path, Number(values[len(values) // 2], values[0], values[-1])
        return
    rows = [dict(_leaves(row)) for row in repetitions]
    for key in rows[0]:
        values = sorted(row[key] for row in rows if key in row)
        if "ratio" in key:
            yield f"{path}{key}", Number(values[len(values) // 2], values[0], values[-1])


def _leaves(value: dict, path: str = "") -> Iterator[tuple[str, float]]:
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _leaves(inner, f"{path}/{key}")
        elif isinstance(inner, (int, float)):
            yield f"{path}/{key}", inner


def verdicts(record: dict | list) -> Iterator[tuple[str, str]]:
    """Verdicts on a paper's claims, by claim; in version 0.1.0, records are lists of figures."""
    for figure in record.get("figures", ()) if isinstance(record, dict) else record:
        for claim in figure["claims"]:
            what = f"{figure.get('kind', 'Figure')} {figure['number']}: {claim['text']}"
            yield what, claim["verdict"]


def changes(old: dict | list, new: dict | list) -> list[str]:
    """One line per number that left its interval, and per verdict that differs."""
    before = dict(numbers(old))
    after = dict(numbers(new))
    lines = [
        f"| {path} | {before[path]} | {number} |"
        for path, number in after.items()
        if path in before and (number.low > before[path].high or number.high < before[path].low)
    ]
    old_verdicts = dict(verdicts(old))
    lines += [
        f"| {claim} | {old_verdicts[claim]} | {verdict} |"
        for claim, verdict in verdicts(new)
        if old_verdicts.get(claim, verdict) != verdict
    ]
    return lines


def comparison_of(record: Record, old: dict | list, new: dict | list) -> list[str]:
    """A record's section of the page of changes."""
    before = dict(numbers(old))
    old_verdicts = dict(verdicts(old))
    compared = sum(path in before for path, _ in numbers(new))
    compared += sum(claim in old_verdicts for claim, _ in verdicts(new))
    lines = changes(old, new)
    count = f"{compared} numbers and verdicts compared, {len(lines)} changed."
    if not old:
        count = "There was no earlier record."
    elif not compared:
        count = "Its format has changed, so nothing can be compared."
    table = ["", "| what | before | now |", "| --- | --- | --- |", *lines] if lines else []
    return [f"### {record.name}", "", count, *table, ""]


def at(commit: str, record: Record) -> dict | list:
    """The record in a commit; {} if it has none."""
    path = (RESULTS / f"{record.name}.json").relative_to(ROOT)
    shown = subprocess.run(
        ["git", "show", f"{commit}:{path}"], cwd=ROOT, capture_output=True, text=True
    )
    return json.loads(shown.stdout) if shown.returncode == 0 else {}


def write_changes(commit: str) -> None:
    """Writes the comparison of all records with those of a commit to the page of changes."""
    lines = [f"Compared with commit `{commit}`.", ""]
    for record in RECORDS:
        if (file := RESULTS / f"{record.name}.json").exists():
            lines += comparison_of(record, at(commit, record), json.loads(file.read_text()))
    before, _, rest = PAGE.read_text().partition(MARKERS[0])
    _, _, after = rest.partition(MARKERS[1])
    PAGE.write_text("\n".join([f"{before}{MARKERS[0]}", *lines, f"{MARKERS[1]}{after}"]))


def measure(record: Record, runs: Path, data: dict[str, Path]) -> Path:
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


def replace(record: Record, runs: Path, data: dict[str, Path]) -> None:
    """Measures a record and replaces the old one with it."""
    measured = measure(record, runs, data)
    old = RESULTS / f"{record.name}.json"
    for name in record.beside:
        if (runs / "records" / name).exists():
            shutil.rmtree(RESULTS / name, ignore_errors=True)
            shutil.copytree(runs / "records" / name, RESULTS / name)
    old.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(measured, old)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="RECORD", help="default: all")
    parser.add_argument("--runs", type=Path, default=Path("runs/records"))
    parser.add_argument(
        "--self-dialogue", type=Path, help="self_dialogue.jsonl.gz, for the ablation"
    )
    parser.add_argument("--counterfact", type=Path, help="its core as CSV, for the real models")
    parser.add_argument(
        "--rules-files", type=Path, help="the folder of the files of suite_init_labels.json"
    )
    parser.add_argument("--llama-server", type=Path, help="llama.cpp's binary, a peer of ours")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--compare", metavar="COMMIT", help="with its records; measures nothing")
    arguments = parser.parse_args()
    by_name = {record.name: record for record in RECORDS}
    if arguments.list:
        for record in RECORDS:
            print(f"{record.name:20} about {record.minutes:3} minutes  python {record.command}")
        return
    if arguments.compare:
        write_changes(arguments.compare)
        return
    if unknown := [name for name in arguments.names if name not in by_name]:
        parser.error(f"no record {unknown[0]!r}; there are {', '.join(by_name)}")
    chosen = [by_name[name] for name in arguments.names or by_name]
    given = {
        "corpus": ("--self-dialogue", arguments.self_dialogue),
        "facts": ("--counterfact", arguments.counterfact),
        "rules": ("--rules-files", arguments.rules_files),
        "llama_server": ("--llama-server", arguments.llama_server),
    }
    data = {name: path for name, (_, path) in given.items()}
    for name, (option, path) in given.items():
        needing = [record for record in chosen if f"{{{name}}}" in record.command]
        if path is None and needing:
            what = f"{', '.join(record.name for record in needing)}: {option} FILE is needed"
            if arguments.names:
                parser.error(what)
            print(f"left out: {what}", flush=True)
            chosen = [record for record in chosen if record not in needing]
    on_gpu = [record for record in chosen if record.gpu]
    if on_gpu and "no GPU" in machine():
        what = f"{', '.join(record.name for record in on_gpu)}: a GPU is needed"
        if arguments.names:
            parser.error(what)
        print(f"left out: {what}", flush=True)
        chosen = [record for record in chosen if not record.gpu]
    runs = arguments.runs.resolve()
    left = [record for record in chosen if not is_measured(record, runs)]
    for number, record in enumerate(left):
        hours = sum(later.minutes for later in left[number:]) / 60
        print(
            f"{record.name}: {number + 1} of {len(left)}, about {record.minutes} minutes of"
            f" {hours:.1f} hours left",
            flush=True,
        )
        replace(record, runs, data)
    if not arguments.names:
        write_changes("HEAD")
    subprocess.run([sys.executable, "benchmarks/tables.py"], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
