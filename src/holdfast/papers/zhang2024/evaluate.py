"""Runs tasks on a model: every baseline and every steering method on the same samples."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast import records
from holdfast.drift.progress import Progress
from holdfast.drift.settings import Running
from holdfast.errors import ModelError, UsageError, require_type
from holdfast.generation.sampling import Sampling
from holdfast.methods import Ability, Method, read_methods
from holdfast.models.capabilities import supports
from holdfast.models.event_loop import run_sync
from holdfast.models.failures import FailedRequest, OutageWatch
from holdfast.models.offered_steering import same_fingerprint
from holdfast.models.protocol import ChatModel, facts_about, require_model
from holdfast.papers.zhang2024.data import Data, Sample, Task
from holdfast.papers.zhang2024.task_batches import TaskBatch, ask_batch
from holdfast.papers.zhang2024.task_samples import (
    demonstrations,
    draw_samples,
    request_of,
    user_message,
)
from holdfast.papers.zhang2024.task_settings import CATALOGUE, TaskSettings, Variant, variants_of

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
    require_model(model)
    require_type(settings, TaskSettings, "make them, as in tasks.Settings(...)")
    if isinstance(methods, str):
        raise UsageError(f"methods is a list of settings, not {methods!r}; put it into one.")
    variants = variants_of(settings, [read_methods(setting) for setting in methods])
    tasks = [CATALOGUE[name] for name in settings.tasks]
    samples = {task.name: draw_samples(data, task, settings) for task in tasks}
    _check(model, tasks, variants, samples)
    rows: dict[str, TaskBatch] = {}
    for task, variant in itertools.product(tasks, variants):
        shots = demonstrations(data, task, settings, variant.draw) if variant.draw else []
        numbered = dict(enumerate(samples[task.name]))
        rows[variant.key(task.name)] = TaskBatch(task.name, variant, shots, numbered)
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
        batches: list[records.PendingBatch] = []
        for key in rows:
            batches += records.resume(run, key, groups, alone=model.independent)
        pending = records.unfinished(batches, running.progress)

        def note(failed: FailedRequest) -> None:
            run.note_failure(*failed.name, failed.why, failed.reason)

        watch = OutageWatch(note, "sample")
        if pending:
            run_sync(_ask_batches(model, pending, rows, settings, watch, running.progress))
    return records.read_run(out)


async def _ask_batches(
    model: ChatModel,
    pending: Sequence[records.PendingBatch],
    rows: Mapping[str, TaskBatch],
    settings: TaskSettings,
    watch: OutageWatch,
    progress: Progress,
) -> None:
    """Asks the samples of each pending batch, which belong to one row of the table."""
    async with model.session() as engine:
        for batch in pending:
            row = rows[batch.name]
            samples = {number: row.samples[number] for number in batch.to_run}
            unasked = dataclasses.replace(row, samples=samples)
            await ask_batch(engine, unasked, settings.generate, watch, batch.append)
            progress(len(batch.numbers), 0)
        await watch.finish(engine)


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
            f" {choosing[0]} needs; use a local model, or --task json and pronouns."
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
