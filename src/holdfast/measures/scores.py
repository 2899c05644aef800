"""The results of measures: a score with its reason, and whether a cut reply has one at all."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum

MIN_KEPT_SCORE = 0.5  # a reply with at least this score keeps the rule


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

    @property
    def keeps_rule(self) -> bool:
        """Whether the reply counts as keeping the rule."""
        return self.value >= MIN_KEPT_SCORE


@dataclass(frozen=True)
class Undecided:
    """The result for a turn that cannot be scored, because the log shows too little of it.

    Attributes:
        reason: the part that the log does not show, in English.
    """

    reason: str


def share(part: int, whole: int, statement: str, full: float = 1.0) -> Score:
    """Scores `part` of `whole`: a share of `full` scores 1, and 0 of 0 scores 0.

    Args:
        statement: completes "3 of 4 ..." in the reason, such as "words are rare"; begins with the
            noun.
    """
    if not whole:
        return Score(0.0, f"there are no {statement.split()[0]}")
    reason = f"{part} of {whole} {statement}" + (f", {full:g} is full marks" if full < 1 else "")
    return Score(min(1.0, part / whole / full), reason)


def share_true(marks: Iterable[bool], statement: str, full: float = 1.0) -> Score:
    """Scores the share of the marks that are true; the other arguments are those of `share`."""
    all_marks = list(marks)
    return share(sum(all_marks), len(all_marks), statement, full)


def verdict(is_followed: object, reason: str) -> Score:
    """Scores 1 if an instruction is followed, which any true value says, else 0."""
    return Score(float(bool(is_followed)), reason)


class WhenCut(Enum):
    """Whether a measure judges a reply that was cut off at the token limit."""

    JUDGED = "judged"  # for a rule on the text so far: its words, its start, its language or style
    NOT_JUDGED = "not judged"  # for a rule on the ending or on the whole reply
    IF_BROKEN = "judged if broken"  # for a maximum: more text cannot undo that it is exceeded
    IF_KEPT = "judged if kept"  # for a minimum: more text cannot undo that it is reached

    def lets_stand(self, score: Score) -> bool:
        """Whether a score of the text so far stands, whatever follows."""
        return {
            WhenCut.JUDGED: True,
            WhenCut.NOT_JUDGED: False,
            WhenCut.IF_BROKEN: score.value < 1,
            WhenCut.IF_KEPT: score.value == 1,
        }[self]


# a function takes the text and the arguments, where the answer depends on them
CutRule = WhenCut | Callable[..., WhenCut]


def exceeds(count: int, target: int | None) -> WhenCut:
    """Returns when a measure of an exact number judges: more text may reach the number, but cannot
    undo that it is exceeded. None stands for any number.
    """
    if target is None:
        return WhenCut.JUDGED
    return WhenCut.JUDGED if count > target else WhenCut.NOT_JUDGED
