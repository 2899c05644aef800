"""Runs tasks on a model: each baseline and each steering method on the same samples, recorded as
soon as a batch is answered.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast import knobs
from holdfast import methods as steering
from holdfast.chat.messages import Message
from holdfast.errors import ModelError, UnknownName, UsageError
from holdfast.methods import Ability, Kind, Method, kind_of, read_methods
from holdfast.models.capabilities import offers
from holdfast.models.protocol import ChatModel
from holdfast.models.requests import Request
from holdfast.records import (
    Compatibility,
    RunData,
    batches,
    open_run,
    read_run,
    resume,
    union,
)
from holdfast.sampling import Sampling
from holdfast.seeds import seed_of
from holdfast.tasks import bias_in_bios, counterfact, json_format, pronouns
from holdfast.tasks.data import Data
from holdfast.tasks.files import load_files
from holdfast.tasks.metrics import Tfidf, fit_tfidf, fluency
from holdfast.tasks.sample import INSTRUCTIONS, SPLITS, Sample, Task, mark, spans_of
from holdfast.tasks.synthetic import Shape, make_data

CATALOGUE: dict[str, Task] = {
    task.name: task
    for task in (json_format.TASK, pronouns.TASK, bias_in_bios.TASK, counterfact.TASK)
}
BASELINES = ("zero-shot", "marked", "quoted", "few-shot")
SYNTHETIC = "synthetic"
_SIGNS = {"marked": "*", "quoted": '"'}
_REFERENCES = 1000  # training texts that consistency knows
_SAME_TARGET = 8  # of them, those that one reply is compared with


@dataclass(frozen=True)
class Settings:
    """What is asked, and how.

    Args:
        tasks: names of `CATALOGUE`.
        samples: per task.
        split: "train", "validation" or "test".
        instruction: "original", "shortened" or "rephrased" (Table 4); Bias in Bios and CounterFact
            have the original alone.
        baselines: prompts for the unsteered model (the paper's section 4): "zero-shot", "marked"
            with asterisks, "quoted", "few-shot".
        demonstrations: in a few-shot prompt.
        draws: of demonstrations; each is a result of its own, for few-shot prompting varies with
            them (Table 11).
        seed: of samples and demonstrations.
        batch: samples that run side by side. A fixed number, so that repeated runs do the same
            arithmetic.
        generate: whether a reply is also generated where continuations are compared, for its
            fluency and consistency.

    Raises:
        KnobOutOfRange: a number outside its range.
        UsageError: an unknown or doubled choice, or an instruction that a task does not have.
    """

    tasks: tuple[str, ...] = tuple(CATALOGUE)
    samples: int = 200
    split: str = "test"
    instruction: str = "original"
    baselines: tuple[str, ...] = ("zero-shot",)
    demonstrations: int = 3
    draws: int = 5
    seed: int = 0
    batch: int = 32
    generate: bool = True

    def __post_init__(self) -> None:
        for name in ("samples", "demonstrations", "draws", "batch"):
            knobs.whole_number("tasks", name, getattr(self, name), 1)
        knobs.whole_number("tasks", "seed", self.seed, 0)
        for name, chosen, known in (
            ("task", self.tasks, CATALOGUE),
            ("baseline", self.baselines, BASELINES),
        ):
            for one in chosen:
                if one not in known:
                    raise UnknownName(name, one, known)
                if chosen.count(one) > 1:
                    raise UsageError(f"The {name} {one!r} is given twice; give it once.")
        for name, word, words in (
            ("split", self.split, SPLITS),
            ("instruction", self.instruction, INSTRUCTIONS),
        ):
            if word not in words:
                raise UnknownName(name, word, words)
        if not self.tasks:
            raise UsageError(f"No task is given; give at least one of {', '.join(CATALOGUE)}.")
        for one in self.tasks:
            if self.instruction not in CATALOGUE[one].instructions:
                raise UsageError(
                    f"The task {one} has no {self.instruction} instruction; ask it with the"
                    " original one, or leave it out."
                )


COMPATIBILITY = Compatibility(
    defaults={"settings": dataclasses.asdict(Settings())},
    joins={
        "variants": union,
        "settings.tasks": union,
        "settings.baselines": union,
        "settings.draws": max,
    },
    reasons={"settings.samples": "demonstrations and made-up data are drawn for a number of them"},
)


@dataclass(frozen=True)
class Variant:
    """A row of the table: a prompt for the unsteered model, or steering of the zero-shot prompt.

    Args:
        name: a baseline, or the spelling of the methods.
        methods: none for a baseline.
        draw: of the demonstrations, counted from 1; 0 where there are none.
    """

    name: str
    methods: tuple[Method, ...] = ()
    draw: int = 0


def load_data(wheres: Sequence[str], settings: Settings, shape: Shape = Shape()) -> Data:
    """Loads what the samples are made of.

    Args:
        wheres: "synthetic", paths, or hub:OWNER/NAME; together they hold biographies once and
            changed facts once at most.
        settings: which samples are wanted.
        shape: of synthetic texts.

    Raises:
        UsageError, HoldfastError: as `data.load_files`; or the same kind twice.
    """
    found = [
        (
            make_data(settings.seed, settings.split, settings.samples, shape)
            if where == SYNTHETIC
            else load_files(where, settings.seed)
        )
        for where in wheres
    ]
    items: dict[str, Any] = {}
    for one in found:
        for kind in one.items:
            if kind in items:
                raise UsageError(
                    f"{' and '.join(wheres)} both hold {kind}; give one --data of each kind."
                )
            items[kind] = one.items[kind]
    candidates = next((one.candidates for one in found if one.candidates), ())
    return Data(
        " and ".join(one.name for one in found),
        "-".join(one.fingerprint for one in found),
        items,
        candidates,
    )


def draw_samples(data: Data, task: Task, settings: Settings) -> list[Sample]:
    """The samples of a task, the same for every baseline and method; more of them begin like fewer.

    Raises:
        UsageError: the data lacks the kind the task needs, or has too few of the split.
    """
    chosen = list(itertools.islice(_fitting(data, task, settings.split), settings.samples))
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
    pool = list(
        itertools.islice(
            _fitting(data, task, "train"),
            settings.samples if settings.split == "train" else 0,
            None,
        )
    )
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
        for message in (_user(sample.prompts[0]), {"role": "assistant", "content": sample.reply})
    ]


def request_of(
    messages: Sequence[Message],
    emphasis: Sequence[str],
    methods: Sequence[Method],
    sampling: Sampling,
    seed: int,
) -> Request:
    """The one place where the emphasised parts of the last message become the span of attention
    methods.

    Raises:
        UsageError: methods that work on a system prompt.
    """
    for method in methods:
        if kind_of(method) in (Kind.MESSAGES, Kind.STREAM):
            raise UsageError(
                f"{method.name} works on a system prompt, and tasks have none; give an attention"
                " method."
            )
    last = len(messages) - 1  # by its place, for a demonstration may hold the same words
    ranges = tuple((last, *span) for span in spans_of(messages[last]["content"], emphasis))
    return Request(tuple(messages), tuple(methods), sampling, seed, emphasis=ranges)


def run(
    model: ChatModel,
    data: Data,
    out: Path | str,
    settings: Settings = Settings(),
    methods: Sequence[Sequence[Method]] = (),
    *,
    command: str = "",
    progress: Callable[[int], None] = lambda samples: None,
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

    Raises:
        UsageError: methods that tasks cannot use, or the same twice; data that does not fit.
        ModelError: an endpoint, asked for a task that compares continuations.
        RecordsError: `out` holds another run, or cannot be written.
    """
    if isinstance(methods, str):
        raise UsageError(f"methods is a list of settings, not {methods!r}; put it into one.")
    variants = variants_of(settings, [read_methods(setting) for setting in methods])
    tasks = [CATALOGUE[name] for name in settings.tasks]
    samples = {task.name: draw_samples(data, task, settings) for task in tasks}
    _check(model, tasks, variants, samples)
    told = {
        (task.name, v.draw): demonstrations(data, task, settings, v.draw)
        for task in tasks
        for v in variants
        if v.draw
    }
    identity, about = (
        _identity(model, data, settings, variants),
        {"command": "tasks", "argv": command},
    )
    with open_run(Path(out), identity, about, COMPATIBILITY) as record:
        groups = batches(range(settings.samples), settings.batch)
        for task in tasks:
            judge = _Judge(task, data, settings) if task.fluent else None
            for variant in variants:
                key = " ".join(
                    part for part in (task.name, variant.name, str(variant.draw or "")) if part
                )
                head = {"task": task.name, "variant": variant.name, "draw": variant.draw}
                asker = _Asker(
                    model,
                    task,
                    variant,
                    told.get((task.name, variant.draw), []),
                    settings.generate,
                    judge,
                )
                for batch in resume(record, key, groups, alone=model.independent):
                    answers = asker.answer([samples[task.name][n] for n in batch.again])
                    for number, answer in zip(batch.again, answers, strict=True):
                        batch.keep({"conversation": number, **head, **answer})
                    progress(len(batch.numbers))
    return read_run(out)


def variants_of(settings: Settings, methods: Sequence[Sequence[Method]] = ()) -> list[Variant]:
    """The rows of the table: the baselines, each draw of demonstrations by itself, then the
    methods.

    Raises:
        UsageError: the same methods twice, or nothing at all.
    """
    found = [
        Variant(name, draw=draw)
        for name in settings.baselines
        for draw in (range(1, settings.draws + 1) if name == "few-shot" else (0,))
    ]
    found += [Variant(steering.spell(chosen), tuple(chosen)) for chosen in methods if chosen]
    if (
        not all(methods) and "zero-shot" not in settings.baselines
    ):  # none is the zero-shot baseline by another name
        found.insert(0, Variant("zero-shot"))
    names = [(variant.name, variant.draw) for variant in found]
    if doubled := next((name for name, draw in names if names.count((name, draw)) > 1), None):
        raise UsageError(f"The method {doubled!r} is given twice; give it once.")
    if not found:
        raise UsageError(
            "Neither a baseline nor a method is given; give at least one of"
            f" {', '.join(BASELINES)}."
        )
    return found


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
            request_of([_user(sample.prompts[0])], sample.emphasis, variant.methods, Sampling(), 0)


def _identity(
    model: ChatModel, data: Data, settings: Settings, variants: Sequence[Variant]
) -> dict[str, Any]:
    return {
        "model": model.name,
        "model_fingerprint": model.fingerprint,
        "runtime": model.runtime,
        "variants": list(dict.fromkeys(variant.name for variant in variants)),
        "settings": dataclasses.asdict(settings),
        "data": data.name,
        "data_fingerprint": data.fingerprint,
    }


class _Judge:
    """Fluency and consistency of replies to one task."""

    def __init__(self, task: Task, data: Data, settings: Settings):
        self.texts: dict[str, list[str]] = {}
        for item in itertools.islice(_fitting(data, task, "train"), _REFERENCES):
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
class _Asker:
    """Asks the samples of one task under one variant.

    Args:
        model, task, variant: who is asked what, and how.
        before: the demonstrations.
        generate: whether a reply is generated where continuations are compared.
        judge: of the replies, where their fluency is measured.
    """

    model: Any
    task: Task
    variant: Variant
    before: Sequence[Message]
    generate: bool
    judge: _Judge | None

    def answer(self, samples: Sequence[Sample]) -> Iterator[dict[str, Any]]:
        """What is recorded of each sample of a batch."""
        if not samples:
            return
        begun = time.monotonic()
        replies: list[Any] = [None] * len(samples)
        if self.generate or not self.task.chooses:
            replies = self.model.generate_batch(
                [self._request(sample, sample.prompts[0]) for sample in samples]
            )
        scored = iter(())
        if self.task.chooses:
            asked = [(sample, prompt) for sample in samples for prompt in sample.prompts]
            scored = iter(
                self.model.session().score(
                    [self._request(*one) for one in asked], [sample.options for sample, _ in asked]
                )
            )
        seconds = (time.monotonic() - begun) / len(samples)
        for sample, reply in zip(samples, replies, strict=True):
            answer: dict[str, Any] = {"prompt": sample.prompts[0], "target": sample.target}
            if self.task.chooses:
                found: list[Sequence[float]] = [
                    next(scored).log_probabilities for _ in sample.prompts
                ]
                answer |= {
                    "log_probabilities": [list(map(_round, options)) for options in found],
                    "scores": self.task.score(sample, found),
                }
            else:
                answer |= {"scores": self.task.score(sample, reply.text)}
            if reply is not None:
                answer |= {
                    "reply": reply.text,
                    "stop_reason": reply.stop_reason,
                    **(self.judge.judge(sample, reply.text) if self.judge else {}),
                }
            yield {**answer, "seconds": round(seconds, 4)}

    def _request(self, sample: Sample, prompt: str) -> Request:
        shown = (
            mark(prompt, sample.emphasis, _SIGNS[self.variant.name])
            if self.variant.name in _SIGNS
            else prompt
        )
        sampling = Sampling(temperature=0.0, top_p=1.0, max_new_tokens=self.task.max_new_tokens)
        return request_of(
            [*self.before, _user(shown)], sample.emphasis, self.variant.methods, sampling, 0
        )


def _fitting(data: Data, task: Task, split: str) -> Iterator[Any]:
    if task.needs not in data.items:
        raise UsageError(
            f"The task {task.name} needs {task.needs}, and {data.name} holds"
            f" {' and '.join(data.items)}; give a --data that has them."
        )
    return filter(task.fits, data.items[task.needs].get(split, ()))


def _user(content: str) -> Message:
    return {"role": "user", "content": content}


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 5)
