"""Runs tasks on a model: each baseline and each steering method on the same samples."""

import dataclasses
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast import records
from holdfast.chat.messages import Message
from holdfast.drift.settings import Running
from holdfast.errors import ModelError, UsageError
from holdfast.generation.sampling import Sampling
from holdfast.methods import Ability, Method, read_methods
from holdfast.models.capabilities import supports
from holdfast.models.event_loop import run_sync
from holdfast.models.failures import FailedRequest, OutageWatch, answer_each
from holdfast.models.protocol import ChatModel, Engine, facts_about, score_replies
from holdfast.models.requests import Reply, Request
from holdfast.models.served import same_served
from holdfast.papers.zhang2024.catalogue import fluency
from holdfast.papers.zhang2024.data import Data, Sample, Task, mark
from holdfast.papers.zhang2024.task_settings import (
    CATALOGUE,
    TaskSettings,
    Variant,
    demonstrations,
    draw_samples,
    request_of,
    user_message,
    variants_of,
)
from holdfast.records import TaskSample, Usage

_SIGNS = {"marked": "*", "quoted": '"'}


@dataclass(frozen=True)
class TaskBatch:
    """Samples of a task, by number, asked under one variant after the same demonstrations."""

    task: str
    variant: Variant
    before: Sequence[Message]
    samples: Mapping[int, Sample]


async def _ask(
    engine: Engine,
    batch: TaskBatch,
    generate: bool,
    watch: OutageWatch,
    keep: Callable[[TaskSample], None],
) -> None:
    """Asks the samples of a batch, and keeps their records; an unanswered one has none.

    If `generate`, continuations are compared only for samples whose prompt was answered too.
    """
    if not CATALOGUE[batch.task].chooses:
        await _score_replies(engine, batch, watch, keep)
        return
    began = time.monotonic()
    replies: dict[int, Reply] = {}
    if generate:
        await _reply(engine, batch, watch, replies.__setitem__)
        answered = {number: sample for number, sample in batch.samples.items() if number in replies}
        batch = dataclasses.replace(batch, samples=answered)
    await _compare_options(engine, batch, replies, began, keep)


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
    """Generates a reply to each sample, and keeps its record as soon as it is there."""
    task, last = CATALOGUE[batch.task], time.monotonic()

    def write(number: int, reply: Reply) -> None:
        nonlocal last
        now = time.monotonic()
        scores = task.score(batch.samples[number], reply.text)
        keep(_record(batch, number, now - last, scores, reply))
        last = now

    await _reply(engine, batch, watch, write)


async def _compare_options(
    engine: Engine,
    batch: TaskBatch,
    replies: Mapping[int, Reply],
    began: float,
    keep: Callable[[TaskSample], None],
) -> None:
    """Compares the continuations of each sample by their log-probabilities; its record has its
    reply too, if there is one, and its share of the time since the batch began.
    """
    prompts = [(sample, prompt) for sample in batch.samples.values() for prompt in sample.prompts]
    requests = [_request(batch, sample, prompt) for sample, prompt in prompts]
    scored = iter(await score_replies(engine, requests, [sample.options for sample, _ in prompts]))
    seconds = (time.monotonic() - began) / max(len(batch.samples), 1)
    for number, sample in batch.samples.items():
        values = [next(scored).log_probabilities for _ in sample.prompts]
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
    sample, variant = batch.samples[number], batch.variant
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
    variant, tokens = batch.variant, CATALOGUE[batch.task].max_new_tokens
    signed = variant.name in _SIGNS
    shown = mark(prompt, sample.emphasis, _SIGNS[variant.name]) if signed else prompt
    emphasis = sample.emphasis if variant.methods else ()  # an endpoint could not serve it
    sampling = Sampling(temperature=0.0, top_p=1.0, max_new_tokens=tokens)
    return request_of(
        [*batch.before, user_message(shown)], emphasis, variant.methods, sampling, seed=0
    )


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 5)


COMPATIBILITY = records.Compatibility(
    defaults={"settings": dataclasses.asdict(TaskSettings())},
    joins={
        "model_fingerprint": same_served,
        "variants": records.union,
        "settings.tasks": records.union,
        "settings.baselines": records.union,
        "settings.draws": max,
    },
    reasons={"settings.samples": "demonstrations and made-up data are drawn for a number of them"},
)


def run(
    model: ChatModel,
    data: Data,
    out: Path | str,
    settings: TaskSettings = TaskSettings(),
    methods: Sequence[Sequence[Method]] = (),
    running: Running = Running(),
) -> records.Run:
    """Asks every sample under every baseline and method and records the answers in the folder
    `out`; resumes an earlier run.

    Args:
        model: local if a task compares continuations.
        data: from `load_data`.
        out: a new folder, or that of the same run, even with other tasks, baselines, methods and
            draws.
        settings: how samples are asked.
        methods: each one a list, a method or a spec string, applied to the zero-shot prompt with
            the emphasised part as its span; () is the zero-shot baseline.
        running: how the run is carried out.

    Raises:
        UsageError: methods that tasks cannot use, or a repeated one; data that does not fit.
        ModelError: a task compares continuations, and the model does not report probabilities; or
            several requests failed in a row. A single failed one is asked again next time.
        RecordsError: `out` holds another run, or cannot be written.
    """
    if isinstance(methods, str):
        raise UsageError(f"methods is a list of settings, not {methods!r}; put it into one.")
    variants = variants_of(settings, [read_methods(setting) for setting in methods])
    tasks = [CATALOGUE[name] for name in settings.tasks]
    samples = {task.name: draw_samples(data, task, settings) for task in tasks}
    _check(model, tasks, variants, samples)
    whole = {}
    for task, variant in itertools.product(tasks, variants):
        shown = demonstrations(data, task, settings, variant.draw) if variant.draw else []
        numbered = dict(enumerate(samples[task.name]))
        whole[variant.key(task.name)] = TaskBatch(task.name, variant, shown, numbered)
    identity = {
        "model": model.name,
        "model_fingerprint": model.fingerprint,
        "runtime": model.runtime,
        "variants": list(dict.fromkeys(variant.name for variant in variants)),
        **_identity(data, settings),
    }
    about = {"command": "tasks", "argv": running.command, **facts_about(model)}
    with records.open_run(Path(out), identity, about, COMPATIBILITY) as run:
        groups = records.batches(range(settings.samples), settings.batch)
        every_batch = (
            batch
            for key in whole
            for batch in records.resume(run, key, groups, alone=model.independent)
        )
        left = records.unfinished(every_batch, running.progress)

        def note(failed: FailedRequest) -> None:
            run.note_failure(*failed.name, failed.why, failed.reason)

        async def ask_all() -> None:
            watch = OutageWatch(note, "sample")
            async with model.session() as engine:
                for batch in left:
                    every = whole[batch.name]
                    some = {number: every.samples[number] for number in batch.to_run}
                    asked = dataclasses.replace(every, samples=some)
                    await _ask(engine, asked, settings.generate, watch, batch.append)
                    running.progress(len(batch.numbers), 0)
                await watch.finish(engine)

        if left:
            run_sync(ask_all())
    return records.read_run(out)


def _check(
    model: ChatModel,
    tasks: Sequence[Task],
    variants: Sequence[Variant],
    samples: dict[str, list[Sample]],
) -> None:
    choosing = [task.name for task in tasks if task.chooses]
    if choosing and not supports(model, Ability.REPLY_SCORES):
        raise ModelError(
            f"{model.name} does not report the probability of a given reply, which the task"
            f" {choosing[0]} needs; use a local model, or --task json and pronouns."
        )
    for variant in variants:
        model.check(variant.methods)
        for task in tasks:
            sample = samples[task.name][0]
            messages = [user_message(sample.prompts[0])]
            request_of(messages, sample.emphasis, variant.methods, Sampling(), 0)


def check_folder(data: Data, out: Path | str, settings: TaskSettings, command: str = "") -> None:
    """Refuses a folder with other contents than `run` would write, before anything is loaded."""
    about = {"command": "tasks", "argv": command}
    records.refuse_early(out, _identity(data, settings), about, COMPATIBILITY)


def _identity(data: Data, settings: TaskSettings) -> dict[str, Any]:
    return {
        "settings": dataclasses.asdict(settings),
        "data": data.name,
        "data_fingerprint": data.fingerprint,
    }
