"""Adds the name of a request to the errors that it causes."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager

from holdfast.errors import HoldfastError


@contextmanager
def name_errors(name: str) -> Iterator[None]:
    """Adds the name of a request to every `HoldfastError` that is raised in this context."""
    try:
        yield
    except HoldfastError as error:
        name_error(error, name)
        raise


@contextmanager
def name_shared_errors(name: str) -> Iterator[None]:
    """Like `name_errors`, for an error that several requests share: each raises a named copy."""
    try:
        yield
    except Exception as error:
        try:
            copied = copy.copy(error)
        except TypeError:  # the class cannot be copied, as its constructor takes more arguments
            raise error from None
        copied.__notes__ = list(getattr(error, "__notes__", ()))
        name_error(copied, name)
        raise copied from error


def name_error(error: Exception, name: str) -> None:
    """Adds the name of a request to its error; does nothing if the name is ""."""
    if not name:
        return
    if isinstance(error, HoldfastError):
        error.args = (f"{name}: {error.args[0]}", *error.args[1:])
    else:
        error.add_note(name)
