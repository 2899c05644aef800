"""Names of a package that are imported at first use, as importing their modules takes long."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def later(package: str, modules: Mapping[str, str], name: str) -> Any:
    """An attribute of a package for its `__getattr__`; `modules` has the module that defines it."""
    if name in modules:
        return getattr(import_module(modules[name]), name)
    raise AttributeError(f"module {package!r} has no attribute {name!r}")
