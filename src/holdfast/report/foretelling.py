"""What turns of the agent foretell of the next probe, in sentences and as a table."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.analysis.foretelling import BOTH, Area, Foretelling
from holdfast.analysis.statistics import Estimate
from holdfast.analysis.verdicts import tell
from holdfast.report.wording import plain, signed

_SIGNS = {"mass": "low mass", "divergence": "high divergence", BOTH: "both together"}


def foretelling_lines(told: Foretelling) -> list[str]:
    """What foretells a lost probe, and whether the divergence does so better than the mass."""
    signs = "; ".join(
        f"{_SIGNS[area.sign]} {plain(area.over_all)} over all, {plain(area.within_rounds)} within"
        " rounds"
        for area in told.areas
    )
    lines = [
        f"A lost probe follows {told.lost:,} of {told.turns:,} turns from round 2 on. Area under"
        f" the ROC curve by which it is foretold (0.5 is chance): {signs}."
    ]
    if told.gains:
        gains = "; ".join(
            f"{_SIGNS[area.sign]} {_judged(area.over_all)} over all, {_judged(area.within_rounds)}"
            " within rounds"
            for area in told.gains
        )
        lines.append(f"Beyond low mass alone: {gains}.")
    return lines


def foretelling_rows(told: Foretelling) -> tuple[tuple[str, ...], ...]:
    """The same as a table, its first row the head."""
    head = ("what foretells a lost probe", "area, over all", "within rounds")
    return (
        head,
        *((_SIGNS[area.sign], *map(plain, _both(area))) for area in told.areas),
        *((f"{_SIGNS[area.sign]} − low mass", *map(_judged, _both(area))) for area in told.gains),
    )


def _both(area: Area) -> Sequence[Estimate]:
    return area.over_all, area.within_rounds


def _judged(gain: Estimate) -> str:
    """'+0.05 [+0.01, +0.09], larger'."""
    return f"{signed(gain)}, {tell(gain).word('larger', 'smaller')}"
