"""The facts of CounterFact that a model knows, for `holdfast reproduce zhang2024 --data`.

A fact is kept if the model, asked the bare question, finds the true target likelier than the false
one: only there is something that a changed fact has to outweigh.

    python benchmarks/known_facts.py --model smollm2 --data counterfact_core.csv.gz --out known.csv
"""

from __future__ import annotations

import argparse
import csv
import json
from dataclasses import dataclass
from pathlib import Path

from stamp import measured_on

import holdfast
from holdfast import tasks
from holdfast.tasks.data import ChangedFact
from holdfast.tasks.sample import FACTS, SPLITS

COLUMNS = ("label", "relation", "subject", "target", "true_target")


@dataclass(frozen=True)
class Known:
    """The facts that a model knows, and how many it was asked about."""

    facts: list[ChangedFact]
    asked: int


def known_facts(model, facts: list[ChangedFact]) -> Known:
    """The facts whose true target the model finds likelier than the false one."""
    settings = tasks.Settings(tasks=("counterfact",))
    (zero_shot,) = tasks.variants_of(settings)
    sampling = holdfast.Sampling(temperature=0.0, top_p=1.0)
    requests = [
        tasks.request_of(
            [{"role": "user", "content": fact.question}], (), zero_shot.methods, sampling, 0
        )
        for fact in facts
    ]
    scored = model.session().score(requests, [(fact.old, fact.new) for fact in facts])
    kept = [
        fact
        for fact, score in zip(facts, scored, strict=True)
        if score.log_probabilities[0] > score.log_probabilities[1]
    ]
    return Known(kept, len(facts))


def draw_facts(data: str, count: int) -> list[ChangedFact]:
    """The first facts of each split in the order of seed 0, in the proportions of the splits."""
    items = tasks.load_data((data,), tasks.Settings(tasks=("counterfact",))).items[FACTS]
    every = sum(len(items[split]) for split in SPLITS)
    return [
        fact
        for split in SPLITS
        for fact in items[split][: round(count * len(items[split]) / every)]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--chat-template", help="plain for a base model")
    parser.add_argument("--data", required=True, help="CounterFact, as of holdfast tasks")
    parser.add_argument("--count", type=int, default=600, help="facts to ask (default: 600)")
    parser.add_argument("--out", type=Path, required=True, help="a CSV file; about it, .json")
    arguments = parser.parse_args()
    template = arguments.chat_template
    model = holdfast.load(arguments.model, dtype=arguments.dtype, chat_template=template)
    known = known_facts(model, draw_facts(arguments.data, arguments.count))
    with arguments.out.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(COLUMNS)
        rows.writerows((0, f.relation, f.subject, f.new, f.old) for f in known.facts)
    about = {"asked": known.asked, "known": len(known.facts), "measured_on": measured_on(model)}
    arguments.out.with_suffix(".json").write_text(json.dumps(about, indent=1) + "\n")
    print(f"{len(known.facts)} of {known.asked} facts are known.")


if __name__ == "__main__":
    main()
