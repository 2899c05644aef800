"""Who answers in a chat: a model in this process, or one behind an endpoint. Ctrl-C stops it."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Protocol

from holdfast.chat.streaming import Pieces
from holdfast.cli.chat.dialog import Heard
from holdfast.cli.termination import Terminated
from holdfast.models.requests import Reply, Request

if TYPE_CHECKING:
    from holdfast.models.endpoint import EndpointModel
    from holdfast.models.local import LocalModel
    from holdfast.models.submitted import Answer

Tell = Callable[[int, str], None]  # which of the requests, and the next piece of its reply


class Answering(Protocol):
    """Answers requests while someone reads along."""

    def answer(self, requests: Sequence[Request], tell: Tell) -> list[Heard]:
        """The replies, as far as they came until Ctrl-C.

        Raises:
            HoldfastError: whatever the model raises.
        """


class Here:
    """A model in this process, whose session forwards no token of a dialog twice."""

    def __init__(self, model: LocalModel):
        self.session = model.session()
        self._tokenizer = model.tokenizer

    def answer(self, requests: Sequence[Request], tell: Tell) -> list[Heard]:
        """As `Answering.answer`; all requests run side by side, and stop between two tokens."""
        answers: list[Answer] = []
        try:
            for request in requests:
                answers.append(self.session.submit(request))
            pieces = [Pieces(self._tokenizer, partial(tell, n)) for n in range(len(answers))]
            with _noticing_interrupts() as interrupted:
                while not interrupted() and any(not answer.done for answer in answers):
                    self.session.step()
                    for answer, told in zip(answers, pieces, strict=True):
                        for token in answer.take():
                            told.add(token)
        finally:
            for answer in answers:
                self.session.cancel(answer)
        return [_heard(answer, told) for answer, told in zip(answers, pieces, strict=True)]


def _heard(answer: Answer, told: Pieces) -> Heard:
    if answer.cancelled:
        return Heard(told.told, ending="stopped")
    reply = answer.result()
    told.finish(reply.text)
    return _whole(reply)


class There:
    """A model behind an endpoint, which is asked one request after the other."""

    def __init__(self, model: EndpointModel):
        self._model = model

    def answer(self, requests: Sequence[Request], tell: Tell) -> list[Heard]:
        """As `Answering.answer`; at Ctrl-C the connection is closed, and nothing more is asked."""
        heard: list[Heard] = []
        for number, request in enumerate(requests):
            pieces: list[str] = []

            def add(piece: str, number: int = number, pieces: list[str] = pieces) -> None:
                pieces.append(piece)
                tell(number, piece)

            try:
                heard.append(_whole(self._model.stream(request, add)))
            except Terminated:
                raise
            except KeyboardInterrupt:
                rest = len(requests) - number - 1
                return [*heard, Heard("".join(pieces), ending="stopped")] + rest * [
                    Heard("", ending="stopped")
                ]
        return heard


def _whole(reply: Reply) -> Heard:
    return Heard(reply.text, reply.token_masses, reply.stop_reason)


@contextlib.contextmanager
def _noticing_interrupts() -> Iterator[Callable[[], bool]]:
    """Within it, the first Ctrl-C is noted, so that a step of the model ends as it should; a second
    one is the usual interrupt.
    """
    noted = False

    def note(number: int, frame: object) -> None:
        nonlocal noted
        noted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: noted
    finally:
        signal.signal(signal.SIGINT, before)
