"""Generates replies that end at stop strings, many in one batch."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from lm_eval.models.utils import normalize_gen_kwargs
from tqdm import tqdm

from holdfast.errors import UsageError
from holdfast.generation.sampling import Sampling
from holdfast.models.event_loop import run_sync, task_group
from holdfast.models.requests import Request
from holdfast.models.session import LocalSession
from holdfast.models.streaming import TextDecoder
from holdfast.serve.decoding import decode_reply

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_DEFAULT_TOKENS = 256  # per reply, as in the harness's own models
_OPTIONS = ("until", "max_gen_toks", "do_sample", "temperature", "top_p")
_MAX_WAITING = 64  # requests that are tokenized ahead, so that the batch does not wait for it


@dataclass(frozen=True)
class Generation:
    """A reply to generate for a task, and the stop strings that end it and are not part of it."""

    request: Request
    stops: tuple[str, ...]


class GenerationOptions(NamedTuple):
    """How a task wants its replies drawn, and the stop strings that end them."""

    sampling: Sampling
    stops: tuple[str, ...]


def read_options(generation_kwargs: Mapping[str, Any], end: str) -> GenerationOptions:
    """Reads a task's `generation_kwargs`.

    Args:
        end: the text of the token that ends a reply, which is a stop string too.

    Raises:
        UsageError: an option would change replies and is not supported.
    """
    options = normalize_gen_kwargs(dict(generation_kwargs), _DEFAULT_TOKENS)
    for name, value in options.items():
        if name not in _OPTIONS:
            raise UsageError(
                f"holdfast models take no generation option {name!r} ({value!r}); choose from"
                f" {', '.join(_OPTIONS)}.",
                option=name,
                value=value,
                allowed=_OPTIONS,
            )
    sampling = Sampling(
        temperature=options["temperature"] if options["do_sample"] else 0.0,
        top_p=options.get("top_p", 1.0),
        max_new_tokens=options["max_gen_toks"],
    )
    stops = tuple(stop for stop in (*options["until"], end) if stop)
    return GenerationOptions(sampling, stops)


def generate_replies(
    session: LocalSession,
    generations: Sequence[Generation],
    tokenizer: PreTrainedTokenizerFast,
    *,
    quiet: bool = False,
) -> list[str]:
    """Generates replies, in the order of `generations`; a reply leaves the batch once it ends."""
    open_requests = asyncio.Semaphore(session.max_sequences + _MAX_WAITING)

    async def generate_reply(generation: Generation, bar: tqdm) -> str:
        decoder = TextDecoder(tokenizer, generation.stops)
        events = session.stream(generation.request)
        async with open_requests, aclosing(decode_reply(events, decoder)) as deltas:
            text = "".join([delta.text async for delta in deltas])
        bar.update()
        return text

    async def generate_each() -> list[str]:
        with tqdm(total=len(generations), desc="Generating replies", disable=quiet) as bar:
            async with session, task_group() as group:
                tasks = [group.create_task(generate_reply(g, bar)) for g in generations]
        return [task.result() for task in tasks]

    return run_sync(generate_each())
