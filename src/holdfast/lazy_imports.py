"""Imports the names of a package when they are first used, as importing all of them is slow."""

import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any


def import_name(package: str, modules: Mapping[str, str], name: str) -> Any:
    """Imports an attribute of a package, for the package's `__getattr__`.

    Args:
        modules: the names that the package exports, each with the module that defines it.

    Raises:
        AttributeError: the package exports no such name.
    """
    if name in modules:
        return getattr(import_module(modules[name]), name)
    # Python suggests the nearest name of `obj` below the traceback
    raise AttributeError(
        f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package]
    )
