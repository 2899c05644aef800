"""Tasks and their samples: prompts, the emphasised part, the right reply, and how an answer is
scored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.errors import PromptError

SPLITS = ("train", "validation", "test")
INSTRUCTIONS = ("original", "shortened", "rephrased")
BIOGRAPHIES, FACTS = "biographies", "changed facts"


@dataclass(frozen=True)
class Sample:
    """One question of a task.

    Args:
        prompts: the user's message; where there are several, the first is the question and the
            others ask it in other words.
        emphasis: the parts to stress, each standing exactly once in every prompt.
        target: the right answer, as a word or name.
        reply: a right reply to the first prompt, for demonstrations.
        text: what the question is about; consistency compares replies with texts of the same
            target.
        options: continuations whose probabilities are compared; () where the reply is generated.

    Raises:
        PromptError: an emphasised part that does not stand exactly once in a prompt.
    """

    prompts: tuple[str, ...]
    emphasis: tuple[str, ...]
    target: str
    reply: str
    text: str
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for prompt in self.prompts:
            spans_of(prompt, self.emphasis)


@dataclass(frozen=True)
class Task:
    """A task of Zhang et al. 2024, section 4.

    Args:
        name: on the command line.
        needs: what its samples are made of, BIOGRAPHIES or FACTS.
        metrics: names of its scores, the main one first.
        instructions: the wordings of the paper it has.
        ask: makes a sample of a biography or a changed fact, the wording, and the candidates.
        score: takes a sample and either the reply (str), or, where the sample has options, their
            log-probabilities under each prompt [prompt][option]; gives one number in [0, 1] per
            metric, without those that the sample has no prompts for.
        fits: whether a biography or a changed fact can be asked about.
        fluent: whether the paper measures fluency and consistency of its replies.
        max_new_tokens: of a reply.
        chooses: whether continuations are compared by their probability, instead of a reply being
            read.
    """

    name: str
    needs: str
    metrics: tuple[str, ...]
    instructions: tuple[str, ...]
    ask: Callable[[Any, str, Sequence[str]], Sample]
    score: Callable[[Sample, Any], dict[str, float]]
    fits: Callable[[Any], bool]
    fluent: bool
    max_new_tokens: int
    chooses: bool = False


def spans_of(prompt: str, emphasis: Sequence[str]) -> list[tuple[int, int]]:
    """First and last character (exclusive) of each emphasised part, in the order of the prompt.

    Raises:
        PromptError: a part that does not stand exactly once in the prompt.
    """
    for part in emphasis:
        if not part or prompt.count(part) != 1:
            raise PromptError(
                f"The emphasised part {part[:80]!r} stands {prompt.count(part) if part else 0}"
                f" times in {prompt[:80]!r}...; it has to stand there once."
            )
    return sorted((prompt.index(part), prompt.index(part) + len(part)) for part in emphasis)


def mark(prompt: str, emphasis: Sequence[str], sign: str) -> str:
    """The prompt with `sign` before and behind each emphasised part (the paper's marked
    prompting).
    """
    for start, stop in reversed(spans_of(prompt, emphasis)):
        prompt = f"{prompt[:start]}{sign}{prompt[start:stop]}{sign}{prompt[stop:]}"
    return prompt
