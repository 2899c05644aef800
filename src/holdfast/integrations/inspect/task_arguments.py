"""Reads arguments of tasks and models as Inspect passes them, and reports errors in its way."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from typing import Any

from inspect_ai._util.error import PrerequisiteError
from rich.markup import escape

from holdfast.drift.settings import Settings
from holdfast.errors import HoldfastError, UnknownName
from holdfast.generation.sampling import Sampling

_SAMPLING = tuple(field.name for field in fields(Sampling))
# `batch` is left out, as Inspect's own --max-samples sets the number of concurrent conversations
_SETTINGS = tuple(
    field.name for field in fields(Settings) if field.name not in ("sampling", "batch")
)


@contextlib.contextmanager
def prerequisite_errors() -> Iterator[None]:
    """Raises our errors in this context as `PrerequisiteError`, which Inspect prints without a
    traceback.
    """
    try:
        yield
    except HoldfastError as error:
        raise PrerequisiteError(escape(str(error))) from error


def rejoin_spec(value: object) -> str:
    """Rejoins a spec string that Inspect's command line has split at its commas."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def check_names(names: Collection[str], choices: Collection[str], *, kind: str, owner: str) -> None:
    """Raises `UnknownName` for a name that is not one of the choices of `owner`."""
    for name in names:
        if name not in choices:
            raise UnknownName(kind, name, choices, owner)


def read_settings(arguments: Mapping[str, Any]) -> Settings:
    """Reads the protocol of `holdfast/drift`: fields of `drift.Settings` and of `Sampling`."""
    check_names(
        arguments, (*_SETTINGS, *_SAMPLING), kind="setting", owner="The task holdfast/drift"
    )
    sampling = {name: value for name, value in arguments.items() if name in _SAMPLING}
    settings = {name: value for name, value in arguments.items() if name in _SETTINGS}
    return Settings(sampling=Sampling(**sampling), **settings)
