"""Asks samples of a task under one variant, and makes their records."""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.chat.messages import Message
from holdfast.generation.sampling import Sampling
from holdfast.models.failures import OutageWatch, answer_each
from holdfast.models.protocol import Engine, score_replies
from holdfast.models.requests import Reply, Request
from holdfast.papers.zhang2024.catalogue import fluency
from holdfast.papers.zhang2024.data import Sample, mark
from holdfast.papers.zhang2024.task_samples import request_of, user_message
from holdfast.papers.zhang2024.task_settings import CATALOGUE, Variant
from holdfast.records import TaskSample, Usage

_SIGNS = {"marked": "*", "quoted": '"'}


@dataclass(frozen=True)
class TaskBatch:
    """Samples of a task, by number, asked under one variant after the same demonstrations."""

    task: str
    variant: Variant
    demonstrations: Sequence[Message]
    samples: Mapping[int, Sample]


async def ask_batch(
    engine: Engine,
    batch: TaskBatch,
    generate: bool,
    watch: OutageWatch,
    keep: Callable[[TaskSample], None],
) -> None:
    """Asks the samples of a batch, and keeps their records; a sample without an answer has none.

    Args:
        generate: whether tasks that compare continuations also generate a reply. Then only samples
            that were answered are compared.
        watch: notices an outage of the model.
        keep: receives each record.
    """
    if not CATALOGUE[batch.task].chooses:
        await _score_replies(engine, batch, watch, keep)
        return
    started = time.monotonic()
    replies: dict[int, Reply] = {}
    if generate:
        await _reply(engine, batch, watch, replies.__setitem__)
        answered = {number: sample for number, sample in batch.samples.items() if number in replies}
        batch = dataclasses.replace(batch, samples=answered)
    await _compare_options(engine, batch, replies, started, keep)


async def _reply(
    engine: Engine, batch: TaskBatch, watch: OutageWatch, on_reply: Callable[[int, Reply], None]
) -> None:
    """Generates a reply to the prompt of each sample."""
    key = batch.variant.key(batch.task)
    requests = {
        (key, number): _request(batch, sample, sample.prompts[0])
        for number, sample in batch.samples.items()
    }
    await answer_each(engine, requests, watch, lambda key, reply: on_reply(key[1], reply))


async def _score_replies(
    engine: Engine, batch: TaskBatch, watch: OutageWatch, keep: Callable[[TaskSample], None]
) -> None:
    """Generates a reply to each sample, and keeps its record as soon as the reply is finished."""
    task = CATALOGUE[batch.task]
    last_reply = time.monotonic()

    def write(number: int, reply: Reply) -> None:
        nonlocal last_reply
        now = time.monotonic()
        scores = task.score(batch.samples[number], reply.text)
        keep(_record(batch, number, now - last_reply, scores, reply))
        last_reply = now

    await _reply(engine, batch, watch, write)


async def _compare_options(
    engine: Engine,
    batch: TaskBatch,
    replies: Mapping[int, Reply],
    started: float,
    keep: Callable[[TaskSample], None],
) -> None:
    """Compares the continuations of each sample by their log-probabilities.

    Args:
        replies: by the number of the sample, for its record; {} if none were generated.
        started: when the batch started; each record has its share of the time since then.
    """
    prompts = [(sample, prompt) for sample in batch.samples.values() for prompt in sample.prompts]
    requests = [_request(batch, sample, prompt) for sample, prompt in prompts]
    options = [sample.options for sample, _ in prompts]
    scored_prompts = iter(await score_replies(engine, requests, options))
    seconds = (time.monotonic() - started) / max(len(batch.samples), 1)
    for number, sample in batch.samples.items():
        values = [next(scored_prompts).log_probabilities for _ in sample.prompts]
        scores = CATALOGUE[batch.task].score(sample, values)
        keep(_record(batch, number, seconds, scores, replies.get(number), values))


def _record(
    batch: TaskBatch,
    number: int,
    seconds: float,
    scores: Mapping[str, float],
    reply: Reply | None,
    log_probabilities: Sequence[Sequence[float]] = (),
) -> TaskSample:
    """Makes the record of a sample from its reply and its scores."""
    sample = batch.samples[number]
    variant = batch.variant
    fields: dict[str, Any] = {}
    if reply is not None:
        fields = {"reply": reply.text, "stop_reason": reply.stop_reason}
        if reply.usage is not None:
            fields["tokens"] = Usage(read=reply.usage[0], written=reply.usage[1])
        if CATALOGUE[batch.task].fluent:
            fields["fluency"] = _round(fluency(reply.text))
    return TaskSample(
        method=variant.key(batch.task),
        conversation=number,
        task=batch.task,
        variant=variant.name,
        draw=variant.draw,
        prompt=sample.prompts[0],
        target=sample.target,
        log_probabilities=tuple(tuple(map(_round, row)) for row in log_probabilities),
        scores=dict(scores),
        seconds=round(seconds, 4),
        **fields,
    )


def _request(batch: TaskBatch, sample: Sample, prompt: str) -> Request:
    variant = batch.variant
    tokens = CATALOGUE[batch.task].max_new_tokens
    if variant.name in _SIGNS:
        prompt = mark(prompt, sample.emphasis, _SIGNS[variant.name])
    # only methods need the emphasis, which an endpoint could not serve
    emphasis = sample.emphasis if variant.methods else ()
    sampling = Sampling(temperature=0.0, top_p=1.0, max_new_tokens=tokens)
    return request_of(
        [*batch.demonstrations, user_message(prompt)], emphasis, variant.methods, sampling, seed=0
    )


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 5)
