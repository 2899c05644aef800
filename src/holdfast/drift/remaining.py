"""How much of a run there is to do: its replies, and the conversations that are not recorded."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from holdfast.drift.cases import Suite
from holdfast.drift.pairing import Pairing, ProbeQuestion, draw
from holdfast.drift.recorded_dialogs import RecordedDialog
from holdfast.drift.settings import Settings
from holdfast.drift.user_scripts import UserSource
from holdfast.records import MANIFEST, read_run


def count_replies(
    suite: Suite, settings: Settings, user_source: UserSource | None, numbers: Iterable[int]
) -> int:
    """How many turns and probes these conversations have; fewer if one ends early."""
    pairings = (draw(suite, settings, user_source, number) for number in numbers)
    return sum(replies_in(pairing, settings) for pairing in pairings)


def replies_in(pairing: Pairing, settings: Settings) -> int:
    """How many turns and probes a conversation has; fewer if it ends early."""
    if pairing.dialog is not None:
        last = probed_rounds(pairing.dialog, settings)
        before = sum(len(probes_in_round(pairing, settings, n)) for n in range(1, last))
        return before + len(pairing.probes_of(last, last))
    # a_1 is given, or all user turns are
    turns = settings.rounds if pairing.script else 2 * settings.rounds - 1
    rounds = range(1, settings.rounds + 1)
    return turns + sum(len(probes_in_round(pairing, settings, number)) for number in rounds)


def probes_in_round(pairing: Pairing, settings: Settings, number: int) -> tuple[ProbeQuestion, ...]:
    """The probes of round `number`; none in a round that is not probed."""
    return pairing.probes_of(number, settings.rounds) if settings.probes_in(number) else ()


def probed_rounds(dialog: RecordedDialog, settings: Settings) -> int:
    """How many rounds of a dialog are probed; "in-place" also probes after the last round."""
    in_place = settings.probe_at == "in-place"
    return min(settings.rounds, len(dialog.rounds) + 1 if in_place else len(dialog.rounds))


def missing_numbers(
    out: Path | str, methods: Sequence[str], wanted: Sequence[int]
) -> dict[str, list[int]]:
    """Which of the wanted conversations a run's folder lacks, by method; it need not exist."""
    folder = Path(out)
    records = read_run(folder).records if (folder / MANIFEST).is_file() else ()
    recorded = {(record.method, record.conversation) for record in records}
    return {
        method: [number for number in wanted if (method, number) not in recorded]
        for method in methods
    }
