"""Holds the self-chat of two models under two prompts, with probes (Li et al. 2024, section 3.1).

The agent sees [s_B, a1, b1, ..., ai]. The user model sees the same dialog with the roles swapped,
under s_A; as a chat begins with a user message, its first message recaps a1 and b1. The probe of
round i forks the agent's dialog in place of a_i, and never becomes part of it.

A recorded dialog is replayed: its turns stay as they were recorded, and the model answers only the
probes, each in a copy of the dialog up to the probe's round.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from holdfast.chat.messages import uses_tools
from holdfast.drift.dialog import (
    AGENT_VIEW,
    USER_VIEW,
    Dialog,
    DialogSide,
    DialogThread,
)
from holdfast.drift.dialog_records import outcomes_of, probe_key_of, turn_of
from holdfast.drift.dialog_requests import (
    DialogClient,
    DialogRequest,
    ReplyProgress,
    TruncationMonitor,
)
from holdfast.drift.pairing import Pairing, ProbeQuestion
from holdfast.drift.progress import ignore_progress
from holdfast.drift.recorded_dialogs import RecordedDialog
from holdfast.drift.settings import Running, Settings
from holdfast.errors import PromptTooLong, RequestFailed, UsageError
from holdfast.methods import Method
from holdfast.models.event_loop import task_group
from holdfast.models.failures import CircuitBreaker
from holdfast.models.protocol import Engine
from holdfast.records import Ended, Turn, Unanswered
from holdfast.records.conversation import RECORDED, SCRIPTED
from holdfast.records.traces import TurnTrace

SaveDialog = Callable[[Dialog], Coroutine[Any, Any, None]]  # records a conversation that is over
RECALL_TOKENS = 300  # enough for a list of all rules of a prompt
_STOP_CHECK_INTERVAL = 1.0  # seconds; a slow model may take far longer for a reply


@dataclass
class _Stops:
    """Cancels the conversations that are to be given up."""

    should_stop: Callable[[int], bool]
    tasks: dict[int, asyncio.Task[None]] = field(default_factory=dict)  # by conversation

    def check(self) -> None:
        """Cancels those that are to stop now."""
        for number, task in self.tasks.items():
            if not task.done() and self.should_stop(number):
                task.cancel()

    async def keep_checking(self) -> None:
        """Checks every second, until it is cancelled itself."""
        while True:
            await asyncio.sleep(_STOP_CHECK_INTERVAL)
            self.check()


async def converse(
    engine: Engine,
    pairings: Iterable[Pairing],
    methods: Sequence[Method],
    settings: Settings,
    save: SaveDialog,
    *,
    running: Running,
    concurrency: int | None = None,
) -> None:
    """Holds conversations side by side; none waits for another's turn.

    Args:
        engine: the engine of the model that plays both sides, or of two models (`session_of`).
        pairings: the conversations, in the order in which they begin.
        methods: steer the agent.
        save: records a conversation that is over. One with a failed request is recorded only once
            another request is answered, as the server may be down.
        running: receives the progress in replies, and says which conversations are to stop.
        concurrency: how many conversations run at once; the end of one makes room for the next.
            None runs all at once.

    Raises:
        PromptTooLong: not even the first question of a conversation fits into the context.
    """
    async with task_group() as held_back:
        breaker = CircuitBreaker(lambda dialog: held_back.create_task(save(dialog)), "conversation")
        room = nullcontext() if concurrency is None else asyncio.Semaphore(concurrency)
        stops = _Stops(running.should_stop)
        truncation = TruncationMonitor(settings.sampling.max_new_tokens)

        def report(replies: int, tokens: int = 0) -> None:
            running.progress(replies, tokens)
            stops.check()

        async def run_one(pairing: Pairing) -> None:
            dialog = Dialog(pairing)
            async with room:
                replies = ReplyProgress(pairing.replies(settings), report)
                client = DialogClient(
                    engine, dialog, tuple(methods), settings, breaker, replies, truncation
                )
                await _run_dialog(client)
                for view in (AGENT_VIEW, USER_VIEW):
                    engine.forget(DialogThread(view, pairing.number))
            if breaker.has_failed(pairing.number):
                breaker.hold_back(dialog)
            else:
                await save(dialog)
            replies.ended()

        checking = held_back.create_task(stops.keep_checking())
        async with task_group() as conversations:
            for pairing in pairings:
                stops.tasks[pairing.number] = conversations.create_task(run_one(pairing))
        checking.cancel()
        await breaker.finish(engine)


async def converse_once(
    engine: Engine, dialog: Dialog, methods: Sequence[Method], settings: Settings
) -> None:
    """Holds one conversation, for callers that keep its record themselves.

    Raises:
        UsageError: a rule of the agent needs a judge, which is not available here.
    """
    pairing = dialog.pairing
    for probe in pairing.all_probes:
        for rule in probe.rules:
            if rule.measure.judged:
                raise UsageError(
                    f"The judge of {pairing.agent.id!r}, {rule.measure.arguments['judge']!r},"
                    " is asked only by `holdfast drift`; use a suite without judges here."
                )
    breaker = CircuitBreaker(lambda dialog: None, "conversation")
    replies = ReplyProgress(pairing.replies(settings), ignore_progress)
    truncation = TruncationMonitor(settings.sampling.max_new_tokens)
    client = DialogClient(engine, dialog, tuple(methods), settings, breaker, replies, truncation)
    await _run_dialog(client)


async def _run_dialog(client: DialogClient) -> None:
    """Holds a conversation to its end: a self-chat, or the replay of a recorded dialog."""
    recorded = client.dialog.pairing.recorded
    if recorded is None:
        await self_chat(client)
    else:
        await replay(client, recorded)


async def self_chat(client: DialogClient) -> None:
    """Takes the turns one after another, and asks each round's probes while the next turn runs."""
    async with task_group() as probes:
        with suppress(RequestFailed):  # the dialog has noted that it ends with the failed turn
            if client.settings.probe_at == "in-place":
                await _chat_with_probes_in_place(client, probes)
            else:
                await _chat_with_probes_after_rounds(client, probes)


async def _chat_with_probes_in_place(client: DialogClient, probes: asyncio.TaskGroup) -> None:
    """Holds a dialog whose round i is probed in place of a_i, before either turn of the round."""
    await add_user_turn(client, 1)
    await add_model_turn(client, AGENT_VIEW, 1)
    # these probes are asked only now, so that they reuse the prompt computed for b_1
    _start_probes(client, probes, 1, before=1)
    for number in range(2, client.settings.rounds + 1):
        _start_probes(client, probes, number, before=number)
        if not await add_user_turn(client, number):
            break
        if not await add_model_turn(client, AGENT_VIEW, number):
            break


async def _chat_with_probes_after_rounds(client: DialogClient, probes: asyncio.TaskGroup) -> None:
    """Holds a dialog whose round i is probed after b_i, in place of the user's next message."""
    for number in range(1, client.settings.rounds + 1):
        if not await add_user_turn(client, number):
            break
        if not await add_model_turn(client, AGENT_VIEW, number):
            break
        _start_probes(client, probes, number, before=number + 1)


def _start_probes(
    client: DialogClient, probes: asyncio.TaskGroup, number: int, before: int
) -> None:
    """Starts the probes of round `number`, each in a fork of the dialog before round `before`."""
    for probe in client.dialog.pairing.probes_in(number, client.settings):
        probes.create_task(ask_probe(client, number, probe, before))


async def add_user_turn(client: DialogClient, number: int) -> bool:
    """Adds a_i: from the script, or else the starter in round 1, or a turn of the user model.

    Returns:
        False if the dialog has filled the model's context.
    """
    pairing = client.dialog.pairing
    if pairing.script is not None:
        message = pairing.script.messages[number - 1]
        turn = _unwritten_turn(number, "user", message.text, SCRIPTED, pressure=message.pressure)
    elif number == 1:
        turn = _unwritten_turn(number, "user", pairing.starter, "stop")
    else:
        return await add_model_turn(client, USER_VIEW, number)
    client.dialog.turns.append(turn)
    return True


async def add_model_turn(client: DialogClient, speaker: DialogSide, number: int) -> bool:
    """Adds b_i by the agent, or a_i by the user model.

    Returns:
        False if the dialog has filled the model's context.

    Raises:
        RequestFailed: the turn was not answered, which ends the dialog.
        PromptTooLong: not even the first question fits into the context.
    """
    dialog = client.dialog
    request = DialogRequest(
        view=speaker,
        names=(number, speaker),
        # the agent answers the user's message in its round; the user model saw only earlier rounds
        last_round=number if speaker == AGENT_VIEW else number - 1,
        max_new_tokens=client.settings.sampling.max_new_tokens,
    )
    try:
        answer = await client.send(request)
    except RequestFailed as error:
        dialog.ended = Ended(round=number, why=error.why, reason=str(error))
        raise
    reply = answer.reply
    dialog.rounds_shown[speaker] = answer.rounds
    if reply.stop_reason == "context":
        if number == 1:
            raise _prompt_too_long_error(dialog)
        dialog.ended = Ended(round=number, why="context")
        return False
    dialog.turns.append(turn_of(number, speaker, answer))
    if (number, speaker) == (1, AGENT_VIEW):
        client.truncation.first_reply(reply.stop_reason, answer.cut_at)
    if speaker == AGENT_VIEW and reply.trace is not None and reply.trace.uniform is not None:
        dialog.traces[number] = TurnTrace(reply.trace.mass, reply.trace.uniform)
    return True


async def ask_probe(
    client: DialogClient, number: int, probe: ProbeQuestion, before: int, *, keep: bool = False
) -> bool:
    """Asks a probe of round `number` in a fork of the dialog, and notes its outcomes.

    Args:
        before: the fork shows the rounds before this one.
        keep: whether later requests may reuse what is computed for the probe.

    Returns:
        Whether the model's context had room for the probe.
    """
    dialog = client.dialog
    max_new_tokens = client.settings.sampling.max_new_tokens
    if probe.kind == "recall":
        max_new_tokens = max(max_new_tokens, RECALL_TOKENS)
    request = DialogRequest(
        view=AGENT_VIEW,
        names=(number, *probe.names),
        last_round=before,
        max_new_tokens=max_new_tokens,
        question=probe.question,
        keep=keep,
    )
    try:
        answer = await client.send(request)
    except RequestFailed as error:
        for rule in probe.rules:
            place = dict(probe_key_of(number, probe, rule))
            dialog.probes.append(Unanswered(**place, why=error.why, reason=str(error)))
        return error.why != "context"
    if answer.reply.stop_reason == "context":
        return False
    dialog.probes += outcomes_of(number, probe, answer)
    return True


async def replay(client: DialogClient, recorded: RecordedDialog) -> None:
    """Asks the probes of a recorded dialog, each in a copy of the dialog up to the probe's round.

    The first probe of the last round is asked first, as what is computed for it covers the whole
    dialog, so that all others reuse it.

    Raises:
        PromptTooLong: not even the first question fits into the context.
    """
    dialog = client.dialog
    settings = client.settings
    add_recorded_turns(dialog, recorded, settings)

    def fork_of(number: int) -> int:
        """The round before which the probes of round `number` fork the dialog."""
        return number if settings.probe_at == "in-place" else number + 1

    last = dialog.pairing.probed_rounds(settings)
    first, *more = dialog.pairing.all_probes
    while not await ask_probe(client, last, first, fork_of(last), keep=True):
        if last == 1:
            raise _prompt_too_long_error(dialog)
        dialog.ended = Ended(round=last, why="context")
        last -= 1
    async with task_group() as probes:
        for probe in more:
            probes.create_task(ask_probe(client, last, probe, fork_of(last)))
        for number in range(1, last):
            _start_probes(client, probes, number, fork_of(number))


def add_recorded_turns(dialog: Dialog, recorded: RecordedDialog, settings: Settings) -> None:
    """Adds the turns of a recorded dialog as they are."""
    for number, exchange in enumerate(recorded.rounds[: settings.rounds], start=1):
        dialog.turns.append(_unwritten_turn(number, "user", exchange.user, RECORDED))
        messages = exchange.messages if uses_tools(exchange.messages) else ()
        answer = _unwritten_turn(number, "agent", exchange.answer, RECORDED, messages=messages)
        dialog.turns.append(answer)


def _unwritten_turn(
    number: int, speaker: DialogSide, text: str, stop_reason: str, **more: Any
) -> Turn:
    """A turn that no model of this run wrote."""
    return Turn(round=number, speaker=speaker, text=text, stop_reason=stop_reason, **more)


def _prompt_too_long_error(dialog: Dialog) -> PromptTooLong:
    agent = dialog.pairing.agent.id
    return PromptTooLong(
        f"The system prompt of {agent!r} and one question already fill the model's context; use a"
        " shorter prompt.",
        value=agent,
    )
