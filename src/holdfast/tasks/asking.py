"""Asks the samples of one task in one way, and tells the record of each."""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from holdfast.chat.messages import Message
from holdfast.models.failures import Failures, answer_each
from holdfast.models.protocol import ChatModel
from holdfast.models.replicas import Listener, Units
from holdfast.models.requests import Reply, Request
from holdfast.sampling import Sampling
from holdfast.tasks.data import Data
from holdfast.tasks.drawing import fitting
from holdfast.tasks.metrics import Tfidf, fit_tfidf, fluency
from holdfast.tasks.sample import Sample, Task, mark
from holdfast.tasks.settings import CATALOGUE, Settings, Variant, request_of, user_message

_SIGNS = {"marked": "*", "quoted": '"'}
_REFERENCES = 1000  # training texts that consistency knows
_SAME_TARGET = 8  # of them, those that one reply is compared with


class Judge:
    """Fluency and consistency of replies to one task."""

    def __init__(self, task: Task, data: Data, settings: Settings):
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
class Asked:
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
class Asking:
    """Work whose units are `Asked`.

    Args:
        data, settings: of the run.
    """

    data: Data
    settings: Settings
    together: ClassVar[int] = 1

    def do(self, model: ChatModel, units: Units, replicas: int, listener: Listener) -> None:
        unit, judges = 0, dict[str, Judge]()
        failures = Failures(lambda unanswered: listener.outcome(unit, unanswered), "sample")
        for unit, asked in units:
            task, variant = CATALOGUE[asked.task], asked.variant
            if task.fluent and task.name not in judges:
                judges[task.name] = Judge(task, self.data, self.settings)
            Asker(
                model,
                task,
                variant,
                asked.before,
                self.settings.generate,
                judges.get(task.name),
                failures,
                variant.key(task.name),
                functools.partial(listener.outcome, unit),
            ).ask(asked.samples)
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

    def ask(self, asked: Mapping[int, Sample]) -> None:
        """Asks samples, side by side, by their numbers."""
        if self.task.chooses:
            self._choose(asked)
        else:
            self._write(asked)

    def _write(self, asked: Mapping[int, Sample]) -> None:
        """Replies are told as they come."""
        last = time.monotonic()

        def keep(number: int, reply: Reply) -> None:
            nonlocal last
            now = time.monotonic()
            scores = {"scores": self.task.score(asked[number], reply.text)}
            self._keep(number, asked[number], now - last, scores, reply)
            last = now

        self._answer(asked, keep)

    def _choose(self, asked: Mapping[int, Sample]) -> None:
        """Continuations are compared under every prompt of a sample; all are told at the end."""
        began = time.monotonic()
        replies: dict[int, Reply] = {}
        if self.generate:
            self._answer(asked, replies.__setitem__)
            asked = {number: asked[number] for number in asked if number in replies}
        prompts = [(sample, prompt) for sample in asked.values() for prompt in sample.prompts]
        scored = iter(
            self.model.session().score(
                [self._request(sample, prompt) for sample, prompt in prompts],
                [sample.options for sample, _ in prompts],
            )
        )
        seconds = (time.monotonic() - began) / max(len(asked), 1)
        for number, sample in asked.items():
            options = [next(scored).log_probabilities for _ in sample.prompts]
            scores = {
                "log_probabilities": [list(map(_round, values)) for values in options],
                "scores": self.task.score(sample, options),
            }
            self._keep(number, sample, seconds, scores, replies.get(number))

    def _answer(self, asked: Mapping[int, Sample], keep: Callable[[int, Reply], None]) -> None:
        requests = {
            (self.name, number): self._request(sample, sample.prompts[0])
            for number, sample in asked.items()
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
        told: dict[str, Any] = {}
        if reply is not None:
            told = {"reply": reply.text, "stop_reason": reply.stop_reason}
            if reply.usage is not None:
                told["tokens"] = dict(zip(("read", "written"), reply.usage, strict=True))
            told |= self.judge.judge(sample, reply.text) if self.judge else {}
        self.keep(
            {
                "conversation": number,
                "task": self.task.name,
                "variant": self.variant.name,
                "draw": self.variant.draw,
                "prompt": sample.prompts[0],
                "target": sample.target,
                **scores,
                **told,
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
