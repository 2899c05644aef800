"""Packages that a command needs and that are not installed with Holdfast."""

import importlib.util
from collections.abc import Sequence

from holdfast.errors import UsageError


def check_extra(extra: str, packages: Sequence[str]) -> None:
    """Refuses a command whose packages are not installed."""
    if missing := [name for name in packages if importlib.util.find_spec(name) is None]:
        raise UsageError(
            f"`holdfast {extra}` needs {', '.join(missing)}; pip install 'holdfast-llm[{extra}]'."
        )
