"""The single rule for what may be said of a number: every verdict, headline and recommendation
passes through here, and docs/verdicts.md gives the reasons.

An estimate is reported as above or below 0 only if it rests on at least `MIN_SAMPLES`
conversations, its 95% interval lies on one side of 0, and at least `LEAST_MOVED` conversations
differ from 0. Below 20 conversations the percentile bootstrap is too narrow; if fewer than 6
differ, they all go the same way by chance in more than 1 of 20 cases. If all values are alike, the
bootstrap has no width, which is its limit and not certainty: the exact bound is used (`bounds`).
"""

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
    """Whether a number is above 0 (+1), below 0 (-1), or undecided (0), and then why."""

    sign: int
    why: str = ""

    def word(self, above: str, below: str) -> str:
        """One of two words, or "cannot tell"."""
        return {1: above, -1: below, 0: CANNOT_TELL}[self.sign]


def tell(value: Estimate) -> Verdict:
    """Whether an estimate is above 0, below 0, or undecided."""
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
    """Why there are too few conversations or samples for a verdict; "" if there are enough."""
    return "" if value.n >= MIN_SAMPLES else f"n = {value.n}, fewer than {MIN_SAMPLES}"


def judge(value: Estimate, sign: int) -> str:
    """Whether the estimate supports or contradicts that it lies on the side `sign` of 0."""
    side = tell(value).sign
    if not side:
        return UNDECIDED
    return SUPPORTED if side == sign else CONTRADICTED


def all_of(*verdicts: str) -> str:
    """The verdict on a claim that holds if all of its parts do."""
    if CONTRADICTED in verdicts:
        return CONTRADICTED
    return UNDECIDED if UNDECIDED in verdicts else SUPPORTED


def within(value: Estimate, low: float, high: float, least: float, most: float) -> str:
    """Whether the estimate, of values from `least` to `most`, supports or contradicts that it lies
    from `low` to `high`: its whole interval must lie between them, or beyond one of them.
    """
    if too_few(value) or value.low is None or value.high is None:
        return UNDECIDED
    lower, upper = bounds(value, least, most)
    if low <= lower and upper <= high:
        return SUPPORTED
    return CONTRADICTED if upper < low or lower > high else UNDECIDED


def bounds(value: Estimate, least: float, most: float) -> tuple[float, float]:
    """The 95% interval; if all n values are alike, the exact one.

    Values that were never seen may still have a share of up to 1 - 0.025 ** (1 / n), the bound of
    Clopper and Pearson for 0 of n, and may be as low as `least` or as high as `most`.
    """
    assert value.mean is not None and value.low is not None and value.high is not None
    if not value.alike:
        return value.low, value.high
    unseen = 1 - 0.025 ** (1 / value.n)
    return value.mean + unseen * (least - value.mean), value.mean + unseen * (most - value.mean)
