"""Prints a chat in the terminal: the replies as they are drawn, and lines about them."""

import functools
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO, cast

from holdfast.chat.emphasis import Part
from holdfast.chat.messages import Messages
from holdfast.cli.serve.chat_dialog import round_of
from holdfast.cli.shared.interrupts import Terminated
from holdfast.cli.shared.notes import printable
from holdfast.generation.sampling import Sampling
from holdfast.methods import Ability, Method, spec_of
from holdfast.models.capabilities import supports
from holdfast.models.protocol import ChatModel
from holdfast.models.requests import Reply, Request
from holdfast.models.streaming import stream_reply, stream_text
from holdfast.seeds import seed_of

if TYPE_CHECKING:
    from holdfast.models.local import LocalModel

# ANSI style codes
BOLD = 1
DIM = 2
RED = 31
_CUT_OFF = "cut off at --max-new-tokens, or where the model's context ends"


def show(text: str, style: int = 0, file: TextIO | None = None) -> None:
    """Prints a line, styled if the output is a terminal."""
    text = printable(text)
    if style and sys.stdout.isatty():
        text = f"\x1b[{style}m{text}\x1b[0m"
    print(text, file=file, flush=True)


def notice(text: str, style: int = DIM) -> None:
    """Prints a line that is not part of a reply, on stderr if stdout is not a terminal."""
    show(text, style, sys.stdout if sys.stdout.isatty() else sys.stderr)


class ReplyPrinter:
    """Prints the replies of a model as they are drawn.

    Args:
        model: the model.
        sampling: how replies are drawn.
        seed: the seed of the whole chat.
        system_as: the place of the system prompt.

    Attributes:
        has_mass: whether replies come with their attention mass.
    """

    def __init__(self, model: ChatModel, sampling: Sampling, seed: int, system_as: str):
        self.has_mass = supports(model, Ability.LOG_ODDS)
        self._sampling = sampling
        self._seed = seed
        self._system_as = system_as
        self._stream = functools.partial(stream_text, model)
        if supports(model, Ability.LAYERS):  # one session, so that nothing is computed twice
            local = cast("LocalModel", model)
            self._stream = functools.partial(stream_reply, local.session().stream, local.tokenizer)

    def print_reply(
        self,
        messages: Messages,
        methods: tuple[Method, ...],
        emphasis: Sequence[Part],
        attempt: int = 0,
    ) -> Reply:
        """Prints a reply; Ctrl-C ends it early, with the stop reason "stopped".

        Args:
            attempt: how many times the last message was answered before.
        """
        request = Request(
            messages,
            methods,
            self._sampling,
            seed_of("chat", self._seed, round_of(messages), attempt),
            conversation_seed=seed_of("chat methods", self._seed),
            # with the same methods, the next message needs only its own tokens computed
            thread=spec_of(methods),
            keep=True,
            trace=self.has_mass,
            system_as=self._system_as,
            emphasis=emphasis,
        )
        text = ""

        def write(piece: str) -> None:
            nonlocal text
            text += piece
            print(printable(piece), end="", flush=True)

        try:
            reply = self._stream(request, write)
        except Terminated:
            raise
        except KeyboardInterrupt:
            reply = Reply(text, None, "stopped")
        finally:
            print(flush=True)
        if reply.stop_reason != "stop":
            notice(f"({_CUT_OFF if reply.stop_reason == 'length' else reply.stop_reason})")
        return reply
