"""Replicas: processes that play conversations side by side with the same model.

No conversation reads another, so whole ones are shared out, and the process that began the replicas
alone writes records. They are forked: all read one copy of the weights, and only what a replica
computes is its own. Which conversations it plays follows from their order alone, so that a run
repeated with as many replicas is computed by the same arithmetic.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, cast

from holdfast import knobs
from holdfast.drift.pairing import Pairing
from holdfast.drift.selfchat import converse
from holdfast.drift.settings import Settings
from holdfast.drift.traces import TurnTrace
from holdfast.errors import HoldfastError, ModelError, UsageError
from holdfast.methods import Method
from holdfast.models.protocol import ChatModel

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from holdfast.models.local import LocalModel

_LEAST = 8  # conversations of a replica, where nothing is said: fewer fill its steps badly
_RECORD, _ROUND, _OVER = "record", "round", "over"  # what a replica tells, each with its values


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
    if knobs.whole_number("drift", "replicas", wanted, 1) > 1 and not model.replicas:
        raise UsageError(
            f"--replicas {wanted} is for models in this processor's memory, under Linux, which"
            f" {model.name} is not; leave it out."
        )
    return min(wanted, conversations)


def converse_apart(
    replicas: int,
    model: ChatModel,
    pairings: Sequence[Pairing],
    methods: Sequence[Method],
    settings: Settings,
    on_record: Callable[[dict[str, Any], dict[int, TurnTrace]], None],
    on_round: Callable[[int, int], None],
) -> None:
    """`converse`, by several replicas; where some fail, the others end their conversations.

    Args:
        replicas: how many, as `how_many` allows.
        model: plays both sides.
        pairings, methods, settings, on_record, on_round: as of `converse`.

    Raises:
        HoldfastError: the error of the first replica that failed.
        ModelError: a replica was ended from outside.
    """
    fork = multiprocessing.get_context("fork")
    shares = [pairings[start::replicas] for start in range(min(replicas, len(pairings)))]
    running: dict[Connection, BaseProcess] = {}

    def play(share: Sequence[Pairing], tell: Callable[..., None]) -> None:
        mine = cast("LocalModel", model).replica(replicas)
        together = -(-settings.batch // replicas)
        converse(
            mine.session(),
            share,
            methods,
            settings,
            lambda record, traces: tell(_RECORD, record, traces),
            lambda conversations, tokens: tell(_ROUND, conversations, tokens),
            together,
        )

    try:
        for share in shares:
            reader, writer = fork.Pipe(duplex=False)
            running[reader] = fork.Process(target=_work, args=(play, share, writer), daemon=True)
            running[reader].start()
            writer.close()  # so that what is read ends with the replica
        errors = _listen(running, on_record, on_round)
    finally:
        for process in running.values():
            process.terminate()
            process.join()
    for error in errors:
        raise error


def _listen(
    running: dict[Connection, BaseProcess],
    on_record: Callable[[dict[str, Any], dict[int, TurnTrace]], None],
    on_round: Callable[[int, int], None],
) -> list[Exception]:
    """Takes what replicas tell until all are over; returns their errors, in the order of replicas.

    A record's seconds are counted from the record before it, whichever replica that was of.
    """
    told, ends = time.monotonic(), dict[Connection, Exception | None]()
    while waiting := [reader for reader in running if reader not in ends]:
        for reader in cast("list[Connection]", wait(waiting)):
            try:
                kind, values = pickle.loads(reader.recv_bytes())
            except EOFError:
                kind, values = _OVER, (_gone(running[reader]),)
            if kind == _ROUND:
                on_round(*values)
            elif kind == _RECORD:
                record, traces = values
                now = time.monotonic()
                on_record({**record, "seconds": round(now - told, 3)}, traces)
                told = now
            else:
                ends[reader] = values[0]
    return [error for reader in running if (error := ends[reader]) is not None]


def _gone(process: BaseProcess) -> ModelError:
    process.join()
    return ModelError(
        f"A replica was ended from outside (exit code {process.exitcode}; -9 may say that memory"
        " ran out); repeat the command to go on from what is recorded, with fewer --replicas."
    )


def _work(
    play: Callable[[Sequence[Pairing], Callable[..., None]], None],
    share: Sequence[Pairing],
    writer: Connection,
) -> None:
    """What a replica does, until its conversations are over or who began it is gone."""
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
                tell(_OVER, _portable(error))
            else:
                tell(_OVER, None)

    # OpenMP's threads stay behind at a fork, and only a new thread gets others
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    parent = multiprocessing.parent_process()
    while thread.is_alive() and parent is not None and parent.is_alive():
        thread.join(timeout=1)


def _portable(error: Exception) -> Exception:
    """An error as another process can read it; what was not raised on purpose says where."""
    where = traceback.format_exc()
    try:
        same: Exception = pickle.loads(pickle.dumps(error))
    except Exception:
        same = ModelError(f"{type(error).__name__}: {error}")
    if not isinstance(error, HoldfastError):
        same.add_note(where)
    return same
