"""The settings of a run, the rows of its table, and the samples that it draws."""

import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast import methods as steering
from holdfast.chat.messages import Message
from holdfast.errors import UnknownName, UsageError
from holdfast.generation.sampling import Sampling
from holdfast.methods import Method, compile_methods
from holdfast.models.requests import Request
from holdfast.papers.zhang2024.catalogue import CATALOGUE
from holdfast.papers.zhang2024.data import (
    BIOGRAPHIES,
    INSTRUCTIONS,
    SPLITS,
    Data,
    Sample,
    Task,
    spans_of,
)
from holdfast.papers.zhang2024.published_data import load_files
from holdfast.papers.zhang2024.synthetic import TextShape, make_data
from holdfast.seeds import seed_of
from holdfast.validation import ranges

BASELINES = ("zero-shot", "marked", "quoted", "few-shot")


@dataclass(frozen=True)
class TaskSettings:
    """The samples of a run, and how they are asked.

    Args:
        tasks: names from `CATALOGUE`.
        samples: per task.
        split: one of `SPLITS`.
        instruction: one of `INSTRUCTIONS` (Table 4); Bias in Bios and CounterFact have only the
            original.
        baselines: prompts for the unsteered model (the paper's section 4), from `BASELINES`.
        demonstrations: in a few-shot prompt.
        draws: of demonstrations; each is a separate result, as few-shot prompting varies with them
            (Table 11).
        seed: of samples and demonstrations.
        batch: samples that run side by side; a fixed number, so that repeated runs do the same
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


def _refuse_unknown(kind: str, chosen: Sequence[str], known: Iterable[str]) -> None:
    if isinstance(chosen, str):
        raise UsageError(f"Give {kind}s as a tuple, as in ({chosen!r},), not as a string.")
    for name in chosen:
        if name not in known:
            raise UnknownName(kind, name, known)
        if chosen.count(name) > 1:
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
    """The distinct rows of the table: baselines, each draw of demonstrations, then methods."""
    variants = [
        Variant(name, draw=draw)
        for name in settings.baselines
        for draw in (range(1, settings.draws + 1) if name == "few-shot" else (0,))
    ]
    variants += [Variant(steering.spec_of(chosen), tuple(chosen)) for chosen in methods if chosen]
    # an empty list of methods is the zero-shot baseline by another name
    if not all(methods) and "zero-shot" not in settings.baselines:
        variants.insert(0, Variant("zero-shot"))
    names = [(variant.name, variant.draw) for variant in variants]
    if doubled := next((name for name, draw in names if names.count((name, draw)) > 1), None):
        raise UsageError(
            f"The method {doubled!r} is given twice; give it once.",
            option="method",
            value=doubled,
        )
    if not variants:
        raise UsageError(
            "Neither a baseline nor a method is given; give at least one of"
            f" {', '.join(BASELINES)}.",
            option="baselines",
            allowed=BASELINES,
        )
    return variants


def request_of(
    messages: Sequence[Message],
    emphasis: Sequence[str],
    methods: Sequence[Method],
    sampling: Sampling,
    seed: int,
) -> Request:
    """A request whose span is the emphasised parts of its last message."""
    for method in compile_methods(methods).chat_only:
        raise UsageError(
            f"{method.name} works on a system prompt, and tasks have none; give an attention"
            " method.",
            option="method",
            value=method.name,
        )
    last = len(messages) - 1  # by position, as a demonstration may contain the same words
    ranges = tuple((last, *span) for span in spans_of(messages[last]["content"], emphasis))
    return Request(tuple(messages), tuple(methods), sampling, seed, emphasis=ranges)


def user_message(content: str) -> Message:
    """A message with the role user."""
    return {"role": "user", "content": content}


SYNTHETIC = "synthetic"


def load_data(
    wheres: Sequence[str], settings: TaskSettings, shape: TextShape = TextShape()
) -> Data:
    """Loads the data for samples from paths; "synthetic" supplies the kinds they lack."""
    if wheres.count(SYNTHETIC) > 1:
        raise UsageError(
            f"--data {SYNTHETIC} is given twice; give it once.", option="data", value=SYNTHETIC
        )
    files = [where for where in wheres if where != SYNTHETIC]
    sources = [load_files(where, settings.seed) for where in files]
    items: dict[str, Any] = {}
    for source in sources:
        for kind in source.items:
            if kind in items:
                raise UsageError(
                    f"{' and '.join(wheres)} both hold {kind}; give one --data of each kind."
                )
            items[kind] = source.items[kind]
    if SYNTHETIC in wheres:
        made = make_data(settings.seed, settings.split, settings.samples, shape)
        lacking = {kind: made.items[kind] for kind in made.items if kind not in items}
        if not lacking:
            raise UsageError(
                f"{' and '.join(files)} hold biographies and changed facts, and --data synthetic"
                " has nothing to add; leave it out."
            )
        sources.append(replace(made, items=lacking))
        items |= lacking
    name = " and ".join(source.name for source in sources)
    fingerprint = "-".join(source.fingerprint for source in sources)
    candidates = next((source.candidates for source in sources if BIOGRAPHIES in source.items), ())
    return Data(name, fingerprint, items, candidates)


def draw_samples(data: Data, task: Task, settings: TaskSettings) -> list[Sample]:
    """The samples of a task, the same for every row; too few raise `UsageError`."""
    chosen = list(itertools.islice(fitting(data, task, settings.split), settings.samples))
    if len(chosen) < settings.samples:
        raise UsageError(
            f"{data.name} has {len(chosen)} {settings.split} samples for the task {task.name}, not"
            f" {settings.samples}; ask for fewer with --samples."
        )
    return [task.ask(item, settings.instruction, data.candidates) for item in chosen]


def demonstrations(data: Data, task: Task, settings: TaskSettings, draw: int) -> list[Message]:
    """Training samples with right replies as turns of a chat (section 4: three of them)."""
    # training samples that are asked are not also shown
    skipped = settings.samples if settings.split == "train" else 0
    pool = list(itertools.islice(fitting(data, task, "train"), skipped, None))
    if len(pool) < settings.demonstrations:
        raise UsageError(
            f"{data.name} has {len(pool)} training samples for demonstrations of {task.name}, and"
            f" {settings.demonstrations} are needed; give more data.",
            option="demonstrations",
            value=len(pool),
            allowed=settings.demonstrations,
        )
    rng = random.Random(seed_of("demonstrations", settings.seed, task.name, draw))
    messages: list[Message] = []
    for item in rng.sample(pool, settings.demonstrations):
        sample = task.ask(item, settings.instruction, data.candidates)
        messages.append(user_message(sample.prompts[0]))
        messages.append({"role": "assistant", "content": sample.reply})
    return messages


def fitting(data: Data, task: Task, split: str) -> Iterator[Any]:
    """The items of a split that a task can ask about."""
    if task.requires not in data.items:
        raise UsageError(
            f"The task {task.name} needs {task.requires}, and {data.name} holds"
            f" {' and '.join(data.items)}; give a --data that has them."
        )
    return filter(task.fits, data.items[task.requires].get(split, ()))
