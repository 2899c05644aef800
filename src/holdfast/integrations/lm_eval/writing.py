"""Generates replies that end at stop strings, all in one batch."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lm_eval.models.utils import normalize_gen_kwargs
from tqdm import tqdm

from holdfast.common.sampling import Sampling
from holdfast.errors import UsageError
from holdfast.models.reader import Answer
from holdfast.models.requests import Request
from holdfast.models.session import LocalSession
from holdfast.serve.generation import Speech, Token

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_DEFAULT_TOKENS = 256  # per reply, as in the harness's own models
_KNOWN = ("until", "max_gen_toks", "do_sample", "temperature", "top_p")
_WAITING = 64  # requests beyond those in the batch, so that no row waits for tokenizing


@dataclass(frozen=True)
class Wanted:
    """A reply that a task asks for, and the stop strings that end it, which it excludes."""

    request: Request
    stops: tuple[str, ...]


def read_wanted(request: Request, options: Mapping[str, Any], end: str) -> Wanted:
    """Applies the sampling and stop strings of a task's `generation_kwargs` to a request.

    `end` is the text of the token that ends a reply. An option that would change replies and is
    not known here is refused.
    """
    given = normalize_gen_kwargs(dict(options), _DEFAULT_TOKENS)
    for name, value in given.items():
        if name not in _KNOWN:
            raise UsageError(
                f"holdfast models take no generation option {name!r} ({value!r}); choose from"
                f" {', '.join(_KNOWN)}."
            )
    sampling = Sampling(
        temperature=given["temperature"] if given["do_sample"] else 0.0,
        top_p=given.get("top_p", 1.0),
        max_new_tokens=given["max_gen_toks"],
    )
    stops = tuple(stop for stop in (*given["until"], end) if stop)
    return Wanted(replace(request, sampling=sampling), stops)


@dataclass
class _Writing:
    """A reply in progress: the number of its request, and its text so far."""

    number: int
    speech: Speech
    text: str = ""

    def take(self, answer: Answer) -> None:
        """Adds the tokens drawn; none once a stop string has ended the reply."""
        spoken = list[Token]()
        for token_id in answer.take():
            if not self.speech.stopped:
                spoken += self.speech.add(Token(token_id))
        if answer.done and not self.speech.stopped:
            spoken += self.speech.finish(answer.result().text)
        self.text += "".join(item.text for item in spoken)


def write(
    session: LocalSession,
    wanted: Sequence[Wanted],
    tokenizer: PreTrainedTokenizerFast,
    quiet: bool = False,
) -> list[str]:
    """Generates replies, in the order given; each leaves the batch at its stop string."""
    texts: dict[int, str] = {}
    running: dict[Answer, _Writing] = {}
    waiting = iter(enumerate(wanted))
    with tqdm(total=len(wanted), desc="Writing replies", disable=quiet) as bar:
        try:
            while len(texts) < len(wanted):
                room = session.capacity + _WAITING - len(running)
                for number, item in itertools.islice(waiting, max(room, 0)):
                    speech = Speech(tokenizer, item.stops)
                    running[session.submit(item.request)] = _Writing(number, speech)
                for answer in session.step():
                    if answer not in running:
                        continue
                    writing = running[answer]
                    writing.take(answer)
                    if answer.done or writing.speech.stopped:
                        session.cancel(answer)
                        texts[writing.number] = writing.text
                        del running[answer]
                        bar.update()
        finally:
            for answer in running:
                session.cancel(answer)
    return [texts[number] for number in range(len(wanted))]
