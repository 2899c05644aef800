"""Choice of the values of parametrised tests for the fast set, which `make test` runs."""

from collections.abc import Iterable
from typing import Any

import pytest


def only_fast(values: Iterable[Any], *fast: Any) -> list[Any]:
    """The values as parameters of a test; all but the `fast` ones are marked slow."""
    values = list(values)
    assert all(value in values for value in fast)
    return [
        value if value in fast else pytest.param(value, marks=pytest.mark.slow) for value in values
    ]
