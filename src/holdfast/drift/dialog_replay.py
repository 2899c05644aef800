"""Replays a recorded dialog: its turns stay as they are, and the model answers only the probes.

Each probe is asked in a fork of the dialog, as in a self-chat (`selfchat`).
"""

from holdfast.chat.messages import uses_tools
from holdfast.drift.dialog import Dialog
from holdfast.drift.dialog_requests import DialogClient
from holdfast.drift.recorded_dialogs import RecordedDialog
from holdfast.drift.selfchat import ask_probe, given_turn, prompt_too_long, start_probes
from holdfast.drift.settings import Settings
from holdfast.models.event_loop import task_group
from holdfast.records import Ended
from holdfast.records.conversation import RECORDED


async def replay(client: DialogClient, recorded: RecordedDialog) -> None:
    """Adds the turns of a recorded dialog, and asks the probes of all rounds.

    The first probe of the last round is asked first, as what is computed for it covers the whole
    dialog, so that all others reuse it.

    Raises:
        PromptTooLong: not even the first question fits into the context.
    """
    dialog = client.dialog
    add_recorded_turns(dialog, recorded, client.settings)
    last = dialog.pairing.last_probed_round(client.settings)
    first, *others = dialog.pairing.all_probes
    while not await ask_probe(client, last, first, keep=True):
        if last == 1:
            raise prompt_too_long(dialog)
        dialog.ended = Ended(round=last, why="context")
        last -= 1
    async with task_group() as probes:
        for question in others:
            probes.create_task(ask_probe(client, last, question))
        for number in range(1, last):
            start_probes(client, probes, number)


def add_recorded_turns(dialog: Dialog, recorded: RecordedDialog, settings: Settings) -> None:
    """Adds the turns of a recorded dialog as they are."""
    for number, exchange in enumerate(recorded.rounds[: settings.rounds], start=1):
        dialog.turns.append(given_turn(number, "user", exchange.user, RECORDED))
        messages = exchange.messages if uses_tools(exchange.messages) else ()
        answer = given_turn(number, "agent", exchange.answer, RECORDED, messages=messages)
        dialog.turns.append(answer)
