"""Records a paper's figures on a model: what `holdfast reproduce PAPER` finds.

    python benchmarks/reproduction.py li2024 --runs runs/li2024
        --out benchmarks/results/li2024/findings.json
    python benchmarks/reproduction.py zhang2024 --model smollm2 --dtype bfloat16 --scale brief
        --task counterfact --facts counterfact_core.csv.gz --runs runs/zhang2024_smollm2
        --out benchmarks/results/zhang2024_smollm2/findings.json

With --facts, only facts of CounterFact that the model knows are used: asked the bare question, it
finds the true target more likely than the false one. Only then does a changed fact have something
to outweigh. The run stays in --runs and can be resumed; findings and the figures they name are
copied beside --out.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
from pathlib import Path

import numpy as np
from stamp import measured_on, write_json

import holdfast
from holdfast import tasks
from holdfast.analysis.task_results import read_results
from holdfast.cli import main as command_line
from holdfast.papers.zhang2024.data import FACTS, SPLITS, ChangedFact
from holdfast.records import read_run

NUM_FACTS = 600  # facts that are asked, from all splits
SAMPLES_PER_OTHER_TASK = 32
CSV_COLUMNS = ("label", "relation", "subject", "target", "true_target")
FALSE_TARGET = 0  # the label of a row whose target is not the true one


def draw_facts(data: str) -> list[ChangedFact]:
    """The first facts of each split in the order of seed 0, in the proportions of the splits."""
    items = tasks.load_data((data,), tasks.Settings(tasks=("counterfact",))).items[FACTS]
    total = sum(len(items[split]) for split in SPLITS)
    counts = {split: round(NUM_FACTS * len(items[split]) / total) for split in SPLITS}
    return [fact for split in SPLITS for fact in items[split][: counts[split]]]


def write_known_facts(model, data: str, out: Path) -> None:
    """Writes the facts that the model knows as a CSV file of CounterFact's core, and how many they
    are to a JSON file beside it.
    """
    facts = draw_facts(data)
    sampling = holdfast.Sampling(temperature=0.0, top_p=1.0)
    chats = [[{"role": "user", "content": fact.question}] for fact in facts]
    requests = [tasks.request_of(chat, (), (), sampling, 0) for chat in chats]
    scored = model.session().score_batch(requests, [(fact.old, fact.new) for fact in facts])
    known = []
    for fact, scores in zip(facts, scored, strict=True):
        old_score, new_score = scores.log_probabilities
        if old_score > new_score:
            known.append(fact)
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(CSV_COLUMNS)
        rows.writerows(
            (FALSE_TARGET, fact.relation, fact.subject, fact.new, fact.old) for fact in known
        )
    counts = {"asked": len(facts), "known": len(known)}
    out.with_suffix(".json").write_text(json.dumps(counts) + "\n")


def profile_costs(run: Path) -> dict[str, dict]:
    """The size and cost of each task's head profile: heads, samples, and seconds."""
    costs = {}
    for folder in sorted((run / "profile").glob("*")):
        records = read_run(folder).records
        costs[folder.name] = {
            "heads": len(records[0].scores) - 1,  # one score is without steering
            "samples": len(records),
            "seconds": round(sum(record.seconds for record in records)),
        }
    return costs


def scores_on_other_tasks(model, profiled: list[str], run: Path) -> dict[str, dict]:
    """The scores of heads that were profiled on one task, on the tasks whose instruction is
    emphasised: each metric's mean, by task and row.
    """
    names = [task.name for task in tasks.CATALOGUE.values() if not task.chooses]
    others = tuple(name for name in names if name not in profiled)
    settings = tasks.Settings(others, SAMPLES_PER_OTHER_TASK)
    variants = read_run(run / "test" / profiled[0]).manifest.identity.to_json()["variants"]
    steered = next(name for name in variants if name.startswith("pasta"))
    data = tasks.load_data([tasks.SYNTHETIC], settings)
    scores: dict[str, dict] = {}
    for result in read_results(tasks.run(model, data, run / "others", settings, [steered])):
        row = "zero-shot" if result.variant == "zero-shot" else f"PASTA, heads of {profiled[0]}"
        means = {name: float(np.mean(values)) for name, values in result.scores.items()}
        scores.setdefault(result.task, {})[row] = {"samples": SAMPLES_PER_OTHER_TASK, **means}
    return scores


def reproduce_command(arguments: argparse.Namespace, known: Path | None, run: Path) -> list[str]:
    """The command to run.

    Args:
        known: the file of the facts that the model knows; None without --facts.
        run: the folder of the run.
    """
    command = ["reproduce", arguments.paper, "--scale", arguments.scale]
    for name in ("model", "dtype", "chat_template", "suite"):
        if (value := getattr(arguments, name)) not in (None, "default"):
            command += [f"--{name.replace('_', '-')}", value]
    for task in arguments.task:
        command += ["--task", task]
    if known is not None:
        command += ["--data", str(known)]
        if set(arguments.task) != {"counterfact"}:
            command += ["--data", tasks.SYNTHETIC]  # for the biographies
    return [*command, "--out", str(run)]


def copy_images(figures: list[dict], run: Path, target: Path) -> None:
    """Copies the images of the figures from the run to another folder, and no others."""
    shutil.rmtree(target / "figures", ignore_errors=True)
    for figure in figures:
        for image in figure["images"]:
            (target / image).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(run / image, target / image)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paper", choices=("li2024", "zhang2024"))
    parser.add_argument("--runs", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--scale", default="small")
    parser.add_argument("--model", default="default")
    parser.add_argument("--dtype")
    parser.add_argument("--chat-template")
    parser.add_argument("--suite", help="li2024: prompts that the model follows")
    parser.add_argument("--task", action="append", default=[])
    parser.add_argument("--facts", help="CounterFact, as of holdfast tasks --data")
    parser.add_argument("--known", type=Path, help="default: known.csv in --runs")
    parser.add_argument("--others", action="store_true", help="ask the other writing tasks too")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    runs = arguments.runs or Path("runs") / f"record-{arguments.paper}"
    run = runs / arguments.paper
    out = arguments.out or Path("benchmarks/results") / arguments.paper / "findings.json"
    model = holdfast.load(
        arguments.model, dtype=arguments.dtype, chat_template=arguments.chat_template
    )
    stamp = measured_on(model)
    record = {"benchmark": arguments.paper, "model": model.name, "scale": arguments.scale}
    known = None
    if arguments.facts:
        known = arguments.known or runs / "known.csv"
        if not known.exists():
            write_known_facts(model, arguments.facts, known)
        counts = json.loads(known.with_suffix(".json").read_text())
        record["facts"] = {name: counts[name] for name in ("asked", "known")}
    if status := command_line(reproduce_command(arguments, known, run)):
        raise SystemExit(status)
    figures = json.loads((run / "findings.json").read_text())
    copy_images(figures, run, out.parent)
    record |= {"tasks": arguments.task, "profiles": profile_costs(run)}
    if arguments.others:
        record["others"] = scores_on_other_tasks(model, arguments.task, run)
    record |= {"measured_on": stamp, "figures": figures}
    write_json(record, out)


if __name__ == "__main__":
    main()
