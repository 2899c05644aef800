"""The runs that the tables share: profiles, choices made on validation samples, and answers to
test samples.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from holdfast import drift
from holdfast.analysis.tasks import ZERO_SHOT, Result, read_results
from holdfast.errors import UsageError
from holdfast.methods import (
    Boost,
    HeadSet,
    Method,
    Pasta,
    Ranking,
    SplitSoftmax,
    Spotlight,
    intersection,
    spell,
    union,
)
from holdfast.papers import zhang2024 as tasks
from holdfast.papers.zhang2024.profiling import ProfilingPlan, Samples, profile
from holdfast.papers.zhang2024.profiling.samples import task_samples
from holdfast.papers.zhang2024.reproduction.setup import ALPHA, STRATEGIES, Setup, pasta_on

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel

_KNOBS: dict[str, tuple[Method, ...]] = {
    "boost": tuple(map(Boost, (2.0, 4.0, 8.0, 16.0))),
    "spotlight": tuple(map(Spotlight, (0.2, 0.4, 0.6))),
}  # on all heads, with no profiling
_BATCH = 128  # rows: a step of many costs little more than one of few
_EXPONENTS = (0.7, 0.5, 0.3, 0.1)  # of split-softmax, on PASTA's heads
_FACTORS = (4.0, 16.0, 64.0)  # of Boost, on PASTA's heads; its alpha is a factor of 100
_PROMPTS = {
    "zero-shot": "zero-shot",
    "marked": "*-marked",
    "quoted": "“”-marked",
    "few-shot": "few-shot",
}
BOOST = "Boost, all heads"
CHOSEN_BOOST = {  # the strategy whose heads it has
    "Boost, multi-task heads": "multi-task",
    "Boost, task-specific heads": "task-specific",
}
_TOLD = {
    "boost": BOOST,
    "spotlight": "Spotlight, all heads",
    "split-softmax": "split-softmax, the same heads",
    **{row: row for row in CHOSEN_BOOST},
}

STEERED = len(STRATEGIES) + len(_TOLD)  # rows of Table 1 that steer


@dataclass(frozen=True)
class Study:
    """The runs that the tables share, each made once: profiles, choices made on validation samples,
    and answers to test samples.
    """

    setup: Setup

    @cached_property
    def rankings(self) -> dict[str, Ranking]:
        """Of each task, by steering every head alone (Algorithm 1)."""
        rankings = {}
        for name in self.setup.tasks:
            samples, plan = self.profiling_of(name)
            folder = self.profile_folder(name)
            with self.setup.watch(f"profile {name}", len(samples)) as progress:
                running = drift.Running(progress=progress)
                done = profile(self.setup.model, samples, folder, plan, running)
            rankings[name] = done.ranking
        return rankings

    def profiling_of(self, name: str) -> tuple[Samples, ProfilingPlan]:
        """The samples that heads are ranked on for a task, and how."""
        scale, task = self.setup.scale, tasks.CATALOGUE[name]
        count = scale.profiled_of(name)
        settings = self._settings("train", count, (name,))
        samples = task_samples(self._data("train", count, (name,)), task, settings)
        return samples, ProfilingPlan(
            Pasta(ALPHA), by="accuracy", max_new_tokens=task.max_new_tokens
        )

    def profile_folder(self, name: str) -> Path:
        return self.setup.out / "profile" / name

    @cached_property
    def sizes(self) -> list[int]:
        """The k of the rankings."""
        count = len(next(iter(self.rankings.values())).heads)
        return sorted({max(1, round(share * count)) for share in self.setup.scale.shares})

    def candidates(self, strategy: str, name: str) -> list[HeadSet]:
        """The different head sets of a strategy for a task, one per k; where none of these k gives
        any, of the least k that does.
        """
        ranked = [self.rankings[judge] for judge in self._others(strategy, name)]
        sets: list[HeadSet] = []
        for k in (*self.sizes, *range(self.sizes[-1] + 1, len(ranked[0].heads) + 1)):
            if sets and k > self.sizes[-1]:
                break
            try:
                heads = self._combined(strategy, name, ranked, k)
            except UsageError:  # none in common among the best k
                continue
            if heads not in sets:
                sets.append(heads)
        return sets

    def _combined(self, strategy: str, name: str, ranked: Sequence[Ranking], k: int) -> HeadSet:
        """The best k of a task, or of several rankings together."""
        if strategy == "task-specific":
            return self.rankings[name].top(k)
        return union(ranked, k) if strategy == "union" else intersection(ranked, k)

    @cached_property
    def validated(self) -> dict[str, dict[Method, np.ndarray]]:
        """By task and steering, [sample]: what every candidate that it judges does on validation
        samples.
        """
        wanted: dict[str, list[HeadSet]] = {name: [] for name in self.setup.tasks}
        for name in self.setup.tasks:
            for strategy in self.setup.strategies:
                for judge in self._judges(strategy, name):
                    wanted[judge] += self.candidates(strategy, name)
        return {
            name: self._validate("heads", name, list(map(pasta_on, dict.fromkeys(wanted[name]))))
            for name in self.setup.tasks
        }

    @cached_property
    def heads(self) -> dict[tuple[str, str], HeadSet]:
        """By strategy and task, the set that does best on validation samples: of the task itself,
        or, task-agnostic, of the others.
        """
        scores, chosen = self.validated, {}
        for name in self.setup.tasks:
            for strategy in self.setup.strategies:
                judges = [scores[judge] for judge in self._judges(strategy, name)]
                means = {
                    heads: np.mean([judge[pasta_on(heads)].mean() for judge in judges])
                    for heads in self.candidates(strategy, name)
                }
                chosen[strategy, name] = max(means, key=means.__getitem__)
        return chosen

    @cached_property
    def parameters(self) -> dict[tuple[str, str], Method]:
        """By method and task, the best on validation samples: on all heads, and split-softmax and
        Boost on PASTA's.
        """
        chosen = {}
        for name in self.setup.tasks:
            heads = self.heads["multi-task", name]
            options = _KNOBS | {
                "split-softmax": tuple(
                    SplitSoftmax(exponent, heads=heads) for exponent in _EXPONENTS
                )
            }
            for row, strategy in CHOSEN_BOOST.items():
                heads = self.heads[strategy, name]
                options[row] = tuple(Boost(factor, heads=heads) for factor in _FACTORS)
            scores = self._validate(
                "parameters", name, [method for some in options.values() for method in some]
            )
            for kind, some in options.items():
                chosen[kind, name] = max(some, key=lambda method: scores[method].mean())
        return chosen

    def methods(self, name: str) -> dict[str, Method]:
        """By row of Table 1, what steers a task."""
        rows: dict[str, Method] = {
            f"PASTA, {strategy}": pasta_on(self.heads[strategy, name])
            for strategy in self.setup.strategies
        }
        return rows | {
            _TOLD[kind]: method for (kind, task), method in self.parameters.items() if task == name
        }

    @cached_property
    def tested(self) -> dict[str, dict[str, Result]]:
        """By task and row of Table 1, the answers to test samples."""
        tested = {}
        for name in self.setup.tasks:
            steered = self.methods(name)
            answers = self.ask(
                "test", name, steered.values(), baselines=tasks.BASELINES, generate=True
            )
            rows = {_PROMPTS[baseline]: answers[baseline] for baseline in tasks.BASELINES}
            tested[name] = rows | {row: answers[spell([method])] for row, method in steered.items()}
        return tested

    def ask(
        self,
        folder: str,
        name: str,
        methods: Iterable[Method],
        *,
        baselines: Sequence[str] = (ZERO_SHOT,),
        instruction: str = "original",
        generate: bool = False,
        split: str = "test",
        model: LocalModel | None = None,
    ) -> dict[str, Result]:
        """By baseline or spelling, the answers to one task's samples."""
        count = {"test": self.setup.scale.tested, "validation": self.setup.scale.validated}[split]
        settings = replace(
            self._settings(split, count, (name,)),
            instruction=instruction,
            baselines=tuple(baselines),
            draws=self.setup.scale.draws,
            generate=generate,
        )
        distinct = {spell([method]): [method] for method in methods}
        chosen, player = list(distinct.values()), model or self.setup.model
        total = len(tasks.variants_of(settings, chosen)) * settings.samples
        with self.setup.watch(f"{folder} {name}", total) as progress:
            run = tasks.run(
                player,
                self._data(split, count, (name,)),
                self.setup.out / folder / name,
                settings,
                chosen,
                progress=progress,
            )
        return {result.variant: result for result in read_results(run)}

    def _validate(
        self, folder: str, name: str, methods: Sequence[Method]
    ) -> dict[Method, np.ndarray]:
        """[validation sample]; what is excluded for its fluency stands behind all others."""
        answers = self.ask(f"validation-{folder}", name, methods, split="validation")
        results = {method: answers[spell([method])] for method in methods}
        return {
            method: np.full(len(values), -1.0) if results[method].excluded else values
            for method, values in zip(results, map(values_of, results.values()), strict=True)
        }

    def _settings(self, split: str, count: int, names: tuple[str, ...]) -> tasks.Settings:
        return tasks.Settings(names, count, split, seed=self.setup.seed, batch=_BATCH)

    def _data(self, split: str, count: int, names: tuple[str, ...]) -> tasks.Data:
        return tasks.load_data(self.setup.data, self._settings(split, count, names))

    def _others(self, strategy: str, name: str) -> list[str]:
        """The tasks whose rankings a strategy combines for a task."""
        every = list(self.setup.tasks)
        return [other for other in every if strategy != "task-agnostic" or other != name]

    def _judges(self, strategy: str, name: str) -> list[str]:
        """The tasks whose validation samples choose among a strategy's candidates for a task: its
        own, or, task-agnostic, the others.
        """
        return self._others(strategy, name) if strategy == "task-agnostic" else [name]


def values_of(result: Result) -> np.ndarray:
    """[sample]: the mean of the metrics that it has."""
    rows = np.array(list(result.scores.values()))
    means: np.ndarray = np.nanmean(rows, axis=0)
    return means
