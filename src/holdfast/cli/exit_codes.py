"""Exit codes; the help of `holdfast`, `check` and `logs` explains them."""

PASSED, FAILED, MALFORMED, UNDECIDED, COULD_NOT, UNAVAILABLE = range(6)
