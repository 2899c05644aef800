"""Estimates what many conversations cost on models of 8 and 70 billion parameters: tokens, savings
by reusing prefixes, and GPU hours.

Tokens are counted in conversations of the suite `core`: every system prompt, question and chat
template is real; replies are texts of a given length, since such a model does not run here. How
much the engine forwards in excess of the minimum is measured on conversations of the default model.

GPU hours are derived from the tokens by a roofline model (Williams et al. 2009), with the
assumptions in `MODELS`, `GPUS` and `BOUNDS`; docs/scaling.md gives their sources. No GPU was timed.

    python benchmarks/scaling.py --out benchmarks/results/scaling.json
    python benchmarks/scaling.py --from benchmarks/results/scaling.json --conversations 500
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from stamp import measured_on, write_json

import holdfast
from holdfast import drift
from holdfast.analysis.statistics import estimate
from holdfast.drift import Suite
from holdfast.drift.concurrent_dialogs import hold_dialog
from holdfast.drift.dialog import Dialog
from holdfast.drift.dialog_records import least_tokens
from holdfast.drift.pairing import draw_pairing
from holdfast.models.local import LocalModel

REPLY_TOKENS = (50, 150, 400)  # the last is the protocol's limit
COUNTED = 100  # conversations whose tokens are counted
PLAYED = 24  # conversations in which the engine's excess is measured


@dataclass(frozen=True)
class Model:
    """The shape of Llama 3.1 (Grattafiori et al. 2024, Table 3), in bfloat16."""

    name: str
    parameters: float
    layers: int
    width: int
    key_value_width: int
    gpus: int  # how many share the model

    @property
    def weight_bytes(self) -> float:
        return 2 * self.parameters

    @property
    def token_bytes(self) -> float:
        """Bytes of a token's keys and values."""
        return 2 * 2 * self.layers * self.key_value_width

    def flops(self, context: float) -> float:
        """Operations for a token after `context` others: two per weight (Kaplan et al. 2020,
        section 2.1), plus the scores and weighted values of attention.
        """
        return 2 * self.parameters + 4 * self.layers * self.width * context


@dataclass(frozen=True)
class Gpu:
    """Its data sheet's figures: dense bfloat16 operations and memory bytes, both per second."""

    name: str
    flops: float
    bandwidth: float
    memory: float


@dataclass(frozen=True)
class Bound:
    """The fraction of a data sheet's figures that is reached."""

    name: str
    flops: float
    bandwidth: float
    parallel: float  # of several GPUs, relative to their sum


MODELS = (
    Model("8 B", 8.03e9, 32, 4096, 1024, 1),
    Model("70 B", 70.6e9, 80, 8192, 1024, 4),
)
GPUS = (
    Gpu("A100 80 GB SXM", 312e12, 2.04e12, 80e9),
    Gpu("H100 80 GB SXM", 989e12, 3.35e12, 80e9),
    Gpu("H200 141 GB SXM", 989e12, 4.8e12, 141e9),
)
BOUNDS = (Bound("best", 0.6, 0.8, 0.9), Bound("worst", 0.3, 0.4, 0.7))
MEMORY_USED = 0.9  # of a GPU: vLLM's default


@dataclass(frozen=True)
class Tokens:
    """Tokens of one conversation, on average.

    Args:
        replies: how many there are.
        generated: tokens drawn.
        read: tokens of all prompts, forwarded if nothing is cached.
        least: tokens to forward if every token of every view is forwarded once.
        context: tokens before a drawn token, on average.
    """

    replies: float
    generated: float
    read: float
    least: float
    context: float

    @property
    def prefilled(self) -> float:
        """Prompt tokens that are forwarded if every prefix is reused."""
        return self.least - self.generated + self.replies  # the last of each reply is not forwarded


class FixedLengthEngine:
    """An engine whose replies all have one length; it takes chats of any length."""

    def __init__(self, tokenizer, words: list[int], length: int, number: int):
        self.tokenizer = tokenizer
        self.words = words
        self.length = length
        self.number = number
        self.prompts: list[int] = []  # tokens of each

    async def generate(self, request: holdfast.Request) -> holdfast.Reply:
        prompt = tuple(
            self.tokenizer.apply_chat_template(
                list(request.messages), add_generation_prompt=True, return_dict=True
            )["input_ids"]
        )
        # starts differently from all others, so that replies share no artificial prefix
        start = self.tokenizer(f"{self.number}:{len(self.prompts)}")["input_ids"]
        ids = tuple((start + self.words)[: self.length])
        self.prompts.append(len(prompt))
        return holdfast.Reply(self.tokenizer.decode(ids), ids, "length", prompt_ids=prompt)

    def forget(self, thread: object) -> None:
        """Keeps nothing."""


def count_tokens(model: LocalModel, suite: Suite, settings: drift.Settings, length: int) -> Tokens:
    """The tokens of conversations whose replies all have one length."""
    words = model.tokenizer(" and so on" * length)["input_ids"]
    rows = []
    for number in range(settings.conversations):
        dialog = Dialog(draw_pairing(suite, settings, number))
        engine = FixedLengthEngine(model.tokenizer, words, length, number)
        asyncio.run(hold_dialog(engine, dialog, (), settings))
        prompts = engine.prompts
        rows.append(
            Tokens(
                replies=len(prompts),
                generated=len(prompts) * length,
                read=sum(prompts),
                least=least_tokens(dialog.sequences),
                context=statistics.mean(prompts) + length / 2,
            )
        )
    return mean_of(rows)


def mean_of(rows: list[Tokens]) -> Tokens:
    """The mean of each field."""
    columns = zip(*(asdict(row).values() for row in rows), strict=True)
    return Tokens(*map(statistics.mean, columns))


def forwarded_over_least(model: LocalModel, suite: Suite, settings: drift.Settings) -> dict:
    """Tokens that the engine forwards over the minimum possible, per conversation."""
    with tempfile.TemporaryDirectory() as folder:
        records = drift.run(model, suite, folder, settings).records
    ratios = [record.tokens.forwarded / record.tokens.least for record in records]
    overall = estimate(np.array(ratios), None)
    return {
        "conversations": len(ratios),
        "mean": overall.mean,
        "low": overall.low,
        "high": overall.high,
    }


def gpu_hours(tokens: Tokens, model: Model, gpu: Gpu, bound: Bound, *, reuse: bool) -> float:
    """GPU hours of one conversation, when as many run as fit in memory.

    A step takes the longer of its operations and of reading the weights once and each row's keys
    and values. Prompts are limited only by operations.
    """
    effective_gpus = model.gpus * (bound.parallel if model.gpus > 1 else 1)
    flops = gpu.flops * bound.flops
    bandwidth = gpu.bandwidth * bound.bandwidth
    row_bytes = model.token_bytes * tokens.context
    rows = (MEMORY_USED * gpu.memory * model.gpus - model.weight_bytes) / row_bytes
    prefill = (tokens.prefilled if reuse else tokens.read) * model.flops(tokens.context / 2) / flops
    token_seconds = max(
        (model.weight_bytes / rows + row_bytes) / bandwidth, model.flops(tokens.context) / flops
    )
    seconds = prefill + tokens.generated * token_seconds  # if all GPUs were one
    return seconds / effective_gpus * model.gpus / 3600


def estimates(counts: dict[int, Tokens], conversations: int) -> Iterable[dict]:
    """Estimates a row for each model, kind of GPU and reply length."""
    for model in MODELS:
        for gpu in GPUS:
            for length, tokens in counts.items():
                row: dict = {"model": model.name, "gpu": gpu.name, "gpus": model.gpus}
                row["reply_tokens"] = length
                for name, reuse in (("gpu_hours", True), ("gpu_hours_without_reuse", False)):
                    row[name] = {
                        bound.name: conversations
                        * gpu_hours(tokens, model, gpu, bound, reuse=reuse)
                        for bound in BOUNDS
                    }
                yield row


def measure() -> dict:
    """Measures what the estimates are based on."""
    model = holdfast.load("default")
    suite = drift.load_suite("core")
    settings = drift.Settings(conversations=COUNTED)
    texts = [case.system_prompt for case in suite.cases]
    num_tokens = sum(len(model.tokenizer(text)["input_ids"]) for text in texts)
    return {
        "benchmark": "scaling",
        "measured_on": measured_on(model),
        "suite": suite.name,
        "rounds": settings.rounds,
        "counted": COUNTED,
        "characters_per_token": sum(map(len, texts)) / num_tokens,
        "tokens": {
            str(length): asdict(count_tokens(model, suite, settings, length))
            for length in REPLY_TOKENS
        },
        "forwarded_over_least": forwarded_over_least(
            model, drift.load_suite("starter"), replace(settings, conversations=PLAYED)
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--conversations", type=int, default=10_000)
    parser.add_argument("--from", type=Path, dest="record", help="a record; counts nothing anew")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    record = json.loads(arguments.record.read_text()) if arguments.record else measure()
    counts = {int(length): Tokens(**fields) for length, fields in record["tokens"].items()}
    record |= {
        "conversations": arguments.conversations,
        "models": [asdict(model) for model in MODELS],
        "gpus": [asdict(gpu) for gpu in GPUS],
        "bounds": [asdict(bound) for bound in BOUNDS],
        "memory_used": MEMORY_USED,
        "estimates": list(estimates(counts, arguments.conversations)),
    }
    for row in record["estimates"]:
        hours = " to ".join(f"{value:,.1f}" for value in row["gpu_hours"].values())
        print(
            f"{row['model']} on {row['gpus']} x {row['gpu']}, replies of {row['reply_tokens']}"
            f" tokens: {hours} GPU hours"
        )
    if arguments.out:
        write_json(record, arguments.out)


if __name__ == "__main__":
    main()
