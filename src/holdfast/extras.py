"""Packages that are installed only with one of the extras of `holdfast-llm`."""

import importlib
import importlib.util
from collections.abc import Sequence
from types import ModuleType

from holdfast.errors import UsageError


def import_extra(name: str, extra: str, needed_by: str) -> ModuleType:
    """Imports a package that comes with an extra.

    Args:
        name: the package.
        extra: the extra that installs it, such as "pandas".
        needed_by: what needs the package, to begin the message with: "run.to_pandas()".

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
    """Refuses to run the command that an extra is named after, if one of its packages is missing.

    Raises:
        UsageError: a package is not installed.
    """
    if missing := [name for name in packages if importlib.util.find_spec(name) is None]:
        raise UsageError(
            f"`holdfast {extra}` needs {', '.join(missing)}; pip install 'holdfast-llm[{extra}]'."
        )
