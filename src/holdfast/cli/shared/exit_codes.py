"""Exit codes; docs/runs.md explains them, as does the help of `holdfast`, `check` and `logs`."""

PASSED = 0
FAILED = 1
MALFORMED = 2
UNDECIDED = 3
COULD_NOT = 4
UNAVAILABLE = 5
# 128 and the number of the signal
INTERRUPTED = 130
TERMINATED = 143
