"""The kinds of method, the abilities of models, and the one table of what each kind needs.

A method's class declares its kind as data, and may declare what else it needs:

    kind: ClassVar[MethodKind] = MethodKind.LOG_ODDS
    requires: ClassVar[frozenset[Ability]] = frozenset({Ability.LOG_ODDS})

A custom class that declares no kind has the kind whose functions it has. Nothing outside this
package asks for a kind: it reads the attributes of `compile_methods(methods)`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from holdfast.errors import UsageError, shortened
from holdfast.methods.protocols import (
    EditsHidden,
    EditsKeys,
    EditsLogits,
    EditsMessages,
    Method,
    NeedsRehearsal,
    RetriesReplies,
    ShiftsAttention,
)


class MethodKind(Enum):
    """The part of a request or a model that a method changes.

    Each has a protocol in `holdfast.methods.protocols`.
    """

    LOG_ODDS = "attention"  # the log-odds of the mass on the span, in attention
    MESSAGES = "prompt"  # the chat, before it is rendered
    LOGITS = "decoding"  # the logits, with those of a second stream that reads another chat
    KEYS = "keys"  # the keys of the span, before they are rotated and cached
    RESIDUAL = "the residual stream"  # the hidden states after a layer
    RETRIES = "retries"  # a reply is checked, and perhaps drawn again
    REHEARSED = "a rehearsed reply"  # turns the method into an attention method


class Ability(Enum):
    """Something that a model lets callers read or change; the value is its name in messages."""

    MESSAGES = "messages"
    LOG_ODDS = "attention"
    SECOND_STREAM = "a second stream"  # one per reply
    REPLY_SCORES = "log-probabilities of given replies"
    PIECES = "replies piece by piece"
    LAYERS = "hidden states and weights"
    KEYS = "keys before rotation"
    RESIDUAL = "the residual stream"
    REHEARSAL = "a rehearsed reply"
    REPLY_SPANS = "the places of earlier replies"
    RETRIES = "a dialog under a suite, as in holdfast drift"  # no model offers this by itself


EVERY_MODEL = frozenset({Ability.MESSAGES})  # abilities that need no model in this process


@dataclass(frozen=True)
class Traits:
    """The properties that all methods of a kind share."""

    protocol: type  # has the members of every method of the kind, except its name
    requires: frozenset[Ability]  # the abilities needed, unless the class declares others
    # whether the methods do nothing in a chat without a system prompt or emphasis
    needs_span: bool = False
    # whether they act inside a forward pass, so that keys and values depend on them
    acts_in_pass: bool = False
    # whether they change the states of tokens before the span too
    affects_pre_span: bool = False


TRAITS: dict[MethodKind, Traits] = {
    MethodKind.LOG_ODDS: Traits(
        ShiftsAttention, frozenset({Ability.LOG_ODDS}), needs_span=True, acts_in_pass=True
    ),
    MethodKind.MESSAGES: Traits(EditsMessages, frozenset({Ability.MESSAGES})),
    MethodKind.LOGITS: Traits(EditsLogits, frozenset({Ability.SECOND_STREAM}), needs_span=True),
    MethodKind.KEYS: Traits(
        EditsKeys, frozenset({Ability.KEYS}), needs_span=True, acts_in_pass=True
    ),
    MethodKind.RESIDUAL: Traits(
        EditsHidden, frozenset({Ability.RESIDUAL}), acts_in_pass=True, affects_pre_span=True
    ),
    MethodKind.RETRIES: Traits(RetriesReplies, frozenset({Ability.RETRIES})),
    MethodKind.REHEARSED: Traits(
        NeedsRehearsal, frozenset({Ability.LOG_ODDS, Ability.REHEARSAL}), needs_span=True
    ),
}


def members_of(kind: MethodKind) -> tuple[str, ...]:
    """Returns the members that a method of a kind has: its name, and the protocol's members."""
    members = [name for name in vars(TRAITS[kind].protocol) if not name.startswith("_")]
    return ("name", *members)


def kind_of(method: object) -> MethodKind | None:
    """Returns the kind that a method declares, or whose functions it has; None for no method."""
    kinds = _kinds_of(method)
    return kinds[0] if kinds and isinstance(kinds[0], MethodKind) else None


def requirements(method: object) -> frozenset[Ability]:
    """Returns the abilities that a method needs: what its class declares, else its kind's."""
    declared: frozenset[Ability] | None = getattr(method, "requires", None)
    if declared is not None:
        return declared
    kind = kind_of(method)
    return TRAITS[kind].requires if kind else frozenset()


def in_words(abilities: Iterable[Ability]) -> str:
    """Lists abilities for a sentence, in the order of `Ability`; "nothing" for an empty list."""
    ability_set = set(abilities)
    *others, last = [ability.value for ability in Ability if ability in ability_set] or ["nothing"]
    return f"{', '.join(others)} and {last}" if others else last


# Methods that users write


def check_method(method: Any) -> Method:
    """Returns a method if it has all that its kind needs, and can be hashed.

    Raises:
        UsageError: it lacks something, or is no method.
    """
    if isinstance(method, type):
        raise UsageError(
            f"{method.__name__} is a class, and a method is an object of it; make one, as in "
            f"{method.__name__}(...).",
            option="method",
            value=method.__name__,
        )
    members = members_of(require_kind(method))
    class_name = type(method).__name__
    if missing := " and ".join(name for name in members if not hasattr(method, name)):
        raise UsageError(
            f"The method {class_name} lacks {missing}; a method of its kind has"
            f" {', '.join(members)} (see holdfast.methods.protocols).",
            option="method",
            value=class_name,
            allowed=members,
        )
    if not method.name:
        raise UsageError(f"The method {class_name} has an empty name; name it by a word.")
    try:
        hash(method)
    except TypeError:
        raise UsageError(
            f"The method {class_name} cannot be hashed, so rows that share it cannot be grouped;"
            " make it a frozen dataclass, @dataclass(frozen=True).",
            option="method",
            value=class_name,
        ) from None
    valid_method: Method = method
    return valid_method


def require_kind(method: object) -> MethodKind:
    """Returns the kind of a method; a `UsageError` unless it has exactly one."""
    kinds = _kinds_of(method)
    class_name = type(method).__name__
    if not kinds:
        raise UsageError(
            f"{shortened(method)} is no method; give objects of holdfast.methods, or spec strings"
            " such as 'boost:factor=2'.",
            option="method",
            value=class_name,
        )
    kind, *others = kinds
    if not isinstance(kind, MethodKind):
        raise UsageError(
            f"The method {class_name} declares the kind {shortened(kind)}; declare one of"
            f" {', '.join(map(str, MethodKind))}.",
            option="method",
            value=kind,
            allowed=tuple(MethodKind),
        )
    if others:
        raise UsageError(
            f"The method {class_name} has the functions of {' and '.join(map(str, kinds))}; declare"
            f" one of them, as in kind = {kind}.",
            option="method",
            value=class_name,
            allowed=kinds,
        )
    return kind


def _kinds_of(method: object) -> tuple[object, ...]:
    """Returns the kind that a class declares, or else every kind that it has a function of."""
    declared = getattr(method, "kind", None)
    if declared is not None:
        return (declared,)
    return tuple(
        kind for kind in MethodKind if any(hasattr(method, name) for name in _functions(kind))
    )


def _functions(kind: MethodKind) -> list[str]:
    """Returns the functions of a kind's protocol; no other kind has any of them."""
    members = vars(TRAITS[kind].protocol).items()
    return [name for name, value in members if inspect.isfunction(value) and name[0] != "_"]
