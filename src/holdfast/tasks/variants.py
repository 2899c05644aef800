"""The rows of the table: prompts for the unsteered model, and methods on the zero-shot prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast import methods as steering
from holdfast.chat.messages import Message
from holdfast.errors import UsageError
from holdfast.methods import Kind, Method, kind_of
from holdfast.models.requests import Request
from holdfast.sampling import Sampling
from holdfast.tasks.sample import spans_of
from holdfast.tasks.settings import BASELINES, Settings


@dataclass(frozen=True)
class Variant:
    """A row of the table: a prompt for the unsteered model, or steering of the zero-shot prompt.

    Args:
        name: a baseline, or the spelling of the methods.
        methods: none for a baseline.
        draw: of the demonstrations, counted from 1; 0 where there are none.
    """

    name: str
    methods: tuple[Method, ...] = ()
    draw: int = 0

    def key(self, task: str) -> str:
        """What records of this row are called."""
        return " ".join(part for part in (task, self.name, str(self.draw or "")) if part)


def variants_of(settings: Settings, methods: Sequence[Sequence[Method]] = ()) -> list[Variant]:
    """The rows of the table: the baselines, each draw of demonstrations by itself, then the
    methods.

    Raises:
        UsageError: the same methods twice, or nothing at all.
    """
    variants = [
        Variant(name, draw=draw)
        for name in settings.baselines
        for draw in (range(1, settings.draws + 1) if name == "few-shot" else (0,))
    ]
    variants += [Variant(steering.spell(chosen), tuple(chosen)) for chosen in methods if chosen]
    # no methods are the zero-shot baseline by another name
    if not all(methods) and "zero-shot" not in settings.baselines:
        variants.insert(0, Variant("zero-shot"))
    names = [(variant.name, variant.draw) for variant in variants]
    if doubled := next((name for name, draw in names if names.count((name, draw)) > 1), None):
        raise UsageError(f"The method {doubled!r} is given twice; give it once.")
    if not variants:
        raise UsageError(
            "Neither a baseline nor a method is given; give at least one of"
            f" {', '.join(BASELINES)}."
        )
    return variants


def request_of(
    messages: Sequence[Message],
    emphasis: Sequence[str],
    methods: Sequence[Method],
    sampling: Sampling,
    seed: int,
) -> Request:
    """The one place where the emphasised parts of the last message become the span of attention
    methods.

    Raises:
        UsageError: methods that work on a system prompt.
    """
    for method in methods:
        if kind_of(method) in (Kind.MESSAGES, Kind.STREAM):
            raise UsageError(
                f"{method.name} works on a system prompt, and tasks have none; give an attention"
                " method."
            )
    last = len(messages) - 1  # by its place, for a demonstration may hold the same words
    ranges = tuple((last, *span) for span in spans_of(messages[last]["content"], emphasis))
    return Request(tuple(messages), tuple(methods), sampling, seed, emphasis=ranges)


def user_message(content: str) -> Message:
    """A message of the user's."""
    return {"role": "user", "content": content}
