"""How much of a run there is to do: its replies, and the conversations that are not recorded."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from holdfast.drift.cases import Suite
from holdfast.drift.pairing import draw
from holdfast.drift.recorded_dialogs import Dialogs, UserTurns
from holdfast.drift.selfchat import probed_rounds
from holdfast.drift.settings import Settings
from holdfast.records import MANIFEST, read_run


def count_replies(
    suite: Suite, settings: Settings, given: Dialogs | UserTurns | None, numbers: Iterable[int]
) -> int:
    """How many turns and probes these conversations have; fewer if one ends early."""
    replies = 0
    for number in numbers:
        pairing = draw(suite, settings, given, number)
        if pairing.dialog:
            replies += len(pairing.every_probe) * probed_rounds(pairing.dialog, settings)
        else:  # a_1 is given, or all user turns are
            of_user = 0 if pairing.script else settings.rounds - 1
            replies += (len(pairing.every_probe) + 1) * settings.rounds + of_user
    return replies


def missing_numbers(
    out: Path | str, methods: Sequence[str], conversations: int
) -> dict[str, list[int]]:
    """The conversations still missing from a run's folder, by method; the folder need not exist."""
    folder = Path(out)
    records = read_run(folder).records if (folder / MANIFEST).is_file() else ()
    recorded = {(record.method, record.conversation) for record in records}
    return {
        method: [number for number in range(conversations) if (method, number) not in recorded]
        for method in methods
    }
