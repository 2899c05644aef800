"""Every error that Holdfast raises on purpose.

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
        └── AnotherRun             it holds another run, or something else (a UsageError too)

The command line prints the sentence, and exits with 2 for a `UsageError` and an `Unsteerable`, and
with 1 for the others. So every error that a different command line would avoid is one of these,
such as the name of a file that does not exist. `holdfast check` and `holdfast logs` have further
exit codes.

A message names an option with `option()` if Python, the command line and the server all have it:
`str(error)` then shows it as a Python argument, the command line as `--system-as first-user`, and
the server as the field of a request. A message that only a command can cause names options as they
are typed (`--out`).
"""

import difflib
import json
import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

# An option inside a message is its name and JSON value between these two marks. They are Unicode
# noncharacters, which no ordinary text contains.
_OPENS = "\ufdd0"
_CLOSES = "\ufdd1"
_OPTION = re.compile(f"{_OPENS}([a-z_]+)=(.*?){_CLOSES}", re.DOTALL)

# writes an option as the users of an interface do, given its neutral name and its value (None if
# the message gives no value)
OptionWording = Callable[[str, Any], str]

_JSON_TYPES = {
    "NoneType": "null",
    "bool": "a boolean",
    "dict": "an object",
    "list": "a list",
    "str": "a text",
    "int": "a number",
    "float": "a number",
}


def option(name: str, value: object = None) -> str:
    """Marks an option inside a message, by its neutral name.

    Whoever shows the error writes it as the users of that interface do (`word_options`).
    """
    return f"{_OPENS}{name}={json.dumps(value)}{_CLOSES}"


def as_argument(name: str, value: Any = None) -> str:
    """Writes an option as a Python argument: "rounds=8", or "rounds" without a value."""
    return name if value is None else f"{name}={value!r}"


def word_options(message: str, wording: OptionWording) -> str:
    """Writes the options inside a message as the users of an interface do."""

    def word(match: re.Match[str]) -> str:
        try:
            return wording(match[1], json.loads(match[2]))
        except ValueError:  # not an option of ours, but text from a client
            return match[0]

    return _OPTION.sub(word, message)


class HoldfastError(Exception):
    """An error whose message is one sentence that names the value seen and the cure.

    The attributes repeat what the message names, for programs and tests, which should not have to
    parse its wording.

    Attributes:
        option: the neutral name of the option, field or file at fault; "" if there is none.
        value: the value that was given; None if the message shows none.
        allowed: the values that would be accepted, in words ("from 0 to 2") or as a list of
            choices; None if the message names none.
    """

    def __init__(
        self, message: str, *, option: str = "", value: object = None, allowed: object = None
    ) -> None:
        super().__init__(message)
        self.option = option
        self.value = value
        self.allowed = allowed

    def __str__(self) -> str:
        return self.message_in(as_argument)

    @property
    def message(self) -> str:
        """The message with its options still marked (`option`)."""
        return super().__str__()

    def message_in(self, wording: OptionWording) -> str:
        """The message with its options written as the users of an interface do."""
        return word_options(self.message, wording)


class UsageError(HoldfastError):
    """The request itself is malformed."""


class UnknownName(UsageError):
    """A name that is not in a list of known names.

    Attributes:
        kind: what it should name, such as "method".
        name: the name that was given.
        known: the names that exist, sorted.
        suggestion: the known name that was probably meant; None if none is similar.
        owner: who has the list, to begin the message with ("The suite core has no prompt ...");
            "" begins it with "There is no ...".
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], owner: str = ""):
        self.kind = kind
        self.name = name
        self.known = sorted(known)
        self.owner = owner
        self.suggestion = _nearest(name, self.known)
        hint = f"did you mean {self.suggestion!r}?" if self.suggestion else self._choices
        beginning = f"{owner} has" if owner else "There is"
        super().__init__(
            f"{beginning} no {kind} {name!r}; {hint}", option=kind, value=name, allowed=self.known
        )

    @property
    def _choices(self) -> str:
        """'choose from: a, b.', or the command that lists the names if they are many."""
        if len(self.known) > _MAX_NAMES and self.kind in _LISTED_BY:
            return f"`{_LISTED_BY[self.kind]}` lists all {len(self.known)}."
        return f"choose from: {', '.join(self.known)}."

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.kind, self.name, self.known, self.owner)


_MAX_NAMES = 40  # in a message
_LISTED_BY = {"measure": "holdfast measures", "method": "holdfast methods"}
_MIN_PREFIX = 3


def _nearest(name: str, known: Sequence[str]) -> str | None:
    """The name that was probably meant: one that begins so, or a similar one; None without any."""
    begins = [other for other in known if len(name) >= _MIN_PREFIX and other.startswith(name)]
    if len(begins) == 1:
        return begins[0]
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.55)), None)


class ParameterOutOfRange(UsageError):
    """A number outside the range its method or option allows."""


class ModelError(HoldfastError):
    """A model that cannot be loaded, reached or steered."""


class NoSuchModel(UsageError, ModelError):
    """There is no model with this name or at this path."""


class Unsteerable(ModelError):
    """A method cannot act on this model, or on one of its layers; on another model it may."""


class Unavailable(ModelError):
    """A server gives no usable answers for now, which says nothing about the model."""


class RequestFailed(Unavailable):
    """One request was not answered; others may be.

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
    """A chat template has no place for the system prompt; `system_as` can move it elsewhere."""


class RecordsError(HoldfastError):
    """A run folder that belongs to another run, or cannot be read or written."""


class AnotherRun(UsageError, RecordsError):
    """A folder that belongs to a different run, or contains something else."""


def reason_of(error: Exception) -> str:
    """Why something failed, in an exception's words.

    A system error is given without its number and file, and a JSON error with its line and column.
    """
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno)  # asyncio's own text has the address
    if isinstance(error, json.JSONDecodeError):
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        return f"{error.msg.removesuffix(' at')} at {line}column {error.colno}"
    return getattr(error, "strerror", None) or str(error)


def shortened(value: object) -> str:
    """A value's `repr`, cut to a length that an error message can show."""
    try:
        text = repr(value)
    except ValueError:
        return "a number of thousands of digits"
    except RecursionError:
        return "a value that is nested too deeply to be shown"
    return cut(text, 60)


def type_in_words(value: object) -> str:
    """The type of a value in Python's terms, with an article: "a list", "None"."""
    return "None" if value is None else _with_article(type(value).__name__)


def json_type_in_words(value: object) -> str:
    """The type of a value read from JSON, in JSON's terms, with an article: "an object", "null"."""
    return _JSON_TYPES[type(value).__name__]


def _with_article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def cut(text: str, max_length: int) -> str:
    """Cuts a text to `max_length` characters; a text that is cut ends with an ellipsis."""
    return text if len(text) <= max_length else text[: max_length - 1].rstrip() + "…"
