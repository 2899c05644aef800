"""The profiles, choices and answers that the tables and figures of the reproduction share."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from holdfast.analysis.task_results import ZERO_SHOT, TaskScores, read_results
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
    spec_of,
    union,
)
from holdfast.papers import zhang2024 as tasks
from holdfast.papers.zhang2024.profiling import ProfilingPlan, Samples, profile
from holdfast.papers.zhang2024.profiling.profiling_samples import task_samples
from holdfast.papers.zhang2024.reproduction.reproduction_setup import (
    ALPHA,
    Zhang2024Setup,
    pasta_on,
)

_BATCH = 128  # samples side by side; a step of many rows costs little more than one of few
_ROWS_OF_BASELINES = {
    "zero-shot": "zero-shot",
    "marked": "*-marked",
    "quoted": "“”-marked",
    "few-shot": "few-shot",
}
BOOST = "Boost, all heads"
_SPOTLIGHT = "Spotlight, all heads"
_SPLIT_SOFTMAX = "split-softmax, the same heads"
CHOSEN_BOOST = {  # rows of Boost on profiled heads, with the strategy that chose them
    "Boost, multi-task heads": "multi-task",
    "Boost, task-specific heads": "task-specific",
}
_ON_ALL_HEADS: dict[str, list[Method]] = {
    BOOST: [Boost(factor) for factor in (2.0, 4.0, 8.0, 16.0)],
    _SPOTLIGHT: [Spotlight(target) for target in (0.2, 0.4, 0.6)],
}
_EXPONENTS = (0.7, 0.5, 0.3, 0.1)  # of split-softmax, on PASTA's heads
_FACTORS = (4.0, 16.0, 64.0)  # of Boost, on PASTA's heads; PASTA's alpha is a factor of 100


@dataclass(frozen=True)
class VariantScores:
    """One task's answers under baselines and methods."""

    by_variant: Mapping[str, TaskScores]  # by the name of a baseline or the spec string of a method

    @property
    def zero_shot(self) -> TaskScores:
        """The answers without steering."""
        return self.by_variant[ZERO_SHOT]

    @property
    def all(self) -> list[TaskScores]:
        """The answers under every baseline and method."""
        return list(self.by_variant.values())

    def under(self, method: Method) -> TaskScores:
        """The answers under a method."""
        return self.by_variant[spec_of([method])]


@dataclass(frozen=True)
class Study:
    """The runs that the tables and figures share; each is made when it is first needed."""

    setup: Zhang2024Setup

    @cached_property
    def rankings(self) -> dict[str, Ranking]:
        """The ranking for each task, from steering every head on its own (Algorithm 1)."""
        rankings = {}
        for name in self.setup.tasks:
            samples, plan = self.profiling_of(name)
            with self.setup.watch(f"profile {name}", len(samples)) as progress:
                folder = self.profile_folder(name)
                result = profile(self.setup.model, samples, folder, plan, progress=progress)
                rankings[name] = result.ranking
        return rankings

    def profiling_of(self, name: str) -> tuple[Samples, ProfilingPlan]:
        """The samples on which heads are ranked for a task, and the plan of it."""
        task = tasks.CATALOGUE[name]
        settings = self._settings(name, "train", self.setup.scale.profile_samples_of(name))
        data = tasks.load_data(self.setup.data, settings)
        plan = ProfilingPlan(Pasta(ALPHA), by="accuracy", max_new_tokens=task.max_new_tokens)
        return task_samples(data, task, settings), plan

    def profile_folder(self, name: str) -> Path:
        """The run folder of a task's profile."""
        return self.setup.out / "profile" / name

    @cached_property
    def sizes(self) -> list[int]:
        """The k of the rankings."""
        count = len(next(iter(self.rankings.values())).heads)
        return sorted({max(1, round(share * count)) for share in self.setup.scale.shares})

    def candidates(self, strategy: str, name: str) -> list[HeadSet]:
        """The distinct head sets of a strategy, one for each k that gives any.

        If none of `sizes` gives one, there is a single set: that of the smallest k beyond them.
        """
        names = [name] if strategy == "task-specific" else self._ranking_tasks(strategy, name)
        rankings = [self.rankings[task] for task in names]
        combine = union if strategy == "union" else intersection

        def head_sets(sizes: Iterable[int]) -> Iterator[HeadSet]:
            for k in sizes:
                try:
                    yield combine(rankings, k)
                except UsageError:  # the best k have none in common
                    continue

        larger_sizes = range(self.sizes[-1] + 1, len(rankings[0].heads) + 1)
        distinct = list(dict.fromkeys(head_sets(self.sizes)))
        return distinct or list(itertools.islice(head_sets(larger_sizes), 1))

    @cached_property
    def validation_scores(self) -> dict[str, dict[Method, np.ndarray]]:
        """By task and method, the validation scores of each candidate it judges, [sample]."""
        sets_by_judge: dict[str, list[HeadSet]] = {name: [] for name in self.setup.tasks}
        for name in self.setup.tasks:
            for strategy in self.setup.strategies:
                for judge in self._judges(strategy, name):
                    sets_by_judge[judge] += self.candidates(strategy, name)
        return {
            name: self._validate("heads", name, list(map(pasta_on, dict.fromkeys(sets))))
            for name, sets in sets_by_judge.items()
        }

    @cached_property
    def heads(self) -> dict[tuple[str, str], HeadSet]:
        """By strategy and task, the head set that does best on validation samples."""
        best = {}
        for name in self.setup.tasks:
            for strategy in self.setup.strategies:
                judges = [self.validation_scores[judge] for judge in self._judges(strategy, name)]
                means = {
                    heads: np.mean([judge[pasta_on(heads)].mean() for judge in judges])
                    for heads in self.candidates(strategy, name)
                }
                best[strategy, name] = max(means, key=means.__getitem__)
        return best

    @cached_property
    def parameters(self) -> dict[str, dict[str, Method]]:
        """By task and row of Table 1, the methods that the paper lacks, at their best parameter."""
        best = {}
        for name in self.setup.tasks:
            heads = self.heads["multi-task", name]
            options = dict(_ON_ALL_HEADS)
            options[_SPLIT_SOFTMAX] = [SplitSoftmax(value, heads=heads) for value in _EXPONENTS]
            for row, strategy in CHOSEN_BOOST.items():
                heads = self.heads[strategy, name]
                options[row] = [Boost(factor, heads=heads) for factor in _FACTORS]
            methods = list(itertools.chain.from_iterable(options.values()))
            scores = self._validate("parameters", name, methods)
            means = {method: values.mean() for method, values in scores.items()}
            best[name] = {
                row: max(methods_of_row, key=means.__getitem__)
                for row, methods_of_row in options.items()
            }
        return best

    def methods(self, name: str) -> dict[str, Method]:
        """The methods that steer a task, by row of Table 1."""
        pasta: dict[str, Method] = {
            f"PASTA, {strategy}": pasta_on(self.heads[strategy, name])
            for strategy in self.setup.strategies
        }
        return pasta | self.parameters[name]

    @cached_property
    def test_results(self) -> dict[str, dict[str, TaskScores]]:
        """By task and row of Table 1, the answers to test samples."""
        results = {}
        for name in self.setup.tasks:
            methods = self.methods(name)
            answers = self.ask(
                "test", name, methods.values(), baselines=tasks.BASELINES, generate=True
            )
            rows = {
                _ROWS_OF_BASELINES[baseline]: answers.by_variant[baseline]
                for baseline in tasks.BASELINES
            }
            results[name] = rows | {row: answers.under(method) for row, method in methods.items()}
        return results

    def ask(
        self,
        folder: str,
        name: str,
        methods: Iterable[Method],
        *,
        split: str = "test",
        instruction: str = "original",
        baselines: tuple[str, ...] = (ZERO_SHOT,),
        generate: bool = False,
    ) -> VariantScores:
        """Asks the samples of a task under baselines and methods.

        Args:
            folder: the name of the folder of the runs; each task has a folder in it.
            name: the task.
            split: one of `SPLITS`.
            instruction: one of `INSTRUCTIONS` (Table 4).
            baselines: prompts for the unsteered model, from `BASELINES`.
            generate: whether tasks that compare continuations also generate a reply, to measure
                its fluency.
        """
        scale = self.setup.scale
        count = {"test": scale.test_samples, "validation": scale.validation_samples}[split]
        settings = replace(
            self._settings(name, split, count),
            instruction=instruction,
            baselines=baselines,
            draws=scale.draws,
            generate=generate,
        )
        data = tasks.load_data(self.setup.data, settings)
        steering_by_spec = {spec_of([method]): [method] for method in methods}
        steerings = list(steering_by_spec.values())
        total = len(tasks.variants_of(settings, steerings)) * settings.samples
        with self.setup.watch(f"{folder} {name}", total) as progress:
            out = self.setup.out / folder / name
            running = tasks.Running(progress=progress)
            run = tasks.run(self.setup.model, data, out, settings, steerings, running)
        return VariantScores({result.variant: result for result in read_results(run)})

    def _validate(
        self, folder: str, name: str, methods: Sequence[Method]
    ) -> dict[Method, np.ndarray]:
        """The validation scores of each method, [sample].

        A method that is excluded for its fluency scores below all others.
        """
        answers = self.ask(f"validation-{folder}", name, methods, split="validation")
        results = {method: answers.under(method) for method in methods}
        return {
            method: np.full(len(result.numbers), -1.0) if result.excluded else values_of(result)
            for method, result in results.items()
        }

    def _settings(self, name: str, split: str, count: int) -> tasks.Settings:
        return tasks.Settings((name,), count, split, seed=self.setup.seed, batch=_BATCH)

    def _ranking_tasks(self, strategy: str, name: str) -> list[str]:
        """The tasks whose rankings a strategy combines for a task."""
        if strategy != "task-agnostic":
            return list(self.setup.tasks)
        return [task for task in self.setup.tasks if task != name]

    def _judges(self, strategy: str, name: str) -> list[str]:
        """The tasks whose validation samples choose a task's heads: its own, or the others."""
        return self._ranking_tasks(strategy, name) if strategy == "task-agnostic" else [name]


def values_of(result: TaskScores) -> np.ndarray:
    """The mean of the metrics that each sample has, [sample]."""
    rows = np.array(list(result.scores.values()))
    return np.nanmean(rows, axis=0)
