"""Counts the work of a run: its replies, and the conversations that are not recorded yet."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from holdfast.drift.cases import Suite
from holdfast.drift.pairing import Pairing, ProbeQuestion, draw_conversation
from holdfast.drift.recorded_dialogs import RecordedDialog
from holdfast.drift.settings import Settings
from holdfast.drift.user_scripts import UserSource
from holdfast.records import MANIFEST, read_run


def count_replies(
    suite: Suite, settings: Settings, user_source: UserSource | None, numbers: Iterable[int]
) -> int:
    """Counts the turns and probes of these conversations, if none of them ends early."""
    pairings = (draw_conversation(suite, settings, user_source, number) for number in numbers)
    return sum(replies_in(pairing, settings) for pairing in pairings)


def replies_in(pairing: Pairing, settings: Settings) -> int:
    """Counts the turns and probes of a conversation, if it does not end early."""
    if pairing.recorded is not None:
        last = probed_rounds(pairing.recorded, settings)
        before = sum(len(probes_in_round(pairing, settings, n)) for n in range(1, last))
        return before + len(pairing.probes_of(last, last))
    # the model does not write a_1, nor any user turn of a script
    turns = settings.rounds if pairing.script else 2 * settings.rounds - 1
    rounds = range(1, settings.rounds + 1)
    return turns + sum(len(probes_in_round(pairing, settings, number)) for number in rounds)


def probes_in_round(pairing: Pairing, settings: Settings, number: int) -> tuple[ProbeQuestion, ...]:
    """The probes of round `number`; () if the round is not probed."""
    return pairing.probes_of(number, settings.rounds) if settings.probes_in(number) else ()


def probed_rounds(dialog: RecordedDialog, settings: Settings) -> int:
    """How many rounds of a dialog are probed; "in-place" also probes after the last round."""
    in_place = settings.probe_at == "in-place"
    return min(settings.rounds, len(dialog.rounds) + 1 if in_place else len(dialog.rounds))


def missing_numbers(
    out: Path | str, methods: Sequence[str], numbers: Sequence[int]
) -> dict[str, list[int]]:
    """The numbers of the conversations that a run's folder lacks, by method.

    Args:
        out: the folder, which need not exist.
        methods: the specs of the methods.
        numbers: the numbers of the conversations to look for.
    """
    folder = Path(out)
    records = read_run(folder).records if (folder / MANIFEST).is_file() else ()
    recorded = {(record.method, record.conversation) for record in records}
    return {
        method: [number for number in numbers if (method, number) not in recorded]
        for method in methods
    }
