"""How many replies conversations ask a model for, before any is held."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from holdfast.drift.cases import Suite
from holdfast.drift.dialogs import Dialogs
from holdfast.drift.pairing import draw
from holdfast.drift.replay import probed_rounds
from holdfast.drift.settings import Settings
from holdfast.records import MANIFEST, read_run


def count_replies(
    suite: Suite, settings: Settings, dialogs: Dialogs | None, numbers: Iterable[int]
) -> int:
    """Turns and probes of these conversations, of both models; fewer where one ends early.

    Args:
        suite, settings: of the run.
        dialogs: that are replayed, whose turns are there.
        numbers: of the conversations.
    """
    replies = 0
    for number in numbers:
        pairing = draw(suite, settings, dialogs, number)
        if pairing.dialog:
            replies += len(pairing.asked) * probed_rounds(pairing.dialog, settings)
        else:  # a_1 is given
            replies += len(pairing.asked) * settings.rounds + 2 * settings.rounds - 1
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
