"""The scales of the reproduction, and its setup: the model, the data and the folder."""

from collections.abc import Callable, Sequence
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
class Zhang2024Scale:
    """The size of a reproduction, in samples of each task.

    Attributes:
        profile_samples: training samples on which heads are ranked; the paper has 1,000.
        fewer_samples: the fewer training samples of Table 14; the paper has 200.
        validation_samples: on which heads and parameters are chosen.
        test_samples: the paper has 5,000.
        draws: of few-shot demonstrations.
        shares: the k of the rankings, as shares of all heads.
        alphas: of Figure 3.
        choice_factor: a factor on `profile_samples` for the tasks that compare continuations,
            which costs far less than generating replies.
    """

    profile_samples: int
    fewer_samples: int
    validation_samples: int
    test_samples: int
    draws: int
    shares: tuple[float, ...]
    alphas: tuple[float, ...] = (0.05, 0.01, 0.002, 1e-3, 1e-4)
    choice_factor: int = 1

    def profile_samples_of(self, task: str) -> int:
        """The number of training samples on which heads are ranked for a task."""
        factor = self.choice_factor if tasks.CATALOGUE[task].chooses else 1
        return self.profile_samples * factor


SCALES = {
    "smallest": Zhang2024Scale(
        profile_samples=4,
        fewer_samples=2,
        validation_samples=4,
        test_samples=6,
        draws=2,
        shares=(0.25, 0.75),
        alphas=(0.05, 1e-4),
    ),
    "brief": Zhang2024Scale(
        profile_samples=8,
        fewer_samples=4,
        validation_samples=24,
        test_samples=64,
        draws=2,
        shares=(0.05, 0.15, 0.4),
        choice_factor=4,
    ),
    "small": Zhang2024Scale(
        profile_samples=128,
        fewer_samples=24,
        validation_samples=64,
        test_samples=200,
        draws=5,
        shares=(0.0625, 0.125, 0.25, 0.375, 0.5, 0.625, 0.75),
    ),
    "paper": Zhang2024Scale(
        profile_samples=1000,
        fewer_samples=200,
        validation_samples=1000,
        test_samples=5000,
        draws=5,
        shares=(0.01, 0.025, 0.05, 0.1, 0.25, 0.3, 0.4, 0.5, 0.6),
    ),
}


@dataclass(frozen=True)
class Zhang2024Setup:
    """The model, the scale and the folder of a reproduction."""

    model: LocalModel
    out: Path  # the folder of all runs, figures and the page
    scale: Zhang2024Scale
    seed: int = 0  # of samples and demonstrations
    data: tuple[str, ...] = (tasks.SYNTHETIC,)  # as `holdfast tasks --data` takes it
    notify: Callable[[str], None] = lambda line: None  # receives a line per claim
    watch: Watch = ignore_steps  # notified of every long step, in samples
    tasks: tuple[str, ...] = TASKS  # the tasks to run

    @property
    def strategies(self) -> tuple[str, ...]:
        """The ways to choose heads; a single task, which shares heads with none, has two."""
        return STRATEGIES if len(self.tasks) > 1 else ("multi-task", "task-specific")

    @property
    def instruction_tasks(self) -> tuple[str, ...]:
        """The tasks whose instruction is emphasised, which Table 4 and Figure 3 are about."""
        return tuple(name for name in self.tasks if not tasks.CATALOGUE[name].chooses)


def check(setup: Zhang2024Setup) -> None:
    """Refuses a setup that cannot be reproduced, before anything runs."""
    require_layers(setup.model, "layers, whose heads are to be steered one by one")
    setup.model.check([pasta_on(None)])
    check_samples(setup.data, setup.tasks, setup.scale, setup.seed)


def check_samples(
    paths: Sequence[str], names: Sequence[str], scale: Zhang2024Scale, seed: int
) -> None:
    """Refuses wrong tasks, and data that cannot be read or have too few samples for the scale.

    Args:
        paths: the data, as `holdfast tasks --data` takes them.
        names: the tasks.
    """
    names = tuple(names)
    tasks.Settings(names)  # refuses unknown tasks
    counts = {
        "train": max(map(scale.profile_samples_of, names)),
        "validation": scale.validation_samples,
        "test": scale.test_samples,
    }
    for split, count in counts.items():
        settings = tasks.Settings(names, count, split, seed=seed)
        data = tasks.load_data(paths, settings)
        for name in names:
            tasks.draw_samples(data, tasks.CATALOGUE[name], settings)


def pasta_on(heads: HeadSet | None) -> Pasta:
    """PASTA on these heads (None: all), at the alpha of the paper's tables."""
    return Pasta(ALPHA, heads)
