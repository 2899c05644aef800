"""Exit codes of the commands that give verdicts, `check` and `logs`; their help explains them."""

from collections.abc import Collection, Sequence

from holdfast.analysis import sequential
from holdfast.analysis.check_verdicts import PromptCheck, Terms

PASSED, FAILED, UNDECIDED, COULD_NOT, UNAVAILABLE = 0, 1, 3, 4, 5  # 2: the command is malformed


def exit_code(verdicts: Collection[str]) -> int:
    """The exit code for all verdicts together: a failure outweighs an undecided verdict."""
    if sequential.FAIL in verdicts:
        return FAILED
    return UNDECIDED if sequential.UNDECIDED in verdicts else PASSED


def check_exit_code(checks: Sequence[PromptCheck], terms: Terms) -> int:
    """The exit code of a check. A failure that is certain in spite of an outage outweighs it; in a
    smoke test, a prompt that was scored and does not fail has passed.
    """
    open_checks = [checked for checked in checks if checked.verdict == sequential.UNDECIDED]
    if any(checked.verdict == sequential.FAIL for checked in checks):
        return FAILED
    if any(checked.unavailable for checked in open_checks):
        return UNAVAILABLE
    if terms.smoke:
        open_checks = [checked for checked in open_checks if checked.lowest is None]
    return UNDECIDED if open_checks else PASSED
