"""Exit codes of the commands that give verdicts, `check` and `logs`; their help explains them."""

from collections.abc import Collection

from holdfast.analysis import sequential

PASSED, FAILED, UNDECIDED, COULD_NOT = 0, 1, 3, 4  # 2: the command is malformed


def exit_code(verdicts: Collection[str]) -> int:
    """The exit code for all verdicts together: a failure outweighs an undecided verdict."""
    if sequential.FAIL in verdicts:
        return FAILED
    return UNDECIDED if sequential.UNDECIDED in verdicts else PASSED
