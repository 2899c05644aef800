"""Whether the turns of a dialog repeat one another or themselves.

Texts are compared as sequences of units. A unit is a word (a run of letters and digits, case
folded), an emoji, or, in a script that puts no spaces between words, a character. Anything between
units is ignored; but a text of which they make up less than a third is compared by its characters.

Two texts share a *run* if `RUN` consecutive units of one (`RUN_OF_CHARACTERS` if most of its units
are single characters) occur consecutively in the other. A text of fewer units has no runs, so a
second "Yes." or "Thank you!" is not a repetition.

- A turn *repeats* an earlier one by the share of its units that lie in runs of that turn. Its
  repetition of a speaker is the largest such share among that speaker's earlier turns.
- A turn *loops* by the share of its units that lie in runs that occurred earlier in the turn: a
  turn that says one sentence k times gives (k - 1) / k.

Either counts from `records.conversation.NO_NEWS_FROM` on, that is, if half of the turn is not new.

What the speaker's prompt tells it to say is left out of the count, each phrase once: "I can only
help with bicycles." in every turn is obedience, and three times in one turn is a loop. A turn of
fewer than `RUN` units besides such phrases repeats nothing.
"""

import re
from collections.abc import Sequence

from holdfast.measures.text import fold
from holdfast.records import Repeated

RUN = 4
RUN_OF_CHARACTERS = 8
_DIGITS = 3
_UNSPACED = (  # Thai, Lao, Tibetan, Myanmar, Khmer, kana, Han (with its extensions), and emoji
    "\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff\u2600-\u27bf\U0001f000-\U0001faff"
)
UNSPACED_SIGN = re.compile(f"[{_UNSPACED}]")
_UNIT = re.compile(rf"[{_UNSPACED}]|(?:[^\W_{_UNSPACED}]|(?<=\w)'(?=\w))+")


def repetitions(
    turns: Sequence[tuple[str, str]], phrases: Sequence[Sequence[str]] | None = None
) -> list[Repeated]:
    """The repetition of every turn of a dialog, given as (speaker, text); `phrases` has for each
    turn those that its speaker is asked to say (`measures.phrases`), which are left out.

    Time is linear in the length of a dialog whose turns differ; each further copy of a turn is
    compared with all the copies before it.
    """
    units_by_turn = [units_of(text) for _, text in turns]
    lengths = {_run_length(units) for units in units_by_turn}
    measured: list[Repeated] = []
    turns_with: dict[tuple[str, ...], list[int]] = {}  # a run -> the earlier turns that have it
    for number, ((speaker, _), units) in enumerate(zip(turns, units_by_turn, strict=True)):
        left_out = _positions(units, phrases[number]) if phrases else frozenset[int]()
        run_starts: dict[int, list[int]] = {}  # an earlier turn -> where its runs begin in this one
        for position, run in enumerate(_runs(units)):
            for earlier in turns_with.get(run, ()):
                run_starts.setdefault(earlier, []).append(position)
        shares = {"own": 0.0, "other": 0.0}
        for earlier, begins in run_starts.items():
            whose = "own" if turns[earlier][0] == speaker else "other"
            shares[whose] = max(shares[whose], _share(units, begins, left_out))
        again = _share(units, _again(units), left_out)
        measured.append(Repeated(**shares, loops=again))
        for run in {run for length in lengths for run in _runs(units, length)}:
            turns_with.setdefault(run, []).append(number)
    return measured


def loops(text: str) -> float:
    """The share of a text's units that lie in runs that occurred earlier in it."""
    units = units_of(text)
    return _share(units, _again(units))


def _again(units: Sequence[str]) -> list[int]:
    """Where runs begin that occurred earlier in the same text."""
    written: set[tuple[str, ...]] = set()
    again = []
    for position, run in enumerate(_runs(units)):
        if run in written:
            again.append(position)
        written.add(run)
    return again


def _positions(units: Sequence[str], phrases: Sequence[str]) -> frozenset[int]:
    """The positions of the units that belong to a phrase: the first time that it, or a run of it,
    occurs.
    """
    length = _run_length(units)
    wanted: set[tuple[str, ...]] = set()
    for phrase in phrases:
        parts = units_of(phrase)
        wanted |= {*_runs(parts, length)} if len(parts) > length else {tuple(parts)}
    positions: set[int] = set()
    for size in {len(run) for run in wanted} - {0}:
        for position, run in enumerate(_runs(units, size)):
            if run in wanted:
                wanted.discard(run)
                positions |= {*range(position, position + size)}
    return frozenset(positions)


def units_of(text: str) -> list[str]:
    """The units in which texts are compared, in order."""
    folded = fold(text)
    units: list[str] = _UNIT.findall(folded)
    signs = "".join(folded.split())
    return units if 3 * sum(map(len, units)) >= len(signs) else list(signs)


def _run_length(units: Sequence[str]) -> int:
    single = sum(not unit.isascii() and bool(UNSPACED_SIGN.match(unit)) for unit in units)
    return RUN_OF_CHARACTERS if 2 * single > len(units) else RUN


def _runs(units: Sequence[str], length: int | None = None) -> list[tuple[str, ...]]:
    """The runs of a text, indexed by the unit at which they begin."""
    length = length or _run_length(units)
    return list(zip(*(units[at:] for at in range(length)), strict=False))


def _share(
    units: Sequence[str], begins: Sequence[int], left_out: frozenset[int] = frozenset()
) -> float:
    """The share of the units that lie in the runs that begin at these positions, without the units
    at positions that are left out; 0 if too few are left for a run.
    """
    length = _run_length(units)
    counted = len(units) - len(left_out)
    if not counted or (left_out and counted < length):
        return 0.0
    covered = {at for begin in begins for at in range(begin, begin + length)} - left_out
    return round(len(covered) / counted, _DIGITS)
