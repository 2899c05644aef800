"""The self-chat of two models under two prompts, with probes (Li et al. 2024, section 3.1).

A dialog has n rounds, in each of which the user says a_i and the agent replies b_i:

    a1, b1, a2, b2, ..., an, bn

The agent replies to [s_B, a1, b1, ..., ai], under its system prompt s_B. The user model sees the
same dialog with the roles swapped, under s_A. The starter a1 is given.

A probe p_B asks something whose answer shows whether the agent still follows s_B. The probe of
round i takes the place of a_i in a fork of the agent's chat, which the dialog never sees:

    [s_B, a1, b1, ..., a(i-1), b(i-1), p_B]

With `probe_at="after-round"`, as in the released code, it follows b_i instead.
"""

import asyncio
from contextlib import suppress
from typing import Any

from holdfast.drift.dialog import AGENT_VIEW, USER_VIEW, Dialog, DialogSide
from holdfast.drift.dialog_records import probe_outcomes_of, turn_of, unanswered_of
from holdfast.drift.dialog_requests import DialogClient, DialogRequest
from holdfast.drift.pairing import ProbeQuestion
from holdfast.errors import PromptTooLong, RequestFailed
from holdfast.models.event_loop import task_group
from holdfast.records import Ended, Turn
from holdfast.records.conversation import SCRIPTED
from holdfast.records.traces import TurnTrace

RECALL_TOKENS = 300  # enough for a list of all rules of a prompt


async def self_chat(client: DialogClient) -> None:
    """Takes the turns one after another, and asks each round's probes while the next turn runs."""
    in_place = client.settings.probe_at == "in-place"
    async with task_group() as probes:
        with suppress(RequestFailed):  # the dialog has noted that it ends with the failed turn
            for number in range(1, client.settings.rounds + 1):
                if in_place and number > 1:
                    start_probes(client, probes, number)
                if not await add_user_turn(client, number):
                    break
                if not await add_agent_turn(client, number):
                    break
                # in round 1, probes wait for b_1, to reuse the prompt that was computed for it
                if number == 1 or not in_place:
                    start_probes(client, probes, number)


async def add_user_turn(client: DialogClient, number: int) -> bool:
    """Adds a_i: from the script, or else the starter in round 1, or a turn of the user model.

    Returns:
        False if the dialog has filled the model's context.
    """
    pairing = client.dialog.pairing
    if pairing.script is not None:
        message = pairing.script.messages[number - 1]
        turn = given_turn(number, "user", message.text, SCRIPTED, pressure=message.pressure)
    elif number == 1:
        turn = given_turn(number, "user", pairing.starter, "stop")
    else:
        return await _add_model_turn(client, USER_VIEW, number, last_round=number - 1)
    client.dialog.turns.append(turn)
    return True


def given_turn(number: int, speaker: DialogSide, text: str, stop_reason: str, **more: Any) -> Turn:
    """A turn that no model of this run wrote."""
    return Turn(round=number, speaker=speaker, text=text, stop_reason=stop_reason, **more)


async def add_agent_turn(client: DialogClient, number: int) -> bool:
    """Adds b_i, by the agent.

    Returns:
        False if the dialog has filled the model's context.

    Raises:
        PromptTooLong: not even the first question fits into the context.
    """
    return await _add_model_turn(client, AGENT_VIEW, number, last_round=number)


async def _add_model_turn(
    client: DialogClient, speaker: DialogSide, number: int, last_round: int
) -> bool:
    """Adds the turn of a model that has seen the dialog up to `last_round`.

    Raises:
        RequestFailed: the turn was not answered, which ends the dialog.
    """
    dialog = client.dialog
    request = DialogRequest(
        view=speaker,
        round=number,
        seed_names=(speaker,),
        last_round=last_round,
        max_new_tokens=client.settings.sampling.max_new_tokens,
    )
    try:
        answer = await client.send(request)
    except RequestFailed as error:
        dialog.ended = Ended(round=number, why=error.why, reason=str(error))
        raise
    dialog.latest_shown[speaker] = answer.shown
    reply = answer.reply
    if reply.stop_reason == "context":
        if number == 1:
            raise prompt_too_long(dialog)
        dialog.ended = Ended(round=number, why="context")
        return False
    dialog.turns.append(turn_of(number, speaker, answer))
    if (number, speaker) == (1, AGENT_VIEW):
        client.truncation.first_reply(reply.stop_reason, answer.cut_at)
    if speaker == AGENT_VIEW and reply.trace is not None and reply.trace.uniform is not None:
        dialog.traces[number] = TurnTrace(reply.trace.mass, reply.trace.uniform)
    return True


def start_probes(client: DialogClient, probes: asyncio.TaskGroup, number: int) -> None:
    """Starts the probes of round `number`, which are asked beside the turns that follow."""
    for question in client.dialog.pairing.probes_in(number, client.settings):
        probes.create_task(ask_probe(client, number, question))


async def ask_probe(
    client: DialogClient, number: int, question: ProbeQuestion, *, keep: bool = False
) -> bool:
    """Asks a probe of round `number` in a fork of the dialog, and notes its outcomes.

    Args:
        keep: whether later requests may reuse what is computed for the probe.

    Returns:
        Whether the model's context had room for the probe.
    """
    dialog = client.dialog
    settings = client.settings
    max_new_tokens = settings.sampling.max_new_tokens
    if question.kind == "recall":
        max_new_tokens = max(max_new_tokens, RECALL_TOKENS)
    request = DialogRequest(
        view=AGENT_VIEW,
        round=number,
        seed_names=question.seed_names,
        # the probe takes the place of the user's message in this round
        last_round=number if settings.probe_at == "in-place" else number + 1,
        max_new_tokens=max_new_tokens,
        question=question.question,
        keep=keep,
    )
    try:
        answer = await client.send(request)
    except RequestFailed as error:
        dialog.probes += unanswered_of(number, question, error)
        return error.why != "context"
    if answer.reply.stop_reason == "context":
        return False
    dialog.probes += probe_outcomes_of(number, question, answer)
    return True


def prompt_too_long(dialog: Dialog) -> PromptTooLong:
    """The error if a dialog has no room for its first reply."""
    agent = dialog.pairing.agent.id
    return PromptTooLong(
        f"The system prompt of {agent!r} and one question already fill the model's context; use a"
        " shorter prompt.",
        value=agent,
    )
