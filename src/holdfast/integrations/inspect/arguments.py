"""Checks arguments of tasks and models from Inspect's command line."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from typing import Any

from inspect_ai._util.error import PrerequisiteError
from rich.markup import escape

from holdfast.drift.settings import Settings
from holdfast.errors import HoldfastError, UnknownName
from holdfast.sampling import Sampling

PROVIDER = "holdfast"
_SAMPLING = tuple(field.name for field in fields(Sampling))
# conversations side by side are Inspect's own --max-samples, and its models tell no distributions
_SETTINGS = tuple(
    field.name
    for field in fields(Settings)
    if field.name not in ("sampling", "batch", "divergence")
)


@contextlib.contextmanager
def in_one_sentence() -> Iterator[None]:
    """Errors of ours become Inspect's kind for a user's mistakes, which it prints without a
    traceback.
    """
    try:
        yield
    except HoldfastError as error:
        raise PrerequisiteError(escape(str(error))) from error


def as_text(value: object) -> str:
    """A spelling, which Inspect's command line has split at its commas."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def check_names(kind: str, given: Collection[str], known: Collection[str]) -> None:
    """Refuses a name that is not known.

    Raises:
        UnknownName: suggests the nearest.
    """
    for name in given:
        if name not in known:
            raise UnknownName(kind, name, known)


def read_settings(given: Mapping[str, Any]) -> Settings:
    """The protocol of `holdfast/drift`: fields of `drift.Settings` and of `Sampling`.

    Raises:
        UnknownName: a setting that there is not.
        KnobOutOfRange, UsageError: as `drift.Settings`.
    """
    check_names("setting of holdfast/drift", given, (*_SETTINGS, *_SAMPLING))
    sampling = Sampling(**{name: given[name] for name in given if name in _SAMPLING})
    return Settings(sampling=sampling, **{name: given[name] for name in given if name in _SETTINGS})
