"""The one rule for what may be said of a number: every verdict, headline and recommendation passes
through here.

An estimate says that something is higher, lower, more or less only where

1. it rests on at least `LEAST` conversations (or samples),
2. its 95 % interval lies on one side of 0, and
3. at least `LEAST_MOVED` of the conversations differ from 0 at all.

Everything else is "cannot tell", with the reason. Below 20 conversations the percentile bootstrap
is too narrow: where there is no difference it finds one in up to 1 of 4 runs of 3 conversations,
1 of 7 of 5 to 8 and 1 of 10 of 10, and from 20 on in about 1 of 20, as it promises. Of fewer than
6 conversations that differ, all go the same way by chance in more than 1 of 20 (2 / 2**5 = 0.06).

Where all values are alike the bootstrap has no width, which is its limit and not certainty: no such
interval is shown, and no bound is drawn from it but the exact one (`within`).
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.analysis.statistics import Estimate

MIN_SAMPLES = 20
LEAST_MOVED = 6
CANNOT_TELL = "cannot tell"
INCLUDES_ZERO = "its interval includes 0"
SUPPORTED, CONTRADICTED, UNDECIDED = "supported", "contradicted", "undecided"
NOT_JUDGED = "not judged"  # nothing was measured, or the model scores 0 however it is asked


@dataclass(frozen=True)
class Verdict:
    """Above 0 (+1), below (-1), or 0 if it cannot tell, and then why."""

    sign: int
    why: str = ""

    def word(self, above: str, below: str) -> str:
        """One of two words, or "cannot tell"."""
        return {1: above, -1: below, 0: CANNOT_TELL}[self.sign]


def tell(value: Estimate) -> Verdict:
    """Whether an estimate is above 0, below 0, or cannot tell."""
    if value.mean is None:
        return Verdict(0, "nothing was measured")
    if few := too_few(value):
        return Verdict(0, few)
    if value.low is None or value.high is None:
        return Verdict(0, "it has no interval")
    if value.alike and abs(value.mean) < 1e-9:
        return Verdict(0, f"none of {value.n} differ")
    if not value.excludes_zero:
        return Verdict(0, INCLUDES_ZERO)
    if value.moved is not None and value.moved < LEAST_MOVED:
        return Verdict(0, f"only {value.moved} of {value.n} differ, fewer than {LEAST_MOVED}")
    return Verdict(1 if value.mean > 0 else -1)


def too_few(value: Estimate) -> str:
    """Why so few conversations or samples say nothing; "" where there are enough."""
    return "" if value.n >= MIN_SAMPLES else f"n = {value.n}, fewer than {MIN_SAMPLES}"


def judge(value: Estimate, sign: int) -> str:
    """Whether the estimate supports or contradicts that it lies on the side `sign` of 0."""
    side = tell(value).sign
    if not side:
        return UNDECIDED
    return SUPPORTED if side == sign else CONTRADICTED


def all_of(*verdicts: str) -> str:
    """The verdict on a claim that holds where all of its parts do."""
    if CONTRADICTED in verdicts:
        return CONTRADICTED
    return UNDECIDED if UNDECIDED in verdicts else SUPPORTED


def within(value: Estimate, low: float, high: float, least: float, most: float) -> str:
    """Whether the estimate supports or contradicts that it lies from `low` to `high`.

    Args:
        value: an estimate of values that lie from `least` to `most`.
        low, high: the whole interval must lie between them to support, and beyond one of them to
            contradict.
        least, most: of one value; where all are alike, the interval comes from them (`bounds`).
    """
    if too_few(value) or value.low is None or value.high is None:
        return UNDECIDED
    lower, upper = bounds(value, least, most)
    if low <= lower and upper <= high:
        return SUPPORTED
    return CONTRADICTED if upper < low or lower > high else UNDECIDED


def bounds(value: Estimate, least: float, most: float) -> tuple[float, float]:
    """The 95 % interval; where all n values are alike, the exact one.

    Values that were never seen may still have a share of up to 1 - 0.025 ** (1 / n), which is the
    bound of Clopper and Pearson where none of n was seen, and may be as low as `least` or as high
    as `most`.
    """
    assert value.mean is not None and value.low is not None and value.high is not None
    if not value.alike:
        return value.low, value.high
    unseen = 1 - 0.025 ** (1 / value.n)
    return value.mean + unseen * (least - value.mean), value.mean + unseen * (most - value.mean)
