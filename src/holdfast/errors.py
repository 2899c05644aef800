"""Every error Holdfast raises on purpose.

    HoldfastError                  one sentence: the value seen, and the cure
    ├── UsageError                 the request is malformed (command line: exit code 2)
    │   ├── UnknownName            no such measure, method or suite; suggests the nearest name
    │   └── ParameterOutOfRange    a method's or a run's number lies outside its range
    ├── ModelError                 a model cannot be loaded, reached or steered
    │   ├── NoSuchModel            nothing is where its name says (a UsageError too)
    │   ├── Unsteerable            a method cannot act on this model, or on one of its layers
    │   ├── Unavailable            a server gives no usable answers, for now
    │   │   ├── RequestFailed      one request was not answered; others may be
    │   │   ├── Unreachable        there is no connection to an endpoint
    │   │   └── Busy               a server has as many requests as it can take
    │   └── Draining               a server finishes running requests and takes no new ones
    ├── PromptError                a chat cannot be rendered, or a span cannot be found
    │   ├── PromptTooLong          a chat leaves no room in the model's context
    │   └── NoSystemRole           a template has no place for the system prompt
    └── RecordsError               a run folder cannot be read or written
        └── AnotherRun             it is no run, or another one (a UsageError too)

The command line prints the sentence and exits with 2 for a `UsageError` and 1 for the others, so an
error that names what is not there, or is of another kind, is a `UsageError`: another command line
cures it. `holdfast check` and `holdfast logs` have further exit codes.

An option that users of all three interfaces can give is named by `option`: `str(error)` shows it as
a Python argument, the command line as `--system-as first-user`, and the server as the field of a
request. A sentence that only a command can cause names options as they are typed (`--out`).
"""

import difflib
import json
import re
from collections.abc import Callable, Iterable
from typing import Any

# around the name and the JSON value of an option in a message; no text contains noncharacters
_OPENS = "\ufdd0"
_CLOSES = "\ufdd1"
_OPTION = re.compile(f"{_OPENS}([a-z_]+)=(.*?){_CLOSES}", re.DOTALL)

# words an option, given its neutral name and its value, which is None if the message has none
Wording = Callable[[str, Any], str]


def option(name: str, value: object = None) -> str:
    """An option inside a message, by its neutral name, for whoever shows the error to word."""
    return f"{_OPENS}{name}={json.dumps(value)}{_CLOSES}"


def as_argument(name: str, value: Any = None) -> str:
    """An option as Python's users write it."""
    return name if value is None else f"{name}={value!r}"


def worded(message: str, wording: Wording) -> str:
    """A message, with its options as the users of an interface write them."""

    def word(match: re.Match[str]) -> str:
        try:
            return wording(match[1], json.loads(match[2]))
        except ValueError:  # none of ours, but a client's text
            return match[0]

    return _OPTION.sub(word, message)


class HoldfastError(Exception):
    """An error whose message is one sentence that names the value seen and the cure.

    The fields repeat what the message names, for programs and tests, which do not read wording.

    Attributes:
        option: the neutral name of the option, field or file at fault; "" if there is none.
        value: as it was given; None if the message shows none.
        allowed: what would be accepted, in words ("from 0 to 2") or as the list of choices.
    """

    def __init__(
        self, message: str, *, option: str = "", value: object = None, allowed: object = None
    ) -> None:
        super().__init__(message)
        self.option = option
        self.value = value
        self.allowed = allowed

    def __str__(self) -> str:
        return self.worded(as_argument)

    @property
    def message(self) -> str:
        """The message, with its options by their neutral names."""
        return super().__str__()

    def worded(self, wording: Wording) -> str:
        """The message, with its options as the users of an interface write them."""
        return worded(self.message, wording)


class UsageError(HoldfastError):
    """The request itself is malformed."""


class UnknownName(UsageError):
    """A name that is not in a list of known names.

    Attributes:
        kind: of name, such as "method".
        name: as it was given.
        known: the names that there are, sorted.
        suggestion: the one that was probably meant; None if none is near.
        owner: what has that list; "" if that needs no saying.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], owner: str = ""):
        self.kind = kind
        self.name = name
        self.known = sorted(known)
        self.owner = owner
        near = difflib.get_close_matches(name, self.known, n=1, cutoff=0.55)
        self.suggestion = near[0] if near else None
        choices = f"choose from: {', '.join(self.known)}."
        hint = f"did you mean {self.suggestion!r}?" if near else choices
        beginning = f"{owner} has" if owner else "There is"
        super().__init__(
            f"{beginning} no {kind} {name!r}; {hint}", option=kind, value=name, allowed=self.known
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kind, self.name, self.known, self.owner)


class ParameterOutOfRange(UsageError):
    """A number outside the range its method or option allows."""


class ModelError(HoldfastError):
    """A model that cannot be loaded, reached or steered."""


class NoSuchModel(UsageError, ModelError):
    """There is no model with this name or at this path."""


class Unsteerable(ModelError):
    """A model, or a layer of it, on which a method cannot act; on others it may."""


class Unavailable(ModelError):
    """A server gives no usable answers for now, which says nothing about the model."""


class RequestFailed(Unavailable):
    """One request that was not answered; others may be.

    Attributes:
        why: "filter" (a content filter withheld the reply), "context" (the chat is longer than the
            model's context), or "failure" (anything else).
    """

    def __init__(self, message: str, why: str = "failure"):
        super().__init__(message)
        self.why = why


class Unreachable(Unavailable):
    """There is no connection to an endpoint."""


class Busy(Unavailable):
    """A server has as many requests as it can take; it takes more later."""


class Draining(ModelError):
    """A server finishes running requests and takes no new ones."""


class PromptError(HoldfastError):
    """A chat that cannot be rendered, or a span that cannot be found in it."""


class PromptTooLong(PromptError):
    """A chat that leaves no room in the model's context."""


class NoSystemRole(PromptError):
    """A chat template that has no place for the system prompt, which `system_as` moves."""


class RecordsError(HoldfastError):
    """A run folder that belongs to another run, or cannot be read or written."""


class AnotherRun(UsageError, RecordsError):
    """A folder that belongs to a different run, or contains something else."""


def reason_of(error: Exception) -> str:
    """The message of an exception, without the number and file of a system error; of text that is
    not JSON, with the place.
    """
    if isinstance(error, json.JSONDecodeError):
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        return f"{error.msg.removesuffix(' at')} at {line}column {error.colno}"
    return getattr(error, "strerror", None) or str(error)


def shortened(value: object) -> str:
    """A value as an error message shows it."""
    try:
        text = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    except RecursionError:
        return "a value that is nested too deeply to be shown"
    return cut(text, 60)


def type_in_words(value: object) -> str:
    """The type of a value, as Python's users name it: "a list", "None"."""
    return "None" if value is None else _with_article(type(value).__name__)


_JSON_TYPES = {"NoneType": "null", "bool": "a boolean", "dict": "an object", "list": "a list"}
_JSON_TYPES |= {"str": "a text", "int": "a number", "float": "a number"}


def json_type_in_words(value: object) -> str:
    """The type of a value that was read from JSON."""
    return _JSON_TYPES[type(value).__name__]


def _with_article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def cut(text: str, most: int) -> str:
    """A text, truncated with an ellipsis if it is longer than `most` characters."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
