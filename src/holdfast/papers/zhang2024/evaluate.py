"""Runs tasks on a model: every baseline and every steering method on the same samples, which are
asked in batches and recorded one by one.
"""

import dataclasses
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast import records
from holdfast.chat.messages import Message
from holdfast.drift.progress import Progress
from holdfast.drift.settings import Running
from holdfast.errors import ModelError, UsageError
from holdfast.generation.sampling import Sampling
from holdfast.methods import Ability, Method, read_methods
from holdfast.models.capabilities import require_chat_model, supports
from holdfast.models.event_loop import run_sync
from holdfast.models.failures import CircuitBreaker, FailedRequest, RequestKey, answer_each
from holdfast.models.offered_steering import same_fingerprint
from holdfast.models.protocol import (
    ChatModel,
    Engine,
    facts_about,
    score_replies,
)
from holdfast.models.requests import Reply, Request
from holdfast.papers.zhang2024.catalogue import fluency
from holdfast.papers.zhang2024.data import Data, Sample, Task, mark
from holdfast.papers.zhang2024.task_samples import (
    demonstrations,
    draw_samples,
    request_of,
    user_message,
)
from holdfast.papers.zhang2024.task_settings import CATALOGUE, TaskSettings, Variant, variants_of
from holdfast.records import TaskSample, TokenCounts

COMPATIBILITY = records.Compatibility(
    defaults={"settings": dataclasses.asdict(TaskSettings())},
    joins={
        "model_fingerprint": same_fingerprint,
        "variants": records.union,
        "settings.tasks": records.union,
        "settings.baselines": records.union,
        "settings.draws": max,
    },
    reasons={"settings.samples": "demonstrations and made-up data are drawn for a number of them"},
)
_SIGNS = {"marked": "*", "quoted": '"'}


@dataclass(frozen=True)
class TaskBatch:
    """Samples of a task, by number, asked under one variant after the same demonstrations."""

    task: str
    variant: Variant
    demonstrations: Sequence[Message]
    samples: Mapping[int, Sample]


def run(
    model: ChatModel,
    data: Data,
    out: Path | str,
    settings: TaskSettings = TaskSettings(),
    methods: Sequence[Sequence[Method]] = (),
    running: Running = Running(),
) -> records.Run:
    """Asks every sample under every baseline and method, and records the answers in a folder.

    An earlier run in the folder is resumed.

    Args:
        model: local if a task compares continuations.
        data: from `load_data`.
        out: a new folder, or that of an earlier run, which may have had other tasks, baselines,
            methods and draws.
        settings: how samples are asked.
        methods: each is a list of methods, a method or a spec string, and steers the zero-shot
            prompt with the emphasised part as its span; () is the zero-shot baseline.
        running: how the run is carried out.

    Raises:
        UsageError: tasks cannot use a method, a method is given twice, or the data do not fit.
        ModelError: a task compares continuations, and the model does not report probabilities; or
            several requests failed in a row. A single one that failed is asked again next time.
        RecordsError: `out` holds another run, or cannot be written.
    """
    require_chat_model(model)
    if isinstance(methods, str):
        raise UsageError(f"methods is a list of settings, not {methods!r}; put it into one.")
    variants = variants_of(settings, [read_methods(setting) for setting in methods])
    tasks = [CATALOGUE[name] for name in settings.tasks]
    samples = {task.name: draw_samples(data, task, settings) for task in tasks}
    _check(model, tasks, variants, samples)
    rows = {
        variant.key(task.name): _row(data, settings, task, variant, samples[task.name])
        for task, variant in itertools.product(tasks, variants)
    }
    identity = {
        "model": model.name,
        "model_fingerprint": model.fingerprint,
        "runtime": model.runtime,
        "variants": list(dict.fromkeys(variant.name for variant in variants)),
        **_identity(data, settings),
    }
    about = {"command": "tasks", "argv": running.command, **facts_about(model)}
    with records.open_run(Path(out), identity, about, COMPATIBILITY) as folder:
        groups = records.batches(range(settings.samples), settings.batch)
        batches: list[records.PendingBatch] = []
        for key in rows:
            batches += records.resume(folder, key, groups, independent=model.independent)
        pending = records.unfinished(batches, running.progress)

        def note(request: FailedRequest) -> None:
            folder.note_failure(*request.key, request.why, request.reason)

        breaker = CircuitBreaker(note, "sample")
        if pending:
            run_sync(_ask_batches(model, pending, rows, settings, breaker, running.progress))
    return records.read_run(out)


def _row(
    data: Data, settings: TaskSettings, task: Task, variant: Variant, samples: Sequence[Sample]
) -> TaskBatch:
    """All samples of a task under one variant, which are a row of the table."""
    shots = demonstrations(data, task, settings, variant.draw) if variant.draw else []
    return TaskBatch(task.name, variant, shots, dict(enumerate(samples)))


async def _ask_batches(
    model: ChatModel,
    pending: Sequence[records.PendingBatch],
    rows: Mapping[str, TaskBatch],
    settings: TaskSettings,
    breaker: CircuitBreaker,
    progress: Progress,
) -> None:
    """Asks the samples of each pending batch, which belong to one row of the table."""
    async with model.session() as engine:
        for batch in pending:
            row = rows[batch.name]
            samples = {number: row.samples[number] for number in batch.to_run}
            unanswered = dataclasses.replace(row, samples=samples)
            await ask_batch(engine, unanswered, settings.generate, breaker, batch.append)
            progress(len(batch.numbers), 0)
        await breaker.finish(engine)


def _check(
    model: ChatModel,
    tasks: Sequence[Task],
    variants: Sequence[Variant],
    samples: Mapping[str, Sequence[Sample]],
) -> None:
    """Refuses tasks and methods that the model cannot serve, by their first samples."""
    choosing = [task.name for task in tasks if task.chooses]
    if choosing and not supports(model, Ability.REPLY_SCORES):
        raise ModelError(
            f"{model.name} does not report the probability of a given reply, which the task"
            f" {choosing[0]} needs; use a local model, or the tasks json and pronouns."
        )
    for variant in variants:
        model.check(variant.methods)
        for task in tasks:
            sample = samples[task.name][0]
            messages = [user_message(sample.prompts[0])]
            request_of(messages, sample.emphasis, variant.methods, Sampling(), 0)


def check_folder(data: Data, out: Path | str, settings: TaskSettings, command: str = "") -> None:
    """Refuses a folder that `run` would refuse, before anything is loaded."""
    about = {"command": "tasks", "argv": command}
    records.refuse_early(out, _identity(data, settings), about, COMPATIBILITY)


def _identity(data: Data, settings: TaskSettings) -> dict[str, Any]:
    return {
        "settings": dataclasses.asdict(settings),
        "data": data.name,
        "data_fingerprint": data.fingerprint,
    }


async def ask_batch(
    engine: Engine,
    batch: TaskBatch,
    generate: bool,
    breaker: CircuitBreaker,
    keep: Callable[[TaskSample], None],
) -> None:
    """Asks the samples of a batch, and keeps their records; a sample without an answer has none.

    Args:
        generate: whether tasks that compare continuations also generate a reply. Then only samples
            that were answered are compared.
        breaker: notices an outage of the model.
        keep: receives each record.
    """
    if not CATALOGUE[batch.task].chooses:
        await _generate_and_score(engine, batch, breaker, keep)
        return
    start = time.monotonic()
    replies: dict[int, Reply] = {}
    if generate:
        await _generate_replies(engine, batch, breaker, replies.__setitem__)
        samples = {number: sample for number, sample in batch.samples.items() if number in replies}
        batch = dataclasses.replace(batch, samples=samples)
    await _compare_options(engine, batch, replies, start, keep)


async def _generate_replies(
    engine: Engine,
    batch: TaskBatch,
    breaker: CircuitBreaker,
    on_reply: Callable[[int, Reply], None],
) -> None:
    """Generates a reply to the prompt of each sample."""
    label = batch.variant.key(batch.task)
    requests = {
        RequestKey(label, number): _request(batch, sample, sample.prompts[0])
        for number, sample in batch.samples.items()
    }
    await answer_each(engine, requests, breaker, lambda key, reply: on_reply(key.number, reply))


async def _generate_and_score(
    engine: Engine, batch: TaskBatch, breaker: CircuitBreaker, keep: Callable[[TaskSample], None]
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

    await _generate_replies(engine, batch, breaker, write)


async def _compare_options(
    engine: Engine,
    batch: TaskBatch,
    replies: Mapping[int, Reply],
    start: float,
    keep: Callable[[TaskSample], None],
) -> None:
    """Compares the continuations of each sample by their log-probabilities.

    Args:
        replies: by the number of the sample, for its record; {} if none were generated.
        start: when the batch started; each record has its share of the time since then.
    """
    prompts = [(sample, prompt) for sample in batch.samples.values() for prompt in sample.prompts]
    requests = [_request(batch, sample, prompt) for sample, prompt in prompts]
    options = [sample.options for sample, _ in prompts]
    scored_prompts = iter(await score_replies(engine, requests, options))
    seconds = (time.monotonic() - start) / max(len(batch.samples), 1)
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
            fields["tokens"] = TokenCounts(read=reply.usage.read, written=reply.usage.written)
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
