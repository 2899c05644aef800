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


def check_extra(command: str, extra: str, packages: Sequence[str]) -> None:
    """Refuses to run a command if one of the packages of its extra is missing.

    Args:
        command: such as "proxy", for the message.
        extra: the extra that installs the packages, such as "serve".

    Raises:
        UsageError: a package is not installed.
    """
    if missing := [name for name in packages if importlib.util.find_spec(name) is None]:
        raise UsageError(
            f"`holdfast {command}` needs {', '.join(missing)}; pip install 'holdfast-llm[{extra}]'."
        )
