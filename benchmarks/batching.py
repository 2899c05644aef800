"""How often the batch size changes a reply: the same conversations in batches of 48 and of 5.

Each reply's random draws are the same in both; a token can differ only if the rounding of a
differently shaped matrix product decides between two tokens. Later turns of a conversation depend
on the first difference, so replies are compared up to and including it.

    python benchmarks/batching.py --out benchmarks/results/batching.json
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
from pathlib import Path

import torch
from stamp import measured_on

import holdfast
from holdfast import drift


def replies(record: dict) -> list[str]:
    """All generated texts, in the order in which they can depend on earlier ones."""
    said: dict[int, list[str]] = {}
    for turn in record["turns"][1:]:
        said.setdefault(turn["round"], []).append(turn["text"])
    for probe in record["probes"]:
        said[probe["round"]].append(probe["reply"])
    return [text for number in sorted(said) for text in said[number]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--conversations", type=int, default=48)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    model, suite = holdfast.load(arguments.model), drift.load_suite("starter")
    settings = drift.Settings(conversations=arguments.conversations, seed=3)
    runs = []
    for batch in (48, 5):
        with tempfile.TemporaryDirectory() as folder:
            records = drift.run(
                model, suite, folder, dataclasses.replace(settings, batch=batch)
            ).records
            runs.append(sorted(records, key=lambda record: record["conversation"]))
    compared, first_differences = 0, 0
    for one, other in zip(*runs, strict=True):
        for mine, theirs in zip(replies(one), replies(other), strict=True):
            compared += 1
            if mine != theirs:
                first_differences += 1
                break
    result = {
        "benchmark": "batching",
        "model": arguments.model,
        "measured_on": measured_on(model),
        "conversations": arguments.conversations,
        "batches": [48, 5],
        "replies_compared": compared,
        "conversations_that_differ": first_differences,
    }
    print(result)
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
