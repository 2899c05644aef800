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


def check_names(kind: str, given: Collection[str], known: Collection[str]) -> None:
    """Raises `UnknownName` for a name that is not known."""
    for name in given:
        if name not in known:
            raise UnknownName(kind, name, known)


def read_settings(given: Mapping[str, Any]) -> Settings:
    """The protocol of `holdfast/drift`: fields of `drift.Settings` and of `Sampling`."""
    check_names("setting of holdfast/drift", given, (*_SETTINGS, *_SAMPLING))
    sampling = Sampling(**{name: given[name] for name in given if name in _SAMPLING})
    return Settings(sampling=sampling, **{name: given[name] for name in given if name in _SETTINGS})
