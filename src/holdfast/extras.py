"""Packages that are installed only with an extra of ours."""

import importlib
import importlib.util
from collections.abc import Sequence
from types import ModuleType

from holdfast.errors import UsageError


def import_extra(name: str, extra: str, needed_by: str) -> ModuleType:
    """Imports a package that comes with one of our extras.

    Args:
        extra: of `holdfast-llm`, such as "pandas".
        needed_by: begins the message: "run.to_pandas()".

    Raises:
        UsageError: the package is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UsageError(
            f"{needed_by} needs {name}; pip install 'holdfast-llm[{extra}]' ({error})."
        ) from error


def check_extra(extra: str, packages: Sequence[str]) -> None:
    """Refuses a command whose packages are not installed."""
    if missing := [name for name in packages if importlib.util.find_spec(name) is None]:
        raise UsageError(
            f"`holdfast {extra}` needs {', '.join(missing)}; pip install 'holdfast-llm[{extra}]'."
        )
