"""`holdfast/tasks`: the tasks of Zhang et al. (2024) whose replies are read, on any model of
Inspect.

A sample is a question; the solver asks it greedily in one way (a baseline or a method), with the
prompts and samples of `holdfast tasks`, and the scorer gives the task's metrics.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from inspect_ai import Task, task
from inspect_ai import dataset as inspect_dataset
from inspect_ai.model import GenerateConfig, get_model
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from holdfast.chat.messages import Message
from holdfast.errors import UnknownName, UsageError
from holdfast.integrations.inspect.speaking import Speaker, as_text, check_names, in_one_sentence
from holdfast.methods import parse
from holdfast.models.requests import Request
from holdfast.papers.zhang2024.catalogue import CATALOGUE
from holdfast.papers.zhang2024.data import Sample
from holdfast.papers.zhang2024.data import Task as PastaTask
from holdfast.papers.zhang2024.evaluate import ask_in
from holdfast.papers.zhang2024.settings import (
    SYNTHETIC,
    TaskSettings,
    Variant,
    demonstrations,
    draw_samples,
    load_data,
    request_of,
    variants_of,
)

_SETTINGS = ("samples", "split", "instruction", "demonstrations", "seed")


@dataclass(frozen=True)
class TaskPlan:
    """A task, a baseline or methods, the questions, and the demonstrations before each of them."""

    task: PastaTask
    variant: Variant
    samples: Sequence[Sample]
    before: Sequence[Message]

    def request(self, sample: Sample) -> Request:
        return ask_in(self.variant, self.task, self.before, sample, sample.prompts[0])


@task
def tasks(
    task: str = "json",
    baseline: str = "zero-shot",
    method: str | None = None,
    data: str = SYNTHETIC,
    **settings: Any,
) -> Task:
    """Whether a reply does what the emphasised part of its question asks for.

    Args:
        task: `json` or `pronouns`; the others compare the probabilities of continuations, which
            models of Inspect are not asked for.
        baseline: `zero-shot`, `marked`, `quoted` or `few-shot`.
        method: steers the zero-shot prompt towards its emphasised part.
        data: `synthetic`, a path, or hub:NAME.
        settings: samples, split, instruction, demonstrations and seed, as of `holdfast tasks`.

    Raises:
        PrerequisiteError: an argument that there is not, or a value that is not taken.
    """
    arguments = {"task": task, "baseline": baseline, "method": method, "data": data, **settings}
    plan = _read(**arguments)
    rows = [
        inspect_dataset.Sample(
            input=plan.request(sample).messages[-1]["content"],
            target=sample.target,
            id=number,
            metadata={"emphasis": list(sample.emphasis)},
        )
        for number, sample in enumerate(plan.samples)
    ]
    sampling = plan.request(plan.samples[0]).sampling
    return Task(
        dataset=inspect_dataset.MemoryDataset(rows, f"{plan.task.name} of {as_text(data)}"),
        solver=ask(**arguments),
        scorer=measured(**arguments),
        config=GenerateConfig(
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            max_tokens=sampling.max_new_tokens,
        ),
    )


@solver
def ask(**arguments: Any) -> Solver:
    """Asks each question; arguments are those of `tasks`."""
    plan = _read(**arguments)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        speaker, sample = Speaker(get_model()), plan.samples[int(state.sample_id)]
        request = plan.request(sample)
        if speaker.steers:  # which an endpoint could not serve
            marked = request_of(request.messages, sample.emphasis, (), request.sampling, 0)
            request = replace(request, emphasis=marked.emphasis)
        state.output = await speaker.call(request)
        state.messages.append(state.output.message)
        return state

    return solve


@scorer(metrics={"*": [mean(), stderr()]})
def measured(**arguments: Any) -> Scorer:
    """The metrics of a task; arguments are those of `tasks`."""
    plan = _read(**arguments)

    async def score(state: TaskState, target: Target) -> Score:
        sample, reply = plan.samples[int(state.sample_id)], state.output.completion
        scores = plan.task.score(sample, reply)
        values = {name: scores.get(name, math.nan) for name in plan.task.metrics}
        return Score(value=values, answer=reply)

    return score


def _read(
    task: str, baseline: str, method: str | None, data: str | list[str], **settings: Any
) -> TaskPlan:
    """The arguments of a task, checked."""
    with in_one_sentence():
        check_names("setting of holdfast/tasks", settings, _SETTINGS)
        chosen = () if method is None else parse(as_text(method))
        if task not in CATALOGUE:
            raise UnknownName("task", task, CATALOGUE)
        if CATALOGUE[task].chooses:
            readable = [name for name, entry in CATALOGUE.items() if not entry.chooses]
            raise UsageError(
                f"The task {task!r} compares the probabilities of continuations, which models of"
                f" Inspect are not asked for; take {' or '.join(readable)}, or `holdfast tasks`."
            )
        protocol = TaskSettings(
            tasks=(task,), baselines=() if chosen else (baseline,), draws=1, **settings
        )
        (variant,) = variants_of(protocol, [chosen] if chosen else ())
        source = load_data(data if isinstance(data, list) else [data], protocol)
        shown = variant.draw
        return TaskPlan(
            CATALOGUE[task],
            variant,
            draw_samples(source, CATALOGUE[task], protocol),
            demonstrations(source, CATALOGUE[task], protocol, shown) if shown else (),
        )
