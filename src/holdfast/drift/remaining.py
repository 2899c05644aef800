"""Counts the work of a run: its replies, and the conversations that are not recorded yet."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from holdfast.drift.cases import Suite
from holdfast.drift.pairing import draw_conversation
from holdfast.drift.settings import Cast, Settings
from holdfast.records import MANIFEST, key_of, read_run


def count_replies(
    suite: Suite, settings: Settings, numbers: Iterable[int], cast: Cast = Cast()
) -> int:
    """Counts the turns and probes of these conversations, if none of them ends early."""
    pairings = (draw_conversation(suite, settings, number, cast) for number in numbers)
    return sum(pairing.num_replies(settings) for pairing in pairings)


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
    recorded = set(map(key_of, records))
    return {
        method: [number for number in numbers if (method, number) not in recorded]
        for method in methods
    }
