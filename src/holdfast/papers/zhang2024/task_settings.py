"""The settings of a run, and the rows of its table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast.errors import UnknownName, UsageError
from holdfast.methods import Method, spec_of
from holdfast.papers.zhang2024.catalogue import CATALOGUE
from holdfast.papers.zhang2024.data import INSTRUCTIONS, SPLITS
from holdfast.validation import ranges

BASELINES = ("zero-shot", "marked", "quoted", "few-shot")


@dataclass(frozen=True)
class TaskSettings:
    """The samples of a run, and how they are asked.

    Args:
        tasks: names from `CATALOGUE`.
        samples: the number of samples per task.
        split: one of `SPLITS`.
        instruction: one of `INSTRUCTIONS` (Table 4); Bias in Bios and CounterFact have only the
            original.
        baselines: prompts for the unsteered model (the paper's section 4), from `BASELINES`.
        demonstrations: the number of demonstrations in a few-shot prompt.
        draws: how often demonstrations are drawn; each draw is a result of its own, as few-shot
            prompting varies with them (Table 11).
        seed: of samples and demonstrations.
        batch: how many samples run side by side; it is fixed, so that repeated runs do the same
            arithmetic.
        generate: whether tasks that compare continuations also generate a reply, to measure its
            fluency.

    Raises:
        ParameterOutOfRange: a number outside its range.
        UsageError: an unknown or repeated choice, or an instruction that a task does not have.
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
            ranges.whole_number("tasks", name, getattr(self, name), 1)
        ranges.whole_number("tasks", "seed", self.seed, 0)
        _refuse_unknown("task", self.tasks, CATALOGUE)
        _refuse_unknown("baseline", self.baselines, BASELINES)
        _refuse_unknown("split", (self.split,), SPLITS)
        _refuse_unknown("instruction", (self.instruction,), INSTRUCTIONS)
        if not self.tasks:
            raise UsageError(f"No task is given; give at least one of {', '.join(CATALOGUE)}.")
        for name in self.tasks:
            if self.instruction not in CATALOGUE[name].instructions:
                raise UsageError(
                    f"The task {name} has no {self.instruction} instruction; ask it with the"
                    " original one, or leave it out."
                )


def _refuse_unknown(kind: str, names: Sequence[str], known_names: Iterable[str]) -> None:
    """Refuses names that are unknown or given twice."""
    if isinstance(names, str):
        raise UsageError(f"Give {kind}s as a tuple, as in ({names!r},), not as a string.")
    for name in names:
        if name not in known_names:
            raise UnknownName(kind, name, known_names)
        if names.count(name) > 1:
            raise UsageError(
                f"The {kind} {name!r} is given twice; give it once.", option=kind, value=name
            )


@dataclass(frozen=True)
class Variant:
    """A row of the table: a prompt for the unsteered model, or steering of the zero-shot prompt."""

    name: str  # a baseline, or the spec string of the methods
    methods: tuple[Method, ...] = ()
    draw: int = 0  # of the demonstrations, counted from 1; 0 without any

    def key(self, task: str) -> str:
        """The name of this row in records."""
        return " ".join(part for part in (task, self.name, str(self.draw or "")) if part)


def variants_of(settings: TaskSettings, methods: Sequence[Sequence[Method]] = ()) -> list[Variant]:
    """The rows of the table: baselines, with a row for each draw of demonstrations, then methods.

    Raises:
        UsageError: a method is given twice, or there is neither a baseline nor a method.
    """
    variants: list[Variant] = []
    for name in settings.baselines:
        if name == "few-shot":
            variants += [Variant(name, draw=draw) for draw in range(1, settings.draws + 1)]
        else:
            variants.append(Variant(name))
    variants += [Variant(spec_of(steering), tuple(steering)) for steering in methods if steering]
    # an empty list of methods is the zero-shot baseline by another name
    if not all(methods) and "zero-shot" not in settings.baselines:
        variants.insert(0, Variant("zero-shot"))
    keys = [(variant.name, variant.draw) for variant in variants]
    if repeated_names := [name for name, draw in keys if keys.count((name, draw)) > 1]:
        raise UsageError(
            f"The method {repeated_names[0]!r} is given twice; give it once.",
            option="method",
            value=repeated_names[0],
        )
    if not variants:
        raise UsageError(
            "Neither a baseline nor a method is given; give at least one of"
            f" {', '.join(BASELINES)}.",
            option="baselines",
            allowed=BASELINES,
        )
    return variants
