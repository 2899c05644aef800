"""The results of measures: a score with its reason, and whether a cut reply has one at all."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

FOLLOWED = 0.5  # the least score of a reply that follows its prompt


@dataclass(frozen=True)
class Score:
    """How far a reply follows its instruction.

    Attributes:
        value: 0 (not at all) to 1 (fully).
        reason: a short explanation of the value, in English.
    """

    value: float
    reason: str

    def __post_init__(self) -> None:
        if not (math.isfinite(self.value) and 0.0 <= self.value <= 1.0):
            raise ValueError(f"a score lies between 0 and 1, not {self.value}")


@dataclass(frozen=True)
class Undecided:
    """The answer of a measure on a turn that cannot be scored, as the log shows too little of it.

    Attributes:
        reason: the part that the log does not show, in English.
    """

    reason: str


def share(part: int, whole: int, what: str, full: float = 1.0) -> Score:
    """`part` of `whole` as a score; a share of `full` scores 1, and 0 of 0 scores 0."""
    if not whole:
        return Score(0.0, f"there are no {what.split()[0]}")
    reason = f"{part} of {whole} {what}" + (f", {full:g} is full marks" if full < 1 else "")
    return Score(min(1.0, part / whole / full), reason)


def share_true(marks: Iterable[bool], what: str, full: float = 1.0) -> Score:
    """The share of the marks that are true, as `share` scores it."""
    listed = list(marks)
    return share(sum(listed), len(listed), what, full)


def verdict(kept: object, reason: str) -> Score:
    """1 if an instruction is followed, else 0."""
    return Score(float(bool(kept)), reason)


class WhenCut(Enum):
    """Whether a reply that was cut off at the token limit is evidence for a measure."""

    JUDGED = "judged"  # the text so far is: what it says, how it begins, its language and style
    NOT_JUDGED = "not judged"  # the ending or the whole counts
    IF_BROKEN = "judged if broken"  # more text cannot mend it: a maximum that is exceeded
    IF_KEPT = "judged if kept"  # more text cannot break it: a minimum that is reached

    def lets_stand(self, score: Score) -> bool:
        """Whether a score of the text so far stands, whatever follows."""
        return {
            WhenCut.JUDGED: True,
            WhenCut.NOT_JUDGED: False,
            WhenCut.IF_BROKEN: score.value < 1,
            WhenCut.IF_KEPT: score.value == 1,
        }[self]


# or a function of the text and the arguments, where it depends on them
CutRule = WhenCut | Callable[..., WhenCut]


def exceeds(count: int, target: int | None) -> WhenCut:
    """For an exact number: more text can reach it, and cannot take back what is too much."""
    if target is None:
        return WhenCut.JUDGED
    return WhenCut.JUDGED if count > target else WhenCut.NOT_JUDGED
