"""The scales of the reproduction, and what it runs on: the model, the data and the folder."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from holdfast.drift.progress import Watch, ignore_steps
from holdfast.methods import HeadSet, Pasta
from holdfast.models.capabilities import require_layers
from holdfast.models.local import LocalModel
from holdfast.papers import zhang2024 as tasks

TASKS = tuple(tasks.CATALOGUE)
STRATEGIES = ("multi-task", "task-agnostic", "task-specific", "union")
ALPHA = 0.01


@dataclass(frozen=True)
class Scale:
    """The size of a reproduction."""

    profiled: int  # training samples of each task that heads are ranked on; the paper has 1,000
    fewer: int  # the fewer samples of Table 14; the paper has 200
    validated: int  # validation samples of each task that heads and parameters are chosen on
    tested: int  # test samples of each task; the paper has 5,000
    draws: int  # of few-shot demonstrations
    shares: tuple[float, ...]  # the k of the rankings, as shares of all heads
    alphas: tuple[float, ...] = (0.05, 0.01, 0.002, 1e-3, 1e-4)  # of Figure 3
    # factor on `profiled` for the tasks that compare continuations, which costs far less than
    # generating replies
    times: int = 1

    def profiled_of(self, task: str) -> int:
        """Training samples that heads are ranked on for a task."""
        return self.profiled * (self.times if tasks.CATALOGUE[task].chooses else 1)


SCALES = {
    "smallest": Scale(
        profiled=4,
        fewer=2,
        validated=4,
        tested=6,
        draws=2,
        shares=(0.25, 0.75),
        alphas=(0.05, 1e-4),
    ),
    "brief": Scale(
        profiled=8,
        fewer=4,
        validated=24,
        tested=64,
        draws=2,
        shares=(0.05, 0.15, 0.4),
        times=4,
    ),
    "small": Scale(
        profiled=128,
        fewer=24,
        validated=64,
        tested=200,
        draws=5,
        shares=(0.0625, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75),
    ),
    "paper": Scale(
        profiled=1000,
        fewer=200,
        validated=1000,
        tested=5000,
        draws=5,
        shares=(0.01, 0.025, 0.05, 0.1, 0.25, 0.3, 0.4, 0.5, 0.6),
    ),
}


@dataclass(frozen=True)
class Setup:
    """The model, the scale and the folder of a reproduction."""

    model: LocalModel
    out: Path  # the folder of all runs, figures and the page
    scale: Scale
    seed: int = 0  # of samples and demonstrations
    data: tuple[str, ...] = (tasks.SYNTHETIC,)  # as `holdfast tasks --data` takes it
    notify: Callable[[str], None] = lambda line: None  # receives a line per claim
    watch: Watch = ignore_steps  # notified of every long step, in samples
    tasks: tuple[str, ...] = TASKS  # those to run

    @property
    def strategies(self) -> tuple[str, ...]:
        """The ways to choose heads; two for a single task, which shares heads with no other."""
        return STRATEGIES if len(self.tasks) > 1 else ("multi-task", "task-specific")

    @property
    def free(self) -> tuple[str, ...]:
        """The tasks of Table 4 and Figure 3: those whose instruction is emphasised."""
        return tuple(name for name in self.tasks if not tasks.CATALOGUE[name].chooses)


def check(setup: Setup) -> None:
    """Refuses what cannot be reproduced, before anything runs."""
    tasks.Settings(setup.tasks)  # refuses unknown tasks
    require_layers(setup.model, "layers, whose heads are to be steered one by one")
    setup.model.check([pasta_on(None)])
    counts = {
        "train": max(map(setup.scale.profiled_of, setup.tasks)),
        "validation": setup.scale.validated,
        "test": setup.scale.tested,
    }
    for split, count in counts.items():
        settings = tasks.Settings(setup.tasks, count, split, seed=setup.seed)
        data = tasks.load_data(setup.data, settings)
        for name in setup.tasks:
            tasks.draw_samples(data, tasks.CATALOGUE[name], settings)


def pasta_on(heads: HeadSet | None) -> Pasta:
    """PASTA on these heads (None: all), at the alpha of the paper's tables."""
    return Pasta(ALPHA, heads)
