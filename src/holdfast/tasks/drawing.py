"""Draws samples and demonstrations from synthetic data, files or the hub."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from holdfast.chat.messages import Message
from holdfast.errors import UsageError
from holdfast.seeds import seed_of
from holdfast.tasks.data import Data
from holdfast.tasks.files import load_files
from holdfast.tasks.sample import BIOGRAPHIES, Sample, Task
from holdfast.tasks.settings import Settings, user_message
from holdfast.tasks.synthetic import Shape, make_data

SYNTHETIC = "synthetic"


def load_data(wheres: Sequence[str], settings: Settings, shape: Shape = Shape()) -> Data:
    """Loads what the samples are made of.

    Args:
        wheres: "synthetic", paths, or hub:OWNER/NAME. Files hold biographies once and changed
            facts once at most; "synthetic" supplies the kind that they lack.
        settings: which samples are wanted.
        shape: of synthetic texts.

    Raises:
        UsageError, HoldfastError: as `files.load_files`; or the same kind twice.
    """
    if wheres.count(SYNTHETIC) > 1:
        raise UsageError(f"--data {SYNTHETIC} is given twice; give it once.")
    files = [where for where in wheres if where != SYNTHETIC]
    sources = [load_files(where, settings.seed) for where in files]
    if SYNTHETIC in wheres:
        made = make_data(settings.seed, settings.split, settings.samples, shape)
        supplied = {kind for source in sources for kind in source.items}
        if lacking := {kind: made.items[kind] for kind in made.items if kind not in supplied}:
            sources.append(replace(made, items=lacking))
        else:
            raise UsageError(
                f"{' and '.join(files)} hold biographies and changed facts, and --data synthetic"
                " has nothing to add; leave it out."
            )
    items: dict[str, Any] = {}
    for source in sources:
        for kind in source.items:
            if kind in items:
                raise UsageError(
                    f"{' and '.join(wheres)} both hold {kind}; give one --data of each kind."
                )
            items[kind] = source.items[kind]
    name = " and ".join(source.name for source in sources)
    fingerprint = "-".join(source.fingerprint for source in sources)
    candidates = next((source.candidates for source in sources if BIOGRAPHIES in source.items), ())
    return Data(name, fingerprint, items, candidates)


def draw_samples(data: Data, task: Task, settings: Settings) -> list[Sample]:
    """The samples of a task, the same for every baseline and method; more of them begin like fewer.

    Raises:
        UsageError: the data lacks the kind the task needs, or has too few of the split.
    """
    chosen = list(itertools.islice(fitting(data, task, settings.split), settings.samples))
    if len(chosen) < settings.samples:
        raise UsageError(
            f"{data.name} has {len(chosen)} {settings.split} samples for the task {task.name}, not"
            f" {settings.samples}; ask for fewer with --samples."
        )
    return [task.ask(item, settings.instruction, data.candidates) for item in chosen]


def demonstrations(data: Data, task: Task, settings: Settings, draw: int) -> list[Message]:
    """Training samples with their right replies as turns of a chat, the same before every sample
    (section 4: three of them).
    """
    # training samples that are asked about are not shown
    asked = settings.samples if settings.split == "train" else 0
    pool = list(itertools.islice(fitting(data, task, "train"), asked, None))
    if len(pool) < settings.demonstrations:
        raise UsageError(
            f"{data.name} has {len(pool)} training samples for demonstrations of {task.name}, and"
            f" {settings.demonstrations} are needed; give more data."
        )
    rng = random.Random(seed_of("demonstrations", settings.seed, task.name, draw))
    shown = [
        task.ask(item, settings.instruction, data.candidates)
        for item in rng.sample(pool, settings.demonstrations)
    ]
    return [
        message
        for sample in shown
        for message in (
            user_message(sample.prompts[0]),
            {"role": "assistant", "content": sample.reply},
        )
    ]


def fitting(data: Data, task: Task, split: str) -> Iterator[Any]:
    """The items of a split that a task can ask about.

    Raises:
        UsageError: the data lacks the kind the task needs.
    """
    if task.needs not in data.items:
        raise UsageError(
            f"The task {task.name} needs {task.needs}, and {data.name} holds"
            f" {' and '.join(data.items)}; give a --data that has them."
        )
    return filter(task.fits, data.items[task.needs].get(split, ()))
