"""The samples of a run, drawn from its data, and the requests that ask them."""

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from holdfast.chat.messages import Message
from holdfast.errors import UsageError, option
from holdfast.generation.sampling import Sampling
from holdfast.methods import Method, compile_methods
from holdfast.models.requests import Request
from holdfast.papers.zhang2024.data import BIOGRAPHIES, Data, Sample, Task, spans_of
from holdfast.papers.zhang2024.published_data import load_files
from holdfast.papers.zhang2024.synthetic import TextShape, make_data
from holdfast.papers.zhang2024.task_settings import TaskSettings
from holdfast.seeds import seed_of

SYNTHETIC = "synthetic"


def request_of(
    messages: Sequence[Message],
    emphasis: Sequence[str],
    methods: Sequence[Method],
    sampling: Sampling,
    seed: int,
) -> Request:
    """A request whose span is the emphasised parts of its last message."""
    compiled = compile_methods(methods)
    if chat_only := compiled.chat_only:
        name = chat_only[0].name
        where = "earlier replies" if compiled.spares_replies else "a system prompt"
        raise UsageError(
            f"{name} works on {where}, and tasks have none; give an attention method such as"
            " pasta:alpha=0.01.",
            option="method",
            value=name,
        )
    # by position, as a demonstration may contain the same words
    last = len(messages) - 1
    ranges = tuple((last, *span) for span in spans_of(messages[last]["content"], emphasis))
    return Request(tuple(messages), tuple(methods), sampling, seed, emphasis=ranges)


def user_message(content: str) -> Message:
    """A message with the role user."""
    return {"role": "user", "content": content}


def load_data(paths: Sequence[str], settings: TaskSettings, shape: TextShape = TextShape()) -> Data:
    """Loads the data for samples; "synthetic" as a path supplies the kinds that the others lack."""
    if paths.count(SYNTHETIC) > 1:
        raise UsageError(
            f"{option('data', SYNTHETIC)} is given twice; give it once.",
            option="data",
            value=SYNTHETIC,
        )
    files = [path for path in paths if path != SYNTHETIC]
    sources = [load_files(path, settings.seed) for path in files]
    items: dict[str, Any] = {}
    for source in sources:
        for kind in source.items:
            if kind in items:
                raise UsageError(
                    f"{' and '.join(paths)} both hold {kind}; give one {option('data')} of each"
                    " kind."
                )
            items[kind] = source.items[kind]
    if SYNTHETIC in paths:
        synthetic = make_data(settings.seed, settings.split, settings.samples, shape)
        lacking = {kind: texts for kind, texts in synthetic.items.items() if kind not in items}
        if not lacking:
            raise UsageError(
                f"{' and '.join(files)} hold biographies and changed facts, and"
                f" {option('data', SYNTHETIC)} has nothing to add; leave it out."
            )
        sources.append(replace(synthetic, items=lacking))
        items |= lacking
    name = " and ".join(source.name for source in sources)
    fingerprint = "-".join(source.fingerprint for source in sources)
    candidates = next((source.candidates for source in sources if BIOGRAPHIES in source.items), ())
    return Data(name, fingerprint, items, candidates)


def draw_samples(data: Data, task: Task, settings: TaskSettings) -> list[Sample]:
    """Draws the samples of a task, which are the same for every row of the table.

    Raises:
        UsageError: the data have too few.
    """
    items = list(itertools.islice(fitting_items(data, task, settings.split), settings.samples))
    if len(items) < settings.samples:
        raise UsageError(
            f"{data.name} has {len(items)} {settings.split} samples for the task {task.name}, not"
            f" {settings.samples}; ask for fewer {option('samples')}."
        )
    return [task.ask(item, settings.instruction, data.candidates) for item in items]


def demonstrations(data: Data, task: Task, settings: TaskSettings, draw: int) -> list[Message]:
    """Training samples with right replies as turns of a chat (section 4: three of them)."""
    # a training sample that is asked must not be a demonstration as well
    skipped = settings.samples if settings.split == "train" else 0
    pool = list(itertools.islice(fitting_items(data, task, "train"), skipped, None))
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


def fitting_items(data: Data, task: Task, split: str) -> Iterator[Any]:
    """The items of a split that a task can ask about."""
    if task.requires not in data.items:
        raise UsageError(
            f"The task {task.name} needs {task.requires}, and {data.name} holds"
            f" {' and '.join(data.items)}; give {option('data')} that have them."
        )
    return filter(task.fits, data.items[task.requires].get(split, ()))
