"""Compares the speed of head profiling with one head at a time, on a random Llama of 8 layers x 8
heads.

Both profile 64 heads on 64 samples, and run in this process, in turn. "One head at a time" is
`model.score` or `model.generate` on one sample with one head, for a random subset of heads, scaled
up to all. The ratio is of wall time; the ratio of processor time is also given, which other work on
the machine disturbs less.

    python benchmarks/profiling.py --out benchmarks/results/profiling.json
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
import transformers
from stamp import measured_on, write_json

import holdfast
from holdfast.attention import install
from holdfast.generation.sampling import Sampling
from holdfast.methods import HeadSet, Pasta
from holdfast.models.fingerprint import Fingerprint
from holdfast.models.local import LocalModel
from holdfast.models.model_properties import reuses_cache
from holdfast.papers.zhang2024.profiling import (
    ContinuationSample,
    ProfilingPlan,
    ReplySample,
    profile,
)

LAYERS = 8
HEADS = 8
PLAN = ProfilingPlan(Pasta(0.01), max_new_tokens=24)
WORDS = (
    "the garden is green and a river runs slowly past some old town where people talk about music"
    " or bread while it rains".split()
)
JOBS = ("nurse", "teacher", "architect", "software engineer", "dentist", "poet")
TARGETS = {
    "scoring, emphasis at the end": 10,
    "scoring, emphasis in the middle": 5,
    "generating": 5,
}


def build(width: int) -> LocalModel:
    """A random Llama with the default model's tokenizer; it never ends a reply by itself."""
    tokenizer = holdfast.load("default").tokenizer
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=width,
        intermediate_size=8 * width // 3,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        vocab_size=len(tokenizer),
        max_position_embeddings=1024,
    )
    hf_model = transformers.LlamaForCausalLM(config).eval()
    steerable = install(hf_model)
    with torch.no_grad():
        for parameter in hf_model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(4)
    return LocalModel(
        "random Llama",
        Fingerprint(hf_model, tokenizer),
        hf_model,
        tokenizer,
        frozenset(),
        reuses_cache(hf_model),
        steerable,
    )


class EmphasisedChat(NamedTuple):
    """A chat with an emphasised instruction."""

    messages: tuple[dict[str, str], ...]
    emphasis: tuple[str, ...]


def emphasised_chat(model: LocalModel, number: int, share: float) -> EmphasisedChat:
    """A chat of 110 to 160 tokens, with the instruction after this share of the text."""
    rng = random.Random(number)
    num_tokens = rng.randint(110, 160)
    text = []
    while len(model.tokenizer(" ".join(text))["input_ids"]) < num_tokens - 20:
        text.append(rng.choice(WORDS))
    position = round(share * len(text))
    text[position:position] = ["Name", "her", "job", "in", "one", "word."]
    message = {"role": "user", "content": " ".join(text)}
    return EmphasisedChat((message,), ("Name her job in one word.",))


class Duration(NamedTuple):
    """How long some work took, in seconds."""

    wall: float
    processor: float


def time_of(work: Callable[[], None]) -> Duration:
    """Does some work, and times it."""
    wall = time.perf_counter()
    processor = time.process_time()
    work()
    return Duration(time.perf_counter() - wall, time.process_time() - processor)


def measure(ours: Callable[[], None], plain: Callable[[], None], scale: float) -> dict[str, float]:
    """Times profiling and one head at a time, whose time is multiplied by `scale`."""
    profiled = time_of(ours)
    one_by_one = time_of(plain)
    return {
        "seconds": profiled.wall,
        "one_at_a_time_seconds": one_by_one.wall * scale,
        "ratio": one_by_one.wall * scale / profiled.wall,
        "ratio_of_processor_time": one_by_one.processor * scale / profiled.processor,
    }


def profile_all(model: LocalModel, samples: Sequence[ContinuationSample | ReplySample]) -> None:
    """Profiles all heads on the samples."""
    with tempfile.TemporaryDirectory() as folder:
        profile(model, samples, folder, PLAN)


def steer_one_by_one(
    model: LocalModel,
    samples: Sequence[ContinuationSample | ReplySample],
    heads: Sequence[tuple[int, int]],
) -> None:
    """Scores or generates every sample with each of the heads steered alone."""
    for head in heads:
        methods = (replace(PLAN.method, heads=HeadSet([head])),)
        for sample in samples:
            if isinstance(sample, ContinuationSample):
                model.score(
                    sample.messages, sample.continuations, methods, emphasis=sample.emphasis
                )
            else:
                sampling = Sampling(0, 1, PLAN.max_new_tokens)
                model.generate(sample.messages, methods, sampling, emphasis=sample.emphasis)


def build_tasks(
    model: LocalModel, num_compared: int, num_generated: int
) -> dict[str, list[ContinuationSample | ReplySample]]:
    """The samples of each task: two that compare continuations, and one that generates replies."""

    def compare(share: float) -> list[ContinuationSample | ReplySample]:
        return [
            ContinuationSample(*emphasised_chat(model, number, share), JOBS, number % len(JOBS))
            for number in range(num_compared)
        ]

    return {
        "scoring, emphasis at the end": compare(1.0),
        "scoring, emphasis in the middle": compare(0.5),
        "generating": [
            ReplySample(*emphasised_chat(model, number, 1.0), lambda text: float(len(text)))
            for number in range(num_generated)
        ],
    }


def measure_all(
    model: LocalModel,
    tasks: dict[str, list[ContinuationSample | ReplySample]],
    repetitions: int,
    num_heads: int,
) -> dict[str, list[dict[str, float]]]:
    """Measures each task in each repetition; one head at a time, with `num_heads` drawn heads."""
    all_heads = [(layer, head) for layer in range(LAYERS) for head in range(HEADS)]
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in tasks}
    for repetition in range(repetitions):
        heads = random.Random(repetition).sample(all_heads, num_heads)
        scale = (len(all_heads) + 1) / len(heads)  # the model without steering is scored too
        for name, samples in tasks.items():
            row = measure(
                partial(profile_all, model, samples),
                partial(steer_one_by_one, model, samples, heads),
                scale,
            )
            rows[name].append(row)
            print(name, {key: round(value, 2) for key, value in row.items()}, flush=True)
    return rows


def medians_of(rows: dict[str, list[dict[str, float]]]) -> dict[str, dict[str, float]]:
    """The median ratios of each task over its repetitions."""
    return {
        name: {
            key: statistics.median(row[key] for row in results)
            for key in ("ratio", "ratio_of_processor_time")
        }
        for name, results in rows.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=64)
    parser.add_argument("--questions", type=int, default=16, help="samples of the generating task")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument(
        "--heads", type=int, default=2, help="drawn for one head at a time, per repetition"
    )
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    model = build(arguments.width)
    tasks = build_tasks(model, arguments.samples, arguments.questions)
    rows = measure_all(model, tasks, arguments.repetitions, arguments.heads)
    medians = medians_of(rows)
    for name, ratios in medians.items():
        print(
            f"{name}: {ratios['ratio']:.1f} times as fast as one head at a time (processor time"
            f" {ratios['ratio_of_processor_time']:.1f}; target {TARGETS[name]})"
        )
    if arguments.out:
        record = {
            "benchmark": "profiling",
            "shape": f"Llama, {LAYERS} layers, {HEADS} heads, width {arguments.width}",
            "samples": arguments.samples,
            "questions": arguments.questions,
            "threads": arguments.threads,
            "measured_on": measured_on(),
            "targets": TARGETS,
            "medians": medians,
            "repetitions": rows,
        }
        write_json(record, arguments.out)


if __name__ == "__main__":
    main()
