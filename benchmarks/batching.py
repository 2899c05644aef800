"""Measures how often the batch size changes a reply: the same conversations in batches of 48 and 5.

Each reply's random draws are the same in both; a token can differ only if the rounding of a
differently shaped matrix product decides between two tokens. Later turns of a conversation depend
on the first difference, so replies are compared up to and including it.

    python benchmarks/batching.py --out FILE.json
    python benchmarks/batching.py --model qwen-0.5b --dtypes bfloat16 float32 ... --out FILE.json
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
from pathlib import Path

import torch
from stamp import measured_on, write_json

import holdfast
from holdfast import drift
from holdfast.models.local import LocalModel
from holdfast.records import Conversation

BATCHES = (48, 5)


def replies(record: Conversation) -> list[str]:
    """All generated texts, in the order in which they can depend on earlier ones."""
    by_round: dict[int, list[str]] = {}
    for turn in record.turns[1:]:
        by_round.setdefault(turn.round, []).append(turn.text)
    for probe in record.probes:
        by_round[probe.round].append(probe.reply)
    return [text for number in sorted(by_round) for text in by_round[number]]


def compare(model: LocalModel, arguments: argparse.Namespace) -> dict:
    """Runs the conversations in both batch sizes, and compares their replies."""
    settings = drift.Settings(
        conversations=arguments.conversations,
        rounds=arguments.rounds,
        seed=3,
        sampling=holdfast.Sampling(max_new_tokens=arguments.max_new_tokens),
    )
    runs: list[list[Conversation]] = []
    for batch in BATCHES:
        with tempfile.TemporaryDirectory() as folder:
            run = drift.run(
                model, arguments.suite, folder, dataclasses.replace(settings, batch=batch)
            )
            runs.append(sorted(run.records, key=lambda record: record.conversation))
    num_compared = 0
    num_different = 0
    for records in zip(*runs, strict=True):
        for large_batch, small_batch in zip(*map(replies, records), strict=True):
            num_compared += 1
            if large_batch != small_batch:
                num_different += 1
                break
    return {
        "dtype": str(model.hf_model.dtype).removeprefix("torch."),
        "replies_compared": num_compared,
        "conversations_that_differ": num_different,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="default")
    parser.add_argument("--dtypes", nargs="+", default=["float32"])
    parser.add_argument("--suite", default="starter")
    parser.add_argument("--conversations", type=int, default=48)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--max-new-tokens", type=int, default=200)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    runs = []
    for dtype in arguments.dtypes:
        model = holdfast.load(arguments.model, dtype=dtype)
        runs.append(compare(model, arguments))
        print(runs[-1], flush=True)
    result = {
        "benchmark": "batching",
        "model": arguments.model,
        "measured_on": measured_on(model),
        "conversations": arguments.conversations,
        "batches": BATCHES,
        "runs": runs,
    }
    if arguments.out:
        write_json(result, arguments.out)


if __name__ == "__main__":
    main()
