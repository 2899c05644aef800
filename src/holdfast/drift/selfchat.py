"""Self-chat of two models under two prompts, probed at every round (Li et al. 2024, section 3.1).

The agent sees [s_B, a1, b1, ..., ai]. The user model sees the same dialog with the roles swapped
under s_A; chats begin with a user message, so its first one recaps a1 and b1. Round i's probe forks
the agent's dialog in place of a_i and never enters it.

A recorded dialog is replayed: it stays as it was recorded, and the model answers only the probes,
each in a copy of the dialog up to that round.
"""

import asyncio
import warnings
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import Any

from holdfast.chat.messages import Message, uses_tools
from holdfast.common.event_loop import task_group
from holdfast.common.plurals import plural
from holdfast.drift.dialog import (
    AGENT_VIEW,
    USER_VIEW,
    Answer,
    Dialog,
    Speaker,
    agent_view,
    turn_of,
    user_view,
)
from holdfast.drift.dialog_requests import DialogRequests, Question
from holdfast.drift.pairing import Pairing
from holdfast.drift.recorded_dialogs import RecordedDialog
from holdfast.drift.settings import Settings, Shown, with_summary
from holdfast.errors import PromptTooLong, RequestFailed, UsageError
from holdfast.methods import Method
from holdfast.models.failures import OutageWatch
from holdfast.models.protocol import Engine
from holdfast.models.requests import Reply
from holdfast.records import Ended
from holdfast.records.conversation import RECORDED, SCRIPTED
from holdfast.records.traces import TurnTrace

SaveDialog = Callable[[Dialog], Coroutine[Any, Any, None]]  # records a conversation that is over
_ENOUGH_REPLIES = 4  # to say that most are cut
ReportRounds = Callable[[int, int], None]  # takes how many rounds have ended, and their tokens


@dataclass
class CutWatch:
    """Warns once, in the first rounds, if most of the agent's replies are cut at the limit."""

    limit: int
    replies: int = 0
    cut: int = 0
    has_warned: bool = False

    def first_round_ended(self, dialog: Dialog) -> None:
        """Counts the agent's first reply in a dialog."""
        first = [turn for turn in dialog.turns if (turn.round, turn.speaker) == (1, AGENT_VIEW)]
        self.replies += len(first)
        self.cut += sum(turn.stop_reason == "length" for turn in first)
        if self.has_warned or self.replies < _ENOUGH_REPLIES or 2 * self.cut <= self.replies:
            return
        self.has_warned = True
        warnings.warn(
            f"{self.cut} of the first {self.replies} replies are cut at"
            f" {plural(self.limit, 'token')}: their ends are not judged, and the dialogs go on from"
            " broken sentences; Ctrl-C ends this run, and a higher --max-new-tokens begins one"
            " with whole replies.",
            stacklevel=2,
        )


@dataclass
class RoundProgress:
    """Reports the rounds of a dialog that have ended, each with the tokens it took."""

    dialog: Dialog
    rounds_left: int
    report: ReportRounds
    cut_watch: CutWatch
    tokens_reported: int = 0
    is_first: bool = True

    def end_rounds(self, count: int) -> None:
        if self.is_first:
            self.is_first = False
            self.cut_watch.first_round_ended(self.dialog)
        self.report(count, self.dialog.forwarded - self.tokens_reported)
        self.rounds_left -= count
        self.tokens_reported = self.dialog.forwarded


async def converse(
    engine: Engine,
    pairings: Iterable[Pairing],
    methods: Sequence[Method],
    settings: Settings,
    save: SaveDialog,
    report: ReportRounds,
    concurrency: int | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> None:
    """Holds conversations side by side; each continues as soon as it can.

    Args:
        engine: of the model that plays both sides, or of two that play one each (`session_of`).
        pairings: the conversations, in the order in which they begin.
        save: records a conversation that is over; one with a failed request, once another request
            is answered.
        report: receives the progress in rounds.
        concurrency: how many run at once; one that is over makes room for the next. None: all.
        should_stop: asked after each round; see `Running`.

    Raises:
        PromptTooLong: not even the first question of a conversation fits into the context.
    """
    async with task_group() as held_back:
        watch = OutageWatch(lambda dialog: held_back.create_task(save(dialog)), "conversation")
        room = nullcontext() if concurrency is None else asyncio.Semaphore(concurrency)
        tasks: list[asyncio.Task[None]] = []
        cut_watch = CutWatch(settings.sampling.max_new_tokens)

        def report_or_stop(rounds: int, tokens: int) -> None:
            report(rounds, tokens)
            if should_stop():
                for task in tasks:
                    task.cancel()

        async def run_one(pairing: Pairing) -> None:
            dialog = Dialog(pairing)
            async with room:
                requests = DialogRequests(engine, dialog, tuple(methods), settings, watch)
                progress = RoundProgress(dialog, settings.rounds, report_or_stop, cut_watch)
                await run_dialog(requests, progress)
                for view in (AGENT_VIEW, USER_VIEW):
                    engine.forget((view, pairing.number))
            if not watch.holds_back(pairing.number, dialog):
                await save(dialog)
            # the last round ends with its probes; rounds that never happened count as progress too
            progress.end_rounds(progress.rounds_left)

        async with task_group() as conversations:
            for pairing in pairings:
                tasks.append(conversations.create_task(run_one(pairing)))
        await watch.finish(engine)


async def converse_once(
    engine: Engine, dialog: Dialog, methods: Sequence[Method], settings: Settings
) -> None:
    """Runs one conversation, for callers that keep its record themselves; it has no judges."""
    pairing = dialog.pairing
    for rule in (rule for probe in pairing.probes_of(1, 1) for rule in probe.rules):
        if rule.measure.judged:
            raise UsageError(
                f"The judge of {pairing.agent.id!r}, {rule.measure.arguments['judge']!r},"
                " is asked only by `holdfast drift`; take a suite without judges here."
            )
    watch = OutageWatch(lambda dialog: None, "conversation")
    requests = DialogRequests(engine, dialog, tuple(methods), settings, watch)
    cut_watch = CutWatch(settings.sampling.max_new_tokens)
    progress = RoundProgress(dialog, settings.rounds, lambda rounds, tokens: None, cut_watch)
    await run_dialog(requests, progress)


async def run_dialog(requests: DialogRequests, progress: RoundProgress) -> None:
    """Runs a conversation to its end: a self-chat, or the replay of a recorded dialog."""
    recorded = requests.dialog.pairing.dialog
    if recorded is None:
        await self_chat(requests, progress)
    else:
        await replay(requests, recorded)


async def self_chat(requests: DialogRequests, progress: RoundProgress) -> None:
    """Turns one by one, with the probes of each round beside the next turn.

    Every round but the last is reported as soon as its turns have ended.
    """
    async with task_group() as probes:
        with suppress(RequestFailed):  # a turn that failed is noted as the end of the dialog
            if requests.settings.probe_at == "in-place":
                await _chat_with_probes_in_place(requests, progress, probes)
            else:
                await _chat_with_probes_after_rounds(requests, progress, probes)


async def _chat_with_probes_in_place(
    requests: DialogRequests, progress: RoundProgress, probes: asyncio.TaskGroup
) -> None:
    """Round i is probed in place of a_i, before either turn of the round."""
    await user_turn(requests, 1)
    await model_turn(requests, AGENT_VIEW, 1)
    # asked only now, so that they reuse the prompt computed for b_1
    _start_probes(requests, probes, 1, before=1)
    for number in range(2, requests.settings.rounds + 1):
        progress.end_rounds(1)
        _start_probes(requests, probes, number, before=number)
        if not await user_turn(requests, number):
            break
        if not await model_turn(requests, AGENT_VIEW, number):
            break


async def _chat_with_probes_after_rounds(
    requests: DialogRequests, progress: RoundProgress, probes: asyncio.TaskGroup
) -> None:
    """Round i is probed after b_i, in place of the user's next message."""
    for number in range(1, requests.settings.rounds + 1):
        if not await user_turn(requests, number):
            break
        if not await model_turn(requests, AGENT_VIEW, number):
            break
        _start_probes(requests, probes, number, before=number + 1)
        if number < requests.settings.rounds:
            progress.end_rounds(1)


def _start_probes(
    requests: DialogRequests, probes: asyncio.TaskGroup, number: int, before: int
) -> None:
    """Asks the probes of round `number`, each in a fork of the dialog before round `before`."""
    settings = requests.settings
    asked = requests.dialog.pairing.probes_of(number, settings.rounds)
    for probe in asked if settings.probes_in(number) else ():
        probes.create_task(requests.ask_probe(number, probe, before))


async def user_turn(requests: DialogRequests, number: int) -> bool:
    """Adds a_i: from a script, the starter in round 1, or the user model's.

    Returns False if the dialog has filled the model's context.
    """
    pairing = requests.dialog.pairing
    if pairing.script is not None:
        message = pairing.script.messages[number - 1]
        given = Reply(message.text, None, SCRIPTED)
        turn = turn_of(number, "user", Answer(given), pressure=message.pressure)
    elif number == 1:
        turn = turn_of(number, "user", Answer(Reply(pairing.starter, None, "stop")))
    else:
        return await model_turn(requests, USER_VIEW, number)
    requests.dialog.turns.append(turn)
    return True


async def model_turn(requests: DialogRequests, speaker: Speaker, number: int) -> bool:
    """Adds b_i, or a_i of the user model; returns False if the dialog has filled the context.

    Raises:
        RequestFailed: the turn was not answered, which ends the dialog.
        PromptTooLong: not even the first question fits into the context.
    """
    dialog = requests.dialog
    # the agent answers the user's message of its round; the user model has seen the rounds before
    last_round_seen = number if speaker == AGENT_VIEW else number - 1
    view = agent_view if speaker == AGENT_VIEW else user_view

    def messages(shown: Shown) -> list[Message]:
        return with_summary(view(dialog, shown=shown), shown)

    seed_names = (number, speaker)
    question = Question(speaker, last_round_seen, messages, seed_names, keep=True)
    try:
        answer = await requests.ask(question)
    except RequestFailed as error:
        dialog.ended = Ended(round=number, why=error.why, reason=str(error))
        raise
    reply = answer.reply
    dialog.shown[speaker] = answer.shown
    if reply.stop_reason == "context":
        if number == 1:
            raise _prompt_too_long_error(dialog)
        dialog.ended = Ended(round=number, why="context")
        return False
    dialog.turns.append(turn_of(number, speaker, answer))
    if speaker == AGENT_VIEW and reply.trace is not None and reply.trace.uniform is not None:
        dialog.traces[number] = TurnTrace(reply.trace.mass, reply.trace.uniform)
    return True


def probed_rounds(dialog: RecordedDialog, settings: Settings) -> int:
    """How many rounds of a dialog are probed; "in-place" also probes after the last round."""
    in_place = settings.probe_at == "in-place"
    return min(settings.rounds, len(dialog.rounds) + 1 if in_place else len(dialog.rounds))


async def replay(requests: DialogRequests, recorded: RecordedDialog) -> None:
    """Asks the probes of a recorded dialog, each in a copy of it up to their round.

    The first probe of the last round is asked first: what is computed for it covers the whole
    dialog, and all others reuse it.

    Raises:
        PromptTooLong: not even the first question fits into the context.
    """
    dialog, settings = requests.dialog, requests.settings
    add_recorded_turns(dialog, recorded, settings)

    def fork_of(number: int) -> int:
        """The round before which the probes of round `number` fork the dialog."""
        return number if settings.probe_at == "in-place" else number + 1

    last = probed_rounds(recorded, settings)
    first, *more = dialog.pairing.probes_of(last, last)
    while not await requests.ask_probe(last, first, fork_of(last), keep=True):
        if last == 1:
            raise _prompt_too_long_error(dialog)
        dialog.ended = Ended(round=last, why="context")
        last -= 1
    async with task_group() as probes:
        for probe in more:
            probes.create_task(requests.ask_probe(last, probe, fork_of(last)))
        for number in range(1, last):
            _start_probes(requests, probes, number, fork_of(number))


def add_recorded_turns(dialog: Dialog, recorded: RecordedDialog, settings: Settings) -> None:
    """Adds the turns of a recorded dialog as they are."""
    for number, exchange in enumerate(recorded.rounds[: settings.rounds], start=1):
        dialog.turns.append(turn_of(number, "user", Answer(Reply(exchange.user, None, RECORDED))))
        answer = Answer(Reply(exchange.answer, None, RECORDED))
        messages = exchange.messages if uses_tools(exchange.messages) else ()
        dialog.turns.append(turn_of(number, "agent", answer, messages=messages))


def _prompt_too_long_error(dialog: Dialog) -> PromptTooLong:
    agent = dialog.pairing.agent.id
    return PromptTooLong(
        f"The system prompt of {agent!r} and one question already fill the model's context; use a"
        " shorter prompt.",
        value=agent,
    )
