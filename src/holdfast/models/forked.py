"""Replicas that are forked: all read one copy of the weights, and only what each computes is its
own.

Which units a replica does follows from their order alone, so that a run repeated with as many
replicas is computed by the same arithmetic.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, cast

from holdfast import knobs
from holdfast.errors import HoldfastError, ModelError, UsageError
from holdfast.models.protocol import ChatModel
from holdfast.models.replicas import Here, Listener, Replicas, Work

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from holdfast.models.local import LocalModel

_LEAST = 8  # conversations of a replica, where nothing is said: fewer fill its steps badly
_OUTCOME, _OVER, _PROGRESS, _END = "outcome", "over", "progress", "end"  # what a replica tells

Tell = Callable[..., None]


def how_many(model: ChatModel, conversations: int, wanted: int | None) -> int:
    """How many replicas play some conversations.

    Args:
        model: that they hold.
        conversations: side by side.
        wanted: so many; None: as many as pay.

    Raises:
        UsageError: the model cannot be forked.
        KnobOutOfRange: fewer than one are wanted.
    """
    if wanted is None:
        return max(1, min(model.replicas, conversations // _LEAST))
    if knobs.whole_number("a run", "replicas", wanted, 1) > 1 and not model.replicas:
        raise UsageError(
            f"--replicas {wanted} is for models in this processor's memory, under Linux, which"
            f" {model.name} is not; leave it out."
        )
    return min(wanted, conversations)


def replicas_of(model: ChatModel, conversations: int, wanted: int | None) -> Replicas:
    """The replicas of a model that has some; else `how_many` forked ones, or the model itself where
    one is enough.

    Raises:
        UsageError, KnobOutOfRange: as `how_many`.
    """
    if isinstance(model, Replicas):
        return model
    count = how_many(model, conversations, wanted)
    return Forked(cast("LocalModel", model), count) if count > 1 else Here(model)


@dataclass(frozen=True)
class Forked:
    """Forked processes, each with its share of the units.

    Args:
        model: in this processor's memory.
        count: how many processes.
    """

    model: LocalModel
    count: int

    def ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function makes of the model in this process."""
        return function(self.model, *arguments)

    def work(self, work: Work, units: Mapping[int, Any], listener: Listener) -> None:
        """Has every unit done; where some replicas fail, the others end their shares.

        Raises:
            HoldfastError: the error of the first replica that failed.
            ModelError: a replica was ended from outside.
        """
        fork = multiprocessing.get_context("fork")
        numbers = list(units)
        shares = [numbers[start :: self.count] for start in range(min(self.count, len(numbers)))]
        running: dict[Connection, BaseProcess] = {}

        def play(share: list[int], tell: Tell) -> None:
            telling = Listener(
                lambda number, outcome: tell(_OUTCOME, number, outcome),
                lambda number: tell(_OVER, number),
                lambda done, tokens: tell(_PROGRESS, done, tokens),
            )
            mine = self.model.replica(self.count)
            work.do(mine, iter([(number, units[number]) for number in share]), self.count, telling)

        try:
            for share in shares:
                reader, writer = fork.Pipe(duplex=False)
                running[reader] = fork.Process(
                    target=_work, args=(play, share, writer), daemon=True
                )
                running[reader].start()
                writer.close()  # so that what is read ends with the replica
            errors = _listen(running, listener)
        finally:
            for process in running.values():
                process.terminate()
                process.join()
        for error in errors:
            raise error


def _listen(running: Mapping[Connection, BaseProcess], listener: Listener) -> list[Exception]:
    """Takes what replicas tell until all are over; returns their errors, in the order of
    replicas.
    """
    takes: dict[str, Tell] = {
        _OUTCOME: listener.outcome,
        _OVER: listener.over,
        _PROGRESS: listener.progress,
    }
    ends = dict[Connection, Exception | None]()
    while waiting := [reader for reader in running if reader not in ends]:
        for reader in cast("list[Connection]", wait(waiting)):
            try:
                kind, values = pickle.loads(reader.recv_bytes())
            except EOFError:
                kind, values = _END, (_gone(running[reader]),)
            if kind == _END:
                ends[reader] = values[0]
            else:
                takes[kind](*values)
    return [error for reader in running if (error := ends[reader]) is not None]


def _gone(process: BaseProcess) -> ModelError:
    process.join()
    return ModelError(
        f"A replica was ended from outside (exit code {process.exitcode}; -9 may say that memory"
        " ran out); repeat the command to go on from what is recorded, with fewer --replicas."
    )


def _work(play: Callable[[list[int], Tell], None], share: list[int], writer: Connection) -> None:
    """What a replica does, until its units are over or who began it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that began it
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # whose threads are not here either

    def tell(kind: str, *values: object) -> None:
        writer.send_bytes(pickle.dumps((kind, values)))

    def work() -> None:
        with suppress(BrokenPipeError):  # nobody listens
            try:
                play(share, tell)
            except Exception as error:
                tell(_END, portable(error))
            else:
                tell(_END, None)

    # OpenMP's threads stay behind at a fork, and only a new thread gets others
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    parent = multiprocessing.parent_process()
    while thread.is_alive() and parent is not None and parent.is_alive():
        thread.join(timeout=1)


def portable(error: Exception) -> Exception:
    """An error as another process can read it; what was not raised on purpose says where."""
    where = traceback.format_exc()
    try:
        same: Exception = pickle.loads(pickle.dumps(error))
    except Exception:
        same = ModelError(f"{type(error).__name__}: {error}")
    if not isinstance(error, HoldfastError):
        same.add_note(where)
    return same
