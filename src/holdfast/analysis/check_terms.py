"""The terms under which system prompts are checked: the bar, the error and the budget."""

from dataclasses import dataclass

from holdfast.errors import ParameterOutOfRange, option
from holdfast.validation import ranges


@dataclass(frozen=True)
class Terms:
    """The terms under which prompts are checked.

    Args:
        min_stability: the bar, above 0 and below 1; None to only compare prompts with an earlier
            run.
        error: upper bound on the probability that any prompt gets a wrong verdict.
        budget: the most conversations per prompt.
        all_rules: decide every rule, not only whether a prompt fails: conversations continue after
            the first failing rule, and each rule gets its share of the prompt's error.
        smoke: look only for clear failures, with few conversations; a prompt that is undecided
            then counts as one without a clear failure.
    """

    min_stability: float | None = 0.9
    error: float = 0.05
    budget: int = 200
    all_rules: bool = False
    smoke: bool = False

    def __post_init__(self) -> None:
        if self.min_stability is not None:
            _require_share("min_stability", self.min_stability)
        _require_share("error", self.error)
        ranges.whole_number("check", "budget", self.budget, 1)

    def error_each(self, prompts: int, *, compared: bool) -> float:
        """Returns the probability with which each test may be wrong. A prompt that has a bar and is
        compared with an earlier run takes two tests.
        """
        tests = 2 if compared and self.min_stability is not None else 1
        return self.error / prompts / tests


def _require_share(name: str, value: float) -> None:
    """Refuses a term that is no share; guesses what a percentage was meant to be."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if is_number and 0 < value < 1:
        return
    text = f"{value:g}" if is_number else repr(value)
    refusal = f"check takes {option(name)} as a share above 0 and below 1, not {text}"
    if name == "min_stability" and value in (1, 100):
        raise ParameterOutOfRange(
            f"{refusal}: no number of conversations shows that a rule is always kept; give 0.99 or"
            " less."
        )
    # an error of 5 is probably meant as a percentage; a bar of 5 is not
    share = ranges.share_meant(value, min_percentage=1 if name == "error" else 10)
    hint = "." if share is None else f"; did you mean {share:g}?"
    raise ParameterOutOfRange(f"{refusal}{hint}")
