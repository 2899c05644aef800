"""The name of a row in the errors that are about it."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.errors import HoldfastError


@contextmanager
def errors_named(name: str) -> Iterator[None]:
    """A context whose `HoldfastError`s get the name of the row they are about."""
    try:
        yield
    except HoldfastError as error:
        name_error(error, name)
        raise


@contextmanager
def naming_copies(name: str) -> Iterator[None]:
    """As `errors_named`, for an error that is raised in several rows: each names a copy."""
    try:
        yield
    except Exception as error:
        try:
            copied = copy.copy(error)
        except TypeError:  # a class whose constructor takes more than its message
            raise error from None
        copied.__notes__ = list(getattr(error, "__notes__", ()))
        name_error(copied, name)
        raise copied from error


def name_error(error: Exception, name: str) -> None:
    """Adds to an error the name of the row it is about, if it has one."""
    if not name:
        return
    if isinstance(error, HoldfastError):
        error.args = (f"{name}: {error.args[0]}", *error.args[1:])
    else:
        error.add_note(name)
