"""Replies that end at stop texts, all in one batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from lm_eval.models.utils import normalize_gen_kwargs
from tqdm import tqdm

from holdfast.errors import UsageError
from holdfast.models.rehearsals import Answer
from holdfast.models.requests import Request
from holdfast.models.session import LocalSession
from holdfast.sampling import Sampling
from holdfast.serve.generation import Speech, Token

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_DEFAULT_TOKENS = 256  # of a reply, as the harness's own models have
_KNOWN = ("until", "max_gen_toks", "do_sample", "temperature", "top_p")
_WAITING = 64  # requests beside those that are forwarded, so that none waits for tokenizing


@dataclass(frozen=True)
class Wanted:
    """A reply that a task asks for.

    Args:
        request: its chat, and how it is drawn.
        stops: texts that end it, and are no part of it.
    """

    request: Request
    stops: tuple[str, ...]


def read_wanted(request: Request, options: Mapping[str, Any], end: str) -> Wanted:
    """Sampling and stop texts of a task's `generation_kwargs`.

    Args:
        request: the chat and its seed.
        options: of the task.
        end: the text of the token that ends a reply.

    Raises:
        UsageError: an option that would change replies, and is not known here.
    """
    given = normalize_gen_kwargs(dict(options), _DEFAULT_TOKENS)
    for name, value in given.items():
        if name not in _KNOWN:
            raise UsageError(
                f"holdfast models take no generation option {name!r} ({value!r}); known are"
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
    """A reply on its way.

    Args:
        number: of the request.
        speech: its text.
        text: that is told of it so far.
    """

    number: int
    speech: Speech
    text: str = ""

    def hear(self, answer: Answer) -> None:
        """Takes what was drawn; nothing more once a stop text has ended the reply."""
        for token_id in answer.take():
            if not self.speech.stopped:
                self._tell(self.speech.add(Token(token_id)))
        if answer.done and not self.speech.stopped:
            self._tell(self.speech.finish(answer.result().text))

    def _tell(self, spoken: Sequence[Any]) -> None:
        self.text += "".join(item.text for item in spoken)


def write(
    session: LocalSession,
    wanted: Sequence[Wanted],
    tokenizer: PreTrainedTokenizerFast,
    quiet: bool = False,
) -> list[str]:
    """Writes replies, in the order given; each leaves the batch at its stop text.

    Args:
        session: of the model.
        wanted: the replies.
        tokenizer: of the model.
        quiet: whether no progress is shown.

    Raises:
        PromptError: a context cannot be rendered, or leaves no room for a reply.
        ModelError: a method cannot be applied to this model.
    """
    texts: dict[int, str] = {}
    running: dict[Answer, _Writing] = {}
    waiting = iter(enumerate(wanted))
    with tqdm(total=len(wanted), desc="Writing replies", disable=quiet) as bar:
        try:
            while len(texts) < len(wanted):
                while len(running) < session.capacity + _WAITING:
                    number, item = next(waiting, (None, None))
                    if number is None or item is None:
                        break
                    running[session.submit(item.request)] = _Writing(
                        number, Speech(tokenizer, item.stops)
                    )
                for answer in session.step():
                    if answer not in running:
                        continue
                    writing = running[answer]
                    writing.hear(answer)
                    if answer.done or writing.speech.stopped:
                        session.cancel(answer)
                        texts[writing.number] = writing.text
                        del running[answer]
                        bar.update()
        finally:
            for answer in running:
                session.cancel(answer)
    return [texts[number] for number in range(len(wanted))]
