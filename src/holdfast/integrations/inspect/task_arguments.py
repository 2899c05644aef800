"""Arguments of tasks and models as Inspect gives them, and errors as it prints them."""

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
# Inspect's own --max-samples sets the conversations side by side
_SETTINGS = tuple(
    field.name for field in fields(Settings) if field.name not in ("sampling", "batch")
)


@contextlib.contextmanager
def in_one_sentence() -> Iterator[None]:
    """Turns our errors into Inspect's kind for a user's mistakes, printed without a traceback."""
    try:
        yield
    except HoldfastError as error:
        raise PrerequisiteError(escape(str(error))) from error


def as_text(value: object) -> str:
    """Rejoins a spec string that Inspect's command line has split at its commas."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def check_names(kind: str, names: Collection[str], choices: Collection[str]) -> None:
    """Raises `UnknownName` for a name that is not one of the choices."""
    for name in names:
        if name not in choices:
            raise UnknownName(kind, name, choices)


def read_settings(arguments: Mapping[str, Any]) -> Settings:
    """The protocol of `holdfast/drift`: fields of `drift.Settings` and of `Sampling`."""
    check_names("setting of holdfast/drift", arguments, (*_SETTINGS, *_SAMPLING))
    sampling = {name: value for name, value in arguments.items() if name in _SAMPLING}
    settings = {name: value for name, value in arguments.items() if name in _SETTINGS}
    return Settings(sampling=Sampling(**sampling), **settings)
