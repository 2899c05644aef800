"""Holds many dialogs side by side: self-chats, or replays of recorded dialogs.

Each runs as a task of its own; the engine batches the requests of all.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from holdfast.drift.dialog import AGENT_VIEW, USER_VIEW, Dialog, DialogThread
from holdfast.drift.dialog_replay import replay
from holdfast.drift.dialog_requests import DialogClient
from holdfast.drift.pairing import Pairing
from holdfast.drift.progress import ReplyProgress, ignore_progress
from holdfast.drift.selfchat import self_chat
from holdfast.drift.settings import Running, Settings
from holdfast.drift.truncation_monitor import TruncationMonitor
from holdfast.errors import UsageError
from holdfast.methods import Method
from holdfast.models.event_loop import task_group
from holdfast.models.failures import CircuitBreaker
from holdfast.models.protocol import Engine

SaveDialog = Callable[[Dialog], Coroutine[Any, Any, None]]  # records a dialog that is over
_STOP_CHECK_INTERVAL = 1.0  # seconds; a slow model may take far longer for a reply


async def hold_dialogs(
    engine: Engine,
    pairings: Iterable[Pairing],
    methods: Sequence[Method],
    settings: Settings,
    save: SaveDialog,
    *,
    running: Running,
    concurrency: int | None = None,
) -> None:
    """Holds dialogs side by side; none waits for another's turn.

    Args:
        engine: the engine of the model that plays both sides, or of two models (`session_of`).
        pairings: the conversations, in the order in which they begin.
        methods: steer the agent.
        save: records a dialog that is over. One with a failed request is recorded only once another
            request is answered, as the server may be down.
        running: receives the progress in replies, and says which dialogs are to stop.
        concurrency: how many dialogs run at once; the end of one makes room for the next. None runs
            all at once.

    Raises:
        PromptTooLong: not even the first question of a dialog fits into the context.
    """
    async with task_group() as background:
        breaker = CircuitBreaker(
            lambda dialog: background.create_task(save(dialog)), "conversation"
        )
        semaphore = nullcontext() if concurrency is None else asyncio.Semaphore(concurrency)
        truncation = TruncationMonitor(settings.sampling.max_new_tokens)
        tasks = _DialogTasks(running.should_stop)

        def report(replies: int, tokens: int = 0) -> None:
            running.progress(replies, tokens)
            tasks.cancel_stopped()

        async def hold_and_save(pairing: Pairing) -> None:
            dialog = Dialog(pairing)
            async with semaphore:
                replies = ReplyProgress(pairing.num_replies(settings), report)
                client = DialogClient(
                    engine, dialog, tuple(methods), settings, breaker, replies, truncation
                )
                await _hold(client)
                for view in (AGENT_VIEW, USER_VIEW):
                    engine.forget(DialogThread(view, pairing.number))
            if breaker.has_failed(pairing.number):
                breaker.hold_back(dialog)
            else:
                await save(dialog)
            replies.ended()

        cancelling = background.create_task(tasks.keep_cancelling_stopped())
        async with task_group() as dialogs:
            for pairing in pairings:
                tasks.by_number[pairing.number] = dialogs.create_task(hold_and_save(pairing))
        cancelling.cancel()
        await breaker.finish(engine)


async def hold_dialog(
    engine: Engine, dialog: Dialog, methods: Sequence[Method], settings: Settings
) -> None:
    """Holds one dialog, for callers that keep its record themselves.

    Raises:
        UsageError: a rule of the agent needs a judge, which is not available here.
    """
    pairing = dialog.pairing
    for question in pairing.all_probes:
        for rule in question.rules:
            if rule.measure.judged:
                raise UsageError(
                    f"The judge of {pairing.agent.id!r}, {rule.measure.arguments['judge']!r},"
                    " is asked only by `holdfast drift`; use a suite without judges here."
                )
    breaker = CircuitBreaker(lambda dialog: None, "conversation")
    replies = ReplyProgress(pairing.num_replies(settings), ignore_progress)
    truncation = TruncationMonitor(settings.sampling.max_new_tokens)
    await _hold(
        DialogClient(engine, dialog, tuple(methods), settings, breaker, replies, truncation)
    )


async def _hold(client: DialogClient) -> None:
    """Holds a dialog to its end."""
    recorded = client.dialog.pairing.recorded
    if recorded is None:
        await self_chat(client)
    else:
        await replay(client, recorded)


@dataclass
class _DialogTasks:
    """The tasks of the dialogs, by the numbers of these; one is cancelled if its dialog is to stop.

    Args:
        should_stop: whether the dialog of a number is to stop.
    """

    should_stop: Callable[[int], bool]
    by_number: dict[int, asyncio.Task[None]] = field(default_factory=dict)

    def cancel_stopped(self) -> None:
        """Cancels the dialogs that are to stop now."""
        for number, task in self.by_number.items():
            if not task.done() and self.should_stop(number):
                task.cancel()

    async def keep_cancelling_stopped(self) -> None:
        """Cancels them every second, until it is cancelled itself."""
        while True:
            await asyncio.sleep(_STOP_CHECK_INTERVAL)
            self.cancel_stopped()
