"""Runs tasks on a model: each baseline and each steering method on the same samples."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from holdfast.chat.messages import Message
from holdfast.errors import ModelError, UsageError
from holdfast.methods import Ability, Method, read_methods
from holdfast.models.capabilities import offers
from holdfast.models.failures import Failures, Unanswered, answer_each
from holdfast.models.protocol import ChatModel, told_of
from holdfast.models.replicas import BatchUnit, Listener, Units, replicas_of, work_on
from holdfast.models.requests import Reply, Request
from holdfast.models.served import same_served
from holdfast.papers.zhang2024.data import Data, Sample, Task, mark
from holdfast.papers.zhang2024.metrics import Tfidf, fit_tfidf, fluency
from holdfast.papers.zhang2024.settings import (
    CATALOGUE,
    TaskSettings,
    Variant,
    demonstrations,
    draw_samples,
    fitting,
    request_of,
    user_message,
    variants_of,
)
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

_SIGNS = {"marked": "*", "quoted": '"'}
_REFERENCES = 1000  # training texts that consistency knows
_SAME_TARGET = 8  # of them, those that one reply is compared with


class Judge:
    """Fluency and consistency of replies to one task."""

    def __init__(self, task: Task, data: Data, settings: TaskSettings):
        self.texts: dict[str, list[str]] = {}
        for item in itertools.islice(fitting(data, task, "train"), _REFERENCES):
            sample = task.ask(item, settings.instruction, data.candidates)
            self.texts.setdefault(sample.target, []).append(sample.text)
        self.tfidf: Tfidf = fit_tfidf([text for texts in self.texts.values() for text in texts])

    def judge(self, sample: Sample, reply: str) -> dict[str, float | None]:
        """Consistency is None where no training text has the sample's target."""
        same = self.texts.get(sample.target, [])[:_SAME_TARGET]
        return {
            "fluency": _round(fluency(reply)),
            "consistency": _round(self.tfidf.similarity(reply, " ".join(same))) if same else None,
        }


@dataclass(frozen=True)
class TaskBatch:
    """Samples of one task that are asked in one way, side by side.

    Args:
        task: its name.
        variant: how.
        before: the demonstrations.
        samples: by number.
    """

    task: str
    variant: Variant
    before: Sequence[Message]
    samples: Mapping[int, Sample]


@dataclass(frozen=True)
class TaskWork:
    """Work whose units are `TaskBatch`.

    Args:
        data, settings: of the run.
    """

    data: Data
    settings: TaskSettings
    together: ClassVar[int] = 1

    def do(self, model: ChatModel, units: Units, replicas: int, listener: Listener) -> None:
        unit, judges = 0, dict[str, Judge]()
        failures = Failures(lambda unanswered: listener.outcome(unit, unanswered), "sample")
        for unit, group in units:
            task, variant = CATALOGUE[group.task], group.variant
            if task.fluent and task.name not in judges:
                judges[task.name] = Judge(task, self.data, self.settings)
            Asker(
                model,
                task,
                variant,
                group.before,
                self.settings.generate,
                judges.get(task.name),
                failures,
                variant.key(task.name),
                functools.partial(listener.outcome, unit),
            ).ask(group.samples)
            listener.over(unit)
        failures.settle(model.session())


@dataclass(frozen=True)
class Asker:
    """Asks the samples of one task under one variant.

    Args:
        model, task, variant: who is asked what, and how.
        before: the demonstrations.
        generate: whether a reply is generated where continuations are compared.
        judge: of the replies, where their fluency is measured.
        failures: of the run; a sample that is not answered is told there, and has no record.
        name: of the task and variant, as records have it.
        keep: takes the records.
    """

    model: Any
    task: Task
    variant: Variant
    before: Sequence[Message]
    generate: bool
    judge: Judge | None
    failures: Failures
    name: str
    keep: Callable[[dict[str, Any]], None]

    def ask(self, samples: Mapping[int, Sample]) -> None:
        """Asks samples, side by side, by their numbers."""
        if self.task.chooses:
            self._choose(samples)
        else:
            self._write(samples)

    def _write(self, samples: Mapping[int, Sample]) -> None:
        """Replies are told as they come."""
        last = time.monotonic()

        def keep(number: int, reply: Reply) -> None:
            nonlocal last
            now = time.monotonic()
            scores = {"scores": self.task.score(samples[number], reply.text)}
            self._keep(number, samples[number], now - last, scores, reply)
            last = now

        self._answer(samples, keep)

    def _choose(self, samples: Mapping[int, Sample]) -> None:
        """Continuations are compared under every prompt of a sample; all are told at the end."""
        began = time.monotonic()
        replies: dict[int, Reply] = {}
        if self.generate:
            self._answer(samples, replies.__setitem__)
            samples = {number: samples[number] for number in samples if number in replies}
        prompts = [(sample, prompt) for sample in samples.values() for prompt in sample.prompts]
        scored = iter(
            self.model.session().score(
                [self._request(sample, prompt) for sample, prompt in prompts],
                [sample.options for sample, _ in prompts],
            )
        )
        seconds = (time.monotonic() - began) / max(len(samples), 1)
        for number, sample in samples.items():
            options = [next(scored).log_probabilities for _ in sample.prompts]
            scores = {
                "log_probabilities": [list(map(_round, values)) for values in options],
                "scores": self.task.score(sample, options),
            }
            self._keep(number, sample, seconds, scores, replies.get(number))

    def _answer(self, samples: Mapping[int, Sample], keep: Callable[[int, Reply], None]) -> None:
        requests = {
            (self.name, number): self._request(sample, sample.prompts[0])
            for number, sample in samples.items()
        }
        answer_each(
            self.model.session(), requests, self.failures, lambda name, reply: keep(name[1], reply)
        )

    def _keep(
        self,
        number: int,
        sample: Sample,
        seconds: float,
        scores: Mapping[str, Any],
        reply: Reply | None,
    ) -> None:
        """Tells what came of a sample."""
        fields: dict[str, Any] = {}
        if reply is not None:
            fields = {"reply": reply.text, "stop_reason": reply.stop_reason}
            if reply.usage is not None:
                fields["tokens"] = dict(zip(("read", "written"), reply.usage, strict=True))
            fields |= self.judge.judge(sample, reply.text) if self.judge else {}
        self.keep(
            {
                "conversation": number,
                "task": self.task.name,
                "variant": self.variant.name,
                "draw": self.variant.draw,
                "prompt": sample.prompts[0],
                "target": sample.target,
                **scores,
                **fields,
                "seconds": round(seconds, 4),
            }
        )

    def _request(self, sample: Sample, prompt: str) -> Request:
        return ask_in(self.variant, self.task, self.before, sample, prompt)


def ask_in(
    variant: Variant, task: Task, before: Sequence[Message], sample: Sample, prompt: str
) -> Request:
    """The request that asks one prompt of a sample.

    Args:
        variant: how it is asked.
        task: that it is of.
        before: the demonstrations.
        sample: that is asked about.
        prompt: one of the sample's.
    """
    signed = variant.name in _SIGNS
    shown = mark(prompt, sample.emphasis, _SIGNS[variant.name]) if signed else prompt
    emphasis = sample.emphasis if variant.methods else ()  # which an endpoint could not serve
    sampling = Sampling(temperature=0.0, top_p=1.0, max_new_tokens=task.max_new_tokens)
    return request_of([*before, user_message(shown)], emphasis, variant.methods, sampling, 0)


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 5)


COMPATIBILITY = Compatibility(
    defaults={"settings": dataclasses.asdict(TaskSettings())},
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
    settings: TaskSettings = TaskSettings(),
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
    pairs = [
        (task, variant, demonstrations(data, task, settings, variant.draw) if variant.draw else [])
        for task, variant in itertools.product(tasks, variants)
    ]
    identity = _identity(model, data, settings, variants)
    about = {"command": "tasks", "argv": command, **told_of(model)}
    with open_run(Path(out), identity, about, COMPATIBILITY) as record:
        groups = batches(range(settings.samples), settings.batch)
        units = []
        for task, variant, before in pairs:
            for batch in resume(record, variant.key(task.name), groups, alone=model.independent):
                if batch.again:
                    some = {number: samples[task.name][number] for number in batch.again}
                    units.append(BatchUnit(batch, TaskBatch(task.name, variant, before, some)))
                else:
                    progress(len(batch.numbers))
        work_on(
            replicas_of(model),
            TaskWork(data, settings),
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
            messages = [user_message(sample.prompts[0])]
            request_of(messages, sample.emphasis, variant.methods, Sampling(), 0)


def check_folder(data: Data, out: Path | str, settings: TaskSettings, command: str = "") -> None:
    """Refuses a folder that holds another run, or something else, before a model is loaded.

    Args:
        data, out, settings, command: as of `run`.

    Raises:
        RecordsError: names the first difference that shows without a model.
    """
    about = {"command": "tasks", "argv": command}
    refuse_early(out, _identity_of_data(data, settings), about, COMPATIBILITY)


def _identity(
    model: ChatModel, data: Data, settings: TaskSettings, variants: Sequence[Variant]
) -> dict[str, Any]:
    return {
        "model": model.name,
        "model_fingerprint": model.fingerprint,
        "runtime": model.runtime,
        "variants": list(dict.fromkeys(variant.name for variant in variants)),
        **_identity_of_data(data, settings),
    }


def _identity_of_data(data: Data, settings: TaskSettings) -> dict[str, Any]:
    return {
        "settings": dataclasses.asdict(settings),
        "data": data.name,
        "data_fingerprint": data.fingerprint,
    }
