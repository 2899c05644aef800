"""Tables and figures of Zhang et al. 2024 (PASTA), on any model, with the paper's claims judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from holdfast import tasks
from holdfast.chat import Method
from holdfast.errors import UnknownName, UsageError
from holdfast.methods import Boost, HeadSet, Pasta, Ranking, SplitSoftmax, Spotlight, intersection, spell, union
from holdfast.records import read_run
from holdfast.report.profile import write_profile
from holdfast.report.statistics import Estimate, estimate, paired_difference
from holdfast.report.tasks import ZERO_SHOT, Result, read_results
from holdfast.reproduce.child import make_child
from holdfast.reproduce.findings import CONTRADICTED, SUPPORTED, UNDECIDED, Claim, Figure, judge, spelled
from holdfast.reproduce.page import write_findings, write_page
from holdfast.reproduce.zhang2024_figures import write_alphas, write_single_heads, write_sizes
from holdfast.study.profiling import UNSTEERED, Plan, profile, rank_first
from holdfast.study.task_samples import task_samples

if TYPE_CHECKING:
    from holdfast.model import LocalModel

TASKS = tuple(tasks.CATALOGUE)
STRATEGIES = ("multi-task", "task-agnostic", "task-specific", "union")
_FREE = tuple(name for name, task in tasks.CATALOGUE.items() if not task.chooses)  # the tasks of Table 4 and Figure 3, whose instruction is emphasised
_ALPHA = 0.01
_KNOBS: dict[str, tuple[Method, ...]] = {
    "boost": tuple(map(Boost, (2.0, 4.0, 8.0, 16.0))), "spotlight": tuple(map(Spotlight, (0.2, 0.4, 0.6))),
}  # on all heads, with no profiling
_EXPONENTS = (0.7, 0.5, 0.3, 0.1)  # of split-softmax, on PASTA's heads
_BATCH = 128  # rows: a step of many costs little more than one of few
_ROBUST = 0.1  # a metric that changes by less is called robust
_MODERATE = (0.02, 0.2)  # of all heads: the paper's 50 to 150 of LLaMA's 1,024 are 0.05 to 0.15


@dataclass(frozen=True)
class Scale:
    """How much is run.

    Args:
        profiled: training samples of each task that heads are ranked on; the paper has 1,000.
        fewer: of Table 14; the paper has 200.
        validated: validation samples of each task that heads and knobs are chosen on.
        tested: test samples of each task; the paper has 5,000.
        draws: of few-shot demonstrations.
        shares: of all heads, the k of the rankings.
        alphas: of Figure 3.
        steps: of the child's fine-tuning.
    """

    profiled: int
    fewer: int
    validated: int
    tested: int
    draws: int
    shares: tuple[float, ...]
    alphas: tuple[float, ...] = (0.05, 0.01, 0.002, 1e-3, 1e-4)
    steps: int = 60


SCALES = {
    "smallest": Scale(4, 2, 4, 6, 2, (0.25, 0.75), (0.05, 1e-4), 2),
    "small": Scale(128, 24, 64, 200, 5, (0.0625, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75)),
    "paper": Scale(1000, 200, 1000, 5000, 5, (0.01, 0.025, 0.05, 0.1, 0.25, 0.3, 0.4, 0.5, 0.6)),
}


@dataclass(frozen=True)
class Task:
    """What is reproduced, and where to.

    Args:
        model: a model in this process.
        out: the folder of all runs, figures and the page.
        scale: how much.
        seed: of samples and demonstrations.
        data: as `holdfast tasks --data` takes it.
        child: a model made from `model` by further training (Table 13); None fine-tunes a small model here.
        tell: takes one line per step.
    """

    model: LocalModel
    out: Path
    scale: Scale
    seed: int = 0
    data: tuple[str, ...] = (tasks.SYNTHETIC,)
    child: LocalModel | None = None
    tell: Callable[[str], None] = lambda line: None


def reproduce(task: Task) -> Path:
    """Profiles the heads, runs every table and figure, resuming what is there, and writes `index.html` and `findings.json`; returns the page's path.

    Raises:
        ModelError: an endpoint, or a model whose attention cannot be steered.
        RecordsError: `task.out` holds runs of another model, data or scale.
    """
    check(task)
    study = _Study(task)
    figures = []
    for make in (table_1, table_4, table_5, table_7, table_11, table_13, table_14, figure_2, figure_3):
        figures.append(figure := make(study))
        for claim in figure.claims:
            task.tell(f"{figure.name}: {claim.verdict}. {claim.text} {claim.evidence}")
    scale = task.scale
    facts = [f"model {task.model.name}", f"data {' and '.join(task.data)}", f"{scale.profiled} training, {scale.validated} validation and {scale.tested} test samples of each task",
             f"seed {task.seed}"]
    write_findings(figures, task.out)
    return write_page(figures, "Tell your model where to attend, on your model", facts, task.out / "index.html")


@dataclass(frozen=True)
class _Study:
    """What the tables share, each computed once: profiles, the choices made on validation samples, and the answers to test samples."""

    task: Task

    @cached_property
    def rankings(self) -> dict[str, Ranking]:
        """Of each task, by steering every head alone (Algorithm 1)."""
        found = {}
        for name in TASKS:
            samples = task_samples(self._data("train", self.task.scale.profiled, (name,)), tasks.CATALOGUE[name], self._settings("train", self.task.scale.profiled, (name,)))
            folder = self.profile_folder(name)
            found[name] = profile(self.task.model, samples, folder, Plan(Pasta(_ALPHA), by="accuracy", max_new_tokens=tasks.CATALOGUE[name].max_new_tokens)).ranking
            write_profile(folder)
        return found

    def profile_folder(self, name: str) -> Path:
        return self.task.out / "profile" / name

    @cached_property
    def sizes(self) -> list[int]:
        """The k of the rankings."""
        count = len(next(iter(self.rankings.values())).heads)
        return sorted({max(1, round(share * count)) for share in self.task.scale.shares})

    def candidates(self, strategy: str, name: str) -> list[HeadSet]:
        """The different head sets of a strategy for a task, one per k; where none of these k gives any, of the least k that does."""
        ranked = [self.rankings[one] for one in TASKS if strategy != "task-agnostic" or one != name]
        found: list[HeadSet] = []
        for k in (*self.sizes, *range(self.sizes[-1] + 1, len(ranked[0].heads) + 1)):
            if found and k > self.sizes[-1]:
                break
            try:
                heads = self.rankings[name].top(k) if strategy == "task-specific" else (union if strategy == "union" else intersection)(ranked, k)
            except UsageError:  # none in common among the best k
                continue
            if heads not in found:
                found.append(heads)
        return found

    @cached_property
    def heads(self) -> dict[tuple[str, str], HeadSet]:
        """By strategy and task, the set that does best on validation samples: of the task itself, or, task-agnostic, of the three others."""
        wanted: dict[str, list[HeadSet]] = {name: [] for name in TASKS}
        for name in TASKS:
            for strategy in STRATEGIES:
                for one in TASKS:
                    if (one != name) == (strategy == "task-agnostic"):
                        wanted[one] += self.candidates(strategy, name)
        scores = {name: self._validate("heads", name, [_pasta(heads) for heads in dict.fromkeys(wanted[name])]) for name in TASKS}
        chosen = {}
        for name in TASKS:
            for strategy in STRATEGIES:
                judges = [one for one in TASKS if (one != name) == (strategy == "task-agnostic")]
                means = {heads: np.mean([scores[one][_pasta(heads)] for one in judges]) for heads in self.candidates(strategy, name)}
                chosen[strategy, name] = max(means, key=means.__getitem__)
        return chosen

    @cached_property
    def knobs(self) -> dict[tuple[str, str], Method]:
        """By method and task, the best on validation samples: on all heads, and split-softmax on PASTA's."""
        chosen = {}
        for name in TASKS:
            heads = self.heads["multi-task", name]
            options = _KNOBS | {"split-softmax": tuple(SplitSoftmax(exponent, heads=heads) for exponent in _EXPONENTS)}
            scores = self._validate("knobs", name, [method for some in options.values() for method in some])
            for kind, some in options.items():
                chosen[kind, name] = max(some, key=scores.__getitem__)
        return chosen

    def methods(self, name: str) -> dict[str, Method]:
        """By row of Table 1, what steers a task."""
        rows: dict[str, Method] = {f"PASTA, {strategy}": _pasta(self.heads[strategy, name]) for strategy in STRATEGIES}
        return rows | {_TOLD[kind]: method for (kind, one), method in self.knobs.items() if one == name}

    @cached_property
    def tested(self) -> dict[str, dict[str, Result]]:
        """By task and row of Table 1, the answers to test samples."""
        found = {}
        for name in TASKS:
            steered = self.methods(name)
            answers = self.ask("test", name, steered.values(), baselines=tasks.BASELINES, generate=True)
            found[name] = {_PROMPTS[one]: answers[one] for one in tasks.BASELINES} | {row: answers[spell([method])] for row, method in steered.items()}
        return found

    def ask(
        self, folder: str, name: str, methods: Iterable[Method], *, baselines: Sequence[str] = (ZERO_SHOT,), instruction: str = "original",
        generate: bool = False, split: str = "test", model: LocalModel | None = None,
    ) -> dict[str, Result]:  # fmt: skip
        """By baseline or spelling, the answers to one task's samples."""
        count = {"test": self.task.scale.tested, "validation": self.task.scale.validated}[split]
        settings = replace(self._settings(split, count, (name,)), instruction=instruction, baselines=tuple(baselines), draws=self.task.scale.draws, generate=generate)
        distinct = {spell([method]): [method] for method in methods}
        run = tasks.run(model or self.task.model, self._data(split, count, (name,)), self.task.out / folder / name, settings, list(distinct.values()))
        return {result.variant: result for result in read_results(run)}

    def _validate(self, folder: str, name: str, methods: Sequence[Method]) -> dict[Method, float]:
        """The mean over validation samples; what is excluded for its fluency stands behind all others."""
        found = self.ask(f"validation-{folder}", name, methods, split="validation")
        results = {method: found[spell([method])] for method in methods}
        return {method: -1.0 if one.excluded else float(np.mean(_values(one))) for method, one in results.items()}

    def _settings(self, split: str, count: int, names: tuple[str, ...]) -> tasks.Settings:
        return tasks.Settings(names, count, split, seed=self.task.seed, batch=_BATCH)

    def _data(self, split: str, count: int, names: tuple[str, ...]) -> tasks.Data:
        return tasks.load_data(self.task.data, self._settings(split, count, names))


_PROMPTS = {"zero-shot": "zero-shot", "marked": "*-marked", "quoted": "“”-marked", "few-shot": "few-shot"}
_TOLD = {"boost": "Boost, all heads", "spotlight": "Spotlight, all heads", "split-softmax": "split-softmax, the same heads"}


def _pasta(heads: HeadSet | None) -> Pasta:
    return Pasta(_ALPHA, heads)


def _values(result: Result) -> np.ndarray:
    """[sample]: the mean of the metrics that it has."""
    rows = np.array(list(result.scores.values()))
    return np.nanmean(rows, axis=0)


def _average(study: _Study, row: str) -> np.ndarray | None:
    """[sample number]: the mean over the tasks; None where a task lacks the row, or it is excluded for its fluency."""
    found = [results.get(row) for results in study.tested.values()]
    if any(one is None or one.excluded for one in found):
        return None
    return np.mean([_values(one) for one in found if one], axis=0)


def _ahead(study: _Study, first: str, second: str) -> Estimate:
    one, other = _average(study, first), _average(study, second)
    return Estimate(0, None, None, None, None) if one is None or other is None else paired_difference(one, other)


def _claim(study: _Study, text: str, first: str, second: str, sign: int = +1) -> Claim:
    found = _ahead(study, first, second)
    return Claim(text, judge(found, sign), f"Average of the tasks, {first} less {second}: {spelled(found)}.")


def _rows(study: _Study, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """A table in the paper's form: each task's metrics in percent, the average, and what it has more than zero-shot."""
    head = ["", *(f"{name}: {' / '.join(tasks.CATALOGUE[name].metrics)}" for name in TASKS), "average", "less zero-shot [95 % interval]"]
    rows = [tuple(head)]
    for row in names:
        cells = [_cell(study.tested[name].get(row)) for name in TASKS]
        values, more = _average(study, row), _ahead(study, row, "zero-shot")
        rows.append((row, *cells, "–" if values is None else f"{100 * values.mean():.1f}", "" if row == "zero-shot" else _points(more)))
    return tuple(rows)


def _cell(result: Result | None) -> str:
    if result is None:
        return "–"
    told = " / ".join(f"{100 * float(np.nanmean(values)):.1f}" for values in result.scores.values())
    return f"{told} (excluded: fluency {result.fluency:.2f})" if result.excluded else told


def _points(found: Estimate) -> str:
    if found.mean is None:
        return "–"
    return f"{100 * found.mean:+.1f}" + (f" [{100 * found.low:+.1f}, {100 * found.high:+.1f}]" if found.low is not None and found.high is not None else "")


def table_1(study: _Study) -> Figure:
    """Methods by task (Tables 1 and 2, which differ in the model)."""
    rows = list(dict.fromkeys(row for results in study.tested.values() for row in results))
    return Figure(
        "1", "methods by task (Tables 1 and 2 of the paper)",
        "PASTA at alpha 0.01, its heads chosen on validation samples. Below: methods that the paper does not have, each at its best validated knob.", (), (
            _claim(study, "multi-task PASTA beats zero-shot prompting on the average of the tasks.", "PASTA, multi-task", "zero-shot"),
            _claim(study, "it beats few-shot prompting too.", "PASTA, multi-task", "few-shot"),
            _claim(study, "task-agnostic PASTA, profiled on the three other tasks, beats few-shot prompting.", "PASTA, task-agnostic", "few-shot"),
            _claim(study, "few-shot is a stronger baseline than zero-shot.", "few-shot", "zero-shot"),
            _claim(study, "asterisks around what matters make it worse.", "*-marked", "zero-shot", -1),
            _claim(study, "so do quotes.", "“”-marked", "zero-shot", -1),
        ), "Table", _rows(study, rows),
    )


def table_4(study: _Study) -> Figure:
    """The instruction in other words."""
    rows, claims = [("instruction", "method", *(f"{name}: {' / '.join(tasks.CATALOGUE[name].metrics)}" for name in _FREE))], []
    spread: dict[str, list[float]] = {"zero-shot": [], "PASTA": []}
    for wording in ("original", "shortened", "rephrased"):
        answers = {}
        for name in _FREE:
            method = _pasta(study.heads["multi-task", name])
            found = study.ask(f"table-4-{wording}", name, [method], instruction=wording)
            answers[name] = {"zero-shot": found[ZERO_SHOT], "PASTA": found[spell([method])]}
        for row in spread:
            rows.append((wording, row, *(_cell(answers[name][row]) for name in _FREE)))
            spread[row].append(float(np.mean([_values(answers[name][row]).mean() for name in _FREE])))
        gain = estimate(np.mean([_values(answers[name]["PASTA"]) - _values(answers[name]["zero-shot"]) for name in _FREE], axis=0))
        claims.append(Claim(f"with the {wording} instruction, PASTA improves on zero-shot.", judge(gain, +1), f"Mean of both tasks: {spelled(gain)}."))
    ranges = {row: max(values) - min(values) for row, values in spread.items()}
    evidence = f"Best less worst wording: zero-shot {ranges['zero-shot']:.3f}, PASTA {ranges['PASTA']:.3f} (two numbers have no interval)."
    claims.append(Claim("PASTA makes a model less sensitive to how the instruction is worded.", UNDECIDED, evidence))
    return Figure("4", "the instruction in other words", "The heads of Table 1, multi-task.", (), tuple(claims), "Table", tuple(rows))


def table_5(study: _Study) -> Figure:
    """How heads are chosen."""
    return Figure(
        "5", "ways to choose the heads", "k of each way chosen on validation samples.", (), (
            _claim(study, "heads that all tasks share (multi-task) do better than the heads of any (union).", "PASTA, multi-task", "PASTA, union"),
            _claim(study, "heads of the task itself do at least as well as shared ones.", "PASTA, task-specific", "PASTA, multi-task"),
        ), "Table", _rows(study, ["zero-shot", "PASTA, task-specific", "PASTA, union", "PASTA, multi-task"]),
    )


def table_7(study: _Study) -> Figure:
    """How many heads."""
    shape = study.task.model.shape
    count, low, high = shape.layers * shape.heads, *_MODERATE
    rows = [("task", *STRATEGIES)]
    rows += [(name, *(str(len(study.heads[strategy, name])) for strategy in STRATEGIES)) for name in TASKS]
    shares = [len(heads) / count for (strategy, _), heads in study.heads.items() if strategy == "multi-task"]
    inside = [low <= share <= high for share in shares]
    verdict = SUPPORTED if all(inside) else UNDECIDED if any(inside) else CONTRADICTED
    evidence = f"Of {count} heads: {', '.join(f'{share:.0%}' for share in shares)} (we call {low:.0%} to {high:.0%} moderate)."
    return Figure("7", "how many heads are steered", "", (), (Claim("a moderate number of heads is best, about 5 % to 15 % of all.", verdict, evidence),), "Table", tuple(rows))


def table_11(study: _Study) -> Figure:
    """Few-shot prompting by draw of the demonstrations."""
    result = study.tested["pronouns"]["few-shot"]
    names = list(result.scores)
    rows = [("demonstrations", *names), *((str(number), *(f"{100 * draw[name]:.1f}" for name in names)) for number, draw in enumerate(result.draws, 1))]
    records = [one for one in read_run(study.task.out / "test" / "pronouns").records if one["variant"] == "few-shot"]
    values = np.full((study.task.scale.tested, len(result.draws)), np.nan)
    for one in records:
        values[one["conversation"], one["draw"] - 1] = np.mean(list(one["scores"].values()))
    found = _best_less_worst(values)
    claim = Claim("few-shot prompting varies much with its demonstrations.", judge(found, +1), f"{_HALVES}: {spelled(found)}.")
    return Figure("11", "few-shot prompting by draw of the demonstrations", "Pronouns changing.", (), (claim,), "Table", tuple(rows))


_HALVES = "Best less worst, both picked on one half of the samples and compared on the other"


def _best_less_worst(values: np.ndarray) -> Estimate:
    """Of [sample, option], without the bias of picking extremes where they are measured."""
    half = len(values) // 2
    means = values[:half].mean(0)
    return estimate(values[half:, means.argmax()] - values[half:, means.argmin()])


def table_13(study: _Study) -> Figure:
    """The heads of a model on a child of it."""
    title, texts = "heads of the model on a child of it, without profiling it", (
        "the parent's multi-task heads improve on the child's zero-shot.", "the parent's task-specific heads improve on it too.")
    child = study.task.child
    if child is None:
        try:
            child = make_child(study.task.model, study.task.out / "child", study.task.scale.steps, study.task.seed)
        except UsageError as error:
            return Figure("13", title, "Not run.", (), tuple(Claim(text, UNDECIDED, str(error)) for text in texts), "Table")
    rows = [("", *(f"{name}: {' / '.join(tasks.CATALOGUE[name].metrics)}" for name in TASKS))]
    found: dict[str, list[Result]] = {"zero-shot": [], "multi-task": [], "task-specific": []}
    for name in TASKS:
        steered = {strategy: _pasta(study.heads[strategy, name]) for strategy in ("multi-task", "task-specific")}
        answers = study.ask("table-13", name, steered.values(), model=child)
        found["zero-shot"].append(answers[ZERO_SHOT])
        for strategy, method in steered.items():
            found[strategy].append(answers[spell([method])])
    rows += [(f"child, {row}", *map(_cell, results)) for row, results in found.items()]
    claims = []
    for text, strategy in zip(texts, ("multi-task", "task-specific"), strict=True):
        gain = estimate(np.mean([_values(one) - _values(zero) for one, zero in zip(found[strategy], found["zero-shot"], strict=True)], axis=0))
        claims.append(Claim(text, judge(gain, +1), f"Average of the tasks: {spelled(gain)}."))
    how = f"{child.name}." if study.task.child else f"The model fine-tuned for {study.task.scale.steps} steps on the tasks' training samples."
    return Figure("13", title, how, (), tuple(claims), "Table", tuple(rows))


def table_14(study: _Study) -> Figure:
    """Fewer samples to profile on."""
    scale = study.task.scale
    ranked = {scale.profiled: study.rankings["json"], scale.fewer: rank_first(study.profile_folder("json"), scale.fewer)}
    k = len(study.heads["task-specific", "json"])
    steered = {count: _pasta(ranking.top(k)) for count, ranking in ranked.items()}
    answers = study.ask("table-14", "json", steered.values())
    zero = answers[ZERO_SHOT]
    results = {count: answers[spell([method])] for count, method in steered.items()}
    rows = [("profiled on", "json: " + " / ".join(zero.scores)), ("zero-shot", _cell(zero)), *((f"{count} samples", _cell(one)) for count, one in results.items())]
    gain, loss = (paired_difference(_values(results[scale.fewer]), _values(one)) for one in (zero, results[scale.profiled]))
    claim = Claim(f"profiled on {scale.fewer} samples instead of {scale.profiled}, PASTA still improves on zero-shot.", judge(gain, +1),
                  f"Less zero-shot {spelled(gain)}; less the heads of {scale.profiled} samples {spelled(loss)}.")
    return Figure("14", "fewer samples to profile on", f"JSON formatting, the best {k} heads.", (), (claim,), "Table", tuple(rows))


def figure_2(study: _Study) -> Figure:
    """All heads, a layer, one head (Figures 2, 4, 5 and 6, one per task)."""
    layers, heads = study.task.model.shape.layers, study.task.model.shape.heads
    images, claims = [], []
    for name in TASKS:
        whole = {layer: _pasta(HeadSet((layer, head) for head in range(heads))) for layer in range(layers)}
        pasta = _pasta(study.heads["multi-task", name])
        answers = study.ask("figure-2", name, [*whole.values(), _pasta(None), pasta])
        zero = _values(answers[ZERO_SHOT])
        gains = {method: paired_difference(_values(answers[spell([method])]), zero) for method in (*whole.values(), _pasta(None), pasta)}
        records = read_run(study.profile_folder(name)).records
        single = np.array([[[one["scores"][f"{layer}.{head}"] - one["scores"][UNSTEERED] for head in range(heads)] for layer in range(layers)] for one in records])
        lines = {"PASTA, multi-task": gains[pasta], "all heads": gains[_pasta(None)]}
        images += write_single_heads(name, single.mean(0), [gains[method] for method in whole.values()], lines, study.task.out / "figures" / f"2-{name}")
        ahead = paired_difference(_values(answers[spell([pasta])]), _values(answers[spell([_pasta(None)])]))
        claims += [
            Claim(f"{name}: steering all heads is worse than steering none.", judge(gains[_pasta(None)], -1), f"All heads less zero-shot: {spelled(gains[_pasta(None)])}."),
            Claim(f"{name}: steering the profiled heads is better than all.", judge(ahead, +1), f"Multi-task PASTA less all heads: {spelled(ahead)}."),
        ]
        spread = _best_less_worst(single.reshape(len(single), -1))
        claims.append(Claim(f"{name}: what one head gives varies much between heads.", judge(spread, +1), f"{_HALVES}: {spelled(spread)}."))
    how = "Change against zero-shot: single heads on the training samples they are profiled on, everything else on test samples."
    return Figure("2", "all heads, an entire layer, a single head (Figures 2, 4, 5 and 6 of the paper)", how, tuple(images), tuple(claims))


def figure_3(study: _Study) -> Figure:
    """How many heads, and how strongly."""
    images, claims = [], []
    for name in _FREE:
        options = study.candidates("multi-task", name)
        alphas = {alpha: Pasta(alpha, study.heads["multi-task", name]) for alpha in study.task.scale.alphas}
        answers = study.ask("figure-3", name, [*map(_pasta, options), *alphas.values()], generate=True)
        by_size = {len(heads): answers[spell([_pasta(heads)])] for heads in options}
        by_alpha = {alpha: answers[spell([method])] for alpha, method in alphas.items()}
        images += write_sizes(name, by_size, study.task.out / "figures" / f"3-{name}")
        images += write_alphas(name, by_alpha, study.task.out / "figures" / f"3-{name}-alpha")
        asked = next(iter(answers[ZERO_SHOT].scores))
        if len(by_size) > 1:
            least, most = min(by_size), max(by_size)
            more = paired_difference(by_size[most].scores[asked], by_size[least].scores[asked])
            claims.append(Claim(f"{name}: the more heads, the more closely the instruction is followed.", judge(more, +1), f"{asked.capitalize()}, {most} heads less {least}: {spelled(more)}."))
        if len(by_size) > 2 and name == "json":
            middle = sorted(by_size)[len(by_size) // 2]
            lost = paired_difference(by_size[most].scores["prediction"], by_size[middle].scores["prediction"])
            claims.append(Claim("json: too many heads cost the quality of the answer.", judge(lost, -1), f"Prediction, {most} heads less {middle}: {spelled(lost)}."))
        strong, weak = (by_alpha[alpha].scores[asked] for alpha in (min(by_alpha), max(by_alpha)))
        change = paired_difference(strong, weak)
        claims.append(Claim(f"{name}: alpha hardly matters from {max(by_alpha):g} to {min(by_alpha):g}.", _robust(change),
                            f"{asked.capitalize()} at {min(by_alpha):g} less that at {max(by_alpha):g}: {spelled(change)} (we call an interval within {_ROBUST} robust)."))
    return Figure("3", "how many heads, and how strongly they are steered", "Heads shared by the best k of all tasks, for every k; alpha on the heads of Table 1.", tuple(images), tuple(claims))


def _robust(found: Estimate) -> str:
    if found.low is None or found.high is None:
        return UNDECIDED
    if max(abs(found.low), abs(found.high)) <= _ROBUST:
        return SUPPORTED
    return CONTRADICTED if found.low > _ROBUST or found.high < -_ROBUST else UNDECIDED


def scale_of(name: str) -> Scale:
    """The scale of that name.

    Raises:
        UnknownName: there is none.
    """
    if name not in SCALES:
        raise UnknownName("scale", name, SCALES)
    return SCALES[name]


def check(task: Task) -> None:
    """Refuses what cannot be reproduced, before anything runs.

    Raises:
        UsageError: an endpoint, a child that is the model itself or of another shape, or data that lacks samples.
        ModelError: attention that cannot be steered.
    """
    if not hasattr(task.model, "hf_model"):
        raise UsageError(f"{task.model.name} is an endpoint, whose heads cannot be steered; give a local --model.")
    task.model.check([_pasta(None)])
    if task.child is not None and task.child.fingerprint == task.model.fingerprint:
        raise UsageError(f"The child is {task.model.name} itself; give a model that was trained further.")
    if task.child is not None and (task.child.shape.layers, task.child.shape.heads) != (task.model.shape.layers, task.model.shape.heads):
        raise UsageError(f"{task.child.name} has {task.child.shape.layers} layers of {task.child.shape.heads} heads, and {task.model.name} "
                         f"{task.model.shape.layers} of {task.model.shape.heads}; heads serve a child of the same shape.")
    for split, count in (("train", task.scale.profiled), ("validation", task.scale.validated), ("test", task.scale.tested)):
        settings = tasks.Settings(TASKS, count, split, seed=task.seed)
        data = tasks.load_data(task.data, settings)
        for name in TASKS:
            tasks.draw_samples(data, tasks.CATALOGUE[name], settings)
