"""Measures that are users' functions, which a suite names or Python code passes."""

import importlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from holdfast.errors import UsageError, option, type_in_words
from holdfast.measures.measure_specs import BUILDERS, Measure, build
from holdfast.measures.registry import CODE
from holdfast.measures.scores import Score


def as_measure(value: Any) -> Measure:
    """Returns a measure for anything that can represent one in Python code.

    Args:
        value: a measure; a spec, as `build` takes it; or a function from the reply's text to a
            number from 0 to 1 or to a `Score`. Records name a function by its module and name.

    Raises:
        UsageError: anything else, or a spec that is malformed.
    """
    if isinstance(value, Measure):
        return value
    if isinstance(value, str | Mapping):
        return build(value, allow_code=True)
    if isinstance(value, type) or not callable(value):
        raise UsageError(
            "A measure is a name, a spec, a `Measure` or a function of the reply's text, "
            f"not {value!r}; `holdfast measures` lists the built-in ones."
        )
    name = getattr(value, "__qualname__", type(value).__qualname__)
    path = f"{getattr(value, '__module__', None)}.{name}"
    return _measure_of(path, value)


def _measure_of(path: str, function: Callable[[str], Any]) -> Measure:
    scoring = partial(call_user_function, function)
    return Measure(CODE, {CODE: path}, scoring, empty_is_zero=False)


def build_from_code(arguments: dict[str, Any], allow_code: bool) -> Measure:
    """Builds a measure that calls a user's function, which is imported by its dotted name."""
    path = arguments.get(CODE)
    if not isinstance(path, str) or "." not in path or len(arguments) > 1:
        raise UsageError(
            f"A python measure is one dotted name, not {arguments!r}; write {{python:"
            " package.module.function}."
        )
    if not allow_code:
        raise UsageError(
            f"The measure {path!r} is code of your own; pass {option('allow_code', True)} to let it"
            " run."
        )
    module, _, attribute = path.rpartition(".")
    try:
        function = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # anything a user's module may raise when it is imported
        raise UsageError(
            f"The measure {path!r} cannot be imported ({type(error).__name__}: {error}); "
            "check the name: its file must be beside the suite's or on PYTHONPATH."
        ) from error
    if not callable(function):
        raise UsageError(
            f"The measure {path!r} is {type_in_words(function)}, not a function of the reply's"
            " text."
        )
    return _measure_of(path, function)


def call_user_function(function: Callable[[str], Any], text: str, python: str) -> Score:
    """Calls a user's function and returns its result as a score.

    Args:
        python: the dotted name of the function.

    Raises:
        UsageError: the function failed, or did not return a number from 0 to 1.
    """
    try:
        value = function(text)
        if isinstance(value, Score):
            return value
        return Score(float(value), f"{python} gave {float(value):g}")
    except Exception as error:
        raise UsageError(
            f"The measure {python!r} failed on {text[:60]!r} ({type(error).__name__}: {error}); "
            "it must return a number from 0 to 1 for every string."
        ) from error


BUILDERS[CODE] = build_from_code
