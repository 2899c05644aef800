"""Runs tasks on a model: each baseline and each steering method on the same samples."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from holdfast.errors import ModelError, UsageError
from holdfast.methods import Ability, Method, read_methods
from holdfast.models.batches import BatchUnit, work_on
from holdfast.models.capabilities import offers
from holdfast.models.failures import Unanswered
from holdfast.models.protocol import ChatModel, told_of
from holdfast.models.replicas import replicas_of
from holdfast.models.served import same_served
from holdfast.records import (
    Compatibility,
    Run,
    RunData,
    batches,
    open_run,
    read_run,
    refuse_early,
    resume,
    union,
)
from holdfast.sampling import Sampling
from holdfast.tasks.asking import Asked, Asking
from holdfast.tasks.data import Data
from holdfast.tasks.drawing import demonstrations, draw_samples
from holdfast.tasks.sample import Sample, Task
from holdfast.tasks.settings import (
    CATALOGUE,
    Settings,
    Variant,
    request_of,
    user_message,
    variants_of,
)

COMPATIBILITY = Compatibility(
    defaults={"settings": dataclasses.asdict(Settings())},
    joins={
        "model_fingerprint": same_served,
        "variants": union,
        "settings.tasks": union,
        "settings.baselines": union,
        "settings.draws": max,
    },
    reasons={"settings.samples": "demonstrations and made-up data are drawn for a number of them"},
)


def run(
    model: ChatModel,
    data: Data,
    out: Path | str,
    settings: Settings = Settings(),
    methods: Sequence[Sequence[Method]] = (),
    *,
    command: str = "",
    progress: Callable[[int], None] = lambda samples: None,
    first: int | None = None,
) -> RunData:
    """Asks every sample under every baseline and method and records the answers in the folder
    `out`; resumes what is there.

    Args:
        model: local where a task compares continuations.
        data: from `load_data`.
        out: a new folder, or that of the same run, which may have other tasks, baselines, methods
            and draws.
        settings: what is asked.
        methods: each one a list, a method or a spelling, applied to the zero-shot prompt with the
            emphasised part as its span; () is the zero-shot baseline.
        command: the command line, for the manifest.
        progress: told how many samples were answered, or found in the folder.
        first: ask only so many of the batches that are missing; None: all.

    Raises:
        UsageError: methods that tasks cannot use, or the same twice; data that does not fit.
        ModelError: a task that compares continuations, of a model that does not tell their
            probability; or requests of several samples failed in a row. A single one that fails is
            noted in the folder, and asked again by the next command.
        RecordsError: `out` holds another run, or cannot be written.
    """
    if isinstance(methods, str):
        raise UsageError(f"methods is a list of settings, not {methods!r}; put it into one.")
    variants = variants_of(settings, [read_methods(setting) for setting in methods])
    tasks = [CATALOGUE[name] for name in settings.tasks]
    samples = {task.name: draw_samples(data, task, settings) for task in tasks}
    _check(model, tasks, variants, samples)
    shown = {
        (task.name, variant.draw): demonstrations(data, task, settings, variant.draw)
        for task, variant in itertools.product(tasks, variants)
        if variant.draw
    }
    identity = _identity(model, data, settings, variants)
    about = {"command": "tasks", "argv": command, **told_of(model)}
    with open_run(Path(out), identity, about, COMPATIBILITY) as record:
        groups = batches(range(settings.samples), settings.batch)
        units = []
        for task, variant in itertools.product(tasks, variants):
            before, asked = shown.get((task.name, variant.draw), []), samples[task.name]
            key = variant.key(task.name)
            for batch in resume(record, key, groups, alone=model.independent):
                if batch.again:
                    some = {number: asked[number] for number in batch.again}
                    units.append(BatchUnit(batch, Asked(task.name, variant, before, some)))
                else:
                    progress(len(batch.numbers))
        work_on(
            replicas_of(model),
            Asking(data, settings),
            units[:first],
            functools.partial(_note, record),
            lambda count, tokens: progress(count),
        )
    return read_run(out)


def _note(record: Run, unanswered: Unanswered) -> None:
    """A sample that was not answered stays missing."""
    key, number = unanswered.name
    record.note_failure(key, number, unanswered.why, unanswered.reason)


def _check(
    model: ChatModel,
    tasks: Sequence[Task],
    variants: Sequence[Variant],
    samples: dict[str, list[Sample]],
) -> None:
    """Refuses what cannot be asked, before anything is written."""
    choosing = [task.name for task in tasks if task.chooses]
    if choosing and not offers(model, Ability.REPLY_SCORES):
        raise ModelError(
            f"{model.name} does not tell the probability of a given reply, which the task"
            f" {choosing[0]} needs; use a local model, or --task json and pronouns."
        )
    for variant in variants:
        model.check(variant.methods)
        for task in tasks:
            sample = samples[task.name][0]
            asked = [user_message(sample.prompts[0])]
            request_of(asked, sample.emphasis, variant.methods, Sampling(), 0)


def check_folder(data: Data, out: Path | str, settings: Settings, command: str = "") -> None:
    """Refuses a folder that holds another run, or something else, before a model is loaded.

    Args:
        data, out, settings, command: as of `run`.

    Raises:
        RecordsError: names the first difference that shows without a model.
    """
    about = {"command": "tasks", "argv": command}
    refuse_early(out, _identity_of_data(data, settings), about, COMPATIBILITY)


def _identity(
    model: ChatModel, data: Data, settings: Settings, variants: Sequence[Variant]
) -> dict[str, Any]:
    return {
        "model": model.name,
        "model_fingerprint": model.fingerprint,
        "runtime": model.runtime,
        "variants": list(dict.fromkeys(variant.name for variant in variants)),
        **_identity_of_data(data, settings),
    }


def _identity_of_data(data: Data, settings: Settings) -> dict[str, Any]:
    return {
        "settings": dataclasses.asdict(settings),
        "data": data.name,
        "data_fingerprint": data.fingerprint,
    }
