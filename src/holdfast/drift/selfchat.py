"""Self-chat of two models under two prompts, probed at every round (Li et al. 2024, section 3.1).

The agent sees [s_B, a1, b1, ..., ai]. The user model sees the same dialog with the roles swapped
under s_A; chats begin with a user message, so its first one recaps a1 and b1. Round i's probe forks
the agent's dialog in place of a_i and never enters it.

A recorded dialog is replayed: it stays as it was recorded, and the model answers only the probes,
each in a copy of the dialog up to that round.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from typing import Any

from holdfast.chat.messages import Message, uses_tools
from holdfast.common.event_loop import task_group
from holdfast.drift.asking import Asking, Question
from holdfast.drift.attention_traces import TurnTrace
from holdfast.drift.dialog import (
    AGENT_VIEW,
    USER_VIEW,
    Dialog,
    Speaker,
    agent_view,
    turn_of,
    user_view,
)
from holdfast.drift.pairing import Pairing
from holdfast.drift.recorded_dialogs import RECORDED, SCRIPTED, RecordedDialog
from holdfast.drift.settings import Settings, Shown, with_summary
from holdfast.errors import PromptError, RequestFailed, UsageError
from holdfast.methods import Method
from holdfast.models.failures import OutageWatch
from holdfast.models.protocol import Engine
from holdfast.models.requests import Reply
from holdfast.records import Ended

Record = Callable[[Dialog], Coroutine[Any, Any, None]]  # records a conversation that is over
Report = Callable[[int, int], None]  # takes how many rounds have ended, and the tokens they took


async def converse(
    engine: Engine,
    pairings: Iterable[Pairing],
    methods: Sequence[Method],
    settings: Settings,
    record: Record,
    report: Report,
    together: int | None = None,
) -> None:
    """Holds conversations side by side; each continues as soon as it can.

    Args:
        engine: of the model that plays both sides, or of two that play one each (`session_of`).
        pairings: the conversations; taken one by one, as there is room.
        record: records a conversation that is over; one with a failed request, once another
            request is answered.
        report: receives the progress in rounds.
        together: how many run at once; one that is over makes room for the next. None: all.
    """
    async with task_group() as held_back:
        watch = OutageWatch(lambda dialog: held_back.create_task(record(dialog)), "conversation")
        room = asyncio.Semaphore(together or 1)

        async def hold(pairing: Pairing) -> None:
            dialog = Dialog(pairing)
            await hold_dialog(Asking(engine, dialog, tuple(methods), settings, watch), report)
            for view in (AGENT_VIEW, USER_VIEW):
                engine.forget((view, pairing.number))
            room.release()
            if not watch.holds_back(pairing.number, dialog):
                await record(dialog)

        async with task_group() as conversations:
            for pairing in pairings:
                if together is not None:
                    await room.acquire()
                conversations.create_task(hold(pairing))
        await watch.finish(engine)


async def hold_one_dialog(
    engine: Engine, dialog: Dialog, methods: Sequence[Method], settings: Settings
) -> None:
    """Holds one conversation, for callers that keep its record themselves; it has no judges."""
    for rule in (rule for probe in dialog.pairing.every_probe for rule in probe.rules):
        if rule.measure.judged:
            raise UsageError(
                f"The judge of {dialog.pairing.agent.id!r}, {rule.measure.arguments['judge']!r},"
                " is asked only by `holdfast drift`; take a suite without judges here."
            )
    watch = OutageWatch(lambda dialog: None, "conversation")
    await hold_dialog(Asking(engine, dialog, tuple(methods), settings, watch))


async def hold_dialog(asking: Asking, report: Report = lambda rounds, tokens: None) -> None:
    """Holds a conversation to its end: a self-chat, or the replay of a recorded dialog."""
    dialog, reported, counted = asking.dialog, 0, 0

    def report_rounds(count: int) -> None:
        nonlocal reported, counted
        report(count, dialog.forwarded - counted)
        reported, counted = reported + count, dialog.forwarded

    if dialog.pairing.dialog is None:
        await self_chat(asking, lambda: report_rounds(1))
    else:
        await replay(asking, dialog.pairing.dialog)
    rounds = asking.settings.rounds
    if reported < rounds:  # rounds that never happened count as progress too
        report_rounds(rounds - reported)


async def self_chat(asking: Asking, end_round: Callable[[], None]) -> None:
    """Turns one by one, with the probes of each round beside the next turn.

    `end_round` is called after every round but the last, which ends with its probes.
    """
    dialog, settings = asking.dialog, asking.settings
    async with task_group() as probes:

        def ask_probes(number: int, before: int) -> None:
            for probe in dialog.pairing.every_probe:
                probes.create_task(asking.ask_probe(number, probe, before))

        with suppress(RequestFailed):  # a turn that failed is noted as the end of the dialog
            await user_turn(asking, 1)
            for number in range(1, settings.rounds + 1):
                fits = await agent_turn(asking, number)
                goes_on = fits and number < settings.rounds
                if goes_on:
                    end_round()
                if settings.probe_at == "after-round":
                    ask_probes(number, number + 1)
                elif number == 1:  # they waited for b_1, which computes the prompt for them
                    ask_probes(1, 1)
                if settings.probe_at == "in-place" and goes_on:
                    ask_probes(number + 1, number + 1)
                if not (goes_on and await user_turn(asking, number + 1)):
                    break


async def user_turn(asking: Asking, number: int) -> bool:
    """Adds a_i: given in round 1, from a script, or the user model's; returns as `agent_turn`."""
    pairing, pressure = asking.dialog.pairing, None
    if pairing.script is not None:
        message = pairing.script.messages[number - 1]
        given, pressure = Reply(message.text, None, SCRIPTED), message.pressure
    elif number == 1:
        given = Reply(pairing.starter, None, "stop")
    else:
        return await _generated_turn(asking, USER_VIEW, number, number - 1)
    asking.dialog.turns.append(turn_of(number, "user", given, pressure=pressure))
    return True


async def agent_turn(asking: Asking, number: int) -> bool:
    """Adds b_i; returns False if the dialog has filled the model's context."""
    return await _generated_turn(asking, AGENT_VIEW, number, number)


async def _generated_turn(asking: Asking, speaker: Speaker, number: int, rounds: int) -> bool:
    """Adds a turn of a model that sees the dialog up to round `rounds`.

    Raises:
        RequestFailed: the turn was not answered, which ends the dialog.
        PromptError: not even the first question fits into the context.
    """
    dialog = asking.dialog

    def messages(shown: Shown) -> list[Message]:
        whole = user_view if speaker == USER_VIEW else agent_view
        return with_summary(whole(dialog, shown=shown), shown)

    draw = (number, speaker)
    try:
        reply, shown = await asking.ask(Question(speaker, rounds, messages, draw, keep=True))
    except RequestFailed as error:
        dialog.ended = Ended(round=number, why=error.why, reason=str(error))
        raise
    dialog.shown[speaker] = shown
    if reply.stop_reason == "context":
        if number == 1:
            raise _prompt_too_long(dialog)
        dialog.ended = Ended(round=number, why="context")
        return False
    dialog.turns.append(turn_of(number, speaker, reply, shown))
    if speaker == AGENT_VIEW and reply.trace is not None and reply.trace.uniform is not None:
        dialog.traces[number] = TurnTrace(reply.trace.mass, reply.trace.uniform)
    return True


def probed_rounds(dialog: RecordedDialog, settings: Settings) -> int:
    """How many rounds of a dialog are probed; "in-place" also probes after the last round."""
    return min(settings.rounds, len(dialog.rounds) + (settings.probe_at == "in-place"))


async def replay(asking: Asking, recorded: RecordedDialog) -> None:
    """Asks the probes of a recorded dialog, each in a copy of it up to their round.

    The first probe of the last round is asked first: what is computed for it covers the whole
    dialog, and all others reuse it.
    """
    dialog, settings = asking.dialog, asking.settings
    add_recorded_turns(dialog, recorded, settings)
    after = int(settings.probe_at == "after-round")
    first, *more = dialog.pairing.every_probe
    last = probed_rounds(recorded, settings)
    while not await asking.ask_probe(last, first, last + after, keep=True):
        if last == 1:
            raise _prompt_too_long(dialog)
        dialog.ended = Ended(round=last, why="context")
        last -= 1
    async with task_group() as probes:
        for probe in more:
            probes.create_task(asking.ask_probe(last, probe, last + after))
        for number in range(1, last):
            for probe in (first, *more):
                probes.create_task(asking.ask_probe(number, probe, number + after))


def add_recorded_turns(dialog: Dialog, recorded: RecordedDialog, settings: Settings) -> None:
    """Adds the turns of a recorded dialog as they are."""
    for number, exchange in enumerate(recorded.rounds[: settings.rounds], start=1):
        dialog.turns.append(turn_of(number, "user", Reply(exchange.user, None, RECORDED)))
        answer = Reply(exchange.answer, None, RECORDED)
        messages = exchange.messages if uses_tools(exchange.messages) else ()
        dialog.turns.append(turn_of(number, "agent", answer, messages=messages))


def _prompt_too_long(dialog: Dialog) -> PromptError:
    return PromptError(
        f"The system prompt of {dialog.pairing.agent.id!r} and one question already fill the"
        " model's context; use a shorter prompt."
    )
