"""The kinds of method, what models can offer, and the one table of what each kind needs.

A method's class declares its kind as data, and may declare what else it needs:

    kind: ClassVar[Kind] = Kind.LOG_ODDS
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


class Kind(Enum):
    """The kind of a method; each has one protocol in `holdfast.methods.protocols`."""

    LOG_ODDS = "attention"  # the log-odds of the mass on the span, in attention
    MESSAGES = "prompt"  # the chat, before it is rendered
    LOGITS = "decoding"  # the logits, with those of a second stream that reads another chat
    KEYS = "keys"  # the keys of the span, before they are rotated and cached
    RESIDUAL = "the residual stream"  # the hidden states after a layer
    RETRIES = "retries"  # a reply is checked, and perhaps drawn again
    REHEARSED = "a rehearsed reply"  # becomes an attention method once it has seen one


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
    RETRIES = "a dialog under a suite, as in holdfast drift"  # which no model offers by itself


EVERY_MODEL = frozenset({Ability.MESSAGES})  # abilities that need no model in this process


@dataclass(frozen=True)
class Traits:
    """The properties that all methods of a kind share."""

    protocol: type  # the members that a method of the kind has, besides its name
    requires: frozenset[Ability]  # of the model, unless the class declares others
    # whether it does nothing in a chat without a system prompt or emphasis
    needs_span: bool = False
    # whether it acts inside a forward pass, so that keys and values depend on it
    acts_in_pass: bool = False
    # whether it moves tokens before the span too, and with them their keys
    affects_pre_span: bool = False


TRAITS: dict[Kind, Traits] = {
    Kind.LOG_ODDS: Traits(
        ShiftsAttention, frozenset({Ability.LOG_ODDS}), needs_span=True, acts_in_pass=True
    ),
    Kind.MESSAGES: Traits(EditsMessages, frozenset({Ability.MESSAGES})),
    Kind.LOGITS: Traits(EditsLogits, frozenset({Ability.SECOND_STREAM}), needs_span=True),
    Kind.KEYS: Traits(EditsKeys, frozenset({Ability.KEYS}), needs_span=True, acts_in_pass=True),
    Kind.RESIDUAL: Traits(
        EditsHidden, frozenset({Ability.RESIDUAL}), acts_in_pass=True, affects_pre_span=True
    ),
    Kind.RETRIES: Traits(RetriesReplies, frozenset({Ability.RETRIES})),
    Kind.REHEARSED: Traits(
        NeedsRehearsal, frozenset({Ability.LOG_ODDS, Ability.REHEARSAL}), needs_span=True
    ),
}


def members_of(kind: Kind) -> tuple[str, ...]:
    """The members that a method of a kind has: its name, and those of the kind's protocol."""
    members = [name for name in vars(TRAITS[kind].protocol) if not name.startswith("_")]
    return ("name", *members)


def kind_of(method: object) -> Kind | None:
    """The kind of a method, which may be inferred from its functions; None for any other object."""
    kinds = _kinds_of(method)
    return kinds[0] if kinds and isinstance(kinds[0], Kind) else None


def requirements(method: object) -> frozenset[Ability]:
    """The abilities that a method needs: those its class declares, or else those of its kind."""
    declared: frozenset[Ability] | None = getattr(method, "requires", None)
    if declared is not None:
        return declared
    kind = kind_of(method)
    return TRAITS[kind].requires if kind else frozenset()


def in_words(abilities: Iterable[Ability]) -> str:
    """Abilities in a sentence, in the order of `Ability`; "nothing" for none."""
    needed = set(abilities)
    *others, last = [ability.value for ability in Ability if ability in needed] or ["nothing"]
    return f"{', '.join(others)} and {last}" if others else last


# Classes of users


def checked_method(method: Any) -> Method:
    """The method, if it can be applied, written as a spec and compared with others."""
    if isinstance(method, type):
        raise UsageError(
            f"{method.__name__} is a class, and a method is an object of it; make one, as in "
            f"{method.__name__}(...).",
            option="method",
            value=method.__name__,
        )
    members = members_of(_checked_kind(method))
    made_by = type(method).__name__
    if missing := " and ".join(name for name in members if not hasattr(method, name)):
        raise UsageError(
            f"The method {made_by} lacks {missing}; a method of its kind has"
            f" {', '.join(members)} (see holdfast.methods.protocols).",
            option="method",
            value=made_by,
            allowed=members,
        )
    if not method.name:
        raise UsageError(f"The method {made_by} has an empty name; give it a word.")
    try:
        hash(method)
    except TypeError:
        raise UsageError(
            f"The method {made_by} cannot be hashed, so rows that share it cannot be grouped; make"
            " it a frozen dataclass, @dataclass(frozen=True).",
            option="method",
            value=made_by,
        ) from None
    checked: Method = method
    return checked


def _checked_kind(method: object) -> Kind:
    kinds = _kinds_of(method)
    made_by = type(method).__name__
    if not kinds:
        raise UsageError(
            f"{shortened(method)} is no method; give objects of holdfast.methods, or spec strings"
            " such as 'boost:factor=2'.",
            option="method",
            value=made_by,
        )
    kind, *others = kinds
    if not isinstance(kind, Kind):
        raise UsageError(
            f"The method {made_by} declares the kind {shortened(kind)}; give it one of"
            f" {', '.join(map(str, Kind))}.",
            option="method",
            value=kind,
            allowed=tuple(Kind),
        )
    if others:
        raise UsageError(
            f"The method {made_by} has the functions of {' and '.join(map(str, kinds))}; declare"
            f" the one that it is, as in kind = {kind}.",
            option="method",
            value=made_by,
            allowed=kinds,
        )
    return kind


def _kinds_of(method: object) -> tuple[object, ...]:
    """The kind that a class declares, or else the kinds whose functions it has."""
    declared = getattr(method, "kind", None)
    if declared is not None:
        return (declared,)
    return tuple(kind for kind in Kind if any(hasattr(method, name) for name in _functions(kind)))


def _functions(kind: Kind) -> list[str]:
    """The functions of a kind's protocol, which no other kind has."""
    members = vars(TRAITS[kind].protocol).items()
    return [name for name, value in members if inspect.isfunction(value) and name[0] != "_"]
