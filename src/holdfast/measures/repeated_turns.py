"""Measures how much the turns of a dialog repeat one another or themselves.

For example, five of the seven words of the second turn lie in runs of the first:

    agent  "I can only help with bicycles."
    agent  "I can only help with cars, sorry."   ->  Repeated(own=0.714, other=0, loops=0)

Texts are compared as sequences of units. A unit is a word (a run of letters and digits, case
folded), an emoji, or, in a script that puts no spaces between words, a character. Anything between
units is ignored. If they make up less than a third of a text, its characters are the units instead.

Two texts share a *run* if `RUN` consecutive units of one (`RUN_OF_CHARACTERS` if most of its units
are single characters) occur consecutively in the other. A text of fewer units has no runs, so a
second "Yes." or "Thank you!" is not a repetition.

- A turn *repeats* an earlier one by the share of its units that lie in runs of that turn. Its
  repetition of a speaker is the largest such share among that speaker's earlier turns.
- A turn *loops* by the share of its units that lie in runs that occurred earlier in the turn: a
  turn that says one sentence k times gives (k - 1) / k.

Either counts as a repetition from `records.conversation.MOSTLY_REPEATED` on, which is one half.

Phrases that the prompt tells the speaker to say are left out of the count, each once per turn: "I
can only help with bicycles." in every turn is obedience, and three times in one turn is a loop. A
turn of fewer than `RUN` units besides such phrases repeats nothing.
"""

import re
from collections.abc import Collection, Sequence

from holdfast.measures.text import fold
from holdfast.records import Repeated

Run = tuple[str, ...]  # consecutive units

RUN = 4  # units
RUN_OF_CHARACTERS = 8  # units, in a text whose units are mostly single characters
_DIGITS = 3
# characters that are units: Thai, Lao, Tibetan, Myanmar, Khmer, kana, Han and its extensions, emoji
_UNSPACED = (
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff\u2600-\u27bf\U0001f000-\U0001faff"
)
UNSPACED_SIGN = re.compile(f"[{_UNSPACED}]")
_UNIT = re.compile(rf"[{_UNSPACED}]|(?:[^\W_{_UNSPACED}]|(?<=\w)'(?=\w))+")


def repetitions(
    turns: Sequence[tuple[str, str]], phrases: Sequence[Sequence[str]] | None = None
) -> list[Repeated]:
    """Returns the repetition of every turn of a dialog.

    Time is linear in the length of a dialog whose turns differ; each further copy of a turn is
    compared with all the copies before it.

    Args:
        turns: the turns as (speaker, text).
        phrases: for each turn, the phrases that its speaker is asked to say (`measures.phrases`),
            which are left out; None for none.
    """
    units_by_turn = [units_of(text) for _, text in turns]
    earlier_runs = _EarlierRuns({_run_length(units) for units in units_by_turn})
    results: list[Repeated] = []
    for number, ((speaker, _), units) in enumerate(zip(turns, units_by_turn, strict=True)):
        left_out = _phrase_positions(units, phrases[number]) if phrases else frozenset[int]()
        own = 0.0
        other = 0.0
        for earlier, starts in earlier_runs.starts_in(units).items():
            share = _share_in_runs(units, starts, left_out)
            if turns[earlier][0] == speaker:
                own = max(own, share)
            else:
                other = max(other, share)
        loop_share = _share_in_runs(units, _repeated_runs(units), left_out)
        results.append(Repeated(own=own, other=other, loops=loop_share))
        earlier_runs.add(number, units)
    return results


class _EarlierRuns:
    """The turns that each run occurred in, by which a turn finds those that it repeats."""

    def __init__(self, lengths: Collection[int]) -> None:
        self._lengths = lengths  # of the runs of any turn of the dialog
        self._turns_by_run: dict[Run, list[int]] = {}

    def add(self, number: int, units: Sequence[str]) -> None:
        """Adds the runs of a turn."""
        for run in {run for length in self._lengths for run in _runs(units, length)}:
            self._turns_by_run.setdefault(run, []).append(number)

    def starts_in(self, units: Sequence[str]) -> dict[int, list[int]]:
        """Returns by earlier turn where its runs begin in these units."""
        starts: dict[int, list[int]] = {}
        for position, run in enumerate(_runs(units)):
            for earlier in self._turns_by_run.get(run, ()):
                starts.setdefault(earlier, []).append(position)
        return starts


def loops(text: str) -> float:
    """Returns the share of a text's units that lie in runs that occurred earlier in it."""
    units = units_of(text)
    return _share_in_runs(units, _repeated_runs(units))


def _repeated_runs(units: Sequence[str]) -> list[int]:
    """Returns the positions at which runs begin that occurred earlier in the same text."""
    seen: set[Run] = set()
    positions = []
    for position, run in enumerate(_runs(units)):
        if run in seen:
            positions.append(position)
        seen.add(run)
    return positions


def _phrase_positions(units: Sequence[str], phrases: Sequence[str]) -> frozenset[int]:
    """Returns the positions of the units in the first occurrence of each phrase, or of its runs."""
    length = _run_length(units)
    missing: set[Run] = set()  # runs of phrases that did not occur yet
    for phrase in phrases:
        parts = units_of(phrase)
        missing |= {*_runs(parts, length)} if len(parts) > length else {tuple(parts)}
    positions: set[int] = set()
    for size in {len(run) for run in missing} - {0}:
        for position, run in enumerate(_runs(units, size)):
            if run in missing:
                missing.discard(run)
                positions |= {*range(position, position + size)}
    return frozenset(positions)


def units_of(text: str) -> list[str]:
    """Splits a text into the units in which texts are compared."""
    folded = fold(text)
    units: list[str] = _UNIT.findall(folded)
    signs = "".join(folded.split())
    return units if 3 * sum(map(len, units)) >= len(signs) else list(signs)


def _run_length(units: Sequence[str]) -> int:
    """Returns the length of the runs of a text, which depends on its script."""
    single = sum(not unit.isascii() and bool(UNSPACED_SIGN.match(unit)) for unit in units)
    return RUN_OF_CHARACTERS if 2 * single > len(units) else RUN


def _runs(units: Sequence[str], length: int | None = None) -> list[Run]:
    """Returns the runs of a text, indexed by the unit at which they begin."""
    length = length or _run_length(units)
    return list(zip(*(units[offset:] for offset in range(length)), strict=False))


def _share_in_runs(
    units: Sequence[str], starts: Sequence[int], left_out: frozenset[int] = frozenset()
) -> float:
    """Returns the share of the units that lie in the runs that begin at these positions.

    Units at the positions in `left_out` do not count; if too few others are left for a run, the
    share is 0.
    """
    length = _run_length(units)
    counted = len(units) - len(left_out)
    if not counted or (left_out and counted < length):
        return 0.0
    covered: set[int] = set()
    for start in starts:
        covered |= {*range(start, start + length)}
    return round(len(covered - left_out) / counted, _DIGITS)
