"""How many replies conversations ask a model for, before any is held."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from holdfast.drift.cases import Suite
from holdfast.drift.dialogs import Dialogs, UserTurns
from holdfast.drift.pairing import draw
from holdfast.drift.replay import probed_rounds
from holdfast.drift.settings import Settings
from holdfast.records import MANIFEST, read_run


def count_replies(
    suite: Suite, settings: Settings, given: Dialogs | UserTurns | None, numbers: Iterable[int]
) -> int:
    """Turns and probes of these conversations, of both models; fewer where one ends early.

    Args:
        suite, settings: of the run.
        given: dialogs that are replayed, whose turns are there, or user turns.
        numbers: of the conversations.
    """
    replies = 0
    for number in numbers:
        pairing = draw(suite, settings, given, number)
        if pairing.dialog:
            replies += len(pairing.asked) * probed_rounds(pairing.dialog, settings)
        else:  # a_1 is given, or all of the user's
            of_user = 0 if pairing.script else settings.rounds - 1
            replies += (len(pairing.asked) + 1) * settings.rounds + of_user
    return replies


def missing_numbers(
    out: Path | str, methods: Sequence[str], conversations: int
) -> dict[str, list[int]]:
    """By method, the conversations that a run's folder does not hold yet; it need not be there."""
    folder = Path(out)
    records = read_run(folder).records if (folder / MANIFEST).is_file() else []
    recorded = {(record["method"], record["conversation"]) for record in records}
    return {
        method: [number for number in range(conversations) if (method, number) not in recorded]
        for method in methods
    }
