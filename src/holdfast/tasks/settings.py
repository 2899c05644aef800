"""Which tasks there are, and what of them is asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast import knobs
from holdfast.errors import UnknownName, UsageError
from holdfast.tasks import bias_in_bios, counterfact, json_format, pronouns
from holdfast.tasks.sample import INSTRUCTIONS, SPLITS, Task

CATALOGUE: dict[str, Task] = {
    task.name: task
    for task in (json_format.TASK, pronouns.TASK, bias_in_bios.TASK, counterfact.TASK)
}
BASELINES = ("zero-shot", "marked", "quoted", "few-shot")


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


def _refuse_unknown(kind: str, chosen: Sequence[str], known: Iterable[str]) -> None:
    for name in chosen:
        if name not in known:
            raise UnknownName(kind, name, known)
        if chosen.count(name) > 1:
            raise UsageError(f"The {kind} {name!r} is given twice; give it once.")
